"""Adaptive PAFT: training in rounds; after each the weights of the kinds move to where the agent breaks.

After a round the agent plays fresh draws of the train split under every kind it is trained on; their seeds are apart
from those of the training data, and no dev or test word comes in. Every failure is diagnosed. The pressure on a kind is

    m_k  =  (1 - s) f_k  +  s / |C(k)|  *  sum over kinds j and failures of j whose cause points at C(k) of 1 / n_j

with f_k the share of failures under k, smoothed as (failures + 1) / (episodes + 2), C(k) the component of k, s SPREAD
and n_j the episodes under j. So a failure raises the kind it happened under, and those that teach what its cause says
is missing: an agent that reads a renamed result wrongly gets more of all that comes back in another form. Then

    w_k  <-  (1 - pull) w_k  +  pull * b_k m_k / sum of b m        held between floor b_k and cap b_k, with sum 1

with b_k the weight that the recipe itself gives to k: a recipe picks kinds that few tasks admit more often than others,
and where nothing fails more than anything else, nothing is to move. In every choice of the recipe the weight of k is
multiplied by w_k / b_k, which in the first round is 1; the chance of a choice that is not always made grows with its
weights, up to 1. Training stops when the mean success over kinds did not rise by `margin` for `patience` rounds. The
adapter of the best round is kept. The steps and the schedule are those of plain PAFT, so that both can be compared.
"""

from __future__ import annotations

import itertools
import json
import shutil
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import replace_file
from crosswind.core.types import Model
from crosswind.episodes.recipe import Recipe
from crosswind.episodes.record import Record
from crosswind.train.checkpoints import whole_ones
from crosswind.train.components import Component, component
from crosswind.train.config import CHECKPOINTS, ROUNDS, Adaptive, Evaluation, TrainConfig
from crosswind.train.data import DataConfig
from crosswind.train.model import prepare
from crosswind.train.progress import Progress
from crosswind.train.sft import Result, Stretch, finish, holds_weights
from crosswind.train.stages import agent_of, copied, measure, suite_of, with_extra

RESULT = "result.json"  # of one round
SPREAD = 0.3  # of a failure's weight: what goes to the component that its cause points at
SEEDS = 2**31  # those of the training data are smaller
CAUSES: Mapping[str, Component] = {  # what teaches against a cause
    "memorised interface": "symbols",
    "wrong tool": "symbols",
    "malformed call": "symbols",
    "misread result": "error_feedback",
    "ignored error": "error_feedback",
    "unsafe retry": "error_feedback",
    "blind repetition": "error_feedback",
    "gave up": "error_feedback",
    "obeyed an injection": "error_feedback",
    "wrong argument": "semantics",
    "fabricated value": "semantics",
    "wrong order": "structure",
    "forced completion": "refusal",
    "missed refusal": "refusal",
}


class Round(Model):
    """One round: what it trained with, and what came out."""

    number: int  # from 1
    until: int  # the step at which it ended
    weights: dict[str, float]  # of the kinds, in this round
    success: dict[str, float]  # by kind, after it
    episodes: dict[str, int]  # by kind
    clean: float | None
    causes: dict[str, int]  # of all failures
    score: float  # the mean of `success`
    then: dict[str, float]  # the weights that the next round begins with


def pressure(records: Sequence[Record], kinds: Sequence[str]) -> dict[str, float]:
    """How much each kind asks for more of itself; see the formula above."""
    failures: dict[str, list[str]] = {kind: [] for kind in kinds}
    episodes = Counter(record.condition for record in records)
    for record in records:
        if record.outcome == "fail" and record.condition in failures:
            failures[record.condition].append(record.cause or "")
    pointed: Counter[str] = Counter()  # component -> weight of the failures that point at it
    for kind, causes in failures.items():
        for cause in causes:
            if cause in CAUSES:
                pointed[CAUSES[cause]] += 1 / episodes[kind]  # type: ignore[assignment]
    members = Counter(component(kind) for kind in kinds)
    out = {}
    for kind in filter(episodes.get, kinds):
        own = (len(failures[kind]) + 1) / (episodes[kind] + 2)
        mine = component(kind)
        out[kind] = (1 - SPREAD) * own + SPREAD * pointed[mine] / members[mine]
    usual = sum(out.values()) / len(out) if out else 1.0  # for a kind that no task admitted: nothing is known of it
    return {kind: out.get(kind, usual) for kind in kinds}


