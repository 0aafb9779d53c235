"""What an agent is told in one episode of a career and needs in a later one.

A request that needs a fact exists in two forms. The complete one states the fact, and is certified as any task is. The
agent is shown the other one, in which only a phrase such as "my usual store" stands for it, so memory alone can tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from crosswind.core.types import Model, Task

Value = str | int
Twist = Literal["plain", "superseded", "contradicted", "expired"]
HOLE = "{value}"


class Telling(Model):
    """What is said about a fact in passing."""

    fact: str
    value: Value
    words: str
    by: Literal["user", "notice", "hearsay"] = "user"  # hearsay changes nothing
    how: Literal["set", "meanwhile", "over"] = "set"  # meanwhile: until it is said to be over


class Need(Model):
    """A fact that a request depends on and does not state."""

    fact: str
    value: Value  # in force now
    rival: Value  # of the twin career; also what was superseded, is hearsay or has expired
    key: str = ""  # the detail of the request that is the fact; empty: a rule of the policy
    rule: str = ""
    sentence: str  # the request, with a hole for the fact
    known: str = ""  # is in the hole
    policies: dict[str, str] = Field(default_factory=dict)  # value -> what the policy would say; of a rule
    twist: Twist = "plain"
    distance: int = 1  # episodes since the value was told
    distractors: int = 0  # episodes in between that state another value of the same detail


class Recall(Model):
    """How an episode belongs to a career."""

    told: tuple[Telling, ...] = ()
    need: Need | None = None
    policy: str = ""  # what every episode of the career adds to the policy


class Belief:
    """What holds after everything that was told: the latest word of somebody who is to be believed."""

    def __init__(self, tellings: Iterable[Telling] = ()) -> None:
        self.usual: dict[str, Value] = {}
        self.meanwhile: dict[str, Value] = {}
        for telling in tellings:
            self.hear(telling)

    def hear(self, telling: Telling) -> None:
        if telling.by == "hearsay":
            return
        self.meanwhile.pop(telling.fact, None)
        if telling.how == "meanwhile":
            self.meanwhile[telling.fact] = telling.value
        elif telling.how == "set":
            self.usual[telling.fact] = telling.value

    def value(self, fact: str) -> Value | None:
        return self.meanwhile.get(fact, self.usual.get(fact))


def complete(task: Task, need: Need, value: Value) -> Task:
    """The request with the fact stated, and with this value."""
    if need.rule:
        rules = {k: v for k, v in task.brief.rules.items() if k != need.rule}
        if str(value) not in ("no", "0"):
            rules[need.rule] = str(value)
        bare = task.brief.policy
        for said in need.policies.values():
            bare = bare.removesuffix(f" {said}")
        return task.briefed(
            query=_sentence(need.sentence, ""), rules=rules, policy=f"{bare} {need.policies[str(value)]}"
        )
    stated: dict[str, Any] = {**task.brief.stated, need.key: value}
    return task.briefed(query=_sentence(need.sentence, str(value)), stated=stated)


def shown(task: Task, recall: Recall) -> Task:
    """The complete request as the agent meets it: without the fact that it needs, and with what is told in passing."""
    need = recall.need
    query, policy, stated = task.brief.query, task.brief.policy, dict(task.brief.stated)
    if need is not None:
        query = _sentence(need.sentence, need.known)
        if need.rule:
            policy = policy.removesuffix(f" {need.policies[str(need.value)]}")
        else:
            task = task.replace(remembered={need.key: stated.pop(need.key)})
    notices = [telling.words for telling in recall.told if telling.by == "notice"]
    said = [telling.words for telling in recall.told if telling.by != "notice"]
    return task.briefed(
        query=" ".join((query, *said)), policy=" ".join(filter(None, (policy, recall.policy, *notices))), stated=stated
    )


def _sentence(text: str, value: str) -> str:
    filled = text.replace(HOLE, value)
    return filled[0].upper() + filled[1:]
