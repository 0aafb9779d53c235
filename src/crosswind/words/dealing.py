"""Turn the word bank that somebody wrote for a domain into one that is dealt to train, dev and test.

An entry is dealt by what it says, not by where it is: the same entry in two lists goes to the same split. The banks
of the package are whole (`banks/make.py`); the bank of a plug-in holds the parts that its author wrote, and a word that
the package has dealt already keeps its split.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile
from crosswind.base.yaml_files import Document, read
from crosswind.core.domain import Domain, Family
from crosswind.core.flow import digest
from crosswind.core.oracle import walk
from crosswind.core.registry import did_you_mean, perturbations
from crosswind.core.types import SPLITS, Split, ToolCall
from crosswind.words import banks, wording
from crosswind.words.banks import lemma

SEED = 7
SORTS = (
    *("id", "measure", "count", "money", "date", "time", "code"),
    *("status", "name", "choice", "text", "source", "target"),
)
PARTS = (
    *("tools", "actions", "words", "keys", "nouns", "descriptions"),
    *("distractors", "fields", "families", "roles"),
)
NOUNS = ("thing", "things", "group", "slot", "slots", "who", "booking", "bookings", "need", "fee")
LEAST: Mapping[str, int] = {
    "nouns of distractors": 4
}  # entries that each split of a plug-in's list needs; 1 by default
Dealt = dict[str, list[Any]]
WORD = re.compile(r"[A-Za-z][A-Za-z ,.'_-]*[a-z.]")  # a word or a sentence, as against a format or a sign


def layer_words() -> dict[Split, set[str]]:
    """Words that perturbations bring along themselves: tables in their modules that are marked by split."""
    out: dict[Split, set[str]] = {split: set() for split in SPLITS}
    for cls in perturbations:
        for table in vars(sys.modules[cls.__module__]).values():
            if isinstance(table, Mapping) and set(table) == set(SPLITS):
                for split in SPLITS:
                    out[split] |= {text for text in banks.every_text(table[split]) if WORD.fullmatch(text)}
    return out


def core_problem(core: str, family: Family) -> str:
    """What is wrong with a core for a family; empty where nothing is."""
    text = core.removeprefix("? ")
    holes = wording.HOLE.findall(text)
    if sorted(holes) != sorted(family.details):
        return f"expected every detail once ({', '.join(family.details)}), got {', '.join(holes) or 'none'}"
    if "[" in wording.SEGMENT.sub("", text) or "]" in wording.SEGMENT.sub("", text):
        return "a bracket is not closed"
    if text[:1] != text[:1].lower() or text.rstrip().endswith((".", "?", "!")):
        return "begin in lower case and leave out the full stop"
    by_reader: dict[int, list[str]] = {}
    for key in holes:
        by_reader.setdefault(id(family.details[key].read), []).append(key)
    keys = list(family.details)
    place = {key: n for n, (part, _) in enumerate(wording.segments(text)) for key in wording.HOLE.findall(part)}
    movable = {n for n, (_, moves) in enumerate(wording.segments(text)) if moves}
    for group in by_reader.values():
        if group != sorted(group, key=keys.index):
            return f"{' and '.join(group)} must stand in the order {', '.join(k for k in keys if k in group)}"
        if len(group) > 1 and len({place[k] for k in group}) > 1 and any(place[k] in movable for k in group):
            return f"put {' and '.join(group)} into one bracket or into none"
    bare = wording.HOLE.sub(" ", text)
    for key, detail in family.details.items():
        if found := list(detail.read(bare)):
            return f"{found[0]!r} would be read as {key}"
    return ""


def keys_of(domain: Domain) -> list[str]:
    """Every parameter and result key that the canonical tools have, as far as solutions and records meet them."""
    out: dict[str, None] = {}
    for spec in domain.world_class.specs:
        out |= dict.fromkeys(spec.params)
    for family in domain.families.values():
        for seed in range(2):
            task = domain.task(family.name, seed)
            results = [step.result for step in walk(domain, task).calls]
            for detail in family.details.values():
                if detail.record and detail.record[1] in task.wanted:
                    call = ToolCall(detail.record[0], {detail.record[1]: task.wanted[detail.record[1]]})
                    results.append(domain.world(task).call(call))
            for result in results:
                for row in result.content if isinstance(result.content, list) else [result.content]:
                    out |= dict.fromkeys(row) if isinstance(row, dict) else {}
    return list(out)


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
        self.pinned: Mapping[str, Split] = {}  # entries whose split is settled elsewhere

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


class BankSources:
    """Banks of domains as they were written, taken apart into lists that are dealt."""

    readme = "docs/banks.md"  # where the form of a bank is explained

    def __init__(self, banks: Mapping[str, tuple[Domain, Document]], least: Mapping[str, int], *, whole: bool) -> None:
        self.problems, self.seed, self.least = Problems(), SEED, least
        self.banks, self.whole = banks, whole  # whole: every part must be there, for every tool, key and family

    def has(self, document: Document, *place: str) -> bool:
        """Does the bank have this part? A whole bank is taken to have every part, so that a missing one is reported."""
        here = document.data
        for step in place:
            if not isinstance(here, dict) or step not in here:
                return self.whole
            here = here[step]
        return True

    def part(self, document: Document, *place: str, sort: type = dict) -> Any:
        """A part of a file, or an empty one with a complaint."""
        here = document.data if isinstance(document.data, dict) else {}
        for i, step in enumerate(place):
            if not isinstance(here, dict) or step not in here:
                if self.whole or i:
                    self.problems.add(document, place[:i], f"{step!r} is missing; see {self.readme}")
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
        least = self.least.get(sort, 1)
        if short := [s for s in SPLITS if len(dealt[s]) < least]:
            have = ", ".join(f"{len(dealt[s])} {s}" for s in SPLITS)
            entries = "1 entry" if least == 1 else f"{least} entries"
            text = f"every split needs {entries}, there are {have} (short: {', '.join(short)}); add some"
            self.problems.add(document, place, text)

    def deal_texts(self, pinned: Mapping[str, Split] | None = None) -> dict[tuple[str, ...], Dealt]:
        """Requests, role sentences and descriptions of all domains, dealt together; (domain, sort, ...) -> entries."""
        dealer = Dealer("texts", self.seed)
        dealer.pinned = pinned or {}
        for name, (domain, document) in self.banks.items():
            for spec in domain.world_class.specs:
                if self.has(document, "descriptions", spec.name):
                    dealer.add((name, "descriptions", spec.name), self.texts(document, "descriptions", spec.name))
            for family in domain.families.values():
                if not self.has(document, "families", family.name):
                    continue
                cores = self.texts(document, "families", family.name)
                for i, core in enumerate(cores):
                    if why := core_problem(core, family):
                        self.problems.add(document, ("families", family.name, i), f"{why}: {core!r}")
                sound = [c for c in cores if not core_problem(c, family)]
                dealer.add((name, "families", family.name), sound)
            for key in dict.fromkeys(k for f in domain.families.values() for k in f.details):
                for way in ("sentences", "labels"):
                    if not self.has(document, "roles", key):
                        continue
                    entries = self.texts(document, "roles", key, way)
                    for i, entry in enumerate(entries):
                        if re.findall(r"\{\w+\}", entry) != [f"{{{key}}}"]:
                            self.problems.add(document, ("roles", key, way, i), f"expected {{{key}}} once: {entry!r}")
                    dealer.add((name, "roles", key, way), entries)
        return dealer.deal()

    def make_domain(
        self, name: str, words: Mapping[tuple[str, ...], Dealt], texts: Mapping[tuple[str, ...], Dealt]
    ) -> dict[str, Any]:
        domain, document = self.banks[name]
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
                if self.has(document, "tools", tool):
                    self.problems.add(document, ("tools", tool), "expected [action, word]")
                continue
            if tuple(pair) in pairs:
                self.problems.add(document, ("tools", tool), f"has the pair of {pairs[tuple(pair)]}; change one")
            pairs[tuple(pair)] = tool
            need("actions", pair[0], ("tools", tool))
            need("words", pair[1], ("tools", tool))
        out["tools"] = {t: tools[t] for t in specs if t in tools}
        keys = self.part(document, "keys")
        for key in dict.fromkeys((*(keys_of(domain) if self.whole else ()), *keys)):
            pair = keys.get(key)
            if not (isinstance(pair, list) and len(pair) == 2) or pair[1] not in SORTS:
                self.problems.add(document, ("keys", key), f"expected [word, sort], sort one of {', '.join(SORTS)}")
                continue
            need("words", pair[0], ("keys", key))
        out["keys"] = {k: v for k, v in keys.items() if isinstance(v, list) and len(v) == 2 and v[0] in out["words"]}
        self._apart(document, out["words"])
        nouns = self.part(document, "nouns")
        for noun in NOUNS if self.whole else nouns:
            if not isinstance(nouns.get(noun), str):
                self.problems.add(document, ("nouns", noun), "is missing")
        out["nouns"] = nouns
        if self.has(document, "distractors"):
            things = Dealer("distractors of " + name, self.seed)
            things.add(("distractors",), self.texts(document, "distractors"))
            out["distractors"] = things.deal()["distractors",]
            self.enough(document, ("distractors",), out["distractors"], "nouns of distractors")
        if self.has(document, "fields"):
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


# ---------------------------------------------------------------- the bank of a plug-in


def bank_file(domain: str, folder: Path) -> Path:
    """Where the bank of a plug-in's domain lies unless its class says otherwise."""
    return folder / f"{domain}.bank.yaml"


