"""The interface of a server at some time, in a file, with what changed since the file was first written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile
from crosswind.base.files import LARGEST, read_whole
from crosswind.core.types import Model
from crosswind.mcp.drift import Drift, drifted, instructed, listed_besides
from crosswind.mcp.schema import Json, record

SCHEMA = 2
KEPT = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")  # of a tool; the rest passes
OF_PROMPTS = ("name", "title", "description", "arguments")
OF_RESOURCES = ("uri", "uriTemplate", "name", "title", "description", "mimeType")


class Renewal(Model):
    """When a snapshot was taken anew, and what was different."""

    date: str
    version: str  # of the server, as it says
    hash: str  # of the tools then
    drift: tuple[Drift, ...]


class Snapshot(Model):
    """The interface of a server at some time."""

    schema_version: int = SCHEMA
    server: str  # how it was reached
    name: str = ""  # what it calls itself
    version: str = ""
    hash: str  # of the tools alone
    tools: tuple[Json, ...]
    prompts: tuple[Json, ...] | None = None  # these three: None in snapshots of an older crosswind
    resources: tuple[Json, ...] | None = None
    instructions: str | None = None
    history: tuple[Renewal, ...] = ()


def snapshot(
    server: str,
    about: Mapping[str, Any],
    listed: Sequence[Json],
    prompts: Sequence[Json] = (),
    resources: Sequence[Json] = (),
) -> Snapshot:
    """A snapshot of listings; the order in which things are listed means nothing."""
    tools, who = _kept(listed), record(about.get("serverInfo"))
    return Snapshot(
        server=server,
        name=str(who.get("name", "")),
        version=str(who.get("version", "")),
        hash=fingerprint(tools),
        tools=tuple(tools),
        prompts=tuple(_kept(prompts, OF_PROMPTS)),
        resources=tuple(_kept(resources, OF_RESOURCES)),
        instructions=str(about.get("instructions") or ""),
    )


def fingerprint(listed: Sequence[Json]) -> str:
    """A hash that equal interfaces share."""
    return hashlib.sha256(json.dumps(_kept(listed), sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _kept(listed: Sequence[Json], keys: Sequence[str] = KEPT) -> list[Json]:
    kept = ({key: one[key] for key in keys if key in one} for one in listed if isinstance(one, dict))
    return sorted(kept, key=lambda one: str(one.get("uri", one.get("uriTemplate", one.get("name", "")))))


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot from its file."""
    try:
        found = Snapshot.model_validate_json(read_whole(path, 4 * LARGEST, links=True))
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); `crosswind learn` writes a snapshot") from None
    except ValueError:  # pydantic's is one
        raise BadFile(f"{path}: not a snapshot of a server; write one with `crosswind learn`") from None
    if found.schema_version > SCHEMA:
        raise BadFile(f"{path}: was written by a newer crosswind (schema {found.schema_version})")
    if any(not isinstance(tool.get("name"), str) for tool in found.tools) or found.hash != fingerprint(found.tools):
        raise BadFile(f"{path}: its tools do not have the hash it states; it was edited or cut short")
    return found


def compared(was: Snapshot, now: Snapshot) -> list[Drift]:
    """What is different between two snapshots, as far as both know it."""
    out = drifted(was.tools, now.tools)
    if was.prompts is not None and now.prompts is not None:
        out += listed_besides("prompt", was.prompts, now.prompts)
    if was.resources is not None and now.resources is not None:
        out += listed_besides("resource", was.resources, now.resources)
    if was.instructions is not None and now.instructions is not None:
        out += instructed(was.instructions, now.instructions)
    return out


def updated(was: Snapshot, now: Snapshot, changes: Sequence[Drift], date: str) -> Snapshot:
    """The new snapshot with the history of the old one, and what changed from there."""
    step = Renewal(date=date, version=now.version, hash=now.hash, drift=tuple(changes))
    return now.model_copy(update={"history": (*was.history, *([step] if changes else []))})
