"""What a run's episodes add up to: success on solvable tasks, refusals apart from it, and one summary of all.

The design is paired: a shifted episode is compared with the clean episode of the same task and trial. Tasks that can be
solved and tasks to refuse are never put together: a pair counts towards success only if both of its episodes can be
solved. Episodes that ended as errors of the infrastructure count nowhere and are reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from crosswind.core.types import Model
from crosswind.episodes.brief import Told
from crosswind.episodes.record import Record, Usage
from crosswind.metrics import stats
from crosswind.metrics.groups import GROUPINGS, By, grouped
from crosswind.metrics.measures import Averages, Measures, averaged, measure

TRIVIAL = ("idle", "echo", "refuser", "guesser")  # scripted agents that call no tool
LITTLE = 0.05  # success on solvable tasks that counts as none
LEVEL = 0.05  # of a test, after correction
NOISE = 0.1  # share of pairs taken to change by chance where fewer were seen to
Pair = tuple[Told, Told]
Outcome = Callable[[Told], bool]


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
    low: float  # 95 % interval of this group alone
    high: float
    p: float  # exact, two-sided, by tasks; McNemar's where each task has one pair
    p_holm: float  # the same, adjusted for all groups of the grouping
    tests: int = 1  # how many that are
    broke: int  # passed clean, failed shifted
    fixed: int
    kept: float | None  # share of the pairs solved clean that were solved shifted as well
    exposed: Drop | None = None  # over the pairs whose obstacles all fired and were seen

    @property
    def clear(self) -> bool:
        """Is the change more than chance, by the adjusted test and by the interval?"""
        return self.p_holm < LEVEL and (self.low > 0 or self.high < 0)


class RefusalShares(Model):
    """When an agent refuses: rightly, of the episodes to refuse, and falsely, of those that can be solved."""

    right: Cell
    wrong: Cell  # of the episodes to refuse: refused, but without the right reason or with something left changed
    false: Cell


class NetScore(Model):
    """One number from 0 to 1: success on solvable tasks times how well refusals tell the two sorts of tasks apart.

    Success is corrected for chance, (success - bar) / (1 - bar) with the bar of `Triviality`, and at least 0. The other
    factor is the balanced accuracy of refusing, (right + 1 - false) / 2; where nothing is to be refused it is left out.
    Agents that do nothing, echo the request, refuse everything or guess have 0, and the oracle has 1.

    The interval puts the score intervals of the three shares together by squaring and adding, so that few tasks make it
    wide. Success and false refusals are added as they are, since a task that is refused falsely is also not solved.
    """

    value: float
    low: float
    high: float


class Triviality(Model):
    """Success on solvable tasks against what agents reach that call no tool."""

    rate: float
    low: float  # 95 % lower bound
    tasks: int
    agent: str  # the best of `TRIVIAL` on the same episodes
    reached: float  # what that one solves; 0 by the laws where it was not played
    bar: float  # what must be surpassed: that, and `LITTLE` at least
    better: bool


class Excluded(Model):
    """Episodes that ended as errors of the infrastructure, and what that cost."""

    episodes: int
    pairs: int  # that lack a side for it
    unpaired: int  # shifted episodes whose clean episode is not there at all
    to_refuse: int  # pairs in which refusing is right clean, shifted or both: they count as refusals alone
    reasons: dict[str, int]


class Summary(Model):
    """Everything that a report or a gate needs to know of a run."""

    agents: tuple[str, ...]
    episodes: int
    tasks: int
    trials: int
    clean: Cell  # success on solvable tasks, over the pairs; over all solvable episodes where there is no pair
    shifted: Cell
    drop: Drop | None  # over all solvable pairs; None where there is none
    refusals: dict[str, RefusalShares]  # "clean" and "shifted"
    score: NetScore | None  # of shifted episodes; None where none can be solved
    trivial: dict[str, Triviality]  # "clean" and "shifted", as far as there are solvable episodes
    drops: dict[By, dict[str, Drop]]
    refused: dict[By, dict[str, RefusalShares]]  # the same of shifted episodes by group
    mild: Drop | None  # at severity 1 alone
    cells: dict[By, dict[str, Cell]]  # success on solvable shifted episodes by group
    pass_hat_k: dict[str, tuple[stats.PassHatK, ...]]  # "clean" and "shifted", from k = 1 up
    study: dict[str, Averages]  # "clean", "shifted", "all"
    studies: dict[By, dict[str, Averages]]  # of shifted episodes
    stages: dict[str, int]  # of failed episodes
    causes: dict[str, int]
    usage: Usage
    excluded: Excluded
    detectable: float | None  # the smallest difference that this many pairs show four times in five


def pairs(records: Iterable[Told]) -> list[Pair]:
    """Solvable shifted episodes, each behind the clean one of the same task and trial, which is solvable too."""
    kept = [record for record in records if record.judged and not record.refuse]
    clean = {record.pair: record for record in kept if record.clean}
    return [(clean[record.pair], record) for record in kept if not record.clean and record.pair in clean]


def sides(records: Iterable[Told]) -> dict[str, list[Told]]:
    """The episodes that success is counted over, clean and shifted: both sides of the solvable pairs.

    A clean episode comes once for each pair that it is in. A run without pairs has its solvable episodes.
    """
    every = list(records)
    if found := pairs(every):
        return {"clean": [clean for clean, _ in found], "shifted": [shifted for _, shifted in found]}
    solvable = [record for record in every if record.judged and not record.refuse]
    return {"clean": [r for r in solvable if r.clean], "shifted": [r for r in solvable if not r.clean]}


def passed(record: Told) -> bool:
    return record.passed


def refused(record: Told) -> bool:
    return record.ended == "refusal"


def cell(records: Iterable[Told], of: Outcome = passed) -> Cell:
    """The share of episodes that passed. Episodes of one task count for what they tell beyond each other."""
    kept = [record for record in records if record.judged]
    outcomes = [of(record) for record in kept]
    n, count = len(kept), sum(outcomes)
    low, high = stats.share_interval(outcomes, [record.task_id for record in kept])
    return Cell(n=n, passed=count, rate=count / n if n else None, low=low, high=high)


def refusals(records: Iterable[Told]) -> RefusalShares:
    """Right, wrong and false refusals. A right one passed: it left the world as it should be, too."""
    every = list(records)
    to_refuse = [record for record in every if record.refuse]
    return RefusalShares(
        right=cell(to_refuse),
        wrong=cell(to_refuse, lambda record: refused(record) and not record.passed),
        false=cell((record for record in every if not record.refuse), refused),
    )


def score(records: Iterable[Told], bar: float = LITTLE) -> NetScore | None:
    """One number for some episodes; None where none of them can be solved, or a trivial agent solves all (`bar` 1)."""
    every = [record for record in records if record.judged]
    solved, refusing = cell(record for record in every if not record.refuse), refusals(every)
    if solved.rate is None or bar >= 1:
        return None

    def corrected(share: float) -> float:
        return max(0.0, (share - bar) / (1 - bar))

    right, false, some = refusing.right, refusing.false, refusing.right.n > 0
    tells = (1 + (right.rate or 0.0) - (false.rate or 0.0)) / 2 if some else 1.0
    success = corrected(solved.rate)

    def reach(share: float, right_to: float, false_to: float) -> float:
        """How far the number moves when success and refusals go to these bounds."""
        by_success = tells * abs(corrected(share) - success)
        by_false = success * abs(false_to - (false.rate or 0.0)) / 2 if some else 0.0
        by_right = success * abs(right_to - (right.rate or 0.0)) / 2 if some else 0.0
        return float(np.hypot(by_success + by_false, by_right))

    value = success * tells
    return NetScore(
        value=value,
        low=max(0.0, value - reach(solved.low, right.low, false.high)),
        high=min(1.0, value + reach(solved.high, right.high, false.low)),
    )


def triviality(records: Iterable[Told], played: Mapping[str, Sequence[Told]] | None = None) -> dict[str, Triviality]:
    """Is an agent better than those that call no tool, on solvable tasks, clean and shifted?

    `played` are episodes of the run as trivial agents played them. They are scripted, so their success on these
    episodes is known without error, and the agent's is tested against it. Where they were not played they have none:
    the laws refuse a task that an agent solves by doing nothing.
    """
    out = {}
    for side, found in sides(records).items():
        if not found:
            continue
        keys = {record.key for record in found}
        reached = {
            name: cell(r for r in (played or {}).get(name, ()) if r.key in keys and not r.refuse).rate or 0.0
            for name in TRIVIAL
        }
        best = max(reached, key=lambda name: reached[name])
        outcomes, tasks = [record.passed for record in found], [record.task_id for record in found]
        bar, low = max(LITTLE, reached[best]), stats.share_interval(outcomes, tasks, 0.9).low
        rate = sum(outcomes) / len(outcomes)
        out[side] = Triviality(
            rate=rate, low=low, tasks=len(set(tasks)), agent=best, reached=reached[best], bar=bar, better=low > bar
        )
    return out


def drop(name: str, found: Sequence[Pair], of: Outcome = passed) -> Drop | None:
    """What shifts did to some pairs; None where there are none. Tasks are tested as wholes, each with all its pairs."""
    out = _drop(name, found, of)
    if out is None:
        return None
    return out.model_copy(update={"exposed": _drop(name, [pair for pair in found if pair[1].exposed], of)})


def _drop(name: str, found: Sequence[Pair], of: Outcome) -> Drop | None:
    if not found:
        return None
    clean, shifted = [of(one) for one, _ in found], [of(other) for _, other in found]
    one = stats.paired_difference(clean, shifted, tasks=[record.task_id for _, record in found])
    solved = sum(clean)
    shared = one.model_dump(exclude={"n"})
    kept = (solved - one.broke) / solved if solved else None
    return Drop(name=name, pairs=one.n, p_holm=one.p, kept=kept, **shared)


def tasks_needed(change: Drop) -> int | None:
    """About how many tasks would show a change of this size, four times in five, after the same correction."""
    size = abs(change.delta)
    noise = min(max(NOISE, (change.broke + change.fixed) / change.pairs - size), 1 - size)
    return stats.pairs_needed(size, noise=max(0.0, noise), alpha=LEVEL / change.tests)


def drops(records: Iterable[Told], by: By) -> dict[str, Drop]:
    """The drop of each group of solvable pairs, p-values adjusted over the groups of this grouping (Holm)."""
    return grouped_drops(pairs(records), by)


def grouped_drops(found: Sequence[Pair], by: By) -> dict[str, Drop]:
    """The same, of given pairs."""
    first = {id(second): one for one, second in found}
    groups = grouped((second for _, second in found), by)
    out = {name: made for name, members in groups.items() if (made := drop(name, [(first[id(r)], r) for r in members]))}
    return _adjusted(out)


def _adjusted(found: Mapping[str, Drop]) -> dict[str, Drop]:
    seen = [name for name, one in found.items() if one.exposed]
    ps = dict(zip(found, stats.holm([one.p for one in found.values()]), strict=True))
    seen_ps = dict(zip(seen, stats.holm([e.p for one in found.values() if (e := one.exposed)]), strict=True))
    out = {}
    for name, one in found.items():
        exposed = one.exposed and one.exposed.model_copy(update={"p_holm": seen_ps[name], "tests": len(seen)})
        out[name] = one.model_copy(update={"p_holm": ps[name], "tests": len(found), "exposed": exposed})
    return out


def summary(
    records: Iterable[Told],
    *,
    measures: bool | Mapping[str, Measures] = True,
    by: Iterable[By] = GROUPINGS,
    trivial: Mapping[str, Sequence[Told]] | None = None,
    seed: int = 0,
) -> Summary:
    """All figures of one run. `measures` are those already taken, by the records' keys; True takes them now.

    Without measures no gold is walked, and `study` stays empty. `by` names the groupings wanted besides all, and
    `trivial` are episodes of the run as trivial agents played them.
    """
    every = list(records)
    kept = [record for record in every if record.judged]
    shifted = [record for record in kept if not record.clean]
    clean = [record for record in kept if record.clean]
    counted, against = sides(every), triviality(every, trivial)
    groupings: dict[By, None] = dict.fromkeys((*by, "all"))
    groups = {b: grouped(kept, b) for b in groupings}
    paired = pairs(every)
    found = {name: grouped_drops(paired, name) for name in groupings}
    over_all = found["all"].get("all")
    taken: Mapping[str, Measures] = measures if isinstance(measures, Mapping) else {}
    if measures is True:
        taken = {record.key: measure(record) for record in kept if isinstance(record, Record)}
    measured = measures is not False
    usage = Usage()
    for record in every:
        usage = usage.plus(record.usage)
    failed = [record for record in kept if not record.passed]
    return Summary(
        agents=tuple(dict.fromkeys(record.agent for record in every)),
        episodes=len(kept),
        tasks=len({record.task_id for record in kept}),
        trials=len({record.trial for record in kept}),
        clean=cell(counted["clean"]),
        shifted=cell(counted["shifted"]),
        drop=over_all,
        refusals={"clean": refusals(clean), "shifted": refusals(shifted)},
        score=score(shifted, against["shifted"].bar if "shifted" in against else LITTLE),
        trivial=against,
        drops=found,
        refused={b: {name: refusals(of) for name, of in groups[b].items()} for b in groupings},
        mild=found.get("severity", {}).get("1"),
        cells={b: {name: cell(of) for name, of in grouped(counted["shifted"], b).items()} for b in groupings},
        pass_hat_k={
            side: _pass_hat([r for r in of if not r.refuse], seed)
            for side, of in (("clean", clean), ("shifted", shifted))
        },
        study=(
            {"clean": averaged(clean, taken), "shifted": averaged(shifted, taken), "all": averaged(kept, taken)}
            if measured
            else {}
        ),
        studies={b: {n: averaged(of, taken) for n, of in groups[b].items()} for b in groupings} if measured else {},
        stages=dict(Counter(record.stage or "undetermined" for record in failed).most_common()),
        causes=dict(Counter(record.cause or "undetermined" for record in failed).most_common()),
        usage=usage,
        excluded=_excluded(every),
        detectable=stats.minimum_detectable_effect(over_all.tasks) if over_all else None,
    )


def _pass_hat(records: Sequence[Told], seed: int) -> tuple[stats.PassHatK, ...]:
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


def _excluded(records: Sequence[Told]) -> Excluded:
    errors = [record for record in records if record.outcome == "error"]
    clean = {record.pair: record for record in records if record.clean}
    shifted = [record for record in records if not record.clean]
    lost = [r for r in shifted if r.pair in clean and "error" in (r.outcome, clean[r.pair].outcome)]
    return Excluded(
        episodes=len(errors),
        pairs=len(lost),
        unpaired=sum(r.pair not in clean for r in shifted),
        to_refuse=sum(
            r.judged and c.judged and (r.refuse or c.refuse) for r in shifted if (c := clean.get(r.pair)) is not None
        ),
        reasons=dict(Counter(r.why.splitlines()[0][:200] if r.why else "" for r in errors).most_common(20)),
    )


# ---------------------------------------------------------------- across agents


class CleanAndRobust(Model):
    """How the clean scores of several agents go with how they stand shifts, by rank."""

    agents: dict[str, tuple[float, float, float, float | None]]  # clean, shifted, delta, and share kept
    shifted: stats.Correlation  # of clean and shifted success
    delta: stats.Correlation  # of clean success and the change
    kept: stats.Correlation  # of clean success and the share of solved tasks that stay solved


def clean_and_robust(agents: Mapping[str, Drop]) -> CleanAndRobust:
    """The rank correlation of clean score and robustness over agents, each given by its drop over all pairs."""

    def ranked(value: Callable[[Drop], float | None]) -> stats.Correlation:
        able = [(one.clean, found) for one in agents.values() if (found := value(one)) is not None]
        return stats.spearman([clean for clean, _ in able], [found for _, found in able])

    return CleanAndRobust(
        agents={name: (one.clean, one.shifted, one.delta, one.kept) for name, one in agents.items()},
        shifted=ranked(lambda one: one.shifted),
        delta=ranked(lambda one: one.delta),
        kept=ranked(lambda one: one.kept),
    )
