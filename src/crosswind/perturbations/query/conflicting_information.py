"""The request says something that the records contradict, and the policy says that the records are right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.domain import Family
from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Step, Task
from crosswind.words import banks


@perturbation
class ConflictingInformation(Perturbation):
    """A stated detail contradicts a record; the policy says that the record wins."""

    kind: Literal["conflicting_information"] = "conflicting_information"
    axis, tier, rank, goal, group = "query", "reasoning", "query", "moved", "records"
    severities = "How often the user insists on the wrong detail after stating it: 0, 1, 2, 3, 4 times."
    needs = "a stated detail that a record holds as well"
    way = "look up the detail and trust the record, as the policy says"
    key: str
    record: str  # "table/id"
    row: dict[str, Any]  # what the record says
    rule: str
    insists: tuple[str, ...]  # sentences with the detail as a hole

    @classmethod
    def fits(cls, family: Family) -> bool:
        return not family.refusal and any(d.record and d.column for d in family.details.values())

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, family, domain = scene.task, scene.family, scene.domain
        if task.refuse or task.changes:
            return None
        for key, detail in family.details.items():
            if key not in task.brief.stated or not detail.record or not detail.column:
                continue
            whose = task.wanted.get(detail.record[1])
            state = domain.state(task)
            row = state.row(detail.column[0], str(whose))
            if row is None or f"{detail.column[0]}/{whose}" in task.edits:
                continue
            who = banks.noun(domain.name, "who", family.details[detail.record[1]].label.removesuffix(" id"))
            rule = banks.phrase("records_win", task.split, rng, label=detail.label, who=who)
            roles = banks.data(domain.name).get("roles", {}).get(key, {})
            sayings = [*roles.get("sentences", {}).get(task.split, ()), *roles.get("labels", {}).get(task.split, ())]
            insists = tuple(_sentence(s) for s in rng.sample(sayings, min(len(sayings), severity - 1)))
            for _ in range(40):
                other = family.propose(rng, state, task.split)
                if other is None or other[key] == task.brief.stated[key]:
                    continue
                record = f"{detail.column[0]}/{whose}"
                new = {**row, detail.column[1]: other[key]}
                layer = cls(key=key, record=record, row=new, rule=rule, insists=insists)
                moved = layer.on_task(task)
                if family.ends(moved, domain.state(moved)) and _matters(scene, task, moved):
                    return layer
        return None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return 1 + len(self.insists)

    def on_task(self, task: Task) -> Task:
        brief = task.brief
        said = [s.replace(f"{{{self.key}}}", str(brief.stated[self.key])) for s in self.insists]
        return task.replace(edits={**task.edits, self.record: self.row}).briefed(
            query=" ".join((brief.query, *said)),
            policy=f"{brief.policy} {self.rule}",
            rules={**brief.rules, self.key: "records"},
        )


def _matters(scene: Scene, task: Task, moved: Task) -> bool:
    """Would somebody who takes the request at its word come to another end?"""
    family, state = scene.family, scene.domain.state(moved)
    heedless = moved.briefed(rules=task.brief.rules)
    return family.right(moved, state) != family.right(heedless, state)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
