"""Terminal output: tables, JSON, and untrusted text made harmless."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]"  # what sets titles, moves, colours
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
    r"|[\U000e0000-\U000e007f]"
)


# what the log of a CI service obeys: anywhere, or at the start of a line, as which folding may leave any of it
_COMMAND = re.compile(
    r"(?<!\S):(?=:)"
    r"|:(?=:(?:internal-|set-(?:env|output)|save-state|add-(?:path|mask|matcher)|remove-matcher|warning|error|notice"
    r"|debug|group|endgroup|echo|stop-commands))"
    r"|\#(?=\#(?:vso|teamcity)?\[)",
    re.I,
)


def safe(text: str) -> str:
    """Untrusted text without what a terminal or the log of a CI service would obey.

    The mark parts the two signs that begin a command, so that folding the text cannot take it away.
    """
    return _COMMAND.sub("\\g<0>\N{REPLACEMENT CHARACTER}", _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def one_line(text: str) -> str:
    """Untrusted text, made safe, on one line."""
    return safe(" ".join(text.splitlines()).replace("\t", " "))


def short(text: str, limit: int) -> str:
    """Untrusted text, made safe, on one line and cut to `limit` characters."""
    text = one_line(text[: 2 * limit])
    return text if len(text) <= limit else text[: limit - 3] + "..."


_ours: TextIO | None = None  # stdout, while it is reserved


@contextmanager
def reserve_stdout() -> Iterator[None]:
    """Reserve stdout for `console` and `print_json`: whatever else prints, libraries and subprocesses too, goes to
    stderr until this ends."""
    global _ours
    stdout, kept = sys.stdout, -1
    _ours = stdout
    with suppress(OSError, ValueError):  # closed, or not a file
        if stdout.fileno() == 1:
            stdout.flush()
            kept = os.dup(1)
            _ours = os.fdopen(os.dup(1), "w", encoding=stdout.encoding, errors=stdout.errors)
            os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept >= 0:
            _ours.close()
            stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
        _ours = None


def out() -> TextIO:
    """The stream that our own output goes to."""
    return _ours or sys.stdout


NARROW = 110  # columns below which tables have no frames
MARKS = {"yes": ("\N{CHECK MARK}", "ok"), "no": ("\N{BALLOT X}", "NO"), "none": ("-", "--"), "": ("", "")}


def marked(mark: str, name: str, text: str, width: int = 24) -> str:
    """A line of a list: a mark ("yes", "no", "none" or ""), a name and a text, wrapped below itself and made safe.

    The marks are words where the terminal cannot show signs.
    """
    coding = sys.stdout.encoding or "ascii"
    try:
        MARKS["yes"][0].encode(coding)
        head = f"  {MARKS[mark][0]:1} {name:<{width}} "
    except (UnicodeEncodeError, LookupError):
        head = f"  {MARKS[mark][1]:2} {name:<{width}} "
    wide = max(60, min(shutil.get_terminal_size((100, 24)).columns, 120)) - 1
    lines = textwrap.wrap(text, wide - len(head), break_on_hyphens=False) or [""]
    whole = "\n".join([head + lines[0], *(" " * len(head) + line for line in lines[1:])]).rstrip()
    return safe(whole).encode(coding, "backslashreplace").decode(coding)


def columns() -> int:
    """How wide output may be: COLUMNS, the terminal, or 140 where there is neither."""
    return shutil.get_terminal_size((140, 24)).columns


def console() -> Console:
    """A console that prints text literally: no markup, no emoji, no highlighting."""
    from rich.console import Console

    file = out()
    return Console(file=file, markup=False, highlight=False, emoji=False, width=None if file.isatty() else columns())


def table_of(*heads: str) -> Any:
    """An empty table with these column heads; without frames where there is little room."""
    from rich import box
    from rich.table import Table

    lines = "what the agent saw" in heads
    if columns() < NARROW:
        table = Table(show_lines=lines, box=box.SIMPLE_HEAD, padding=0)
    else:
        table = Table(show_lines=lines)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def fitted(table: Any) -> Any:
    """A table whose words stay whole where there is little room; its lines are broken between them."""
    if columns() >= NARROW:
        return table
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    heads = [str(column.header) for column in table.columns]
    words = [[w for text in (head, *of) for w in text.split(" ")] for head, of in zip(heads, cells, strict=True)]
    widths = [max(map(len, of)) for of in words]
    wanted = [max([width, *map(len, of)]) for width, of in zip(widths, cells, strict=True)]
    room = columns() - len(widths) - 1 - sum(widths)  # a column of space around each
    if room < 0:
        return table
    for _ in range(min(room, sum(wanted) - sum(widths))):  # to the one that lacks most
        widths[max(range(len(widths)), key=lambda nth: wanted[nth] / widths[nth])] += 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    return table


def print_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table with these column heads and rows."""
    table = table_of(*heads)
    for row in rows:
        table.add_row(*row)
    console().print(fitted(table))


def print_json(data: object) -> None:
    """Print one JSON document to stdout."""
    print(json.dumps(data, indent=1), file=out())
