"""Replay the multi-turn golds of bfcl-eval through its own executable APIs and print calls and seconds as JSON.

Started by `core.py` in an environment of its own that holds bfcl-eval and no crosswind. The calls are made as the
package's checker makes them: one `execute_multi_turn_func_call` for each turn of a gold, in the order of the data.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bfcl_eval
from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")


@dataclass(frozen=True, slots=True)
class Gold:
    """One task of the benchmark: where it starts, and the calls that solve it, turn by turn."""

    id: str
    config: dict[str, Any]
    classes: list[str]
    turns: list[list[str]]
    long: bool  # its files and messages are padded with a long context

    def execute(self, run: str, calls: list[str]) -> list[str]:
        """Make calls on the instances that belong to a run; the first time they are built from the config."""
        results, _ = multi_turn_utils.execute_multi_turn_func_call(
            calls, self.config, self.classes, run, self.id, self.long, True
        )
        answers: list[str] = results
        return answers


def load(category: str) -> list[Gold]:
    """The golds of one category, out of the package's data files."""
    data = Path(bfcl_eval.__file__).parent / "data"
    solved = {entry["id"]: entry["ground_truth"] for entry in _lines(data / "possible_answer" / _file(category))}
    return [
        Gold(e["id"], e["initial_config"], e["involved_classes"], solved[e["id"]], "long_context" in category)
        for e in _lines(data / _file(category))
    ]


def _file(category: str) -> str:
    return f"BFCL_v4_{category}.json"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def replay(golds: Sequence[Gold], run: str) -> int:
    """Make every call of every gold; how many of them raised."""
    raised = 0
    for gold in golds:
        for turn in gold.turns:
            raised += sum(answer.startswith("Error during execution") for answer in gold.execute(run, turn))
    return raised


def forget() -> None:
    """Drop the instances, which the package keeps as globals of its module."""
    kept = vars(multi_turn_utils)
    for name in [name for name in kept if name.endswith("_instance")]:
        del kept[name]
    gc.collect()


def seconds(golds: Sequence[Gold], run: str, *, built: bool) -> float:
    """How long a replay takes, with the instances built beforehand or while the clock runs."""
    forget()
    if built:
        for gold in golds:
            gold.execute(run, [])
    gc.collect()
    began = time.process_time()
    replay(golds, run)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    golds = [gold for category in CATEGORIES for gold in load(category)]
    for name in sorted({name for gold in golds for name in gold.classes}):
        importlib.import_module(CLASS_FILE_PATH_MAPPING[name])
    raised = replay(golds, "warm")  # imports, caches and the interpreter's own warming up are not on the clock
    forget()
    gc.freeze()  # nor do the data weigh on the garbage collector
    figures = {
        "golds": len(golds),
        "calls": sum(len(turn) for gold in golds for turn in gold.turns),
        "raised": raised,
        "seconds_built": seconds(golds, "built", built=True),
        "seconds": seconds(golds, "fresh", built=False),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
