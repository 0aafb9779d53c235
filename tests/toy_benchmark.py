"""A benchmark of somebody else's in small: two families of numbered tasks that come to an end, with a judge of its own.

It is loaded as the real ones are, through `domains.on_demand`, so what breaks for those breaks for it, and no package
is needed to see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Self

from crosswind.benchmarks.borrowed import (
    BorrowedDomain,
    BorrowedFamily,
    BorrowedWorld,
    RecordedGold,
    catalogue,
    footprints,
    marked,
)
from crosswind.core.types import Param, Task, ToolCall, Tools, ToolSpec
from crosswind.core.world import World

ITEMS = ("lamp", "rope", "kettle", "ladder", "bucket", "hammer", "candle", "pillow", "mirror", "carpet")
THING = Param("string", "The name of an item in the store.", True)
NUMBER = Param("integer", "How many pieces of it.", True)
SPECS: Tools = (
    ToolSpec("count_stock", "How many pieces of an item there are.", {"item": THING}, ids=frozenset({"count_stock"})),
    ToolSpec(
        "move_stock", "Put pieces into another store.", {"item": THING, "pieces": NUMBER}, ids=frozenset({"move_stock"})
    ),
)


class StoreWorld(BorrowedWorld):
    """A store, and what was moved out of it."""

    def __init__(self, specs: Tools, blocked: Mapping[str, str]) -> None:
        super().__init__(specs, blocked)
        self.stock = {item: 10 + n for n, item in enumerate(ITEMS)}

    def run(self, call: ToolCall) -> Any:
        item = str(call.args["item"])
        if call.tool == "move_stock":
            self.stock[item] -= int(call.args["pieces"])
        return {"item": item, "pieces": self.stock[item]}

    def mark(self) -> bytes:
        return marked(self.stock)

    def kept(self) -> dict[str, bytes]:
        return {} if self.mark() == StoreWorld((), {}).mark() else {"stock": self.mark()}

    def twin(self) -> Self:
        other = type(self)(self.specs, self.blocked)
        other.stock = dict(self.stock)
        return other


class Orders(BorrowedFamily):
    """Pieces to be moved."""

    name = "orders"

    def judged(self, world: BorrowedWorld, final: str) -> str:
        assert isinstance(world, StoreWorld)
        right = StoreWorld((), {})
        for call in self.gold.made:
            right.run(call)
        return "" if world.stock == right.stock else "the stock is not what it should be"


class Returns(Orders):
    """The same with fewer tasks."""

    name = "returns"


def _gold(family: str, n: int) -> RecordedGold:
    item, pieces = ITEMS[n], n + 1
    look, move = ToolCall("count_stock", {"item": item}), ToolCall("move_stock", {"item": item, "pieces": pieces})
    return RecordedGold(
        f"{family}_{n}",
        (f"Count the item {item}.", f"Now move {pieces} pieces of it."),
        ((look,), (move,)),
        ("Counted.", "Moved."),
    )


class Toybench(BorrowedDomain):
    """Orders and returns of a store."""

    name: ClassVar[str] = "toybench"
    summary: ClassVar[str] = "Two families of tasks in a store"
    policy: ClassVar[str] = "Do what the user asks with the tools you are given."
    world_class: type[World]  # type: ignore[misc]

    def __init__(self) -> None:
        self.families = {
            cls.name: cls(self, [_gold(cls.name, n) for n in range(size)]) for cls, size in ((Orders, 10), (Returns, 6))
        }
        golds = (gold for family in self.families.values() for gold in family.golds)
        self.world_class = catalogue(SPECS, footprints((StoreWorld((), {}), gold) for gold in golds))

    def world(self, task: Task, *, fenced: bool = False) -> StoreWorld:
        return StoreWorld(self.tools(task), task.blocked)


@lru_cache(maxsize=1)
def load() -> Toybench:
    """The domain, made when it is first asked for."""
    return Toybench()
