"""A first draft of a file of tasks, from a server's tools; what only a person can know is marked in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from crosswind.mcp.running import Server, whole_interface
from crosswind.mcp.schema import Json
from crosswind.mcp.snapshots import Snapshot, snapshot
from crosswind.mcp.tasks import BLANK
from crosswind.mcp.tools import Tool, tools_of

LINE = 100  # characters of a description that a comment repeats


def look(server: Server, base: Path) -> tuple[Snapshot, Mapping[str, Any]]:
    """The interface of a server, and what it says of itself. Raises `WireError` where it fails."""
    remote, prompts, resources = whole_interface(server, base)
    return snapshot(server.words, remote.about, remote.raw, prompts, resources), remote.about


def blank(what: str) -> str:
    """A mark for something to be written."""
    return f"{BLANK}: {what}>"


def draft(found: Snapshot, server: Server, domain: str, taken: str) -> str:
    """The text of a file with one task for each tool; `taken` is where the snapshot lies."""
    tools = tools_of(found.tools)
    who = " ".join(filter(None, (found.name, found.version))) or found.server
    head = [
        f"# Tasks for {_line(who)}: a draft, one task for each of its {len(tools)} tools.",
        "# docs/mcp_tasks.md explains the keys.",
        f"# Replace every {BLANK} ...>; `crosswind run` refuses the file until none is left.",
        "# Delete tasks that make no sense, and combine tools in one task as users would.",
        "#",
        "#   crosswind run THIS_FILE --agent oracle                   # does every gold solve its task?",
        "#   crosswind run THIS_FILE --agent openai:MODEL@URL",
        "",
    ]
    reached = server.model_dump(mode="json", include={"command", "url", "env", "folder"}, exclude_defaults=True)
    top: Json = {"domain": domain, "server": reached, "snapshot": taken}
    text = "\n".join(head) + _yaml(top)
    text += "tasks:\n"
    hinted = any(not tool.spec.writes for tool in tools.values())  # otherwise a look-up would count as a write
    for name, tool in tools.items():
        doc = _line(str(tool.raw.get("description") or ""))
        text += f"  # {doc}\n" if doc else ""
        text += "".join(f"  {line}\n" for line in _yaml([_task(name, tool, hinted)]).splitlines())
    return text


def _task(name: str, tool: Tool, hinted: bool) -> Json:
    """A task that calls one tool."""
    args = {
        param: blank(_about(part.type, part.doc, part.enum))
        for param, part in tool.spec.params.items()
        if part.required
    }
    conditions: Json = {"tool": name}
    if args:
        conditions["args"] = dict(args)
    if tool.spec.writes:
        conditions["times"] = 1
    task: Json = {
        "name": re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:64],
        "query": blank(f"a request that {name} fulfils, in a user's words"),
        "answer": [blank("a text that a correct answer contains; number: and matches: work too")],
        "calls": [conditions],
    }
    if tool.spec.writes and hinted:
        task["nothing_else"] = True
    gold: Json = {"call": name, **({"args": args} if args else {})}
    task |= {"gold": [gold], "says": blank("the correct answer; with take: {x: path} in a call, $x here")}
    return task


def _about(kind: str, doc: str, enum: Sequence[str]) -> str:
    if enum:
        return f"one of {', '.join(enum[:8])}"
    return f"{kind}{', ' + _line(doc) if doc else ''}"


def _line(text: str) -> str:
    """The beginning of a text, on one line, without what could end a mark or a comment."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).replace("<", "(").replace(">", ")").split())
    return flat if len(flat) <= LINE else flat[: LINE - 3] + "..."


def _yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000)
