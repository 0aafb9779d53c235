"""Play episodes through verl's agent loop with a scripted policy, and hold its rewards against those of a run.

    python bench/frameworks/verl_rollouts.py [--limit 40]

Needs verl (`pip install verl==0.9.1`, with transformers and torch). Its trainer and its servers are not started: the
real base class renders, merges and masks tokens, and a scripted policy is in the place of the server that samples.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # for `bench` and `tests`

import crosswind as cw
from bench.frameworks.tokens import ScriptedPolicy, said_in, tokenizer
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import Suite, load_suite
from crosswind.episodes.ticket import Ticket


class Server:
    """Where verl would ask its inference servers."""

    def __init__(self, policy: ScriptedPolicy) -> None:
        self.policy = policy
        self.down = False

    async def generate(self, *, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        if self.down:
            raise ConnectionError("the server is down")
        said = self.policy(prompt_ids)
        return TokenOutput(token_ids=said, log_probs=[-0.5] * len(said))


def made_loop(server: Server, tok: Any, response_length: int = 100_000) -> Any:
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap

    from crosswind.frameworks.verl_loop import CrosswindAgentLoop

    turns = {"format": "hermes", "max_assistant_turns": None}
    rollout = {"prompt_length": 100_000, "response_length": response_length, "multi_turn": turns}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})
    data = OmegaConf.create({"apply_chat_template_kwargs": {}})
    return CrosswindAgentLoop(DictConfigWrap(config), server, tok, None, object, DictConfigWrap(data))


async def compared(agent: str, suite: Suite, limit: int) -> None:
    run = cw.evaluate(agent, suite, limit=limit, ending="finish")
    tok = tokenizer()
    loop = made_loop(server := Server(ScriptedPolicy(tok, run.records)), tok)
    episodes = {e.key: e for e in Schedule(suite, 0, limit=limit) if e is not None}
    equal = samples = branched = exact = 0
    for record in run.records:
        row = {"extra_info": {"crosswind": {"ticket": Ticket.of(episodes[record.key]).model_dump(mode="json")}}}
        outputs = await loop.run({}, raw_prompt=[], **row)
        samples, branched = samples + len(outputs), branched + (len(outputs) > 1)
        equal += {output.reward_score for output in outputs} == {float(record.passed)}
        sampled = [
            token
            for output in outputs
            for token, mine in zip(output.response_ids, output.response_mask, strict=True)
            if mine
        ]
        said = [[*tok.encode(text, add_special_tokens=False), tok.eos_token_id] for text in said_in(record)]
        exact += sampled == [token for reply in said for token in reply]
    server.down = True
    masked = await loop.run({}, raw_prompt=[], **row)
    few = made_loop(Server(ScriptedPolicy(tok, [record])), tok, response_length=8)
    short = await few.run({}, raw_prompt=[], **row)
    print(
        f"{agent}: {len(run.records)} rollouts, {equal} with the verdict of the run, {exact} whose sampled tokens are "
        f"the policy's and no others; {samples} samples, {branched} rollouts with tools that changed midway. A server "
        f"that is down: {len(masked)} samples. Room for 8 tokens: reward {[output.reward_score for output in short]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", default="quick")
    parser.add_argument("--domain", default="poi")
    parser.add_argument("--agents", default="oracle,retrier")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--only", default="", help="kinds, with commas between")
    asked = parser.parse_args()
    suite = load_suite(asked.suite).narrowed(0, (asked.domain,), only=tuple(filter(None, asked.only.split(","))))
    for agent in asked.agents.split(","):
        asyncio.run(compared(agent, suite, asked.limit))


if __name__ == "__main__":
    main()
