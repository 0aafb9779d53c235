"""Run a command over our own pipes, and keep every line it writes in a file; what it says on stderr goes beside it.

python tee.py FRAMES -- COMMAND ...
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def feed(into: IO[bytes]) -> None:
    """Hand on what comes in, until there is no more."""
    while data := os.read(0, 2**16):
        into.write(data)
        into.flush()
    into.close()


def main() -> int:
    frames, command = Path(sys.argv[1]), sys.argv[3:]
    with frames.open("ab") as kept, Path(f"{frames}.err").open("ab") as errors:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        assert child.stdin
        assert child.stdout
        threading.Thread(target=feed, args=(child.stdin,), daemon=True).start()
        for line in child.stdout:
            kept.write(line)
            kept.flush()
            os.write(1, line)
        return child.wait()


if __name__ == "__main__":
    sys.exit(main())
