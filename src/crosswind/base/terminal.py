"""Terminal output: tables, JSON, and untrusted text made harmless."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]"  # what sets titles, moves, colours
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
    r"|[\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """Untrusted text without the control sequences that a terminal would obey."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def short(text: str, limit: int) -> str:
    """Untrusted text, made safe and cut to `limit` characters."""
    text = safe(text)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def console() -> Console:
    """A console that prints text literally: no markup, no emoji, no highlighting."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, width=None if sys.stdout.isatty() else 140)


def table_of(*heads: str) -> Any:
    """An empty table with these column heads."""
    from rich.table import Table

    table = Table(show_lines="what the agent saw" in heads)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def print_json(data: object) -> None:
    """Print one JSON document to stdout."""
    print(json.dumps(data, indent=1))
