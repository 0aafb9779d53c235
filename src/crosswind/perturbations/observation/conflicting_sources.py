"""Two or three sources for the same facts contradict each other, and the policy says which one is right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, Step, Task, ToolCall, ToolResult, Tools, ToolSpec
from crosswind.perturbations.observation._rows import distorted
from crosswind.perturbations.observation._shapes import reading
from crosswind.words import banks

AMOUNT = {1: (1, 0), 2: (2, 0), 3: (99, 0), 4: (99, 1), 5: (99, 99)}  # tools with a rival, and with two


class Rival(Model):
    """A tool that gives the same facts as another, with other figures."""

    name: str
    doc: str


@perturbation
class ConflictingSources(Perturbation):
    """Several tools report the same facts but disagree; the policy says which one is right."""

    kind: Literal["conflicting_sources"] = "conflicting_sources"
    axis, tier, rank = "observation", "reasoning", "protocol"
    severities = (
        "Reading tools in the solution with a rival: 1, 2, all; at 4 one of them has two rivals, at 5 each has two."
    )
    needs = "a reading tool in the solution that returns numbers"
    way = "use the source that the policy says is right"
    rivals: dict[str, tuple[Rival, ...]]
    right: dict[str, str]  # tool -> itself or one of its rivals
    words: tuple[str, ...]  # what the policy says
    salt: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        reads, split, taken = list(reading(scene)), scene.task.split, scene.names
        tools, twice = AMOUNT[severity]
        rivals: dict[str, tuple[Rival, ...]] = {}
        right: dict[str, str] = {}
        words: list[str] = []
        docs: set[str] = set()
        for i, name in enumerate(rng.sample(reads, min(len(reads), tools))):
            made = []
            for _ in range(2 if i < twice else 1):
                new = banks.tool_name(scene.domain.name, scene.tools[name], split, rng, taken)
                doc = banks.phrase("source_doc", split, rng, tool=name)
                if new is not None and doc not in docs:
                    made.append(Rival(name=new, doc=doc))
                    taken.add(new)
                    docs.add(doc)
            if not made:
                continue
            names = [name, *(rival.name for rival in made)]
            right[name] = names[-1] if not right else rng.choice(names[1:] if rng.random() < 0.7 else names)
            rivals[name] = tuple(made)
            words += [
                banks.phrase("source_wins", split, rng, right=right[name], wrong=wrong)
                for wrong in names
                if wrong != right[name]
            ]
        if not rivals:
            return None
        return cls(rivals=rivals, right=right, words=tuple(words), salt=rng.randrange(10**6))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each answer that must be put aside; the certified way asks all sources, and one of them is right."""
        sources = [step for step in gold if place in step.fired]
        asked = [[call for call, _ in step.inner] for step in sources]
        return len(asked) - len([calls for i, calls in enumerate(asked) if calls not in asked[:i]])

    def on_task(self, task: Task) -> Task:
        return task.briefed(policy=" ".join((task.brief.policy, *self.words)))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        out: list[ToolSpec] = []
        for tool in tools:
            out.append(tool)
            for rival in self.rivals.get(tool.name, ()):
                out.append(ToolSpec.new(rival.name, rival.doc, tool.params))
        return tuple(out)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        of = next((n for n, all_of in self.rivals.items() if call.tool in (n, *(r.name for r in all_of))), None)
        if of is None:
            return (yield call)
        result = yield call.named(of)
        if result.error:
            return result
        memo.fire()
        return result if call.tool == self.right[of] else ToolResult(distorted(result.content, call, self.salt))

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.rivals:
            return (yield call)
        told: dict[str, ToolResult] = {}
        for name in (call.tool, *(rival.name for rival in self.rivals[call.tool])):
            told[name] = yield call.named(name)
            if told[name].error:
                return told[name]
        return told[self.right[call.tool]]
