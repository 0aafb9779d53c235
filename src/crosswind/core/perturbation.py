"""A perturbation: an obstacle between world and agent, and its workaround. One frozen value is one draw.

A layer never does anything itself: `handle` and `perform` are generators that ask, and somebody else sends. What it
must remember during an episode is in the memo it is handed, as plain data.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeVar

from pydantic import ValidationError

from crosswind.base.errors import BadFile, UnknownName
from crosswind.base.yaml_files import complaint
from crosswind.core.flow import Send, drive
from crosswind.core.registry import perturbations
from crosswind.core.types import Axis, Flow, Model, Step, Task, Tier, ToolCall, ToolResult, Tools, ToolSpec

if TYPE_CHECKING:
    from crosswind.core.domain import Domain, Family
    from crosswind.core.toolbox import Toolbox

Rank = Literal["domain", "query", "wording", "noise", "structure", "protocol", "fault", "vocabulary", "form"]
RANKS: tuple[Rank, ...] = (
    *("domain", "query", "wording", "noise"),  # the world, what is asked, how it is said, what is said besides
    *("structure", "protocol", "fault", "vocabulary", "form"),
)
SEVERITIES = (1, 2, 3, 4, 5)


class Clock:
    """What all memos of an episode share: the number of the call under way, the toolbox, and who met an obstacle."""

    __slots__ = ("fired", "nth", "revealed", "toolbox", "waited")

    def __init__(self, toolbox: Toolbox) -> None:
        self.nth, self.toolbox = -1, toolbox
        self.revealed = False  # the call under way changed what is listed
        self.waited = 0  # simulated minutes that were passed besides those of calls
        self.fired: list[int] = []  # layers that met the call under way


class Memo:
    """What one layer remembers of one episode. The session keeps one for `handle`, the oracle another for `perform`."""

    __slots__ = ("at", "clock", "details", "notes", "place", "plan", "tools")

    def __init__(self, clock: Clock, place: int) -> None:
        self.clock, self.place = clock, place
        self.notes: dict[str, Any] = {}  # JSON, nothing else
        self.tools: Mapping[str, ToolSpec] = {}  # as they are one layer further in
        self.plan: Sequence[ToolCall] = ()  # the oracle's walk without this layer,
        self.at = 0  # and how far it has come
        self.details: frozenset[str] = frozenset()

    @property
    def nth(self) -> int:
        """The number of the call under way, from 0."""
        return self.clock.nth

    @property
    def writes(self) -> int:
        """Calls so far that wrote something in the world."""
        return self.clock.toolbox.writes

    @property
    def now(self) -> int:
        """The simulated minutes that had passed when the call under way was made: one for each call before it."""
        return max(0, self.clock.nth) + self.clock.waited

    def wait(self, minutes: int) -> None:
        """Let simulated time pass, a day at most."""
        self.clock.waited += min(max(0, minutes), 24 * 60)

    def fire(self) -> None:
        """Leave a receipt: the obstacle was met at this step."""
        self.clock.fired.append(self.place)

    def reveal(self) -> None:
        """Have `lists` asked again before the answer is shown."""
        self.clock.revealed = True

    def ahead(self, tool: str, now: ToolCall) -> ToolCall | None:
        """The next call of a tool in the walk without this layer, with those arguments alone that are in hand.

        In hand is what the request gives and what the call under way, `now`, holds. What later results decide is not
        known beforehand, and choosing by it would hide a loss of information.
        """
        for call in self.plan[self.at :]:
            if call.tool == tool:
                return ToolCall(tool, {k: v for k, v in call.args.items() if in_hand(v, now, self.details)})
        return None


def in_hand(value: Any, now: ToolCall, details: frozenset[str]) -> bool:
    """Is a value known when `now` is called?"""
    return str(value) in details or value in now.args.values()


class Scene(Protocol):
    """What a layer may look at when it is drawn: everything as the layers further in leave it."""

    @property
    def domain(self) -> Domain: ...
    @property
    def task(self) -> Task: ...
    @property
    def family(self) -> Family: ...
    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools shown at some time of the episode, by name."""
        ...

    @property
    def names(self) -> set[str]:
        """Every name that a tool has at some time of the episode."""
        ...

    @property
    def path(self) -> list[str]:
        """Shown tools that the way leads over, in order; costs no walk."""
        ...

    @property
    def answers(self) -> bool:
        """Is a call on the way answered with something? Costs a walk only where no earlier one tells."""
        ...

    @property
    def gold(self) -> list[Step]:
        """The oracle's calls so far; costs a walk."""
        ...

    def lasts(self, task: Task) -> int:
        """How many steps the oracle takes over a task on the canonical interface; costs a walk."""
        ...

    def provable(self, task: Task) -> bool:
        """Can it be proved that refusing a task is right? Costs a walk."""
        ...


