"""The closed loop with scripted agents: it ends right, and it ends the same wherever it is killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosswind.adapt import loop as loops
from crosswind.adapt import registry as registries
from crosswind.adapt import ways
from crosswind.adapt.alarms import chosen_alarms, name_of
from crosswind.adapt.loop import AdaptDone, Loop, LoopStopped
from crosswind.adapt.plan import AdaptPlan, worlds
from crosswind.adapt.registry import AgentRegistry
from crosswind.base.errors import BadFile, CrosswindError, InfrastructureError
from crosswind.episodes.recipe import named
from crosswind.runs import runner
from crosswind.runs import store as stores

SHIFT = {"axis": "action", "kind": "name_noise", "severity": 3, "tools": ["find_places"], "confidence": 0.9}
NOISE = {
    "type": "alarm",
    "channel": "tools",
    "at": 40,
    "since": 31,
    "evidence": {"p": 0.001},
    "shift": SHIFT,
    "recipe": None,
    "predicted_loss": 0.5,
    "episodes": ["e31"],
}


def alarm_file(folder: Path, *alarms: dict[str, Any]) -> Path:
    path = folder / "alarms.jsonl"
    path.write_text('{"type": "progress", "episodes": 50}\n' + "".join(json.dumps(a) + "\n" for a in alarms))
    return path


def plan_for(folder: Path, registry: AgentRegistry, **changes: Any) -> AdaptPlan:
    alarms = chosen_alarms(alarm_file(folder, NOISE))
    current = loops.parent_of(folder / "out", registry)
    new, old = worlds(alarms, [], registry, current, [])
    usual: dict[str, Any] = {
        "agent": registry.spec(current),
        "parent": current.number,
        "way": "wrapper",
        "alarms": tuple(alarms),
        "new": new,
        "old": old,
        "domains": ("poi",),
        "parts": ("names", "arguments"),
        "tasks": 10,
        "dev_tasks": 3,
        "seed": 0,
        "max_forget": 0.4,
        "min_gain": 0.1,
        "max_refusal_drop": 0.5,
    }
    return AdaptPlan(**{**usual, **changes})


@pytest.fixture
def registry(tmp_path: Path) -> AgentRegistry:
    found = AgentRegistry(tmp_path / "registry")
    found.start("one_shot")
    return found


def ran(tmp_path: Path, registry: AgentRegistry, **changes: Any) -> AdaptDone:
    out = tmp_path / changes.pop("out", "out")
    return Loop(plan_for(tmp_path, registry, **changes), registry, out, tell=lambda text: None).run()


def test_a_shift_that_the_wrapper_takes_off_ends_in_a_promotion(tmp_path: Path, registry: AgentRegistry) -> None:
    done = ran(tmp_path, registry, parts=())
    assert done.outcome == "promoted"
    current = registry.current()
    assert current is not None
    assert current.number == done.version == 2
    assert current.spec.startswith("adaptive:only=")
    assert current.spec.endswith(":one_shot")
    assert (current.parent, current.verdict, current.way) == (1, "pass", "wrapper")
    assert name_of(current.recipes[0]) == "name_noise:3"
    assert current.scores["new/name_noise:3"].rate > current.parent_scores["new/name_noise:3"].rate
    # what was new is old for the next adaptation
    assert [name_of(one) for one in worlds([], [named(["typos"])], registry, current, [])[1]] == ["name_noise:3"]
    assert registry.rollback().number == 1


def test_a_candidate_that_does_not_help_is_refused_and_kept(tmp_path: Path, registry: AgentRegistry) -> None:
    done = ran(tmp_path, registry, parts=("retry",))
    assert (done.outcome, done.version) == ("refused", 2)
    assert registry.version(2).verdict == "fail"
    assert (registry.current() or registry.version(2)).number == 1


def test_a_candidate_that_forgets_the_old_world_is_refused(tmp_path: Path, registry: AgentRegistry) -> None:
    registry.add("idle", parent=1)
    other = ways.Candidate(spec="idle", why="for the test")
    out = tmp_path / "out"
    (out).mkdir()
    (out / "candidate.json").write_text(other.model_dump_json())
    assert ran(tmp_path, registry).outcome == "refused"
    assert (registry.current() or registry.version(2)).number == 1


def test_too_few_tasks_are_inconclusive_and_more_may_decide(tmp_path: Path, registry: AgentRegistry) -> None:
    assert ran(tmp_path, registry, tasks=2).outcome == "inconclusive"
    assert len(registry.versions()) == 1
    made = (tmp_path / "out" / "candidate.json").stat().st_mtime_ns
    assert ran(tmp_path, registry, tasks=10).outcome == "promoted"
    assert (tmp_path / "out" / "candidate.json").stat().st_mtime_ns == made
    with pytest.raises(CrosswindError, match="ended already"):
        ran(tmp_path, registry, tasks=12)


def test_a_harmless_shift_is_left_alone(tmp_path: Path, registry: AgentRegistry) -> None:
    done = ran(tmp_path, registry, new=(named(["description_rewrite:3"]),))
    assert done.outcome == "harmless"
    assert "costs the agent in use fewer than 10 points" in done.says
    assert not (tmp_path / "out" / "candidate.json").exists()


def test_another_version_that_does_better_is_switched_to(tmp_path: Path, registry: AgentRegistry) -> None:
    assert ran(tmp_path, registry, way="adapter", out="alone").outcome == "no candidate"
    registry.add("retrier", parent=1, reason="another")
    registry.add("by_description", parent=1, reason="another")
    done = ran(tmp_path, registry, way="adapter")
    current = registry.current()
    assert done.outcome == "promoted"
    assert current is not None
    assert (current.spec, current.way) == ("by_description", "adapter")


def test_notes_say_what_to_do_and_what_is_known(tmp_path: Path, registry: AgentRegistry) -> None:
    shift = {**NOISE["shift"], "layer": {"kind": "name_noise", "names": {"find_places": "findPlacesV2"}}}  # type: ignore[dict-item]
    alarms = chosen_alarms(alarm_file(tmp_path, {**NOISE, "shift": shift}))
    text = ways.notes_on(plan_for(tmp_path, registry, alarms=tuple(alarms)))
    assert "find_places is now findPlacesV2" in text
    assert "What to do:" in text


def test_held_out_kinds_are_not_trained_on_and_old_worlds_are_replayed() -> None:
    recipe = ways.training_recipe((named(["envelope:4"]),), (named(["semantic_rename:2"]),))
    weights = recipe.stack[0].weights()
    assert "envelope" not in weights
    assert weights["semantic_rename"] == pytest.approx(1 / 3)
    assert sum(weights.values()) == pytest.approx(1)
    assert recipe.stack[0].severity == (2, 4)


def test_an_agent_that_cannot_be_trained_is_told() -> None:
    with pytest.raises(CrosswindError, match="cannot be trained here"):
        ways.check_trainable("adaptive:only=names:openai:m@http://localhost:1/v1")


# ---------------------------------------------------------------- faults


class Killed(BaseException):
    """The process is gone."""


def killed_at(nth: int, before: bool, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Kill the loop at the nth of the writes that it makes, before or after the write."""
    count = 0

    def wrapped(write: Callable[..., Any]) -> Callable[..., Any]:
        def act(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == nth and before:
                raise Killed
            found = write(*args, **kwargs)
            if count == nth:
                raise Killed
            return found

        return act

    for module in (loops, registries, ways):
        monkeypatch.setattr(module, "replace_file", wrapped(module.replace_file))
    monkeypatch.setattr(stores.Store, "append", wrapped(stores.Store.append))
    return lambda: count


def essence(registry: AgentRegistry, done: AdaptDone) -> Any:
    """What must come out the same, without times and folders."""
    leave = {"created", "key"}
    return (
        done.model_dump(),
        [one.model_dump(exclude=leave) for one in registry.versions()],
        [one.model_dump(exclude=leave) for one in registry.events()],
    )


def test_a_loop_that_is_killed_anywhere_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh(name: str) -> tuple[Path, AgentRegistry]:
        folder = tmp_path / name
        folder.mkdir()
        found = AgentRegistry(folder / "registry")
        found.start("one_shot")
        return folder, found

    small = {"tasks": 5, "min_gain": 0.02, "max_forget": 0.6, "max_refusal_drop": 0.6}
    folder, registry = fresh("whole")
    with monkeypatch.context() as patch:
        writes = killed_at(0, False, patch)
        wanted = essence(registry, ran(folder, registry, **small))
        total = writes()
    assert wanted[0]["outcome"] == "promoted"
    assert total > 20
    ends = [(nth, True) for nth in range(total - 6, total + 1)]  # each stage after the last episode
    for nth, before in [(1, True), (3, False), (total // 2, True), *ends, (total, False)]:
        folder, registry = fresh(f"killed-{nth}-{before}")
        with monkeypatch.context() as patch:
            killed_at(nth, before, patch)
            with pytest.raises(Killed):
                ran(folder, registry, **small)
        assert essence(registry, ran(folder, registry, **small)) == wanted, (nth, before)


def test_a_provider_that_fails_stops_the_loop_and_promotes_nothing(
    tmp_path: Path, registry: AgentRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise InfrastructureError("the provider is gone")

    with monkeypatch.context() as patch:
        patch.setattr(runner, "run", gone)
        with pytest.raises(LoopStopped, match="provider is gone"):
            ran(tmp_path, registry)
    assert [e.sort for e in registry.events()] == ["start"]
    assert ran(tmp_path, registry).outcome == "promoted"


def test_somebody_elses_promotion_meanwhile_is_not_overrun(tmp_path: Path, registry: AgentRegistry) -> None:
    loop = Loop(plan_for(tmp_path, registry), registry, tmp_path / "out", tell=lambda text: None)
    registry.promote(registry.add("retrier", parent=1, verdict="pass").number)
    with pytest.raises(CrosswindError, match="compared with version 1, and version 2 is in use now"):
        loop.run()
    assert (registry.current() or registry.version(1)).number == 2


def test_other_options_in_the_same_folder_and_damaged_stages_are_told(tmp_path: Path, registry: AgentRegistry) -> None:
    ran(tmp_path, registry)
    with pytest.raises(CrosswindError, match="another seed; give the same options"):
        ran(tmp_path, registry, seed=1, parent=1, agent="one_shot")
    (tmp_path / "out" / "measured-10" / "gate.json").write_text("{")
    with pytest.raises(BadFile, match=r"gate\.json: damaged; delete it"):
        ran(tmp_path, registry, parent=1, agent="one_shot", old=())


# ---------------------------------------------------------------- alarms


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not JSON"),
        ('{"type": "alarm", "at": 3}', "channel"),
        ('{"type": "summary"}', "no alarm in it"),
        (json.dumps({**NOISE, "shift": {**SHIFT, "severity": 9}}), "severity"),
    ],
)
def test_bad_alarms_are_told_with_their_line(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "alarms.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadFile, match=told):
        chosen_alarms(path)


def test_alarms_without_a_shift_or_with_an_unknown_kind_are_told(tmp_path: Path, registry: AgentRegistry) -> None:
    current = registry.version(1)
    nameless = chosen_alarms(alarm_file(tmp_path, {**NOISE, "shift": None}))
    with pytest.raises(CrosswindError, match="nothing to reproduce"):
        worlds(nameless, [], registry, current, [])
    unknown = chosen_alarms(alarm_file(tmp_path, {**NOISE, "shift": {**SHIFT, "kind": "name_nois"}}))
    with pytest.raises(CrosswindError, match="did you mean name_noise"):
        worlds(unknown, [], registry, current, [])
    given = {"name": "watch-name_noise", "summary": "", "stack": [{"kind": "name_noise", "severity": 2}]}
    found = chosen_alarms(alarm_file(tmp_path, NOISE, {**NOISE, "recipe": given}), [2])
    assert [name_of(one) for one in worlds(found, [], registry, current, [])[0]] == ["name_noise:2"]
