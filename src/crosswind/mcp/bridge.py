"""A pipe to an episode, for clients that start their servers: standard input and output to a socket, byte for byte.

Run as a script by an agent's MCP client, in whatever environment that gives it, so it needs the standard library
alone. It ends with either side.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(path: str) -> None:
    """Copy until one side ends."""
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(path)
    except OSError as error:
        sys.exit(f"the episode is over ({error.strerror})")

    def up() -> None:
        while data := os.read(0, 2**16):
            line.sendall(data)
        line.shutdown(socket.SHUT_WR)

    threading.Thread(target=up, daemon=True).start()
    try:
        while data := line.recv(2**16):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass
    os._exit(0)  # the other thread may be waiting for input that never comes


if __name__ == "__main__":
    main(sys.argv[1])
