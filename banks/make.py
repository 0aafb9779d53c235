"""Deals what people wrote in banks/*.yaml to the splits and writes the frozen data that the package carries.

Compiles on the way what domains and layers are made of: banks/desks, banks/requests and banks/layers.

The same seed and the same files give the same bytes. An entry is dealt by what it says, not by where it stands: the
same entry in two lists goes to the same split.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.base.yaml_files import Document, read
from crosswind.core.flow import rng_for
from crosswind.core.registry import domains
from crosswind.core.types import SPLITS, Split
from crosswind.domains.requests import Requests
from crosswind.words import wording
from crosswind.words.banks import REGISTERS, lemma
from crosswind.words.dealing import SEED, SORTS, BankSources, Dealer, Dealt, Problems, layer_words

HERE = Path(__file__).parent
OUT = HERE.parent / "src" / "crosswind" / "data" / "banks"
COMPILED = ("desks", "layers", "requests")  # folders whose files are data as they stand, and are not dealt

# the least number of entries in each split
LEAST = {
    "actions": 6, "words": 4, "qualifiers": 3, "descriptions": 3, "nouns of distractors": 10, "fields": 2, "cores": 4,
    "sentences": 2, "labels": 1, "forms": 3, "openers": 15, "closers": 15, "asides": 30, "distractors": 15,
    "lookalikes": 8, "extras": 20, "endings": 15, "homophones": 20, "interface": 2,
}  # fmt: skip
# kind of text -> the holes that each of its wordings has
KINDS_OF_PHRASES: dict[str, tuple[str, ...]] = {
    "unavailable": (), "timeout": (), "gone": (), "successor": ("new",), "moved": ("new",), "rate_limited": ("wait",),
    "disabled": (), "bad_code": ("issuer",), "bad_ticket": ("ticket",), "bad_confirmation": ("param",),
    "log_hint": ("log",), "log_doc": (), "confirm_doc": ("param",), "confirm_next": ("param",),
    "page_doc": ("size", "following", "param"), "code_doc": ("issuer", "param"), "issue_doc": ("tool",),
    "fresh_doc": ("param",), "wait_doc": (), "ticket_second": ("first", "ticket"), "ticket_first": ("second", "ticket"),
    "ticket_only": ("ticket",), "lookup_doc": (), "null_doc": ("tool",), "source_doc": ("tool",),
    "prepare_doc": ("next",), "complete_doc": ("first",), "part_doc": ("tool",), "merged_doc": (),
    "records_win": ("label", "who"), "source_wins": ("right", "wrong"), "rule_latest": ("slot",),
    "rule_spare": ("slot", "n", "need"), "rule_surcharge": ("fee", "n"), "rule_strict": (), "retired_notice": (),
    "change_of_mind": ("label", "value"), "either": ("a", "b"), "vague": ("label",), "injection": ("tool", "args"),
}  # fmt: skip
WORDINGS = 20


class Sources(BankSources):
    """The YAML files of the package, taken apart into lists that are dealt."""

    readme = "banks/README.md"

    def __init__(self, seed: int) -> None:
        names = sorted(p.stem for p in HERE.glob("*.yaml") if p.stem not in ("common", "phrases"))
        super().__init__({n: (domains[n], read(HERE / f"{n}.yaml")) for n in names if n in domains}, LEAST, whole=True)
        self.seed = seed
        self.common, self.phrases = read(HERE / "common.yaml"), read(HERE / "phrases.yaml")
        for n in domains.names():
            if n not in names and not domains.origin(n):
                self.problems.texts.append(f"banks/{n}.yaml: is missing; every domain of the package has a bank")
        for n in names:
            if n not in domains:
                self.problems.add(read(HERE / f"{n}.yaml"), (), f"there is no domain {n!r}; rename the file")

    # -- common

    def make_common(self, words: dict[tuple[str, ...], Dealt]) -> dict[str, Any]:
        document = self.common
        out: dict[str, Any] = {}
        out["qualifiers"] = {sort: words["qualifiers", sort] for sort in SORTS}
        for sort in SORTS:
            self.enough(document, ("qualifiers", sort), words["qualifiers", sort], "qualifiers")
        plain = Dealer("interface", self.seed)
        for word in self.part(document, "interface"):
            plain.add((word,), self.texts(document, "interface", word))
        out["interface"] = {word: lists for (word,), lists in plain.deal().items()}
        for word, lists in out["interface"].items():
            self.enough(document, ("interface", word), lists, "interface")
        forms = Dealer("forms", self.seed)
        for register in REGISTERS:
            for way, hole in (("do", "{vp}"), ("ask", "{q}")):
                entries = self.texts(document, "forms", register, way)
                for i, entry in enumerate(entries):
                    if entry.count(hole) != 1 or re.findall(r"\{\w+\}", entry) != [hole]:
                        self.problems.add(document, ("forms", register, way, i), f"expected {hole} once: {entry!r}")
                forms.add((register, way), entries)
        dealt = forms.deal()
        out["forms"] = {r: {w: dealt[r, w] for w in ("do", "ask")} for r in REGISTERS}
        for (register, way), lists in dealt.items():
            self.enough(document, ("forms", register, way), lists, "forms")
        for name in ("openers", "closers", "asides", "extras", "endings"):
            dealer = Dealer(name, self.seed)
            dealer.add((name,), self.texts(document, name))
            out[name] = dealer.deal()[name,]
            self.enough(document, (name,), out[name], name)
        out["distractors"] = self._records(document, ("distractors",), "action", "distractors")
        out["lookalikes"] = {
            way: self._records(document, ("lookalikes", way), "affix", "lookalikes") for way in ("reads", "writes")
        }
        slips = Dealer("homophones", self.seed)
        slips.add(("homophones",), list(self.part(document, "homophones").items()))
        slips.said = lambda pair: str(pair[0])
        dealt_slips = slips.deal()["homophones",]
        self.enough(document, ("homophones",), dealt_slips, "homophones")
        out["homophones"] = {s: dict(dealt_slips[s]) for s in SPLITS}
        out["phrases"] = self._phrases()
        out["lexicon"] = _lexicon(words)
        return out

    def _records(self, document: Document, place: tuple[str, ...], key: str, sort: str) -> Dealt:
        dealer = Dealer(".".join(place), self.seed)
        dealer.said = lambda record: str(record[key])
        records = []
        for i, record in enumerate(self.part(document, *place, sort=list)):
            if not isinstance(record, dict) or not {key, "doc"} <= set(record):
                self.problems.add(document, (*place, i), f"expected a mapping with {key} and doc")
            else:
                records.append(record)
        dealer.add(place, records)
        dealt = dealer.deal()[place]
        self.enough(document, place, dealt, sort)
        return dealt

    def _phrases(self) -> dict[str, Any]:
        document, dealer = self.phrases, Dealer("phrases", self.seed)
        data = document.data if isinstance(document.data, dict) else {}
        for kind, holes in KINDS_OF_PHRASES.items():
            entry = data.get(kind)
            if not isinstance(entry, dict) or not ({"parts", "list"} & set(entry)):
                self.problems.add(document, (kind,), "is missing or has neither parts nor list; see banks/README.md")
                continue
            if sorted(entry.get("holes", [])) != sorted(holes):
                self.problems.add(document, (kind, "holes"), f"expected the holes {list(holes)}")
            parts = entry["parts"] if "parts" in entry else [entry["list"]]
            for i, part in enumerate(parts):
                dealer.add((kind, str(i)), [str(p) for p in part])
        dealt = dealer.deal()
        out: dict[str, Any] = {}
        for (kind, nth), lists in dealt.items():
            for split in SPLITS:
                out.setdefault(kind, {s: [] for s in SPLITS})[split].insert(int(nth), lists[split])
        for kind, by_split in out.items():
            for split in SPLITS:
                made = {lemma(" ".join(p)) for p in product(*by_split[split])}
                if len(made) < WORDINGS:
                    self.problems.add(document, (kind,), f"makes {len(made)} wordings in {split}, {WORDINGS} needed")
                for parts in product(*by_split[split]):
                    found = sorted(re.findall(r"\{(\w+)\}", " ".join(parts)))
                    if found != sorted(KINDS_OF_PHRASES[kind]):
                        self.problems.add(document, (kind,), f"wrong holes in {' '.join(parts)!r}: {found}")
                        break
        return out

    # -- words

    def deal_words(self) -> dict[tuple[str, ...], Dealt]:
        """All actions and words of all files; ("words", word) -> entries by split."""
        merged: dict[tuple[str, ...], list[str]] = {}
        for document in (self.common, *(document for _, document in self.banks.values())):
            for sort in ("actions", "words"):
                for word in self.part(document, sort) if sort in (document.data or {}) else {}:
                    entries = merged.setdefault((sort, str(word)), [])
                    for entry in self.texts(document, sort, word):
                        if lemma(entry) == lemma(word):
                            self.problems.add(document, (sort, word), f"{entry!r} is the word itself; drop it")
                        elif lemma(entry) not in map(lemma, entries):
                            entries.append(entry)
        dealer = Dealer("words", self.seed)
        dealer.pinned = {lemma(word): split for split, words in layer_words().items() for word in sorted(words)}
        for sort in SORTS:
            dealer.add(("qualifiers", sort), self.texts(self.common, "qualifiers", sort))
        for name, entries in merged.items():
            dealer.add(name, entries)
        return dealer.deal()


def _lexicon(words: Mapping[tuple[str, ...], Dealt]) -> dict[str, Any]:
    """Every word of every list -> what else says the same, for tools that no bank knows; words of two lists are out."""
    owner: dict[str, tuple[str, ...] | None] = {}
    for name, dealt in words.items():
        if name[0] == "qualifiers":
            continue
        for entry in {name[1], *(e for s in SPLITS for e in dealt[s])}:
            owner[entry] = None if entry in owner else name
    lists = {".".join(name): dealt for name, dealt in words.items() if name[0] != "qualifiers"}
    return {"of": {entry: ".".join(name) for entry, name in sorted(owner.items()) if name}, "lists": lists}


def make(seed: int) -> tuple[dict[str, Any], Problems]:
    """The data, file by file, and all that is wrong with the sources."""
    sources = Sources(seed)
    words = sources.deal_words()
    texts = sources.deal_texts()
    out: dict[str, Any] = {"common": sources.make_common(words)}
    for name in sources.banks:
        out[name] = sources.make_domain(name, words, texts)
    return out, sources.problems


def compiled() -> dict[str, str]:
    """Desks, requests and the words of layers as JSON. Asks no domain, since domains are made of what this writes."""
    out = {}
    for path in sorted(path for folder in COMPILED for path in HERE.glob(f"{folder}/*.yaml")):
        document = read(path)
        if path.parent.name == "requests":
            Requests.of(document.data, document.where)
        out[f"{path.parent.name}/{path.stem}.json"] = json.dumps(document.data, indent=0, ensure_ascii=False) + "\n"
    return out


def written(data: Any) -> str:
    return json.dumps(data, indent=0, ensure_ascii=False, sort_keys=True) + "\n"


def save(data: Mapping[str, Any]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.json"):
        old.unlink()
    for name, part in data.items():
        (OUT / f"{name}.json").write_text(written(part), encoding="utf-8")


def save_compiled() -> None:
    for folder in COMPILED:
        for old in OUT.parent.glob(f"{folder}/*.json"):
            old.unlink()
    for name, text in compiled().items():
        path = OUT.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def sample(name: str, count: int, split: Split) -> None:
    """Print queries of one domain."""
    domain = domains[name]
    for family in domain.families.values():
        print(f"\n## {family.name}")
        for n in range(count):
            task = domain.task(family.name, n, split=split)
            register = REGISTERS[n % len(REGISTERS)]
            text = wording.say(task, domain, rng_for("sample", name, family.name, n), (register,), moved=n % 4)
            print(f"- ({register}) {text}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Deal the banks to the splits and write the package's data.")
    parser.add_argument("--check", action="store_true", help="read everything, say what is wrong, write nothing")
    parser.add_argument("--draft", action="store_true", help="write what there is even if something is wrong")
    parser.add_argument("--sample", metavar="DOMAIN", help="print queries made from the written data of a domain")
    parser.add_argument("--each", type=int, default=12, help="queries per family with --sample")
    parser.add_argument("--split", default="test", choices=SPLITS)
    parser.add_argument("--count", action="store_true", help="print entries per concept and split")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    if given.sample:
        sample(given.sample, given.each, given.split)
        return 0
    if given.check:
        compiled()
    else:
        save_compiled()
    data, problems = make(given.seed)
    for text in problems.texts:
        print(text, file=sys.stderr)
    if given.count:
        for name, part in data.items():
            for word, dealt in (part.get("words", {}) | part.get("actions", {})).items():
                print(name, word, *(len(dealt[s]) for s in SPLITS))
    if problems.texts:
        print(f"{len(problems.texts)} problems", file=sys.stderr)
    if not given.check and (given.draft or not problems.texts):
        save(data)
        print(f"wrote {len(data)} files to {OUT.relative_to(HERE.parent)}")
    return 1 if problems.texts else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CrosswindError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
