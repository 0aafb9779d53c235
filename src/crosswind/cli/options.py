"""Options and arguments that several commands share, so that they have the same names and the same help everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from crosswind.base.errors import BadFile

if TYPE_CHECKING:
    from crosswind.core.perturbation import Layers

DomainName = Annotated[str, Option(help="The domain to play in.")]
Family = Annotated[str, Option(help="The family of tasks; by default the seed chooses.")]
Ending = Annotated[
    str, Option(show_default=False, help="End episodes by finish (a typed call) or words; default: the agent's way.")
]
Force = Annotated[bool, Option("--force", help="Write over files that exist.")]
Json = Annotated[bool, Option("--json", help="Print one JSON document and nothing else.")]
Perturb = Annotated[
    list[str], Option(metavar="KIND[:SEVERITY]", help="A perturbation to apply; may be given several times.")
]
RunFolder = Annotated[Path, Argument(metavar="DIR", help="The folder of a run: the --out of `crosswind run`.")]
Seed = Annotated[int, Option(min=0, help="Equal seeds give equal tasks, stacks and episodes.")]
ServerCommand = Annotated[list[str] | None, Argument(metavar="[-- SERVER COMMAND]", help="Starts the server.")]
ServerUrl = Annotated[str, Option(help="A server that runs, instead of a command.")]
Stack = Annotated[Path | None, Option(help="A JSON file with layers, as `layers` in the output of `play --json`.")]
SuiteName = Annotated[str, Option(help="A suite (see `crosswind catalog`) or a YAML file with one.")]


def read_stack(path: Path) -> Layers:
    """Read the layers in the file that `--stack` names."""
    import json

    from crosswind.core.perturbation import load_layers

    wanted = "expected a JSON file with a list of layers"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); {wanted}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path}: is not UTF-8 text; {wanted}") from None
    except json.JSONDecodeError as error:
        raise BadFile(f"{path}:{error.lineno}:{error.colno}: {error.msg}; {wanted}") from None
    except RecursionError:
        raise BadFile(f"{path}: is nested too deeply; {wanted}") from None
    return load_layers(data, str(path))
