"""AsyncGRPO of TRL on certified, perturbed tasks: the tools are listed again at every turn, the judge gives the reward.

    pip install trl==1.16.0 openenv==0.10.0 aiohttp vllm && pip install .      # crosswind, in a checkout of it
    CUDA_VISIBLE_DEVICES=0 trl vllm-serve --model Qwen/Qwen3-1.7B
    CUDA_VISIBLE_DEVICES=1 python examples/trl/train.py --model Qwen/Qwen3-1.7B

Needs two GPUs: one for the vLLM server, one for the trainer.
"""

from __future__ import annotations

import argparse
from functools import partial

from datasets import Dataset
from transformers import AutoTokenizer
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.experimental.async_grpo.openenv_harness import HarnessRolloutWorker

from crosswind.frameworks.openenv_session import CrosswindHarness, CrosswindSessions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--domain", default="poi")
    parser.add_argument("--recipe", default="mixed", help="held-out kinds never come")
    parser.add_argument("--groups", type=int, default=512, help="each plays one draw, --generations times")
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--vllm", default="http://localhost:8000")
    parser.add_argument("--out", default="runs/async_grpo")
    asked = parser.parse_args()
    # The session opens the conversation, and TRL's group number is the seed of the draw: rows only count groups.
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": str(n)}]} for n in range(asked.groups)])
    config = AsyncGRPOConfig(
        output_dir=asked.out,
        num_generations=asked.generations,
        max_completion_length=512,
        vllm_server_base_url=asked.vllm,
        chat_template_kwargs={"enable_thinking": False},
    )
    tokenizer = AutoTokenizer.from_pretrained(asked.model)
    worker = HarnessRolloutWorker(
        harness_session_factory=partial(CrosswindSessions, domain=asked.domain, recipe=asked.recipe, split="train"),
        harness_adapter=CrosswindHarness(),
        model_name=asked.model,
        dataset=rows,
        reward_funcs=[],  # the judge's verdict is the reward
        processing_class=tokenizer,
        eos_token_ids=[tokenizer.eos_token_id],
        num_generations=asked.generations,
        vllm_server_url=asked.vllm,
        max_tokens=512,
        max_tool_calling_iterations=24,
        chat_template_kwargs={"enable_thinking": False},
    )
    AsyncGRPOTrainer(model=asked.model, args=config, train_dataset=rows, rollout_worker=worker).train()


if __name__ == "__main__":
    main()
