"""What every domain offers: enough tools and families, levels that hold, splits that share nothing."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from crosswind.base.errors import BadFile
from crosswind.core.certify import certify
from crosswind.core.domain import Domain, Family
from crosswind.core.laws import match, twins
from crosswind.core.oracle import walk
from crosswind.core.registry import domains
from crosswind.core.types import SPLITS, Split, Task, ToolCall
from crosswind.domains import graphs
from crosswind.domains.poi import Poi
from crosswind.domains.requests import Requests


def graph_of(family: Family) -> str:
    """The shared graph that a family is made of, or nothing where it stands for itself."""
    return family.graph.__name__ if isinstance(family, graphs.Graph) and family.graph else ""


CALLS = {1: (2, 3), 2: (4, 6), 3: (7, 12)}
NAMES = domains.names()


@pytest.fixture(params=NAMES)
def domain(request: pytest.FixtureRequest) -> Domain:
    return domains[request.param]


def test_enough_tools_and_families(domain: Domain) -> None:
    specs = domain.world_class.specs
    assert len(specs) >= 12
    assert sum(s.writes for s in specs) >= 4
    families = domain.families.values()
    assert len(families) >= 10
    assert {f.level for f in families} == {1, 2, 3}
    assert sum(f.refusal for f in families) >= 3
    assert {f.level for f in families if f.refusal} == {1, 2, 3}
    assert sum(bool(domain.task(f.name, 0).withheld) for f in families) >= 2
    assert all((type(f).__doc__ or "").strip() for f in families)


def test_gold_calls_lie_in_the_range_of_their_level(domain: Domain) -> None:
    for family in domain.families.values():
        low, high = CALLS[family.level]
        for seed in range(25):
            certificate = certify(domain, domain.task(family.name, seed))
            assert low <= len(certificate.gold.calls) <= high, (family.name, seed)


def test_depth_of_dependencies(domain: Domain) -> None:
    """Some gold has a chain of calls in which each needs something that only the one before showed."""

    def depth(task: Task) -> int:
        asked = set(map(str, task.wanted.values()))
        source: dict[str, int] = dict.fromkeys(asked, 0)  # value -> depth of the call that first showed it
        deepest = 0
        for step in walk(domain, task).calls:
            level = 1 + max((source.get(str(v), 0) for v in step.call.args.values()), default=0)
            deepest = max(deepest, level)
            for value in re.findall(r"[\w-]+", json.dumps(step.result.content)):
                source.setdefault(value, level)
        return deepest

    assert max(depth(domain.task(name, 1)) for name in domain.families) >= 4


def test_the_tool_list_is_short(domain: Domain) -> None:
    """About 1,000 tokens of JSON; four characters make a token of such text, and some docs are read as well."""
    text = json.dumps([t.function() for t in domain.world_class.specs], separators=(",", ":"))
    assert len(text) <= 4200
    for function in json.loads(text):
        assert function["type"] == "function"
        assert set(function["function"]) == {"name", "description", "parameters"}
        assert function["function"]["parameters"]["type"] == "object"
        assert 10 <= len(function["function"]["description"]) <= 120


def test_descriptions_alone_tell_the_tools_apart(domain: Domain) -> None:
    shown = domain.world_class.specs
    assert all(match(spec, shown) == spec.name for spec in shown)


def masked(domain: Domain, task: Task) -> str:
    """The query without its values; kinds of things stay, since another kind is another request."""
    kinds = {k for spec in domain.world_class.specs for p in spec.params.values() for k in p.enum}
    text = task.brief.query
    for value in task.wanted.values():
        if value not in kinds:
            text = text.replace(str(value), "#")
    return re.sub(r"\d+", "#", text)


def test_ten_thousand_tasks_are_distinct_and_two_hundred_remain_after_masking(domain: Domain) -> None:
    seen, masks = set(), set()
    names = list(domain.families)
    for n in range(10_200):
        task = domain.task(names[n % len(names)], n // len(names))
        seen.add((task.family, task.brief.query, tuple(task.withheld.items())))
        if n < 1500:
            masks.add(masked(domain, task))
    assert len(seen) >= 10_000
    assert len(masks) >= 200


def entities(domain: Domain, split: Split, seeds: range) -> set[str]:
    """Names and ids that tasks of a split state and show."""
    out: set[str] = set()
    reads = {spec.name for spec in domain.world_class.specs if not spec.writes}  # what writes make goes by its content
    for seed, name in itertools.product(seeds, domain.families):
        task = domain.task(name, seed, split=split)
        shown = [json.dumps(s.result.content) for s in walk(domain, task).calls if s.call.tool in reads]
        text = " ".join((task.brief.query, *shown))
        out |= set(re.findall(r"\b[A-Z]{1,3}\d{5,}\b", text))
        for namer in domain.namers.values():
            out |= set(namer.find(text))
    return out


def test_splits_share_no_entity(domain: Domain) -> None:
    found = {split: entities(domain, split, range(6)) for split in SPLITS}
    for one, two in itertools.combinations(SPLITS, 2):
        assert len(found[one]) > 500
        assert not found[one] & found[two]


def test_worlds_hold_thousands_of_entities(domain: Domain) -> None:
    """One look-up shows a small part of them."""
    task = domain.task(next(iter(domain.families)), 0)
    assert task.size >= 2000
    rows = walk(domain, task).calls[0].result.content
    assert len(rows) < 30


@pytest.mark.parametrize("size", [200, 1000, 100_000])
def test_worlds_of_any_size_work(domain: Domain, size: int) -> None:
    for name in domain.families:
        certify(domain, domain.task(name, 5, size=size))


def test_a_family_reads_the_same_before_and_after_a_write(domain: Domain) -> None:
    specs = {s.name: s for s in domain.world_class.specs}

    def again(task: Task) -> bool:
        calls = [(s.call, s.result) for s in walk(domain, task).calls]
        for i, (call, result) in enumerate(calls):
            for j in range(i + 2, len(calls)):
                written = any(specs[c.tool].writes and specs[c.tool].lasting for c, _ in calls[i:j])
                if calls[j][0] == call and calls[j][1] != result and written:
                    return True
        return False

    assert any(again(domain.task(name, 2)) for name in domain.families)


def test_families_mirror_each_other() -> None:
    """Every graph that families of one domain have in common with another, all domains have."""
    found = {name: {graph_of(f) for f in domains[name].families.values()} - {""} for name in NAMES}
    assert len(found["poi"]) == len(domains["poi"].families) == 18
    assert all(graphs == found["poi"] for graphs in found.values())


def test_new_domains_have_families_of_their_own() -> None:
    for name in set(NAMES) - {"poi", "medical"}:
        assert sum(not graph_of(f) for f in domains[name].families.values()) >= 3


def test_twins_lead_another_way(domain: Domain) -> None:
    found = [len(twins(domain, domain.task(f.name, 3), 2)) for f in domain.families.values() if not f.refusal]
    assert sum(n > 0 for n in found) >= len(found) - 1


def with_requests(change: Callable[[dict[str, Any]], object]) -> str:
    """What is said of the requests of `poi` after a change."""
    kept = Poi.requests
    data = kept.model_dump(mode="json", exclude={"where"}, exclude_unset=True)
    change(data)
    with pytest.raises(BadFile) as caught:
        type("Changed", (Poi,), {"requests": Requests.of(data, kept.where)})()
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d.pop("details"), "details: this key is missing"),
        (lambda d: d.update(policy=7), "policy: got 7; expected text"),
        (lambda d: d["details"].pop("need"), "details.need: is missing"),
        (lambda d: d["details"]["need"].pop("vague"), "details.need.vague: this key is missing"),
        (lambda d: d["details"]["need"].update(words=[]), "details.need.words: got []"),
        (lambda d: d["details"]["need"].update(hint="x"), "details.need.hint: unknown key"),
        (lambda d: d["families"]["best_price"].update(sentences=[]), "families.best_price.sentences: got []"),
        (lambda d: d["families"]["sold_out"].update(like="visit"), "families.sold_out.like: got 'visit'"),
        (lambda d: d["families"]["best_price"].update(graph="Facts"), "families.best_price.graph: got 'Facts'"),
        (lambda d: d["families"]["best_price"].pop("about"), "families.best_price: graph is 'Fact' and about is ''"),
        (
            lambda d: d["families"]["best_price"].update(sentences=["What does {category} cost?"]),
            "families.best_price.sentences.0: {city} is missing",
        ),
        (
            lambda d: d["families"]["best_price"]["sentences"].append("{category} in {city} on {date}"),
            "families.best_price.sentences.5: {date} is no detail of this family",
        ),
    ],
)
def test_bad_requests_are_told_with_domain_family_and_key(
    change: Callable[[dict[str, Any]], object], told: str
) -> None:
    said = with_requests(change)
    assert "requests of poi (banks/requests/poi.yaml" in said
    assert told in said


def test_a_family_of_its_own_needs_sentences() -> None:
    lost = type("Lost", (graphs.Fact,), {"name": "lost"})
    with pytest.raises(BadFile, match=r"requests of poi .* families\.lost: is missing"):
        type("Longer", (Poi,), {"own": (lost,)})()


# ---------------------------------------------------------------- verification


def finished(domain: Domain, name: str, seed: int = 4) -> tuple[Task, list[ToolCall], str]:
    task = domain.task(name, seed)
    gold = walk(domain, task)
    return task, [step.call for step in gold.calls], gold.final


def by_graph(domain: Domain, graph: str) -> str:
    return next(n for n, f in domain.families.items() if graph_of(f) == graph)


def test_harmless_reads_are_not_punished_and_collateral_writes_are(domain: Domain) -> None:
    task, calls, final = finished(domain, by_graph(domain, "Hold"))
    world = domain.world(task)
    for call in calls[:2] * 3 + calls:
        world.call(call)
    assert domain.judge(task, world.state, final).outcome == "pass"
    other_task = domain.task(by_graph(domain, "Cancel"), 4)
    for step in walk(domain, other_task).calls:
        world.call(step.call)
    verdict = domain.judge(task, world.state, final)
    assert verdict.outcome == "fail"
    assert [c.name for c in verdict.checks if not c.passed] == ["state"]


def test_doing_the_write_twice_is_collateral(domain: Domain) -> None:
    for seed in range(40):  # until there is room for two
        task, calls, final = finished(domain, by_graph(domain, "Hold"), seed)
        world = domain.world(task)
        results = [world.call(call) for call in [*calls, calls[-1]]]
        if results[-1].error is None:
            verdict = domain.judge(task, world.state, final)
            assert verdict.outcome == "fail"
            return
    assert domain.name in ("medical", "workspace")  # where an opening is taken once and for all


def test_undoing_a_detour_leaves_nothing_behind(domain: Domain) -> None:
    task, calls, final = finished(domain, by_graph(domain, "Hold"))
    specs = {s.name: s for s in domain.world_class.specs}
    world = domain.world(task)
    made = [world.call(call) for call in calls][-1]
    undo = specs[calls[-1].tool].undo
    assert undo is not None
    world.call(ToolCall(undo[0], {undo[1]: made.content[undo[1]]}))
    assert domain.normalise(world.state) == {}
    again = world.call(calls[-1])
    assert again.content[undo[1]] != made.content[undo[1]]
    said = final.replace(str(made.content[undo[1]]), str(again.content[undo[1]]))
    assert domain.judge(task, world.state, said).outcome == "pass"


def test_a_wrong_answer_fails_though_the_state_is_right(domain: Domain) -> None:
    task, calls, final = finished(domain, by_graph(domain, "Fact"))
    world = domain.world(task)
    for call in calls:
        world.call(call)
    assert domain.judge(task, world.state, final).outcome == "pass"
    number = re.search(r"\d+", final)
    assert number
    wrong = final.replace(number[0], str(int(number[0]) + 1))
    assert [c.name for c in domain.judge(task, world.state, wrong).checks if not c.passed] == ["answer"]
    assert domain.judge(task, world.state, "Done.").outcome == "fail"
    assert domain.judge(task, world.state, "").outcome == "fail"


def test_a_write_that_breaks_an_invariant_is_rolled_back(domain: Domain) -> None:
    task = domain.task(by_graph(domain, "Barred"), 2)
    world = domain.world(task)
    calls = [c for step in walk(domain, task).calls for c, _ in step.inner]
    results = [world.call(call) for call in calls]
    assert results[-1].error is not None
    assert results[-1].error.code == "refused"
    assert domain.normalise(world.state) == {}
    assert world.broken() is None
