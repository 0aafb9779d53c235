"""What declared domains can do besides looking up and writing: sums, comparisons, codes, rules of the house, kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosswind.authoring.yaml_domain import load
from crosswind.base.errors import BadFile
from crosswind.core.audit import audit_domain
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.oracle import walk
from crosswind.core.types import Task, ToolCall
from crosswind.words import banks

MOORINGS = """\
domain: moorings
summary: Harbours with berths that skippers take.
policy: Do what the user asks with the tools. If it cannot be done, leave nothing changed and say so.
entities: {kind: berths.sort, thing: berths.title, group: harbours}
tables:
  harbours:
    id: {key: harbour, names: town}
    one_per: 20
    columns: {toll: {number: {low: 5, high: 400}, unit: euros}}
  berths:
    id: {key: berth_id, prefix: B}
    of: harbours
    most: 14
    least: 9
    columns:
      title: {name: work}
      sort: {choice: [quay, buoy, pier]}
      depth: {number: {low: 2, high: 9}}
      rent: {number: {low: 20, high: 900}, unit: euros}
  skippers:
    id: {key: skipper_id, prefix: S}
    columns: {standing: {choice: [good, barred], weights: [1, 0]}}
  passes:
    id: {key: pass_code, prefix: PC}
    one_per: 0
    codes: true
    columns: {berth_id: {refer: berths}, skipper_id: {refer: skippers}}
  stays:
    id: {key: stay_id, prefix: T}
    of: skippers
    most: 0
    columns: {berth_id: {refer: berths}, pass_code: {refer: passes}}
tools:
  list_berths:
    {doc: "Berths of a sort in a harbour, with depth and rent in euros.", look: berths, by: [harbour, sort],
     give: [berth_id, title, depth, rent]}
  harbour_info: {doc: The toll of a harbour in euros., look: harbours, by: [harbour], give: [harbour, toll]}
  issue_pass:
    {doc: Give out the pass that a skipper needs for a berth., create: passes,
     row: {berth_id: "{berth_id}", skipper_id: "{skipper_id}"}, give: [pass_code]}
  take_berth:
    doc: Let a skipper stay at a berth. It takes the code of {issue_pass}.
    create: stays
    row: {skipper_id: "{skipper_id}", berth_id: "{berth_id}", pass_code: "{pass_code}"}
    give: [stay_id]
    undo: end_stay
  end_stay: {doc: End a stay., delete: stays, by: [stay_id]}
rules:
  - {table: stays, refer: skipper_id, must: {standing: good}, say: "skipper {skipper_id} may not stay"}
  - table: stays
    refer: pass_code
    must: {berth_id: "{berth_id}", skipper_id: "{skipper_id}"}
    say: the pass is for another berth or skipper
details:
  sort: {of: berths.sort}
  harbour: {of: harbours}
  other: {of: harbours, label: other harbour}
  floor: {number: {low: 3, high: 7}, label: least depth}
  skipper_id: {of: skippers}
families:
  total_rent:
    about: The rent of all berths of a sort.
    level: 1
    queries: ["What do all berths of the sort {sort} in {harbour} cost in rent together?"]
    steps:
      - {step: rents, call: list_berths, args: {harbour: "{harbour}", sort: "{sort}"}, sum: rent}
    answer: Together they cost $rents.sum euros.
    expect: [$rents.sum]
  deep_enough:
    about: How many berths of a sort are deep enough.
    level: 1
    queries: ["How many berths of the sort {sort} in {harbour} have a depth of at least {floor}?"]
    steps:
      - step: deep
        call: list_berths
        args: {harbour: "{harbour}", sort: "{sort}"}
        where: {depth: {at_least: "{floor}"}}
        count: true
    answer: There are $deep.count.
    expect: [$deep.count]
  cheaper:
    about: The lower of two tolls, and its harbour.
    level: 1
    queries: ["Which harbour has the lower toll, {harbour} or {other}, and how much is it?"]
    steps:
      - {step: one, call: harbour_info, args: {harbour: "{harbour}"}}
      - {step: two, call: harbour_info, args: {harbour: "{other}"}}
      - {step: low, among: [one, two], min: toll}
    answer: The toll of $low.harbour is lower, $low.toll euros.
    expect: [$low.harbour, $low.toll]
  stay:
    about: Take the cheapest berth of a sort, with a pass.
    level: 1
    queries: ["Let {skipper_id} stay at the berth of the sort {sort} in {harbour} that has the lowest rent."]
    steps:
      - step: berth
        call: list_berths
        args: {harbour: "{harbour}", sort: "{sort}"}
        min: rent
        none: there is no such berth
      - {step: code, call: issue_pass, args: {berth_id: $berth.berth_id, skipper_id: "{skipper_id}"}}
      - step: made
        call: take_berth
        args: {skipper_id: "{skipper_id}", berth_id: $berth.berth_id, pass_code: $code.pass_code}
    answer: Done, stay $made.stay_id.
    expect: [$made.stay_id]
    obstacles:
      - {table: skippers, id: "{skipper_id}", set: {standing: barred}}