class Perturbation(Model):
    """An obstacle and the way round it. Every hook defaults to doing nothing."""

    kind: str
    axis: ClassVar[Axis]
    tier: ClassVar[Tier]
    rank: ClassVar[Rank]
    group: ClassVar[str] = ""  # two of one group do not stack
    goal: ClassVar[Literal["kept", "moved", "refuse"]] = "kept"
    plans: ClassVar[bool] = False  # `perform` looks ahead
    severities: ClassVar[str] = ""  # what 1 to 5 mean
    needs: ClassVar[str] = ""  # completes "it needs ...": without which it does not apply to a task
    way: ClassVar[str] = ""  # completes "the agent must ...": the way round it
    release_note: ClassVar[str] = ""  # what agents read of it in release notes; default: the docstring's first line
    counts: ClassVar[str] = ""  # the field that holds its single obstacles, or how many there are; see `difficulty`
    explains: ClassVar[bool] = False  # a legend that it shows says how values are written: `ValueMap`
    speaks: ClassVar[bool] = False  # its results speak of tools as {id}, which the session renders
    is_passthrough: ClassVar[bool] = False  # has no part in calls; found out by the decorator
    retools: ClassVar[bool] = False  # changes what is shown; likewise
    # what its receipt is for; likewise
    receipt_source: ClassVar[Literal["query", "rows", "change", "tools", "calls"]] = "calls"

    @classmethod
    def fits(cls, family: Family) -> bool:
        """Could it apply to tasks of a family? Told at a glance, before any is drawn; a yes may turn out wrong."""
        return True

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        """Draw one; None where there is nothing to bite on."""
        raise NotImplementedError

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """How many single obstacles the certified way meets; `place` is the layer's in the stack.

        Severity is the promise that there are more of them. By default this is the size of the field that `counts`
        names, and without one the number of steps at which the layer fired.
        """
        if not self.counts:
            return sum(place in step.fired for step in gold)
        held = getattr(self, self.counts)
        return held if isinstance(held, int) else len(held)

    def on_task(self, task: Task) -> Task:
        """Query and domain shifts."""
        return task

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        """What is shown at the nth call."""
        return tools

    def lists(self, tools: Tools, memo: Memo) -> Tools:
        """Which of the tools that `on_tools` gave are listed after the calls so far; see `Memo.reveal`."""
        return tools

    def slack(self, memo: Memo) -> float | None:
        """How many times the simulated time that the certified way took there is; None where time is not limited."""
        return None

    def turns(self) -> tuple[int, ...]:
        """The calls at which what is shown changes."""
        return ()

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        """Face the agent: take its call, ask for calls further in, return what it is answered."""
        inner = self.decode_call(call)
        result = yield inner
        shown = self.encode_result(inner, result, memo)
        if inner is not call or shown is not result:
            memo.fire()
        return shown

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        """Face the world: take the call that is wanted, make calls that get it done, return what they gave."""
        return self.decode_result(call, (yield self.encode_call(call)), memo)

    def encode_call(self, call: ToolCall) -> ToolCall:
        return call

    def decode_call(self, call: ToolCall) -> ToolCall:
        return call

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result


Layers = tuple[Perturbation, ...]


def handled(layer: Perturbation, memo: Memo, send: Send) -> Send:
    """`layer.handle` as a function, what it asks for answered by `send`; plain maps go without a generator."""
    handle, decode, encode = layer.handle, layer.decode_call, layer.encode_result
    if type(layer).handle is not Perturbation.handle:
        return lambda call: drive(handle(call, memo), send)

    def mapped(call: ToolCall) -> ToolResult:
        inner = decode(call)
        result = send(inner)
        shown = encode(inner, result, memo)
        if inner is not call or shown is not result:
            memo.fire()
        return shown

    return mapped


