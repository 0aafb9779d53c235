"""Assemble the command line. Commands live in the modules beside this one and import what is heavy when they run."""

from __future__ import annotations

import codecs
import copy
import errno
import importlib
import io
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.files import FULL
from crosswind.base.version import __version__
from crosswind.cli.exits import BUG, INTERRUPTED, MISTAKE, STOPPED
from crosswind.cli.help import App, HelpfulGroup, epilog, example_of

if TYPE_CHECKING:
    app: App  # made when it is asked for

NO_PLUGINS = ("demo", "doctor", "init", "learn", "new")  # commands that play nothing of a plug-in


class Commands(HelpfulGroup):
    """The commands. Reports the rejected value of an option, and prints a message on Ctrl-C."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command. It takes `--plugin` too, so that it may come before or after the command's name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and cmd_name not in NO_PLUGINS:
            for each in getattr(command, "commands", {"": command}).values():
                if all(param.name != "plugin" for param in each.params):
                    own = copy.copy(next(param for param in self.params if param.name == "plugin"))
                    own.callback, own.expose_value, own.is_eager = _load_plugins, False, True
                    each.params.append(own)
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if not error.message and error.ctx is not None:  # something is missing
                error.message = example_of(error.ctx.command)
            if isinstance(error.__cause__, ValidationError):
                from crosswind.base.yaml_files import complaint

                first = error.__cause__.errors()[0]
                low, high = getattr(error.param, "min", None), getattr(error.param, "max", None)
                error.message = complaint(first)
                if low is not None and high is not None:
                    error.message = f"got {first['input']!r}; expected a number from {low} to {high}"
            raise
        except Exception as error:
            if near := getattr(error, "possibilities", None):  # of an unknown option: dashes alone make none alike
                bare = {name.lstrip("-"): name for name in near}
                found = get_close_matches(getattr(error, "option_name", "").lstrip("-"), bare)
                error.possibilities = [bare[name] for name in found]  # type: ignore[attr-defined]
            raise
        except KeyboardInterrupt as stop:  # typer would exit without a word
            print(f"stopped; {terminal.safe(str(stop))}" if stop.args else "stopped", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


def assembled(commands: Sequence[str]) -> App:
    """The command line with the commands of these modules: to import and describe all takes a while."""
    made = App(
        name="crosswind",
        cls=Commands,
        help="Measure how a tool-use agent copes when tools, results, requests or rules change. Every perturbed task "
        "is proved fair, so when an episode fails, the agent is at fault.",
        epilog=epilog(
            "crosswind demo",
            "crosswind run quick --agent retrier --out runs/first",
            "crosswind report runs/first",
            notes="`crosswind COMMAND --help` explains a command. Most commands take --json.",
        ),
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    made.callback()(options)
    for name in commands:
        made.add_typer(importlib.import_module(f"crosswind.cli.{name}").app)
    return made


@cache
def __getattr__(name: str) -> App:
    if name == "app":  # with all commands
        return assembled(COMMANDS)
    raise AttributeError(name)


def main() -> None:
    """Run the command line. An error that the user can fix is one line on stderr, never a traceback."""
    _open_streams()
    warnings.formatwarning = _warning
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):  # in the C locale
            stream.reconfigure(errors="plain")
    try:
        try:
            assembled([sys.argv[1]] if sys.argv[1:2] and sys.argv[1] in COMMANDS else COMMANDS)()
        finally:
            sys.stdout.flush()
    except CrosswindError as error:
        print(f"error: {terminal.one_line(str(error))}", file=sys.stderr)
        sys.exit(MISTAKE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG and error.filename is not None:
            told = terminal.short(os.fsdecode(error.filename), 80)
            print(f"error: {told}: is too long for a path here; give a shorter one", file=sys.stderr)
            sys.exit(MISTAKE)
        if error.filename is not None or error.errno not in FULL:
            sys.exit(_bug(error))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: standard output cannot be written ({error.strerror}); what is stored is safe", file=sys.stderr)
        sys.exit(STOPPED)
    except Exception as error:
        from crosswind.authoring.plugins import blamed

        if not (said := blamed(error)):
            sys.exit(_bug(error))
        print(f"error: {terminal.safe(said)}; fix this line of the plug-in", file=sys.stderr)
        sys.exit(MISTAKE)


def _open_streams() -> None:
    """Have standard input, output and error open, to nowhere where our parent closed them: else the first file
    that is opened would take their place, and get what is printed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _bug(error: Exception) -> int:
    """Report what is wrong with crosswind in a line, with the traceback in a file. The exit status is that of a bug: 1
    would read as the "fail" of a gate."""
    text = "".join(traceback.format_exception(error))
    where = "the traceback could not be stored"
    with suppress(OSError), tempfile.NamedTemporaryFile("w", prefix="crosswind-", suffix=".txt", delete=False) as file:
        file.write(text)
        where = f"the traceback is in {file.name}; please report it"
    print(f"error: this is a bug in crosswind: {terminal.short(repr(error), 200)}; {where}", file=sys.stderr)
    return BUG


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that the encoding of a stream lacks."""
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    return lost.translate({0xA0: " ", 0x2212: "-", 0x2013: "-"}).encode("ascii", "replace").decode(), error.end


def _warning(message: Warning | str, *_: object, **__: object) -> str:
    """A warning as one line, without the place in the code that gave it."""
    return f"warning: {terminal.one_line(str(message))}\n"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"crosswind {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[Path],
        typer.Option(help="Load a plug-in: a Python file or a YAML domain; repeatable (docs/plugins.md)."),
    ] = [],  # noqa: B006
) -> None:
    """Options of every command."""
    _load_plugins(None, None, plugin)


def _load_plugins(_ctx: Any, _param: Any, paths: list[Path] | None) -> None:
    if paths:
        from crosswind.authoring import plugins

        plugins.share(paths)


COMMANDS = (
    *("adapt", "baselines", "catalog", "certify", "check", "compare", "data", "demo"),
    *("diagnose", "doctor", "export", "gate", "import_log", "init", "leaderboard", "learn"),
    *("merge", "new", "play", "proxy", "report", "rescore", "run", "serve"),
    *("show", "stream", "study", "train", "watch"),
)  # modules of this folder; each has an `app` with its commands and imports what is heavy inside them


if __name__ == "__main__":
    main()
