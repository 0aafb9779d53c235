"""Common parts of benchmarks whose world, gold and judge come from another package; not a benchmark itself.

Their tasks are numbered and come to an end. A gold is a list of calls for each turn of a conversation: `solve` makes
them and reads no result, so a certificate says that the recorded solution still gets through, and not that its values
can be found out. What those who wrote it took from nowhere on the clean interface stays theirs (`Domain.grounds`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, ClassVar, Self

from crosswind.base.errors import CannotDraw, ToolFailed, ToolFailure
from crosswind.benchmarks.given import GivenDomain, GivenFamily, OutsideState, tool_class, whole
from crosswind.core.domain import JUDGE, SIZE, Detail, Domain, Family
from crosswind.core.flow import digest
from crosswind.core.state import State
from crosswind.core.types import (
    SAY,
    Brief,
    Change,
    Changes,
    Check,
    Finish,
    Param,
    Solution,
    Split,
    Task,
    ToolCall,
    ToolResult,
    Tools,
    ToolSpec,
    Verdict,
    failed,
)
from crosswind.core.world import World, bad_arguments, brief_of, kind_of
from crosswind.text import speech

TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "int": "integer", "bool": "boolean"}


@dataclass(frozen=True, slots=True)
class RecordedGold:
    """One task of a benchmark: what the user says turn by turn, and what its authors would do and say."""

    id: str  # in the benchmark
    turns: tuple[str, ...]
    calls: tuple[tuple[ToolCall, ...], ...]
    says: tuple[str, ...]
    hold: frozenset[int] = frozenset()  # turns that are to be refused or asked about

    @property
    def made(self) -> list[ToolCall]:
        """Its calls, whatever the turn."""
        return [call for calls in self.calls for call in calls]


# ---------------------------------------------------------------- the world


class BorrowedWorld(World, ABC):
    """One task's tools, run by the package they come from. A subclass runs a call and tells its state."""

    def __init__(self, specs: Tools, blocked: Mapping[str, str]) -> None:
        super().__init__(OutsideState(self), blocked)
        self.specs = specs
        self.turns: list[list[ToolCall]] = [[]]  # calls that were run, by the turn of the user they belong to
        self.said: list[str] = []  # what the agent said at the end of each turn but the last
        self._mark: bytes | None = None

    @abstractmethod
    def run(self, call: ToolCall) -> Any:
        """What the package gives for a call, as JSON; raises `ToolFailure` for an error."""

    @abstractmethod
    def mark(self) -> bytes:
        """A digest of all that a call may change."""

    @abstractmethod
    def kept(self) -> dict[str, bytes]:
        """Digests of what the benchmark's judge may look at, by part, where it differs from the start."""

    @abstractmethod
    def twin(self) -> Self:
        """Another world in the same state."""

    def hear(self, change: Change, said: str) -> None:
        self.turns.append([])
        self.said.append(said)

    def call(self, call: ToolCall) -> ToolResult:
        spec = next((s for s in self.specs if s.name == call.tool and s.listed), None)
        if spec is None:
            return failed("unknown_tool", f"There is no tool {brief_of(call.tool)}.")
        if call.tool in self.blocked:
            return failed("unavailable", f"{{{call.tool}}} {self.blocked[call.tool]}.")
        if bad := bad_arguments(spec.params, call.args):
            return failed("bad_arguments", bad)
        self.turns[-1].append(call)
        before = self._mark or self.mark() if spec.writes else b""
        try:
            result = ToolResult(self.run(call))
        except ToolFailure as error:
            result = failed(error.code, error.text)
        if spec.writes:
            self._mark = self.mark()
            self.writes += self._mark != before
        return result


