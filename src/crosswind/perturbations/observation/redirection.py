"""Tools have moved: what is listed under the old name only says where to go."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, Split, ToolCall, Tools, ToolSpec, failed
from crosswind.perturbations._describing import described
from crosswind.perturbations.action.description_rewrite import DescriptionRewrite
from crosswind.words import banks

TRIES = 4
MARKS = banks.own("redirection", "marks")  # what is said of old tools; one sentence for each that a tool has
COUNT = {1: 1, 2: 2, 3: 3, 4: 99, 5: 99}  # tools on the way that have moved


class Move(Model):
    """A name that only tells the next one."""

    old: str
    new: str
    doc: str  # of the old one
    text: str  # the error that names the new one


@perturbation
class Redirection(Perturbation):
    """Deprecated tools are still listed, but return an error that names their successors, which are listed too."""

    kind: Literal["redirection"] = "redirection"
    axis, tier, rank = "observation", "interaction", "fault"
    severities = "Tools in the solution that have moved: 1, 2, 3, all; at 4 one of them has moved twice, at 5 each has."
    needs = "a tool in the solution for which a bank or the lexicon has another name"
    way = "follow the errors to the tool's successor"
    moves: tuple[tuple[Move, ...], ...]  # for each tool, one move after the other

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        path = [name for name in dict.fromkeys(scene.path) if not scene.tools[name].opaque]
        taken, moves = scene.names, []
        for i, name in enumerate(rng.sample(path, min(len(path), COUNT[severity]))):
            hops = 2 if severity == 5 or (severity == 4 and i == 0) else 1
            if chain := _chain(scene, rng, name, hops, taken):
                moves.append(chain)
        return cls(moves=tuple(moves)) if moves else None

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        chains = {chain[0].old: chain for chain in self.moves}
        out: list[ToolSpec] = []
        for tool in tools:
            chain = chains.get(tool.name, ())
            for move in chain:  # a text that speaks of the tool speaks of its last successor
                ids = frozenset() if move is chain[0] else frozenset({move.old})
                stub = tool.replace(name=move.old, doc=move.doc, ids=ids, opaque=True)
                out.append(stub.replace(writes=False, undo=None, lasting=True))
            out.append(tool.made(chain[-1].new) if chain else tool)
        return tuple(out)

    def announcement(self, tools: Mapping[str, ToolSpec], split: Split, rng: Random) -> DescriptionRewrite | None:
        """A layer in which the tools that will move say so, each by its name; None where one has another name there."""
        old = [chain[0].old for chain in self.moves]
        if any(name not in tools for name in old):
            return None
        marks = banks.own("redirection", "announced")[split]
        return DescriptionRewrite(docs={name: f"{tools[name].doc} {rng.choice(marks)}" for name in old})

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        for chain in self.moves:
            for move in chain:
                if call.tool == move.old:
                    memo.fire()
                    return failed("moved", move.text)
            if call.tool == chain[-1].new:
                return (yield call.named(chain[0].old))
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        chain = next((chain for chain in self.moves if chain[0].old == call.tool), ())
        if not chain:
            return (yield call)
        if call.tool not in memo.notes:
            for move in chain:
                result = yield call.named(move.old)
                if not (result.error and result.error.code == "moved"):
                    return result
            memo.notes[call.tool] = True
        return (yield call.named(chain[-1].new))


def _chain(scene: Scene, rng: Random, name: str, hops: int, taken: set[str]) -> tuple[Move, ...]:
    """One or more moves of a tool, each under a new name; none where no bank knows one."""
    spec, split = scene.tools[name], scene.task.split
    chain: list[Move] = []
    marks = rng.sample(MARKS[split], hops)
    for _ in range(hops):
        new = banks.tool_name(scene.domain.name, spec, split, rng, taken)
        if new is None:
            break
        taken.add(new)
        doc = f"{_unlike(scene, spec, rng)} {marks[len(chain)]}"
        text = banks.phrase("moved", split, rng, new=new)
        chain.append(Move(old=chain[-1].new if chain else name, new=new, doc=doc, text=text))
    return tuple(chain)


def _unlike(scene: Scene, spec: ToolSpec, rng: Random) -> str:
    """Another description of a tool, of some the one that has least in common with its own."""
    words = set(spec.doc.lower().split())
    found = [doc for _ in range(TRIES) if (doc := described(scene, spec, rng))]
    return min(found, key=lambda doc: len(words & set(doc.lower().split())), default=spec.doc)
