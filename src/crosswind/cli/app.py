"""Assemble the command line. Commands live in the modules beside this one and import what is heavy when they run."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.version import __version__
from crosswind.cli.options import Force


class Commands(TyperGroup):
    """The commands. Reports the rejected value of an option, and prints a message on Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                from crosswind.base.yaml_files import complaint

                first = error.__cause__.errors()[0]
                low, high = getattr(error.param, "min", None), getattr(error.param, "max", None)
                error.message = complaint(first)
                if low is not None and high is not None:
                    error.message = f"got {first['input']!r}; expected a number from {low} to {high}"
            raise
        except KeyboardInterrupt as stop:  # typer would exit without a word
            print(f"stopped; {terminal.safe(str(stop))}" if stop.args else "stopped", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="crosswind",
    cls=Commands,
    help="Does a tool-use agent survive the open world? Perturbed tasks, proved fair, and what agents make of them.",
    epilog="Start with: crosswind demo. Then: crosswind run tiers --agent openai:MODEL@URL, crosswind report RUN",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; what a user can mend is one line on stderr, never a traceback."""
    warnings.formatwarning = _warning
    try:
        app()
    except CrosswindError as error:
        print(f"error: {terminal.safe(str(error))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


def _warning(message: Warning | str, *_: object, **__: object) -> str:
    """A warning as one line, without the place in the code that gave it."""
    return f"warning: {terminal.safe(str(message))}\n"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"crosswind {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[Path],
        typer.Option(help="A Python file or YAML domain to add (docs/plugins.md); may be given several times."),
    ] = [],  # noqa: B006
) -> None:
    """Options of every command."""
    if plugin:
        from crosswind.authoring import plugins

        plugins.share(plugin)


# ---------------------------------------------------------------- new


@app.command()
def new(
    sort: Annotated[str, typer.Argument(help="domain, perturbation or agent.")],
    name: Annotated[str, typer.Argument(help="What it is called, in snake_case.")],
    out: Annotated[Path, typer.Option(help="The folder to write into.")] = Path("."),
    force: Force = False,
) -> None:
    """Write a commented starting point for something of your own, and a test of it that passes."""
    from crosswind.authoring.new import write

    module, test = write(sort, name, out, force=force)
    use = {
        "domain": f"play --domain {name}",
        "perturbation": f"play --domain poi --perturb {name}",
        "agent": f"play --domain poi --agent {name}",
    }[sort]
    print(f"wrote {module} and {test}\n  pytest {test}\n  crosswind --plugin {module} {use}")


COMMANDS = (
    *("baselines", "catalog", "certify", "data", "demo", "diagnose", "doctor", "gate", "learn", "play", "proxy"),
    *("report", "rescore", "run", "serve", "study", "train"),
)  # modules of this folder; each has an `app` with its commands and imports what is heavy inside them
for _name in COMMANDS:
    app.add_typer(importlib.import_module(f"crosswind.cli.{_name}").app)


if __name__ == "__main__":
    main()