def canonical(value: Any, above: tuple[int, ...] = ()) -> str:
    """A value as a text that equal values share, whatever objects it is made of."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return repr(value)
    if id(value) in above:
        return "^"
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{canonical(k, above)}:{canonical(v, above)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(canonical(v, above) for v in value) + "]"
    if isinstance(value, (set, frozenset)):
        return "{" + ",".join(sorted(canonical(v, above) for v in value)) + "}"
    if isinstance(value, Random):
        return "Random"  # a look that uses up chance is not a write
    if hasattr(value, "__dict__"):
        return f"{type(value).__name__}{canonical(public(value), above)}"
    return repr(value)


def public(value: object) -> dict[str, Any]:
    """The attributes of an object that are not private; what else it keeps, such as when it was made, is its own."""
    return {name: one for name, one in vars(value).items() if name[0] != "_"}


def marked(value: Any) -> bytes:
    """A digest of a value."""
    return digest(canonical(value))


# ---------------------------------------------------------------- tools


def param(schema: Mapping[str, Any], *, required: bool) -> Param:
    """A parameter from its schema. That it may be null is left out: then it need not be given."""
    options = [o for o in schema.get("anyOf", (schema,)) if o.get("type") != "null"]
    first = options[0]
    rest = {k: v for k, v in first.items() if k in ("items", "additionalProperties", "properties")}
    type_ = TYPES.get(first["type"], first["type"])
    return Param(type_, str(schema.get("description", "")), required, tuple(first.get("enum", ())), _json_types(rest))


def _json_types(schema: Any) -> Any:
    """A schema in the words of JSON schema."""
    if isinstance(schema, Mapping):
        return {k: TYPES.get(v, v) if k == "type" and isinstance(v, str) else _json_types(v) for k, v in schema.items()}
    return [_json_types(v) for v in schema] if isinstance(schema, list) else schema


def widened(specs: Sequence[ToolSpec], families: Iterable[BorrowedFamily]) -> list[ToolSpec]:
    """Tools whose parameters also take what the golds hand them, where these contradict the documents."""
    out = {spec.name: spec for spec in specs}
    for call in (call for family in families for gold in family.golds for call in gold.made):
        spec = out[call.tool]
        for name, value in call.args.items():
            if name in spec.params and bad_arguments({name: spec.params[name]}, {name: value}):
                old = spec.params[name]
                both = Param("any", old.doc, old.required, (), {**old.extra, "type": [old.type, kind_of(value)]})
                out[call.tool] = spec = spec.replace(params={**spec.params, name: both})
    return list(out.values())


def catalogue(specs: Sequence[ToolSpec], found: Mapping[str, Footprint]) -> type[World]:
    """All tools of a benchmark as one class, with what is known of their writes."""
    return tool_class(_effects(spec, found.get(spec.name)) for spec in specs)


def _effects(spec: ToolSpec, footprint: Footprint | None) -> tuple[ToolSpec, frozenset[str]]:
    if footprint is None or not footprint.writes:
        return spec, frozenset()
    return spec.replace(writes=True), frozenset({"elsewhere+" if footprint.repeats else "elsewhere.value"})


class Footprint:
    """What the golds show of a tool: does it change anything, and does doing it twice change more?"""

    __slots__ = ("repeats", "writes")

    def __init__(self) -> None:
        self.writes = self.repeats = False


def footprints(worlds: Iterable[tuple[BorrowedWorld, RecordedGold]]) -> dict[str, Footprint]:
    """Find out which tools write, by making every gold call and then the same call once more on the side."""
    out: dict[str, Footprint] = {}
    for world, gold in worlds:
        mark = world.mark()
        for call in gold.made:
            seen = out.setdefault(call.tool, Footprint())
            _quietly(world, call)
            after = world.mark()
            if after != mark:
                seen.writes = True
                if not seen.repeats:
                    again = world.twin()
                    _quietly(again, call)
                    seen.repeats = again.mark() != after
            mark = after
    return out


def _quietly(world: BorrowedWorld, call: ToolCall) -> None:
    try:
        world.run(call)
    except ToolFailure:
        return


# ---------------------------------------------------------------- families and domains


class BorrowedFamily(GivenFamily, ABC):
    """Some tasks of a benchmark. `Domain.family` gives one that is bound to the gold of its task."""

    level: ClassVar[int] = 3
    golds: Sequence[RecordedGold]
    gold: RecordedGold

    def __init__(self, domain: Domain, golds: Sequence[RecordedGold]) -> None:
        self.domain, self.golds = domain, golds

    @classmethod
    def called(cls, name: str, about: str) -> type[Self]:
        """The class of one family, for benchmarks whose families differ in nothing but their tasks."""
        return type(name, (cls,), {"name": name, "__doc__": about})

    def bound(self, number: int) -> Self:
        """The same family for one of its tasks."""
        family = copy(self)
        family.gold = self.golds[number]
        return family

    @cached_property
    def details(self) -> Mapping[str, Detail]:  # type: ignore[override]
        return whole(self.gold.turns[0])

    def solve(self, brief: Brief) -> Solution:
        """Make the calls of the gold, whatever they are answered; a sentence ends each turn."""
        gold = self.gold
        for n, calls in enumerate(gold.calls):
            for call in calls:
                try:
                    yield call
                except ToolFailed:
                    continue
            if n + 1 < len(gold.calls):
                yield ToolCall(SAY, {"text": gold.says[n]})
        return gold.says[-1]

    def understood(self, task: Task, text: str) -> speech.Speech:
        """A message without a call ends a turn, whatever it says, as it does in the benchmark."""
        return "answer"

    @abstractmethod
    def judged(self, world: BorrowedWorld, final: str) -> str:
        """Why the benchmark's own judge lets an episode fail; empty: it passes."""

    def checks(self, task: Task, start: State, end: State, answer: str | Finish) -> tuple[Check, ...]:
        """The benchmark's verdict, and what was said where there was something to refuse or to ask."""
        assert isinstance(end, OutsideState)
        answer = answer if isinstance(answer, str) else answer.text
        why = self.judged(end.world, answer)
        out = [Check(name=self.domain.name, passed=not why, why=why)]
        said = (*end.world.said, answer)
        for turn in sorted(self.gold.hold):
            text = said[turn] if turn < len(said) else ""
            how = speech.classify(text) if text.strip() else "answer"
            out.append(
                Check(name=f"turn {turn + 1}", passed=how != "answer", why=f"to be refused or asked about: {how}")
            )
        return tuple(out)


