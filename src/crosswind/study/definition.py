"""A study as data: its arms, each a way to train a model, the suites that test them, and what the report shows.

One file holds everything that could be chosen after the fact: which models are trained, from which seeds, and the
tasks, kinds and severities they are tested on. Results carry hashes of it. Nothing heavy is imported here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.yaml_files import Document, Place, read
from crosswind.core.flow import rng_for
from crosswind.core.registry import did_you_mean, domains
from crosswind.core.types import Model
from crosswind.episodes.recipe import known_kinds
from crosswind.episodes.record import Record
from crosswind.episodes.suite import CLEAN, Suite
from crosswind.train import config as training
from crosswind.words.held_out import held_out_kinds

DEFINITION, RESULTS = "definition.yaml", "results"  # in the folder of a study
RESERVED = ("model", "seed", "start", "out")  # options of a training that an arm cannot set
Part = Literal["dev", "test"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # of an arm and its folder, of a wave or a plot


def _once(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"the seeds {', '.join(map(str, seeds))} have one twice; name each once")
    return seeds


Seeds = Annotated[tuple[Annotated[int, Field(ge=0, le=training.SEEDS)], ...], AfterValidator(_once)]


class Arm(Model):
    """One way to train: a method and the options in which it differs from the defaults, or from another arm."""

    name: Name
    wave: Name = "A"  # a stage of the study, for the list of arms
    about: str = ""
    method: training.Method | None = None  # None: nothing is trained
    like: str = ""  # an earlier arm, whose method, start and options this one takes over
    start: str = ""  # an earlier arm, whose adapter this one continues to train
    seeds: Seeds = ()  # default: those of the study
    train: dict[str, Any] = Field(default_factory=dict)  # options of the training
    at: str = ""  # the commit at which it ran; demonstrations differ since, so it is shown but not run again


class Section(Model):
    """A part of the report: a title, what it shows, and the options of that."""

    title: str
    make: str  # a table of `crosswind.study.tables`, or a section of the study's findings.py
    arms: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()  # default: all
    domains: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()  # of arms
    reference: str = ""  # the arm that others are compared with
    severity: int = Field(default=1, ge=1, le=5)


class Curve(Model):
    """A plot of changes over an option of the training, one point per arm."""

    title: str
    option: str  # such as data.share
    arms: tuple[str, ...] = Field(min_length=2)
    log: bool = False
    at: dict[str, tuple[float, str]] = Field(default_factory=dict)  # arms with a value and a label of their own


SECTIONS = {  # of a report whose definition says nothing of it
    "changes": "Accuracy and its change",
    "seeds": "Each seed by itself",
    "refusals": "Refusals",
    "playing": "How they play",
    "dev": "Choices, on the dev split",
    "log": "Every evaluation on the test split",
    "trained": "What was trained",
}


class ReportPlan(Model):
    """What the report of a study shows."""

    suites: dict[str, str] = Field(default_factory=dict)  # of the test, with a description
    sections: tuple[Section, ...] = tuple(Section(title=title, make=make) for make, title in SECTIONS.items())
    plots: tuple[Literal["forest", "heat", "scatter"], ...] = ("forest", "scatter")
    curves: dict[Name, Curve] = Field(default_factory=dict)

    def named_arms(self) -> list[str]:
        """Every arm that the plan names."""
        out = [arm for curve in self.curves.values() for arm in (*curve.arms, *curve.at)]
        for one in self.sections:
            out += [
                *one.arms,
                *(arm for pair in one.pairs for arm in pair),
                *([one.reference] if one.reference else []),
            ]
        return out


class Study(Model):
    """The whole file."""

    name: str
    summary: str = ""
    model: str = "embedded"
    seeds: Seeds = Field(default=(0,), min_length=1)
    max_tokens: int = Field(default=256, ge=1)  # of one reply
    dev_seed: int = Field(default=0, ge=0)  # of tasks and layers
    test_seed: int = Field(default=0, ge=0)
    arms: tuple[Arm, ...] = Field(min_length=1)
    dev: Suite
    test: Suite
    report: ReportPlan = ReportPlan()

    @model_validator(mode="after")
    def _sound(self) -> Self:
        before: set[str] = set()
        for arm in self.arms:
            if arm.name in before:
                raise ValueError(f"the arm {arm.name!r} comes twice")
            for other in (arm.like, arm.start):
                if other and other not in before:
                    raise ValueError(f"the arm {arm.name!r} names {other!r}, which does not come before it")
            before.add(arm.name)
        if self.dev.split != "dev" or self.test.split != "test":
            raise ValueError("the suite dev has the split dev, and the suite test the split test")
        held_out = set(held_out_kinds())
        for condition in self.dev.conditions:
            if found := held_out.intersection(condition.recipe.kinds()):
                raise ValueError(f"the suite dev names {min(found)!r}, which is held out: choices would be made on it")
        for names, known, what in (
            (self.report.suites, list(self.suites), "suite"),
            (self.report.named_arms(), list(before), "arm"),
        ):
            for name in names:
                if name not in known:
                    raise ValueError(f"the report names the {what} {name!r}; {did_you_mean(name, known)}")
        return self

    @property
    def suites(self) -> dict[str, tuple[str, ...]]:
        """The suites of the test (the part before the slash in the names of conditions), with their domains."""
        out: dict[str, dict[str, None]] = {name: {} for name in self.report.suites}
        for condition in self.test.all_conditions():
            if condition.name == CLEAN:
                continue
            out.setdefault(suite_of(condition.name), {}).update(dict.fromkeys(self.test.where(condition)))
        return {name: tuple(domains) for name, domains in out.items() if domains}

    @cached_property
    def by_name(self) -> dict[str, Arm]:
        """The arms with what they take over from others written out."""
        out: dict[str, Arm] = {}
        for arm in self.arms:
            if arm.like:
                of = out[arm.like]
                arm = arm.model_copy(
                    update={
                        "method": arm.method or of.method,
                        "start": arm.start or of.start,
                        "train": training.merged(of.train, arm.train),
                    }
                )
            out[arm.name] = arm
        return out

    def arm(self, name: str) -> Arm:
        if name not in self.by_name:
            raise CrosswindError(f"the study has no arm {name!r}; {did_you_mean(name, list(self.by_name))}")
        return self.by_name[name]

    def seeds_of(self, arm: Arm) -> tuple[int, ...]:
        return arm.seeds or self.seeds

    def suite(self, part: Part) -> Suite:
        return self.test if part == "test" else self.dev

    def seed(self, part: Part) -> int:
        return self.test_seed if part == "test" else self.dev_seed

    def queue(self, names: Sequence[str] = (), seeds: Sequence[int] | None = None) -> list[tuple[Arm, int]]:
        """Arms and seeds in the order in which they are run: by wave, all seeds of an arm together.

        Without names all arms come; with seeds, only those of them that an arm named has or, if it was named, all of
        them. An arm that another one starts from comes before it, named or not.
        """
        wanted = [self.arm(name) for name in names] or [arm for arm in self.by_name.values() if not arm.at]
        for arm in wanted:
            if arm.at:
                raise CrosswindError(f"{arm.name} is kept as it was run at {arm.at}, and is not run again")
        out: dict[tuple[str, int], None] = {}

        def add(arm: Arm, seed: int) -> None:
            if arm.start:
                add(self.by_name[arm.start], seed)
            out.setdefault((arm.name, seed))

        for arm in wanted:
            own = self.seeds_of(arm)
            for seed in own if seeds is None else seeds if names else [s for s in seeds if s in own]:
                add(arm, seed if arm.method else 0)
        if seeds is not None and not out:
            have = sorted({seed for arm in wanted for seed in self.seeds_of(arm)})
            raise CrosswindError(
                f"no arm has one of the seeds {', '.join(map(str, seeds))}; they have "
                f"{', '.join(map(str, have))}: give some of these, or name the arms, which then run any seed"
            )
        return [(self.by_name[name], seed) for name, seed in out]

    def options(self, arm: Arm, seed: int) -> dict[str, Any]:
        """What an arm is trained with, as a configuration file would have it; without where it starts."""
        return {"model": self.model, "seed": seed, **arm.train}

    def told(self, arm: Arm, seed: int) -> dict[str, Any]:
        """The same as results tell it: the model by its name, wherever it lies, and the rule of adaptive rounds."""
        named: dict[str, Any] = {"model": Path(self.model).name}
        options = self.options(arm, seed)
        if (rounds := options.get("adaptive")) is not None:
            named["adaptive"] = {"rule": training.Adaptive().rule, **rounds}
        return {**options, **named} if arm.method else named

    def config_hash(self, arm: Arm, seed: int) -> str:
        """A name for what an arm's weights depend on."""
        start = self.config_hash(self.by_name[arm.start], seed) if arm.start else ""
        return digest([arm.method, self.told(arm, seed), start])

    def another(self, arm: Arm, seed: int, config: Mapping[str, Any], hashed: str) -> str:
        """How the configuration of a result differs from that of its arm, in words: in what its weights depend on."""
        if hashed == self.config_hash(arm, seed):
            return ""
        own = self.told(arm, seed)
        if not arm.method:
            return f"the model was {config.get('model')}, now {own['model']}"
        kept = {key: value for key, value in config.items() if key not in (*training.FREE, *training.FREE_IN_GRPO)}
        rounds, now = kept.get("adaptive"), own.get("adaptive")
        if rounds is not None and now is not None and "rule" not in rounds:  # results of the first have none
            return f"adaptive.rule was 1, now {training.Adaptive().rule}"
        if arm.method != "grpo":  # the class of its options would load all that trains
            with suppress(ValidationError):
                kept = training.TrainConfig.model_validate(kept, strict=False).recipe()
            return training.another(kept, training.TrainConfig.model_validate(own, strict=False)) or self._start_of(arm)
        own = {key: value for key, value in own.items() if key not in (*training.FREE, *training.FREE_IN_GRPO)}
        return "; ".join(training.differences(kept, own)) or self._start_of(arm)

    def _start_of(self, arm: Arm) -> str:
        return f"{arm.start}, which it starts from, was another" if arm.start else ""

    def suite_hash(self, part: Part) -> str:
        """A name for what a test consists of."""
        suite = self.suite(part)
        unset = {"version"} if suite.edition else {"version", "edition"}  # suites had no edition once
        return digest([suite.model_dump(mode="json", exclude=unset), self.seed(part), self.max_tokens])


def digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def load_study(path: Path | str) -> Study:
    """Read the definition of a study: a file, or a folder that has one."""
    path = Path(path)
    if path.is_dir() and not (path / DEFINITION).is_file():
        raise BadFile(f"{path}: has no {DEFINITION}; give the folder of a study, or its definition")
    document = read(path / DEFINITION if path.is_dir() else path)
    study = document.fit(Study)
    for part, suite in (("dev", study.dev), ("test", study.test)):
        for i, condition in enumerate(suite.conditions):
            known_kinds(document, (part, "conditions", i, "stack"), condition.recipe)
            for name in condition.domains:
                if name not in domains:
                    raise document.error(
                        (part, "conditions", i, "domains"), f"no domain {name!r}; {domains.meant(name)}"
                    )
    for i, arm in enumerate(study.by_name.values()):
        _check_arm(document, study, i, arm)
    return study


def _check_arm(document: Document, study: Study, i: int, arm: Arm) -> None:
    """Refuse an arm that could not be trained, before others are."""
    place: Place = ("arms", i)
    if arm.method is None and (arm.train or arm.start):
        raise document.error(place, f"the arm {arm.name!r} trains nothing, but says how; give a method")
    if arm.method is None:
        return
    if arm.start and (study.by_name[arm.start].method is None or study.by_name[arm.start].train.get("full")):
        raise document.error(
            place, f"the arm {arm.name!r} starts from {arm.start!r}, which has no adapter; name another"
        )
    for name in RESERVED:
        if name in arm.train:
            raise document.error((*place, "train", name), f"{name} is set by the study; leave it out of the options")
    options = {**study.options(arm, study.seeds_of(arm)[0]), **({"start": arm.start} if arm.start else {})}
    lines = {at[3:]: line for at, line in document.lines.items() if at[:3] == (*place, "train")}
    own = Document(options, {(): document.lines[place], **lines}, document.where)
    try:
        config = training.for_method(own.fit(training.kind_of(arm.method)), arm.method, own.at(()))
        training.check(config, own, draw=False)
    except CrosswindError as error:
        raise BadFile(f"{error} (the arm {arm.name!r})") from None


# ---------------------------------------------------------------- what the name of a condition says


def suite_of(condition: str) -> str:
    """The suite of the report that a condition belongs to: the part of its name before the first slash."""
    return condition.partition("/")[0]


def severity_of(suite: Suite, record: Record) -> int | None:
    """The severity of an episode, also where its condition has a range: what was picked is picked again."""
    if record.clean or record.severity is not None:
        return record.severity
    condition = next((c for c in suite.conditions if c.name == record.condition), None)
    if condition is None or record.condition == CLEAN:
        return None
    picks = dict(condition.recipe.pick(rng_for("suite", record.seed, condition.name, record.task_id)))
    found = {picks[kind] for kind in record.kinds if kind in picks}
    return found.pop() if len(found) == 1 and len(record.kinds) == 1 else None
