"""Progress on stderr: one updating line on a terminal, a few lines in a log, nothing if quiet."""

from __future__ import annotations

import math
import shutil
import sys
import time
from typing import TYPE_CHECKING, Self

from crosswind.base import terminal

if TYPE_CHECKING:
    from crosswind.runs.runner import Progress

LIVE = 0.1  # seconds between two updates on a terminal
LOG, LONGEST = 5.0, 600.0  # seconds before the first line in a log, doubled after each line; at most


class Display:
    """One line that says how far a command is."""

    def __init__(self, doing: str = "", *, quiet: bool = False) -> None:
        self.doing, self.quiet = doing, quiet
        self.live = sys.stderr.isatty() and not quiet
        self.began = time.monotonic()
        self.told = self.began if not self.live else 0.0
        self._lines = 0  # in a log, so far
        self._rows = 0  # of the terminal that the line takes now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.began

    def say(self, *parts: str, at_once: bool = False) -> None:
        """Show a line, unless the last one is too recent."""
        now = time.monotonic()
        if self.quiet or (not at_once and now - self.told < self._pause):
            return
        self.told = now
        text = terminal.safe(" ".join((self.doing, *parts)).strip())
        if not self.live:
            self._lines += 1
            print(text, file=sys.stderr, flush=True)
            return
        print(f"{self._clear()}{text}", end="", file=sys.stderr, flush=True)
        self._rows = math.ceil(len(text) / max(1, shutil.get_terminal_size().columns)) or 1

    def note(self, text: str) -> None:
        """Print a line that stays."""
        if not self.quiet:
            print(f"{self._clear() if self._rows else ''}{terminal.safe(text)}", file=sys.stderr, flush=True)
            self._rows = 0

    def clear(self) -> None:
        """Take the line off the terminal, for output that follows."""
        if self._rows:
            print(self._clear(), end="", file=sys.stderr, flush=True)
            self._rows = 0

    @property
    def _pause(self) -> float:
        return LIVE if self.live else min(LOG * 2**self._lines, LONGEST)

    def _clear(self) -> str:
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return f"\r{up}\x1b[J"


class RunDisplay(Display):
    """Shows how far a run is; a `runner.Watch`."""

    def __init__(self, *, quiet: bool = False, scores: bool = True) -> None:
        super().__init__(quiet=quiet)
        self.scores = scores

    def show(self, progress: Progress) -> None:
        self.say(self.line(progress))

    def line(self, progress: Progress) -> str:
        """All of it in one line."""
        from crosswind.episodes.suite import BANDS
        from crosswind.metrics.groups import REFUSALS

        over = progress.before + progress.done
        rate = progress.done / self.seconds if self.seconds else 0.0
        total = max(progress.total, over)  # what was finished before may be more than the estimate
        left = f", {span((total - over) / rate)} left" if rate else ""
        about = "about " if progress.estimated else ""
        errors = f", {progress.errors} errors" if progress.errors else ""
        errors += f", {progress.exceptions} exceptions" if progress.exceptions else ""
        bands = (*BANDS, REFUSALS) if self.scores else ()
        counts = [(band, progress.scores[band]) for band in bands if band in progress.scores]
        scores = [f"{band} {100 * c.passed / c.n:.0f} %" for band, c in counts]
        return "; ".join([f"{over} of {about}{total} episodes, {rate:.3g}/s{left}{errors}", *scores])


def span(seconds: float) -> str:
    """A time to wait, in words."""
    seconds = max(0, round(seconds))
    if seconds < 90:
        return f"{seconds} s"
    minutes, hours = seconds // 60, seconds // 3600
    return f"{minutes} min" if minutes < 90 else f"{hours} h {minutes % 60} min"
