"""The banks: rich enough, dealt without overlap, and nothing of the test split within reach of the train side."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crosswind.base.errors import CannotPerturb, NotForTraining
from crosswind.core.draw import draw
from crosswind.core.flow import rng_for
from crosswind.core.perturbation import load_layers
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import SPLITS, Split
from crosswind.episodes.recipe import random_kinds
from crosswind.perturbations import _added_names
from crosswind.words import banks, held_out, wording
from crosswind.words.dealing import keys_of, layer_words
from tests.leaks import check_words

ROOT = Path(__file__).parents[2]
NAMES = domains.names()
PAIRS = list(itertools.combinations(SPLITS, 2))


def dealt(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Every part of the data that is marked train, dev and test."""
    if isinstance(value, Mapping) and set(value) == set(SPLITS):
        yield at, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key != "lexicon":  # the same lists again, by other names
                yield from dealt(part, (*at, key))


def said(value: Any) -> set[str]:
    """What entries say; of tools that do not help, their names and descriptions."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = [text for record in value for key, text in record.items() if key != "params"]
    return {banks.lemma(text) for text in banks.every_text(value)}


@pytest.fixture(params=["common", *NAMES])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---------------------------------------------------------------- enough


@pytest.mark.parametrize("domain", NAMES)
@pytest.mark.parametrize("split", SPLITS)
def test_every_tool_has_24_pairs_and_every_key_12(domain: str, split: Split) -> None:
    for spec in domains[domain].world_class.specs:
        pairs = {(banks.lemma(a), banks.lemma(w)) for a, w in banks.tool_names(domain, spec, split)}
        assert len(pairs) >= 24, spec.name
    for key in keys_of(domains[domain]):
        pairs = {(banks.lemma(w), banks.lemma(q)) for w, q in banks.key_names(domain, key, split)}
        assert len(pairs) >= 12, key


@pytest.mark.parametrize("domain", NAMES)
@pytest.mark.parametrize("split", SPLITS)
def test_150_distractors(domain: str, split: Split) -> None:
    nouns = {banks.lemma(n) for n in banks.data(domain)["distractors"][split]}
    actions = {banks.lemma(t["action"]) for t in banks.entries("distractors", split)}
    assert len(nouns) * len(actions) >= 150
    rng, taken = rng_for("distractors", domain, split), set[str]()
    for _ in range(150):
        taken.add(banks.distractor(domain, split, rng, taken).name)
    assert len(taken) == 150


@pytest.mark.parametrize("kind", banks.data("common")["phrases"])
@pytest.mark.parametrize("split", SPLITS)
def test_20_wordings_of_every_kind_of_text(kind: str, split: Split) -> None:
    made = {banks.lemma(" ".join(parts)) for parts in itertools.product(*banks.wordings(kind, split))}
    assert len(made) >= 20


@pytest.mark.parametrize("domain", NAMES)
@pytest.mark.parametrize("split", SPLITS)
def test_40_sentence_skeletons_for_every_family(domain: str, split: Split) -> None:
    for family in domains[domain].families:
        cores = banks.data(domain)["families"][family][split]
        assert len(cores) >= 4, family
        for registers in (banks.REGISTERS, tuple(r for r in banks.REGISTERS if r != "telegraphic")):
            assert len(wording.skeletons(domain, family, split, registers)) >= 40, family


# ---------------------------------------------------------------- apart


def test_splits_share_no_entry(name: str) -> None:
    for at, by_split in dealt(banks.data(name)):
        for one, two in PAIRS:
            assert not said(by_split[one]) & said(by_split[two]), at


def test_a_word_is_in_one_split_wherever_it_stands() -> None:
    """Words, actions and qualifiers of all domains, and all sentences, are dealt together."""
    where: dict[str, dict[str, set[str]]] = {"names": {}, "texts": {}}
    for source in ("common", *NAMES):
        for at, by_split in dealt(banks.data(source)):
            sort = "names" if at[0] in ("words", "actions", "qualifiers") else "texts"
            if at[0] in ("fields", "distractors", "lookalikes", "homophones", "extras", "endings"):
                continue  # nouns that stand for other things; each list is dealt for itself
            for split in SPLITS:
                for text in said(by_split[split]):
                    where[sort].setdefault(text, set()).add(split)
    for sort, found in where.items():
        assert found
        assert not [t for t, splits_ in found.items() if len(splits_) > 1], sort


def test_words_that_layers_bring_along_are_apart_too() -> None:
    own = {split: {banks.lemma(w) for w in words} for split, words in layer_words().items()}
    assert all(len(words) > 20 for words in own.values())
    assert not own["train"] & (own["dev"] | own["test"]) - {"capital"}  # names of ways to write a choice, never shown
    for source in ("common", *NAMES):
        for at, by_split in dealt(banks.data(source)):
            if at[0] in ("words", "actions", "qualifiers"):
                for one, two in itertools.permutations(SPLITS, 2):
                    assert not own[one] & said(by_split[two]), at


@pytest.mark.parametrize("domain", NAMES)
def test_no_test_name_can_be_made_of_train_words(domain: str) -> None:
    """All names that the test side can make, without style, order and affixes, against all that the train side can."""

    def both_ways(pairs: Iterable[tuple[str, str]]) -> set[str]:
        return {banks.lemma(f"{a}_{b}") for a, b in pairs} | {banks.lemma(f"{b}_{a}") for a, b in pairs}

    made: dict[str, set[str]] = {split: set() for split in SPLITS}
    for split in SPLITS:
        for spec in domains[domain].world_class.specs:
            made[split] |= both_ways(banks.tool_names(domain, spec, split))
        for key in keys_of(domains[domain]):
            made[split] |= both_ways(banks.key_names(domain, key, split))
    assert len(made["test"]) > 500
    assert not made["train"] & made["test"]
    assert not made["train"] & made["dev"]


def grammar(domain: str, family: str, split: Split) -> re.Pattern[str]:
    """All requests that a split can make for a family, with the details masked, whatever is said around them."""
    forms = banks.data("common")["forms"]
    wholes = []
    for core in banks.data(domain)["families"][family][split]:
        way, hole = ("ask", "{q}") if core.startswith("? ") else ("do", "{vp}")
        inner = "".join(
            f"(?:{re.escape(banks.lemma(text))})?" if moves else re.escape(banks.lemma(text))
            for text, moves in wording.segments(core.removeprefix("? "))
        )
        for register in banks.REGISTERS:
            for form in forms[register][way][split]:
                before, after = form.split(hole)
                wholes.append(re.escape(banks.lemma(before)) + inner + re.escape(banks.lemma(after)))
    return re.compile("|".join(wholes))


@pytest.mark.parametrize("domain", NAMES)
def test_no_test_request_can_be_made_on_the_train_side(domain: str) -> None:
    """The sentence that holds a test core is in no way a sentence of the train grammar, and the other way round."""
    for family in domains[domain].families:
        train = grammar(domain, family, "train")
        for sentence in wording.skeletons(domain, family, "test"):
            assert not train.fullmatch(banks.lemma(sentence)), sentence
        own = next(iter(wording.skeletons(domain, family, "train")))
        assert train.fullmatch(banks.lemma(own))  # the grammar does take what the train side makes


@pytest.mark.parametrize("domain", NAMES)
def test_train_draws_hold_no_word_of_another_split(domain: str) -> None:
    here = domains[domain]
    names, unfair = list(here.families), 0
    for n in range(60):
        task = here.task(names[n % len(names)], n, split="train")
        kinds = random_kinds(rng_for("train words", domain, n), 4, held_out.train_kinds())
        try:
            drawn = draw(here, task, kinds, n, strict=False)
        except CannotPerturb:  # some random stacks of four are not fair
            unfair += 1
            continue
        held_out.check_drawn(drawn)
        check_words(drawn.layers, domain)
    assert unfair <= 3


def test_held_out_kinds_and_test_words_are_refused_for_training() -> None:
    poi = domains["poi"]
    assert len(perturbations.names()) == 60
    assert len(held_out.HELD_OUT) == 16
    assert set(perturbations.names()) >= held_out.HELD_OUT
    for kind in held_out.HELD_OUT:
        with pytest.raises(NotForTraining, match="held out"):
            held_out.check_kinds([kind])
    held_out.check_kinds(held_out.train_kinds())
    drawn = draw(poi, poi.task("book_visit", 3), ["semantic_rename", "transient_error", "paraphrase"], 3)
    with pytest.raises(NotForTraining, match="split 'test'"):
        held_out.check_drawn(drawn)
    for layer in drawn.layers:
        with pytest.raises(NotForTraining, match=f"{layer.kind}.*held out"):
            check_words((layer,), "poi")
    clean = load_layers([{"kind": "transient_error", "tools": ["reserve"], "times": 1, "text": "Oh dear."}])
    check_words(clean, "poi")


# ---------------------------------------------------------------- true


@pytest.mark.parametrize("domain", NAMES)
def test_requests_give_every_detail_and_keep_what_is_withheld(domain: str) -> None:
    here = domains[domain]
    for family in here.families:
        for n in range(12):
            split = SPLITS[n % 3]
            task = here.task(family, n, split=split)
            text = wording.say(task, here, rng_for("say", domain, family, n), banks.REGISTERS, moved=n % 4)
            assert text is not None, (family, n)
            assert wording.keeps(text, here.families[family], task), text
            assert "{" not in text
            assert "[" not in text


@pytest.mark.parametrize("domain", NAMES)
def test_one_entry_stands_for_one_thing(domain: str) -> None:
    """Within a domain no word is another name for two things, and no action for two."""
    for sort in ("words", "actions"):
        owner: dict[str, str] = {}
        for word, by_split in banks.data(domain)[sort].items():
            for text in said(list(by_split.values())):
                assert owner.setdefault(text, word) == word, text


def test_erased_names_in_training_are_words_of_no_bank() -> None:
    rng, known = Random(5), set[str]().union(*layer_words().values())
    made = [_added_names.meaningless(rng) for _ in range(20_000)]
    assert len(set(made)) > 19_000
    assert not known.intersection(part for word in made for part in word.split("_"))
    seen = set[str]()
    for n in range(60):
        here = domains[NAMES[n % len(NAMES)]]
        task = here.task(list(here.families)[n % len(here.families)], n, split="train")
        drawn = draw(here, task, ["identity_erasure"], n, severity=5)
        check_words(drawn.layers, here.name)
        seen |= {tool.name for tool in drawn.certificate.gold.session.tools()}
    assert any(name.startswith(_added_names.ONSETS) for name in seen)


def test_what_layers_add_has_many_names_in_training_and_its_own_elsewhere() -> None:
    made: dict[str, set[str]] = {split: set() for split in SPLITS}
    poi, kinds = domains["poi"], {"confirm_before_write": "param", "verification_code": "issuer", "stale_read": "param"}
    for split in SPLITS:
        for n in range(30):
            for kind, field in kinds.items():
                drawn = draw(poi, poi.task("book_visit", n, split=split), [kind], n, severity=3)
                made[split].add(getattr(drawn.layers[0], field))
    own = {split: set(words) for split, words in layer_words().items()}
    assert made["dev"] <= own["dev"]
    assert made["test"] <= own["test"]
    assert len(made["train"] - own["train"]) > 40
    assert made["train"] & own["train"]
    assert any(name.startswith(_added_names.ONSETS) for name in made["train"])
    assert len({banks.any_two_words(Random(n)) for n in range(300)}) > 290


# ---------------------------------------------------------------- made


def test_the_data_is_what_the_generator_makes() -> None:
    script = (
        "import sys; sys.path.insert(0, 'banks'); import make; data, problems = make.make(make.SEED)\n"
        "assert not problems.texts, problems.texts\n"
        "for name, part in data.items():\n"
        "    assert (make.OUT / f'{name}.json').read_text(encoding='utf-8') == make.written(part), name\n"
        "assert {p.stem for p in make.OUT.glob('*.json')} == set(data)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_desks_and_requests_are_what_the_generator_compiles() -> None:
    script = (
        "import sys; sys.path.insert(0, 'banks'); import make; data = make.compiled()\n"
        "paths = [path for part in make.COMPILED for path in make.OUT.parent.glob(f'{part}/*.json')]\n"
        "found = {f'{path.parent.name}/{path.name}': path.read_text(encoding='utf-8') for path in paths}\n"
        "assert found == data, [name for name in {*found, *data} if found.get(name) != data.get(name)]\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_bad_banks_are_told_with_file_line_and_remedy(tmp_path: Path) -> None:
    """Of one domain's bank; that those of the others are missing is told as well."""
    for name in ("make.py", "common.yaml", "phrases.yaml", "poi.yaml"):
        (tmp_path / name).write_text((ROOT / "banks" / name).read_text(encoding="utf-8"), encoding="utf-8")
    poi = (tmp_path / "poi.yaml").read_text(encoding="utf-8")

    def told(text: str) -> str:
        (tmp_path / "poi.yaml").write_text(text, encoding="utf-8")
        command = [sys.executable, str(tmp_path / "make.py"), "--check"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert ran.returncode in (1, 2)
        assert "Traceback" not in ran.stderr
        return ran.stderr

    complaints = told(poi.replace("  find_places: [", "  find_placez: [", 1))
    assert re.search(r"poi\.yaml:\d+: tools\.find_places: expected \[action, word\]", complaints)
    assert re.search(r"poi\.yaml:\d+: tools\.find_placez: poi has no such tool", complaints)
    assert "banks/retail.yaml: is missing; every domain of the package has a bank" in complaints
    assert re.search(
        r"poi\.yaml:1: the key 'tools' appears twice|poi\.yaml:\d+: the key 'tools'",
        told(poi + "\ntools: {}\n"),
    )
    assert re.search(r"poi\.yaml:\d+: the alias \*a is not allowed; write", told(poi + "\nmore: *a\n"))


def test_data_is_json_of_texts(name: str) -> None:
    data = banks.data(name)
    assert json.loads(json.dumps(data)) == data
    assert all(text.strip() == text and text for _, by_split in dealt(data) for text in banks.every_text(by_split))
