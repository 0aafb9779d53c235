"""A process that outlives this one, to end what it must not leave behind.

It is told of groups of processes over a pipe, and told them off again. The end of the pipe comes when this process is
gone, however it went: then whatever it was not told off is ended. It needs nothing but pipes and process groups, so
it does the same on Linux and on macOS. A process that leaves its group leaves the guard too.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading

WATCH = """
import os, signal, sys, time

def runs(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True

groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
end = time.monotonic() + float(sys.argv[1])
while (groups := {group for group in groups if runs(group)}) and time.monotonic() < end:
    time.sleep(0.05)
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class Guard:
    """Groups of processes that end when this process does. Started with the first of them; any thread may call it.

    `grace` is how many seconds they have to end by themselves once this process is gone.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self.grace = grace
        self.groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """See that the guard runs; before a process that it is to be told of is started. Raises `OSError`."""
        with self._lock:
            self._running()

    def watch(self, group: int) -> None:
        """Have a group ended with this process."""
        with self._lock:
            self.groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """The group is over: its number may soon be another's."""
        with self._lock:
            if group in self.groups:
                self.groups.discard(group)
                self._tell(f"-{group}\n")

    def close(self) -> None:
        """End the guard, and all that it was not told off."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                assert process.stdin
                with contextlib.suppress(OSError):
                    process.stdin.close()
                atexit.unregister(self.close)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(self.grace + 1.0)

    def _running(self) -> subprocess.Popen[bytes]:
        """The guard; one that was ended by somebody is started again and told all there is."""
        if self._process is None or self._process.poll() is not None:
            if self._process is None:
                atexit.register(self.close)
            elif self._process.stdin is not None:
                self._process.stdin.close()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", WATCH, str(self.grace)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,  # ours may be a client's, who waits for its end
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._process.stdin
            os.write(self._process.stdin.fileno(), "".join(f"+{group}\n" for group in self.groups).encode())
        return self._process

    def _tell(self, line: str) -> None:
        stdin = self._running().stdin
        assert stdin
        with contextlib.suppress(BrokenPipeError):  # it was ended just now; the next one is told all there is
            os.write(stdin.fileno(), line.encode())
