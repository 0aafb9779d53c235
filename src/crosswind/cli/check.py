"""`crosswind check`: everything that an author wants to know about a plug-in."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Exit

from crosswind.base import terminal
from crosswind.cli.exits import FAILED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json
from crosswind.cli.progress import Display

EPILOG = epilog(
    "crosswind check fleet.py prices_in_cents.py",
    "crosswind check python:my_agent:agent --json",
    exits={0: "nothing is wrong", FAILED: "something is wrong"},
)
app = App()


@app.command(epilog=EPILOG)
def check(
    targets: Annotated[
        list[str],
        Argument(metavar="FILE...", help="Plug-in files, names of domains, kinds or agents, or agent specs."),
    ],
    json_: Json = False,
) -> None:
    """Check a domain, perturbation or agent that you wrote, and list its faults.

    For a domain, check that its clean tasks are fair, and list the perturbations that apply. For a perturbation, list
    the domains it applies to, and how often it leaves a task fair. For an agent, check that it can play an episode.
    """
    from contextlib import suppress
    from pathlib import Path

    from crosswind.authoring import checkup, plugins
    from crosswind.base.errors import CrosswindError

    for target in targets:  # so that a perturbation is tried on a domain of another file
        if Path(target).is_file():
            with suppress(CrosswindError):  # told below, where its turn comes
                plugins.load(target)
    with Display("checking", quiet=json_) as display:
        found = [one for target in targets for one in checkup.check(target, display.say)]
    if json_:
        terminal.print_json(
            {
                "passed": all(one.passed for one in found),
                "checked": [
                    {
                        "sort": one.sort,
                        "name": one.name,
                        "origin": one.origin,
                        "passed": one.passed,
                        "lines": [{"mark": line.mark, "name": line.name, "text": line.text} for line in one.lines],
                    }
                    for one in found
                ],
            }
        )
    else:
        for one in found:
            print(terminal.safe(f"{one.sort} {one.name}" + (f" ({one.origin})" if one.origin else "")))
            for line in one.lines:
                print(terminal.marked(line.mark, line.name, line.text))
            wrong = sum(line.mark == "no" for line in one.lines)
            print(f"  {'no fault found' if not wrong else f'{wrong} faults' if wrong > 1 else '1 fault'}")
    if not all(one.passed for one in found):
        raise Exit(FAILED)
