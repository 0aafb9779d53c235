"""`crosswind doctor`: is everything there, and does an agent answer?"""

from __future__ import annotations

import shlex
from typing import Annotated

from typer import Argument, Exit

from crosswind.base import terminal
from crosswind.cli.exits import STOPPED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json

app = App()


@app.command(
    epilog=epilog(
        "crosswind doctor",
        "crosswind doctor openai:qwen3-8b@http://localhost:8000/v1",
        "OPENAI_API_KEY=... crosswind doctor openai:gpt-4.1-mini",
        exits={0: "everything works", STOPPED: "something does not work"},
    )
)
@terminal.reserve_stdout()
def doctor(
    spec: Annotated[
        str, Argument(show_default="check the installation", help="Agent, as for `crosswind run --agent`.")
    ] = "",
    json_: Json = False,
) -> None:
    """Check the installation, or check an agent before running it over a suite.

    For an endpoint, check that it is reachable, accepts the key, knows the model and calls tools, and measure its
    speed.
    """
    import asyncio

    from crosswind.models.probe import examine, installation, servers

    if spec:
        findings = asyncio.run(examine(spec))
    else:
        findings = [*installation(), *asyncio.run(servers())]
    bad = any(f.state == "bad" for f in findings)
    if json_:
        terminal.print_json({"ok": not bad, "findings": [f._asdict() for f in findings]})
    else:
        console = terminal.console()
        terminal.print_table(["what", "", "found"], ([f.what, f.state, terminal.safe(f.text)] for f in findings))
        if spec and not bad:
            console.print(f"Next: crosswind run quick --agent {shlex.quote(terminal.safe(findings[0].text))}")
        elif not spec:
            console.print("Next: crosswind doctor SPEC, such as embedded or openai:MODEL@http://localhost:8000/v1")
    if bad:
        raise Exit(STOPPED)
