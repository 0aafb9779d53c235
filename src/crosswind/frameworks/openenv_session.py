"""Resource sessions for OpenEnv's harnesses, in process. TRL's AsyncGRPOTrainer drives them too.

    from trl.experimental.async_grpo import AsyncGRPOTrainer, HarnessRolloutWorker
    factory = partial(CrosswindSessions, suite="tiers", split="train")
    worker = HarnessRolloutWorker(harness_session_factory=factory, harness_adapter=CrosswindHarness(), ...)

A session is an episode. Its list of tools is one list that changes in place, so harnesses that list tools once see
changes all the same. What infrastructure broke has no reward (None), which trainers leave out of a group's baseline.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import (
    HarnessAdapter,
    HarnessRolloutResult,
    HarnessRunLimits,
    ModelStep,
    ResourceSession,
    ResourceSessionFactory,
    ToolResult,
    ToolTraceEntry,
    VerifyResult,
)

from crosswind.core.types import Ending, Message, Request
from crosswind.episodes.record import Record
from crosswind.frameworks.driven import DrivenEpisode, ToolCalls, chat_message
from crosswind.frameworks.requested import EpisodeRequest

T = TypeVar("T")


class _Loop:
    """One event loop in a thread of its own, for all sessions of a process: harnesses are synchronous."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.lock = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with self.lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self.loop.run_forever, name="crosswind sessions", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


_loop = _Loop()


class CrosswindSession(ResourceSession):  # type: ignore[misc]
    """One episode, tool by tool."""

    def __init__(self, request: EpisodeRequest, episode_id: str | None = None, *, ending: Ending = "finish") -> None:
        self.episode_id = episode_id
        self.calls = ToolCalls(DrivenEpisode(request.episode(), name="openenv", seed=request.seed, ending=ending))
        self._tools: list[Tool] = []
        self._first = _loop.run(self.calls.begin())
        self._list()

    def initial_messages(self) -> list[dict[str, Any]]:
        return [chat_message(message) for message in self._first.messages if message.content]

    def list_tools(self) -> list[Tool]:
        return self._tools

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        text = _loop.run(self.calls.call(name, arguments))
        self._list()
        return ToolResult(data=text, done=self.calls.turn is None)

    def reply(self, message: Message) -> list[Message] | None:
        """A whole message of the model, with all its calls. What came back, or None when the episode is over."""
        self.calls.turn = _loop.run(self.calls.episode.reply(message))
        self._list()
        return None if self.calls.turn is None else list(self.calls.turn.new)

    def verify(self, transcript: list[dict[str, Any]], final_state: Any | None = None) -> VerifyResult:
        record = _loop.run(self._end(transcript))
        reward = float(record.passed) if record.judged else None
        metrics = {
            "outcome": record.outcome,
            "condition": record.condition,
            "steps": len(record.steps),
            "refuse": record.refuse,
            "exposed": record.exposed,
            "cause": record.cause,
        }
        return VerifyResult(env_reward=reward, done=True, metrics=metrics, artifacts={"record": record.model_dump()})

    async def _end(self, transcript: list[dict[str, Any]]) -> Record:
        last = transcript[-1] if transcript else {}
        content = last.get("content")
        words = content if last.get("role") == "assistant" and isinstance(content, str) else ""
        return await self.calls.end(words)

    def close(self) -> None:
        _loop.run(self.calls.episode.aclose())

    def _list(self) -> None:
        functions = (spec.function()["function"] for spec in self.calls.tools)
        self._tools[:] = [
            Tool(name=f["name"], description=f["description"], input_schema=f["parameters"]) for f in functions
        ]


class CrosswindSessions(ResourceSessionFactory[CrosswindSession]):  # type: ignore[misc]
    """Sessions on the episodes of a suite or of a domain.

    A task is a request (see `requested`), or anything else where the factory was made with one. A trainer's seed, the
    same for all rollouts of a group, chooses the episode, so a group shares its task and draw.
    """

    def __init__(self, *, ending: Ending = "finish", **request: Any) -> None:
        self.request, self.ending = request, ending
        if request:
            EpisodeRequest.read(request)  # complain here, not in the first rollout

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> CrosswindSession:
        asked = dict(task) if isinstance(task, Mapping) and not self.request else dict(self.request)
        if seed is not None:
            asked["number" if asked.get("suite") else "seed"] = seed
        return CrosswindSession(EpisodeRequest.read(asked), episode_id, ending=self.ending)


class CrosswindHarness(HarnessAdapter):  # type: ignore[misc]
    """The loop of a crosswind run: all calls of a message at once, tools listed again, and a user who may answer."""

    def run_white_box(
        self, model_step: ModelStep, session: ResourceSession, limits: HarnessRunLimits | None = None
    ) -> HarnessRolloutResult:
        assert isinstance(session, CrosswindSession)
        bounds = limits or HarnessRunLimits()
        messages = session.initial_messages()
        result = HarnessRolloutResult()
        for _ in range(bounds.max_turns):
            step = model_step(messages, session.list_tools(), dict(bounds.sampling))
            messages.append(step.response.to_message_dict())
            result.prompt_ids += step.prompt_ids
            result.completion_ids += step.completion_ids
            result.logprobs += step.logprobs
            asked = step.response.tool_calls
            requests = tuple(Request(id=call.id, tool=call.name, args=call.args) for call in asked)
            came = session.reply(Message(role="assistant", content=step.response.content, requests=requests))
            texts = {message.request_id: message.content for message in came or () if message.role == "tool"}
            for call in asked:
                told = ToolResult(data=texts.get(call.id, ""), done=came is None)
                result.tool_trace.append(ToolTraceEntry(call.name, dict(call.args), told))
            if came is None:
                result.done = True
                break
            messages += [chat_message(message) for message in came]
        result.messages = messages
        result.metrics = {"tool_calls": len(result.tool_trace)}
        return result

    def run_black_box(self, session: ResourceSession, limits: HarnessRunLimits | None = None) -> HarnessRolloutResult:
        raise TypeError("CrosswindHarness samples every turn from the trainer; use run_white_box")
