"""The interface of a server as it was, and what is different now: snapshots of tools, and their comparison."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from crosswind.base.errors import BadFile
from crosswind.core.types import Model
from crosswind.mcp.schema import Json, record

SCHEMA = 1
KEPT = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")  # of a tool; the rest passes
ALIKE = 0.6  # of two descriptions, for tools with the same parameters to be one tool under two names

Sort = Literal["added", "removed", "renamed", "parameter", "result", "description", "annotations"]


class Drift(Model):
    """One thing that is different."""

    sort: Sort
    tool: str  # as it was called, or is called where it is new
    what: str

    @property
    def words(self) -> str:
        return f"{self.tool}: {self.what}"


class Snapshot(Model):
    """The tools of a server at some time."""

    schema_version: int = SCHEMA
    server: str  # how it was reached
    name: str = ""  # what it calls itself
    version: str = ""
    hash: str  # of the tools alone
    tools: tuple[Json, ...]


def snapshot(server: str, about: Mapping[str, Any], listed: Sequence[Json]) -> Snapshot:
    """A snapshot of a listing; the order in which tools are listed means nothing."""
    tools, who = _kept(listed), record(about.get("serverInfo"))
    return Snapshot(
        server=server,
        name=str(who.get("name", "")),
        version=str(who.get("version", "")),
        hash=fingerprint(tools),
        tools=tuple(tools),
    )


def fingerprint(listed: Sequence[Json]) -> str:
    """A hash that equal interfaces share."""
    return hashlib.sha256(json.dumps(_kept(listed), sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _kept(listed: Sequence[Json]) -> list[Json]:
    return sorted(({k: tool[k] for k in KEPT if k in tool} for tool in listed), key=lambda t: str(t["name"]))


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot from its file."""
    try:
        found = Snapshot.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); `crosswind learn` writes a snapshot") from None
    except ValueError:  # pydantic's is one
        raise BadFile(f"{path}: not a snapshot of a server; write one with `crosswind learn`") from None
    if found.schema_version > SCHEMA:
        raise BadFile(f"{path}: was written by a newer crosswind (schema {found.schema_version})")
    if any(not isinstance(tool.get("name"), str) for tool in found.tools) or found.hash != fingerprint(found.tools):
        raise BadFile(f"{path}: its tools do not have the hash it states; it was edited or cut short")
    return found


# ---------------------------------------------------------------- comparing


def drifted(was: Sequence[Json], now: Sequence[Json]) -> list[Drift]:
    """What is different between two listings, tools in the order of their names."""
    old, new = {t["name"]: t for t in was}, {t["name"]: t for t in now}
    gone, come = [n for n in old if n not in new], [n for n in new if n not in old]
    pairs = _paired(gone, come, lambda a, b: _likeness(old[a], new[b]))
    out = [Drift(sort="renamed", tool=a, what=f"is called {b} now") for a, b in pairs.items()]
    out += [Drift(sort="removed", tool=name, what="is gone") for name in gone if name not in pairs]
    out += [Drift(sort="added", tool=name, what="is new") for name in come if name not in pairs.values()]
    for name in old:
        if (other := new.get(pairs.get(name, name))) is not None:
            out += _changed(name, old[name], other)
    return sorted(out, key=lambda one: one.tool)


def _paired(gone: list[str], come: list[str], likeness: Callable[[str, str], float]) -> dict[str, str]:
    """Which of what is gone is what came: the likest first, each once."""
    ranked = sorted(((likeness(a, b), a, b) for a in gone for b in come), key=lambda one: (-one[0], one[1:]))
    out: dict[str, str] = {}
    for alike, a, b in ranked:
        if alike > 0 and a not in out and b not in out.values():
            out[a] = b
    return out


def _likeness(one: Json, other: Json) -> float:
    """How surely two tools are one under two names; 0: they are not."""
    docs = [str(tool.get("description", ""))[:2000] for tool in (one, other)]
    ratio = difflib.SequenceMatcher(None, docs[0], docs[1]).ratio() if any(docs) else 0.0
    left, right = _params(one), _params(other)
    if left == right and left:
        return 1 + ratio if ratio >= ALIKE or not any(docs) else 0.0
    return ratio if docs[0] == docs[1] and docs[0] and (not left or left.keys() & right.keys()) else 0.0


def _params(tool: Json) -> dict[str, tuple[Any, bool]]:
    """The parameters of a tool: schemas without what is said about them, and whether they are required."""
    schema = record(tool.get("inputSchema"))
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    return {name: (_bare(part), name in required) for name, part in record(schema.get("properties")).items()}


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _bare(v) for k, v in schema.items() if k not in ("title", "description")}
    return [_bare(part) for part in schema] if isinstance(schema, list) else schema


def _changed(name: str, was: Json, now: Json) -> list[Drift]:
    old, new = _params(was), _params(now)
    gone, come = [p for p in old if p not in new], [p for p in new if p not in old]
    pairs = _paired(gone, come, lambda a, b: float(old[a] == new[b]))
    whats = [f"the parameter {a} is called {b} now" for a, b in pairs.items()]
    whats += [f"the parameter {p} is gone" for p in gone if p not in pairs]
    for param in (p for p in come if p not in pairs.values()):
        whats.append(f"the {'required' if new[param][1] else 'optional'} parameter {param} is new")
    for param in (p for p in old if p in new):
        (schema, required), (other, needed) = old[param], new[param]
        if required is not needed:
            whats.append(f"the parameter {param} is {'required' if needed else 'optional'} now")
        if schema != other:
            whats.append(f"the parameter {param} was {_short(schema)} and is {_short(other)}")
    out = [Drift(sort="parameter", tool=name, what=what) for what in whats]
    if not out and _bare(was.get("inputSchema")) != _bare(now.get("inputSchema")):
        out.append(Drift(sort="parameter", tool=name, what="the schema of its arguments is another"))
    if _bare(was.get("outputSchema")) != _bare(now.get("outputSchema")):
        out.append(Drift(sort="result", tool=name, what="the schema of its results is another"))
    if _said(was) != _said(now):
        out.append(Drift(sort="description", tool=name, what="is described in other words"))
    if was.get("annotations") != now.get("annotations"):
        out.append(Drift(sort="annotations", tool=name, what="its annotations are others"))
    return out


def _said(tool: Json) -> str:
    """All that is said about a tool, its name apart."""
    texts: list[str] = []

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            texts.extend(str(part[key]) for key in ("title", "description") if isinstance(part.get(key), str))
            for value in part.values():
                collect(value)
        elif isinstance(part, list):
            for value in part:
                collect(value)

    collect({key: value for key, value in tool.items() if key != "annotations"})
    return "\n".join(texts)


def _short(schema: Any) -> str:
    text = json.dumps(schema, sort_keys=True)
    return text if len(text) <= 80 else text[:77] + "..."
