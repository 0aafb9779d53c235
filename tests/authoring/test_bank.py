"""The word bank of a plug-in: which kinds it opens, how it is dealt, and what is said of a bad one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind import CannotPerturb, audit_kind, draw
from crosswind.authoring import plugins
from crosswind.authoring.new import write
from crosswind.base.errors import BadFile
from crosswind.core.perturbation import SEVERITIES
from crosswind.core.registry import domains
from crosswind.core.types import SPLITS
from crosswind.words import banks

OPENED = {
    "description_rewrite": SEVERITIES,
    "entity_reskin": SEVERITIES,
    "paraphrase": SEVERITIES,
    "semantic_trap": (2, 3, 4, 5),  # at 1 it swaps two names, and the lexicon happens to know `find` and `lend`
}
LIBRARY = Path(__file__).resolve().parents[2] / "examples" / "library.yaml"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is gone after it."""
    before = set(domains.names())
    monkeypatch.setattr(plugins, "_loaded", {})
    yield
    for name in set(domains.names()) - before:
        domains.remove(name)
        banks.bring(name, {})


def template(folder: Path, name: str) -> Path:
    """The bank that `crosswind new domain` writes beside its domain."""
    return next(path for path in write("domain", name, folder) if path.name.endswith(".bank.yaml"))


@pytest.mark.parametrize(("kind", "severities"), OPENED.items(), ids=OPENED)
def test_a_bank_opens_kinds_that_do_not_apply_without_it(
    tmp_path: Path, kind: str, severities: tuple[int, ...]
) -> None:
    template(tmp_path, "shed_a")
    template(tmp_path, "shed_b").unlink()
    for name in ("shed_a", "shed_b"):
        plugins.load(tmp_path / f"{name}.py")
    assert audit_kind(kind, domains["shed_a"]) == []
    for severity in SEVERITIES:
        complaints = audit_kind(kind, domains["shed_a"], severities=(severity,))
        assert complaints == [], severity
        complaints = audit_kind(kind, domains["shed_b"], severities=(severity,))
        assert [complaint.law for complaint in complaints] == ["applies"] * (severity in severities), severity


def test_words_are_dealt_to_splits_and_keep_the_split_that_ours_have(tmp_path: Path) -> None:
    bank = template(tmp_path, "shed_c")
    theirs = banks.data("common")["lexicon"]["lists"]["words.rating"]  # dealt before anybody wrote this bank
    words = ", ".join(theirs[split][0] for split in SPLITS)
    bank.write_text(bank.read_text().replace("words:\n", f"words:\n  esteem_of_it: [{words}]\n", 1))
    bank.write_text(bank.read_text().replace("rating: [rating, measure]", "rating: [esteem_of_it, measure]"))
    plugins.load(tmp_path / "shed_c.py")
    data = banks.data("shed_c")
    assert data["words"]["esteem_of_it"] == {split: [theirs[split][0]] for split in SPLITS}
    dealt: list[Any] = [*data["words"].values(), *data["actions"].values(), *data["descriptions"].values()]
    for lists in dealt:
        seen = [banks.lemma(entry) for split in SPLITS for entry in lists[split]]
        assert len(seen) == len(set(seen))
        assert all(lists[split] for split in SPLITS)


def test_an_attribute_of_the_class_does_as_well_and_a_yaml_domain_has_a_file(tmp_path: Path) -> None:
    template(tmp_path, "shed_d").unlink()
    file = tmp_path / "shed_d.py"
    words = '    bank = {"descriptions": {"lend_item": ["Loan one out.", "Give one away for a time.", "Lend out."]}}\n'
    file.write_text(file.read_text().replace('    name = "shed_d"\n', f'    name = "shed_d"\n{words}'))
    plugins.load(file)
    assert set(banks.data("shed_d")["descriptions"]) == {"lend_item"}
    (tmp_path / "library.yaml").write_text(LIBRARY.read_text())
    cores = "".join(
        f"    - {text}\n"
        for text in (
            "tell me how many pages the best-rated {genre} book at {branch} has",
            "find the {genre} book with the top rating in {branch} and give its number of pages",
            '"? how long the highest-rated {genre} book of {branch} is, in pages"',
        )
    )
    (tmp_path / "library.bank.yaml").write_text(f"families:\n  best_pages:\n{cores}")
    plugins.load(tmp_path / "library.yaml")
    library = domains["library"]
    drawn = draw(library, "best_pages", ["paraphrase:1"], seed=1)
    assert drawn.certificate.task.brief.query != drawn.base.brief.query
    with pytest.raises(CannotPerturb, match="it needs a bank"):
        draw(library, "renew", ["paraphrase:1"], seed=1)


BAD = [
    ("tools:", "toolz:", r":\d+: toolz: no such part; did you mean tools\?"),
    ("[find, lent_item]", "[findd, lent_item]", r":\d+: tools.find_items: 'findd' stands under no actions"),
    ("  item_details: [show", "  item_detail: [show", r"tools.item_detail: shed_x has no such tool"),
    (", hand_out, entrust, let_have, advance, supply", "", r"actions.lend: every split needs 1 entry, there are"),
    ("[ at {shed}] costs", "[ at {sheds}] costs", r"families.best_fee.1: expected every detail once \(kind, shed\)"),
    ("  best_fee:", "  best_feee:", r"families.best_feee: shed_x has no such family; did you mean best_fee\?"),
    (", mixer]", "]", r"fields.0: expected a list of 4 words, one for each kind"),
    ("roles: ", "x: {}  # ", r"no such part|not valid YAML"),
    ("- gift card", "- 7", r"distractors.0: expected text, got 7; put it in quotes"),
]


@pytest.mark.parametrize(("old", "new", "words"), BAD)
def test_a_bad_bank_is_told_with_file_and_line_and_nothing_stays(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    bank = template(tmp_path, "shed_x")
    text = bank.read_text()
    assert old in text
    bank.write_text(text.replace(old, new, 1))
    with pytest.raises(BadFile) as raised:
        plugins.load(tmp_path / "shed_x.py")
    assert re.search(words, str(raised.value)), str(raised.value)
    assert all(line.startswith(str(bank)) for line in str(raised.value).splitlines())
    assert "shed_x" not in domains


def test_a_bank_is_no_plugin_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="this is a word bank, which is loaded with its domain"):
        plugins.load(template(tmp_path, "shed_y"))
