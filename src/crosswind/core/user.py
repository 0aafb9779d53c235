"""The scripted user: answers what was withheld when asked, in words, and repeats what was said. No model, no chance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from crosswind.core import entity_names
from crosswind.core.domain import Detail, Domain
from crosswind.core.types import Change, Task
from crosswind.core.world import World
from crosswind.text import speech

NOTHING = "I have nothing to add to that."
GO_ON = "Yes, please do what I asked for."
TOLD = "I told you that in an earlier conversation."
GENERIC = re.compile(
    r"\b(details?|information|info|specif\w+|clarif\w+|(?<!once )more|else|missing|exactly"
    r"|preferences?|provide|elaborate)\b",
    re.IGNORECASE,
)


class User:
    """The user of one task: the changes they have yet to voice, and those they have voiced."""

    def __init__(self, domain: Domain, task: Task, world: World) -> None:
        self.domain, self.task, self.world = domain, task, world
        self.details = domain.family(task).details
        self.pending = list(task.changes)
        self.said: list[Change] = []  # voiced changes that the oracle must still act on; agents read them in the chat
        self.changed: dict[str, object] = {}

    def understood(self, text: str) -> speech.Speech:
        """What kind of message the agent's text is."""
        task = self.task.replace(changes=()) if self.pending else self.task  # until the request turns into another
        return self.domain.family(task).understood(task, text)

    def answer(self, question: str) -> str:
        """The answer to a question, in the words of the episode."""
        question = entity_names.plain(self.task, question[:4000])
        return entity_names.shown(self.task, answer(question, self.task, self.details, self.changed))

    def change(self, said: str) -> Change:
        """Voice the next change; `said` is what the agent said before."""
        change = self.pending.pop(0)
        self.world.hear(change, said)
        self.said.append(change)
        self.changed |= change.stated
        return change


def words_about(question: str, details: Mapping[str, Detail]) -> list[str]:
    """The details that a question is about, by the words each goes by."""
    said = _said(question[:4000])
    return [key for key, detail in details.items() if key in said or not said.isdisjoint(detail.words)]


@lru_cache(maxsize=256)
def _said(question: str) -> frozenset[str]:
    """The words of a question, also without a plural's ending."""
    said = set(re.findall(r"[a-z_]+", question.lower()))
    return frozenset(said | {w[:-1] for w in said if w.endswith("s")})


def answer(question: str, task: Task, details: Mapping[str, Detail], changed: Mapping[str, Any]) -> str:
    """What the user says to a question; `changed` holds what they have said otherwise since.

    Asked about a detail, by its words, they give it, withheld or not, unless they told it in an earlier episode. Asked
    for more in general, they give all that was withheld; so they do for any question but an offer where they withheld
    one thing. Asked whether to go ahead or to try again, they say yes. Otherwise they have nothing to add.
    """
    known = {**task.brief.stated, **task.withheld, **changed}
    asked = words_about(question, details)
    about = [key for key in asked if key in known]
    if not about and any(key in task.remembered for key in asked):
        return TOLD
    if withheld := [key for key in about if key in task.withheld]:
        about = withheld  # a question that also names what is known asks for what is not
    offered = not about and speech.offers(question)
    if not about and (GENERIC.search(question[:4000]) or (len(task.withheld) == 1 and not offered)):
        about = list(task.withheld)
    if about:
        return " ".join(f"The {details[key].label} is {known[key]}." for key in about)
    return GO_ON if offered else NOTHING
