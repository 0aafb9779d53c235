"""Hash what agents meet and what runs store, to show that a change of structure changed neither.

    python bench/fingerprints.py --out before.json
    python bench/fingerprints.py --out after.json --against before.json

Scripted agents play suites, and `crosswind data` writes every format. Each result is hashed without its timings. The
script only uses the command line, so it runs unchanged on any commit: point PYTHONPATH at that commit's `src`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUITES = ("quick", "tiers", "heldout")
AGENTS = ("oracle", "retrier", "by_description")
SEEDS = (0, 1)
FORMATS = (("trl", "native"), ("openai", "native"), ("sharegpt", "native"), ("trl", "text"))
DOMAINS = ("poi", "medical", "retail", "workspace", "banking", "operations")
TIMINGS = ("seconds", "waited", "began", "ended_at")


def crosswind(*args: str) -> None:
    done = subprocess.run([sys.executable, "-m", "crosswind", *args], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"crosswind {' '.join(args)} failed:\n{done.stderr[-2000:]}")


def episodes(path: Path) -> tuple[str, int]:
    """The hash of a run's episodes in the order of their keys, and their number."""
    lines = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            record: dict[str, Any] = json.loads(line)
            for name in TIMINGS:
                record.get("usage", {}).pop(name, None)
            lines.append((record["key"], json.dumps(record, sort_keys=True)))
    lines.sort()
    return hashlib.sha256("\n".join(line for _, line in lines).encode()).hexdigest(), len(lines)


def measured(folder: Path) -> Iterator[tuple[str, str, int]]:
    """What was made, its hash, and how many episodes or rows it has."""
    for suite in SUITES:
        for agent in AGENTS:
            for seed in SEEDS:
                out = folder / f"{suite}-{agent}-{seed}"
                crosswind("run", suite, "--agent", agent, "--seed", str(seed), "--out", str(out), "--json")
                yield (f"run {suite} --agent {agent} --seed {seed}", *episodes(out / "episodes.jsonl"))
    for form, protocol in FORMATS:
        for seed in SEEDS:
            out = folder / f"{form}-{protocol}-{seed}.jsonl"
            of = [word for domain in DOMAINS for word in ("--domain", domain)]
            options = ["--format", form, "--protocol", protocol, "--seed", str(seed), "--count", "200", *of]
            crosswind("data", *options, "--recipe", "wide", "--share", "0.5", "--max-tokens", "0", "--out", str(out))
            rows = out.read_bytes()
            yield f"data {' '.join(options)}", hashlib.sha256(rows).hexdigest(), rows.count(b"\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--against", type=Path, help="a file of another commit: exit 1 where a hash differs")
    options = parser.parse_args()
    before = json.loads(options.against.read_text(encoding="utf-8")) if options.against else None
    found: dict[str, str] = {}
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, hashed, count in measured(Path(folder)):
            found[name] = hashed
            same = "" if before is None else "  same" if before.get(name) == hashed else "  DIFFERENT"
            different += "DIFF" in same
            print(f"{hashed[:16]}  {count:5}  {name}{same}", flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
