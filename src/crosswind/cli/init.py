"""`crosswind init`: a starting configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from crosswind.cli.help import App, epilog
from crosswind.cli.options import Force

app = App()

INIT_EPILOG = epilog("crosswind init --agent python:my_agent:agent", "crosswind init --out ../service --force")


@app.command(epilog=INIT_EPILOG)
def init(
    out: Annotated[Path, Option(metavar="DIR", help="Root of your project.")] = Path("."),
    agent: Annotated[
        str,
        Option(show_default="my_agent.py, written to fill in", help="Agent to test, as for `crosswind run --agent`."),
    ] = "",
    install: Annotated[
        str,
        Option(
            show_default="where this crosswind came from, or a wheel in vendor/",
            help="What pip installs in the workflow, such as crosswind @ git+https://...",
        ),
    ] = "",
    force: Force = False,
) -> None:
    """Write a commented crosswind.yaml, a GitHub workflow that runs it, and an agent to fill in."""
    from crosswind.cli.config import WHEEL, write_start

    paths = write_start(out, agent, install=install, force=force)
    print(f"wrote {', '.join(map(str, paths))}")
    config = paths[0]
    if WHEEL in paths[1].read_text(encoding="utf-8"):
        print(
            f"The workflow installs {WHEEL}: put the wheel there (in a checkout of crosswind, `make wheel` builds it)."
        )
    print(f"  crosswind run --config {config} --out runs/first\n  crosswind gate runs/first --config {config}")