def moved(
    weights: Mapping[str, float], pushed: Mapping[str, float], first: Mapping[str, float], how: Adaptive
) -> dict[str, float]:
    """The weights of the next round; `first` are those of the recipe."""
    whole = sum(first[k] * pushed[k] for k in weights)
    mixed = {k: (1 - how.pull) * w + how.pull * first[k] * pushed[k] / whole for k, w in weights.items()}
    return held(mixed, {k: how.floor * first[k] for k in mixed}, {k: how.cap * first[k] for k in mixed})


def held(weights: Mapping[str, float], least: Mapping[str, float], most: Mapping[str, float]) -> dict[str, float]:
    """Weights between their bounds that sum to 1; what the bounds take or give is shared among the rest."""
    out = {kind: min(max(w, least[kind]), most[kind]) for kind, w in weights.items()}
    for _ in out:
        missing = 1 - sum(out.values())
        free = [k for k, w in out.items() if (w < most[k] if missing > 0 else w > least[k])]
        if abs(missing) < 1e-12 or not free:
            break
        scale = 1 + missing / sum(out[k] for k in free)
        for k in free:
            out[k] = min(max(out[k] * scale, least[k]), most[k])
    return out


def reweighted(recipe: Recipe, factors: Mapping[str, float]) -> Recipe:
    """A recipe whose choices pick their kinds by other weights; kinds without a factor are left out."""
    stack = []
    for choice in recipe.stack:
        own = {kind: weight for kind, weight in choice.weights().items() if kind in factors}
        if own:
            kept = {kind: weight * factors[kind] for kind, weight in own.items()}
            often = min(1.0, choice.chance * sum(kept.values()) / sum(own.values())) if choice.chance < 1 else 1.0
            stack.append(choice.model_copy(update={"kind": "", "group": None, "one_of": kept, "chance": often}))
    return recipe.model_copy(update={"stack": tuple(stack)})


def first_weights(data: DataConfig) -> dict[str, float]:
    """How often a recipe picks its kinds, those of components that are switched off left out."""
    total: Counter[str] = Counter()
    for choice in data.followed().stack:
        on = {kind: weight for kind, weight in choice.weights().items() if component(kind) in data.groups}
        often = choice.chance * sum(min(count, len(on)) for count in choice.count) / 2
        for kind, weight in on.items():
            total[kind] += often * weight / sum(on.values())  # type: ignore[assignment]
    whole = sum(total.values())
    if not whole:
        raise CrosswindError("data.recipe picks no enabled kind; use another recipe or other groups")
    return {kind: weight / whole for kind, weight in total.items() if weight}


