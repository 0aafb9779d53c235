"""Common parts of agents that learn over a stream or a career; not an agent itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswind.agents._scripted import Reciter, lines_of
from crosswind.base.errors import Unfair
from crosswind.core.draw import Drawn
from crosswind.core.flow import digest
from crosswind.core.memory import Belief, Telling, complete
from crosswind.core.oracle import Walk, walk
from crosswind.core.types import Message, Refusal

LOST = "Done."
UNKNOWN = Refusal("I do not know what this request takes for known").text


def forms(walk: Walk) -> dict[str, str]:
    """What a way takes to know: how each tool is called, and how to read results that are not as in the world."""
    session, out = walk.session, dict[str, str]()
    unlisted = [layer.model_dump_json() for layer in session.layers if not layer.retools]
    for told in walk.told:
        steps, tool = walk.steps[told.first : told.after], told.call.tool
        called = [(s.call.tool, *session.ever[s.call.tool].params) for s in steps if s.call.tool in session.ever]
        out.setdefault(tool, digest(*called).hex())
        if any(s.inner and s.result != s.inner[-1][1] for s in steps):
            out[f"results of {tool}"] = digest(*unlisted).hex()
    return out


def believed(drawn: Drawn, belief: Belief) -> Walk | None:
    """The way that an agent goes which believes this; None if it does not know what the request takes for known."""
    need = drawn.recall.need if drawn.recall else None
    value = belief.value(need.fact) if need else None
    if need is None or value == need.value:
        return drawn.certificate.gold
    if value is None:
        return None
    try:
        return walk(drawn.domain, complete(drawn.base, need, value))
    except Unfair:  # what it believes leads nowhere
        return None


def said(drawn: Drawn, belief: Belief) -> tuple[Iterator[Message], Walk]:
    """What such an agent says, and the walk whose end that is."""
    way = believed(drawn, belief)
    lines = lines_of(way) if way else iter([Message(role="assistant", content=UNKNOWN)])
    return lines, way or drawn.certificate.gold


class Learner(Reciter):
    """Goes the certified way if it knows every tool on it as it is now; otherwise it fails and learns from that.

    Of a career it remembers what it was told.
    """

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.known, self.belief = drawn, dict[str, str](), Belief()
        self.now, self.usual = forms(drawn.certificate.gold), forms(drawn.certificate.clean)
        super().__init__(())

    def learn(self, seen: dict[str, str]) -> dict[str, str]:
        """What it knows of tools once it has seen how they are now."""
        raise NotImplementedError

    def hear(self, telling: Telling) -> None:
        """Remember what the user or a notice says."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Take up what was learnt before."""
        kept = state or {"tools": {}, "usual": {}, "meanwhile": {}}
        self.known, self.belief.usual, self.belief.meanwhile = kept["tools"], kept["usual"], kept["meanwhile"]
        lines, way = said(self.drawn, self.belief)
        if any(self.known.get(what, self.usual.get(what)) != form for what, form in self.now.items()):
            lines = iter([Message(role="assistant", content=LOST)])
        super().__init__(lines, way)

    def save(self) -> dict[str, Any]:
        """What it knows now."""
        seen = {what: form for what, form in self.now.items() if form != self.usual.get(what) or what in self.known}
        for telling in self.drawn.recall.told if self.drawn.recall else ():
            self.hear(telling)
        return {"tools": self.learn(seen), "usual": self.belief.usual, "meanwhile": self.belief.meanwhile}
