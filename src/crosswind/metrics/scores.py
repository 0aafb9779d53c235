"""What a run's episodes add up to: shares, paired drops by every grouping, and one summary of all.

The design is paired: a shifted episode is compared with the clean episode of the same task and trial. Episodes that
ended as errors of the infrastructure count nowhere and are reported; a pair that lacks one side is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from crosswind.core.types import Model
from crosswind.episodes.record import Record, Usage
from crosswind.metrics import stats
from crosswind.metrics.groups import GROUPINGS, By, grouped
from crosswind.metrics.measures import Averages, Measures, averaged, measure

FEW = 10  # changed tasks, below which the bootstrap knows too little
Pair = tuple[Record, Record]


class Cell(Model):
    """A share of episodes that passed, with its interval."""

    n: int
    passed: int
    rate: float | None  # None where there is no episode
    low: float
    high: float


class Drop(Model):
    """What shifts did to one group of pairs."""

    name: str
    pairs: int
    tasks: int  # different ones
    clean: float  # share passed
    shifted: float
    delta: float  # shifted minus clean
    low: float
    high: float
    interval: Literal["bootstrap", "score"]  # how the two bounds were found
    p: float  # exact, two-sided, by tasks; McNemar's where each task has one pair
    p_holm: float  # the same, adjusted for all groups of the grouping
    broke: int  # passed clean, failed shifted
    fixed: int
    kept: float | None  # share of the pairs solved clean that were solved shifted as well
    exposed: Drop | None = None  # over the pairs whose obstacles all fired and were seen


class Excluded(Model):
    """Episodes that ended as errors of the infrastructure, and what that cost."""

    episodes: int
    pairs: int  # that lack a side for it
    unpaired: int  # shifted episodes whose clean episode is not there at all
    reasons: dict[str, int]


class Summary(Model):
    """Everything that a report or a gate needs to know of a run."""

    agents: tuple[str, ...]
    episodes: int
    tasks: int
    trials: int
    overall: Cell  # every episode
    clean: Cell
    shifted: Cell
    exposed: Cell  # shifted episodes whose obstacles all fired and were seen
    drop: Drop | None  # over all pairs; None where there is no pair
    drops: dict[By, dict[str, Drop]]
    mild: Drop | None  # at severity 1 alone
    cells: dict[By, dict[str, Cell]]  # every shifted episode by group, whether or not it has a pair
    pass_hat_k: dict[str, tuple[stats.PassHatK, ...]]  # "clean" and "shifted", from k = 1 up
    study: dict[str, Averages]  # "clean", "shifted", "all"
    studies: dict[By, dict[str, Averages]]  # of shifted episodes
    stages: dict[str, int]  # of failed episodes
    causes: dict[str, int]
    usage: Usage
    excluded: Excluded
    detectable: float | None  # the smallest difference that so many pairs show four times in five


def pairs(records: Iterable[Record]) -> list[Pair]:
    """The shifted episodes, each behind the clean one of the same task and trial; errors make no pair."""
    kept = [record for record in records if record.judged]
    clean = {record.pair: record for record in kept if record.clean}
    return [(clean[record.pair], record) for record in kept if not record.clean and record.pair in clean]


def cell(records: Iterable[Record]) -> Cell:
    """The share of episodes that passed. Episodes of one task count for what they tell beyond each other."""
    kept = [record for record in records if record.judged]
    n, passed = len(kept), sum(record.passed for record in kept)
    if not n:
        return Cell(n=0, passed=0, rate=None, low=0.0, high=1.0)
    worth = _worth([(record.task_id, record.passed) for record in kept])
    low, high = stats.wilson(passed / n * worth, worth)
    return Cell(n=n, passed=passed, rate=passed / n, low=low, high=high)


def _worth(outcomes: Sequence[tuple[str, bool]]) -> float:
    """How many independent episodes the given ones are worth: at least the number of tasks, at most their own."""
    n, mean = len(outcomes), sum(passed for _, passed in outcomes) / len(outcomes)
    gaps: dict[str, float] = {}
    for task, passed in outcomes:
        gaps[task] = gaps.get(task, 0.0) + passed - mean
    m = len(gaps)
    if m == n or mean in (0, 1):
        return float(m)
    alone = n * mean * (1 - mean)
    together = sum(gap * gap for gap in gaps.values()) * m / (m - 1) if m > 1 else alone * n
    return max(float(m), n / max(1.0, together / alone))


def drop(name: str, found: Sequence[Pair], *, seed: int = 0, resamples: int = stats.RESAMPLES) -> Drop | None:
    """What shifts did to some pairs; None where there are none.

    Tasks are resampled, each with all its pairs, and tested as wholes. Where each task has one pair, both are what
    `paired_difference` gives.
    """
    out = _drop(name, found, seed, resamples)
    if out is None:
        return None
    seen = [(clean, shifted) for clean, shifted in found if shifted.exposed]
    return out.model_copy(update={"exposed": _drop(name, seen, seed, resamples)})


def _drop(name: str, found: Sequence[Pair], seed: int, resamples: int) -> Drop | None:
    if not found:
        return None
    n = len(found)
    nets: dict[str, tuple[int, int]] = {}
    for clean, shifted in found:
        net, size = nets.get(shifted.task_id, (0, 0))
        nets[shifted.task_id] = (net + shifted.passed - clean.passed, size + 1)
    broke = sum(clean.passed and not shifted.passed for clean, shifted in found)
    fixed = sum(shifted.passed and not clean.passed for clean, shifted in found)
    solved = sum(clean.passed for clean, _ in found)
    low, high = stats.resampled(Counter(nets.values()), seed=seed, resamples=resamples)
    few = sum(net != 0 for net, _ in nets.values()) < FEW or low == high
    if few:
        worth = len(nets) / n  # pairs of one task are taken to tell the same
        low, high = stats.tango(broke * worth, fixed * worth, len(nets))
    p = stats.flipped(net for net, _ in nets.values())
    return Drop(
        name=name,
        pairs=n,
        tasks=len(nets),
        clean=solved / n,
        shifted=sum(shifted.passed for _, shifted in found) / n,
        delta=(fixed - broke) / n,
        low=low,
        high=high,
        interval="score" if few else "bootstrap",
        p=p,
        p_holm=p,
        broke=broke,
        fixed=fixed,
        kept=(solved - broke) / solved if solved else None,
    )


def drops(records: Iterable[Record], by: By, *, seed: int = 0, resamples: int = stats.RESAMPLES) -> dict[str, Drop]:
    """The drop of each group of pairs, p-values adjusted over the groups of this grouping (Holm)."""
    return grouped_drops(pairs(records), by, seed=seed, resamples=resamples)


def grouped_drops(found: Sequence[Pair], by: By, *, seed: int = 0, resamples: int = stats.RESAMPLES) -> dict[str, Drop]:
    """The same, of given pairs."""
    first = {id(second): one for one, second in found}
    groups = grouped((second for _, second in found), by)
    out = {
        name: made
        for name, members in groups.items()
        if (made := drop(name, [(first[id(r)], r) for r in members], seed=seed, resamples=resamples))
    }
    return _adjusted(out)


def _adjusted(found: Mapping[str, Drop]) -> dict[str, Drop]:
    seen = [name for name, one in found.items() if one.exposed]
    ps = dict(zip(found, stats.holm([one.p for one in found.values()]), strict=True))
    seen_ps = dict(zip(seen, stats.holm([e.p for one in found.values() if (e := one.exposed)]), strict=True))
    out = {}
    for name, one in found.items():
        exposed = one.exposed and one.exposed.model_copy(update={"p_holm": seen_ps[name]})
        out[name] = one.model_copy(update={"p_holm": ps[name], "exposed": exposed})
    return out


def summary(
    records: Iterable[Record],
    *,
    measures: bool | Mapping[str, Measures] = True,
    by: Iterable[By] = GROUPINGS,
    seed: int = 0,
) -> Summary:
    """All figures of one run. `measures` are those already taken, by the records' keys; True takes them now.

    Without measures no gold is walked, and `study` stays empty. `by` names the groupings wanted besides all.
    """
    every = list(records)
    kept = [record for record in every if record.judged]
    shifted = [record for record in kept if not record.clean]
    clean = [record for record in kept if record.clean]
    groupings: dict[By, None] = dict.fromkeys((*by, "all"))
    found = {name: drops(every, name, seed=seed) for name in groupings}
    over_all = found["all"].get("all")
    taken: Mapping[str, Measures] = measures if isinstance(measures, Mapping) else {}
    if measures is True:
        taken = {record.key: measure(record) for record in kept}
    measured = measures is not False
    studies: dict[By, dict[str, Averages]] = {}
    if measured:
        studies = {b: {name: averaged(of, taken) for name, of in grouped(kept, b).items()} for b in groupings}
    usage = Usage()
    for record in every:
        usage = usage.plus(record.usage)
    failed = [record for record in kept if not record.passed]
    return Summary(
        agents=tuple(dict.fromkeys(record.agent for record in every)),
        episodes=len(kept),
        tasks=len({record.task_id for record in kept}),
        trials=len({record.trial for record in kept}),
        overall=cell(kept),
        clean=cell(clean),
        shifted=cell(shifted),
        exposed=cell(record for record in shifted if record.exposed),
        drop=over_all,
        drops=found,
        mild=found.get("severity", {}).get("1"),
        cells={b: {name: cell(of) for name, of in grouped(kept, b).items()} for b in groupings},
        pass_hat_k={"clean": _pass_hat(clean, seed), "shifted": _pass_hat(shifted, seed)},
        study=(
            {"clean": averaged(clean, taken), "shifted": averaged(shifted, taken), "all": averaged(kept, taken)}
            if measured
            else {}
        ),
        studies=studies,
        stages=dict(Counter(record.stage or "undetermined" for record in failed).most_common()),
        causes=dict(Counter(record.cause or "undetermined" for record in failed).most_common()),
        usage=usage,
        excluded=_excluded(every),
        detectable=stats.minimum_detectable_effect(over_all.tasks) if over_all else None,
    )


def _pass_hat(records: Sequence[Record], seed: int) -> tuple[stats.PassHatK, ...]:
    """pass^k for k from 1 to the number of trials that most tasks have; those with fewer are left out of it.

    A task that is met under several conditions counts once for each, and is resampled with all of them.
    """
    trials: dict[str, list[bool]] = {}
    task_of: dict[str, str] = {}
    for record in records:
        name = f"{record.task_id}|{record.condition}"
        trials.setdefault(name, []).append(record.passed)
        task_of[name] = record.task_id
    if not trials:
        return ()
    most = Counter(map(len, trials.values())).most_common(1)[0][0]
    enough = {name: outcomes for name, outcomes in trials.items() if len(outcomes) >= most}
    return tuple(stats.pass_hat_k(enough, k, clusters=task_of, seed=seed) for k in range(1, most + 1))


def _excluded(records: Sequence[Record]) -> Excluded:
    errors = [record for record in records if record.outcome == "error"]
    clean = {record.pair: record for record in records if record.clean}
    shifted = [record for record in records if not record.clean]
    lost = [r for r in shifted if r.pair in clean and "error" in (r.outcome, clean[r.pair].outcome)]
    return Excluded(
        episodes=len(errors),
        pairs=len(lost),
        unpaired=sum(r.pair not in clean for r in shifted),
        reasons=dict(Counter(r.why.splitlines()[0][:200] if r.why else "" for r in errors).most_common(20)),
    )


# ---------------------------------------------------------------- across agents


class CleanAndRobust(Model):
    """How the clean scores of several agents go with how they stand shifts, by rank."""

    agents: dict[str, tuple[float, float, float | None]]  # share passed clean, delta, and share kept
    delta: stats.Correlation  # of the clean score and the difference
    kept: stats.Correlation  # of the clean score and the share of solved tasks that stay solved


def clean_and_robust(agents: Mapping[str, Drop]) -> CleanAndRobust:
    """The rank correlation of clean score and robustness over agents, each given by its drop over all pairs."""
    able = {name: one for name, one in agents.items() if one.kept is not None}
    return CleanAndRobust(
        agents={name: (one.clean, one.delta, one.kept) for name, one in agents.items()},
        delta=stats.spearman([one.clean for one in agents.values()], [one.delta for one in agents.values()]),
        kept=stats.spearman([one.clean for one in able.values()], [one.kept or 0.0 for one in able.values()]),
    )
