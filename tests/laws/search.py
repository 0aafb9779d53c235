"""A search over typed calls: what an agent without any plan could reach or find out. It tries to refute proofs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from crosswind.core.domain import Domain
from crosswind.core.oracle import walk
from crosswind.core.types import Changes, Task, ToolCall, ToolResult
from crosswind.core.world import World

READS, CALLS = 600, 8000


@lru_cache(maxsize=None, typed=True)  # asked for the same few values a million times
def sort_of(value: Any) -> str:
    """What a value looks like: an id by its prefix, a date, a number, a name."""
    text = str(value)
    if isinstance(value, int):
        return "number"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return "date"
    if found := re.fullmatch(r"([A-Za-z]+-?)\d+", text):
        return f"id {found[1]}"
    return "word"


class Search:
    """Calls every working tool with every value of the right sort that was stated or shown, writes included."""

    def __init__(self, domain: Domain, task: Task) -> None:
        self.domain, self.task = domain, task
        self.world: World = domain.world(task)
        self.calls = 0
        self.sorts: dict[str, set[str]] = {}  # argument -> sorts of values it takes
        for step in walk(domain, task.unobstructed()).calls:
            for name, value in step.call.args.items():
                self.sorts.setdefault(name, set()).add(sort_of(value))
        self.known: dict[str, list[Any]] = {}  # by the key under which it was stated or shown
        self.origin: dict[str, dict[str, set[Any]]] = {}  # what a value was shown for, by sort: a code and its slot
        self.learn(task.wanted)

    def learn(self, content: Any, key: str = "") -> None:
        if isinstance(content, dict):
            for name, value in content.items():
                self.learn(value, name)
        elif isinstance(content, list):
            for value in content:
                self.learn(value, key)
        elif isinstance(content, (str, int)) and not isinstance(content, bool):
            values = self.known.setdefault(key, [])
            if content not in values:
                values.append(content)

    def fitting(self, name: str) -> list[Any]:
        """Values for an argument: what the request says where it speaks of such, else all that was shown and fits.

        The ends that are searched for hold no other date, number or person than the request's.
        """
        sorts, wanted = self.sorts.get(name, set()), self.task.wanted
        if name in wanted or sorts & {"date", "number"}:
            return list(dict.fromkeys(v for v in wanted.values() if sort_of(v) in sorts))
        if name in self.known:
            return self.known[name]
        return list(dict.fromkeys(v for values in self.known.values() for v in values if sort_of(v) in sorts))

    def options(self, tool: str, new: dict[str, Any] | None = None) -> list[ToolCall]:
        """Calls of a tool with what is known; with `new`, those alone that use a value which was just shown."""
        spec = self.domain.world_class.entries[tool].spec
        if new is not None and not new.keys() & spec.params.keys():
            return []
        choices = []
        for name, param in spec.params.items():
            fits = [v for v in self.fitting(name) if isinstance(v, int) == (param.type == "integer")]
            if new and name in new:
                fits = [new[name]]
            if param.enum:
                fits = [v for v in fits if v in param.enum]
            choices.append([(name, v) for v in fits])
        partial: list[list[tuple[str, Any]]] = [[]]
        for column in choices:  # what does not belong together is dropped as early as can be
            partial = [
                [*chosen, (name, value)]
                for chosen in partial
                for name, value in column
                if all(self.belongs(value, v) and self.belongs(v, value) for _, v in chosen)
            ][:250]
        return [ToolCall(tool, dict(combination)) for combination in partial]

    def belongs(self, value: Any, other: Any) -> bool:
        """Was a value shown for this other one, or for none of its sort?"""
        rivals = self.origin[value].get(sort_of(other)) if value in self.origin else None
        return rivals is None or other in rivals

    def call(self, call: ToolCall) -> ToolResult:
        self.calls += 1
        result = self.world.call(call)
        if isinstance(result.content, dict):
            for value in result.content.values():
                if isinstance(value, str) and value not in self.origin:
                    shown_for: dict[str, set[Any]] = {}
                    for given in call.args.values():
                        shown_for.setdefault(sort_of(given), set()).add(given)
                    self.origin[value] = shown_for
        return result

    def reads(self) -> Iterator[tuple[ToolCall, ToolResult]]:
        """All reads, again and again with what they showed, until they show nothing new."""
        made: set[str] = set()
        grew = True
        while grew and self.calls < READS:
            grew = False
            for tool, entry in self.domain.world_class.entries.items():
                if entry.spec.final or (entry.spec.writes and entry.spec.lasting):
                    continue
                for call in self.options(tool):
                    if repr(call) in made or self.calls >= READS:
                        continue
                    made.add(repr(call))
                    result = self.call(call)
                    before = sum(map(len, self.known.values()))
                    self.learn(result.content)
                    grew |= sum(map(len, self.known.values())) > before
                    yield call, result

    def reaches(self, conceivable_ends: list[Changes], depth: int = 3) -> bool:
        """Can writes lead to one of the ends hoped for?"""
        goals = [self.domain.normal(self.task.unobstructed(), hope) for hope in conceivable_ends]
        for _ in self.reads():
            pass
        tools = [n for n, e in self.domain.world_class.entries.items() if e.spec.writes and e.spec.lasting]
        self.base = [call for tool in tools for call in self.options(tool)]
        self.tools = tools
        return any(self._write(goals, deep, None) for deep in range(1, depth + 1))  # short ways first

    def _write(self, goals: list[Changes], depth: int, new: dict[str, Any] | None) -> bool:
        fresh = [call for tool in self.tools for call in self.options(tool, new)] if new else []
        for call in [*fresh, *self.base]:
            if self.calls >= CALLS:
                return False
            overlay = dict(self.world.state.overlay)
            result = self.call(call)
            if result.error is None:
                if self.domain.normalise(self.world.state) in goals:
                    return True
                shown = {k: v for k, v in result.content.items() if isinstance(v, str)}
                if depth > 1 and self._write(goals, depth - 1, shown):
                    return True
            self.world.state.overlay = overlay
        return False
