"""What a Ray cluster and shards give back: the records of a local run, after a node and then the driver were killed.

    python bench/cluster.py [--episodes 5000] [--agent retrier]     (needs the extra `ray`)

Starts a local cluster of three nodes with one CPU each, and prints a table of what was played and what it took. The
suite's 1,337 episodes are played four times, up to the number asked for. Processor time is that of all processes that
take part, Ray's own included: read as they run, and so without what a process spends in its last fifth of a second.
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

COMMAND = [sys.executable, "-m", "crosswind", "run", "tiers", "--no-progress", "--trials", "4"]


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
        return sum(self.seconds.values())


def wait_for(process: subprocess.Popen[bytes], folder: Path, lines: int) -> None:
    while process.poll() is None and lines_in(folder) < lines:
        time.sleep(0.05)
    if process.poll() is not None:
        raise SystemExit(f"the run ended with status {process.returncode} after {lines_in(folder)} episodes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--agent", default="retrier")
    asked = parser.parse_args()
    from ray.cluster_utils import Cluster

    work = Path(tempfile.mkdtemp(prefix="crosswind-cluster-"))
    meter = Meter()
    meter.start()
    command = [*COMMAND, "--agent", asked.agent, "--limit", str(asked.episodes)]

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
