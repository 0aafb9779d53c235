"""`crosswind init`: a starting configuration."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

from typer import Option

from crosswind.base.errors import CrosswindError
from crosswind.base.extras import requirement
from crosswind.base.version import __version__
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Force

app = App()

OWN = "my_agent.py"  # an agent to fill in
WHEEL = f"vendor/crosswind-{__version__}-py3-none-any.whl"
EXTRAS = "openai,anthropic"  # that the workflow installs
TOKENS = 16_000_000  # what the suite takes on the certified way, as a dry run counts them
MOST_TOKENS = 3 * TOKENS
WORKFLOW = Path(".github") / "workflows" / "crosswind.yml"

INIT_EPILOG = epilog("crosswind init --agent python:my_agent:agent", "crosswind init --out ../service --force")


@app.command(epilog=INIT_EPILOG)
def init(
    out: Annotated[Path, Option(metavar="DIR", help="Root of your project.")] = Path("."),
    agent: Annotated[
        str,
        Option(show_default="my_agent.py, to fill in", help="Agent to test, as for `crosswind run --agent`."),
    ] = "",
    install: Annotated[
        str,
        Option(
            show_default="the address this crosswind was installed from, or a wheel in vendor/",
            help="Requirement that the workflow installs with pip, such as crosswind @ git+https://...",
        ),
    ] = "",
    force: Force = False,
) -> None:
    """Write a commented crosswind.yaml, a GitHub workflow that runs it, and an agent to fill in."""
    from crosswind.cli.config import NAME

    paths = write_start(out, agent, install=install, force=force)
    print(f"wrote {', '.join(map(str, paths))}")
    if WHEEL in paths[1].read_text(encoding="utf-8"):
        print(
            f"The workflow installs {WHEEL}: put the wheel there (in a checkout of crosswind, `make wheel` builds it)."
        )
    if not (out / ".git").exists():
        print(
            f"GitHub reads workflows only at the root of a repository, and {out} is not one. If it is a subfolder of a "
            f"repository, move {WORKFLOW} to the root and set `working-directory` for its steps."
        )
    steps = [
        f"crosswind run quick --config {NAME} --out runs/quick  # a verdict in a minute: is all in place?",
        f"crosswind gate runs/quick --config {NAME}",
        f"crosswind run --config {NAME} --out runs/first  # what the workflow plays",
        f"crosswind gate runs/first --config {NAME}",
    ]
    if out.resolve() != Path.cwd():
        steps.insert(0, f"cd {shlex.quote(str(out))}")  # an agent's module is looked for in the current folder
    print(*(f"  {step}" for step in steps), sep="\n")


def write_start(out: Path, agent: str = "", *, install: str = "", force: bool = False) -> list[Path]:
    """Write a commented configuration and a workflow that uses it into a project, and an agent to fill in where none is
    named. `install` is what pip installs in the workflow."""
    from crosswind.authoring.new import write_templates
    from crosswind.cli.config import NAME

    own = not agent
    agent = agent or f"python:{OWN.removesuffix('.py')}:agent"
    if not re.fullmatch(r"[\w./:@+~-]+", agent):
        raise CrosswindError(
            f"{agent!r} is not an agent; give one as for `crosswind run --agent`, such as openai:MODEL@URL"
        )
    if "\n" in install:
        raise CrosswindError(
            "--install contains a line break; give one requirement for pip, such as a wheel or git+https://..."
        )
    paths = {out / NAME: "config", out / WORKFLOW: "workflow"}
    if own and not (out / OWN).exists():  # theirs is never written over
        paths[out / OWN] = "own_agent"
    words = {"agent": agent, "install": shlex.quote(install or installed_from())}
    words |= {"max_tokens": str(MOST_TOKENS), "million": str(TOKENS // 10**6)}
    return write_templates(paths, words, force=force)


def installed_from() -> str:
    """What pip can install this release from elsewhere: the address that it was installed from, or a wheel that the
    project keeps."""
    told = requirement(EXTRAS)
    return told if "https://" in told else f"./{WHEEL}[{EXTRAS}]"
