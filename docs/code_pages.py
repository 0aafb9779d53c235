"""The pages of the reference about commands, Python names, suites and files; make_reference.py writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer.main
from typer.core import TyperGroup

import crosswind
from crosswind.cli import catalog, help
from crosswind.cli.app import app
from crosswind.cli.config import Budgets, Config, GateRules
from crosswind.core.types import Model
from crosswind.episodes.recipe import Choice, Recipe
from crosswind.episodes.record import Record, Usage
from crosswind.episodes.suite import Condition, Suite

SECTIONS = {  # where public names live, and under which title
    "api": "Evaluate, play and train",
    "models": "Connect agents",
    "episodes": "Suites, recipes and records",
    "core": "Worlds, tasks and perturbations",
    "metrics": "Diagnose",
    "study": "Run studies",
    "train": "Training data",
    "text": "Judge answers",
    "base": "Errors",
}
FORMATS: dict[str, tuple[type[Model], ...]] = {
    "`episodes.jsonl`, one line per episode": (Record, Usage),
    "`crosswind.yaml`": (Config, Budgets, GateRules),
    "Suites (YAML)": (Suite, Condition),
    "Recipes (YAML)": (Recipe, Choice),
}


def table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([c.replace("|", "\\|").replace("\n", " ") for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(title: str, about: str, note: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", note, " ".join(about.split()), *parts)) + "\n"


# ---------------------------------------------------------------- commands


def commands() -> Iterator[tuple[Any, Any]]:
    """Every command and its context: a group comes before its commands."""
    root = typer.main.get_command(app)
    top = root.make_context("crosswind", [], resilient_parsing=True)
    assert isinstance(root, TyperGroup)
    for name in (name for names in help.command_groups(root.commands, top).values() for name in names):
        command = root.get_command(top, name)
        assert command is not None
        ctx = command.context_class(command, info_name=name, parent=top)
        yield command, ctx
        for inner, each in getattr(command, "commands", {}).items():
            yield each, each.context_class(each, info_name=inner, parent=ctx)


def command_section(command: Any, ctx: Any) -> str:
    parts = [f"## {ctx.command_path}", inspect.cleandoc(command.help or "").replace("<", "&lt;")]
    parts.append(f"```text\n{help.usage(command, ctx.command_path)}\n```")
    for title, rows in help.option_groups(command, ctx).items():
        shown = [[f"`{name}`", text.replace("<", "&lt;")] for name, text in rows if not name.startswith("--help")]
        if shown:
            parts.append(table((title.lower(), ""), shown))
    epilog = (command.epilog or "").split("\n\n")
    examples = [help.example_lines(text, 100) for text in epilog if help.is_example(text)]
    if examples:
        parts.append("\n".join(("```bash", *examples, "```")))
    return "\n\n".join((*parts, *(text for text in epilog if not text.endswith(":") and not help.is_example(text))))


def cli_page(note: str) -> str:
    about = """For anyone who uses the command line: every command with its options, examples and exit statuses, as
    `crosswind COMMAND --help` prints them. `--plugin` works before and after the name of a command."""
    return page("Command line", about, note, *(command_section(*each) for each in commands()))


# ---------------------------------------------------------------- Python


def annotation(value: Any) -> str:
    return value if isinstance(value, str) else inspect.formatannotation(value)


def signature(name: str, thing: Any) -> str:
    """How a function is called, one parameter a line where it is long."""
    found = inspect.signature(thing)
    plain = found.replace(
        parameters=[p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    typed = [
        re.sub(r"'", '"', str(bare)).partition("=")[0]
        + (f": {annotation(full.annotation)}" if full.annotation is not full.empty else "")
        + (f" = {full.default!r}" if full.default is not full.empty else "")
        for bare, full in zip(plain.parameters.values(), found.parameters.values(), strict=True)
    ]
    star = next((i for i, p in enumerate(found.parameters.values()) if p.kind is p.KEYWORD_ONLY), None)
    if star is not None and not any(p.kind is p.VAR_POSITIONAL for p in found.parameters.values()):
        typed.insert(star, "*")
    back = f" -> {annotation(found.return_annotation)}" if found.return_annotation is not found.empty else ""
    flat = f"{name}({', '.join(typed)}){back}"
    return flat if len(flat) <= 100 else f"{name}(\n" + "".join(f"    {part},\n" for part in typed) + f"){back}"


def members(cls: type) -> list[list[str]]:
    """The public attributes and methods that a class defines, with the first line of their docstrings.

    Those of a base that has no section of its own count as the class's.
    """
    rows = [[f"`{name}: {annotation(kind)}`", comments(cls).get(name, "")] for name, kind in own_fields(cls).items()]
    found = dict(vars(cls))
    for base in cls.__mro__[1:]:
        if base.__module__.startswith("crosswind.") and base.__name__ not in crosswind.__all__ and base is not Model:
            found |= {name: value for name, value in vars(base).items() if name not in found}
    for name, value in found.items():
        inner = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        doc = (inspect.getdoc(inner) or "").split("\n\n")[0].replace("\n", " ") if value is not None else ""
        if not name.startswith(("_", "model_")) and inspect.isfunction(inner):
            rows.append([f"`{name}({', '.join(p for p in inspect.signature(inner).parameters if p != 'self')})`", doc])
        elif not name.startswith("_") and isinstance(value, property):
            rows.append([f"`{name}`", doc])
    return rows


def own_fields(cls: type) -> dict[str, Any]:
    found = inspect.get_annotations(cls)
    return {name: kind for name, kind in found.items() if not name.startswith("_") and "ClassVar" not in str(kind)}


def comments(cls: type) -> dict[str, str]:
    """What the comments behind the fields of a class say."""
    return dict(re.findall(r"^    (\w+): .*?  # (.*)$", inspect.getsource(cls), re.MULTILINE))


def fenced(doc: str) -> str:
    """A docstring with its examples as blocks of code."""
    shown = [f"```pycon\n{text}\n```" if text.startswith(">>> ") else text for text in doc.split("\n\n")]
    return "\n\n".join(shown).replace("<BLANKLINE>", "")


def python_section(name: str) -> str:
    thing = getattr(crosswind, name)
    parts = [f"### `{name}`"]
    if inspect.isfunction(thing):
        parts.append(f"```python\n{signature(name, thing)}\n```")
    doc = inspect.getdoc(thing) if inspect.isclass(thing) or inspect.isfunction(thing) else None
    if doc and not doc.startswith(f"{name}("):
        parts.append(fenced(doc))
    if isinstance(thing, tuple):
        parts.append(f"`{thing!r}`")
    elif not (inspect.isclass(thing) or inspect.isfunction(thing)):
        parts.append(f"A registry of {name}: `{name}[NAME]`." if hasattr(thing, "names") else f"A type: `{thing}`.")
    if inspect.isclass(thing) and (rows := members(thing)):
        parts.append(table(("member", ""), rows))
    return "\n\n".join(parts)


def python_page(note: str) -> str:
    about = """For anyone who uses crosswind from Python: every public name of `import crosswind`, with its signature
    and members. [python.md](../python.md) shows them in use. Modules that are not listed are internal."""
    places = {name: module for module, names in crosswind._PLACES.items() for name in names.split()}
    parts = []
    for room, title in SECTIONS.items():
        names = [name for name, module in places.items() if module.split(".")[0] == room]
        parts += [f"## {title}", *map(python_section, names)]
    assert {module.split(".")[0] for module in places.values()} <= set(SECTIONS)
    return page("Python", about, note, *parts)


# ---------------------------------------------------------------- suites and files


def suite_page(note: str) -> str:
    about = """For anyone who chooses what to run: the suites and recipes that the package brings.
    [suites.md](../suites.md) explains how to write your own. *Episodes* counts the default number of tasks, where every
    kind applies."""
    rows = catalog.everything()
    suites = [
        [f"`{s['name']}`", ", ".join(s["domains"]), str(len(s["kinds"])), str(s["episodes"]), s["summary"]]
        for s in rows["suites"]
    ]
    recipes = [[f"`{r['name']}`", str(len(r["kinds"])), r["summary"]] for r in rows["recipes"]]
    return page(
        *("Suites", about, note),
        table(("suite", "domains", "kinds", "episodes", "what for"), suites),
        "## Recipes",
        table(("recipe", "kinds", "stacks"), recipes),
    )


def default_of(cls: type[Model], name: str) -> str:
    field = cls.model_fields[name]
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if isinstance(value, Model) else f"`{value!r}`"


def format_page(note: str) -> str:
    about = """For anyone who reads or writes files of crosswind: every field, its type and its default. Unknown fields
    are rejected."""
    parts = []
    for title, models in FORMATS.items():
        parts.append(f"## {title}")
        for cls in models:
            notes = comments(cls)
            rows = [[f"`{f}`", f"`{annotation(kind)}`", default_of(cls, f), notes.get(f, "")] for f, kind in
                    own_fields(cls).items()]  # fmt: skip
            parts += [f"### {cls.__name__}", inspect.getdoc(cls) or "", table(("field", "type", "default", ""), rows)]
    return page("File formats", about, note, *parts)


def pages(note: str) -> dict[str, str]:
    """The pages by the names of their files."""
    return {
        "cli.md": cli_page(note),
        "python.md": python_page(note),
        "suites.md": suite_page(note),
        "formats.md": format_page(note),
    }
