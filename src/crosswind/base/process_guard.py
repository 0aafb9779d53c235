"""Kill child processes when this process ends, however it ends.

A small watcher process outlives this one. It reads over a pipe which process groups start and end. When the pipe
closes, this process is gone, and the watcher kills the groups that remain. It needs only pipes and process groups, so
it behaves the same on Linux and macOS. A process that leaves its group leaves the guard too.
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


class ProcessGuard:
    """Process groups that end when this process does. Any thread may call it.

    `grace` is how many seconds the groups have to end by themselves once this process is gone.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self.grace = grace
        self.groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the watcher if it is not running. Call this before starting a process to guard. Raises `OSError`."""
        with self._lock:
            self._running()

    def watch(self, group: int) -> None:
        """Kill this group when this process ends."""
        with self._lock:
            self.groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Stop guarding a group that has ended: its number may be reused."""
        with self._lock:
            if group in self.groups:
                self.groups.discard(group)
                self._tell(f"-{group}\n")

    def close(self) -> None:
        """Stop the watcher, which kills every group it still guards."""
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
        """The watcher. One that was killed is started again and told of every group."""
        if self._process is None or self._process.poll() is not None:
            if self._process is None:
                atexit.register(self.close)
            elif self._process.stdin is not None:
                self._process.stdin.close()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", WATCH, str(self.grace)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,  # ours may be a pipe whose reader waits for its end
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._process.stdin
            os.write(self._process.stdin.fileno(), "".join(f"+{group}\n" for group in self.groups).encode())
        return self._process

    def _tell(self, line: str) -> None:
        stdin = self._running().stdin
        assert stdin
        with contextlib.suppress(BrokenPipeError):  # killed just now; the next watcher gets every group
            os.write(stdin.fileno(), line.encode())
