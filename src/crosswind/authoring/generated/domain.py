"""A generated domain from its name: drawn, declared, checked, and drawn again where it does not pass."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from crosswind.authoring import yaml_domain
from crosswind.authoring.generated.chains import (
    Best,
    Better,
    Chains,
    Compiled,
    Create,
    Dated,
    DraftRequest,
    Given,
    Rows,
    parts,
)
from crosswind.authoring.generated.kept import Kept, keep, recall
from crosswind.authoring.generated.lexicon import Voice, a, capital, lexicon, spoken
from crosswind.authoring.generated.requests import Speaker
from crosswind.authoring.generated.tables import Interface, RedrawNeeded, bank_words
from crosswind.base.errors import BadFile, CannotDraw, CrosswindError, Unfair, UnknownName
from crosswind.base.yaml_files import Document
from crosswind.core.audit import GUESSES, complaints
from crosswind.core.domain import Domain
from crosswind.core.flow import rng_for
from crosswind.core.types import SPLITS, Split
from crosswind.words import banks

NAME = re.compile(r"generated:(?:(train|dev|test)-([A-Za-z0-9][A-Za-z0-9_-]{0,63})|([0-9]{1,18}))")
NUMERAL = re.compile(r"\b(?:one|both|two|first|second)\b", re.IGNORECASE)
HELD = 64  # domains that are held at a time; one that is dropped is made again when it is asked for
QUERIES = 4  # wordings of a family
CORES = 3  # wordings of a family that the bank has for each split
ATTEMPTS = 24
FEWER = 7  # tasks of each family for the laws that look at many, where the world's own tasks were judged by all
TASKS = 3  # of each family that the laws are run on before a domain is handed out
KINDS = ("kinds object", "kinds work", "kinds animal", "kinds plant", "kinds any")  # sections of choices
# What the families of a domain are to do, and in how many calls; the rest are drawn freely.
GOALS = (
    ("tell", range(1, 3)),
    ("money", range(2, 4)),
    ("figure", range(1, 4)),
    ("tell", range(3, 6)),
    ("write", range(2, 5)),
    ("coded", range(2, 6)),
    ("write", range(4, 7)),
    ("tell", range(5, 9)),
    ("write", range(7, 13)),
)

_held: OrderedDict[str, Domain] = OrderedDict()


def load(name: str) -> Domain:
    """The domain that a name stands for. The same name gives the same domain, in every process."""
    if name in _held:
        _held.move_to_end(name)
        return _held[name]
    found = recall(name)
    domain = None if found is None else _read(name, found)
    if found is None or domain is None:
        domain, found = _drawn(name)
        keep(name, found)
    banks.bring(name, found.bank)
    _held[name] = domain
    while len(_held) > HELD:
        banks.forget(_held.popitem(last=False)[0])
    return domain


def _read(name: str, kept: Kept) -> Domain | None:
    """A domain that was kept; None where it is damaged."""
    try:
        return yaml_domain.checked(Document(kept.declared, {}, name))
    except BadFile:
        return None


def parsed(name: str) -> tuple[Split, str]:
    """The split and the seed that a name holds; a seed alone is of the split train."""
    found = NAME.fullmatch(name)
    if not found:
        raise UnknownName(
            f"no domain {name!r}; a generated domain is called generated:SPLIT-SEED, as in generated:train-17, with "
            "a split of train, dev and test and a seed of letters, digits, - and _; generated:17 is short for "
            "generated:train-17"
        )
    split: Split = next((s for s in SPLITS if s == found[1]), "train")
    return split, found[2] or found[3]


def _drawn(name: str) -> tuple[Domain, Kept]:
    """The first of the draws of a name that passes."""
    last: RedrawNeeded | None = None
    for attempt in range(ATTEMPTS):
        try:
            return drawn(name, attempt)
        except RedrawNeeded as error:
            last = error
    raise CrosswindError(f"{name}: none of {ATTEMPTS} draws is fair (the last: {last}); use another seed")


def drawn(name: str, attempt: int) -> tuple[Domain, Kept]:
    """One of the draws of a name, and the same as data. Raises `RedrawNeeded` where a law complains about it."""
    split, seed = parsed(name)
    try:
        draft = Draft(split, rng_for("generated", split, seed, attempt))
        made = Kept(*json.loads(json.dumps([draft.declared(name), draft.bank()])))  # as it is when it was kept
        domain = yaml_domain.checked(Document(made.declared, {}, name))
        for judged in dict.fromkeys((split, "test")):  # the tasks that it is drawn for, and those that are checked
            guesses = GUESSES if judged == split else FEWER  # requests are the same; other names tell little more
            for complaint in complaints(domain, count=TASKS, split=judged, guesses=guesses):  # the first is enough
                raise RedrawNeeded(str(complaint))
        return domain, made
    except (BadFile, CannotDraw, Unfair) as error:
        raise RedrawNeeded(str(error)) from error


def declaration(name: str) -> dict[str, Any]:
    """What a generated domain declares, as a YAML file would hold it."""
    declared: dict[str, Any] = load(name).declared.model_dump(exclude_defaults=True)  # type: ignore[attr-defined]
    return declared


class Draft:
    """One draw of a domain."""

    def __init__(self, split: Split, rng: Random) -> None:
        self.split, self.rng = split, rng
        self.interface = Interface(split, rng)
        self.families: dict[str, tuple[Compiled, dict[str, Any]]] = {}
        self._order: dict[int, list[str]] = {}  # the details of each chain as its first wording names them
        taken: set[str] = set()
        for goal, calls in GOALS:
            try:
                self._family(*Chains(self.interface, rng).draw(split, calls, goal, taken))
            except RedrawNeeded:
                continue  # this structure has no such chain
        self._variants()
        self._drop_untouched()

    def _drop_untouched(self) -> None:
        """Drop tools that no family comes near: nothing shows a key that they take. A write may lose its undo so."""
        tools, every = self.interface.tools, [compiled for compiled, _ in self.families.values()]
        used = {step["call"] for compiled in every for step in compiled.steps if "call" in step}
        near = {e.table for compiled in every for e in parts(compiled.request) if isinstance(e, Given | Rows)}
        near |= {tools[name].table for name in used if self.interface.tables[tools[name].table].role != "record"}
        for name, tool in list(tools.items()):
            table = self.interface.tables[tool.table]
            wanted = table.of if tool.act in ("list", "list_by") else table.name
            if name not in used and (tool.act in ("create", "code", "change") or wanted not in near):
                del tools[name], table.tools[tool.act]
        for tool in tools.values():
            if "undo" in tool.declared and tool.declared["undo"] not in tools:
                del tool.declared["undo"]

    # -- families

    def _family(self, request: DraftRequest, compiled: Compiled, **extra: Any) -> None:
        queries = self._queries(compiled)
        if not queries:
            raise RedrawNeeded("no request is clear")
        level = 1 if compiled.calls <= 3 else 2 if compiled.calls <= 6 else 3
        name = f"family_{len(self.families) + 1}"
        declared = {
            "about": f"A chain of {compiled.calls} calls.",
            "level": level,
            "queries": queries,
            "steps": self._steps(compiled),
            "answer": Speaker(compiled, Voice(self.split, self.rng)).answer(),
            "expect": [*(ref for _, ref in compiled.made if "create" in self._call(compiled, ref)), *compiled.values],
            "obstacles": self._obstacles(request, compiled),
        }
        self.families[name] = compiled, {**declared, **extra}

    def _queries(self, compiled: Compiled, plain: Sequence[str] = ()) -> list[str]:
        """Requests for a chain. Details that are `plain` are said without a noun: "some crate" may take their place."""
        said = self._said_in_order(compiled, lambda: Speaker(compiled, Voice(self.split, self.rng), plain).query())
        return said[:QUERIES]

    def _said_in_order(self, compiled: Compiled, say: Callable[[], str], tries: int = 12) -> list[str]:
        """Several wordings that name details of one sort in the same order, as their readers expect."""
        out: dict[str, None] = {}
        order: list[str] = self._order.get(id(compiled), [])
        for _ in range(tries):
            try:
                said = say()
            except RedrawNeeded:
                continue  # what it says could be taken for something else
            if NUMERAL.search(said) and any(self._sort(d) == "number" for d in compiled.details.values()):
                continue  # "the one that" could be taken for the number
            keys = re.findall(r"\{(\w+)\}", said)
            order = self._order.setdefault(id(compiled), order or keys)
            if len(keys) == len(order) and self._by_sort(compiled, keys) == self._by_sort(compiled, order):
                out[said] = None
        return [*out]

    def _by_sort(self, compiled: Compiled, keys: Sequence[str]) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        for key in keys:
            out.setdefault(self._sort(compiled.details[key]), []).append(key)
        return out

    def _call(self, compiled: Compiled, ref: str) -> str:
        """What a step that is referred to does."""
        step = next(s for s in compiled.steps if ref.startswith(f"${s['step']}."))
        return self.interface.tools[step["call"]].act

    def _steps(self, compiled: Compiled) -> list[dict[str, Any]]:
        out = []
        for step in compiled.steps:
            tool = self.interface.tools.get(step.get("call", ""))
            if tool is not None and any(pick in step for pick in ("max", "min", "only")):
                noun = self.interface.tables[tool.table].noun
                none = self.interface.voice.phrase("none", noun=noun, nouns=banks.plural(noun))
                step = {**step, "none": none}
            out.append(step)
        return out

    def _obstacles(self, request: DraftRequest, compiled: Compiled) -> list[dict[str, Any]]:
        """Edits that make a request impossible: what it names is gone, or a rule forbids the write."""
        out: list[dict[str, Any]] = []
        first = next(iter(request.acts), None)  # what is refused first leaves nothing behind
        if isinstance(first, Create):
            for entity in (first.parent, first.about):
                table = self.interface.tables[entity.table]
                where = {"table": table.name, "id": compiled.ids[entity]}
                if isinstance(entity, Best) and entity.rows.flag and _is_settled(entity.rows.parent):
                    where = {"step": compiled.step_of[entity]}  # all of them: else another would be taken instead
                elif not _is_settled(entity):
                    continue
                out += [{**where, "set": {c.name: c.fill["choice"][1]}} for c in table.of_sort("standing", "flag")]
        elif first is not None and _is_settled(first.record.rows.parent):  # type: ignore[union-attr]
            out.append({"step": compiled.step_of[first.record], "gone": True})
        elif first is not None:
            pass  # nothing that could be proved
        elif picked := [e for e in parts(request) if isinstance(e, Best)]:
            out.append({"step": compiled.step_of[picked[-1]], "gone": True})
        else:
            given = next(e for e in parts(request) if isinstance(e, Given))
            out.append({"table": given.table, "id": compiled.ids[given], "gone": True})
        return out

    def _variants(self) -> None:
        """The same chains with a detail withheld, and with something in the way."""
        made = [*self.families.items()]
        self.rng.shuffle(made)
        refusable = [name for name, (compiled, declared) in made if compiled.request.acts and declared["obstacles"]]
        askable = {name: keys for name, (compiled, _) in made if (keys := self._withholdable(compiled))}
        for name in refusable[:1]:
            compiled, declared = self.families[name]
            self.families[f"family_{len(self.families) + 1}"] = compiled, {**declared, "refusal": True}
        for name in list(askable)[:1]:
            compiled, declared = self.families[name]
            kept = askable[name]
            queries = self._queries(compiled, kept)
            declared = {**declared, "queries": queries or declared["queries"], "withhold": kept}
            self.families[f"family_{len(self.families) + 1}"] = compiled, declared

    def _withholdable(self, compiled: Compiled) -> list[str]:
        """Details that are the only ones of their sort."""
        sorts = {key: self._sort(made) for key, made in compiled.details.items()}
        alone = [key for key, sort in sorts.items() if [*sorts.values()].count(sort) == 1 and sort != "number"]
        return [key for key in alone if sorts[key] != "date"] or alone

    def _sort(self, made: Mapping[str, Any]) -> str:
        table, _, column = str(made.get("of", "")).partition(".")
        if not table:
            return "number"
        return "date" if column and self.interface.tables[table].columns[column].sort == "date" else f"{table}.{column}"

    # -- the whole

    def declared(self, name: str) -> dict[str, Any]:
        """The declaration, as a file would hold it."""
        things = self._things()
        details: dict[str, Any] = {}
        for compiled, _ in self.families.values():
            details |= compiled.details
        holes = dict(zip("abc", things, strict=True))
        say = self.interface.voice.phrase
        return {
            "domain": name,
            "summary": capital(say("summary", **holes)),
            "policy": " ".join((say("policy_role", **holes), say("policy_do"), say("policy_ask"), say("policy_end"))),
            "entities": self._entities(),
            "tables": self.interface.declared_tables(),
            "tools": {tool.name: tool.declared for tool in self.interface.tools.values()},
            "rules": self.interface.rules(),
            "details": {key: self._detail(key, made) for key, made in details.items()},
            "families": {family: declared for family, (_, declared) in self.families.items()},
        }

    def _things(self) -> list[str]:
        tables = [t for t in self.interface.tables.values() if t.role != "code"]
        return [banks.plural(t.noun) for t in self.rng.sample(tables, 3)]

    def _entities(self) -> dict[str, str]:
        out: dict[str, str] = {}
        for table in self.interface.tables.values():
            if table.named:
                out.setdefault("group", table.name)
            for column in table.of_sort("kind"):
                out.setdefault("kind", f"{table.name}.{column.name}")
        return out

    def _label(self, key: str) -> str:
        """What people call a detail."""
        for table in self.interface.tables.values():
            if key in (table.key, f"{table.key}_2"):
                return f"other {table.noun}" if key.endswith("_2") else table.noun
        if key.endswith("_1"):
            looked_for = any(key[:-2] in compiled.details for compiled, _ in self.families.values())
            return f"new {spoken(key[:-2])}" if looked_for else spoken(key[:-2])
        return f"minimum {spoken(key[:-2])}" if key.endswith("_0") else spoken(key)

    def _detail(self, key: str, made: Mapping[str, Any]) -> dict[str, Any]:
        label = self._label(key)
        voice = self.interface.voice
        out = {
            **made,
            "label": label,
            "ask": voice.phrase("ask_for", label=label),
            "vague": voice.phrase("vague", label=label, a_label=a(label)),
        }
        if record := self._record(key):
            out["record"] = record
        return out

    def _record(self, key: str) -> str:
        """Where else a place that a request names stands: in the record of the person it names."""
        persons = [t for t in self.interface.tables.values() if t.role == "person"]
        for person in persons:
            for column in person.of_sort("refer"):
                both = any({key, person.key} <= {*c.details} for c, _ in self.families.values())
                if self.interface.tables[column.refer].key == key and both:
                    return f"{person.tools['look']}.{column.name}"
        return ""

    def bank(self) -> dict[str, Any]:
        """Other words for the domain, for each split its own."""
        cores: dict[str, dict[Split, list[str]]] = {}
        roles: dict[str, dict[str, dict[Split, list[str]]]] = {}
        for name, (compiled, _) in self.families.items():
            cores[name] = {s: self._cores(compiled, s) for s in SPLITS}
            for key in compiled.details:
                roles[key] = {
                    "sentences": {s: self._said("role", key, s) for s in SPLITS},
                    "labels": {s: self._said("role_label", key, s) for s in SPLITS},
                }
        kinds = max(len(c.fill["choice"]) for t in self.interface.tables.values() for c in t.of_sort("kind"))
        own = {w for t in self.interface.tables.values() for c in t.of_sort("kind") for w in c.fill["choice"]}
        fields = {s: [line for section in KINDS for line in lexicon().choices[section][s]] for s in SPLITS}
        return {
            **bank_words(self.interface),
            "families": cores,
            "roles": roles,
            "fields": {s: [f for f in fields[s] if len(f) >= kinds and not own & {*f}] for s in SPLITS},
            "distractors": {s: self._others(s) for s in SPLITS},
            "nouns": {},
        }

    def _cores(self, compiled: Compiled, split: Split) -> list[str]:
        return self._said_in_order(compiled, lambda: Speaker(compiled, Voice(split, self.rng)).core(), 8)[:CORES]

    def _said(self, kind: str, key: str, split: Split) -> list[str]:
        templates: Sequence[str] = lexicon().phrases[kind][split]
        return [t.replace("{label}", self._label(key)).replace("{hole}", f"{{{key}}}") for t in templates]

    def _others(self, split: Split) -> list[str]:
        """Nouns that no table of the domain goes by."""
        used = {table.concept.name for table in self.interface.tables.values()}
        sections = ("thing", "record", "place")
        words = [c.words[split][0] for s in sections for c in lexicon().concepts[s] if c.name not in used]
        return [spoken(word) for word in self.rng.sample(words, 24)]


def _is_settled(entity: Any) -> bool:
    """Is it clear which row is meant, whatever the other rows of its table hold?"""
    return not any(isinstance(part, Best | Better | Dated) for part in parts(entity))
