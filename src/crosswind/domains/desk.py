"""A domain of things, slots and bookings, put together from its table map, its tools, its requests and its graphs.

To write one, give in a single file (`poi.py` is the shortest):

- a `Records` subclass, if it has tables or columns that only this domain has;
- a `DeskWorld` subclass, with a method for each tool that only this domain has;
- a `Desk` subclass: name, summary, and the families that no other domain has.

The rest is YAML: which table and column plays which role, and the tools that every desk has (`banks/desks`), the
policy, the families that mirror those of other domains, and the sentences of all requests (`banks/requests`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from crosswind.base.errors import BadFile
from crosswind.core.domain import Detail, Domain, Reader, read_choice, read_counts, read_ids
from crosswind.core.names import Numbering
from crosswind.core.state import Derive, State
from crosswind.core.types import Changes, Split, Task
from crosswind.domains import graphs
from crosswind.domains.graphs import Graph
from crosswind.domains.layout import Terms, Token
from crosswind.domains.records import Records
from crosswind.domains.requests import Requests
from crosswind.domains.tools import DeskWorld
from crosswind.text import values


class Desk(Domain):
    """A domain of things, slots and bookings."""

    world_class: ClassVar[type[DeskWorld]]
    records: Records
    terms: Terms
    details: Mapping[str, Detail]  # by their roles
    requests: ClassVar[Requests]
    own: ClassVar[tuple[type[Graph], ...]] = ()  # families that no other domain has
    currency: ClassVar[bool] = True  # fees are money
    said: Mapping[str, str]  # the oracle's last words where the domain has others than `SAID`
    spares: ClassVar[tuple[int, ...]] = (2, 3)  # what a house rule may want left in a slot
    own_details: ClassVar[Mapping[str, Reader]] = {}  # details that only this domain has, and what finds their values
    keys: ClassVar[Mapping[str, str]] = {}  # what those are called in requests, where it is not their name

    def __init_subclass__(cls) -> None:
        if "world_class" in vars(cls):
            records = cls.world_class.records
            cls.namers, cls.named = records.names._asdict(), cls.named | {f"{records.tables.things}.name"}
        if not hasattr(cls, "requests"):
            cls.requests = Requests.packaged(cls.name)
        if "requests" in vars(cls):
            cls.policy, cls.said = cls.requests.policy, cls.requests.replies

    def __init__(self) -> None:
        self.records, self.terms = self.world_class.records, self.world_class.terms
        self.details = self._read_details()
        self.families = {name: self._family(name).bind(self) for name in self.requests.families}
        if missing := [family.name for family in self.own if family.name not in self.families]:
            raise BadFile(f"{self.requests.where}: families.{missing[0]}: is missing; write its sentences")

    def _family(self, name: str) -> Graph:
        """A family that the requests name: over a shared graph, or one of its own."""
        declared, own = self.requests.families[name], {family.name: family for family in self.own}
        if not declared.graph and name in own:
            return own[name]()
        graph = declared.graph
        attributes = {} if declared.house_rules is None else {"house_rules": declared.house_rules}
        if graph not in graphs.BY_NAME:
            known = f"one of {', '.join(graphs.BY_NAME)}, or a class of that name in `own`"
            raise BadFile(f"{self.requests.where}: families.{name}.graph: got {graph!r}; expected {known}")
        return graphs.BY_NAME[graph].family(name, declared.about, **attributes)()

    def _read_details(self) -> dict[str, Detail]:
        """Every detail that requests may state, by its role."""
        records, home = self.records, self.records.tables.home
        thing, means = records.names.thing.find, records.means
        readers: dict[str, Reader] = {
            "group": records.names.group.find,
            "kind": read_choice(records.kinds),
            **dict.fromkeys(("date", "new_date", "other_date"), values.dates),
            **dict.fromkeys(("need", "floor"), read_counts),
            "who": ids_of(records.ids.person),
            "means": read_ids(means.prefix, means.digits)
            if isinstance(means, Token)
            else read_choice(dict.fromkeys(means, ())),
            "source": ids_of(records.ids.thing),
            **dict.fromkeys(("first", "second"), thing),
            **self.own_details,
        }
        places: dict[str, Any] = {
            "record": (self.world_class.record_tool, self.terms.who, home),
            "column": (records.tables.people, home),
        }
        details = {}
        for role, read in readers.items():
            said = self.requests.words(role)
            words = (*said.words, *(records.kind_names if role == "kind" else ()))
            where = places if role == "group" else {}
            details[role] = Detail(said.label, said.question, read, words, said.vague, **where, known=said.known)
        return details

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return self.records.derive(seed, size, split)

    def kinds(self) -> tuple[str, ...]:
        return self.records.kind_names

    def normalise(self, state: State) -> Changes:
        return self.records.normalise(state)

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        return self.records.vary(task, table, column, value, salt)


@lru_cache
def ids_of(numbering: Numbering) -> Reader:
    """What finds the ids of a numbering in a text; the same one each time, since details of one kind share theirs."""
    return read_ids(numbering.prefix, numbering.digits)
