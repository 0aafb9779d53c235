"""Reinforcement by GRPO: groups of episodes, rewarded by their verdicts, and steps towards what beat its own group.

A step draws fresh groups, lets the model play every copy through `models.engine`, and learns from the tokens that were
drawn from it, at the very places at which they were drawn. The loop is ours rather than TRL's; docs/grpo.md says why,
and what every option means. Everything that a step does follows from the configuration, the number of the step and the
weights, so that a run that was killed goes on as if nothing had happened.
"""

from __future__ import annotations

import copy
import json
import math
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import torch

from crosswind.base.errors import CrosswindError
from crosswind.base.files import append_file
from crosswind.core.draw import Drawn
from crosswind.core.flow import rng_for
from crosswind.models.engine import Engine
from crosswind.models.loading import merged
from crosswind.train.batches import collate
from crosswind.train.checkpoints import clear, of_checkpoint, seal, whole_ones
from crosswind.train.config import CHECKPOINTS, METRICS, GrpoConfig
from crosswind.train.data import DataConfig, demonstration_at
from crosswind.train.grpo_rows import Learnt, agreement, check_output, direction, learnt, log_probs, packed
from crosswind.train.grpo_watch import Watched, climb, collapsed, data_of, explores
from crosswind.train.model import device_of, enough_memory, in_bf16, prepare, save
from crosswind.train.processes import Processes
from crosswind.train.progress import Halt, Progress, Update
from crosswind.train.rollouts import Group, Players, play_groups
from crosswind.train.rows import Tokens
from crosswind.train.sft import Result, compile_layers, cut_metrics, story

SLOTS = 1024  # conversations at a time, at most, unless given
FRESH, HELD = 10**9, 2 * 10**9  # first indices of draws to train on and to measure on; demonstrations begin at 0


# ---------------------------------------------------------------- a run


@dataclass(slots=True)
class Totals:
    """What a run did so far; stored with its checkpoints."""

    seconds: float = 0.0
    episodes: int = 0
    perturbed: int = 0
    faults: int = 0
    tokens: int = 0  # that the trainer read
    learnt: int = 0  # that were drawn from the model and learnt from
    written: int = 0  # that were drawn from it
    groups: int = 0
    signals: int = 0  # groups with a signal
    silent: int = 0  # groups in a row without
    heard: float = 0.0  # sum of their mean rewards
    watched: Watched = field(default_factory=Watched)
    broken: int = 0  # groups in a row of which no episode could be scored
    left_out: dict[str, int] = field(default_factory=dict)
    first: float | None = None  # mean reward of the first step
    last: list[float] = field(default_factory=list)  # and of the last ones
    before: dict[str, float] = field(default_factory=dict)  # greedy success before training
    stopped: str = ""


LAST = 5  # steps over which the reward at the end is taken


def reinforce(config: GrpoConfig, folder: Path, progress: Progress | None = None) -> Result:
    """Train by a configuration into a folder that was claimed for it."""
    training = Training(config, folder, progress)
    try:
        return training.go()
    finally:
        training.close()