def performed(layer: Perturbation, memo: Memo, send: Send) -> Send:
    """`layer.perform` as a function, likewise."""
    perform, encode, decode = layer.perform, layer.encode_call, layer.decode_result
    if type(layer).perform is not Perturbation.perform:
        return lambda call: drive(perform(call, memo), send)
    if not _overrides(type(layer), "encode_call", "decode_result"):
        return send
    return lambda call: decode(call, send(encode(call)), memo)


P = TypeVar("P", bound=Perturbation)
_CALL_HOOKS = ("handle", "perform", "encode_call", "decode_call", "encode_result", "decode_result")


def _overrides(cls: type[Perturbation], *hooks: str) -> bool:
    return any(getattr(cls, hook) is not getattr(Perturbation, hook) for hook in hooks)


def check_class(cls: type[P]) -> type[P]:
    """Find out what a class takes part in, and refuse one that could not work."""
    if not (isinstance(cls, type) and issubclass(cls, Perturbation)):
        raise TypeError(f"{getattr(cls, '__name__', cls)!s} is not a perturbation; subclass crosswind.Perturbation")
    for hook in ("handle", "perform"):
        if not inspect.isgeneratorfunction(getattr(cls, hook)):
            raise TypeError(f"{cls.__name__}.{hook} must be a generator function: it asks with `yield`, even if once")
    kind = cls.model_fields["kind"].default
    if not isinstance(kind, str) or any(not hasattr(cls, name) for name in ("axis", "tier", "rank")):
        raise TypeError(f"{cls.__name__} must set kind (with its default), axis, tier and rank")
    if cls.rank not in RANKS:
        raise TypeError(f"{cls.__name__}.rank is {cls.rank!r}; expected one of {', '.join(RANKS)}")
    if cls.counts and cls.counts not in cls.model_fields:
        raise TypeError(f"{cls.__name__}.counts is {cls.counts!r}; expected the name of a field")
    cls.is_passthrough = not _overrides(cls, *_CALL_HOOKS)
    cls.retools = _overrides(cls, "on_tools")
    if "receipt_source" not in vars(cls):
        if cls.retools and not _overrides(cls, "handle"):
            cls.receipt_source = "tools"
        elif cls.is_passthrough:
            cls.receipt_source = "query" if cls.rank in ("query", "wording", "noise") else "rows"
    return cls


def perturbation(cls: type[P]) -> type[P]:
    """Register a perturbation under its kind."""
    check_class(cls)
    if cls.sample.__func__ is Perturbation.sample.__func__:  # type: ignore[attr-defined]
        raise TypeError(f"{cls.__name__} has no `sample(scene, rng, severity)`; add it: it draws one, or gives None")
    perturbations.add(cls.model_fields["kind"].default, cls)
    return cls


def place(layer: Perturbation | type[Perturbation]) -> int:
    """Where a layer stands, counted from the world outwards."""
    return RANKS.index(layer.rank)


def dump_layers(layers: Sequence[Perturbation]) -> list[dict[str, Any]]:
    """A stack as JSON data: its identity and its replay."""
    return [layer.model_dump(mode="json") for layer in layers]


EXAMPLE = '{"kind": "transient_error", "tools": ["list_slots"], "times": 1, "text": "Try again."}'


def load_layers(data: object, where: str = "stack") -> Layers:
    """A stack from JSON data; a malformed one is refused with the place and the expected form."""
    form = f"a list of objects such as {EXAMPLE}"
    if not isinstance(data, list):
        raise BadFile(f"{where}: expected {form}, got {type(data).__name__}")
    out = []
    for i, entry in enumerate(data):
        at = f"{where}[{i}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
            raise BadFile(f"{at}: expected an object with a text field 'kind'; the whole is {form}")
        try:
            cls = perturbations[entry["kind"]]
            out.append(cls.model_validate_json(json.dumps(entry)))
        except UnknownName as error:
            raise BadFile(f"{at}.kind: {error}") from None
        except ValidationError as error:
            first = error.errors()[0]
            spot = ".".join(map(str, (at, *first["loc"])))
            fields = ", ".join(f"{n} ({_type(f.annotation)})" for n, f in cls.model_fields.items() if n != "kind")
            raise BadFile(f"{spot}: {complaint(first)}; {entry['kind']!r} takes {fields}") from None
    return tuple(out)


def _type(annotation: object) -> str:
    """An annotation as one reads it in code."""
    return (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
    )
