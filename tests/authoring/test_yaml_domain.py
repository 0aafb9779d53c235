"""Domains that are declared in YAML: the example keeps the laws, and what does not fit is told with its line."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from crosswind.authoring.yaml_domain import load
from crosswind.base.errors import BadFile, CannotPerturb, Unfair
from crosswind.core import refusal_proofs
from crosswind.core.certify import certify
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.laws import twins
from crosswind.core.oracle import walk
from crosswind.core.types import SPLITS, Key, Task, ToolCall
from tests.laws.search import Search

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "library.yaml"
LIBRARY = load(EXAMPLE)
FAMILIES = list(LIBRARY.families)
CALLS = {1: (2, 3), 2: (4, 6), 3: (7, 12)}

# Small, and with what the example does not need: a name that is looked up, times, a limit, a write that is deleted.
GARDENS = """\
domain: gardens
summary: Gardens that can be visited.
policy: Do what the user asks. If it cannot be done, say so.
tables:
  towns:
    id: {key: town, names: town}
    one_per: 20
    columns: {hall: {fixed: open}}
  gardens:
    id: {key: garden_id, prefix: G}
    of: towns
    most: 12
    least: 6
    columns:
      title: {name: work}
      sort: {choice: [roses, herbs, trees]}
      opens: {time: {first: "08:00", last: "11:00", minutes: 30}}
      fee: {number: {low: 2, high: 30}, unit: euros}
  guests:
    id: {key: guest_id, prefix: N}
    columns: {name: {name: person}}
  visits:
    id: {key: visit_id, prefix: V}
    of: gardens
    most: 0
    columns:
      guest_id: {refer: guests}
      at: {time: {first: "08:00", last: "19:00"}}
tools:
  list_gardens:
    doc: Gardens of a town, with their sort.
    look: gardens
    by: [town]
    give: [garden_id, title, sort]
  garden_hours:
    doc: Opening time and fee of a garden.
    look: gardens
    by: [garden_id]
    give: [opens, fee]
  list_visits:
    doc: Visits that are booked at a garden.
    look: visits
    by: [garden_id]
    give: [visit_id, guest_id, at]
  book_visit:
    doc: Book a visit.
    create: visits
    row: {garden_id: "{garden_id}", guest_id: "{guest_id}", at: "{at}"}
    give: [visit_id]
    undo: drop_visit
  drop_visit:
    doc: Drop a booked visit.
    delete: visits
    by: [visit_id]
rules:
  - {table: visits, limit: 1, say: "garden {garden_id} is full"}
details:
  town: {of: towns}
  title: {of: gardens.title, label: name}
  guest_id: {of: guests}
  at: {of: visits.at, label: time}
families:
  hours:
    about: When a garden opens.
    level: 1
    queries: ["When does {title} in {town} open?"]
    steps:
      - {step: garden, call: list_gardens, args: {town: "{town}"}, where: {title: "{title}"}, only: true}
      - {step: more, call: garden_hours, args: {garden_id: $garden.garden_id}}
    answer: It opens at $more.opens.
    expect: [$more.opens]
    obstacles:
      - {step: garden, gone: true}
  visit:
    about: Book a visit.
    level: 1
    queries: ["Book {title} in {town} for {guest_id} at {at} and tell me the fee."]
    steps:
      - {step: garden, call: list_gardens, args: {town: "{town}"}, where: {title: "{title}"}, only: true}
      - {step: more, call: garden_hours, args: {garden_id: $garden.garden_id}}
      - {step: made, call: book_visit, args: {garden_id: $garden.garden_id, guest_id: "{guest_id}", at: "{at}"}}
    answer: Booked as $made.visit_id, for $more.fee euros.
    expect: [$made.visit_id, $more.fee]
    obstacles:
      - {table: guests, id: "{guest_id}", gone: true}
