"""What a Ray cluster and shards give back: the records of a local run, after a node and then the driver were killed.

    python bench/cluster.py [--episodes 5000] [--agent retrier]     (needs the extra `ray`)

Starts a local cluster of three nodes with one CPU each, and prints a table of what was played and how long it took. The
suite's 1,337 episodes are played four times, up to the number asked for.
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
    command = [*COMMAND, "--agent", asked.agent, "--limit", str(asked.episodes)]

    def timed(name: str, *more: str) -> None:
        began = time.perf_counter()
        subprocess.run([*command, *more, "--out", str(work / name)], check=True, stdout=subprocess.DEVNULL)
        show(name, time.perf_counter() - began)

    def show(name: str, seconds: float) -> None:
        lines, keys, together = digest(work / name)
        print(f"| {name} | {lines} | {lines - keys} | {together} | {seconds:.1f} |", flush=True)

    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    print("| run | episodes | doubled | digest of records | seconds |\n|---|---:|---:|---|---:|")
    timed("local")
    began = time.perf_counter()
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
    show("shards", time.perf_counter() - began)

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    others = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    ray = ["--executor", "ray", "--address", cluster.address, "--concurrency", "6"]
    timed("ray", *ray)
    killed = work / "killed"
    began = time.perf_counter()
    with subprocess.Popen([*command, *ray, "--out", str(killed)], stdout=subprocess.DEVNULL) as driver:
        wait_for(driver, killed, asked.episodes // 4)
        cluster.remove_node(others[0], allow_graceful=False)
        wait_for(driver, killed, asked.episodes // 2)
        os.kill(driver.pid, signal.SIGKILL)
    print(f"the driver was killed after {lines_in(killed)} episodes", file=sys.stderr)
    subprocess.run([*command, *ray, "--out", str(killed)], check=True, stdout=subprocess.DEVNULL)
    show("killed", time.perf_counter() - began)
    cluster.shutdown()


if __name__ == "__main__":
    main()
