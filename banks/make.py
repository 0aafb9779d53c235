"""Deals what people wrote in banks/*.yaml to the splits and writes the frozen data that the package carries.

Compiles the requests of each domain, banks/requests/*.yaml, on the way.

The same seed and the same files give the same bytes. An entry is dealt by what it says, not by where it stands: the
same entry in two lists goes to the same split.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.base.yaml_files import Document, read
from crosswind.core.flow import digest, rng_for
from crosswind.core.registry import domains
from crosswind.core.types import SPLITS, Split
from crosswind.domains.requests import Requests
from crosswind.words import wording
from crosswind.words.banks import KINDS_OF_PHRASES, REGISTERS, SORTS, lemma
from crosswind.words.held_out import layer_words

HERE = Path(__file__).parent
OUT = HERE.parent / "src" / "crosswind" / "data" / "banks"
REQUESTS = HERE.parent / "src" / "crosswind" / "data" / "requests"
SEED = 7

# the least number of entries in each split
LEAST = {
    "actions": 6, "words": 4, "qualifiers": 3, "descriptions": 3, "nouns of distractors": 10, "fields": 2, "cores": 4,
    "sentences": 2, "labels": 1, "forms": 3, "openers": 15, "closers": 15, "asides": 30, "distractors": 15,
    "lookalikes": 8, "extras": 20, "endings": 15, "homophones": 20, "interface": 2,
}  # fmt: skip
WORDINGS = 20
Dealt = dict[str, list[Any]]


class Problems:
    """What is wrong, gathered, so that one run tells all of it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, document: Document, place: Sequence[str | int], text: str) -> None:
        self.texts.append(str(document.error(place, text)))


class Dealer:
    """Deals the lists of one sort of entry. What is the same after stripping goes to one split wherever it stands."""

    def __init__(self, sort: str, seed: int) -> None:
        self.sort, self.seed = sort, seed
        self.lists: dict[tuple[str, ...], list[Any]] = {}
        self.said: Callable[[Any], str] = str
        self.pinned: dict[str, Split] = {}  # entries whose split is settled elsewhere

    def add(self, name: tuple[str, ...], entries: list[Any]) -> None:
        self.lists[name] = entries

    def deal(self) -> dict[tuple[str, ...], Dealt]:
        where: dict[str, list[tuple[str, ...]]] = {}
        count = {name: dict.fromkeys(SPLITS, 0) for name in self.lists}
        to: dict[str, Split] = {}
        for name, entries in self.lists.items():
            for entry in entries:
                where.setdefault(lemma(self.said(entry)), []).append(name)
        to.update({e: self.pinned[e] for e in where if e in self.pinned})
        for entry in to:
            for name in where[entry]:
                count[name][to[entry]] += 1
        order = sorted(set(where) - set(to), key=lambda e: (-len(where[e]), digest("deal", self.seed, self.sort, e)))
        for entry in order:
            ranked = sorted(SPLITS, key=lambda s: digest("tie", self.seed, self.sort, entry, s))
            lists = where[entry]
            to[entry] = min(ranked, key=lambda s: (max(count[n][s] for n in lists), sum(count[n][s] for n in lists)))
            for name in lists:
                count[name][to[entry]] += 1
        out: dict[tuple[str, ...], Dealt] = {}
        for name, entries in self.lists.items():
            out[name] = {s: [e for e in entries if to[lemma(self.said(e))] == s] for s in SPLITS}
        return out


