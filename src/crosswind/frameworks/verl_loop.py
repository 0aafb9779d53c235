"""An agent loop for verl: its trainer samples every turn, and the episode is crosswind's.

    actor_rollout_ref.rollout.agent.agent_loop_config_path=agent_loop.yaml    # - {name: crosswind, _target_: ...}

Which episode a row asks for is in its `extra_info` under `crosswind` (`requested.py`), so all samples of a row share
their task and draw. What the tools are is looked up at every turn; when they change, what came before becomes a sample
of its own and a new one begins with the new list, since its prompt is another. All of them get the episode's reward.
What infrastructure broke gives no sample at all, and never the reward 0. This needs verl's V1 trainer, which takes
several samples of a rollout.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register
from verl.experimental.agent_loop.tool_parser import ToolParser

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Ending, Message, Request
from crosswind.episodes.record import Record
from crosswind.frameworks.driven import AgentTurn, DrivenEpisode
from crosswind.frameworks.requested import EpisodeRequest
from crosswind.models.parsing import arguments

FIELD = "crosswind"  # of a row's extra_info
Chat = list[dict[str, Any]]


@dataclass
class Branch:
    """A conversation under one list of tools: a prompt, and what was sampled and heard since."""

    tools: list[dict[str, Any]]
    messages: Chat
    tokens: list[int]
    mask: list[int] = field(default_factory=list)  # 1: sampled
    logprobs: list[float] | None = None
    replies: int = 0


@register("crosswind")
class CrosswindAgentLoop(AgentLoopBase):
    """One episode; each sample is what was said under one list of tools."""

    def __init__(self, *args: Any, ending: Ending = "finish", tools: Any = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.ending = ending
        turns = self.rollout_config.multi_turn
        self.parser = ToolParser.get_tool_parser(turns.format, self.tokenizer)
        self.most, self.room = turns.get("max_assistant_turns"), self.rollout_config.response_length
        self.generating: dict[str, float] = {}

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        request = requested(row)
        episode = await asyncio.to_thread(request.episode)
        driven = DrivenEpisode(episode, name="verl", seed=request.seed, ending=self.ending)
        try:
            branches = await self._play(driven, sampling_params)
        finally:
            await driven.aclose()
        record = driven.record
        assert record is not None
        return [self._output(branch, record) for branch in branches] if record.judged else []

    async def _play(self, driven: DrivenEpisode, sampling_params: dict[str, Any]) -> list[Branch]:
        branches: list[Branch] = []
        turn, session = await driven.begin(), uuid4().hex
        while turn is not None:
            branch = await self._seen(turn, branches[-1] if branches else None)
            if not branches or branch is not branches[-1]:
                branches.append(branch)
            if len(branch.mask) >= self.room or (self.most and sum(b.replies for b in branches) >= self.most):
                await driven.fail("the tokens or turns of a sample are used up", by_agent=True)
                break
            try:
                message = await self._reply(branch, session, sampling_params)
            except Exception as error:  # of the server that samples
                await driven.fail(f"{type(error).__name__}: {error}")
                break
            turn = await driven.reply(message)
        return [branch for branch in branches if branch.replies]

    async def _seen(self, turn: AgentTurn, branch: Branch | None) -> Branch:
        """The conversation as it stands, in the branch that it goes on in."""
        tools, messages = [spec.function() for spec in turn.tools], [shown(message) for message in turn.messages]
        if branch is None or branch.tools != tools:
            tokens = await self.ct_build_initial_tokens(messages, tools=tools or None)
            return Branch(tools, messages, list(tokens))
        merged, branch.mask, branch.logprobs = await self.ct_merge_context_msg(
            branch.messages, messages, branch.tokens, branch.mask, branch.logprobs, tools=tools or None
        )
        branch.tokens, branch.messages = merged.token_ids, messages
        return branch

    async def _reply(self, branch: Branch, session: str, sampling_params: dict[str, Any]) -> Message:
        """What the model says next."""
        if stops := self.parser.stop_token_ids:
            known = sampling_params.get("stop_token_ids") or []
            sampling_params = {**sampling_params, "stop_token_ids": sorted({*known, *stops})}
        said = await self.server_manager.generate(
            request_id=session, prompt_ids=branch.tokens, sampling_params=sampling_params
        )
        merged, branch.mask, branch.logprobs = await self.ct_merge_assistant_token(
            branch.tokens,
            said.token_ids,
            branch.mask,
            (branch.logprobs or []) if said.log_probs else branch.logprobs,
            assistant_logprobs=said.log_probs or None,
        )
        branch.tokens, branch.replies = merged.token_ids, branch.replies + 1
        words, calls = await self.parser.extract_tool_calls(said.token_ids, None)
        for mark in (self.tokenizer.eos_token, self.tokenizer.pad_token):
            words = words.replace(mark, "") if mark else words
        requests = tuple(
            Request(id=f"call_{branch.replies}_{n}", tool=call.name, args=arguments(call.arguments))
            for n, call in enumerate(calls)
        )
        message = Message(role="assistant", content=words.strip(), requests=requests)
        branch.messages = [*branch.messages, shown(message)]
        return message

    def _output(self, branch: Branch, record: Record) -> AgentLoopOutput:
        prompt = len(branch.tokens) - len(branch.mask)
        about = {"outcome": record.outcome, "condition": record.condition, "cause": record.cause or ""}
        return AgentLoopOutput(
            prompt_ids=branch.tokens[:prompt],
            response_ids=branch.tokens[prompt:][: self.room],
            response_mask=branch.mask[: self.room],
            response_logprobs=branch.logprobs[: self.room] if branch.logprobs else None,
            reward_score=float(record.passed),
            num_turns=len(branch.messages),
            metrics=AgentLoopMetrics(),
            extra_fields={"turn_scores": [], "tool_rewards": [], "reward_extra_info": about},
        )


def requested(row: Mapping[str, Any]) -> EpisodeRequest:
    """The episode that a row of the dataset asks for."""
    extra = row.get("extra_info") or {}
    asked = extra.get(FIELD) if isinstance(extra, Mapping) else None
    if isinstance(asked, str):  # Parquet columns have one type, and requests do not
        asked = json.loads(asked)
    if not isinstance(asked, Mapping):
        raise CrosswindError(f"the row has no extra_info.{FIELD}; expected a request such as {{domain: poi, seed: 3}}")
    return EpisodeRequest.read(asked)


def shown(message: Message) -> dict[str, Any]:
    """A message as chat templates take it: arguments are objects there."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.request_id:
        out["tool_call_id"] = message.request_id
    if message.requests:
        calls = ((call.id, {"name": call.tool, "arguments": call.args}) for call in message.requests)
        out["tool_calls"] = [{"id": id, "type": "function", "function": function} for id, function in calls]
    return out
