"""Picks tools by their names."""

from __future__ import annotations

from crosswind.agents._scripted import agent
from crosswind.agents._solver import Solver
from crosswind.core.types import ASK, ToolCall, Tools, ToolSpec
from crosswind.words import banks


@agent("by_name")
class ByName(Solver):
    """Solves the task with the tools whose names say what it wants, other words included; it reads no description."""

    repeats = 1

    def named(self, call: ToolCall, tools: Tools) -> ToolCall:
        domain = self.drawn.domain
        wanted = domain.world_class.entries[call.tool].spec
        shown = [t.name for t in tools if t.name != ASK]
        if call.tool in shown:
            return call
        return call.named(max(shown, key=lambda name: (alike(domain.name, wanted, name), name)))


def alike(domain: str, wanted: ToolSpec, name: str) -> int:
    """How much a name says what a tool does: its own words, or others for them in any split."""
    said = banks.lemma(name)
    pair = banks.concept(domain, wanted)
    score = sum(len(w) for w in wanted.name.split("_") if banks.lemma(w) in said)
    if pair is None:
        return score
    bank = banks.data(domain)
    for sort, word in zip(("actions", "words"), pair, strict=True):
        fits = [e for entries in bank[sort][word].values() for e in (word, *entries) if banks.lemma(e) in said]
        score += 10 * max((len(banks.lemma(e)) for e in fits), default=0)
    return score