def train_adaptively(config: TrainConfig, folder: Path, progress: Progress | None) -> Result:
    """Train in rounds. What earlier runs finished is taken from the folder."""
    how = config.adaptive
    assert how
    evaluation = config.evaluate or Evaluation()
    evaluation = evaluation.model_copy(update={"levels": evaluation.levels or config.data.levels})
    recipe = config.data.followed()
    first = first_weights(config.data)
    weights, kinds = first, list(first)
    done = _sound(folder, config)
    stopped = ""
    for number in range(1, how.rounds + 1):
        until = config.steps * number // how.rounds
        at = folder / "rounds" / str(number)
        if number <= len(done):
            weights = done[number - 1].then
        else:
            factors = {kind: weights[kind] / first[kind] for kind in kinds}
            data = config.data.model_copy(update={"recipe": reweighted(recipe, factors)})
            if until not in whole_ones(folder / CHECKPOINTS):
                shutil.rmtree(at, ignore_errors=True)  # what was measured there was another training
            run = Stretch(prepare(config), config, folder, data, until, progress).go()
            result = finish(run, "paft", into=at)
            records = measure(
                agent_of(*((result.adapter,) if config.full else (config.model, result.adapter))),
                suite_of(evaluation, config.domains(), split="train", kinds=kinds),
                at / "measured",
                seed=SEEDS + 2**20 * number + config.data.seed,
                max_tokens=evaluation.max_tokens,
                slots=config.slots,
                progress=progress,
                doing=f"measuring round {number}",
            )
            then = moved(weights, pressure(records, kinds), first, how)
            done.append(_round(number, until, weights, then, records))
            weights = then
            replace_file(at / RESULT, result.model_dump_json().encode())
            replace_file(folder / ROUNDS, json.dumps([r.model_dump(mode="json") for r in done], indent=1).encode())
        if stopped := _enough(done[:number], how):
            break
    best = max(done, key=lambda r: (r.score, r.number))
    at = folder / "rounds" / str(best.number)
    result = Result.model_validate_json((at / RESULT).read_bytes())
    name = "model" if config.full else "adapter"
    final = copied(at / name, folder / name)
    extra: dict[str, Any] = {
        "rounds": [r.model_dump(mode="json") for r in done],
        "best_round": best.number,
        "stopped": stopped or "all rounds were trained",
    }
    return with_extra(config, result.model_copy(update={"out": str(folder), "adapter": str(final)}), extra)


def _round(
    number: int, until: int, weights: dict[str, float], then: dict[str, float], records: Sequence[Record]
) -> Round:
    by_kind: dict[str, list[bool]] = {kind: [] for kind in weights}
    for record in records:
        if record.condition in by_kind:
            by_kind[record.condition].append(record.passed)
    clean = [record.passed for record in records if record.clean]
    success = {kind: sum(passed) / len(passed) for kind, passed in by_kind.items() if passed}
    return Round(
        number=number,
        until=until,
        weights=weights,
        success=success,
        episodes={kind: len(passed) for kind, passed in by_kind.items()},
        clean=sum(clean) / len(clean) if clean else None,
        causes=dict(Counter(record.cause or "" for record in records if record.outcome == "fail").most_common()),
        score=sum(success.values()) / len(success) if success else 0.0,
        then=then,
    )


def _enough(done: Sequence[Round], how: Adaptive) -> str:
    """Why it is enough: nothing improved for some rounds."""
    if len(done) <= how.patience:
        return ""
    before = max(r.score for r in done[: -how.patience])
    since = max(r.score for r in done[-how.patience :])
    if since >= before + how.margin:
        return ""
    return f"the mean success did not rise by {how.margin:g} in {how.patience} round{'s' * (how.patience > 1)}"


def _sound(folder: Path, config: TrainConfig) -> list[Round]:
    """The rounds that are finished and that can be gone on from: with what they made, and a checkpoint not before."""
    how = config.adaptive
    assert how
    path = folder / ROUNDS
    try:
        told = [Round.model_validate(r) for r in json.loads(path.read_bytes())] if path.is_file() else []
    except (ValueError, TypeError):
        raise BadFile(f"{path}: is damaged; remove the folder, or choose another --out") from None
    there = [*itertools.takewhile(lambda r: _made(folder / "rounds" / str(r.number), config), told)]
    steps = whole_ones(folder / CHECKPOINTS)
    while there and len(there) < how.rounds and not _enough(there, how):
        until = config.steps * (len(there) + 1) // how.rounds
        if max((step for step in steps if step <= until), default=0) >= there[-1].until:
            break
        there.pop()
    if len(there) < len(told):
        then = f"goes on after round {len(there)}" if there else "starts over"
        warnings.warn(f"{folder}: what rounds made is gone or cut; the run {then}", stacklevel=2)
    return there


def _made(at: Path, config: TrainConfig) -> bool:
    """Is all there that a round leaves?"""
    try:
        Result.model_validate_json((at / RESULT).read_bytes())
    except (OSError, ValueError):
        return False
    return holds_weights(at / ("model" if config.full else "adapter"))
