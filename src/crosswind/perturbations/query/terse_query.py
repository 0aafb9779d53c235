"""The request comes in as few words as it can do with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Task
from crosswind.words import wording

# words that go first, then those that go next; what is left still tells what is wanted
WORDS = (
    frozenset("a an the please kindly".split()),
    frozenset("i me my we us our you your could can would will should do does is are be it its that this".split()),
    frozenset("in on at of for with by as".split()),
    frozenset("and then so who where also just out up".split()),
)


@perturbation
class TerseQuery(Perturbation):
    """The request is cut down to keywords and values."""

    kind: Literal["terse_query"] = "terse_query"
    axis, tier, rank, group, counts = "query", "perception", "wording", "wording", "dropped"
    severities = (
        "What is dropped: 1 articles and courtesies, 2 also pronouns and auxiliaries, 3 also prepositions, 4 also "
        "conjunctions and the like, 5 also punctuation and capitals."
    )
    needs = "words that the request can do without"
    way = "work out the whole request from keywords and values"
    query: str
    dropped: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task = scene.task
        said = wording.say(task, scene.domain, rng, ("telegraphic",)) or task.brief.query
        fixed = [str(v) for v in (*task.brief.stated.values(), *task.brief.vague.values())]
        words = cut(said, severity, fixed)
        query = " ".join(words)
        lost = len(task.brief.query.split()) - len(words)
        if query == task.brief.query or not wording.keeps(query, scene.family, task):
            return None
        return cls(query=query, dropped=max(1, lost))

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=self.query)


def cut(text: str, severity: int, fixed: Sequence[str]) -> list[str]:
    """The words of a text without those that it can do without; `fixed` stays as it is."""
    pattern = "|".join(sorted(map(re.escape, fixed), key=len, reverse=True)) or "(?!)"
    out: list[str] = []
    for piece in re.split(rf"({pattern})", text):
        if piece in fixed:
            out.append(piece)
            continue
        gone = frozenset[str]().union(*WORDS[: min(severity, 4)])
        if severity >= 3:
            piece = piece.replace("(", " ").replace(")", " ")
        kept = [w for w in piece.split() if re.sub(r"\W", "", w).lower() not in gone]
        if severity == 5:
            kept = [w for word in kept if (w := re.sub(r"[^\w'/-]", "", word).lower())]
        kept = [w for w in kept if re.search(r"\w", w) or (severity < 5 and w in "-/:")]
        out += kept
    return out
