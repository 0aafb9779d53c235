"""The command that plays a run again. Whatever suggests a command to play asks here.

A run knows how its episodes were asked for (`Manifest.asked`), so that the suggested command plays the same tasks. A
suite that was made in Python has no such command.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.base.errors import CrosswindError
from crosswind.core.registry import Registry, agents, domains, perturbations
from crosswind.episodes.stream import plans, with_changes
from crosswind.episodes.suite import Asked
from crosswind.models.remote import TOKENS

if TYPE_CHECKING:
    from crosswind.runs.manifest import Manifest

LONGEST = 300  # characters of a value: manifests may come from elsewhere


def plugin_files() -> tuple[str, ...]:
    """The files that brought domains, kinds or agents, as seen from here."""
    registries: tuple[Registry[Any], ...] = (domains, perturbations, agents)
    origins = dict.fromkeys(r.origin(name) for r in registries for name in r.names())
    files = [Path(origin) for origin in origins if origin]
    return tuple(os.path.relpath(file) for file in files if file.is_file())


def asked_for(asked: Asked, agent: str, *options: tuple[str, object], plugins: Iterable[str] = ()) -> str:
    """The command that runs an agent over a selection of a suite."""
    chosen = (
        ("domain", asked.domains),
        ("tasks", asked.tasks),
        ("only", asked.only),
        ("tier", asked.tier),
        ("axis", asked.axis),
    )
    others = [file for file in plugins if Path(file).resolve() != Path(asked.suite).resolve()]
    return _command("run", asked.suite, (*chosen, ("agent", agent), *options), others)


def repeat(manifest: Manifest, *, only: Sequence[str] = (), tasks: int = 0, out: Path | str = "") -> str:
    """The command that plays a run again, or its episodes of some kinds; empty where no command does."""
    if (asked := asked_of(manifest)) is None:
        return _stream(manifest)
    if only:
        asked = asked.model_copy(update={"only": tuple(only), "tier": (), "axis": ()})
    asked = asked.model_copy(update={"tasks": tasks or asked.tasks})
    options = (
        ("seed", manifest.seed),
        ("trials", 0 if manifest.trials == 1 else manifest.trials),
        ("limit", manifest.limit),
        ("shard", manifest.shard),
        ("episode-timeout", manifest.episode_timeout),
        ("max-repeats", manifest.max_repeats),
        *_of_agent(manifest),
        ("out", str(out)),
    )
    return asked_for(asked, manifest.agent, *options, plugins=manifest.plugins)


def asked_of(manifest: Manifest) -> Asked | None:
    """How the episodes were asked for; of a run of an earlier version it is known where it is a whole frozen suite."""
    if manifest.asked is not None or not manifest.suite.get("version") or "conditions" not in manifest.suite:
        return manifest.asked
    return Asked(suite=manifest.name)


def _of_agent(manifest: Manifest) -> list[tuple[str, object]]:
    """The options of the agent, where they are not the usual ones. Scripted agents have none."""
    said = manifest.settings
    remote = "base_url" in said
    options: list[tuple[str, object]] = [
        ("reply-tokens", None if remote and said.get("max_tokens") == TOKENS else said.get("max_tokens")),
        ("temperature", said.get("temperature") if remote else said.get("temperature") or None),
        ("protocol", None if said.get("protocol") == "auto" else said.get("protocol")),
        ("context", said.get("context") or None),
    ]
    if ":" in manifest.agent or manifest.ending != "words":
        options.append(("ending", manifest.ending))
    return options


def _stream(manifest: Manifest) -> str:
    """The command that plays streams again, where it is one of ours with changes that have an option."""
    plan = plans[manifest.suite["name"]] if manifest.suite.get("name") in plans else None
    if plan is None:
        return ""
    said = {key: value for key, value in manifest.suite.items() if key != "frozen"}
    usual = plan.model_dump(mode="json")
    changed = [name for name in ("episodes", "domains", "changelog") if name in usual and said.get(name) != usual[name]]
    changes: dict[str, object] = {name: tuple(v) if isinstance(v := said.get(name), list) else v for name in changed}
    try:
        if with_changes(plan, changes).model_dump(mode="json") != said or len(said.get("domains") or ()) > 1:
            return ""
    except CrosswindError:
        return ""
    notes = manifest.settings.get("notes")
    options = (
        ("episodes", changes.get("episodes")),
        ("domain", changes.get("domains")),
        ("changelog", changes.get("changelog")),
        ("frozen", manifest.suite.get("frozen") is True),
        ("memory", "notes" if notes else None),
        ("notes-size", notes),
        ("seed", manifest.seed),
        ("streams", manifest.trials),
        *(option for option in _of_agent(manifest) if option[0] == "ending"),
    )
    agent = manifest.agent.removesuffix(" with notes") if notes else manifest.agent
    return _command("stream", plan.name, (("agent", agent), *options), manifest.plugins)


def _command(verb: str, what: str, options: Iterable[tuple[str, object]], plugins: Iterable[str]) -> str:
    words = ["crosswind", verb, what]
    for name, value in options:
        if value is True:
            words.append(f"--{name}")
        elif isinstance(value, (tuple, list)) and value:
            words += [f"--{name}", ",".join(map(str, value))]
        elif isinstance(value, (str, int, float)) and (value or name in ("seed", "temperature")) and value is not False:
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    return " ".join(shlex.quote(word[:LONGEST]) for word in words) + with_plugins(plugins)


def with_plugins(files: Iterable[str]) -> str:
    """What a command needs at its end so that it knows the domains, kinds and agents of these files."""
    return "".join(f" --plugin {shlex.quote(file[:LONGEST])}" for file in files)