def read_bank(domain: Domain, folder: Path | None) -> dict[str, Any]:
    """The dealt bank of a plug-in's domain: of its attribute `bank`, or the file next to it; empty where there is none.

    Raises `BadFile` with everything that is wrong, a line each.
    """
    beside = bank_file(domain.name, folder) if folder is not None else None
    if isinstance(domain.bank, Mapping):
        document = Document(dict(domain.bank), {}, f"{type(domain).__name__}.bank")
    elif domain.bank is not None:
        document = read(domain.bank if folder is None else folder / domain.bank)
    elif beside is not None and beside.is_file():
        document = read(beside)
    else:
        return {}
    sources = _PluginSources(domain, document)
    out = sources.made()
    if sources.problems.texts:
        raise BadFile("\n".join(sources.problems.texts))
    return out


class _PluginSources(BankSources):
    """The bank of one domain from outside: any part may be left out."""

    def __init__(self, domain: Domain, document: Document) -> None:
        super().__init__({domain.name: (domain, document)}, LEAST, whole=False)
        self.domain, self.document = domain, document

    def made(self) -> dict[str, Any]:
        if not isinstance(self.document.data, dict):
            raise self.document.error((), f"expected a word bank, a mapping with some of {', '.join(PARTS)}")
        self._names()
        words, texts = self._words(), self.deal_texts(_ours()[1])
        self._movable()
        return self.make_domain(self.domain.name, words, texts)

    def _names(self) -> None:
        """Refuse parts, tools, families and details that do not exist."""
        known: dict[str, Iterable[str]] = {
            "descriptions": [spec.name for spec in self.domain.world_class.specs],
            "families": self.domain.families,
            "roles": dict.fromkeys(key for family in self.domain.families.values() for key in family.details),
            "nouns": NOUNS,
        }
        for part in self.document.data:
            if part not in PARTS:
                self.problems.add(self.document, (part,), f"no such part; {did_you_mean(str(part), list(PARTS))}")
        for part, names in known.items():
            called = {"descriptions": "tool", "families": "family", "roles": "detail", "nouns": "noun"}[part]
            for name in self.part(self.document, part):
                if name not in names:
                    near = did_you_mean(str(name), list(names))
                    self.problems.add(self.document, (part, name), f"{self.domain.name} has no such {called}; {near}")
        kinds, fields = len(self.domain.kinds()), self.part(self.document, "fields", sort=list)
        if fields and not kinds:
            self.problems.add(self.document, ("fields",), "needs `Domain.kinds`: the words that other fields replace")
        for i, field in enumerate(fields):
            if not isinstance(field, list) or not all(isinstance(w, str) for w in field) or len(field) < kinds:
                self.problems.add(self.document, ("fields", i), f"expected a list of {kinds} words, one for each kind")

    def _words(self) -> dict[tuple[str, ...], Dealt]:
        """Actions and words: those of the package by name, with what the bank says of its own."""
        ours = banks.data("common")["lexicon"]["lists"]
        out: dict[tuple[str, ...], Dealt] = {tuple(name.split(".", 1)): dealt for name, dealt in ours.items()}
        dealer = Dealer("words", self.seed)
        dealer.pinned = settled_words()
        for sort in ("actions", "words"):
            for word in self.part(self.document, sort):
                dealer.add((sort, str(word)), self.texts(self.document, sort, word))
        return out | dealer.deal()

    def _movable(self) -> None:
        """What a request may say apart needs words to say it with."""
        details = {key for family in self.domain.families.values() for key in family.details}
        for name in self.part(self.document, "families"):
            for i, core in enumerate(self.part(self.document, "families", name, sort=list)):
                for key in (k for part in wording.SEGMENT.findall(str(core)) for k in wording.HOLE.findall(part)):
                    if key in details and not self.has(self.document, "roles", key):
                        text = (
                            f"{{{key}}} is in brackets, so it may be said apart; add roles.{key} or drop the brackets"
                        )
                        self.problems.add(self.document, ("families", name, i), text)


def settled_words() -> dict[str, Split]:
    """The splits of all words that the package's banks and perturbations hold, by lemma."""
    return _ours()[0] | {lemma(w): split for split, words in layer_words().items() for w in words}


@lru_cache(maxsize=1)
def _ours() -> tuple[dict[str, Split], dict[str, Split]]:
    """The splits of all words and of all texts in the package's banks, by lemma."""
    words: dict[str, Split] = {}
    texts: dict[str, Split] = {}

    def gather(value: Any, into: dict[str, Split]) -> None:
        if isinstance(value, Mapping) and set(value) == set(SPLITS):
            into.update({lemma(text): split for split in SPLITS for text in banks.every_text(value[split])})
        elif isinstance(value, Mapping):
            for part in value.values():
                gather(part, into)

    for path in files("crosswind").joinpath("data", "banks").iterdir():
        data = banks.data(path.name.removesuffix(".json"))
        for part in ("qualifiers", "words", "actions"):
            gather(data.get(part, {}), words)
        for part in ("descriptions", "families", "roles"):
            gather(data.get(part, {}), texts)
    gather(banks.data("common")["lexicon"]["lists"], words)
    return words, texts
