"""Tables, columns and tools of a generated domain: a structure that is drawn, in words that are drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from crosswind.authoring.generated.lexicon import (
    INVENTED,
    Concept,
    Voice,
    a,
    invented_word,
    lexicon,
    part_of,
    plural,
    spoken,
)
from crosswind.core.types import SPLITS, Split
from crosswind.words import banks

# What a tool does, as the package's lexicon calls it: the words of an action name tools and are said in requests.
ACTIONS = {
    "list": ("find", "list"),
    "look": ("show", "read", "check"),
    "create": ("place", "open"),
    "change": ("move",),
    "close": ("cancel",),
    "code": ("request",),
}


@dataclass(frozen=True, slots=True)
class Node:
    """A table of a structure: its role, the table that its rows belong to, and those that they refer to."""

    role: str
    of: int = -1
    refers: tuple[int, ...] = ()
    code: int = -1  # the codes that a row of this table needs


def structure(rng: Random) -> tuple[Node, ...]:
    """Some tables and the relations between them."""
    out = [Node(rng.choice(("place", "firm"))) for _ in range(rng.randint(1, 3))]
    roots = list(range(len(out)))
    person = len(out)
    out.append(Node("person", refers=tuple(sorted(rng.sample(roots, rng.randint(1, min(2, len(roots))))))))
    things = []
    for _ in range(rng.randint(1, 2)):
        others = [person, *roots]
        refers = tuple(sorted(rng.sample(others, rng.randint(0, 2))))
        things.append(len(out))
        out.append(Node("thing", rng.choice(roots), refers))
    if rng.random() < 0.5:
        above = rng.choice(things)
        things.append(len(out))
        out.append(Node("subthing", above, rng.choice(((), (person,), (rng.choice(roots),)))))
    for root in roots:
        if rng.random() < 0.4:
            out[root] = Node(out[root].role, refers=(rng.choice([person, *(r for r in roots if r != root)]),))
    target = rng.choice(things)
    out.append(Node("record", person, (target,)) if rng.random() < 0.6 else Node("record", target, (person,)))
    if rng.random() < 0.75:
        target, code = rng.choice(things), len(out)
        out.append(Node("code", refers=rng.choice(((person,), (target,), (person, target)))))
        out.append(Node("record", person, (target,), code))
    return tuple(out)


def structure_for(split: Split, rng: Random) -> tuple[Node, ...]:
    """A structure that only domains of a split have."""
    while part_of(found := structure(rng)) != split:
        pass
    return found


@dataclass(slots=True)
class ColumnDraft:
    """A column: how it is filled, and what it is called."""

    name: str
    sort: str  # number, money, date, time, kind, flag, status, standing, name, refer
    fill: dict[str, Any]
    concept: Concept | None = None
    refer: str = ""

    @property
    def said(self) -> str:
        return spoken(self.name)


@dataclass(slots=True)
class TableDraft:
    """A table: what its rows are called, their columns, and its tools by what they do."""

    name: str
    role: str
    key: str
    word: str
    concept: Concept
    named: str = ""  # the sort of made-up names that rows go by; else numbers with a prefix
    prefix: str = ""
    of: str = ""
    most: int = 0
    code: str = ""  # the table of codes that a row needs
    columns: dict[str, ColumnDraft] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)

    @property
    def noun(self) -> str:
        return spoken(self.word)

    def of_sort(self, *sorts: str) -> list[ColumnDraft]:
        return [column for column in self.columns.values() if column.sort in sorts]


@dataclass(slots=True)
class ToolDraft:
    """A tool: its declaration, and what it does with what, as the bank says it."""

    name: str
    act: str
    table: str
    action: str
    declared: dict[str, Any]
    docs: dict[Split, list[str]] = field(default_factory=dict)


class Interface:
    """Tables and tools of one domain, in the words of its split."""

    def __init__(self, split: Split, rng: Random) -> None:
        self.split, self.rng = split, rng
        self.voice = Voice(split, rng)
        # A model learns the few hundred words of its split by heart, however many worlds there are.
        self.invented = rng.choice(INVENTED) if split == "train" else 0
        self.nodes = structure_for(split, rng)
        self.tables: dict[str, TableDraft] = {}
        self.tools: dict[str, ToolDraft] = {}
        self._used: set[str] = set()
        self._roles: dict[str, tuple[Concept, str]] = {}
        for i, node in enumerate(self.nodes):
            self._table(i, node)
        for i, node in enumerate(self.nodes):
            self._columns(self._nth(i), node)
        for table in self.tables.values():
            self._tools(table)
        if len(self.tools) < 8 or rng.random() < 0.5:
            self._second_lists()
        names = list(self.tools)
        rng.shuffle(names)
        self.tools = {name: self.tools[name] for name in names}
        self._describe()

    def _nth(self, i: int) -> TableDraft:
        return list(self.tables.values())[i]

    def concept(self, section: str, fits: frozenset[str] = frozenset()) -> tuple[Concept, str]:
        """A concept of a section, and the word for it here; no word of it stands for another concept of the domain."""
        found = [c for c in lexicon().concepts[section] if not fits or c.fits & fits]
        self.rng.shuffle(found)
        for concept in found:
            if not concept.lemmas() & self._used:
                self._used |= concept.lemmas()
                if self._invents():
                    concept = concept.invented(self.rng)
                return concept, self.rng.choice(concept.words[self.split])
        raise RedrawNeeded(f"no concept is left in {section}")

    def _invents(self) -> bool:
        """Is the next word an invented one? Only train worlds have such words, and only they use up a chance."""
        return bool(self.invented) and self.rng.random() < self.invented

    def _role(self, other: TableDraft) -> tuple[Concept, str]:
        """What rows that refer to a table call it; the same everywhere."""
        if other.name not in self._roles:
            self._roles[other.name] = self.concept(f"{other.role}_role")
        return self._roles[other.name]

    def known_by(self) -> Iterator[tuple[str, Concept]]:
        """Every key with the concept it stands for."""
        for table in self.tables.values():
            yield table.key, table.concept
            for column in table.columns.values():
                if column.concept is not None:
                    yield column.name, column.concept

    # -- tables and columns

    def _table(self, i: int, node: Node) -> None:
        concept, word = self.concept(node.role)
        names = [sort for sort in ("town", "firm") if all(t.named != sort for t in self.tables.values())]
        named = ""
        if node.role in ("place", "firm"):
            named = next((n for n in names if (n == "town") == (node.role == "place")), "")
        suffix = self.rng.choice(banks.data("common")["qualifiers"]["id"][self.split])
        made = TableDraft(
            plural(word).replace(" ", "_"), node.role, word if named else f"{word}_{suffix}", word, concept
        )
        made.named, made.prefix = named, "" if named else self._prefix()
        made.of = self._nth(node.of).name if node.of >= 0 else ""
        made.code = self._nth(node.code).name if node.code >= 0 else ""
        if made.of and not made.code:
            made.most = self.rng.randint(3, 5) if node.role == "record" else self.rng.randint(8, 14)
        self.tables[made.name] = made

    def _prefix(self) -> str:
        """Letters before the numbers of a table: each combination belongs to one split."""
        letters = "ABCDEFGHJKLMNPQRSTUVWYZ"  # an X may be taken for a part of a format
        while True:
            made = "".join(self.rng.choice(letters) for _ in range(self.rng.randint(1, 3)))
            if part_of(("prefix", made)) == self.split and all(t.prefix != made for t in self.tables.values()):
                return made

    def _add(self, table: TableDraft, section: str, sort: str, fill: dict[str, Any]) -> None:
        concept, word = self.concept(section)
        table.columns[word] = ColumnDraft(word, sort, fill, concept)

    def _amount(self, table: TableDraft, sort: str) -> None:
        """Add a column of numbers or of money that such a thing has."""
        concept, word = self.concept(sort, table.concept.fits or frozenset([table.role]))
        low, high = concept.span
        if isinstance(low, float):
            fill: dict[str, Any] = {"number": {"low": low, "high": high, "step": 0.01}}
        else:
            fill = {"number": {"low": low, "high": int(high) - self.rng.randrange(int(high - low) // 4)}}
        table.columns[word] = ColumnDraft(word, sort, fill | ({"unit": "euros"} if sort == "money" else {}), concept)

    def _kind(self, table: TableDraft) -> None:
        """Add a column of kinds that such a thing comes in."""
        concept, word = self.concept("sort", table.concept.fits | {"any"})
        (fits,) = concept.fits
        lines = [line for line in lexicon().choices[f"kinds {fits}"][self.split] if not {*line} & self._used]
        if not lines:
            raise RedrawNeeded(f"no kinds are left for {word}")
        kinds = list(self.rng.choice(lines))
        self._used |= {*kinds}
        fill = {"choice": kinds[: self.rng.randint(3, len(kinds))]}
        table.columns[word] = ColumnDraft(word, "kind", fill, concept)

    def _columns(self, table: TableDraft, node: Node) -> None:
        rng = self.rng
        for other in map(self._nth, node.refers):
            if table.role in ("record", "code"):  # a row of these is about the other one, and goes by its key
                table.columns[other.key] = ColumnDraft(other.key, "refer", {"refer": other.name}, refer=other.name)
            else:
                concept, word = self._role(other)
                table.columns[word] = ColumnDraft(word, "refer", {"refer": other.name}, concept, other.name)
        if table.role == "code":
            return
        if table.code:
            code = self.tables[table.code]
            table.columns[code.key] = ColumnDraft(code.key, "refer", {"refer": code.name}, refer=code.name)
        if table.role in ("place", "firm"):
            self._amount(table, "money")
            if rng.random() < 0.6:
                self._add(table, "time", "time", self._time())
            if rng.random() < 0.6:
                self._amount(table, "number")
        elif table.role == "person":
            good, bad = rng.choice(lexicon().choices["standings"][self.split])
            self._add(table, "standing_name", "standing", {"choice": [good, bad], "weights": [1, 0]})
            if rng.random() < 0.5:
                self._amount(table, "number")
        elif table.role == "record":
            self._add(
                table,
                "date",
                "date",
                {"date": {"first": f"20{rng.randint(30, 39)}-0{rng.randint(1, 9)}-01", "days": 90}},
            )
            pair = self._pair("states")
            self._add(table, "status_name", "status", {"choice": pair, "weights": [3, 1]})
        else:
            self._amount(table, "number")
            self._add(table, "flag_name", "flag", {"choice": self._pair("flags"), "weights": [3, 1]})
            if table.role == "thing":
                self._kind(table)
            if rng.random() < 0.5:
                self._amount(table, "money")
            if rng.random() < 0.7:
                self._amount(table, "number")

    def _pair(self, section: str) -> list[str]:
        """Two values that no other column of the domain has."""
        pairs = [p for p in lexicon().choices[section][self.split] if not {*p} & self._used]
        if not pairs:
            raise RedrawNeeded(f"no pair is left in {section}")
        found = list(self.rng.choice(pairs))
        self._used |= {*found}
        return found

    def _time(self) -> dict[str, Any]:
        first = self.rng.randint(13, 17)  # in the afternoon a time reads one way in every format
        return {"time": {"first": f"{first:02d}:00", "last": f"{first + 6:02d}:00", "minutes": 5}}

    # -- tools

    def _tool(self, table: TableDraft, act: str, declared: dict[str, Any]) -> None:
        """Add a tool under a name of its own."""
        lists = banks.data("common")["lexicon"]["lists"]
        for _ in range(60):
            action = self.rng.choice(ACTIONS["list" if act == "list_by" else act])
            verbs = lists[f"actions.{action}"][self.split]
            verb = invented_word(self.rng) if self._invents() else self.rng.choice(verbs)
            words = [verb, table.word] if self.rng.random() < 0.75 else [table.word, verb]
            name = "_".join(words)
            pair = (action, table.name)
            if name not in self.tools and pair not in {(t.action, t.table) for t in self.tools.values()}:
                table.tools[act] = name
                self.tools[name] = ToolDraft(name, act, table.name, action, declared)
                return
        raise RedrawNeeded(f"no name is left for {act} of {table.name}")

    def _tools(self, table: TableDraft) -> None:
        columns, key = list(table.columns), table.key
        parent = self.tables[table.of].key if table.of else ""
        if table.role == "code":
            self._tool(table, "code", {"create": table.name, "row": {c: f"{{{c}}}" for c in columns}, "give": [key]})
            return
        self._tool(
            table, "look", {"look": table.name, "by": [key], "give": [key, *([parent] if parent else []), *columns]}
        )
        if table.role in ("thing", "subthing"):
            money = table.of_sort("money") if self.rng.random() < 0.6 else []
            shown = [key, *(c.name for c in (*table.of_sort("number"), *table.of_sort("flag"), *money))]
            kinds = table.of_sort("kind")
            if kinds:
                self._tool(table, "list_by", {"look": table.name, "by": [parent, kinds[0].name], "give": shown})
            else:
                self._tool(table, "list", {"look": table.name, "by": [parent], "give": shown})
        if table.role == "record":
            self._record_tools(table, parent)

    def _record_tools(self, table: TableDraft, parent: str) -> None:
        key, (date,), (status,) = table.key, table.of_sort("date"), table.of_sort("status")
        live, over = status.fill["choice"]
        refers = [c.name for c in table.of_sort("refer")]
        if not table.code:
            self._tool(
                table, "list", {"look": table.name, "by": [parent], "give": [key, *refers, date.name, status.name]}
            )
            self._tool(
                table,
                "change",
                {
                    "change": table.name,
                    "by": [key],
                    "requires": {status.name: live},
                    "set": {date.name: f"{{{date.name}}}"},
                    "give": [key, date.name],
                },
            )
        self._tool(
            table,
            "close",
            {
                "change": table.name,
                "by": [key],
                "requires": {status.name: live},
                "set": {status.name: over},
                "give": [key, status.name],
            },
        )
        row = {name: f"{{{name}}}" for name in (parent, *refers, date.name)}
        declared = {"create": table.name, "row": {**row, status.name: live}, "give": [key, status.name]}
        self._tool(table, "create", {**declared, "undo": table.tools["close"]})

    def _second_lists(self) -> None:
        """Lists of all things of a parent, beside those of one kind."""
        for table in self.tables.values():
            if "list_by" in table.tools:
                shown = [
                    table.key,
                    *(c.name for c in (*table.of_sort("kind"), *table.of_sort("number", "flag", "money"))),
                ]
                parent = self.tables[table.of].key
                self._tool(table, "list", {"look": table.name, "by": [parent], "give": shown})

    # -- what tools are said to do

    def _describe(self) -> None:
        """Descriptions of every tool: by the domain's own voice, and for the bank by speakers of every split."""
        for tool in self.tools.values():
            tool.declared["doc"] = self._doc(tool, self.voice)
            for split in SPLITS:
                said = [self._doc(tool, Voice(split, self.rng)) for _ in range(4)]
                tool.docs[split] = [text for text in dict.fromkeys(said) if text != tool.declared["doc"]]

    def _doc(self, tool: ToolDraft, voice: Voice) -> str:
        table = self.tables[tool.table]
        thing, declared = table.noun, tool.declared
        holes = {"thing": thing, "things": plural(thing), "a_thing": a(thing)}
        if tool.act in ("list", "list_by", "look"):
            gives = [c for c in declared["give"] if c not in declared["by"] and c != table.key]
            holes["gives"] = _joined([self._shown(table, c) for c in gives] or ["its key"])
        if tool.act in ("list", "list_by"):
            parent = self.tables[table.of].noun
            holes |= {"parent": parent, "a_parent": a(parent)}
        if tool.act == "list_by":
            kind = spoken(declared["by"][1])
            holes |= {"kind": kind, "a_kind": a(kind)}
        if tool.act in ("create", "code"):
            takes = [c for c, v in declared["row"].items() if v == f"{{{c}}}"]
            holes |= {"takes": _joined([a(self._shown(table, c)) for c in takes])}
        if tool.act == "code":
            other = next(t for t in self.tables.values() if t.code == table.name)
            holes["other"] = f"{{{other.tools['create']}}}"
        if tool.act in ("change", "close"):
            ((column, value),) = declared["set"].items()
            holes |= {"column": spoken(column), "value": spoken(str(value))}
        said = voice.phrase(f"{tool.act}_doc", **holes)
        return re.sub(r"(?:^|(?<=[.?] ))[a-z]", lambda found: found[0].upper(), said)

    def _shown(self, table: TableDraft, column: str) -> str:
        """A column as descriptions call it; money with its unit."""
        made = table.columns.get(column)
        said = next((t.noun for t in self.tables.values() if t.key == column), spoken(column))
        return f"{said} in euros" if made is not None and made.sort == "money" else said

    # -- as a declaration

    def declared_tables(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for table in self.tables.values():
            made: dict[str, Any] = {"id": {"key": table.key}}
            made["id"] |= {"names": table.named} if table.named else {"prefix": table.prefix}
            if table.of:
                made |= {"of": table.of, "most": table.most}
                if table.most:
                    made["least"] = max(1, table.most // 2) if table.role != "record" else 1
            elif table.role == "code":
                made |= {"codes": True, "one_per": 0}
            else:
                made["one_per"] = 1 if table.role == "person" else 12
            made["columns"] = {c.name: c.fill for c in table.columns.values()}
            out[table.name] = made
        order = sorted(out, key=lambda name: len(self._above(name)))
        return {name: out[name] for name in order}

    def _above(self, name: str) -> list[str]:
        of = self.tables[name].of
        return [of, *self._above(of)] if of else []

    def rules(self) -> list[dict[str, Any]]:
        """What must hold for a record in effect: a person in good standing, a usable thing, a code of its own."""
        out = []
        for table in self.tables.values():
            if table.role != "record" or not {"create", "change"} & {*table.tools}:
                continue
            (status,) = table.of_sort("status")
            when = {status.name: status.fill["choice"][0]}
            for column, other in (*self.links(table),):
                for made in self.tables[other].of_sort("standing", "flag"):
                    good, bad = made.fill["choice"]
                    words = {"noun": self.tables[other].noun, "id": f"{{{column}}}"}
                    say = self.voice.phrase("rule_bad", **words, column=made.said, value=spoken(bad))
                    out.append(
                        {"table": table.name, "when": when, "refer": column, "must": {made.name: good}, "say": say}
                    )
            if table.code:
                code = self.tables[table.code]
                must = {name: f"{{{name}}}" for name in code.columns}
                say = self.voice.phrase("rule_code", code=f"{code.noun} {{{code.key}}}")
                out.append({"table": table.name, "when": when, "refer": code.key, "must": must, "say": say})
        return out

    def links(self, table: TableDraft) -> Iterator[tuple[str, str]]:
        """(column, table) of the rows that a row leads to: what it belongs to, and what it refers to."""
        if table.of:
            yield self.tables[table.of].key, table.of
        yield from ((c.name, c.refer) for c in table.of_sort("refer") if self.tables[c.refer].role != "code")


class RedrawNeeded(Exception):
    """A draw came to nothing; the next one may not."""


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def bank_words(interface: Interface) -> Mapping[str, Any]:
    """The parts of a word bank that speak of tools and keys."""
    lists = banks.data("common")["lexicon"]["lists"]
    words = {concept.name: {s: [*concept.words[s]] for s in SPLITS} for _, concept in interface.known_by()}
    sorts = {
        "number": "measure",
        "money": "money",
        "date": "date",
        "time": "time",
        "kind": "choice",
        "flag": "choice",
        "status": "status",
        "standing": "status",
        "refer": "id",
    }
    keys: dict[str, list[str]] = {}
    for table in interface.tables.values():
        keys[table.key] = [table.concept.name, "name" if table.named else "id"]
        for column in table.columns.values():
            if column.concept is not None:
                keys[column.name] = [column.concept.name, sorts[column.sort]]
    used = {tool.action for tool in interface.tools.values()}
    return {
        "tools": {t.name: [t.action, interface.tables[t.table].concept.name] for t in interface.tools.values()},
        "actions": {action: lists[f"actions.{action}"] for action in sorted(used)},
        "words": words,
        "keys": keys,
        "descriptions": {tool.name: tool.docs for tool in interface.tools.values()},
    }
