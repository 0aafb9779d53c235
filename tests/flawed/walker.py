"""What agents with a planted flaw have in common; not an agent itself.

Such an agent walks the certified way in a session of its own, deviates there as its flaw tells it, and then says and
does in the episode what it did there. Nothing in an episode is random, so what it is answered is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, ClassVar, TypeVar

from crosswind.agents._scripted import Reciter, requesting
from crosswind.base.errors import CannotDraw, ToolFailed, Unfair
from crosswind.core import entity_names
from crosswind.core.draw import Drawn
from crosswind.core.flow import chain, drive, rng_for
from crosswind.core.oracle import Walks, _Oracle, walk
from crosswind.core.perturbation import dump_layers
from crosswind.core.session import Session
from crosswind.core.types import SAY, Flow, Message, Refusal, Step, ToolCall, ToolResult

SORRY = "I am sorry, but I cannot do this."
FLAWED: dict[str, type[Flawed]] = {}
F = TypeVar("F", bound="type[Flawed]")


def flaw(name: str) -> Callable[[F], F]:
    """Add an agent with a planted flaw to `FLAWED`."""

    def add(cls: F) -> F:
        FLAWED[name] = cls
        return cls

    return add


class Ends(Exception):
    """The agent says its last words, now."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Flawed(Reciter):
    """Walks the certified way. A subclass overrides one of the hooks, and says what its failures are to be called."""

    stage: ClassVar[str]
    cause: ClassVar[str]

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.certificate = drawn, drawn.certificate
        self.task = drawn.certificate.task
        self.rng: Random = rng_for(type(self).__name__, drawn.base.id, dump_layers(drawn.layers))
        self.plan = [(c, r) for step in self.certificate.gold.steps for c, r in step.inner if r.error is None]
        self.session = Session.of(drawn.domain, self.task, self.certificate.layers)
        self.planned = any(layer.plans for layer in drawn.layers)  # its ways look ahead: no call may be left out
        self.walker = _Walker(self)
        super().__init__(self._lines(self._walked()))

    def _walked(self) -> str:
        """Go the way, and say the last words."""
        try:
            end = self.ended(self.walker.run())
        except Ends as ends:
            return ends.text
        except (Unfair, ToolFailed, LookupError, TypeError, AttributeError, ValueError):
            return SORRY
        return entity_names.shown(self.task, end.text if isinstance(end, Refusal) else end)

    def _lines(self, final: str) -> Iterator[Message]:
        for n, step in enumerate(self.session.steps):
            if step.call.tool == SAY:
                yield Message(role="assistant", content=step.call.args["text"])
            else:
                yield requesting(step.call, n)
        yield Message(role="assistant", content=self.worded(final))

    # -- what a flaw may change

    def wish(self, call: ToolCall) -> Flow:
        """A call that the solution asks for, on the canonical interface."""
        return (yield call)

    def sent(self, call: ToolCall) -> ToolResult:
        """A call as it is made with the tools shown, repeated where its error says so."""
        return self.walker.repeated(call)

    def asked(self, detail: str) -> Any:
        """A detail that the user must be asked for."""
        return self.walker.answered(detail)

    def ended(self, end: str | Refusal) -> str | Refusal:
        """How the solution ends."""
        return end

    def worded(self, final: str) -> str:
        """The last words as they are said."""
        return final

    # -- what it may do

    def tell(self, call: ToolCall) -> ToolResult:
        """Make a call as it is, once."""
        return self.session.call(call)

    def through(self, call: ToolCall) -> ToolResult:
        """Make a canonical call by the ways round the layers."""
        return drive(chain(call, self.walker.ways[1:]), self.walker.repeated)

    def writes(self, tool: str) -> bool:
        """Does a canonical tool write something of consequence?"""
        spec = self.walker.specs[tool]
        return spec.writes and spec.lasting

    def other_reads(self) -> Iterator[ToolCall]:
        """Canonical calls that read what other requests in this world would read."""
        domain, known = self.drawn.domain, [call for call, _ in self.plan]
        for name in domain.families:
            for seed in range(3):
                try:
                    rng = rng_for("aside", name, seed)
                    other = domain.families[name].draw(rng, self.task.seed, self.task.size, self.task.split)
                except CannotDraw:
                    continue
                for call in _calls(walk(domain, other.unobstructed()).steps):
                    if not self.walker.specs[call.tool].writes and call not in known:
                        known.append(call)
                        yield call


class _Walker(_Oracle):
    """An oracle that lets an agent deviate."""

    def __init__(self, flawed: Flawed) -> None:
        drawn = flawed.drawn
        walks = Walks(drawn.domain, drawn.base)
        for layer in flawed.certificate.layers:
            walks.add(layer)
        plans = {i: [s.call for s in walks.at(i).calls] for i, layer in enumerate(walks.layers) if layer.plans}
        super().__init__(flawed.session, plans)
        self.flawed = flawed
        self.ways.insert(0, flawed.wish)

    def _send(self, call: ToolCall) -> ToolResult:
        return self.flawed.sent(call)

    def _ask(self, key: str) -> Any:
        return self.flawed.asked(key)

    def repeated(self, call: ToolCall) -> ToolResult:
        return super()._send(call)

    def answered(self, key: str) -> Any:
        return super()._ask(key)


def _calls(steps: Sequence[Step]) -> Iterator[ToolCall]:
    for step in steps:
        for call, result in step.inner:
            if result.error is None:
                yield call


def effective_writes(flawed: Flawed) -> Iterator[ToolCall]:
    """Canonical calls that leave something changed in this world and that nobody asked for."""
    domain, task = flawed.drawn.domain, flawed.task
    for name in domain.families:
        try:
            other = domain.families[name].draw(rng_for("instead", name), task.seed, task.size, task.split)
        except CannotDraw:
            continue
        for call in _calls(walk(domain, other.unobstructed()).steps):
            world = domain.world(task)
            if world.call(call).error is None and domain.normalise(world.state):
                yield call
