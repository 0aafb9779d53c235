"""Play episodes through TRL's rollout loop for AsyncGRPO, and hold its rewards against those of a run.

    python bench/frameworks/trl_rollouts.py [--limit 20]

Needs TRL and OpenEnv (`pip install trl==1.16.0 openenv==0.10.0`, with transformers and torch). The loop is TRL's own,
unchanged, as `HarnessRolloutWorker` runs it in its process: it samples over HTTP, groups, scores and forks rows. In the
place of the vLLM server stands one that answers with the tokens of a scripted policy. The trainer's own step needs a
GPU and is not part of this.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # for `bench`

import crosswind as cw
from bench.frameworks.scripted import answering
from bench.frameworks.tokens import ScriptedPolicy, said_in, tokenizer
from crosswind.episodes.suite import load_suite

GROUP = 2


def completions(policy: ScriptedPolicy) -> str:
    """The address of a server that answers as vLLM's completions endpoint does, with the tokens of a policy."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        said = policy(body["prompt"])
        return {"choices": [{"token_ids": said, "logprobs": {"token_logprobs": [-0.5] * len(said)}}]}

    return f"http://127.0.0.1:{answering(answer).server_port}"


def rolled_out(records: list[cw.Record], tok: Any, factory: Any, harness: Any) -> list[Any]:
    """The samples that TRL's loop makes of the episodes, each played by a group."""
    from datasets import Dataset
    from trl.experimental.async_grpo.openenv_harness import _HarnessRolloutLoop

    url = completions(ScriptedPolicy(tok, records, times=GROUP))
    out: Any = multiprocessing.Queue()
    loop = _HarnessRolloutLoop(
        harness_session_factory=factory,
        harness_adapter=harness,
        model_name="scripted",
        dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": str(n)}]} for n in range(len(records))]),
        reward_funcs=[],
        processing_class=tok,
        eos_token_ids=[tok.eos_token_id],
        rollout_buffer=out,
        model_version_value=multiprocessing.Value("q", 0),
        heartbeat_value=multiprocessing.Value("d", 0.0),
        failed_event=multiprocessing.Event(),
        exception_info_queue=multiprocessing.Queue(1),
        metrics_queue=multiprocessing.Queue(),
        num_generations=GROUP,
        max_inflight_tasks=1,  # the policy plays its episodes in order
        vllm_server_url=url,
        max_tokens=2048,
        max_tool_calling_iterations=64,
    )
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    samples: list[Any] = []
    while not samples or samples[-1].group_id < len(records):  # groups come in order
        try:
            samples.append(out.get(timeout=60))
        except queue.Empty:
            break
    if not thread.is_alive():
        raise SystemExit("TRL's loop has stopped; see its log above")
    loop._loop.call_soon_threadsafe(loop._stop_event.set)
    thread.join(30)
    return [sample for sample in samples if sample.group_id < len(records)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", default="quick")
    parser.add_argument("--only", default="", help="kinds, with commas between")
    parser.add_argument("--domain", default="poi")
    parser.add_argument("--agents", default="oracle,retrier")
    parser.add_argument("--limit", type=int, default=20)
    asked = parser.parse_args()
    from accelerate import PartialState
    from trl.chat_template_utils import qwen3_chat_template

    from crosswind.frameworks.openenv_session import CrosswindHarness, CrosswindSessions

    PartialState(cpu=True)  # TRL logs through it
    for agent in asked.agents.split(","):
        suite = load_suite(asked.suite).narrowed(0, (asked.domain,), only=tuple(filter(None, asked.only.split(","))))
        run = cw.evaluate(agent, suite, limit=asked.limit, ending="finish")
        tok = tokenizer(qwen3_chat_template)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "suite.yaml"
            path.write_text(suite.model_dump_json(exclude_defaults=True))  # JSON is YAML
            factory = partial(CrosswindSessions, suite=str(path))
            samples = rolled_out(run.records, tok, factory, CrosswindHarness())
        equal = whole = forked = trained = 0
        for n, record in enumerate(run.records):
            rows = [sample for sample in samples if sample.group_id == n]
            equal += bool(rows) and {row.metrics["reward"] for row in rows} == {float(record.passed)}
            forked += len(rows) > GROUP
            said = [tok.encode(text, add_special_tokens=False) for text in said_in(record)]
            ours = Counter(token for reply in said for token in [*reply, tok.eos_token_id])
            mine = Counter(t for row in rows for t, m in zip(row.input_ids, row.completion_mask, strict=True) if m)
            whole += mine == Counter({token: GROUP * count for token, count in ours.items()})
            trained += sum(int(row.completion_mask.sum()) for row in rows)
        print(
            f"{agent}: {len(run.records)} groups of {GROUP}, {equal} with the verdict of the run as the reward of all "
            f"their rows, {whole} whose sampled tokens are the policy's and no others; {len(samples)} rows with "
            f"{trained} sampled tokens, {forked} groups with rows that fork as tools changed midway"
        )


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # sessions that TRL began for groups beyond the last wait in threads that never end
