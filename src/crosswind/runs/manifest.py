"""The manifest of a run, `run.json`: what is run, how far it got, and whether two runs are the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from crosswind.base.errors import BadFile
from crosswind.base.files import read_whole
from crosswind.core.types import Ending, Model
from crosswind.episodes.record import SCHEMA
from crosswind.episodes.suite import Asked

MANIFEST, EPISODES = "run.json", "episodes.jsonl"
CODE_CHANGED = "the agent's code has changed"
SHOWN = 5  # differences that a message lists


def shard_of(text: str) -> tuple[int, int]:
    """`I/N` as two numbers. Raises `ValueError`."""
    found = re.fullmatch(r"0*([1-9]\d{0,5})/0*([1-9]\d{0,5})", text)
    if found is None or int(found[1]) > int(found[2]):
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise ValueError(f"is {shown!r}; expected I/N with I from 1 to N, such as 2/4")
    return int(found[1]), int(found[2])


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Manifest(Model):
    """What a run is, and how far it came."""

    schema_version: int = SCHEMA
    created: str  # times are UTC, as ISO 8601
    updated: str
    crosswind: str  # version
    judge: str  # version of the verifier
    python: str
    suite: dict[str, Any]  # the whole of it
    asked: Asked | None = None  # how to ask for the suite; None: in no command
    plugins: tuple[str, ...] = ()  # files that brought domains, kinds or agents
    conditions: tuple[str, ...]  # by name; `each_of` depends on what is installed
    seed: int
    trials: int = 1
    limit: int | None = None  # of episodes
    # I/N: the Ith of N parts, which `crosswind merge` puts together
    shard: str = ""
    agent: str  # the spec, without secrets
    settings: dict[str, Any] = Field(default_factory=dict)  # of the agent
    price: dict[str, Any] | None = None  # of a million tokens in and out, with the currency; None: not known
    ending: Ending = "words"  # how agents end an episode; runs of earlier versions knew words only
    episode_timeout: float | None = None
    max_repeats: int | None = None  # failures or equal results of a call that end an episode; None: no limit
    state: Literal["running", "finished", "stopped"] = "running"
    why: str = ""  # it stopped
    planned: int | None = None  # episodes in all; known when all were drawn
    never_met: dict[str, str] = Field(default_factory=dict)  # kinds asked for that apply to no task, with the reason

    @field_validator("shard")
    @classmethod
    def _is_a_shard(cls, shard: str) -> str:
        if shard:
            shard_of(shard)
        return shard

    @property
    def name(self) -> str:
        """The suite's, with its version."""
        name, version = str(self.suite.get("name", "")), self.suite.get("version")
        return f"{name}@{version}" if version else name

    @property
    def of_proxy(self) -> bool:
        """Is it a proxy's log, whose sessions end when their clients say so?"""
        return self.suite.get("name") == "proxy" and "server" in self.suite


# what makes two runs one: a folder holds episodes of one configuration only
SAME = (
    *("crosswind", "judge", "suite", "conditions", "seed", "trials", "shard"),
    *("agent", "settings", "price", "ending", "episode_timeout", "max_repeats"),
)


def shortfall(manifest: Manifest, there: int) -> str:
    """Why a run with this many episodes is not whole, in words; nothing where it is."""
    if manifest.state != "finished":
        why = manifest.why or ("it is still running, or was killed" if manifest.state == "running" else manifest.state)
        return f"the run is not finished ({why})"
    if manifest.planned is not None and there < manifest.planned:
        return (
            f"{manifest.planned - there} of its {manifest.planned} episodes are missing; a copy of a run needs the "
            f"whole folder, {EPISODES} and segments"
        )
    return ""


def load_manifest(folder: Path | str) -> Manifest:
    path = Path(folder) / MANIFEST
    try:
        text = read_whole(path)
    except OSError as error:
        hint = "give the folder of a run (the --out of `crosswind run`)"
        raise BadFile(f"{path}: cannot be read ({error.strerror}); {hint}") from None
    try:
        data = json.loads(text)
        if isinstance(data, dict):
            known_schema(data.get("schema_version"), str(path))
        return Manifest.model_validate_json(text)
    except (ValueError, RecursionError) as error:
        told = f"is damaged ({brief_error(error)}); restore it, or run again into another folder"
        raise BadFile(f"{path}: {told}") from None


def known_schema(version: object, where: str) -> None:
    if isinstance(version, int) and version > SCHEMA:
        raise BadFile(f"{where}: was written by a newer crosswind (schema {version}, known: {SCHEMA}); upgrade it")


def brief_error(error: Exception) -> str:
    """The first complaint, without the text complained of."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        return f"{place}: {said}" if place else said
    return str(error)


def differences(before: Manifest, after: Manifest) -> list[str]:
    """How two configurations differ, in words."""
    old, new = before.model_dump(mode="json", include=set(SAME)), after.model_dump(mode="json", include=set(SAME))
    told = [name for name in SAME if name != "price" or name in before.model_fields_set]  # earlier versions did not say
    return [line for name in told for line in _differ(name, old[name], new[name])]


def _differ(name: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _differ(f"{name}.{key}", old.get(key), new.get(key))
    elif old != new:
        code = name == "settings.code"
        yield CODE_CHANGED if code else f"{name} was {_cut(old)}, now {_cut(new)}"


def _cut(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
