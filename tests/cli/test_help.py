"""What `--help` prints: narrow enough, whole, with examples whose options exist."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from crosswind.cli import help
from crosswind.cli.app import app


def every_command() -> dict[str, tuple[Any, Any]]:
    """Commands and their contexts, by what a user types."""
    root: Any = typer.main.get_command(app)
    top = root.make_context("crosswind", [], resilient_parsing=True)
    found = {"": (root, top)}
    for name in root.commands:
        command = root.get_command(top, name)
        ctx = command.context_class(command, info_name=name, parent=top)
        found[name] = (command, ctx)
        for inner, each in getattr(command, "commands", {}).items():
            found[f"{name} {inner}"] = (each, each.context_class(each, info_name=inner, parent=ctx))
    return found


COMMANDS = every_command()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_and_has_examples_and_exit_statuses(name: str) -> None:
    command, ctx = COMMANDS[name]
    text = command.get_help(ctx)
    assert max(map(len, text.splitlines())) <= 80
    words = text.split()
    for param in command.get_params(ctx):
        if param.param_type_name == "option":
            assert all(option in words or f"{option}," in words for option in param.opts)
            assert param.help, param.name
    assert "<" not in re.sub(r"<think>", "", text)  # no type names for values
    if name != "serve":
        assert "Exit status: 0 " in text
        assert "Example" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_examples_exist(name: str) -> None:
    for example in filter(help.is_example, (COMMANDS[name][0].epilog or "").split("\n\n")):
        if example.startswith("inspect "):
            continue  # a command of somebody else
        own = re.split(r" -- | \| ", example.partition("crosswind")[2].replace(".cli.app", ""))[0].split()
        path = " ".join(own[:2]) if " ".join(own[:2]) in COMMANDS else own[0]
        command, ctx = COMMANDS[path]
        known = {option for param in command.get_params(ctx) for option in (*param.opts, *param.secondary_opts)}
        assert {word for word in own if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= known, example


def test_every_command_has_a_group() -> None:
    assert {*COMMANDS[""][0].commands} == {name for names in help.COMMAND_GROUPS.values() for name in names}


def test_the_help_of_stream_names_every_plan() -> None:
    from crosswind.episodes.stream import plans

    told = CliRunner().invoke(app, ["stream", "--help"]).output
    assert all(name in told for name in plans.names())


def test_a_missing_option_comes_with_an_example() -> None:
    told = CliRunner().invoke(app, ["run", "quick"])
    assert told.exit_code == 2
    assert "Example: crosswind run quick --agent oracle" in told.output


@pytest.mark.parametrize("name", [name for name in COMMANDS if name and " " not in name])
def test_a_command_is_in_the_module_of_its_name(name: str) -> None:
    command, _ = COMMANDS[name]
    inside = list(getattr(command, "commands", {}).values()) or [command]
    module = {"import": "import_log"}.get(name, name)
    assert {each.callback.__module__ for each in inside} == {f"crosswind.cli.{module}"}
