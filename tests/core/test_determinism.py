"""Equal seeds give equal bytes: across processes, hash seeds and a round trip through JSON."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

from crosswind.core.draw import draw
from crosswind.core.registry import domains
from tests.toys import poi

SCRIPT = """
import asyncio, hashlib, json
from crosswind.agents.oracle import Oracle
from crosswind.core.flow import rng_for
from crosswind.episodes.play import play
from crosswind.core.draw import draw
from crosswind.episodes.recipe import random_kinds
from crosswind.core.registry import domains
out = hashlib.sha256()
for name in domains.names():
    domain = domains[name]
    for n, family in enumerate(domain.families):
        for split in ("train", "test"):
            task = domain.task(family, 40 + n, split=split)
            out.update(task.model_dump_json().encode())
            drawn = draw(domain, task, random_kinds(rng_for("hash", n), 4), n, strict=False)
            trajectory = asyncio.run(play(drawn, Oracle(drawn), "oracle"))
            out.update(trajectory.model_dump_json().encode())
print(out.hexdigest())
"""


STREAMS = """
import asyncio, hashlib, tempfile
from crosswind.episodes.stream import load_plan, with_changes
from crosswind.models.spec import open_agent
from crosswind.runs.store import iter_records
from crosswind.runs.streams import play_streams
out = hashlib.sha256()
for name, agent, changes in (
    ("careers", "append_only", {"domains": ("retail",), "episodes": 24}),
    ("lifecycle", "updater", {"domains": ("poi",), "episodes": 30}),
    ("drifting", "relister", {"domains": ("medical",), "episodes": 24}),
):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play_streams(with_changes(load_plan(name), changes), open_agent(agent), folder))
        for record in iter_records(folder):
            out.update(record.model_dump_json(exclude={"usage"}).encode())
print(out.hexdigest())
"""


TIES = """
from random import Random
from crosswind.core.laws import match
from crosswind.core.types import ToolSpec
rng = Random(0)
words = ["".join(rng.choice("abcdefgh") for _ in range(5)) for _ in range(60)]
for _ in range(300):
    base = rng.sample(words, 16)
    docs = [base[:12] if n % 3 == 0 else rng.sample(base, 12) for n in range(6)]
    shown = [ToolSpec.new(f"t{n}", " ".join(rng.sample(doc, 12))) for n, doc in enumerate(docs)]
    print(match(ToolSpec.new("wanted", " ".join(rng.sample(base, 16))), shown))
"""


def run(hash_seed: str, script: str = SCRIPT) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def test_tasks_stacks_and_trajectories_are_the_same_bytes_in_every_process() -> None:
    assert len({run(seed) for seed in ("0", "1", "4242")}) == 1


def test_streams_and_careers_are_the_same_bytes_in_every_process() -> None:
    assert len({run(seed, STREAMS) for seed in ("1", "4242")}) == 1


def test_tools_that_are_described_alike_are_told_apart_in_the_same_way_in_every_process() -> None:
    found = {run(seed, TIES) for seed in ("0", "1", "4242")}
    assert len(found) == 1
    assert len(set(found.pop().split())) > 3


def test_play_prints_the_same_bytes_twice() -> None:
    command = [sys.executable, "-m", "crosswind.cli.app", "play", "--domain", "poi", "--seed", "9", "--json"]
    command += ["--perturb", "semantic_rename", "--perturb", "transient_error:5", "--agent", "retrier"]
    one, two = (
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": s}, capture_output=True, check=True).stdout
        for s in ("7", "8")
    )
    assert one == two
    assert len(one) > 1000


def test_other_seeds_give_other_tasks_and_draws() -> None:
    domain = poi()
    tasks = {domain.task("book_visit", seed).model_dump_json() for seed in range(20)}
    assert len(tasks) == 20
    task = domain.task("book_visit", 1)
    layers = {repr(draw(domain, task, ["semantic_rename"], seed).layers) for seed in range(20)}
    assert len(layers) == 20


def test_worlds_of_one_seed_share_rows_and_not_writes() -> None:
    domain = domains["poi"]
    task = domain.task("book_visit", 1)
    drawn = draw(domain, task, (), 0)
    one, two = domain.world(task), domain.world(task)
    for step in drawn.certificate.gold.calls:
        one.call(step.call)
    assert one.state.overlay
    assert not two.state.overlay
    before = hashlib.sha256(repr(sorted(two.state.cache.items())).encode()).hexdigest()
    domain.world(task).call(drawn.certificate.gold.calls[0].call)
    assert hashlib.sha256(repr(sorted(two.state.cache.items())).encode()).hexdigest() == before
