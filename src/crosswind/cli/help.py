"""What `--help` prints: at most 80 columns, whole option names, options and commands grouped by purpose.

docs/make_reference.py writes the same parts as Markdown.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from typer import Typer
from typer.core import TyperCommand, TyperGroup

from crosswind.cli.exits import EVERYWHERE

COMMAND_GROUPS = {
    "Start here": ("demo", "doctor", "catalog"),
    "Evaluate an agent": (
        "run",
        "merge",
        "stream",
        "report",
        "compare",
        "leaderboard",
        "show",
        "diagnose",
        "baselines",
        "rescore",
        "export",
        "import",
    ),
    "Gate a release": ("init", "gate"),
    "Watch production": ("watch",),
    "Test MCP servers, and agents over MCP": ("proxy", "learn", "serve"),
    "Train a model": ("data", "train", "study"),
    "Adapt an agent to changes": ("adapt",),
    "Write your own worlds and perturbations": ("new", "check", "certify", "play"),
}
OPTION_GROUPS = {  # of commands with many options; an option not listed is under "Options"
    "Tasks": (
        *("count", "domain", "family", "level", "limit", "perturb", "recipe", "seed", "severity", "shard", "share"),
        *("size", "slips", "split", "stack", "start", "tasks", "trials", "group", "only", "tier", "axis"),
    ),
    "Limits": (
        *("concurrency", "deadline", "episode_timeout", "keep_errors"),
        *("max_cost", "max_tokens", "max_repeats", "max_exceptions"),
    ),
    "Model": (
        *(
            "context",
            "currency",
            "ending",
            "price_in",
            "price_out",
            "protocol",
            "reply_tokens",
            "request_timeout",
            "temperature",
        ),
        *("reasons", "tokenizer", "model", "slots"),
    ),
    "Machines": ("executor", "address", "actors", "actor_gpus"),
    "Rules": (
        *("max_drop", "min_clean", "min_refusals", "max_false_refusals", "min_stability", "max_recovery", "max_errors"),
        "baseline",
    ),
    "Output": ("out", "format", "json_", "markdown", "junit", "force", "progress"),
}
MANY = 10  # options from which on they are grouped
METAVARS = {  # the same option takes the same sort of value everywhere
    **dict.fromkeys(("baselines", "concurrency", "count", "episodes", "limit", "seed", "size", "slots", "start"), "N"),
    **dict.fromkeys(("actors", "actor_gpus", "max_exceptions", "max_repeats", "streams"), "N"),
    **dict.fromkeys(("level", "tasks", "task_seed", "trials", "severity", "context"), "N"),
    **dict.fromkeys(("max_tokens", "reply_tokens"), "TOKENS"),
    **dict.fromkeys(("deadline", "episode_timeout", "idle", "request_timeout", "timeout"), "SECONDS"),
    **dict.fromkeys(("max_cost", "price_in", "price_out"), "AMOUNT"),
    **dict.fromkeys(("share", "slips"), "SHARE"),
    "agent": "SPEC",
    "install": "REQUIREMENT",
    "notes_size": "CHARACTERS",
    "out": "DIR",
    "budget_minutes": "MINUTES",
    "plugin": "FILE",
    "temperature": "NUMBER",
}


def epilog(*examples: str, notes: str = "", exits: Mapping[int | str, str] | None = None) -> str:
    """The end of a command's help: examples, notes, and what its exit statuses mean."""
    known: dict[Any, str] = {**EVERYWHERE, **(exits or {})}
    ordered = sorted(known, key=lambda status: int(str(status).split()[0]))
    statuses = "; ".join(f"{status} {known[status]}" for status in ordered)
    parts = ["Examples:" if len(examples) > 1 else "Example:", *examples, *filter(None, [notes])]
    return "\n\n".join((*parts, f"Exit status: {statuses}."))


def example_of(command: Any) -> str:
    """The first command of a help's examples, for who left something out."""
    found = next(filter(is_example, (getattr(command, "epilog", None) or "").split("\n\n")), "")
    return f"Example: {found}" if found else ""


def is_example(paragraph: str) -> bool:
    """Whether a paragraph of an epilog is a command to type."""
    return paragraph.startswith(("crosswind ", "accelerate ", "inspect ")) or "=... crosswind " in paragraph


def takes_value(param: Any) -> bool:
    return not (getattr(param, "is_flag", False) or getattr(param, "count", False))


def metavar(param: Any) -> str:
    """What stands for the value of an option or argument."""
    if param.metavar:
        return str(param.metavar)
    choices = getattr(getattr(param, "type_descriptor", param), "choices", None)
    choices = choices or getattr(getattr(param, "type", None), "choices", None)
    return "|".join(map(str, choices)) if choices else METAVARS.get(param.name, param.name.strip("_").upper())


