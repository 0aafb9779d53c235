"""The house has rules that differ from the usual ones, and its policy says so."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.domain import Family
from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Step, Task
from crosswind.words import banks

RULES = ("latest", "spare", "surcharge", "strict")
COUNT = {1: 1, 2: 2, 3: 2, 4: 3, 5: 4}


@perturbation
class RuleChange(Perturbation):
    """The policy has extra rules that change the right outcome, among others that are irrelevant here."""

    kind: Literal["rule_change"] = "rule_change"
    axis, tier, rank, goal, receipt_source = "domain", "reasoning", "domain", "moved", "query"
    severities = "How many rules the policy has: 1, 2, 2, 3, 4; at 1 and 2 one of them matters, from 3 on all that can."
    needs = "a house rule that changes the right outcome of this request"
    way = "follow the policy where it differs from the usual"
    release_note = "The policy has rules of the house that change what is right, among others that do not matter here."
    rules: dict[str, str]  # those that matter, as `solve` reads them
    words: tuple[str, ...]  # all of them, as the policy says them

    @classmethod
    def fits(cls, family: Family) -> bool:
        return bool(family.house_rules) and not family.refusal

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, family = scene.task, scene.family
        if task.refuse or not family.house_rules:
            return None
        spares: tuple[int, ...] = getattr(scene.domain, "spares", (2, 3))
        amounts = {
            "latest": "yes",
            "strict": "yes",
            "spare": str(rng.choice(spares)),
            "surcharge": str(rng.randint(2, 9)),
        }
        matter = rng.sample(family.house_rules, len(family.house_rules))
        others = [rule for rule in RULES if rule not in family.house_rules]
        rng.shuffle(others)
        if severity <= 2:
            matter = matter[:1]
        all_of = [*matter, *others][: COUNT[severity]]
        rules = {rule: amounts[rule] for rule in all_of if rule in matter}
        moved = task.briefed(rules={**task.brief.rules, **rules})
        state = scene.domain.state(moved)
        if not family.ends(moved, state) or family.right(moved, state) == family.right(task, state):
            return None
        said = [rule_words(rule, amounts[rule], scene.domain.name, task, rng) for rule in all_of]
        rng.shuffle(said)
        return cls(rules=rules, words=tuple(said))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return len(self.rules) + len(self.words)

    def on_task(self, task: Task) -> Task:
        brief = task.brief
        return task.briefed(policy=" ".join((brief.policy, *self.words)), rules={**brief.rules, **self.rules})


def rule_words(rule: str, amount: str, domain: str, task: Task, rng: Random) -> str:
    """A rule of the house as a policy says it."""
    holes = {
        "latest": {"slot": banks.noun(domain, "slot")},
        "spare": {"slot": banks.noun(domain, "slot"), "n": amount, "need": banks.noun(domain, "need", "units")},
        "surcharge": {"fee": banks.noun(domain, "fee"), "n": amount},
        "strict": {},
    }[rule]
    return banks.phrase(f"rule_{rule}", task.split, rng, **holes)
