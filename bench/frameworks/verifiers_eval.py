"""Play a suite through `vf-eval` with a scripted endpoint, and hold its rewards against those of `cw.evaluate`.

pip install . packages/crosswind_vf && python bench/frameworks/verifiers_eval.py --suite SUITE --agent retrier
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # for `bench`

import crosswind as cw
from bench.frameworks.scripted import ScriptedEndpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", default="quick")
    parser.add_argument("--domain", default="poi")
    parser.add_argument("--agents", default="oracle,retrier")
    parser.add_argument("--limit", type=int, default=20)
    asked = parser.parse_args()
    for agent in asked.agents.split(","):
        run = cw.evaluate(agent, asked.suite, domain=asked.domain, limit=asked.limit, ending="finish")
        records = {record.key: record for record in run.records}
        endpoint = ScriptedEndpoint(records.values())
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "eval.toml"
            config.write_text(
                f'model = "scripted"\npush = false\noutput_dir = "{folder}"\n[client]\nbase_url = "{endpoint.url}"\n'
                f'api_key_var = "SCRIPTED_KEY"\n[env.taskset]\nid = "crosswind-vf"\nsuite = "{asked.suite}"\n'
                f'domain = "{asked.domain}"\nnum_tasks = {asked.limit}\n'
            )
            command = [str(Path(sys.executable).parent / "vf-eval"), "@", str(config)]
            done = subprocess.run(command, env={**os.environ, "SCRIPTED_KEY": "none"}, capture_output=True, text=True)
            found = list(Path(folder).rglob("traces.jsonl"))
            if done.returncode or not found:
                print(done.stdout[-3000:], done.stderr[-3000:])
                raise SystemExit(1)
            episodes = [json.loads(line) for line in found[0].read_text().splitlines()]
            traces = [trace for episode in episodes for trace in episode["traces"]]
        equal = changed = torn = unscored = 0
        for trace in traces:
            record = records[trace["task"]["data"]["id"].rpartition("|")[0]]
            if record.key in endpoint.torn:
                torn += 1
                continue
            changed += trace["metrics"].get("menus", 0) > 1
            reward = trace["rewards"].get("passed")
            unscored += reward is None
            equal += reward is not None and reward["score"] == float(record.passed)
        print(
            f"{agent}: {len(traces)} rollouts of {len(records)} episodes, {equal} with the verdict of the run, "
            f"{unscored} unscored, {torn} left out (their replies cannot be told from another episode's), "
            f"{changed} with tools that changed midway; {endpoint.requests} requests, {endpoint.unknown} unknown"
        )


if __name__ == "__main__":
    main()