def default_text(param: Any) -> str:
    """The default of an option as text; empty where there is none to speak of."""
    shown, value = param.show_default, param.default
    if isinstance(shown, str):
        return shown
    if shown is False or value in (None, "", (), []) or isinstance(value, bool) or callable(value):
        return ""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value).removesuffix(".0")


def record(param: Any) -> tuple[str, str]:
    """An option or argument, and what it is for: range, default and whether it is required included."""
    if param.param_type_name == "argument":
        name = metavar(param)
    else:
        name = ", ".join(sorted(param.opts, key=len)) + (f" {metavar(param)}" if takes_value(param) else "")
        name += "".join(f" / {other}" for other in param.secondary_opts)
    low, high = getattr(param, "min", None), getattr(param, "max", None)
    notes = [f"{low} to {high}"] if low is not None and high is not None else []
    notes += [f"default: {text}"] if (text := default_text(param)) else []
    notes += ["required"] if param.required and param.param_type_name == "option" else []
    return name, (param.help or "") + (f" [{'; '.join(notes)}]" if notes else "")


def option_groups(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """The arguments and options of a command, by the title of their section."""
    params = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    options = [param for param in params if param.param_type_name == "option"]
    found: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", "Options", *OPTION_GROUPS)}
    found["Arguments"] = [record(param) for param in params if param not in options]
    for param in options:
        titles = (title for title, names in OPTION_GROUPS.items() if param.name in names and len(options) > MANY)
        found[next(titles, "Options")].append(record(param))
    return {title: rows for title, rows in found.items() if rows}


def command_groups(commands: Mapping[str, Any], ctx: Any) -> dict[str, list[str]]:
    """The names of commands, by the title of their section; those of a group have one section."""
    if ctx.parent is not None:
        return {"Commands": list(commands)} if commands else {}
    grouped = {title: [name for name in names if name in commands] for title, names in COMMAND_GROUPS.items()}
    others = [name for name in commands if not any(name in names for names in grouped.values())]
    return {**grouped, **({"Other commands": others} if others else {})}


def usage(command: Any, path: str) -> str:
    """The usage line of a command."""
    parts = []
    for param in (p for p in command.params if p.param_type_name == "argument"):
        name = metavar(param) + ("..." if param.nargs != 1 and "..." not in metavar(param) else "")
        parts.append(name if param.required or name.startswith("[") else f"[{name}]")
    return " ".join((path, "[OPTIONS]", *(parts if not hasattr(command, "commands") else ["COMMAND", "..."])))


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    first = " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
    return first.split(". ")[0].removesuffix(".") + "."


def wrapped(text: str, width: int, indent: str = "  ") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def example_lines(command: str, width: int) -> str:
    """A command to type; one that is too long goes on after a backslash, so that it can be copied."""
    lines = [""]
    for part in re.split(r" (?=-\w*[a-z]|--|\| )", command):  # an option stays with its value
        if lines[-1] and len(lines[-1]) + len(part) + 3 > width:
            lines.append(f"   {part}")
        else:
            lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)


def write_help(command: Any, ctx: Any, formatter: Any) -> None:
    """Write the help of a command or of a group of commands."""
    width = min(formatter.width, 80)
    formatter.write(wrapped(f"Usage: {usage(command, ctx.command_path)}", width, "") + "\n")
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        formatter.write("\n" + wrapped(paragraph, width) + "\n")
    for title, rows in option_groups(command, ctx).items():
        with formatter.section(title):
            formatter.write_dl(rows, col_max=26)
    commands = getattr(command, "commands", {})
    for title, names in command_groups(commands, ctx).items():
        with formatter.section(title):
            formatter.write_dl([(name, summary(commands[name])) for name in names])
    for paragraph in filter(None, (command.epilog or "").split("\n\n")):
        if is_example(paragraph):
            formatter.write(textwrap.indent(example_lines(paragraph, width - 2), "  ") + "\n")
        else:
            formatter.write("\n" + wrapped(paragraph, width, "") + "\n")


class HelpfulCommand(TyperCommand):
    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {usage(self, ctx.command_path)}"

    def format_help(self, ctx: Any, formatter: Any) -> None:
        write_help(self, ctx, formatter)


class HelpfulGroup(TyperGroup):
    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {usage(self, ctx.command_path)}"

    def format_help(self, ctx: Any, formatter: Any) -> None:
        write_help(self, ctx, formatter)


class App(Typer):
    """A set of commands whose help is written by this module."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"cls": HelpfulGroup, "rich_markup_mode": None, **given})

    def command(self, name: str | None = None, **given: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": HelpfulCommand, **given})
