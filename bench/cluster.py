"""What a Ray cluster and shards give back: the records of a local run, after a node and then the driver were killed.

    python bench/cluster.py [--episodes 5000] [--agent retrier]     (needs the extra `ray`)
    python bench/cluster.py --costs [--episodes 2400] [--trials 4]  processor time of an episode, and where it goes

Starts a local cluster of three nodes with one CPU each, and prints a table of what was played and what it took. The
suite's 1,337 episodes are played four times, up to the number asked for. Processor time is that of all processes that
take part, Ray's own included: read as they run, and so without what a process spends in its last fifth of a second.

`--costs` reads the meter after the first episodes of a run and after the last, with one process and with Ray: what an
episode takes without the start and the end. Ray's own processes take time by the second too, so what they take while
nothing is played is printed beside.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from crosswind.episodes.suite import load_suite
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.runs.runner import Progress, run

FIRST = 200  # episodes after which `--costs` begins to measure
COMMAND = [sys.executable, "-m", "crosswind", "run", "tiers", "--no-progress"]


def digest(folder: Path) -> tuple[int, int, str]:
    """Lines, different episodes, and a digest of all records without times, in the order of their keys."""
    found: dict[str, str] = {}
    lines = (folder / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        record = json.loads(line)
        record["usage"]["seconds"] = 0
        found[record["key"]] = json.dumps(record, sort_keys=True)
    together = hashlib.sha256("".join(found[key] for key in sorted(found)).encode()).hexdigest()
    return len(lines), len(found), together[:12]


def lines_in(folder: Path) -> int:
    path = folder / "episodes.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


class Meter(threading.Thread):
    """Processor seconds of this process and of all that it started, those that are over included."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seconds: dict[str, float] = {str(os.getpid()): 0.0}  # by process
        self.kinds: dict[str, str] = {}

    def run(self) -> None:
        while True:
            self.read()
            time.sleep(0.2)

    def read(self) -> float:
        for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it is over
                continue
            if process.name in self.seconds or fields[1] in self.seconds:
                self.seconds[process.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                if self.kinds.get(process.name) != "actors":
                    self.kinds[process.name] = self.kind_of(process)
        return sum(self.seconds.values())

    def kind_of(self, process: Path) -> str:
        """Which part in a run a process has."""
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            return self.kinds.get(process.name, "Ray")
        if not command:  # it is over
            return self.kinds.get(process.name, "Ray")
        if process.name == str(os.getpid()):
            return "driver"
        return "actors" if command.startswith("ray::Actor") else "Ray"

    def by_kind(self) -> dict[str, float]:
        self.read()
        out = dict.fromkeys(("driver", "actors", "Ray"), 0.0)
        for process, seconds in self.seconds.items():
            out[self.kinds[process]] += seconds
        return out


def wait_for(process: subprocess.Popen[bytes], folder: Path, lines: int) -> None:
    while process.poll() is None and lines_in(folder) < lines:
        time.sleep(0.05)
    if process.poll() is not None:
        raise SystemExit(f"the run ended with status {process.returncode} after {lines_in(folder)} episodes")


class Marks:
    """Looks on at a run, and reads the meter after the first episodes and after the last."""

    def __init__(self, meter: Meter, first: int, last: int) -> None:
        self.meter, self.at = meter, [first, last]
        self.read: list[tuple[dict[str, float], float, int]] = []

    def show(self, progress: Progress) -> None:
        if self.at and progress.done >= self.at[0]:
            del self.at[0]
            self.read.append((self.meter.by_kind(), time.perf_counter(), progress.done))

    def each(self) -> tuple[dict[str, float], float]:
        """Milliseconds of processor time that an episode took in every kind of process, and seconds in all."""
        (before, began, first), (after, ended, last) = self.read
        return {kind: 1000 * (after[kind] - before[kind]) / (last - first) for kind in after}, ended - began


def costs(meter: Meter, agent: str, work: Path, trials: int, episodes: int) -> None:
    """Print what an episode takes, apart from the start and the end of a run."""
    from ray.cluster_utils import Cluster

    from crosswind.runs import cluster as ours

    ours.START = 900.0  # a machine may be overloaded
    suite = load_suite("tiers")

    async def played(name: str, player: ours.RayPlayer | None, concurrency: int) -> tuple[dict[str, float], float]:
        marks = Marks(meter, FIRST, episodes)
        folder, source = work / name, open_agent(agent)
        more = {"trials": trials, "limit": episodes, "concurrency": concurrency}
        await run(suite, source, folder, watch=marks, player=player, **more)  # type: ignore[arg-type]
        return marks.each()

    async def on_ray(address: str) -> tuple[dict[str, float], float]:
        async with ours.RayPlayer(agent, AgentSettings(), address=address) as player:
            while len(player.links) < player.wanted:  # an actor that starts meanwhile would count
                await asyncio.sleep(0.1)
            return await played("ray", player, player.concurrency)

    one = asyncio.run(played("local", None, 1))[0]["driver"]
    print(f"one process {one:.2f} ms an episode; load {os.getloadavg()[0]:.0f}", flush=True)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray, seconds = asyncio.run(on_ray(cluster.address))
    time.sleep(5)
    began, before = time.perf_counter(), meter.by_kind()["Ray"]
    time.sleep(20)
    idle = (meter.by_kind()["Ray"] - before) / (time.perf_counter() - began)
    cluster.shutdown()
    if digest(work / "local") != digest(work / "ray"):
        raise SystemExit("the records are not those of one process")
    all_of, idled = sum(ray.values()), 1000 * idle * seconds / (episodes - FIRST)
    parts = ", ".join(f"{kind} {took:.2f}" for kind, took in ray.items())
    print(f"Ray {all_of:.2f} ms an episode ({parts}): {one / all_of:.2f} of one process's throughput for a core")
    print(
        f"Ray's own processes took {1000 * idle:.0f} ms a second while nothing was played: {idled:.2f} ms an episode "
        f"in {seconds:.0f} s; without that {one / (all_of - idled):.2f}; load {os.getloadavg()[0]:.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--agent", default="retrier")
    parser.add_argument("--costs", action="store_true", help="only measure what an episode takes")
    parser.add_argument("--trials", type=int, default=4)
    asked = parser.parse_args()
    from ray.cluster_utils import Cluster

    work = Path(tempfile.mkdtemp(prefix="crosswind-cluster-"))
    meter = Meter()
    if asked.costs:
        costs(meter, asked.agent, work, asked.trials, asked.episodes)
        return
    meter.start()
    command = [*COMMAND, "--trials", str(asked.trials), "--agent", asked.agent]
    command += ["--limit", str(asked.episodes)]

    def timed(name: str, *more: str) -> None:
        began = now()
        subprocess.run([*command, *more, "--out", str(work / name)], check=True, stdout=subprocess.DEVNULL)
        show(name, began)

    def now() -> tuple[float, float]:
        return time.perf_counter(), meter.read()

    def show(name: str, began: tuple[float, float]) -> None:
        seconds, used = (after - before for after, before in zip(now(), began, strict=True))
        lines, keys, together = digest(work / name)
        print(f"| {name} | {lines} | {lines - keys} | {together} | {seconds:.1f} | {used:.1f} |", flush=True)

    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    print("| run | episodes | doubled | digest of records | seconds | CPU s |\n|---|---:|---:|---|---:|---:|")
    timed("local")
    began = now()
    parts = [
        subprocess.Popen([*command, "--shard", f"{n}/2", "--out", str(work / f"shard{n}")], stdout=subprocess.DEVNULL)
        for n in (1, 2)
    ]
    if any(part.wait() for part in parts):
        raise SystemExit("a shard failed")
    subprocess.run(
        [*COMMAND[:3], "merge", str(work / "shard1"), str(work / "shard2"), "--out", str(work / "shards")],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    show("shards", began)

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    others = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    ray = ["--executor", "ray", "--address", cluster.address]
    timed("ray", *ray)
    killed = work / "killed"
    began = now()
    with subprocess.Popen([*command, *ray, "--out", str(killed)], stdout=subprocess.DEVNULL) as driver:
        wait_for(driver, killed, asked.episodes // 4)
        cluster.remove_node(others[0], allow_graceful=False)
        wait_for(driver, killed, asked.episodes // 2)
        os.kill(driver.pid, signal.SIGKILL)
    print(f"the driver was killed after {lines_in(killed)} episodes", file=sys.stderr)
    subprocess.run([*command, *ray, "--out", str(killed)], check=True, stdout=subprocess.DEVNULL)
    show("killed", began)
    cluster.shutdown()


if __name__ == "__main__":
    main()
