"""Groups of episodes played by a model in training: one task under one stack of layers, several times over.

Episodes are played by `play` with the agent that evaluation uses, and judged by the same verifier. What comes back is
what the model read and wrote, in its own tokens: nothing is tokenised again. An episode that the infrastructure broke
has no reward.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from crosswind.core.draw import Drawn
from crosswind.core.types import Ended, Verdict
from crosswind.episodes.play import judge, play
from crosswind.models.engine import Completion, Engine
from crosswind.models.hf import HuggingFace, HuggingFaceAgent
from crosswind.models.native import Protocol, script_for
from crosswind.models.source import AgentSettings

Seed = tuple[object, ...]


class Sampled(NamedTuple):
    """A stretch of an episode under one menu of tools, as the model saw it; ends with the last token it wrote."""

    ids: list[int]
    mask: list[int]  # 1 exactly on the tokens that were drawn from the model
    logprobs: list[float]  # of those, as the engine has them


@dataclass(frozen=True, slots=True)
class Rollout:
    """One episode of a group."""

    rows: list[Sampled]  # one, or one for each menu of tools
    reward: float | None  # None: the infrastructure broke it
    passed: bool
    ended: Ended
    turns: int  # of the model

    @property
    def written(self) -> int:
        """Tokens drawn from the model."""
        return sum(len(row.logprobs) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Group:
    """Episodes that differ in nothing but what the model drew."""

    index: int  # of the draw
    kinds: tuple[str, ...]
    rollouts: list[Rollout]

    @property
    def rewards(self) -> list[float]:
        return [one.reward for one in self.rollouts if one.reward is not None]

    @property
    def signal(self) -> bool:
        """Do the rewards differ?"""
        return len(set(self.rewards)) > 1

    def advantages(self, *, std: bool) -> list[float]:
        """How much better than the group's mean each episode was; 0 for those without a reward."""
        rewards = self.rewards
        mean = fmean(rewards) if rewards else 0.0
        unit = pstdev(rewards) + EPS if std and rewards else 1.0
        return [0.0 if one.reward is None else (one.reward - mean) / unit for one in self.rollouts]


EPS = 1e-4  # added to a standard deviation


# ---------------------------------------------------------------- playing


class Player(HuggingFaceAgent):
    """The agent of an evaluation, which also remembers what it read and wrote."""

    def __init__(self, source: HuggingFace, engine: Engine, key: int, draws: Seed) -> None:
        super().__init__(source, engine, key, None)
        self.draws = draws  # decides what is sampled
        self.turns: list[tuple[list[int], Future[Completion]]] = []

    def submit(self, ids: list[int]) -> Future[Completion]:
        written = self.engine.submit(
            ids,
            key=self.key,
            max_new=self.source.max_tokens,
            temperature=self.source.limits.temperature or 0.0,
            seed=self.draws,
        )
        self.turns.append((ids, written))
        return written

    def rows(self) -> list[Sampled]:
        done = [(ids, future.result()) for ids, future in self.turns if future.done() and not future.exception()]
        return sampled((ids, written.ids, written.logprobs) for ids, written in done)


def sampled(turns: Iterable[tuple[Sequence[int], Sequence[int], Sequence[float]]]) -> list[Sampled]:
    """Turns (what was read, what was written, with which log-probabilities) as rows.

    A turn goes on with the row before it if what it read begins with that row. It does not if the menu of tools has
    changed: then a new row begins, and what it repeats is masked from the loss.
    """
    out: list[Sampled] = []
    for read, written, logprobs in turns:
        if not written:
            continue
        if not (out and list(read[: len(out[-1].ids)]) == out[-1].ids):
            out.append(Sampled([], [], []))
        ids, mask, known = out[-1]
        new = read[len(ids) :]
        ids += [*new, *written]
        mask += [0] * len(new) + [1] * len(written)
        known += logprobs
    return out


class Players(HuggingFace):
    """Agents of a model in training; engine and weights are the trainer's."""

    def __init__(
        self, engine: Engine, tokenizer: Any, *, temperature: float, max_tokens: int, protocol: Protocol = "text"
    ) -> None:
        settings = AgentSettings(temperature=temperature, max_tokens=max_tokens, protocol=protocol)
        super().__init__("training", settings)
        self.engine, self.tokenizer, self.script = engine, tokenizer, script_for(tokenizer, protocol)
        self._warned = True  # the training tells of a window that is too short

    def player(self, drawn: Drawn, seed: Seed) -> Player:
        """An agent for one episode; the seed decides what it draws."""
        assert self.engine
        return Player(self, self.engine, next(self._numbers), seed)


Draw = Callable[[int], Drawn]


def play_groups(
    players: Players,
    indices: Iterable[int],
    draw: Draw,
    *,
    copies: int,
    seed: Seed = (),
    partial: float = 0.0,
) -> list[Group]:
    """Play a group for each index, as many episodes at a time as the engine has slots; others are drawn meanwhile.

    Every copy has the same draw. What it samples follows from `seed`, its index and its number among the copies.
    """

    async def one(drawn: Drawn, seed: Seed, room: asyncio.Semaphore) -> Rollout:
        async with room:
            player = players.player(drawn, seed)
            trajectory = await play(drawn, player, players.name)
            verdict = judge(trajectory, drawn.domain)
            rewarded = reward(verdict, partial)
            return Rollout(player.rows(), rewarded, verdict.outcome == "pass", trajectory.ended, len(player.turns))

    async def every() -> list[Group]:
        assert players.engine
        room = asyncio.Semaphore(players.engine.slots)
        begun: list[tuple[int, tuple[str, ...], list[asyncio.Task[Rollout]]]] = []
        async with asyncio.TaskGroup() as tasks:
            for index in indices:
                drawn = draw(index)
                kinds = tuple(layer.kind for layer in drawn.layers)
                some = [tasks.create_task(one(drawn, (*seed, index, copy), room)) for copy in range(copies)]
                begun.append((index, kinds, some))
                await asyncio.sleep(0)  # those begun come before the next draw
        return [Group(index, kinds, [task.result() for task in some]) for index, kinds, some in begun]

    try:
        return asyncio.run(every())
    except ExceptionGroup as failed:  # the first says why; the others were stopped by it
        raise failed.exceptions[0] from None


def reward(verdict: Verdict, partial: float = 0.0) -> float | None:
    """1 for a success (a right refusal is one), 0 for a failure, none for a fault of the infrastructure.

    With `partial` a failure has so much of 1 as the share of the verifier's checks that held, times `partial`.
    """
    if verdict.outcome == "error":
        return None
    if verdict.outcome == "pass":
        return 1.0
    checks = verdict.checks
    return partial * sum(check.passed for check in checks) / len(checks) if partial and checks else 0.0
