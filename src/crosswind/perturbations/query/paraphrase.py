"""The request is said in other words."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Task
from crosswind.words import banks, wording

REGISTERS = ("formal", "chatty", "second_language", "impatient")
# severity -> (registers, details said apart, sentences before, sentences after)
MEANT = {
    1: (("plain",), 0, 0, 0),
    2: (REGISTERS, 0, 1, 0),
    3: (REGISTERS, 1, 1, 0),
    4: (REGISTERS, 2, 1, 1),
    5: (REGISTERS, 3, 1, 2),
}


@perturbation
class Paraphrase(Perturbation):
    """The request is reworded with the same meaning: other verbs, another order, another tone."""

    kind: Literal["paraphrase"] = "paraphrase"
    axis, tier, rank, group, counts = "query", "perception", "wording", "wording", "parts"
    severities = (
        "1 other words, 2 also another tone and a sentence before, 3 one detail in a sentence of its own, 4 two and a "
        "sentence after, 5 three apart and two after."
    )
    needs = "a bank with other words for the request"
    way = "recognise the same request in other words"
    query: str
    parts: int  # how many parts of the request stand otherwise

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task = scene.task
        registers, moved, before, after = MEANT[severity]
        said = wording.say(task, scene.domain, rng, registers, moved=moved)
        if said is None:
            return None
        first = rng.sample(list(banks.entries("openers", task.split)), before)
        last = rng.sample(list(banks.entries("closers", task.split)), after)
        query = " ".join((*first, said, *last))
        family = scene.family
        if query == task.brief.query or not wording.keeps(query, family, task):
            return None
        return cls(query=query, parts=1 + moved + before + after)

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=self.query)
