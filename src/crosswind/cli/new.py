"""`crosswind new`: a starting point for a domain, a perturbation or an agent."""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.cli.help import App, epilog
from crosswind.cli.options import Force

app = App()

NEW_EPILOG = epilog(
    "crosswind new domain car_rental --out plugins",
    "crosswind new perturbation prices_in_cents --values",
    "crosswind new agent my_agent",
)


@app.command(epilog=NEW_EPILOG)
def new(
    sort: Annotated[str, Argument(metavar="WHAT", help="domain, perturbation or agent.")],
    name: Annotated[str, Argument(help="Its name, in snake_case.")],
    out: Annotated[Path, Option(metavar="DIR", help="Folder to write to.")] = Path("."),
    values: Annotated[
        bool,
        Option(
            "--values",
            help="Use a simpler template for a perturbation that only rewrites values: units, codes, formats.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Write a commented starting point for a domain, perturbation or agent, with a passing test."""
    from crosswind.authoring.new import write

    module, test, *more = write(sort, name, out, force=force, values=values)
    use = {
        "domain": f"--domain {name}",
        "perturbation": f"--domain poi --perturb {name}",
        "agent": f"--domain poi --agent {name}",
    }[sort]
    written = ", ".join(map(str, (module, *more)))
    print(f"wrote {written} and {test}")
    for step in (*([] if find_spec("pytest") else ["pip install pytest"]), f"pytest {test}"):
        print(f"  {this_python()} -m {step}")
    print(f"  crosswind check {module}")
    print(f"  crosswind play --plugin {module} {use}")


def this_python() -> str:
    """What a shell calls the interpreter that has crosswind: `python`, unless that is another one."""
    found = shutil.which("python")
    return "python" if found and Path(found) == Path(sys.executable) else shlex.quote(sys.executable)
