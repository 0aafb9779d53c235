"""A stream of demonstrations as a function of a configuration and an index: seeded, endless, made when asked for.

Nothing is remembered between two indices, so that a resumed run, the shards of a cluster and the workers of a loader
get exactly what one process would have got. Only tasks, words and kinds of the split "train" come in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import count
from random import Random
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from crosswind.base.errors import CannotDraw, CannotPerturb, CrosswindError
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import once_each, rng_for
from crosswind.core.registry import did_you_mean, domains, perturbations
from crosswind.core.types import Model, ToolSpec
from crosswind.episodes.recipe import Choice, Recipe, above_zero, load_recipe, severities
from crosswind.models.prompts import signature, spoken, with_tools
from crosswind.train.components import COMPONENTS, Component, component
from crosswind.train.corrections import correction_at
from crosswind.train.rows import PLAIN, Demonstration, Row, demonstration, legible, rows
from crosswind.train.thoughts import Habits
from crosswind.train.worlds import worlds_of
from crosswind.words import held_out

RECIPE = "mixed"  # unless told otherwise
LOOKED = 6  # tasks for one pick of kinds, before others are picked
PICKED = 12  # picks, before a configuration is taken to give nothing
STAY = 4  # picks in one world of a range, before the next one is tried
NOTHING = "passed over: the kinds picked do not apply to the task"
ILLEGIBLE = "left out: a value holds a mark that ends a call or a thought"
Measure = Callable[[Row], int]  # how many tokens a row has


Severities = Annotated[tuple[int, int], BeforeValidator(severities)]


class Options(Model):
    """A part of a configuration; what is infinite, or no number, is refused."""

    model_config = ConfigDict(allow_inf_nan=False)


def _weighed(domains: object) -> object:
    """Names alone weigh the same."""
    if not isinstance(domains, (list, tuple)):
        return domains
    if not all(isinstance(name, str) for name in domains):
        raise ValueError(f"got {domains!r}; expected names, or names with weights, such as {{poi: 1}}")
    return dict.fromkeys(domains, 1.0)


def _named(domains: dict[str, float]) -> dict[str, float]:
    if not domains:
        raise ValueError("no domain is named; give a name or more, with weights, such as {poi: 1}")
    return above_zero(domains)


Domains = Annotated[dict[str, float], BeforeValidator(_weighed), AfterValidator(_named)]  # name -> weight


class Stage(Options):
    """From which part of a training on which severities are drawn."""

    start: float = Field(ge=0, le=1)
    severity: Severities


class Corrected(Options):
    """Corrections of what an agent played, among the demonstrations (`corrections.py`)."""

    runs: tuple[str, ...] = Field(min_length=1)  # folders of runs on the split train
    share: float = Field(default=0.5, gt=0, le=1)  # of demonstrations


class DataConfig(Options):
    """The configuration of demonstrations."""

    domains: Domains = Field(default_factory=lambda: {"poi": 1.0})  # name -> weight
    recipe: str | Recipe | None = None  # a name, a YAML file or a recipe; None: mixed
    share: float = Field(default=0.3, ge=0, le=1)  # of demonstrations that are perturbed
    groups: tuple[Component, ...] = COMPONENTS  # components to use
    severity: Severities | None = None  # instead of the recipe's own
    curriculum: tuple[Stage, ...] = ()  # instead of either: severities by progress of the training
    seed: int = Field(default=0, ge=0)
    max_tokens: int = Field(default=2048, ge=0)  # a demonstration with a longer row is left out; 0: none is
    levels: tuple[int, ...] = ()  # of task families; empty: all
    families: tuple[str, ...] = ()  # empty: all that the levels leave
    fixed: int | None = Field(
        default=None, ge=1
    )  # size of a fixed set that is repeated, instead of fresh demonstrations
    size: int = Field(default=SIZE, ge=100)  # entities in a world
    reasons: bool = True  # include the oracle's thoughts
    slips: float = Field(
        default=0.0, ge=0, le=1
    )  # of the perturbed ones, with an injected mistake that is corrected (masked from the loss)

    corrections: Corrected | None = None
    habits: Habits = PLAIN
    twins: bool = False  # follow each refusal with the same task without the reason to refuse

    @field_validator("curriculum")
    @classmethod
    def _upwards(cls, curriculum: tuple[Stage, ...]) -> tuple[Stage, ...]:
        starts = [stage.start for stage in curriculum]
        if starts and (starts[0] != 0 or sorted(set(starts)) != starts):
            raise ValueError(f"the stages start at {_listed(starts)}; expected 0 first, and each later than the last")
        return curriculum

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.slips and not (self.share and self.reasons):
            raise ValueError("slips are made in perturbed demonstrations with reasons; give a share, and reasons")
        if self.share and not self.groups:
            raise ValueError("no component is switched on; name one in groups, or set share to 0")
        if self.curriculum and self.fixed:
            raise ValueError("a curriculum moves and a fixed set does not; give one of them")
        return self

    def resolved(self) -> DataConfig:
        """The same with its recipe and every kind in it written out: all that must be stored to draw the same again."""
        recipe = self.followed()
        stack = tuple(c.model_copy(update={"kind": "", "group": None, "one_of": c.weights()}) for c in recipe.stack)
        return self.model_copy(update={"recipe": recipe.model_copy(update={"stack": stack})})

    def followed(self) -> Recipe:
        """The recipe that perturbed demonstrations follow."""
        return self.recipe if isinstance(self.recipe, Recipe) else load_recipe(self.recipe or RECIPE, training=True)


def demonstration_at(
    config: DataConfig,
    index: int,
    progress: float = 0.0,
    *,
    measure: Measure | None = None,
    counts: Counter[str] | None = None,
) -> Demonstration:
    """The demonstration at an index: a function of its arguments and of nothing else.

    `progress`, from 0 to 1, matters to a curriculum only. `measure` gives a row's length, by default an estimate; give
    `lambda row: len(tokens(row, tokenizer).ids)` where a tokenizer is at hand. `counts` grows by what
    was drawn and what was left out.
    """
    plan = _plan(config.model_dump_json())
    if config.twins and index % 2 and (twin := _twin(config, index, progress, measure or estimate)):
        return twin
    counts = Counter() if counts is None else counts
    at = index % config.fixed if config.fixed else index
    if config.corrections and rng_for("corrections", config.seed, at).random() < config.corrections.share:
        return _correction(config, config.corrections, index, at, measure or estimate, counts)
    perturbed = rng_for("data", config.seed, at).random() < config.share
    for pick in range(PICKED):
        rng = rng_for("data", config.seed, at, pick)
        domain, families = plan.place(rng, at, pick)
        if not families:
            continue
        picks = plan.recipe(progress).pick(rng) if perturbed else []
        if perturbed and not picks:
            continue
        kinds = [perturbations[kind] for kind, _ in picks]
        families = [f for f in families if all(kind.fits(domain.families[f]) for kind in kinds)] or families
        for _ in range(LOOKED):
            drawn = _drawn(domain, rng.choice(families), rng.getrandbits(31), picks, config.size, counts)
            if drawn is None:
                continue
            slips = rng_for("slip", config.seed, at, pick, drawn.base.id) if picks and config.slips else None
            shown = demonstration(
                drawn,
                reasons=config.reasons,
                slips=slips if slips and slips.random() < config.slips else None,
                habits=config.habits,
            )
            counts["drawn"] += 1
            if not legible(shown):
                counts[ILLEGIBLE] += 1
                continue
            if config.max_tokens and max(map(measure or estimate, rows(shown))) > config.max_tokens:
                counts["left out: too long"] += 1
                continue
            kept = {layer.kind for layer in drawn.layers}
            shown.meta["severities"] = {kind: severity for kind, severity in picks if kind in kept}
            shown.meta["index"] = index
            return shown
    raise CrosswindError(
        f"nothing fit for training was found at index {index} in {PICKED} picks of {LOOKED} tasks "
        f"({', '.join(f'{what}: {n}' for what, n in counts.items()) or 'the recipe picks no kind'}); "
        "raise max_tokens, lower the severity, or name other families"
    )


def _twin(config: DataConfig, index: int, progress: float, measure: Measure) -> Demonstration | None:
    """The task of the demonstration before, if that ends in a refusal, without what makes it one: the fact that is in
    the way, or the layer that takes something away. None where there is no fair one."""
    first = demonstration_at(config.model_copy(update={"twins": False}), index - 1, progress, measure=measure)
    if first.meta["ended"] != "refusal" or "corrects" in first.meta:
        return None
    base, picks = first.drawn.base, [*first.meta["severities"].items()]
    kept = [(kind, severity) for kind, severity in picks if perturbations[kind].goal != "refuse"]
    try:
        open_task = base.unobstructed() if base.refuse else base
        drawn = draw(first.drawn.domain, open_task, kept, rng_for("twin", config.seed, index).getrandbits(31))
    except (CannotDraw, CannotPerturb):
        return None
    held_out.check_drawn(drawn)
    shown = demonstration(drawn, reasons=config.reasons, habits=config.habits)
    if not legible(shown) or (config.max_tokens and max(map(measure, rows(shown))) > config.max_tokens):
        return None
    shown.meta["severities"], shown.meta["index"] = dict(kept), index
    return shown


def _correction(
    config: DataConfig, how: Corrected, index: int, at: int, measure: Measure, counts: Counter[str]
) -> Demonstration:
    """A correction that is not too long."""
    for pick in range(PICKED):
        rng = rng_for("corrections", config.seed, at, pick)
        shown = correction_at(how.runs, rng, counts, reasons=config.reasons, habits=config.habits)
        counts["drawn"] += 1
        if not legible(shown):
            counts[ILLEGIBLE] += 1
        elif config.max_tokens and max(map(measure, rows(shown))) > config.max_tokens:
            counts["left out: too long"] += 1
        else:
            shown.meta["index"] = index
            return shown
    raise CrosswindError(f"{', '.join(how.runs)}: no correction of {PICKED} is short enough; raise max_tokens")


def stream(
    config: DataConfig, start: int = 0, *, measure: Measure | None = None, counts: Counter[str] | None = None
) -> Iterator[Demonstration]:
    """Demonstrations without end, from an index on."""
    for index in count(start):
        yield demonstration_at(config, index, measure=measure, counts=counts)


def _drawn(
    domain: Domain, family: str, seed: int, picks: list[tuple[str, int]], size: int, counts: Counter[str]
) -> Drawn | None:
    """A certified draw to learn from, or None with the reason counted."""
    try:
        task = domain.task(family, seed, size=size, split="train")
        drawn = draw(domain, task, picks, seed, strict=len(picks) == 1)
    except CannotDraw:
        counts["passed over: no such task in the world drawn"] += 1
        return None
    except CannotPerturb as cannot:
        if cannot.at_fault == "code":
            raise  # a plug-in or domain that nothing may learn from
        counts["passed over: no fair draw" if cannot.applies else NOTHING] += 1
        return None
    if picks and not drawn.layers:
        counts[NOTHING] += 1
        return None
    held_out.check_drawn(drawn)
    return drawn


# ---------------------------------------------------------------- a configuration made ready


class _Plan:
    """What a configuration comes to: domains with their families, and a recipe for each stage."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.weights = list(config.domains.values())
        self.places = [worlds_of(name) or name for name in config.domains]
        named = [domains[place] for place in self.places if isinstance(place, str)]
        every = [name for domain in named for name in domain.families]
        if len(named) == len(self.places) and (unknown := [name for name in config.families if name not in every]):
            raise CrosswindError(
                f"no family {unknown[0]!r} in {', '.join(config.domains)}; {did_you_mean(unknown[0], every)}"
            )
        if empty := [domain for domain in named if not _families(domain, config)]:
            levels = sorted({family.level for family in empty[0].families.values()})
            raise CrosswindError(
                f"{empty[0].name} has no family"
                + (f" of level {_listed(config.levels)}" if config.levels else "")
                + (f" among {_listed(config.families)}" if config.families else "")
                + f"; its levels are {_listed(levels)}: give other levels or families"
            )
        self.stages = [(0.0, Recipe(stack=()))]
        if config.share:
            recipe = config.followed()
            held_out.check_kinds(recipe.kinds())
            self.stages = [(0.0, _only(recipe, config, config.severity))]
            if config.curriculum:
                self.stages = [(stage.start, _only(recipe, config, stage.severity)) for stage in config.curriculum]

    def place(self, rng: Random, at: int, pick: int) -> tuple[Domain, list[str]]:
        """A domain and the families of it that are wanted, which a world of a range may lack."""
        place = rng.choices(self.places, self.weights)[0]
        domain = domains[place if isinstance(place, str) else place.at(self.config.seed, at, pick // STAY)]
        return domain, _families(domain, self.config)

    def recipe(self, progress: float) -> Recipe:
        return [recipe for start, recipe in self.stages if start <= max(progress, 0.0)][-1]


@lru_cache(maxsize=16)
def _plan(config: str) -> _Plan:
    return _Plan(DataConfig.model_validate_json(config))


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _families(domain: Domain, config: DataConfig) -> list[str]:
    return [
        name
        for name, family in domain.families.items()
        if (not config.levels or family.level in config.levels) and (not config.families or name in config.families)
    ]


def _only(recipe: Recipe, config: DataConfig, severity: tuple[int, int] | None) -> Recipe:
    """A recipe without the components that are switched off, at a severity of its own or the one given."""
    stack = []
    for choice in recipe.stack:
        kept = {kind: weight for kind, weight in choice.weights().items() if component(kind) in config.groups}
        if kept:
            stack.append(
                Choice(one_of=kept, count=choice.count, chance=choice.chance, severity=severity or choice.severity)
            )
    if not stack:
        raise CrosswindError(
            f"the recipe {recipe.name or 'given'!r} has no kind of {', '.join(config.groups)}; switch more groups on"
        )
    return recipe.model_copy(update={"stack": tuple(stack)})


# ---------------------------------------------------------------- how long


def _sort(sign: str) -> str:
    """A letter for all letters, a digit for all digits, a sign for all others but those that stand for themselves."""
    return "a" if sign.isalpha() else "0" if sign.isdigit() else sign if sign in " \n_" else "."


_SORTS = bytes(ord(_sort(chr(code))) for code in range(128)).ljust(256)
_WORDS, _SIGNS = (bytes(sort if sort == kept else ord(" ") for sort in _SORTS) for kept in b"a.")  # others are blank
_ALONE = bytes(code for code in range(128) if _SORTS[code] in b"0_\n")  # each is a token of its own


def estimate(row: Row) -> int:
    """About how many tokens of a small model's a row has; docs/data.md tells how near it is."""
    texts: list[str] = []
    for message in row.messages[1:]:
        text = message.content if message.role == "tool" else spoken(message)
        if text.startswith(("{", "[")):
            text = text.replace(", ", ",").replace(": ", ":")  # as `prompts.tight` leaves it, or nearly
        texts.append(f"{text}<tool_response></tool_response>" if message.role == "tool" else text)
    return _system(row) + 6 * (1 + len(texts)) + _count("\n".join(texts))


def _system(row: Row) -> int:
    """The system's turn, whose lines are counted one by one: most menus have most of their tools in common."""
    return _once(with_tools(row.messages[0].content, ())) + sum(map(_line, row.tools)) + max(len(row.tools) - 1, 0)


def _count(text: str) -> int:
    """Words, runs of signs, digits and underscores one by one; a word of seven letters or more is two.

    Letters, digits and signs are made one of each, so that runs of them are counted by the places where they begin.
    """
    line = b"\n" + text.encode("ascii", "replace")
    words = line.translate(_WORDS)
    runs = words.count(b" a") + words.count(b"aaaaaaa") + line.translate(_SIGNS).count(b" .")
    alone = len(line) - len(line.translate(None, _ALONE)) - 1
    return runs + alone + line.translate(_SORTS).count(b" 0")


_once = lru_cache(maxsize=64)(_count)  # episodes of a domain have the same policy, but for what layers change in it


@once_each()
def _line(tool: ToolSpec) -> int:
    """A tool's line in the system's turn."""
    return _count(f"- {signature(tool)}")
