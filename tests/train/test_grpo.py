"""Reinforcement with a tiny model: what is learnt from, what is not, when it stops, and that it goes on exactly."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("default")  # of the packages that train

from crosswind.base.errors import BadFile, CrosswindError, InfrastructureError  # noqa: E402
from crosswind.core.domain import Domain  # noqa: E402
from crosswind.core.draw import Drawn  # noqa: E402
from crosswind.core.perturbation import dump_layers  # noqa: E402
from crosswind.core.types import Check, Message, Tools, Verdict  # noqa: E402
from crosswind.episodes.recipe import Choice, Recipe  # noqa: E402
from crosswind.models.prompts import script_of  # noqa: E402
from crosswind.train import grpo, grpo_rows  # noqa: E402
from crosswind.train.batches import as_tensors, collate  # noqa: E402
from crosswind.train.config import GrpoConfig, load  # noqa: E402
from crosswind.train.data import DataConfig, demonstration_at  # noqa: E402
from crosswind.train.grpo import FRESH, Training  # noqa: E402
from crosswind.train.grpo_rows import Learnt, learnt, log_probs, packed  # noqa: E402
from crosswind.train.grpo_watch import Watched, climb, collapsed, data_of, explores  # noqa: E402
from crosswind.train.model import about, load_base  # noqa: E402
from crosswind.train.progress import Update  # noqa: E402
from crosswind.train.rollouts import (  # noqa: E402
    Group,
    Player,
    Players,
    Rollout,
    Sampled,
    Seed,
    play_groups,
    reward,
    sampled,
)
from crosswind.train.rows import Tokens, rows, tokens  # noqa: E402
from crosswind.train.run import train  # noqa: E402
from crosswind.train.sft import gathered  # noqa: E402
from tests import tiny  # noqa: E402

TASKS = 2  # the toy problem: this many tasks over and over
run = partial(train, method="grpo")


@pytest.fixture(scope="module", autouse=True)
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    with tiny.shelf(tmp_path_factory.mktemp("domain")) as domain:
        yield domain


@pytest.fixture(scope="module")
def cold(shelf: Domain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learnt nothing."""
    return tiny.save(tmp_path_factory.mktemp("cold"), "shelf", hidden=32)


