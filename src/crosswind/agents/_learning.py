"""What agents that learn an interface over a stream have in common; not an agent itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from crosswind.agents._scripted import Reciter, lines_of
from crosswind.core.draw import Drawn
from crosswind.core.flow import digest
from crosswind.core.oracle import Walk
from crosswind.core.types import Message

LOST = "Done."


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


class Learner(Reciter):
    """Goes the certified way if it knows every tool on it as it is now; otherwise it fails and learns from that."""

    updates: ClassVar[bool]  # does a later form replace one learnt before?

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.known = drawn, dict[str, str]()
        self.now, self.usual = forms(drawn.certificate.gold), forms(drawn.certificate.clean)
        super().__init__(())

    def restore(self, state: Any) -> None:
        """Take up what was learnt before."""
        self.known = dict(state or {})
        gold = self.drawn.certificate.gold
        knows = all(self.known.get(what, self.usual.get(what)) == form for what, form in self.now.items())
        lines: Iterable[Message] = lines_of(gold) if knows else [Message(role="assistant", content=LOST)]
        super().__init__(lines, gold)

    def save(self) -> dict[str, str]:
        """What it knows now."""
        seen = {what: form for what, form in self.now.items() if form != self.usual.get(what) or what in self.known}
        return {**self.known, **seen} if self.updates else {**seen, **self.known}