class BorrowedDomain(GivenDomain):
    """A benchmark: numbered tasks in families, each with the tools that its authors give it."""

    families: dict[str, BorrowedFamily]  # type: ignore[assignment]

    def order(self) -> list[tuple[str, int]]:
        """Every task, families side by side, each from another number on: tasks of one number may be variants."""
        tasks = []
        for i, (name, family) in enumerate(self.families.items()):
            size = len(family.golds)
            first = size * i // len(self.families)
            tasks += [((n - first) % size / size, i, name, n) for n in range(size)]
        return [(name, n) for _, _, name, n in sorted(tasks)]

    def task(self, family: str, seed: int, *, size: int = SIZE, split: Split = "test") -> Task:
        """A task by its number."""
        golds = self.families[family].golds
        if seed >= len(golds):
            raise CannotDraw(f"{self.name}/{family} has no task {seed}; there are {len(golds)}, from 0 on")
        gold = golds[seed]
        return self.listed_task(family, seed, gold.turns[0], policy=self.policy, split=split, later=gold.turns[1:])

    def family(self, task: Task) -> Family:
        return self.families[task.family].bound(task.seed)

    def normalise(self, state: State) -> Changes:
        assert isinstance(state, OutsideState)
        return {(self.name, part): {"digest": mark.hex()} for part, mark in state.world.kept().items()}

    def judge(self, task: Task, end: State, final: str | Finish) -> Verdict:
        """The benchmark's own verdict decides; the other checks are only reported."""
        checks = self.family(task).checks(task, end, end, final)
        return Verdict(outcome="pass" if checks[0].passed else "fail", checks=checks, judge=JUDGE)