"""


def gardens(folder: Path, old: str = "", new: str = "") -> Domain:
    """The small domain, with a piece of its text replaced."""
    assert GARDENS.count(old) == 1 or not old, old
    path = folder / "gardens.yaml"
    path.write_text(GARDENS.replace(old, new) if old else GARDENS)
    return load(path)


# ---------------------------------------------------------------- the example


def test_the_example_is_a_domain_of_some_size() -> None:
    assert len(LIBRARY.world_class.specs) >= 6
    assert len(FAMILIES) >= 5
    assert {f.level for f in LIBRARY.families.values()} == {1, 2, 3}
    assert sum(f.refusal for f in LIBRARY.families.values()) == 1
    assert LIBRARY.task("best_pages_asked", 0).withheld
    assert all(type(f).__doc__ for f in LIBRARY.families.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_task_is_certified_and_as_long_as_its_level_says(family: str) -> None:
    made = LIBRARY.families[family]
    for seed in range(15):
        certificate = certify(LIBRARY, LIBRARY.task(family, seed))
        assert CALLS[made.level][0] <= len(certificate.gold.calls) <= CALLS[made.level][1]
        assert certificate.proof.startswith("illegal" if made.refusal else "replay")


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize(
    "kind",
    *[["transient_error", "paged_results", "format_switch", "semantic_rename", "underspecified", "changed_mind"]],
)
def test_perturbed_tasks_keep_every_law(kind: str, severity: int) -> None:
    found = 0
    for seed in range(2 * len(FAMILIES)):
        try:
            draw(LIBRARY, LIBRARY.task(FAMILIES[seed % len(FAMILIES)], seed), [kind], seed, severity=severity)
            found += 1
        except CannotPerturb as cannot:
            if cannot.applies:
                raise
    assert found >= 5


def test_obstacles_and_missing_tools_are_refused_with_all_three_proofs_and_no_search_refutes_them() -> None:
    ways = set()
    for kind in ("unsolvable", "missing_tool"):
        for seed, family in enumerate(FAMILIES):
            try:
                task = draw(LIBRARY, LIBRARY.task(family, seed), [kind], seed, severity=1 + seed % 5).certificate.task
            except CannotPerturb:
                continue
            proof = refusal_proofs.prove(LIBRARY, task)
            ways.add(proof.split(":")[0])
            if not proof.startswith("blind"):
                conceivable_ends = LIBRARY.family(task).conceivable_ends(
                    task.unobstructed(), LIBRARY.state(task.unobstructed())
                )
                assert not Search(LIBRARY, task).reaches(conceivable_ends), task.id
                continue
            seen: set[Key] = set()
            walk(LIBRARY, task.unobstructed(), seen=seen)
            working = {n: e for n, e in LIBRARY.world_class.entries.items() if n not in task.blocked}
            other = refusal_proofs.indistinct(LIBRARY, task, seen, working)
            assert other is not None
            world = LIBRARY.world(other)
            assert all(world.call(call) == result for call, result in Search(LIBRARY, task).reads())
    assert ways == {"illegal", "unwritable", "blind"}


def test_every_obstacle_is_provable() -> None:
    for family in LIBRARY.families.values():
        for seed in range(4):
            task = LIBRARY.task(family.name, seed).unobstructed()
            for edits in family.obstacles(task, LIBRARY.state(task), Random(seed)):
                assert refusal_proofs.prove(LIBRARY, task.replace(obstacle=edits))


@pytest.mark.parametrize("family", FAMILIES)
def test_tools_keep_to_their_footprints(family: str) -> None:
    for seed in range(3):
        task = LIBRARY.task(family, seed)
        fenced = LIBRARY.world(task, fenced=True)
        for step in walk(LIBRARY, task).calls:
            for call, result in step.inner:
                assert fenced.call(call) == result


@pytest.mark.parametrize("family", [name for name, f in LIBRARY.families.items() if not f.refusal])
def test_there_are_twins(family: str) -> None:
    assert twins(LIBRARY, LIBRARY.task(family, 3), 2)


def test_splits_share_no_entity() -> None:
    found = []
    for split in SPLITS:
        tasks = [LIBRARY.task(family, seed, split=split) for family in FAMILIES for seed in range(4)]
        text = repr([(step.call, step.result) for task in tasks for step in walk(LIBRARY, task).calls])
        names = {
            n
            for f in LIBRARY.families.values()
            for d in f.details.values()
            if d.label == "branch"
            for n in d.read(text)
        }
        found.append(set(re.findall(r"\b[BM]\d{6,}\b", text)) | names)
    assert all(len(entities) > 100 for entities in found)
    assert not any(one & two for one, two in combinations(found, 2))


def test_rows_depend_on_the_seed_alone_and_size_is_no_cost() -> None:
    small, large = LIBRARY.task("lend_best", 4), LIBRARY.task("lend_best", 4, size=300_000)
    assert certify(load(EXAMPLE), small).gold.steps == certify(LIBRARY, small).gold.steps
    seen: set[Key] = set()
    walk(LIBRARY, large, seen=seen)
    assert len(seen) < 60
    assert len(certify(LIBRARY, large).gold.calls) == 4


# ---------------------------------------------------------------- what is right


def right(task: Task) -> tuple[object, ...]:
    """All that a family says about what is right."""
    family, state = LIBRARY.family(task), LIBRARY.state(task)
    return family.ends(task, state), family.conceivable_ends(task, state), family.answer(task, state, state)


def test_what_is_right_is_found_without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [LIBRARY.task(family, seed) for family in FAMILIES for seed in range(3)]
    before = [right(task) for task in tasks]

    def no_tool(*_: object, **__: object) -> object:
        raise AssertionError("a tool was called")

    broken = {name: replace(entry, run=no_tool) for name, entry in LIBRARY.world_class.entries.items()}
    monkeypatch.setattr(LIBRARY.world_class, "entries", broken)
    assert [right(task) for task in tasks] == before
    with pytest.raises(Unfair, match="a tool was called"):
        walk(LIBRARY, tasks[0])


def test_a_tool_that_lies_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = LIBRARY.world_class.entries
    honest = entries["find_books"].run

    def lying(*args: object, **named: object) -> object:
        rows = honest(*args, **named)
        return [{**row, "rating": 6 - row["rating"]} for row in rows]

    monkeypatch.setattr(
        LIBRARY.world_class, "entries", {**entries, "find_books": replace(entries["find_books"], run=lying)}
    )
    with pytest.raises(Unfair, match="goal"):
        certify(LIBRARY, LIBRARY.task("best_pages", 1))


def test_a_tie_is_no_task() -> None:
    task = LIBRARY.task("best_pages", 1)
    family, state = LIBRARY.family(task), LIBRARY.state(task)
    found = walk(LIBRARY, task).steps[0].result.content
    best = max(row["rating"] for row in found)
    rows = {f"books/{row['book_id']}": {**(state.row("books", row["book_id"]) or {}), "rating": best} for row in found}
    assert len(rows) > 1
    tied = task.replace(edits=rows)
    assert family.ends(task, state)
    assert family.ends(tied, LIBRARY.state(tied)) == []
    assert family.answer(tied, LIBRARY.state(tied), LIBRARY.state(tied)) == ()


def test_a_detour_that_is_taken_back_leaves_nothing() -> None:
    task = LIBRARY.task("lend_best", 2)
    calls = [step.call for step in walk(LIBRARY, task).calls]
    world = LIBRARY.world(task)
    for call in calls:
        made = world.call(call)
    first = LIBRARY.normalise(world.state)
    world.call(ToolCall("return_book", {"loan_id": made.content["loan_id"]}))
    assert LIBRARY.normalise(world.state) == {}
    again = world.call(calls[-1])
    assert again.content["loan_id"] != made.content["loan_id"]
    assert LIBRARY.normalise(world.state) == first  # a new row goes by what it holds
    final = f"Lent, loan {again.content['loan_id']}."
    assert LIBRARY.judge(task, world.state, final).outcome == "pass"
    assert LIBRARY.judge(task, world.state, f"Lent, loan {made.content['loan_id']}.").outcome == "fail"


def test_tools_answer_mistakes_with_errors() -> None:
    task = LIBRARY.task("lend_best", 2)
    world = LIBRARY.world(task)
    steps = walk(LIBRARY, task).calls
    lend = steps[-1].call
    wrong = {
        "not_found": [
            ToolCall("book_details", {"book_id": "B1"}),
            ToolCall("find_books", {"branch": "Nowhere", "genre": "poetry"}),
            lend.with_args(member_id="M1"),
            ToolCall("return_book", {"loan_id": "L1"}),
        ],
        "bad_arguments": [
            ToolCall("find_books", {"branch": "Nowhere", "genre": "jazz"}),
            lend.with_args(due="tomorrow"),
            lend.with_args(due="2031-13-01"),
        ],
    }
    for code, calls in wrong.items():
        for call in calls:
            result = world.call(call)
            assert result.error is not None
            assert result.error.code == code, call
    made = world.call(lend).content
    assert world.call(ToolCall("return_book", {"loan_id": made["loan_id"]})).error is None
    twice = world.call(ToolCall("return_book", {"loan_id": made["loan_id"]})).error
    assert twice is not None
    assert twice.code == "conflict"


def test_a_write_that_breaks_a_rule_is_taken_back() -> None:
    task = LIBRARY.task("suspended_member", 0)
    lend = walk(LIBRARY, task.unobstructed()).calls[-1].call
    world = LIBRARY.world(task)
    refused = world.call(lend).error
    assert refused is not None
    assert refused.text == f"member {task.wanted['member_id']} may not borrow"
    assert world.state.overlay == {}


# ---------------------------------------------------------------- the small one


def test_names_times_limits_and_deletions(tmp_path: Path) -> None:
    domain = gardens(tmp_path)
    for family in domain.families:
        for seed in range(8):
            certify(domain, domain.task(family, seed))
    task = domain.task("visit", 1)
    calls = [step.call for step in walk(domain, task).calls]
    world = domain.world(task)
    made = [world.call(call) for call in calls][-1].content
    full = world.call(calls[-1]).error
    assert full is not None
    assert "is full" in full.text
    assert len(world.call(ToolCall("list_visits", {"garden_id": calls[-1].args["garden_id"]})).content) == 1
    assert world.call(ToolCall("drop_visit", {"visit_id": made["visit_id"]})).error is None
    assert domain.normalise(world.state) == {}
    assert world.call(calls[-1]).error is None
    for kind in ("changed_mind", "unsolvable", "missing_tool", "transient_error"):
        assert any(_drawn(domain, kind, seed) for seed in range(4)), kind


def test_tools_and_arguments_may_have_any_name(tmp_path: Path) -> None:
    """Such as those of what runs them."""
    for old, new in (("drop_visit", "call"), ("book_visit", "found"), ("town", "self"), ("garden_id", "world")):
        text = re.sub(rf"\b{old}\b", new, GARDENS).replace("names: self", "names: town")
        path = tmp_path / f"{new}.yaml"
        path.write_text(text)
        domain = load(path)
        for family in domain.families:
            certify(domain, domain.task(family, 1))


def _drawn(domain: Domain, kind: str, seed: int) -> bool:
    try:
        return bool(draw(domain, domain.task("visit", seed), [kind], seed).layers)
    except CannotPerturb:
        return False


def test_a_domain_that_is_loaded_again_has_its_own_rows(tmp_path: Path) -> None:
    one = gardens(tmp_path)
    fee = {step.result.content["fee"] for step in walk(one, one.task("hours", 0)).calls[1:]}
    two = gardens(tmp_path, "low: 2, high: 30", "low: 200, high: 300")
    other = {step.result.content["fee"] for step in walk(two, two.task("hours", 0)).calls[1:]}
    assert max(fee) <= 30
    assert min(other) >= 200


# ---------------------------------------------------------------- what does not fit

WRONG = [
    ("It opens at $more.opens.", "It opens at {$more.opens}.", "{$more.opens} has braces, which are for details"),
    ("It opens at $more.opens.", "It opens at {$more.opens .", "a brace is left over"),
    # YAML itself
    ("columns: {name: {name: person}}", "columns: &a {name: {name: person}}", "the anchor &a is not allowed"),
    ("opens: {time:", "opens: !!str {time:", "the tag"),
    (
        "    doc: Book a visit.",
        "    doc: Book a visit.\n    doc: Again.",
        "the key 'doc' appears twice",
    ),
    ("    doc: Book a visit.", "    doc: [Book", "not valid YAML"),
    # the schema
    ("    doc: Book a visit.", "    dok: Book a visit.", "tools.book_visit.doc"),
    ("    most: 12", "    most: many", "tables.gardens.most"),
    ('    level: 1\n    queries: ["When', '    level: 4\n    queries: ["When', "families.hours.level"),
    # names
    ("domain: gardens", "domain: My Gardens", "the domain cannot be called 'My Gardens'"),
    ("  hours:\n", "  all:\n", "a family cannot be called 'all'"),
    # tables
    ("    of: towns", "    of: twons", "there is no table 'twons'; did you mean towns?"),
    ("{key: guest_id, prefix: N}", "{key: guest_id, prefix: G}", "'G' is the prefix of gardens already"),
    ("{key: guest_id, prefix: N}", "{key: guest_id}", "give either prefix, as in prefix: B, or names"),
    ("{key: guest_id, prefix: N}", "{key: guest_id, names: city}", "there is no sort of names 'city'"),
    ("{key: guest_id, prefix: N}", "{key: guest_id, names: work}", "gardens has a column of such names"),
    ("    least: 6", "    least: 60", "least is 60 and most is 12; lower least"),
    ("{choice: [roses, herbs, trees]}", "{choice: [roses]}", "a choice has two values or more"),
    ("{choice: [roses, herbs, trees]}", "{choice: [roses, herbs, roses]}", "'roses' stands for two choices"),
    ("{choice: [roses, herbs, trees]}", "{choice: [roses, herbs], weights: [1]}", "one weight for each choice"),
    ("{choice: [roses, herbs, trees]}", "{choice: [roses, herbs], words: {rose: [x]}}", "did you mean roses"),
    ("{choice: [roses, herbs, trees]}", "{choice: [roses, herbs], fixed: 1}", "got choice and fixed"),
    ("      title: {name: work}", "      title: {}", "got none of them"),
    ("low: 2, high: 30", "low: 30, high: 2", "expected low < high"),
    ('first: "08:00", last: "11:00"', "first: 8, last: 11", "tables.gardens.columns.opens.time.first"),
    ('first: "08:00", last: "11:00"', 'first: "8", last: "11"', "expected two times of a day in quotes"),
    ("      guest_id: {refer: guests}", "      guest_id: {refer: guest}", "did you mean guests"),
    ("      guest_id: {refer: guests}", "      guest_id: {refer: visits}", "visits may hold no row to refer to"),
    ("columns: {hall: {fixed: open}}", "columns: {town: {fixed: open}}", "'town' is a key of the row already"),
    ("columns: {hall: {fixed: open}}", "columns: {status: {fixed: open}}", "fill it by choice"),
    # tools
    ("    look: visits", "    look: visit", "there is no table 'visit'; did you mean visits"),
    ("    look: visits", "    look: visits\n    create: visits", "expected one of look, create, change, delete"),
    ("    give: [opens, fee]", "    give: [opens, fees]", "there is no column of gardens 'fees'; did you mean fee?"),
    ("    by: [town]", "    by: [sort]", "rows are found through what they belong to; add town or garden_id"),
    ("    by: [town]", "    by: [town, town]", "'town' appears twice"),
    ("    by: [visit_id]", "    by: [garden_id]", "a row is found by its key; write by: [visit_id]"),
    ("    undo: drop_visit", "    undo: drop_vist", "did you mean drop_visit"),
    ("    undo: drop_visit", "    undo: list_visits", "list_visits does not take visit_id alone"),
    ("    give: [visit_id]\n", "    give: [at]\n", "whoever undoes it needs visit_id"),
    (', at: "{at}"}\n    give', "}\n    give", "a new row has no at; add them to row"),
    (', at: "{at}"}\n    give', ", at: $x.y}\n    give", "speaks of a step"),
    (', at: "{at}"}\n    give', ', at: "at {at}"}\n    give', "is not a reference; write {detail}, $step.key"),
    (', at: "{at}"}\n    give', ", at: noon}\n    give", "at cannot be 'noon'; it holds a time"),
    ("    doc: Book a visit.", "    doc: Book a visit, see {drop_visits}.", "did you mean drop_visit"),
    # rules
    ("table: visits, limit: 1", "table: visit, limit: 1", "did you mean visits"),
    ("table: visits, limit: 1", "table: guests, limit: 1", "guests needs of"),
    ("limit: 1, say", "say", "expected either must: {column: value} or limit: number"),
    ("limit: 1, say", "refer: at, must: {name: x}, say", "at refers to no table"),
    ("limit: 1, say", "refer: guest_id, must: {nam: x}, say", "there is no column of guests 'nam'; did you mean name"),
    ("limit: 1, say", "must: {at: {after: x}}, say", "write a value, at_least: value or at_most: value"),
    ('say: "garden {garden_id} is full"', 'say: "{garden} is full"', "did you mean garden_id"),
    # details
    ("  town: {of: towns}", "  town: {}", "expected of: table, of: table.column or number"),
    ("{of: gardens.title, label: name}", "{of: gardens.titel}", "did you mean title"),
    ("  town: {of: towns}", "  town: {of: towns}\n  extra: {of: towns}", "no family uses this detail"),
    ("  town: {of: towns}", "  town: {of: towns, vague: Balbaville or so}", "the words themselves hold 'Balbaville'"),
    ("  town: {of: towns}", "  town: {of: towns, record: garden_hours.fees}", "expected tool.key of a look-up"),
    # families
    ("$more.opens.\n", "$mor.opens.\n", "there is no earlier step 'mor'; did you mean more?"),
    ("expect: [$more.opens]", "expect: [$more.closes]", "there is no key that the step more gives 'closes'"),
    ("expect: [$more.opens]", "expect: [more]", "'more' is not a result; write $step.key"),
    ("    expect: [$more.opens]\n", "", "doing nothing would pass; add expect"),
    ("call: book_visit", "call: book_visits", "did you mean book_visit"),
    (', at: "{at}"}}', "}}", "book_visit needs at; add it"),
    (', at: "{at}"}}', ', at: "{time}"}}', "there is no detail 'time'"),
    (', at: "{at}"}}', ', at: "12:00"}}', "{at} is used by no step"),
    (
        'garden_id: $garden.garden_id, guest_id: "{guest_id}"',
        'garden_id: $garden.title, guest_id: "{guest_id}"',
        "must be the garden_id of gardens; this is not one",
    ),
    ("and tell me the fee", "and {tell me the fee", "a brace is left over"),
    ('guest_id: "{guest_id}", at: "{at}"}}', 'guest_id: N1, at: "{at}"}}', "it holds keys of guests"),
    ("and tell me the fee", "and tell me the fee in {town}", "a query states each detail of the steps once"),
    ("and tell me the fee", "before 10:30 and tell me the fee", "the words themselves hold '10:30'"),
    (
        '"When does {title} in {town} open?"',
        '"When does {title} open?"',
        "a query states each detail of the steps once",
    ),
    ("    about: When a garden opens.", "    about: x\n    refusal: true\n    withhold: [name]", "known: title, town"),
    ("      - {step: garden, gone: true}", "      - {step: garden}", "set: {...} or gone: true"),
    ("      - {step: garden, gone: true}", "      - {step: gardn, gone: true}", "there is no step 'gardn'"),
    ("      - {step: garden, gone: true}", "      - {step: garden, set: {sort: fern}}", "it holds roses, herbs, trees"),
    (
        '- {table: guests, id: "{guest_id}", gone: true}',
        "- {table: guests, gone: true}",
        "table: name and id: reference",
    ),
]


@pytest.mark.parametrize(("old", "new", "words"), WRONG)
def test_what_does_not_fit_is_told_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(BadFile) as raised:
        gardens(tmp_path, old, new)
    text = str(raised.value)
    assert words in text
    found = re.match(rf"{re.escape(str(tmp_path / 'gardens.yaml'))}:(\d+): ", text)
    assert found, text
    changed = GARDENS[: GARDENS.index(old)].count("\n") + 1
    assert abs(int(found[1]) - changed) <= 12, text  # the line itself, or that of the part that lacks something


EXACT = [
    ("    of: towns", "    of: twons", 11),
    ("    give: [opens, fee]", "    give: [opens, fees]", 39),
    ("limit: 1, say", "say", 56),
    ("call: book_visit", "call: book_visits", 81),
]


@pytest.mark.parametrize(("old", "new", "line"), EXACT)
def test_the_line_is_exact(tmp_path: Path, old: str, new: str, line: int) -> None:
    with pytest.raises(BadFile, match=rf"gardens\.yaml:{line}: "):
        gardens(tmp_path, old, new)


@pytest.mark.parametrize(("text", "words"), [("", "expected a YAML domain"), ("- 1", "expected a YAML domain")])
def test_a_file_that_is_no_domain_is_told_so(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text(text)
    with pytest.raises(BadFile, match=words):
        load(path)
    with pytest.raises(BadFile, match="file not found"):
        load(tmp_path / "none.yaml")
