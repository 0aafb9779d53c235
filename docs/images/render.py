"""Draw the README's picture of an episode in the terminal: python docs/images/render.py"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from crosswind.base import terminal
from crosswind.cli import app as cli

HERE = Path(__file__).parent
PICTURES = {
    "play": "play --domain poi --seed 9 --perturb semantic_rename --perturb transient_error --agent oracle".split(),
}


def main() -> None:
    for name, args in PICTURES.items():
        console = Console(record=True, width=132, markup=False, highlight=False, emoji=False, file=sys.stderr)
        terminal.console = lambda console=console: console  # type: ignore[misc]
        cli.app(args, standalone_mode=False)
        console.save_svg(str(HERE / f"{name}.svg"), title=f"crosswind {' '.join(args)}")


if __name__ == "__main__":
    main()
