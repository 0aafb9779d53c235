"""Suites with a version are frozen: what agents meet in them is what the version stands for."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from crosswind.base.errors import UnknownName
from crosswind.core.registry import domains
from crosswind.domains.poi import Poi
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import Suite, load_suite, suites

FROZEN = Path(__file__).with_name("frozen_suites.json")
OURS = [name for name in suites.names() if not suites[name].domains or "poi" in suites[name].domains]
EPISODES = 600  # of the larger suites: by then every condition came


def met(suite: Suite) -> str:
    """A digest of what agents meet in the episodes of a suite: request, policy, tools, and answers on the gold way."""
    found = hashlib.sha256(suite.model_dump_json(exclude={"summary", "edition"}).encode())
    for episode in Schedule(suite, 0, limit=EPISODES):
        if episode is not None:
            gold, task = episode.drawn.certificate.gold, episode.drawn.certificate.task
            tools = [tool.function() for tool in gold.session.tools()]
            seen = [episode.key, task.brief.query, task.brief.policy, tools, [asdict(step) for step in gold.steps]]
            found.update(json.dumps(seen, sort_keys=True, default=str).encode())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", OURS)
def test_what_agents_meet_in_a_version_never_changes(name: str) -> None:
    suite, frozen = suites[name], json.loads(FROZEN.read_text())
    assert suite.version, f"{name} has no version"
    assert frozen.get(suite.label) == (now := met(suite)), (
        f"the episodes of {suite.label} changed. If that is meant, raise its version in builtin_suites.py and add "
        f'"{name}@{suite.version + 1}" with the digest that this test then shows to {FROZEN.name}; now {now}'
    )


def test_a_version_in_a_name_is_held_to() -> None:
    assert load_suite("tiers@2") is load_suite("tiers")
    with pytest.raises(UnknownName, match="no suite 'tiers@7': this release of crosswind has tiers@2"):
        load_suite("tiers@7")
    assert load_suite("tiers").narrowed(tasks=1).label == "tiers"


def test_a_plugin_changes_no_frozen_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = suites["heldout"]
    before = suite.where(suite.all_conditions()[0])
    monkeypatch.setitem(domains._things, "outside", Poi())
    monkeypatch.setitem(domains._origins, "outside", "outside.py")
    assert suite.where(suite.all_conditions()[0]) == before
    assert "outside" in suite.narrowed(tasks=2).where(suite.all_conditions()[0])
