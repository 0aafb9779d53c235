"""Whether reinforcement still learns: what it started from, signs of a collapse, and how hard its tasks are by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from crosswind.train.config import GrpoConfig
from crosswind.train.data import DataConfig

EXPLORES = 0.01  # nats a token: below, nearly all copies of a group write the same
FALLEN = 0.2  # of the entropy at the start
LUCK = 0.01  # agreement of gradients that is none
KEPT = 1024  # steps that are remembered


@dataclass(slots=True)
class Watched:
    """What is remembered of the steps that learnt something; stored with the checkpoints."""

    entropy: list[float] = field(default_factory=list)
    agreement: list[float] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    rung: int = 0  # of the ladder
    since: int = 0  # steps on this rung
    recent: list[float] = field(default_factory=list)  # mean rewards on this rung, the last ones

    def add(self, entropy: float, agreement: float | None, reward: float) -> None:
        for kept, value in ((self.entropy, entropy), (self.reward, reward)):
            kept.append(value)
            del kept[:-KEPT]
        if agreement is not None:
            self.agreement.append(agreement)
            del self.agreement[:-KEPT]


def explores(config: GrpoConfig, entropy: float) -> str:
    """Why a start hardly explores, in words; empty if it does."""
    if entropy >= EXPLORES:
        return ""
    return (
        f"the start hardly explores: its entropy is {entropy:.4f} nats a token at temperature {config.temperature:g} "
        f"(expected {EXPLORES} or more); start from an adapter of fewer steps or of demonstrations without thoughts "
        "(data.reasons: false), or raise temperature"
    )


def collapsed(config: GrpoConfig, watched: Watched) -> str:
    """Why a run has collapsed, in words; empty if it has not. A reward that rises is never a collapse."""
    n = config.watch
    if not n or len(watched.entropy) < 2 * n:
        return ""
    first, last = fmean(watched.reward[:n]), fmean(watched.reward[-n:])
    if last > first or watched.rung:
        return ""
    told = f"the reward of the last {n} steps that learnt ({last:.2f}) is not above that of the first {n} ({first:.2f})"
    before, now = fmean(watched.entropy[:n]), fmean(watched.entropy[-n:])
    if now < FALLEN * before:
        return f"{told}, and entropy fell from {before:.4f} to {now:.4f}; lower lr, raise beta, or take a wider start"
    if len(watched.agreement) >= 3 * n and fmean(watched.agreement[-3 * n :]) < LUCK:
        return (
            f"{told}, and the updates of a step pull in unrelated directions (agreement "
            f"{fmean(watched.agreement[-3 * n :]):.4f} over {3 * n} steps); raise groups or copies"
        )
    return ""


def data_of(config: GrpoConfig, watched: Watched) -> DataConfig:
    """What is drawn from at this point of the run: on a ladder, the tasks of its rung."""
    if not config.ladder:
        return config.data
    return config.ladder[watched.rung].of(config.data)


def climb(config: GrpoConfig, watched: Watched, rewards: Sequence[float]) -> bool:
    """Go up a rung where the reward of the last steps on this one is high enough."""
    if not config.ladder or not rewards:
        return False
    watched.recent = [*watched.recent, fmean(rewards)][-config.dwell :]
    watched.since += 1
    high = len(watched.recent) == config.dwell and fmean(watched.recent) >= config.climb
    if not high or watched.rung + 1 >= len(config.ladder):
        return False
    watched.rung, watched.since, watched.recent = watched.rung + 1, 0, []
    return True
