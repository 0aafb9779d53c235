"""What a Ray cluster and shards give back: the records of a local run, after a node and then the driver were killed.

    python bench/cluster.py [--episodes 5000] [--agent retrier]     (needs the extra `ray`)
    python bench/cluster.py --costs [--episodes 2400] [--trials 4]  processor time of an episode, and where it goes

Starts a local cluster of three nodes with one CPU each, and prints a table of what was played and what it took. The
suite's 1,337 episodes are played four times, up to the number asked for. Processor time is that of all processes that
take part, Ray's own included: read as they run, and so without what a process spends in its last fifth of a second.

`--costs` runs some and then all episodes, with one process and with Ray: the difference is what an episode takes
without the start and the end. Ray's own processes take time by the second too, so what they take while nothing is
played is printed beside.
"""

from __future__ import annotations

import argparse
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

FIRST = 250  # draws of which enough are shifted for all episodes that the baselines play at the end of a run
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
            return "bench"
        return "actors" if command.startswith("ray::Actor") else "driver" if "crosswind" in command else "Ray"

    def by_kind(self) -> dict[str, float]:
        self.read()
        out = dict.fromkeys(("driver", "actors", "Ray"), 0.0)
        for process, seconds in self.seconds.items():
            if (kind := self.kinds.get(process, "bench")) != "bench":
                out[kind] += seconds
        return out


def wait_for(process: subprocess.Popen[bytes], folder: Path, lines: int) -> None:
    while process.poll() is None and lines_in(folder) < lines:
        time.sleep(0.05)
    if process.poll() is not None:
        raise SystemExit(f"the run ended with status {process.returncode} after {lines_in(folder)} episodes")


def costs(meter: Meter, command: list[str], work: Path, first: int, episodes: int) -> None:
    """Print what an episode takes, apart from the start."""
    from ray.cluster_utils import Cluster

    def used(name: str, limit: int, *more: str) -> tuple[dict[str, float], float]:
        before, began = meter.by_kind(), time.perf_counter()
        folder = ["--limit", str(limit), "--out", str(work / f"{name}{limit}")]
        subprocess.run([*command, *more, *folder], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        return {kind: after - before[kind] for kind, after in meter.by_kind().items()}, seconds

    def further(name: str, *more: str) -> tuple[dict[str, float], float]:
        (few, short), (all_of, long) = used(name, first, *more), used(name, episodes, *more)
        return {kind: 1000 * (all_of[kind] - few[kind]) / (episodes - first) for kind in few}, long - short

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    time.sleep(20)  # until it is quiet
    began, before = time.perf_counter(), meter.by_kind()["Ray"]
    time.sleep(20)
    idle = (meter.by_kind()["Ray"] - before) / (time.perf_counter() - began)
    ray, seconds = further("ray", "--executor", "ray", "--address", cluster.address)
    cluster.shutdown()
    here, _ = further("local")
    one, all_of = here["driver"], sum(ray.values())
    parts = ", ".join(f"{kind} {took:.2f}" for kind, took in ray.items())
    idled = 1000 * idle * seconds / (episodes - first)
    print(f"one process {one:.2f} ms an episode; Ray {all_of:.2f} ({parts}); {one / all_of:.2f} of it")
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
    meter.start()
    command = [*COMMAND, "--trials", str(asked.trials), "--agent", asked.agent]
    if asked.costs:
        costs(meter, command, work, FIRST * asked.trials, asked.episodes)
        return
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
