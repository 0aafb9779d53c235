"""Generated domains: the same from the same name, fair, and without a word or structure that two splits share."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from crosswind.authoring.generated import declaration, domain
from crosswind.authoring.generated.chains import shape
from crosswind.authoring.generated.lexicon import lexicon
from crosswind.authoring.generated.tables import RedrawNeeded
from crosswind.base.errors import NotForTraining, UnknownName
from crosswind.core import audit
from crosswind.core.audit import audit_domain
from crosswind.core.draw import draw
from crosswind.core.flow import rng_for
from crosswind.core.registry import domains
from crosswind.core.types import SPLITS, Split
from crosswind.words import banks
from crosswind.words.dealing import settled_words
from crosswind.words.held_out import check_drawn


def drafts(split: Split, count: int) -> list[domain.Draft]:
    """Draws as they come, without the laws, which cost most of the time."""
    out: list[domain.Draft] = []
    seed = 0
    while len(out) < count:
        seed += 1
        try:
            out.append(domain.Draft(split, rng_for("test", split, seed)))
        except RedrawNeeded:
            continue
    return out


def test_no_word_and_no_structure_is_shared_between_splits() -> None:
    words: dict[Split, set[str]] = {}
    shapes: dict[Split, set[object]] = {}
    for split in SPLITS:
        made = drafts(split, 10)
        names = {
            name
            for draft in made
            for table in draft.interface.tables.values()
            for name in (table.word, *(c.name for c in table.columns.values() if c.concept))
        }
        values = {
            value
            for draft in made
            for table in draft.interface.tables.values()
            for column in table.columns.values()
            for value in column.fill.get("choice", ())
        }
        words[split] = {banks.lemma(word) for word in names | values}
        shapes[split] = {draft.interface.nodes for draft in made}
        shapes[split] |= {shape(c.request, d.interface) for d in made for c, _ in d.families.values()}
    for one, two in combinations(SPLITS, 2):
        assert not words[one] & words[two]
        assert not shapes[one] & shapes[two]
    assert min(map(len, words.values())) > 60


def test_no_entry_of_the_lexicon_is_in_two_splits() -> None:
    entries = lexicon()
    by_split: dict[Split, set[str]] = {split: set() for split in SPLITS}
    for split in SPLITS:
        by_split[split] |= {banks.lemma(w) for cs in entries.concepts.values() for c in cs for w in c.words[split]}
        by_split[split] |= {banks.lemma(w) for ls in entries.choices.values() for line in ls[split] for w in line}
        by_split[split] |= {f"{kind} {line}" for kind, lines in entries.phrases.items() for line in lines[split]}
    for one, two in combinations(SPLITS, 2):
        assert not by_split[one] & by_split[two]


def test_only_train_worlds_have_words_that_are_in_no_dictionary() -> None:
    entries = lexicon()
    known = {banks.lemma(w) for cs in entries.concepts.values() for c in cs for s in SPLITS for w in c.words[s]}
    shares = {}
    for split in SPLITS:
        words = [
            [banks.lemma(table.word) in known for table in draft.interface.tables.values()]
            for draft in drafts(split, 20)
        ]
        shares[split] = [sum(world) / len(world) for world in words]
    assert {*shares["dev"], *shares["test"]} == {1.0}
    assert {0.0, 1.0} < {*shares["train"]}  # all, none, and some
    invented = {
        table.word
        for draft in drafts("train", 20)
        for table in draft.interface.tables.values()
        if banks.lemma(table.word) not in known
    }
    assert not {*map(banks.lemma, invented)} & {*settled_words()}


def test_requests_read_as_sentences() -> None:
    for split in SPLITS:
        for draft in drafts(split, 6):
            for compiled, declared in draft.families.values():
                assert declared["queries"]
                for query in declared["queries"]:
                    said = re.sub(r"\{\w+\}", "X", query)
                    assert all(s[0].isupper() for s in re.split(r"(?<=[.?]) ", said)), said
                    assert said[-1] in ".?", said
                    assert not re.search(r" {2}| [.,?]|[.?]{2}|,,|\b(a|an|the|of|by|that) \1\b|\bhas has\b", said), said
                    assert len({*re.findall(r"\{\w+\}", query)}) == len(compiled.details), query


def test_what_fits_a_thing_are_its_columns() -> None:
    for draft in drafts("train", 10):
        for table in draft.interface.tables.values():
            fits = table.concept.fits or {table.role}
            assert all(c.concept and c.concept.fits & fits for c in table.of_sort("number", "money")), table.name
            assert all(c.concept and c.concept.fits & {*fits, "any"} for c in table.of_sort("kind")), table.name


def test_a_name_gives_one_domain_that_the_laws_accept() -> None:
    made = domains["generated:test-3"]
    before = declaration("generated:test-3")
    assert not audit_domain(made, count=1)
    domain._held.clear()
    banks.forget("generated:test-3")
    assert banks.data("generated:test-3")["tools"]  # dropped, and brought again
    assert declaration("generated:test-3") == before
    drawn = draw(made, made.task("family_1", 5), ["semantic_rename", "transient_error"], 5)
    assert not re.search(r"\{\w+\}", drawn.certificate.gold.session.query())


def test_kinds_are_audited_on_a_domain_of_ours_whatever_code_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a change of the package's code would change which demonstrations are drawn."""
    judged: list[object] = []

    def fair(_: object, parts: object) -> list[audit.Complaint]:
        judged.append(parts)
        return []

    monkeypatch.setattr(audit, "_known", {})
    monkeypatch.setattr(audit, "_verdict", fair)
    audit.require_fair(domains["generated:test-3"], "family_1", ["semantic_rename"])
    assert judged == [("semantic_rename", domains["poi"])]


def test_what_a_family_remembers_of_a_world_is_not_changed_by_rules() -> None:
    """Reading an answer under a surcharge must not add it to the way that later answers are read from."""
    made = domains["generated:test-3"]
    charged = 0
    for family in made.families.values():
        task = made.task(family.name, 1)
        state = made.state(task)
        before = family.answer(task, state, state)
        under = task.replace(brief=task.brief.model_copy(update={"rules": {"surcharge": "7"}}))
        charged += family.answer(under, state, state) != before
        assert family.answer(task, state, state) == before
    assert charged


def test_generated_domains_are_dropped_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "HELD", 1)
    domains["generated:dev-1"]
    domains["generated:dev-2"]
    assert list(domain._held) == ["generated:dev-2"]


@pytest.mark.parametrize(
    "name", ["generated:", "generated:test-", "generated:a b", "generated:tset-4", "generated:train-1/2"]
)
def test_a_bad_name_is_told(name: str) -> None:
    with pytest.raises(UnknownName, match="generated:SPLIT-SEED"):
        domains[name]


def test_no_test_domain_is_trained_on() -> None:
    made = domains["generated:test-3"]
    with pytest.raises(NotForTraining, match="generated:train-"):
        check_drawn(draw(made, made.task("family_1", 1, split="train"), [], 1))
