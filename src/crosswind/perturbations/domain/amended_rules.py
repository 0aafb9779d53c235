"""A rule of the house was amended, and the policy has every version with its date."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.domain import Family
from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Step, Task
from crosswind.perturbations.domain.rule_change import rule_words
from crosswind.perturbations.query._changes import wording

AMOUNTS = ("spare", "surcharge")  # rules with an amount, which changes; others are lifted and brought back
VERSIONS = {1: 2, 2: 2, 3: 3, 4: 3, 5: 4}
YEARS = (2027, 2028, 2029, 2030)  # before any request


@perturbation
class AmendedRules(Perturbation):
    """The policy has several dated versions of a rule; under the latest one, the right outcome is different."""

    kind: Literal["amended_rules"] = "amended_rules"
    axis, tier, rank, goal, receipt_source = "domain", "reasoning", "domain", "moved", "query"
    severities = "How many versions the policy has: 2, 2, 3, 3, 4; from 2 on they are not in the order of their dates."
    needs = "a house rule whose last version changes the right outcome of this request, compared with any earlier one"
    way = "follow the version with the latest date"
    release_note = "The policy has several versions of a rule, each with a date; the latest one leads to another end."
    rules: dict[str, str]  # the one in force, as `solve` reads it
    words: tuple[str, ...]  # every version, as the policy says them, and which counts

    @classmethod
    def fits(cls, family: Family) -> bool:
        return bool(family.house_rules) and not family.refusal

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, family = scene.task, scene.family
        able = [rule for rule in family.house_rules if rule not in task.brief.rules]
        if task.refuse or not able:
            return None
        spares: tuple[int, ...] = getattr(scene.domain, "spares", (2, 3))
        for rule in rng.sample(able, len(able)):
            amounts = (
                [str(n) for n in (spares if rule == "spare" else range(2, 10))] if rule in AMOUNTS else ["yes", ""]
            )
            versions = [rng.choice(amounts) if rule in AMOUNTS else "yes"]
            while len(versions) < VERSIONS[severity]:
                versions.insert(0, rng.choice([amount for amount in amounts if amount != versions[0]]))
            if _matters(scene, rule, versions[-1], {"", *versions} - {versions[-1]}):
                break
        else:
            return None
        days = sorted(f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}" for year in YEARS[-len(versions) :])
        said = []
        for day, amount in zip(days, versions, strict=True):
            words = rule_words(rule, amount or "yes", scene.domain.name, task, rng)
            said.append(
                wording("amended_rules", "since" if amount else "lifted", task.split, rng, date=day, rule=words)
            )
        if severity > 1:
            said = [said[-1], *rng.sample(said[:-1], len(said) - 1)]
        return cls(rules={rule: versions[-1]}, words=(*said, wording("amended_rules", "latest", task.split, rng)))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return len(self.words)

    def on_task(self, task: Task) -> Task:
        brief = task.brief
        return task.briefed(policy=" ".join((brief.policy, *self.words)), rules={**brief.rules, **self.rules})


def _matters(scene: Scene, rule: str, amount: str, others: set[str]) -> bool:
    """Does an amount lead to another end than each of the others, and than no such rule?"""
    task, family = scene.task, scene.family

    def right(value: str) -> object:
        rules = {**task.brief.rules, **({rule: value} if value else {})}
        other = task.briefed(rules=rules)
        state = scene.domain.state(other)
        return (family.right(other, state), bool(family.ends(other, state)))

    here = right(amount)
    return bool(isinstance(here, tuple) and here[1]) and all(right(value) != here for value in sorted(others))
