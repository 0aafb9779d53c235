"""Stored results of a study: what was done for each arm and seed, the rows of its episodes, and figures from them.

Seeds of an arm are pooled. Intervals go by tasks, each with its episodes of all seeds, because seeds of one task are
correlated. Changes are over tasks that can be solved clean and shifted; refusals are counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from crosswind.base.errors import BadFile
from crosswind.base.files import LARGEST, read_whole
from crosswind.base.yaml_files import complaint
from crosswind.core.registry import perturbations
from crosswind.core.types import Model
from crosswind.episodes.brief import Told
from crosswind.episodes.record import Record
from crosswind.metrics import (
    Averages,
    By,
    Cell,
    Drop,
    Measures,
    NetScore,
    RefusalShares,
    averaged,
    cell,
    drop,
    drops,
    refusals,
    score,
)
from crosswind.study import outcomes
from crosswind.study.definition import Arm, Name, Part, Study, suite_of
from crosswind.train.config import METRICS, Method
from crosswind.words.held_out import HELD_OUT

LOG, FAILED = "test_log.jsonl", "failed.txt"
REWARDS = f"train/{METRICS}"  # the metrics of GRPO, kept with its results
ALWAYS = "always refuses"  # what is shown beside arms where refusing could pass for a result
Keep = Callable[[Record], bool]
T = TypeVar("T")


class Absent(Exception):
    """An arm or a figure that a rule needs is not there."""


class Done(Model):
    """What was done for one arm and seed."""

    study: str
    arm: Name
    wave: Name
    about: str
    method: Method | None
    seed: int
    part: Part
    config: dict[str, Any]  # the options of the training, as written down
    config_hash: str
    suite_hash: str
    episodes_hash: str = ""  # of the episodes played: another version can deal other tasks for the same definition
    commit: str  # of the repository; empty without one
    code: str  # a digest of the package
    crosswind: str
    ended: str
    episodes: int
    passed: int
    scored: int
    train: dict[str, Any] | None  # what the training reported
    spent: dict[str, float]  # seconds


def read_done(path: Path) -> Done:
    """Read the result in a file and check that it belongs to the arm, seed and part of its path."""
    try:
        done = Done.model_validate_json(read_whole(path, 4 * LARGEST, links=True))
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else complaint(error.errors()[0])
        raise BadFile(f"{path}: not a result of a study ({why}); remove that folder and run the arm again") from None
    place = f"{done.arm}/seed-{done.seed}/{done.part}.json"
    if path.parts[-3:] != tuple(place.split("/")):
        raise BadFile(f"{path}: holds the result of {place}; move it there, or remove it")
    return done


def read_rows(path: Path, done: Done) -> list[outcomes.OutcomeRow]:
    """Read the table next to a result and check that it holds exactly the episodes that the result counts."""
    table = path.with_name(f"{done.part}.jsonl.xz")
    head, rows = outcomes.read(table, done.arm, done.seed)
    own = {"seed": done.seed, "part": done.part}  # not the name: arms were renamed now and then
    wrong = [f"its {name} is {head.get(name)!r}" for name, value in own.items() if head.get(name) != value]
    scored, passed = outcomes.passed(rows)
    if (len(rows), scored, passed) != (done.episodes, done.scored, done.passed):
        wrong.append(
            f"of {len(rows)} episodes {scored} are scored and {passed} passed; {path.name} has "
            f"{done.episodes}, {done.scored} and {done.passed}"
        )
    if done.episodes_hash and outcomes.played(rows) != done.episodes_hash:
        wrong.append("its episodes differ")
    if wrong:
        raise BadFile(f"{table}: does not match {path} ({wrong[0]}); restore it, or run the arm again")
    return rows


# ---------------------------------------------------------------- one arm


class ArmResults:
    """The outcomes of one arm, its seeds pooled."""

    def __init__(self, arm: Arm, done: Sequence[Done], rows: Iterable[outcomes.OutcomeRow]) -> None:
        self.arm, self.done = arm, sorted(done, key=lambda one: one.seed)
        self.records: list[Record] = []
        self.measures: dict[str, Measures] = {}
        self._tiers: dict[str, dict[str, Drop]] = {}
        for record, measures in rows:
            if measures is not None:  # infrastructure errors count nowhere
                self.records.append(record)
                self.measures[record.key] = measures

    @property
    def name(self) -> str:
        return self.arm.name

    @property
    def seeds(self) -> list[int]:
        return [one.seed for one in self.done]

    @cached_property
    def clean(self) -> list[Record]:
        return [record for record in self.records if record.clean]

    def of(self, suite: str, *, keep: Keep = lambda _: True) -> list[Record]:
        """The shifted episodes of a suite (of all, if it is empty) that are to be kept."""
        return [r for r in self.records if not r.clean and suite in ("", suite_of(r.condition)) and keep(r)]

    def drop(self, suite: str, keep: Keep = lambda _: True) -> Drop | None:
        """The change under a suite, over the pairs to be kept."""
        return drops([*self.clean, *self.of(suite, keep=keep)], "all").get("all")

    def drops(self, suite: str, by: By, keep: Keep = lambda _: True) -> dict[str, Drop]:
        return drops([*self.clean, *self.of(suite, keep=keep)], by)

    def tier(self, suite: str, tier: str) -> Drop | None:
        """The change under one tier of a suite, adjusted over its tiers."""
        if suite not in self._tiers:
            self._tiers[suite] = self.drops(suite, "tier")
        return self._tiers[suite].get(tier)

    def solved(self, *domains: str) -> Cell:
        """Clean accuracy in some domains, of the tasks that can be solved."""
        return cell(record for record in self.clean if record.domain in domains and not record.refuse)

    def averages(self, records: Iterable[Record]) -> Averages:
        return averaged(records, self.measures)

    def refusals(self, suite: str, keep: Keep = lambda _: True) -> Cell:
        """Right refusals of the episodes that a shift made impossible."""
        return cell(r for r in self.of(suite, keep=impossible) if keep(r))

    def false_refusals(self, suite: str, keep: Keep = lambda _: True) -> Cell:
        """Of the shifted episodes that can be solved, those refused."""
        return refusals(self.of(suite, keep=keep)).false

    def clean_refusals(self, *domains: str) -> RefusalShares:
        """Refusals in clean episodes of some domains, or of all."""
        return refusals(r for r in self.clean if not domains or r.domain in domains)

    def score(self, suite: str) -> NetScore | None:
        """One number for a suite."""
        return score(self.of(suite))

    @cached_property
    def refusing(self) -> ArmResults:
        """What an agent that refuses everything makes of the same episodes, which follows from them."""
        out = ArmResults(self.arm.model_copy(update={"name": ALWAYS}), self.done, ())
        out.measures = {key: one.model_copy(update={"refused": True}) for key, one in self.measures.items()}
        for record in self.records:
            outcome = "pass" if record.refuse else "fail"
            out.records.append(record.model_copy(update={"outcome": outcome, "ended": "refusal"}))
        return out

    def seed(self, seed: int) -> ArmResults:
        """One seed alone."""
        rows = [outcomes.OutcomeRow(r, self.measures[r.key]) for r in self.records if r.trial == seed]
        return ArmResults(self.arm, [one for one in self.done if one.seed == seed], rows)


def impossible(record: Told) -> bool:
    """Did a shift take the task away? Tasks that cannot be done in clean worlds either do not count."""
    return record.refuse and any(perturbations[kind].goal == "refuse" for kind in record.kinds)


def solvable(record: Record) -> bool:
    return not record.refuse


def is_trained(record: Record) -> bool:
    """Is every kind of an episode one that training data may have?"""
    return not HELD_OUT.intersection(record.kinds)


def between(one: ArmResults, other: ArmResults, suite: str, keep: Keep = solvable) -> Drop | None:
    """The paired difference of two arms in the same episodes, the second minus the first; equal seeds are matched.

    Without a suite, clean episodes are compared. `keep` says which episodes count: those that can be solved.
    """

    def chosen(arm: ArmResults) -> list[Record]:
        return arm.of(suite, keep=keep) if suite else [record for record in arm.clean if keep(record)]

    base: dict[tuple[str, str, tuple[str, ...]], dict[int, Record]] = {}
    for record in chosen(one):
        base.setdefault((record.task_id, record.condition, record.kinds), {})[record.trial] = record
    found = []
    for record in chosen(other):
        if seeds := base.get((record.task_id, record.condition, record.kinds)):
            found.append((seeds.get(record.trial) or seeds[min(seeds)], record))
    return drop(f"{one.name} to {other.name}", found)


# ---------------------------------------------------------------- all arms


@dataclass
class Results:
    """The stored results of a study: arms that were tested, and arms that were tried on dev.

    Figures by name (`arm`, `tier`, `clean`, `refusals`) are for rules; a missing one raises `Absent`.
    """

    study: Study
    folder: Path
    arms: Mapping[str, ArmResults]
    dev: Mapping[str, ArmResults] = field(default_factory=dict)

    def arm(self, name: str) -> ArmResults:
        if name not in self.arms:
            raise Absent(name)
        return self.arms[name]

    def tier(self, arm: str, suite: str, tier: str) -> Drop:
        return there(self.arm(arm).tier(suite, tier), f"{arm} on {suite}: {tier}")

    def clean(self, arm: str, *domains: str) -> float:
        return there(self.arm(arm).solved(*domains).rate, f"clean episodes of {arm}")

    def refusals(self, arm: str, suite: str) -> float:
        return there(self.arm(arm).refusals(suite).rate, f"refusals of {arm}")


def there(found: T | None, what: str) -> T:
    """A figure that a rule needs; `Absent` where there is none."""
    if found is None:
        raise Absent(what)
    return found


def load_results(study: Study, folder: Path) -> Results:
    """Read all results in a folder."""
    return Results(study, folder, read_arms(study, folder), read_arms(study, folder, "dev"))


def read_arms(study: Study, folder: Path, part: Part = "test") -> dict[str, ArmResults]:
    """The arms that have results, in the order of the definition; arms that it does not have come last."""
    found: dict[str, list[tuple[Done, list[outcomes.OutcomeRow]]]] = {}
    for path in sorted(folder.glob(f"arms/*/seed-*/{part}.json")):
        done = read_done(path)
        found.setdefault(done.arm, []).append((done, read_rows(path, done)))
    order = [*(name for name in study.by_name if name in found), *(n for n in found if n not in study.by_name)]
    out = {}
    for name in order:
        first = found[name][0][0]
        arm = study.by_name.get(name) or Arm.model_validate(
            {"name": name, "wave": first.wave, "about": first.about, "method": first.method}
        )
        out[name] = ArmResults(arm, [d for d, _ in found[name]], [row for _, rows in found[name] for row in rows])
    return out