class Sources:
    """The YAML files, taken apart into lists that are dealt."""

    def __init__(self, seed: int, only: str | None = None) -> None:
        self.problems, self.seed = Problems(), seed
        self.common, self.phrases = read(HERE / "common.yaml"), read(HERE / "phrases.yaml")
        names = sorted(p.stem for p in HERE.glob("*.yaml") if p.stem not in ("common", "phrases"))
        self.domains = {n: read(HERE / f"{n}.yaml") for n in names if n in domains}
        self.only = only
        for n in domains.names():
            if n not in names and not domains.origin(n):
                self.problems.texts.append(f"banks/{n}.yaml: is missing; every domain of the package has a bank")
        for n in names:
            if n not in domains:
                self.problems.add(read(HERE / f"{n}.yaml"), (), f"there is no domain {n!r}; rename the file")

    def part(self, document: Document, *place: str, sort: type = dict) -> Any:
        """A part of a file, or an empty one with a complaint."""
        here = document.data if isinstance(document.data, dict) else {}
        for i, step in enumerate(place):
            if not isinstance(here, dict) or step not in here:
                self.problems.add(document, place[:i], f"{step!r} is missing; see banks/README.md")
                return sort()
            here = here[step]
        if not isinstance(here, sort):
            self.problems.add(document, place, f"expected a {'list' if sort is list else 'mapping'}")
            return sort()
        return here

    def texts(self, document: Document, *place: str) -> list[str]:
        out = []
        for i, entry in enumerate(self.part(document, *place, sort=list)):
            if isinstance(entry, str) and entry.strip():
                out.append(entry.strip())
            else:
                self.problems.add(document, (*place, i), f"expected text, got {entry!r}; put it in quotes")
        seen: dict[str, str] = {}
        for i, entry in enumerate(out):
            key = lemma(entry)
            if key in seen:
                self.problems.add(document, (*place, i), f"{entry!r} is the same entry as {seen[key]!r}; drop one")
            seen[key] = entry
        return [e for i, e in enumerate(out) if lemma(e) not in map(lemma, out[:i])]

    def enough(self, document: Document, place: tuple[str, ...], dealt: Dealt, sort: str) -> None:
        least = LEAST[sort]
        if short := [s for s in SPLITS if len(dealt[s]) < least]:
            have = ", ".join(f"{len(dealt[s])} {s}" for s in SPLITS)
            text = f"every split needs {least} entries, there are {have} (short: {', '.join(short)}); add some"
            self.problems.add(document, place, text)

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
        for document in (self.common, *self.domains.values()):
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

    # -- domains

    def deal_texts(self) -> dict[tuple[str, ...], Dealt]:
        """Requests, role sentences and descriptions of all domains, dealt together; (domain, sort, ...) -> entries."""
        dealer = Dealer("texts", self.seed)
        for name, document in self.domains.items():
            domain = domains[name]
            for spec in domain.world_class.specs:
                dealer.add((name, "descriptions", spec.name), self.texts(document, "descriptions", spec.name))
            for family in domain.families.values():
                cores = self.texts(document, "families", family.name)
                for i, core in enumerate(cores):
                    if why := wording.core_problem(core, family):
                        self.problems.add(document, ("families", family.name, i), f"{why}: {core!r}")
                sound = [c for c in cores if not wording.core_problem(c, family)]
                dealer.add((name, "families", family.name), sound)
            for key in dict.fromkeys(k for f in domain.families.values() for k in f.details):
                for way in ("sentences", "labels"):
                    entries = self.texts(document, "roles", key, way)
                    for i, entry in enumerate(entries):
                        if re.findall(r"\{\w+\}", entry) != [f"{{{key}}}"]:
                            self.problems.add(document, ("roles", key, way, i), f"expected {{{key}}} once: {entry!r}")
                    dealer.add((name, "roles", key, way), entries)
        return dealer.deal()

    def make_domain(
        self, name: str, words: dict[tuple[str, ...], Dealt], texts: dict[tuple[str, ...], Dealt]
    ) -> dict[str, Any]:
        document, domain = self.domains[name], domains[name]
        out: dict[str, Any] = {"words": {}, "actions": {}}
        specs = {spec.name: spec for spec in domain.world_class.specs}

        def need(sort: str, word: str, place: tuple[str, ...]) -> None:
            if (sort, word) not in words:
                self.problems.add(document, place, f"{word!r} stands under no {sort}; add it there")
                return
            out[sort][word] = words[sort, word]
            self.enough(document, (sort, word), words[sort, word], sort)

        tools = self.part(document, "tools")
        pairs: dict[tuple[str, ...], str] = {}
        for tool in tools:
            if tool not in specs:
                self.problems.add(document, ("tools", tool), f"{name} has no such tool; leave it out")
        for tool in specs:
            pair = tools.get(tool)
            if not (isinstance(pair, list) and len(pair) == 2):
                self.problems.add(document, ("tools", tool), "expected [action, word]")
                continue
            if tuple(pair) in pairs:
                self.problems.add(document, ("tools", tool), f"has the pair of {pairs[tuple(pair)]}; change one")
            pairs[tuple(pair)] = tool
            need("actions", pair[0], ("tools", tool))
            need("words", pair[1], ("tools", tool))
        out["tools"] = {t: tools[t] for t in specs if t in tools}
        keys = self.part(document, "keys")
        for key in dict.fromkeys((*wording.keys_of(domain), *keys)):
            pair = keys.get(key)
            if not (isinstance(pair, list) and len(pair) == 2) or pair[1] not in SORTS:
                self.problems.add(document, ("keys", key), f"expected [word, sort], sort one of {', '.join(SORTS)}")
                continue
            need("words", pair[0], ("keys", key))
        out["keys"] = {k: v for k, v in keys.items() if isinstance(v, list) and len(v) == 2 and v[0] in out["words"]}
        self._apart(document, out["words"])
        nouns = self.part(document, "nouns")
        wanted = ("thing", "things", "group", "slot", "slots", "who", "booking", "bookings", "need", "fee")
        for noun in wanted:
            if not isinstance(nouns.get(noun), str):
                self.problems.add(document, ("nouns", noun), "is missing")
        out["nouns"] = nouns
        things = Dealer("distractors of " + name, self.seed)
        things.add(("distractors",), self.texts(document, "distractors"))
        out["distractors"] = things.deal()["distractors",]
        self.enough(document, ("distractors",), out["distractors"], "nouns of distractors")
        fields = Dealer("fields", self.seed)
        fields.said = lambda words: " ".join(words)
        fields.add(("fields",), self.part(document, "fields", sort=list))
        out["fields"] = fields.deal()["fields",]
        self.enough(document, ("fields",), out["fields"], "fields")
        sorts = {"descriptions": "descriptions", "families": "cores"}
        for (of, sort, *rest), lists in texts.items():
            if of == name:
                self.enough(document, (sort, *rest), lists, sorts.get(sort) or rest[-1])
                part = out.setdefault(sort, {})
                for key in rest[:-1]:
                    part = part.setdefault(key, {})
                part[rest[-1]] = lists
        return out

    def _apart(self, document: Document, words: Mapping[str, Dealt]) -> None:
        """Within a domain an entry stands for one word."""
        owner: dict[str, str] = {}
        for word, dealt in words.items():
            for entry in (e for s in SPLITS for e in dealt[s]):
                key = lemma(entry)
                if key in owner:
                    text = f"{entry!r} stands for {owner[key]!r} as well; drop it in one of the two"
                    self.problems.add(document, ("words", word), text)
                owner[key] = word


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
    for name in sources.domains:
        out[name] = sources.make_domain(name, words, texts)
    return out, sources.problems


def compiled() -> dict[str, str]:
    """The requests of each domain as JSON. Asks no domain, since domains are made of what this writes."""
    out = {}
    for path in sorted((HERE / "requests").glob("*.yaml")):
        document = read(path)
        requests = Requests(document.data, document.where)
        for role in requests.details:
            requests.words(role)
        for family in requests.families:
            requests.family(family)
        out[path.stem] = json.dumps(document.data, indent=0, ensure_ascii=False) + "\n"
    return out


def written(data: Any) -> str:
    return json.dumps(data, indent=0, ensure_ascii=False, sort_keys=True) + "\n"


def save(data: Mapping[str, Any]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.json"):
        old.unlink()
    for name, part in data.items():
        (OUT / f"{name}.json").write_text(written(part), encoding="utf-8")


def save_requests() -> None:
    REQUESTS.mkdir(parents=True, exist_ok=True)
    for old in REQUESTS.glob("*.json"):
        old.unlink()
    for name, text in compiled().items():
        (REQUESTS / f"{name}.json").write_text(text, encoding="utf-8")


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
        save_requests()
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
