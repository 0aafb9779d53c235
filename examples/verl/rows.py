"""Rows for verl: each asks for one draw, which all samples of its group share.

python examples/verl/rows.py --count 512 --out train.parquet
"""

from __future__ import annotations

import argparse
import importlib
import json

from crosswind.frameworks.requested import EpisodeRequest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", default="poi")
    parser.add_argument("--recipe", default="mixed", help="held-out kinds never come")
    parser.add_argument("--split", default="train")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=512)
    parser.add_argument("--out", required=True)
    asked = parser.parse_args()
    rows = []
    for seed in range(asked.start, asked.start + asked.count):
        request = {"domain": asked.domain, "recipe": asked.recipe, "split": asked.split, "seed": seed}
        EpisodeRequest.read(request)  # complain here, not in the trainer
        rows.append(
            {
                "data_source": "crosswind",
                "agent_name": "crosswind",
                "prompt": [{"role": "user", "content": "(the request comes from the episode)"}],
                "reward_model": {"style": "rule", "ground_truth": ""},
                "extra_info": {"index": seed, "crosswind": json.dumps(request)},
            }
        )
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(rows), asked.out)
    print(f"wrote {len(rows)} rows to {asked.out}")


if __name__ == "__main__":
    main()
