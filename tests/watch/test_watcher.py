"""Watch real runs: what is detected and named, what is never read, and what never leaves."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.core.certify import certify
from crosswind.core.draw import Drawn
from crosswind.core.registry import domains, perturbations
from crosswind.core.release import evolve
from crosswind.core.types import ToolCall, ToolResult
from crosswind.episodes.play import play
from crosswind.episodes.schedule import Deck
from crosswind.models.spec import open_agent
from crosswind.watch import lexicon
from crosswind.watch.alarms import Alarm
from crosswind.watch.observed import ListedTool, ObservedCall, ObservedEpisode
from crosswind.watch.sources.opening import read_episodes
from crosswind.watch.sources.runs import episode_of
from crosswind.watch.watcher import Watcher

DOMAIN = "poi"


@cache
def played(kind: str = "", severity: int = 3, count: int = 60) -> tuple[str, ...]:
    """Lines of episodes, clean or under one release of a kind."""
    place = domains[DOMAIN]
    stack = evolve(place, {kind: severity}, 1, 0)[1].stack if kind else ()
    deck, out = Deck(place, 7, split="test"), []
    for n in range(500 * bool(kind), 10_000):
        task = deck.task(n)
        drawn = Drawn(place, task, stack, certify(place, task, stack, release=bool(kind)))
        trajectory = asyncio.run(play(drawn, open_agent("by_description").make(drawn), "by_description"))
        data = trajectory.model_dump(mode="json", exclude={"task"})
        out.append(json.dumps({**data, "key": f"{kind} {n}", "domain": DOMAIN, "query": trajectory.task.brief.query}))
        if len(out) == count:
            break
    return tuple(out)


def episodes(lines: Sequence[str]) -> list[ObservedEpisode]:
    return [episode_of(json.loads(line), "test") for line in lines]


def watched(reference: Sequence[ObservedEpisode], found: Sequence[ObservedEpisode], **options: Any) -> list[Alarm]:
    watcher = Watcher(reference, **options)
    return [*(alarm for one in found for alarm in watcher.add(one)), *watcher.end()]


def first(kind: str, severity: int = 3) -> Alarm:
    clean = episodes(played())
    return watched(clean[:50], [*clean[50:], *episodes(played(kind, severity, 14))])[0]


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        ("semantic_rename", 1),
        ("name_noise", 3),
        ("parameter_rename", 2),
        ("description_rewrite", 3),
        ("schema_noise", 3),
        ("distractor_tools", 3),
        ("redirection", 2),
        ("tool_split", 2),
        ("paged_results", 2),
        ("stale_read", 2),
        ("verification_code", 1),
        ("envelope", 2),
        ("envelope", 4),
        ("key_rename", 3),
        ("format_switch", 2),
        ("extra_fields", 3),
        ("locale_format", 4),
        ("rule_change", 1),
    ],
)
def test_a_release_is_detected_and_named(kind: str, severity: int) -> None:
    alarm = first(kind, severity)
    assert alarm.shift is not None
    assert (alarm.shift.kind, alarm.shift.axis) == (kind, perturbations[kind].axis)
    assert 8 <= alarm.since <= 12
    assert alarm.at < 20


@pytest.mark.parametrize(("kind", "field"), [("semantic_rename", "names"), ("parameter_rename", "params")])
def test_a_renaming_is_the_true_one(kind: str, field: str) -> None:
    shift = first(kind, 2).shift
    true = json.loads(played(kind, 2, 14)[0])["layers"][0]
    assert shift is not None
    assert shift.layer is not None
    assert shift.layer[field] == true[field]


def test_keys_that_calls_show_are_renamed_as_they_were() -> None:
    shift = first("key_rename", 3).shift
    true = json.loads(played("key_rename", 3, 14)[0])["layers"][0]["keys"]
    assert shift is not None
    assert shift.layer is not None
    assert shift.layer["keys"].items() <= true.items()


def test_a_fitted_wrapper_comes_off() -> None:
    shift = first("envelope", 4).shift
    assert shift is not None
    layer = perturbations["envelope"].model_validate(shift.layer, strict=False)
    for line in played("envelope", 4, 14)[:5]:
        for step in json.loads(line)["steps"]:
            if "content" in step["result"] and step["inner"]:
                seen = ToolResult(step["result"]["content"])
                opened = layer.decode_result(ToolCall(step["call"]["tool"]), seen, None)  # type: ignore[arg-type]
                assert opened.content == step["inner"][0]["result"]["content"]


def test_only_what_a_production_log_has_is_read() -> None:
    kept = ("key", "domain", "agent", "policy", "tools", "query", "final", "finish", "ended", "why", "usage")

    def stripped(line: str) -> str:
        data = json.loads(line)
        steps = [{k: step[k] for k in ("call", "result", "heard")} for step in data["steps"]]
        for step in steps:
            step["result"].get("error", {}).pop("retryable", None) if "error" in step["result"] else None
        return json.dumps({**{k: data[k] for k in kept if k in data}, "steps": steps})

    clean, after = played(), played("envelope", 4, 14)
    bare = watched(episodes([*map(stripped, clean[:50])]), episodes([*map(stripped, (*clean[50:], *after))]))
    whole = watched(episodes(clean[:50]), episodes((*clean[50:], *after)))
    assert [alarm.line for alarm in bare] == [alarm.line for alarm in whole]
    assert whole


def test_without_content_a_change_of_tools_is_still_named() -> None:
    def bare(one: ObservedEpisode) -> ObservedEpisode:
        calls = [ObservedCall(call.tool, error=call.error) for call in one.calls]
        return ObservedEpisode(id=one.id, listing=one.listing, calls=calls)

    clean, after = episodes(played()), episodes(played("name_noise", 3, 14))
    (alarm, *_) = watched([*map(bare, clean[:50])], [*map(bare, (*clean[50:], *after))])
    assert alarm.shift is not None
    assert alarm.shift.kind == "name_noise"


def test_a_reworded_description_costs_nothing() -> None:
    alarm = first("description_rewrite")
    assert not alarm.is_costly
    assert first("parameter_rename", 2).is_costly


def test_nothing_is_said_where_nothing_changes() -> None:
    clean = episodes(played("", 3, 140))
    assert watched(clean[:70], clean[70:]) == []


def test_secrets_are_never_copied() -> None:
    key = "sk-" + "a1B2c3D4" * 4
    tool = ListedTool("find", "Find.", {"q": {"type": "string"}})
    leaky = ListedTool(f"find_{key}", f"Find. Authorization: Bearer {key}", {"q": {"type": "string"}})

    def one(n: int, shown: ListedTool) -> ObservedEpisode:
        return ObservedEpisode(
            id=f"{n} {key}", listing=(shown,), calls=[ObservedCall(shown.name, {"q": key}, error=key)]
        )

    alarms = watched([one(n, tool) for n in range(30)], [one(n, leaky) for n in range(12)])
    assert alarms
    assert not any(key in alarm.line for alarm in alarms)


def test_snapshots_are_compared_as_they_are(tmp_path: Path) -> None:
    def write(name: str, tool: str) -> Path:
        path = tmp_path / name
        schema = {"type": "object", "properties": {"q": {"type": "string"}}}
        path.write_text(json.dumps({"tools": [{"name": tool, "description": "Find it.", "inputSchema": schema}]}))
        return path

    old, new = write("a.json", "find"), write("b.json", "locate")
    assert watched(list(read_episodes(old)), list(read_episodes(old))) == []
    (alarm,) = watched(list(read_episodes(old)), list(read_episodes(new)))
    assert alarm.shift is not None
    assert alarm.shift.layer == {"kind": "semantic_rename", "names": {"find": "locate"}}


def test_a_short_reference_is_refused() -> None:
    with pytest.raises(CrosswindError, match="at least 20"):
        Watcher([ObservedEpisode(id="x")] * 5)


def test_two_releases_are_two_alarms() -> None:
    clean = episodes(played("", 3, 100))
    second = episodes(played("envelope", 2, 40))
    first_ = episodes(played("name_noise", 3, 40))
    alarms = watched(clean[:90], [*clean[90:], *first_, *second])
    kinds = [alarm.shift.kind for alarm in alarms if alarm.shift]
    assert kinds[0] == "name_noise"
    assert "envelope" in kinds


def test_a_list_that_is_another_each_time_is_one_alarm() -> None:
    def one(n: int, name: str) -> ObservedEpisode:
        return ObservedEpisode(id=str(n), listing=(ListedTool(name, "Find."),), calls=[ObservedCall(name)])

    same = [one(n, "find") for n in range(40)]
    assert len(watched(same, [one(n, f"find_{n}") for n in range(30)])) == 1


def test_a_change_is_not_lost_while_another_is_looked_into() -> None:
    def one(n: int, name: str, *errors: str) -> ObservedEpisode:
        calls = [ObservedCall(name, error=error) for error in (*errors, "")]
        return ObservedEpisode(id=str(n), listing=(ListedTool(name, "Find."),), calls=calls)

    log = [
        *(one(n, "find", "down", "down") for n in range(8)),
        *(one(n, "locate", "down", "down") for n in range(8, 20)),
    ]
    kinds = [alarm.shift and alarm.shift.kind for alarm in watched([one(n, "find") for n in range(60)], log)]
    assert "semantic_rename" in kinds
    assert len(kinds) == 2


@pytest.mark.parametrize("strange", [10**400, float("inf"), float("nan"), -(10**400)])
def test_numbers_beyond_all_measure_are_values_like_others(strange: float) -> None:
    def one(n: int, price: float) -> ObservedEpisode:
        calls = [ObservedCall("find", args={}, result={"id": n, "price": price})]
        return ObservedEpisode(id=str(n), query="Find it.", calls=calls, final="Done.")

    usual = [one(n, 10.0 + n % 5) for n in range(60)]
    (alarm,) = watched(usual, [one(n, strange) for n in range(20)])
    json.loads(alarm.line, parse_constant=pytest.fail)
    assert watched([one(n, strange) for n in range(40)], usual) != []


def test_values_are_looked_for_in_time_that_grows_with_the_text() -> None:
    began = time.process_time()
    assert lexicon.VALUE.search("a-" * 200_000) is None
    assert time.process_time() - began < 1
    assert lexicon.VALUE.findall("order W-12, at 10:30 (-5 EUR) for x-2b") == ["W-12", "10:30", "-5", "x-2b"]
