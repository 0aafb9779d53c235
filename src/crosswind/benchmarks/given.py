"""Tasks that somebody wrote down, in a world that is somewhere else: another package's, or behind an MCP server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import BadFile, CannotDraw
from crosswind.core.domain import SIZE, Detail, Domain, Family
from crosswind.core.state import State
from crosswind.core.types import Brief, Change, Changes, Split, Task, ToolSpec
from crosswind.core.world import Entry, World

WHOLE, STANDS = "(request)", "as it stands"  # the one detail of a request that nobody took apart


class OutsideState(State):
    """The state of a world that is somewhere else; it has no rows here."""

    __slots__ = ("world",)

    def __init__(self, world: World) -> None:
        super().__init__(lambda table, id: None)
        self.world: Any = world


def tool_class(tools: Iterable[tuple[ToolSpec, frozenset[str]]]) -> type[World]:
    """A world class where layers and laws look up tools and their effects. The tools cannot be run.

    Nobody declares what the tools read, so no refusal rests on that.
    """
    made: type[World] = type("Catalogue", (World,), {"__doc__": "All tools there are; each task has some of them."})
    made.entries = {spec.name: Entry(spec, _elsewhere, frozenset(), effects) for spec, effects in tools}
    made.specs = tuple(entry.spec for entry in made.entries.values())
    return made


def _elsewhere(*_: Any, **__: Any) -> Any:
    raise AssertionError("tools of another package or server cannot be executed locally")


def whole(query: str) -> Mapping[str, Detail]:
    """The details of a request that nobody took apart: the request itself."""
    return {WHOLE: Detail("request", "What is it that you want?", lambda text: [STANDS] * (query in text), (), "it")}


class GivenFamily(Family):
    """Tasks that are listed and cannot be drawn. A judge of their own decides them, so no right ends are known."""

    def draw(self, rng: Random, seed: int, size: int, split: Split) -> Task:
        raise CannotDraw(f"{self.domain.name}/{self.name} lists its tasks; no other can be drawn in the world of one")

    def ends(self, task: Task, start: State) -> list[Changes]:
        """No ends: `checks` decides."""
        return []

    def alternative(self, task: Task, key: str, rng: Random) -> Any:
        return None


class GivenDomain(Domain):
    """A list of tasks. The split of a task only decides about the words of layers."""

    grounds: ClassVar[bool] = False

    def order(self) -> Sequence[tuple[str, int]]:
        """Every task, as a family and a number, in the order in which runs take them."""
        raise NotImplementedError

    def nth(
        self, n: int, seed: int, *, size: int = SIZE, split: Split = "test", levels: Sequence[int] = ()
    ) -> Task | None:
        """The nth task, counted from the one that the seed stands for; None after the last."""
        order = [(name, number) for name, number in self.order() if not levels or self.families[name].level in levels]
        if not order:
            there = ", ".join(map(str, sorted({family.level for family in self.families.values()})))
            wanted = ", ".join(map(str, levels))
            raise BadFile(f"{self.name} has no task of level {wanted}; its tasks are of level {there}")
        return self.task(*order[(seed + n) % len(order)], split=split) if n < len(order) else None

    def listed_task(
        self, family: str, number: int, query: str, *, policy: str, split: Split, later: Sequence[str] = ()
    ) -> Task:
        """A task by its number; `later` is what the user says in further turns."""
        return Task(
            id=f"{self.name}/{family}/{split}/{number}",
            domain=self.name,
            family=family,
            brief=Brief(query=query, stated={WHOLE: STANDS}, policy=policy),
            seed=number,
            size=SIZE,
            split=split,
            changes=tuple(Change(after="", stated={}, words=words) for words in later),
        )

    def state(self, task: Task, *, fenced: bool = False) -> State:
        return self.world(task).state
