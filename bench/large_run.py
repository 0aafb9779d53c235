"""What a run of a million episodes costs: to append, to resume, to judge, to report, in time, memory and disk.

    python bench/large_run.py --out DIR [--episodes 1000000] [--keep]

Playing so many episodes would take hours and say nothing of the store. So a scripted agent plays 1,210 episodes of the
suite `tiers`, and these records are written again and again through the store's own `append`, each round under other
seeds. Every command then runs in a process of its own, whose time and peak memory are printed. There a seed stands for
the task that was played under it (`as_played`), so that episodes which a command draws again are those on record.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from crosswind.cli.app import main as crosswind
from crosswind.core.domain import Domain
from crosswind.core.types import Task
from crosswind.episodes import record as record_module
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import key_of, pair_of
from crosswind.episodes.suite import load_suite
from crosswind.models.spec import open_agent
from crosswind.runs.runner import Limits, manifest_of, run
from crosswind.runs.store import Store, load_run

PLAYED, AGENT, SUITE = 1210, "retrier", "tiers"
RESUME = """
import sys, time
from crosswind.runs.store import Store, load_manifest
began, n = time.perf_counter(), 0
def count(_):
    global n
    n += 1
with Store(sys.argv[1]) as store:
    store.begin(load_manifest(sys.argv[1]))
    assert len(store.resume(count)) == n
print(n, "episodes known again in", round(time.perf_counter() - began, 1), "s")
"""


def stride_of(records: list[Record]) -> int:
    """How far the seeds of one round are from those of the one before."""
    return 1 + max(int(record.task_id.split("/")[3]) for record in records)


def others(records: list[Record], episodes: int) -> Iterator[Record]:
    """The records, then again under other seeds of their tasks."""
    stride = stride_of(records)
    for n in range(episodes):
        nth, record = divmod(n, len(records))[0], records[n % len(records)]
        parts = record.task_id.split("/")
        parts[3] = str(int(parts[3]) + nth * stride)
        task = "/".join(parts)
        yield record.model_copy(
            update={
                "task_id": task,
                "key": key_of(task, record.condition, record.trial),
                "pair": pair_of(task, record.trial),
            }
        )


def as_played(stride: int, arguments: list[str]) -> None:
    """Run a command of crosswind in which the seeds of all rounds are those of the first."""
    task_of = record_module.task_of

    def folded(domain: Domain, task_id: str) -> Task:
        parts = task_id.split("/")
        parts[3] = str(int(parts[3]) % stride)
        return task_of(domain, "/".join(parts))

    record_module.task_of = folded  # type: ignore[assignment]
    sys.argv = ["crosswind", *arguments]
    crosswind()


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def append(folder: Path, played: Path, episodes: int, start: int) -> None:
    """Write episodes from one on; those before it are there."""
    records = load_run(played).records
    manifest = manifest_of(
        load_suite(SUITE), open_agent(AGENT), seed=0, trials=1, limit=None, limits=Limits()
    ).model_copy(update={"planned": episodes})
    began, made = time.perf_counter(), 0.0
    with Store(folder) as store:
        begun = store.begin(manifest)
        assert len(store.resume(lambda _: None)) == start
        source = islice(others(records, episodes), start, None)
        began = time.perf_counter()
        for n in range(start, episodes):
            at = time.perf_counter()
            record = next(source)
            made += time.perf_counter() - at
            store.append(record)
            if n % 1024 == 1023:  # a run does so in a thread, as soon as the last one is done
                store.sync()
        store.sync()
        store.write(begun, state="finished")
    seconds = time.perf_counter() - began - made
    done = episodes - start
    print(f"{done} episodes in {seconds:.0f} s: {done / seconds:,.0f} a second", flush=True)


def measured(name: str, *command: str) -> None:
    """Run a command and print its time and memory."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read().strip().splitlines()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, cpu = time.perf_counter() - began, used.ru_utime + used.ru_stime
    last = said[-1][:110] if said else ""
    print(
        f"| {name} | {seconds:.1f} | {cpu:.1f} | {used.ru_maxrss / 1024:.0f} | {process.returncode} | {last} |",
        flush=True,
    )


def main() -> None:
    if sys.argv[1:2] == ["as-played"]:
        as_played(int(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--append", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--at-once", type=int, default=1_000_000, help="episodes that one process writes")
    parser.add_argument("--keep", action="store_true", help="read the run that is there")
    parser.add_argument("--only", default="", help="commands to measure, with commas between")
    asked = parser.parse_args()
    folder, played = asked.out / "large", asked.out / "played"
    if asked.append:
        append(folder, played, asked.episodes, asked.start)
        return
    if not asked.keep:
        shutil.rmtree(asked.out, ignore_errors=True)
        asyncio.run(run(load_suite(SUITE), open_agent(AGENT), played, limit=PLAYED))
    stride = stride_of(load_run(played).records)
    python, cli = sys.executable, [sys.executable, __file__, "as-played", str(stride)]
    print("| what | seconds | CPU s | peak MiB | status | last line |\n|---|---:|---:|---:|---:|---|", flush=True)
    if not asked.keep:
        for start in range(0, asked.episodes, asked.at_once):
            end = min(asked.episodes, start + asked.at_once)
            bounds = ["--start", str(start), "--episodes", str(end)]
            measured(f"append up to {end}", python, __file__, "--append", "--out", str(asked.out), *bounds)
    commands = {
        "resume": [python, "-c", RESUME, str(folder)],
        "gate": [*cli, "gate", str(folder), "--max-drop", "tier=0.10"],
        "show one episode": [*cli, "show", str(folder), str(asked.episodes // 2)],
        "diagnose": [*cli, "diagnose", str(folder), "--limit", "50"],
        "report": [*cli, "report", str(folder), "-o", str(asked.out / "report.html")],
        "export": [*cli, "export", str(folder), "--format", "parquet", "-o", str(asked.out / "run.parquet")],
    }
    for name, command in commands.items():
        if not asked.only or name.split()[0] in asked.only.split(","):
            measured(name, *command)
    whole = size_of(folder)
    print(f"{whole / 1e6:.0f} MB on the disk: {whole / asked.episodes:.0f} bytes an episode")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