class Training:
    """A model that plays and learns: the trainer's weights, and a copy of them in the engine."""

    def __init__(self, config: GrpoConfig, folder: Path, progress: Progress | None = None) -> None:
        self.config, self.folder, self.progress = config, folder, progress
        self.device, self.bf16 = device_of(config), in_bf16(config)
        self.processes = Processes(self.device)
        self.model, self.tokenizer = prepare(config)
        check_output(self.model)
        self.model.to(self.device).eval()
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0  # it would make the ratio a matter of chance
        self.engine = self._engine()
        if config.checkpointing:
            self.model.train()
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
            self.model.enable_input_require_grads()
        self.weights = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.start = [p.detach().clone() for p in self.weights.values()] if config.beta else []
        self.optimizer = torch.optim.AdamW(
            self.weights.values(), lr=config.rate, weight_decay=config.weight_decay, fused=self.device == "cuda"
        )
        self.totals, self.step, self.resumed = Totals(), 0, 0
        self.drawing = 0.0  # seconds of the last groups
        self.read = 0, 0  # tokens of the last step in this process, and those of them that were learnt
        self.loss: float | None = None
        self.players = self._players(config.temperature)
        if config.compile:
            compile_layers(self.model)

    def _engine(self) -> Engine:
        """A model of its own for playing; `sync` merges the adapter into its weights."""
        config = self.config
        own = copy.deepcopy(self.model)
        own = (own if config.full else own.unload()).to(torch.bfloat16 if self.bf16 else torch.float32)
        wanted = config.slots or min(SLOTS, -(-config.groups * config.copies // self.processes.count))
        return Engine(own.requires_grad_(False), self.tokenizer, slots=wanted, window=config.window, seed=config.seed)

    def _players(self, temperature: float) -> Players:
        config = self.config
        return Players(
            self.engine, self.tokenizer, temperature=temperature, max_tokens=config.max_new, protocol=config.protocol
        )

    def close(self) -> None:
        self.engine.close()

    def sync(self) -> None:
        """Give the engine the weights as they are now; it forgets what it has read with others."""
        self.engine.load_weights(self.model.named_parameters() if self.config.full else merged(self.model))

    # ------------------------------------------------------------ from the first step to the last

    def go(self) -> Result:
        config, totals = self.config, self._load()
        self.sync()
        if not self.step and config.measured:
            totals.before = self.measure("before")
        while self.step < config.steps and not totals.stopped:
            began = time.perf_counter()
            line = self.advance()
            totals.seconds += time.perf_counter() - began
            broken, totals.stopped = self._broken(), self._silence() or collapsed(config, totals.watched)
            if broken:
                totals.broken = 0  # the same command plays on
            try:
                self._tell(line)
            except Halt:
                self._save()
                raise
            if broken:
                if self.step < config.steps:  # a run that is over would not play again
                    self._save()
                raise CrosswindError(broken)
            if self.step % config.save_every == 0 or self.step == config.steps or totals.stopped:
                self._save()
        if totals.stopped and not totals.signals and not sum(totals.last):
            raise CrosswindError(totals.stopped)
        return self._finish(self.measure("after") if config.measured else {})

    def advance(self) -> dict[str, Any]:
        """One step: play, learn, hand over the weights. What comes back is its line of metrics."""
        config, laps = self.config, [time.perf_counter()]
        rung = self.totals.watched.rung
        groups = self.play()
        if not self.totals.written and all(
            one.reward is not None and not one.rows for group in groups for one in group.rollouts
        ):
            raise CrosswindError(
                f"none of {len(groups)} prompts fits into the window of {self.engine.window} tokens: nothing is "
                f"written; raise window (it is {config.window}), or take a model with more positions"
            )
        laps.append(time.perf_counter())
        ready = learnt(groups, std=config.scale == "std", even=config.weigh == "episode")
        with enough_memory(self._too_large):
            for n, row in enumerate(row for group in ready for row in group):
                row.mine = n % self.processes.count == self.processes.rank
            self._score([row for group in ready for row in group if row.mine])
            laps.append(self._now())
            figures = self._learn(ready)
            laps.append(self._now())
        if ready:
            self.sync()
        laps.append(self._now())
        self.step += 1
        spent = dict(zip(("rollout", "score", "update", "sync"), (b - a for a, b in pairwise(laps)), strict=True))
        line = self._line(groups, figures, {**spent, "of rollout: drawing": self.drawing})
        self._watch(groups, line)
        return {**line, "rung": rung} if config.ladder else line

    def _watch(self, groups: Sequence[Group], line: dict[str, Any]) -> None:
        """Remember what tells of a collapse, warn of a start that does not explore, and go up the ladder."""
        config, watched = self.config, self.totals.watched
        if line["rows"]:
            watched.add(line["entropy"], line["agreement"], line["reward"])
            told = explores(config, line["entropy"]) if len(watched.entropy) == 1 else ""
            if told and self.processes.main:
                warnings.warn(told, stacklevel=2)
        climb(config, watched, [reward for group in groups for reward in group.rewards])

    def _line(self, groups: Sequence[Group], figures: dict[str, Any], spent: dict[str, float]) -> dict[str, Any]:
        """The metrics of a step; what it did is added to the totals."""
        totals = self.totals
        episodes = [one for group in groups for one in group.rollouts]
        rewards = [one.reward for one in episodes if one.reward is not None]
        found = fmean(rewards) if rewards else None
        written, faults = sum(one.written for one in episodes), len(episodes) - len(rewards)
        lengths = [len(row.ids) for one in episodes for row in one.rows] or [0]
        for group in groups:
            if group.signal:
                totals.silent, totals.heard = 0, 0.0
            elif group.rewards:
                totals.silent, totals.heard = totals.silent + 1, totals.heard + fmean(group.rewards)
            totals.broken = 0 if group.rewards else totals.broken + 1  # no episode of it could be scored
            totals.perturbed += len(group.rollouts) if group.kinds else 0
            totals.signals += group.signal
        totals.groups += len(groups)
        totals.episodes += len(episodes)
        totals.faults += faults
        totals.written += written
        if found is not None:
            totals.first = found if totals.first is None else totals.first
            totals.last = [*totals.last, found][-LAST:]
        return {
            "step": self.step,
            "reward": None if found is None else round(found, 6),
            "clean": _share(groups, perturbed=False),
            "perturbed": _share(groups, perturbed=True),
            "signal": round(sum(group.signal for group in groups) / len(groups), 4),
            "faults": faults,
            "ended": dict(Counter(one.ended for one in episodes)),
            "turns": round(fmean(one.turns for one in episodes), 2),
            "written": round(written / len(episodes), 1),
            "length": round(fmean(lengths), 1),
            "longest": max(lengths),
            **figures,
            "lr": self._rate(self.step - 1),
            "tokens_per_second": round(written / max(spent["rollout"], 1e-9), 1),
            "episodes_per_second": round(len(episodes) / max(spent["rollout"], 1e-9), 2),
            "seconds": {name: round(value, 3) for name, value in spent.items()},
        }

    def play(self) -> list[Group]:
        """The groups of this step."""
        config, groups = self.config, list[Group]()
        data = data_of(config, self.totals.watched)
        first, drawing = FRESH + self.step * config.groups * config.refill, 0.0
        for n in range(config.refill):
            start = first + n * config.groups
            groups += self._played(self.players, range(start, start + config.groups), data, config.copies)
            drawing += self.drawing
            if sum(group.signal for group in groups) >= config.groups:
                break
        self.drawing = drawing
        return groups

    def measure(self, when: Literal["before", "after"]) -> dict[str, float]:
        """Greedy success on draws of the train split that are not trained on, clean and perturbed."""
        config = self.config
        greedy = self._players(0.0)
        parts = {"clean": 0.0, **({"perturbed": 1.0} if config.data.share else {})}
        out: dict[str, float] = {}
        for done, (name, share) in enumerate(parts.items()):
            if self.progress:
                self.progress(Update(f"measuring {when}", done, len(parts)))
            data = config.data.model_copy(update={"share": share})
            groups = self._played(greedy, range(HELD, HELD + config.measured), data, 1)
            judged = [one.passed for group in groups for one in group.rollouts if one.reward is not None]
            out[name] = sum(judged) / max(1, len(judged))
        return out

    def _played(self, players: Players, indices: range, data: DataConfig, copies: int) -> list[Group]:
        """Groups by their indices; each process plays its share, and has those of all afterwards."""
        counts: Counter[str] = Counter()
        far, self.drawing = self.step / self.config.steps, 0.0

        def draw(index: int) -> Drawn:
            began = time.perf_counter()
            drawn = demonstration_at(data, index, far, counts=counts).drawn
            self.drawing += time.perf_counter() - began
            return drawn

        groups = play_groups(
            players,
            self.processes.share(list(indices)),
            draw,
            copies=copies,
            seed=("grpo", self.config.seed, self.step),
            partial=self.config.partial,
        )
        every = self.processes.gathered((groups, counts))
        self.totals.left_out = dict(sum((found for _, found in every), Counter(self.totals.left_out)))
        return self.processes.together(played for played, _ in every)

    # ------------------------------------------------------------ learning

    def _score(self, rows: Sequence[Learnt]) -> None:
        """Log-probabilities before the step, and those of the weights at the start where they are wanted.

        Where the weights change only once, they are those that the update itself computes.
        """
        config = self.config
        once = config.updates * config.epochs == 1
        for some in packed(rows, 4 * config.micro, config.pad_to):  # without gradients a pass takes far less memory
            if config.old == "engine":
                self._deal(some, "old", torch.tensor([p for one in some for p in one.row.logprobs], device=self.device))
            elif not once:
                self._deal(some, "old", self._forward(some)[0])
            if config.beta:
                with self._at_the_start():
                    self._deal(some, "reference", self._forward(some)[0])

    def _deal(self, rows: Sequence[Learnt], name: str, values: Any) -> None:
        for one, part in zip(rows, values.split([len(one.row.logprobs) for one in rows]), strict=True):
            setattr(one, name, part)

    def _forward(self, rows: Sequence[Learnt], *, grad: bool = False) -> tuple[Any, Any]:
        config = self.config
        batch = collate([Tokens(one.row.ids, one.row.mask) for one in rows], self.tokenizer.pad_token_id, config.pad_to)
        with torch.set_grad_enabled(grad), torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            found: tuple[Any, Any] = log_probs(self.model, batch, config.temperature)
        if grad:
            self.read = self.read[0] + batch.real, self.read[1] + len(batch.targets)
        return found

    @contextmanager
    def _at_the_start(self) -> Iterator[None]:
        """The weights as they were before training."""
        now = [p.data for p in self.weights.values()]
        try:
            for parameter, value in zip(self.weights.values(), self.start, strict=True):
                parameter.data = value
            yield
        finally:
            for parameter, value in zip(self.weights.values(), now, strict=True):
                parameter.data = value

    def _learn(self, ready: list[list[Learnt]]) -> dict[str, Any]:
        """Update the weights from groups with a signal; figures of what happened."""
        config = self.config
        sums = torch.zeros(6, device=self.device)  # loss, entropy, clipped, divergence, mismatch, tokens
        norms, matched, parts, together = list[Any](), 0, 0, None
        self.read = 0, 0
        for epoch in range(config.epochs if ready else 0):
            order = list(ready)
            rng_for("grpo", config.seed, self.step, epoch).shuffle(order)
            count = min(config.updates, len(order))
            for n in range(count):
                rows = [row for group in order[n::count] for row in group]
                weight = sum(one.weight * len(one.row.logprobs) for one in rows)
                for group in self.optimizer.param_groups:
                    group["lr"] = self._rate(self.step)
                self.optimizer.zero_grad(set_to_none=True)
                for some in packed([row for row in rows if row.mine], config.micro, config.pad_to):
                    loss, figures = self._loss(some, weight)
                    loss.backward()
                    if epoch or n:
                        figures[4] = 0.0  # the weights have moved since the engine drew
                    else:
                        matched += sum(len(one.row.logprobs) for one in some)
                    sums += figures
                for parameter in self.weights.values() if self.processes.count > 1 else ():
                    if parameter.grad is None:  # it had no rows here
                        parameter.grad = torch.zeros_like(parameter)
                self.processes.add_up(p.grad for p in self.weights.values())
                if not epoch and count > 1:
                    parts, together = parts + 1, direction(self.weights.values(), together)
                limit = config.clip or math.inf
                norms.append(torch.nn.utils.clip_grad_norm_(self.weights.values(), limit))
                self.optimizer.step()
        self.processes.add_up([sums])
        matched, read, drawn = map(sum, zip(*self.processes.gathered((matched, *self.read)), strict=True))
        self.totals.tokens, self.totals.learnt = self.totals.tokens + read, self.totals.learnt + drawn
        loss, entropy, clipped, divergence, mismatch, tokens = sums.tolist()
        total = max(tokens, 1.0)
        self.loss = loss / max(1, len(norms))
        if not math.isfinite(self.loss):
            raise CrosswindError(f"the loss is {self.loss} at step {self.step + 1}; lower lr (it is {config.rate:g})")
        return {
            "loss": round(self.loss, 6),
            "entropy": round(entropy / total, 5),
            "clipped": round(clipped / total, 5),
            **({"divergence": round(divergence / total, 6)} if config.beta else {}),
            "mismatch": round(mismatch / max(1, matched), 7),
            "grad_norm": round(float(torch.stack(norms).mean()), 5) if norms else 0.0,
            "agreement": None if together is None else round(agreement(together, parts), 5),
            "rows": sum(map(len, ready)),
            "learnt": int(tokens),
        }

    def _loss(self, rows: Sequence[Learnt], total: float) -> tuple[Any, Any]:
        """The part of some rows in the loss of an update whose tokens weigh so much, and figures summed over them."""
        config, device = self.config, self.device
        new, entropy = self._forward(rows, grad=True)
        counts = torch.tensor([len(one.row.logprobs) for one in rows], device=device)
        advantage = torch.tensor([one.advantage for one in rows], device=device).repeat_interleave(counts)
        old = new.detach() if rows[0].old is None else torch.cat([one.old for one in rows])
        ratio = (new - old).exp()
        held = ratio.clamp(1 - config.epsilon, 1 + config.epsilon)
        worth = torch.minimum(ratio * advantage, held * advantage)
        divergence = torch.zeros_like(new)
        if config.beta:
            back = torch.cat([one.reference for one in rows]) - new
            divergence = back.exp() - back - 1
        weight = torch.tensor([one.weight for one in rows], device=device).repeat_interleave(counts)
        loss = (weight * (config.beta * divergence - worth)).sum() / total
        with torch.no_grad():
            engine = torch.tensor([p for one in rows for p in one.row.logprobs], device=device)
            parts = (entropy, (worth < ratio * advantage).float(), divergence, (engine - new).abs())
            figures = torch.stack([loss, *(part.sum() for part in parts), torch.ones_like(new).sum()]).float()
        return loss, figures.detach()

    def _rate(self, step: int) -> float:
        """The learning rate of a step, from 0 on."""
        config = self.config
        rising = round(config.warmup * config.steps)
        if step < rising:
            return config.rate * (step + 1) / (rising + 1)
        far = (step - rising) / max(1, config.steps - rising)
        return (
            config.rate
            * {"constant": 1.0, "linear": 1 - far, "cosine": 0.5 + 0.5 * math.cos(math.pi * far)}[config.schedule]
        )

    def _now(self) -> float:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    # ------------------------------------------------------------ when it should not go on

    def _broken(self) -> str:
        """Why it cannot go on now, if it cannot: nothing that was played could be scored."""
        config, totals = self.config, self.totals
        over = self.step == config.steps and not totals.signals
        if not totals.broken or not (over or 0 < config.patience <= totals.broken):
            return ""
        return (
            f"of the last {totals.broken} groups no episode could be scored: the engine or the tools failed, not the "
            "model; check them (crosswind doctor), then rerun the same command"
        )

    def _silence(self) -> str:
        """Why there is nothing to learn, if there is not."""
        config, totals = self.config, self.totals
        over = self.step == config.steps and not totals.signals
        if not totals.silent or (not over and (not config.patience or totals.silent < config.patience)):
            return ""
        mean = totals.heard / totals.silent
        told = f"the last {totals.silent} groups carry no signal: all episodes of each have the same reward"
        if mean < 0.01:
            where = "a better adapter" if config.start else "an adapter of `crosswind train sft` or `paft`"
            easier = "" if config.data.levels == (1,) else ", or take easier tasks (data.levels: [1])"
            return f"{told}, and it is 0; start from {where} (start: FOLDER){easier}"
        if mean > 0.99:
            return f"{told}, and it is 1; nothing is left to learn here: take harder tasks, or more of data.share"
        return f"{told} ({mean:.2f} on average); raise copies (now {config.copies}) or temperature"

    def _too_large(self) -> CrosswindError:
        config = self.config
        told = f"out of memory with {config.micro} tokens in one pass"
        more = f"try micro: {config.micro // 2}" if config.micro > config.window else "try checkpointing: true"
        return CrosswindError(f"{told}; {more}, or a smaller window; the run goes on from its last checkpoint")

    # ------------------------------------------------------------ what is stored

    def _tell(self, line: dict[str, Any]) -> None:
        config = self.config
        if not self.processes.main:
            return
        if self.step % config.log_every == 0 or self.step == config.steps or self.totals.stopped:
            append_file(self.folder / METRICS, (json.dumps(line) + "\n").encode())
        if self.progress:
            left = self.totals.seconds / self.step * (config.steps - self.step)
            speed, reward = line["tokens_per_second"], line["reward"]
            self.progress(Update("training", self.step, config.steps, self.loss, speed, left, reward))

    def _save(self) -> None:
        """A checkpoint; the note in it is written last and says that it is whole."""
        if not self.processes.main:
            self.processes.wait()
            return
        path = self.folder / CHECKPOINTS / f"checkpoint-{self.step}"
        path.mkdir(parents=True, exist_ok=True)
        weights = {name: p.detach() for name, p in self.weights.items()}
        torch.save({"weights": weights, "optimizer": self.optimizer.state_dict()}, path / "state.pt")
        told = {"step": self.step, "loss": self.loss, "recipe": self.config.recipe(), "totals": asdict(self.totals)}
        seal(path, told, self.config.keep)
        self.processes.wait()

    def _load(self) -> Totals:
        """Take up the last whole checkpoint, if there is one."""
        whole = whole_ones(self.folder / CHECKPOINTS)
        self.processes.wait()
        self.step = self.resumed = max(whole, default=0)
        if self.processes.main:
            clear(self.folder / CHECKPOINTS)
            cut_metrics(self.folder / METRICS, self.step)
        if self.step:
            told = of_checkpoint(whole[self.step], self.config)
            kept = told["totals"]
            self.totals, self.loss = Totals(**{**kept, "watched": Watched(**kept.get("watched", {}))}), told.get("loss")
            held = torch.load(whole[self.step] / "state.pt", map_location=self.device, weights_only=True)
            with torch.no_grad():
                for name, parameter in self.weights.items():
                    parameter.copy_(held["weights"][name])
            self.optimizer.load_state_dict(held["optimizer"])
        return self.totals

    def _finish(self, after: dict[str, float]) -> Result:
        config, totals = self.config, self.totals
        target = self.folder / ("model" if config.full else "adapter")
        result = Result(
            method="grpo",
            out=str(self.folder),
            adapter=str(target),
            full=config.full,
            steps=self.step,
            loss=self.loss,
            seconds=round(totals.seconds, 3),
            tokens=totals.tokens,
            learnt=totals.learnt,
            demonstrations=totals.episodes,
            perturbed=totals.perturbed,
            left_out=totals.left_out,
            tokens_per_second=round((totals.tokens + totals.written) / max(totals.seconds, 1e-9), 1),
            resumed=self.resumed or None,
            extra={
                "reward_first": totals.first,
                "reward_last": fmean(totals.last) if totals.last else None,
                "greedy_before": totals.before,
                "greedy_after": after,
                "signal": round(totals.signals / max(1, totals.groups), 4),
                "faults": totals.faults,
                "stopped": totals.stopped or None,
            },
        )
        if self.processes.main:
            save(self.model, self.tokenizer, target, story(config, result))
        self.processes.wait()
        return result


def _share(groups: Sequence[Group], *, perturbed: bool) -> float | None:
    """Success of the clean groups, or of the perturbed ones."""
    some = [r.passed for g in groups if bool(g.kinds) is perturbed for r in g.rollouts if r.reward is not None]
    return round(sum(some) / len(some), 6) if some else None