"""


@pytest.fixture(scope="module")
def moorings(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return load(written(tmp_path_factory.mktemp("moorings"), MOORINGS))


def written(folder: Path, text: str) -> Path:
    path = folder / "moorings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def rows(domain: Domain, task: Task) -> list[dict[str, int]]:
    """The berths that a request is about."""
    call = ToolCall("list_berths", {key: task.wanted[key] for key in ("harbour", "sort")})
    return list(domain.world(task).call(call).content)


def test_the_domain_keeps_every_law_without_layers(moorings: Domain) -> None:
    assert audit_domain(moorings) == []


def test_figures_are_those_of_the_rows(moorings: Domain) -> None:
    for seed in range(6):
        task = moorings.task("total_rent", seed)
        assert f"cost {sum(row['rent'] for row in rows(moorings, task))} euros" in walk(moorings, task).final
        task = moorings.task("cheaper", seed)
        tolls = {
            name: moorings.world(task).call(ToolCall("harbour_info", {"harbour": name})).content["toll"]
            for name in task.wanted.values()
        }
        lower = min(tolls, key=lambda name: tolls[name])
        assert walk(moorings, task).final == f"The toll of {lower} is lower, {tolls[lower]} euros."


def test_a_code_holds_for_what_it_was_issued_for_and_counts_for_nothing(moorings: Domain) -> None:
    task = moorings.task("stay", 0)
    berth, other = (row["berth_id"] for row in rows(moorings, task)[:2])
    skipper, world = task.wanted["skipper_id"], moorings.world(task)
    issue = ToolCall("issue_pass", {"berth_id": berth, "skipper_id": skipper})
    code = world.call(issue).content["pass_code"]
    assert world.call(issue).content["pass_code"] == code  # the same again for the same
    assert moorings.normalise(world.state) == {}
    for wrong in ({"berth_id": other, "pass_code": code}, {"berth_id": berth, "pass_code": "PC000000"}):
        assert world.call(ToolCall("take_berth", {"skipper_id": skipper, **wrong})).error is not None
    assert world.call(ToolCall("take_berth", {"skipper_id": skipper, "berth_id": berth, "pass_code": code})).content
    assert len(moorings.normalise(world.state)) == 1


@pytest.mark.parametrize("family", ["total_rent", "deep_enough", "cheaper"])
def test_rules_of_the_house_lead_to_another_end(moorings: Domain, family: str) -> None:
    drawn = 0
    for seed in range(12):
        task = moorings.task(family, seed)
        found = draw(moorings, task, ["rule_change"], seed, strict=False)
        drawn += bool(found.layers)
        if found.layers:
            assert found.certificate.gold.final != found.certificate.clean.final
    assert drawn >= 3


def test_two_writes_can_be_turned_round(moorings: Domain) -> None:
    drawn = draw(moorings, moorings.task("stay", 1), ["dependency_inversion"], 1)
    assert [step.call.tool for step in drawn.certificate.gold.calls][1:] == ["take_berth", "issue_pass"]


def test_kinds_and_names_can_be_those_of_another_field(moorings: Domain) -> None:
    bank = {"fields": {split: [["stall", "booth", "kiosk"]] for split in ("train", "dev", "test")}}
    banks.bring("moorings", bank)
    try:
        drawn = draw(moorings, moorings.task("stay", 2), [("entity_reskin", 4)], 2)
    finally:
        banks.bring("moorings", {})
    query = drawn.certificate.gold.session.query()
    assert any(word in query for word in bank["fields"]["test"][0])
    assert drawn.base.wanted["harbour"] not in query


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("among: [one, two]", "among: [one]", "two or more steps"),
        ("among: [one, two]", "among: [one, three]", "no earlier step 'three'"),
        ("min: toll}", "min: fee}", "no key that all of them give 'fee'"),
        ("sum: rent", "sum: title", "title holds no numbers"),
        ('skipper_id: "{skipper_id}"}\n    say', 'skipper_id: "{nobody}"}\n    say', "no column of stays 'nobody'"),
        ("one_per: 0\n    codes", "one_per: 3\n    codes", "there are none at first"),
        ("kind: berths.sort", "kind: berths.rent", "berths.rent is not a choice column"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert MOORINGS.count(old) == 1
    with pytest.raises(BadFile, match=words):
        load(written(tmp_path, MOORINGS.replace(old, new)))