@pytest.fixture(scope="module")
def warm(cold: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that has imitated the two tasks for a while, and succeeds now and then."""
    data = config(cold).data
    model, tok = load_base(str(cold))
    batch = as_tensors(collate([tokens(rows(demonstration_at(data, n))[0], tok) for n in range(TASKS)], 0, 16))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for _ in range(65):
        with gathered(model, batch["places"]):
            loss = torch.nn.functional.cross_entropy(model(batch["input_ids"]).logits, batch["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    folder = tmp_path_factory.mktemp("warm")
    model.save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder


def config(base: Path, **more: Any) -> GrpoConfig:
    data = {"domains": {"shelf": 1.0}, "share": 0.0, "fixed": TASKS, "reasons": False, **more.pop("data", {})}
    usual = {
        "model": str(base), "steps": 4, "groups": 2, "copies": 4, "max_new": 32, "window": 512, "pad_to": 16,
        "save_every": 2, "measured": 0, "lr": 2e-3, "warmup": 0.0, "device": "cpu", "lora": {"fold": True},
    }  # fmt: skip
    return GrpoConfig.model_validate({**usual, **more, "data": data}, strict=False)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


# ---------------------------------------------------------------- the whole


def test_grpo_raises_the_reward_from_a_warm_start(warm: Path, tmp_path: Path) -> None:
    wanted = config(warm, steps=7, copies=8, save_every=100, measured=TASKS, full=True, lr=1.5e-3)
    result = run(wanted, tmp_path)
    lines = lines_of(tmp_path)
    rewards = [line["reward"] for line in lines]
    assert fmean(rewards[-2:]) > fmean(rewards[:2]) + 0.2, rewards
    # the trainer sees what the engine saw, and the engine has the weights of the step before
    assert all(line["mismatch"] < 1e-4 for line in lines)
    assert result.extra["greedy_before"].keys() == result.extra["greedy_after"].keys() == {"clean"}
    assert result.demonstrations == 7 * 2 * 8
    assert about(result.adapter)["method"] == "grpo"
    assert run(wanted, tmp_path) == result  # it is finished: nothing is played again


class Stopped(Exception):
    """As good as a kill: nothing is written any more."""


def test_a_run_that_was_stopped_ends_with_the_same_weights(warm: Path, tmp_path: Path) -> None:
    wanted = config(warm, steps=3, save_every=1, schedule="cosine", beta=0.05)
    whole = run(wanted, tmp_path / "whole")

    def stop(update: Update) -> None:
        if update.step == 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(wanted, tmp_path / "broken", progress=stop)
    held = tmp_path / "broken" / "checkpoints"
    (held / "checkpoint-7").mkdir()  # as if it was killed while it wrote this one
    shutil.copytree(held / "checkpoint-1", held / "checkpoint-2")  # and this one is not what it was
    (held / "checkpoint-2" / "state.pt").write_bytes((held / "checkpoint-1" / "state.pt").read_bytes()[:-9])
    with pytest.warns(UserWarning, match=r"checkpoint-2: files of it are gone or cut; the run goes on from step 1"):
        result = run(wanted, tmp_path / "broken")
    assert result.resumed == 1
    before, after = weights(whole), weights(result)
    assert any(value.any() for name, value in before.items() if "lora_B" in name)  # something was learnt
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    kept = [[{**line, "seconds": 0, "tokens_per_second": 0, "episodes_per_second": 0, "mismatch": 0}
             for line in lines_of(tmp_path / name)] for name in ("whole", "broken")]  # fmt: skip
    assert kept[0] == kept[1]
    assert [line["step"] for line in kept[1]] == [1, 2, 3]
    assert (result.tokens, result.extra) == (whole.tokens, whole.extra)
    assert config(warm, micro=5, slots=3).recipe() == config(warm).recipe()  # these may change on the way
    with pytest.raises(CrosswindError, match=r"a different recipe \(.*copies was 4, now 5"):
        run(wanted.model_copy(update={"copies": 5}), tmp_path / "broken")

    more = run(config(warm, start=whole.adapter, steps=1), tmp_path / "more")  # on from an adapter
    assert any(not torch.equal(before[name], value) for name, value in weights(more).items())
    assert lines_of(tmp_path / "more")[0]["mismatch"] < 1e-4


def weights(result: Any) -> dict[str, Any]:
    return weights_in(result.adapter)


def weights_in(folder: Path | str) -> dict[str, Any]:
    from peft import load_peft_weights

    found: dict[str, Any] = load_peft_weights(str(folder), device="cpu")
    return found


# ---------------------------------------------------------------- playing


class Instant(Players):
    """Agents that write what they are told to, one reply per turn, without a model."""

    def __init__(self, tokenizer: Any, script: Any) -> None:
        self.said, self.tokenizer, self.script, self._numbers = script, tokenizer, script_of(tokenizer), count()
        self.name, self.seen = "instant", list[tuple[Drawn, Seed]]()

        class Room:
            slots = 64

        self.engine: Any = Room()

    def player(self, drawn: Drawn, seed: Seed) -> Any:
        self.seen.append((drawn, seed))
        return self.said(drawn, seed)


class Saying:
    """An agent that answers at once, or whose provider fails."""

    turns: tuple[object, ...] = ((), ())

    def __init__(self, text: str | None) -> None:
        self.text = text

    async def reply(self, chat: Any, tools: Tools) -> Message:
        if self.text is None:
            raise InfrastructureError("the server is gone")
        return Message(role="assistant", content=self.text)

    def rows(self) -> list[Sampled]:
        return [Sampled([1, 2], [0, 1], [-0.5])]


def test_a_group_shares_task_layers_and_seed_and_steps_are_fresh(cold: Path) -> None:
    recipe = Recipe(stack=(Choice(kind="semantic_rename"),))
    data = DataConfig(domains={"shelf": 1.0}, share=0.5, recipe=recipe)
    players = Instant(tiny.tokenizer("shelf"), lambda *_: Saying("no"))

    def played(first: int) -> list[Group]:
        players.seen.clear()
        return play_groups(
            players,
            range(first, first + 6),
            lambda n: demonstration_at(data, n).drawn,
            copies=3,
            seed=("grpo", 0, first),
        )

    groups = played(FRESH)
    seen = list(players.seen)
    assert [len(group.rollouts) for group in groups] == [3] * 6
    ids = []
    for n, group in enumerate(groups):
        copies = [(drawn, seed) for drawn, seed in seen if seed[-2] == FRESH + n]
        (story,) = {json.dumps([drawn.base.id, dump_layers(drawn.layers)]) for drawn, _ in copies}
        assert {seed[-1] for _, seed in copies} == {0, 1, 2}
        assert group.kinds == tuple(layer.kind for layer in copies[0][0].layers)
        ids.append(story)
    assert len(set(ids)) == 6
    assert {group.kinds for group in groups} == {(), ("semantic_rename",)}
    played(FRESH)
    assert [seed for _, seed in players.seen] == [seed for _, seed in seen]
    again = played(FRESH + 6)
    assert not {drawn.base.id for drawn, _ in players.seen} & {drawn.base.id for drawn, _ in seen}
    assert len(again) == 6


def test_faults_of_the_infrastructure_are_masked_and_not_scored(shelf: Domain) -> None:
    data = DataConfig(domains={"shelf": 1.0}, share=0.0)

    def said(drawn: Drawn, seed: Seed) -> Saying:
        return Saying((drawn.certificate.gold.final, "no", None)[int(str(seed[-1])) % 3])

    players = Instant(tiny.tokenizer("shelf"), said)
    (group,) = play_groups(players, [FRESH], lambda n: demonstration_at(data, n).drawn, copies=6)
    rewards = [one.reward for one in group.rollouts]
    assert rewards == [1.0, 0.0, None] * 2
    assert group.rollouts[2].ended == "error"
    mixed = Group(0, (), [rollout(1.0), rollout(0.0), rollout(None), rollout(1.0)])
    assert mixed.advantages(std=False) == pytest.approx([1 / 3, -2 / 3, 0, 1 / 3])
    assert [len(some) for some in learnt([mixed], std=False)] == [3]
    assert not Group(0, (), [rollout(1.0), rollout(None)]).signal
    assert not Group(0, (), [rollout(None), rollout(None)]).signal


def rollout(reward: float | None, length: int = 4) -> Rollout:
    row = Sampled(list(range(length)), [0] * (length - 2) + [1, 1], [-0.1, -0.2])
    return Rollout([row], reward, bool(reward), "answer", 1)


def test_rewards_and_advantages() -> None:
    some = (Check(name="a", passed=True), Check(name="b", passed=False))
    assert reward(Verdict(outcome="pass", checks=some[:1])) == 1
    assert reward(Verdict(outcome="fail", checks=some)) == 0
    assert reward(Verdict(outcome="fail", checks=some), partial=0.4) == pytest.approx(0.2)
    assert reward(Verdict(outcome="error")) is None
    group = Group(0, (), [rollout(1.0), *(rollout(0.0) for _ in range(3))])
    assert group.advantages(std=False) == [0.75, -0.25, -0.25, -0.25]
    assert group.advantages(std=True) == pytest.approx([1.732, -0.577, -0.577, -0.577], abs=2e-3)
    assert learnt([Group(0, (), [rollout(0.0), rollout(0.0)])], std=False) == []
    assert [row.weight for row in learnt([group], std=False)[0]] == [1.0] * 4
    twice = Rollout([*rollout(1.0).rows, *rollout(1.0).rows], 1.0, True, "answer", 2)  # its menu changed midway
    (even,) = learnt([Group(0, (), [twice, rollout(0.0)])], std=False, even=True)
    assert [(row.advantage, row.weight) for row in even] == [(0.5, 0.25), (0.5, 0.25), (-0.5, 0.5)]


# ---------------------------------------------------------------- tokens


def test_the_mask_is_on_exactly_what_was_sampled(warm: Path, tmp_path: Path) -> None:
    written: list[list[int]] = []

    class Watched(Player):
        def submit(self, ids: list[int]) -> Any:
            future = super().submit(ids)
            future.add_done_callback(lambda done: written.append(done.result().ids))
            return future

    training = Training(config(warm, copies=2), tmp_path)
    try:
        training.players.player = lambda drawn, seed: Watched(  # type: ignore[method-assign]
            training.players, training.engine, next(training.players._numbers), seed
        )
        groups = training.play()
        episodes = [one for group in groups for one in group.rollouts]
        until = time.monotonic() + 10
        while len(written) < sum(one.turns for one in episodes) and time.monotonic() < until:
            time.sleep(0.01)  # the engine's thread hands a reply out before it notes it here
        again = training.play()
    finally:
        training.close()
    assert sum(one.turns for one in episodes) > len(episodes)  # several turns
    masked = []
    end = script_of(training.tokenizer).end
    for one in episodes:
        (row,) = one.rows
        assert row.mask[-1] == 1
        assert len(row.ids) == len(row.mask)
        assert sum(row.mask) == len(row.logprobs) == one.written
        starts = [i for i in range(1, len(row.mask)) if row.mask[i] > row.mask[i - 1]]
        assert len(starts) == one.turns
        for at in starts:
            stop = next((i for i in range(at, len(row.mask)) if not row.mask[i]), len(row.mask))
            masked.append(row.ids[at:stop])
            assert training.tokenizer.decode(row.ids[:at]).endswith("<|im_start|>assistant\n")
            if stop < len(row.ids) and row.ids[stop - 1] != end:
                assert row.ids[stop] == end  # put there for the model, which stopped after its call: not learnt
    assert sorted(masked) == sorted(written[: len(masked)])
    for one, other in zip(episodes, (one for group in again for one in group.rollouts), strict=True):
        assert [(row.ids, row.mask) for row in other.rows] == [(row.ids, row.mask) for row in one.rows]
        for row, same in zip(one.rows, other.rows, strict=True):  # which rows are computed together is a matter of time
            assert row.logprobs == pytest.approx(same.logprobs, abs=1e-3)


def test_a_new_menu_begins_a_new_row() -> None:
    turns = [([1, 2], [7, 8], [-1.0, -2.0]), ([1, 2, 7, 8, 9, 3], [6], [-3.0]), ([5, 2, 7, 8, 9, 3, 6, 9], [4], [-4.0])]
    one, other = sampled([*turns, ([1] * 9, [], [])])
    assert one == Sampled([1, 2, 7, 8, 9, 3, 6], [0, 0, 1, 1, 0, 0, 1], [-1.0, -2.0, -3.0])
    assert other == Sampled([5, 2, 7, 8, 9, 3, 6, 9, 4], [0] * 8 + [1], [-4.0])


def test_log_probs_are_those_of_all_logits(warm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tok = load_base(str(warm))
    some = [Tokens(list(range(5, 45)), [0] * 30 + [1] * 10), Tokens(list(range(9, 30)), [0] * 9 + [1, 0] * 6)]
    batch = collate(some, tok.pad_token_id, 16)
    whole = model(torch.from_numpy(batch.ids).long()).logits.div(0.7).log_softmax(-1)
    wanted = [whole[n, i - 1, row.ids[i]] for n, row in enumerate(some) for i in range(1, len(row.ids)) if row.mask[i]]
    torch.stack(wanted).square().sum().backward()
    gradient = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    monkeypatch.setattr(grpo_rows, "SCORES", 3 * len(tok))  # three places at a time
    found, entropy = log_probs(model, batch, 0.7)
    found.square().sum().backward()
    assert torch.allclose(found, torch.stack(wanted), atol=1e-5)
    assert all(torch.allclose(a, p.grad, atol=1e-4) for a, p in zip(gradient, model.parameters(), strict=True))
    first = whole[0, 29]
    assert entropy[0].item() == pytest.approx(-(first.exp() * first).sum().item(), abs=1e-4)


def test_the_loss_is_clipped_where_the_ratio_has_moved(warm: Path, tmp_path: Path) -> None:
    training = Training(config(warm), tmp_path)
    try:
        rows = [Learnt(Sampled([5, 6, 7, 8], [0, 0, 1, 1], [-1.0, -1.0]), a) for a in (1.0, -0.5)]
        new = training._forward(rows)[0]
        moved = torch.tensor([0.5, 0.1, 0.5, -0.5])  # of the log of the ratio
        training._deal(rows, "old", new - moved)
        loss, figures = training._loss(rows, 4)
        rows[0].weight, rows[1].weight = 0.5, 0.25
        weighed, _ = training._loss(rows, 1.5)
    finally:
        training.close()
    ratio = moved.exp().tolist()
    uneven = -(0.5 * (1.2 + ratio[1]) - 0.25 * (0.5 * ratio[2] + 0.5 * 0.8)) / 1.5
    assert weighed.item() == pytest.approx(uneven, abs=1e-5)
    wanted = -(1.2 + ratio[1] - 0.5 * ratio[2] - 0.5 * 0.8) / 4
    assert loss.item() == pytest.approx(wanted, abs=1e-5)
    assert figures[2].item() == 2  # clipped: up for the better one, down for the worse
    assert figures[5].item() == 4
    lengths = [[len(one.row.ids) for one in some] for some in packed(
        [Learnt(rollout(1.0, n).rows[0], 0.0) for n in (3, 40, 9, 17, 33)], 96, 16
    )]  # fmt: skip
    assert lengths == [[40, 33], [17, 9, 3]]


def test_how_a_step_is_computed_does_not_change_it(cold: Path, tmp_path: Path) -> None:
    found = []
    for more in (
        {"lora": {"fold": False}},
        {"micro": 400, "checkpointing": True, "lora": {"fold": False}},
        {"old": "engine", "lora": {"fold": True}},
    ):
        training = Training(config(cold, groups=1, max_new=8, **more), tmp_path)
        played = training.play()
        groups = [
            Group(g.index, g.kinds, [replace(one, reward=float(n % 2)) for n, one in enumerate(g.rollouts)])
            for g in played
        ]
        try:
            training.play = lambda groups=groups: groups  # type: ignore[method-assign,misc]
            line = training.advance()
        finally:
            training.close()
        found.append((line["loss"], line["grad_norm"], line["entropy"], line["learnt"]))
    assert found[0][1] > 0
    assert found[1] == pytest.approx(found[0], abs=2e-5)
    assert found[2] == pytest.approx(found[0], abs=2e-5)


# ---------------------------------------------------------------- when it should not go on


def test_without_a_warm_start_it_says_so_and_stops(cold: Path, tmp_path: Path) -> None:
    wanted = config(cold, steps=50, patience=4, copies=2, max_new=4)
    told = r"the last 4 groups carry no signal: .* it is 0; start from an adapter of `crosswind train sft` or `paft`"
    for _ in range(2):  # and says it again
        with pytest.raises(CrosswindError, match=told):
            run(wanted, tmp_path)
    assert len(lines_of(tmp_path)) == 2


def test_broken_episodes_are_no_failures_in_metrics_and_when_it_stops(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(self: Training) -> list[Group]:
        first = (0.0, None) if self.step == 0 else (None, None)
        return [Group(n, (), [rollout(one) for one in (first if n == 0 else (None, None))]) for n in range(2)]

    monkeypatch.setattr(Training, "play", played)
    why = "groups no episode could be scored: the engine or the tools failed, not the model"
    with pytest.raises(CrosswindError, match=f"of the last 5 {why}"):
        run(config(warm, steps=9, patience=4, full=True), tmp_path)
    assert [line["reward"] for line in lines_of(tmp_path)] == [0.0, None, None]
    with pytest.raises(CrosswindError, match=f"of the last 4 {why}"):
        run(config(warm, steps=9, patience=4, full=True), tmp_path)  # it plays on
    assert len(lines_of(tmp_path)) == 5

    def mended(self: Training) -> list[Group]:
        return [Group(n, (), [rollout(1.0), rollout(0.0)]) for n in range(2)]

    monkeypatch.setattr(Training, "play", mended)
    assert run(config(warm, steps=9, patience=4, full=True), tmp_path).steps == 9


def test_faults_at_the_end_of_a_run_do_not_end_it(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = config(warm, steps=2, patience=0, full=True)
    monkeypatch.setattr(Training, "play", lambda self: [Group(0, (), [rollout(None), rollout(None)])])
    for _ in range(2):
        with pytest.raises(CrosswindError, match="no episode could be scored"):
            run(wanted, tmp_path)
    monkeypatch.setattr(Training, "play", lambda self: [Group(0, (), [rollout(1.0), rollout(0.0)])])
    assert run(wanted, tmp_path).extra["signal"] > 0


def test_episodes_weigh_the_same_where_that_is_asked(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def long(reward: float, drawn: int) -> Rollout:
        first = 40 if reward else 5
        row = Sampled(list(range(first, first + 4 + drawn)), [0] * 4 + [1] * drawn, [-1.0] * drawn)
        return Rollout([row], reward, bool(reward), "answer", 1)

    def tried(drawn: int) -> dict[str, dict[str, Any]]:
        monkeypatch.setattr(Training, "play", lambda self: [Group(0, (), [long(1.0, 2), long(0.0, drawn)])])
        found = {}
        for weigh in ("token", "episode"):
            folder = tmp_path / f"{weigh}-{drawn}"
            run(config(warm, steps=1, updates=1, full=True, weigh=weigh), folder)
            found[weigh] = lines_of(folder)[0]
        return found

    losses = {weigh: line["loss"] for weigh, line in tried(20).items()}
    # at a ratio of 1 a token's part is its advantage: 2 of -0.5 and 20 of 0.5 over 22, or one of each over 2
    assert losses == {"token": pytest.approx(9 / 22, abs=1e-5), "episode": pytest.approx(0, abs=1e-5)}
    alike = tried(2)  # of the same length, there is no difference
    assert alike["token"]["grad_norm"] == pytest.approx(alike["episode"]["grad_norm"], rel=1e-3) != 0


def test_agreement_tells_whether_the_parts_of_a_step_pull_the_same_way(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_token(first: int, reward: float) -> Rollout:
        row = Sampled(list(range(first, first + 8)), [0] * 4 + [1] * 4, [-1.0] * 4)
        return Rollout([row], reward, bool(reward), "answer", 1)

    def found(*groups: tuple[float, float], updates: int = 2) -> float | None:
        played = [Group(n, (), [from_token(5, one), from_token(40, other)]) for n, (one, other) in enumerate(groups)]
        monkeypatch.setattr(Training, "play", lambda self: played)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        run(config(warm, steps=1, updates=updates, full=True, lr=1e-9), folder)
        value: float | None = lines_of(folder)[0]["agreement"]
        return value

    assert found((1.0, 0.0), (1.0, 0.0)) == pytest.approx(1, abs=1e-3)
    assert found((1.0, 0.0), (0.0, 1.0)) == pytest.approx(-1, abs=1e-3)
    assert found((1.0, 0.0), (1.0, 0.0), (0.0, 1.0), updates=3) == pytest.approx(-1 / 3, abs=1e-3)
    assert found((1.0, 0.0), (1.0, 0.0), updates=1) is None
    assert found((1.0, 1.0), (1.0, 0.0)) is None  # only one part has a signal


def test_a_run_of_a_version_without_an_option_goes_on(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Training, "play", lambda self: [Group(0, (), [rollout(1.0), rollout(0.0)])])
    wanted = config(warm, steps=1, full=True)
    run(wanted, tmp_path)
    held = json.loads((tmp_path / "train.json").read_text())
    del held["recipe"]["weigh"], held["recipe"]["lora"]["fold"]
    (tmp_path / "train.json").write_text(json.dumps(held))
    assert run(wanted, tmp_path).steps == 1
    with pytest.raises(CrosswindError, match='weigh was "token", now "episode"'):
        run(wanted.model_copy(update={"weigh": "episode"}), tmp_path)


def test_what_came_of_it_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    from crosswind.cli.train import show
    from crosswind.train.sft import Result

    extra = {
        "reward_first": 0.5, "reward_last": 0.75, "greedy_before": {"clean": 0.5}, "greedy_after": {"clean": 1.0},
        "signal": 0.0, "stopped": "nothing is left to learn",
    }  # fmt: skip
    counted = {"seconds": 1.0, "tokens": 0, "learnt": 0, "demonstrations": 24, "perturbed": 0, "left_out": {}}
    made = {"method": "grpo", "out": "o", "adapter": "o/adapter", "full": False, "steps": 3, "loss": 0.0}
    show(Result.model_validate({**made, **counted, "tokens_per_second": 0.0, "extra": extra}), False)
    told = capsys.readouterr().out
    assert "3 steps on 24 episodes" in told
    assert "reward 0.500 in the first step, 0.750 in the last" in told
    assert "greedy, clean: 0.500 before, 1.000 after" in told
    assert "no group carried a signal" in told
    assert "stopped early: nothing is left to learn" in told


def test_when_all_succeed_it_stops_with_what_it_has(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(self: Training) -> list[Group]:
        rewards = (1.0, 0.0) if self.step == 0 else (1.0, 1.0)
        return [Group(n, (), [rollout(one) for one in rewards]) for n in range(3)]

    monkeypatch.setattr(Training, "play", played)
    result = run(config(warm, steps=9, patience=6, full=True), tmp_path)
    assert result.steps == 3
    assert "it is 1; nothing is left to learn" in result.extra["stopped"]
    assert result.extra["signal"] == pytest.approx(1 / 3, abs=1e-3)
    assert lines_of(tmp_path)[0]["rows"] == 6
    assert lines_of(tmp_path)[1]["grad_norm"] == 0


def test_out_of_memory_names_what_to_try(warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Training, "play", lambda self: [Group(0, (), [rollout(1.0), rollout(0.0)])])
    monkeypatch.setattr(grpo, "log_probs", full)
    with pytest.raises(CrosswindError, match="out of memory with 32768 tokens in one pass; try micro: 16384"):
        run(config(warm), tmp_path)


def test_a_window_into_which_no_prompt_fits_is_told_of(warm: Path, tmp_path: Path) -> None:
    told = r"none of 2 prompts fits into the window of 64 tokens: .* raise window \(it is 64\)"
    with pytest.raises(CrosswindError, match=told):
        run(config(warm, window=64, groups=2), tmp_path)
    assert not (tmp_path / "train.json").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("copies: 1\n", r"grpo.yaml:1: copies: .*at least 2"),
        ("copies: 100000000000\n", r"grpo.yaml:1: copies: .*at most 4096"),
        ("batch: 8\n", "batch is not for grpo"),
        ("stages:\n  - {domains: {poi: 1}, steps: 60}\n", "stages is not for grpo"),
        ("data:\n  recipe: unseen\n", r"grpo.yaml:2: data.recipe: .* is held out"),
    ],
)
def test_a_bad_file_is_told(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "grpo.yaml"
    path.write_text(text)
    with pytest.raises(BadFile, match=told):
        load(path, [], GrpoConfig)


def test_a_start_that_is_no_adapter_is_refused(warm: Path, tmp_path: Path) -> None:
    with pytest.raises(CrosswindError, match=r"^start: .*no adapter found; give .* one of the package \(static, paft"):
        run(config(warm, start=str(warm)), tmp_path)


# ---------------------------------------------------------------- learning that goes on


def test_tasks_get_harder_with_success_and_a_killed_run_climbs_alike(warm: Path, tmp_path: Path) -> None:
    ladder = [{"share": 0.0}, {"share": 1.0}]
    data = {"share": 0.5, "recipe": Recipe(stack=(Choice(kind="semantic_rename"),))}
    wanted = config(warm, steps=4, save_every=1, ladder=ladder, climb=1e-9, dwell=2, patience=0, data=data)
    whole = run(wanted, tmp_path / "whole")
    lines = lines_of(tmp_path / "whole")
    assert [line["rung"] for line in lines][:2] == [0, 0]
    assert all((line["perturbed"] is None) is (line["rung"] == 0) for line in lines)

    def stop(update: Update) -> None:
        if update.step == 3:
            raise Stopped

    with pytest.raises(Stopped):
        run(wanted, tmp_path / "broken", progress=stop)
    again = run(wanted, tmp_path / "broken")
    assert again.resumed == 2
    assert [line["rung"] for line in lines_of(tmp_path / "broken")] == [line["rung"] for line in lines]
    assert all(torch.equal(value, weights(again)[name]) for name, value in weights(whole).items())


def test_the_next_rung_comes_only_with_success_on_this_one(cold: Path) -> None:
    wanted = config(
        cold, ladder=[{"levels": (1,)}, {"levels": (1,), "share": 1.0}], climb=0.6, dwell=2, data={"fixed": None}
    )
    watched = Watched()
    went = [climb(wanted, watched, [reward]) for reward in (1.0, 0.1, 0.7, 0.7, 1.0, 1.0)]
    assert went == [False, False, False, True, False, False]  # on the last rung it stays
    assert watched.rung == 1
    assert data_of(wanted, watched).share == 1.0


def test_a_collapse_is_entropy_or_agreement_gone_without_a_gain(cold: Path) -> None:
    wanted = config(cold, watch=2)

    def told(entropy: list[float], agreement: list[float], reward: list[float]) -> str:
        watched = Watched()
        for three in zip(entropy, agreement, reward, strict=True):
            watched.add(*three)
        return collapsed(wanted, watched)

    flat, falls, lucky = [0.3] * 6, [1.0, 1.0, 0.5, 0.2, 0.1, 0.1], [0.0] * 6
    assert "entropy fell from 1.0000 to 0.1000" in told(falls, [0.5] * 6, flat)
    assert "unrelated directions" in told([1.0] * 6, lucky, flat)
    assert not told([1.0] * 6, [0.5] * 6, flat)
    assert not told(falls, lucky, [0.1, 0.1, 0.2, 0.3, 0.4, 0.5])  # it learns
    assert not told(falls[:3], lucky[:3], flat[:3])  # too early to say
    assert not collapsed(config(cold, watch=0), Watched(entropy=falls, agreement=lucky, reward=flat))


def test_a_start_that_does_not_explore_is_told_of(cold: Path) -> None:
    assert "hardly explores: its entropy is 0.0040" in explores(config(cold), 0.004)
    assert not explores(config(cold), 0.2)


def test_groups_are_drawn_until_enough_carry_a_signal(warm: Path, tmp_path: Path) -> None:
    """A step that found too few groups to learn from draws as many once more, and others than any other step."""
    training = Training(config(warm, refill=3, groups=2, data={"fixed": None}), tmp_path)
    played: list[range] = []
    outcomes = iter([[0, 1], [1, 1], [1, 1]])  # groups with a signal, call by call

    def play(players: Any, indices: range, data: DataConfig, copies: int) -> list[Group]:
        played.append(indices)
        rewards = [(0.0, 1.0) if signal else (1.0, 1.0) for signal in next(outcomes)]
        return [Group(n, (), [rollout(r) for r in some]) for n, some in zip(indices, rewards, strict=True)]

    try:
        training._played = play  # type: ignore[method-assign]
        assert len(training.play()) == 4
        training.step = 1
        assert len(training.play()) == 2
    finally:
        training.close()
    every = [n for indices in played for n in indices]
    assert [len(indices) for indices in played] == [2, 2, 2]
    assert len(set(every)) == len(every)


TWO = """\
import os, shutil, sys
from pathlib import Path
import torch
from tests import tiny
from tests.train import test_grpo
base, out, scratch = map(Path, sys.argv[1:])
wanted = test_grpo.config(base, steps=3, groups=4, save_every=1, beta=0.05)
with tiny.shelf(scratch):
    test_grpo.run(wanted, out)
    torch.distributed.barrier()
    if os.environ["RANK"] == "0":
        shutil.copytree(out, scratch / "unbroken")
        for gone in ("adapter", "checkpoints/checkpoint-3"):
            shutil.rmtree(out / gone)
    torch.distributed.barrier()
    test_grpo.run(wanted, out)
"""


def test_two_processes_share_a_step_and_go_on_exactly(warm: Path, tmp_path: Path) -> None:
    alone = run(config(warm, steps=3, groups=4, save_every=1, beta=0.05), tmp_path / "alone")
    (tmp_path / "two.py").write_text(TWO)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launch, str(tmp_path / "two.py"), str(warm), str(tmp_path / "both"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    told, again = (json.loads((tmp_path / n / "train.json").read_text())["result"] for n in ("unbroken", "both"))
    assert told["demonstrations"] == alone.demonstrations == 3 * 4 * 4
    assert lines_of(tmp_path / "unbroken")[0]["reward"] == lines_of(tmp_path / "alone")[0]["reward"]
    first, second = (lines_of(tmp_path / name)[0] for name in ("alone", "unbroken"))
    assert second["learnt"] == first["learnt"]  # each row is learnt from once
    assert second["loss"] == pytest.approx(first["loss"], abs=1e-4)
    assert second["grad_norm"] == pytest.approx(first["grad_norm"], rel=1e-2)
    assert (told["resumed"], again["resumed"]) == (None, 2)
    unbroken, resumed = (weights_in(tmp_path / name / "adapter") for name in ("unbroken", "both"))
    assert all(torch.equal(unbroken[name], resumed[name]) for name in unbroken)
