"""Train a tiny model on a CPU from two source trees, and compare every loss, the weights and the seconds.

    python bench/train_weights.py OLD/src src

Both trees train the same configurations: an adapter, an adapter in two passes with recomputed activations, all weights,
and an adapter that is stopped halfway and resumed. Equal means equal to the last bit. Exits with 1 if one differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIANTS: dict[str, dict[str, Any]] = {
    "adapter": {},
    "two passes, checkpointing": {"accumulate": 2, "checkpointing": True},
    "all weights": {"full": True},
    "stopped and resumed": {"resumed": True},
}
STEPS = 24


def trained(name: str, folder: Path) -> dict[str, Any]:
    """What one variant comes to, by the crosswind that is imported."""
    from crosswind.train.config import TrainConfig
    from crosswind.train.progress import Halt, Update
    from crosswind.train.run import train
    from tests import tiny

    options = dict(VARIANTS[name])
    resumed = options.pop("resumed", False)
    with tiny.shelf(folder):
        base = tiny.save(folder / "base", "shelf", hidden=64)
        data = {"domains": {"shelf": 1.0}, "share": 0.5}
        usual = {"model": str(base), "steps": STEPS, "batch": 8, "log_every": 1, "save_every": STEPS // 2}
        config = TrainConfig.model_validate({**usual, "device": "cpu", "data": data, **options}, strict=False)

        def stop(update: Update) -> None:
            if update.step == STEPS // 2:
                raise Halt

        if resumed:
            with suppress(Halt):
                train(config, folder / "run", progress=stop)
        result = train(config, folder / "run")
    weights = next(Path(result.adapter).glob("*.safetensors")).read_bytes()
    lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [json.loads(line)["loss"] for line in lines]
    return {"losses": losses, "weights": hashlib.sha256(weights).hexdigest(), "seconds": result.seconds}


def in_tree(tree: Path, name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--train", name, "--folder", folder]
        path = os.pathsep.join((str(tree.resolve()), str(Path(__file__).resolve().parent.parent)))
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, metavar="SRC", help="two source trees")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.train:
        print(json.dumps(trained(given.train, given.folder)))
        return 0
    if len(given.trees) != 2:
        parser.error("give two source trees")
    different = 0
    for name in VARIANTS:
        one, two = (in_tree(tree, name) for tree in given.trees)
        same = one["losses"] == two["losses"] and one["weights"] == two["weights"]
        different += not same
        seconds = " and ".join(f"{found['seconds']:.2f} s" for found in (one, two))
        print(f"{name:28} {'equal' if same else 'DIFFERENT'}: {len(one['losses'])} losses, last {one['losses'][-1]}, "
              f"weights {one['weights'][:12]}; {seconds}", flush=True)  # fmt: skip
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
