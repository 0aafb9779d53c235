"""Options and arguments that several commands share, so that they have the same names and the same help everywhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import read_whole
from crosswind.cli.exits import STOPPED

if TYPE_CHECKING:
    from crosswind.core.perturbation import Layers
    from crosswind.runs.store import AnyRun

DomainName = Annotated[str, Option(help="Domain to play in.")]
Family = Annotated[str, Option(show_default="chosen by the seed", help="Task family.")]
Ending = Annotated[
    str,
    Option(
        metavar="finish|words",
        show_default="what the agent supports",
        help="How the agent ends an episode: by calling the tool finish, or with a plain-text message.",
    ),
]
Force = Annotated[bool, Option("--force", help="Overwrite existing files.")]
Json = Annotated[bool, Option("--json", help="Print one JSON document and nothing else.")]
Markdown = Annotated[bool, Option("--markdown", help="Print Markdown and nothing else.")]
Perturb = Annotated[list[str], Option(metavar="KIND[:SEVERITY]", help="Perturbation to apply; repeatable.")]
RunFolder = Annotated[Path, Argument(metavar="DIR", help="Folder of a run (its --out).")]
Seed = Annotated[int, Option(min=0, help="Random seed; the same seed gives the same episodes.")]
ServerCommand = Annotated[list[str] | None, Argument(metavar="[-- SERVER...]", help="Command that starts the server.")]
ServerUrl = Annotated[str, Option(help="URL of a running server, instead of a command.")]
Stack = Annotated[Path | None, Option(metavar="FILE", help="JSON file with `layers` as printed by `play --json`.")]
SuiteName = Annotated[str, Option(help="Suite name (see `crosswind catalog`) or YAML file.")]


def names_in(option: str, given: Sequence[str]) -> list[str]:
    """The names of an option that is repeatable and takes several at once, separated by commas."""
    for text in given:
        if not text.replace(",", "").strip():
            raise CrosswindError(f"{option} is {text!r}, which holds no name; give one, or leave the option out")
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def one_form(json_: bool, markdown: bool) -> None:
    """Refuse two forms of output at once."""
    if json_ and markdown:
        raise CrosswindError("give --json or --markdown, not both")


def warn_of_damage(*runs: AnyRun) -> None:
    """Name damaged lines that are left out of what is shown, and what to do about them."""
    for run in runs:
        warn(run.damage, run.folder)


def warn(damage: str, folder: Path | str) -> None:
    """Print what is wrong with a folder as one line on stderr; nothing where nothing is."""
    if damage:
        print(terminal.one_line(f"warning: {folder}: {damage}"), file=sys.stderr)


def write_page(path: Path, page: str, instead: str = "another file with -o", *, links: bool = True) -> None:
    """Write a file that the user named, whole or not at all. A full disk is no mistake in the command."""
    from crosswind.base.files import FULL, write_output

    try:
        write_output(path, page.encode("utf-8", "replace"), links=links)
    except OSError as error:
        told = f"{terminal.one_line(str(path))}: cannot be written ({error.strerror})"
        if error.errno in FULL:
            print(f"error: {told}; make room, then give the same command again", file=sys.stderr)
            raise Exit(STOPPED) from None
        raise CrosswindError(f"{told}; choose {instead}") from None


def read_stack(path: Path) -> Layers:
    """Read the layers in the file that `--stack` names."""
    import json

    from crosswind.core.perturbation import load_layers

    wanted = "expected a JSON file with a list of layers"
    try:
        data = json.loads(read_whole(path, links=True).decode())
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); {wanted}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path}: is not UTF-8 text; {wanted}") from None
    except json.JSONDecodeError as error:
        raise BadFile(f"{path}:{error.lineno}:{error.colno}: {error.msg}; {wanted}") from None
    except RecursionError:
        raise BadFile(f"{path}: is nested too deeply; {wanted}") from None
    return load_layers(data, str(path))


Executor = Annotated[str, Option(metavar="local|ray", help="Run in this process, or on a Ray cluster.")]
Address = Annotated[str, Option(show_default="a cluster on this machine", help="Address of a Ray cluster.")]
