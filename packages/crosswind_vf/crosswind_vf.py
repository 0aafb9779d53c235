"""Crosswind as an environment for verifiers: `vf-eval` and prime-rl find it by its name, `crosswind-vf`.

The taskset yields the episodes of a suite, or of a domain under a recipe, each as the JSON of its draw. The harness
plays an episode in this process and sends every model turn to the rollout's endpoint with the tools shown at that
moment. A changed tool list starts a new branch of the trace. The reward is the judge's verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import httpx
import verifiers.v1 as vf
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.errors import HarnessError, ProviderError
from verifiers.v1.harness import Harness
from verifiers.v1.runtimes import ProgramResult

from crosswind.core.types import Message, Request
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import load_suite
from crosswind.episodes.ticket import Ticket
from crosswind.frameworks.driven import DrivenEpisode, chat_message
from crosswind.frameworks.requested import EpisodeRequest

SECONDS = 600.0  # for one model turn


class CrosswindState(vf.State):
    outcome: str = ""
    refuse: bool = False
    exposed: bool = False
    menus: int = 0
    steps: int = 0


class CrosswindData(vf.TaskData):
    ticket: dict[str, Any]  # the JSON of the draw
    condition: str
    refuse: bool
    seed: int


class CrosswindTaskConfig(vf.TaskConfig):
    pass


class CrosswindTask(vf.Task[CrosswindData, CrosswindState, CrosswindTaskConfig]):
    @property
    def key(self) -> str:
        return str(self.data.id)

    @vf.reward(weight=1.0)
    async def passed(self, trace: vf.Trace) -> float:
        return float(trace.state.outcome == "pass")

    @vf.metric
    async def exposed(self, trace: vf.Trace) -> float:
        return float(trace.state.exposed)

    @vf.metric
    async def menus(self, trace: vf.Trace) -> float:
        """How many different lists of tools the model was shown."""
        return float(trace.state.menus)

    @vf.metric
    async def steps(self, trace: vf.Trace) -> float:
        return float(trace.state.steps)


class CrosswindConfig(vf.TasksetConfig):
    suite: str = "quick"  # a suite's name or file; its order is that of `crosswind run`
    recipe: str = ""  # instead of a suite: what seeds pick from a recipe for training, on tasks of the train split
    domain: str = ""  # with a suite: only these, with commas between; with a recipe: one, by default poi
    seed: int = 0
    num_tasks: int = 0  # 0: all of a suite, or 1,000 of a recipe
    task: CrosswindTaskConfig = CrosswindTaskConfig()


class CrosswindTaskset(vf.Taskset[CrosswindTask, CrosswindConfig]):
    def load(self) -> Iterable[CrosswindTask]:
        config = self.config
        if config.recipe:
            for seed in range(config.seed, config.seed + (config.num_tasks or 1000)):
                request = EpisodeRequest(domain=config.domain or "poi", recipe=config.recipe, split="train", seed=seed)
                yield self._task(request.episode(), seed)
            return
        suite = load_suite(config.suite)
        if config.domain:
            suite = suite.model_copy(update={"domains": tuple(name.strip() for name in config.domain.split(","))})
        for episode in Schedule(suite, config.seed, limit=config.num_tasks or None):
            if episode is not None:
                yield self._task(episode, config.seed)

    def _task(self, episode: Any, seed: int) -> CrosswindTask:
        ticket = Ticket.of(episode)
        data = CrosswindData(
            id=f"{ticket.key}|{seed}",
            prompt="(the request comes from the episode)",
            ticket=ticket.model_dump(mode="json"),
            condition=ticket.condition,
            refuse=episode.drawn.certificate.task.refuse,
            seed=seed,
        )
        return CrosswindTask(data, self.config.task)


class CrosswindHarnessConfig(HarnessConfig):
    ending: str = "finish"


class CrosswindHarness(Harness[CrosswindHarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: vf.Trace,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: Any,
        data: CrosswindData,
        **_: Any,
    ) -> ProgramResult:
        ending = "words" if self.config.ending == "words" else "finish"
        driven = DrivenEpisode(Ticket.read(data.ticket).episode(), name=ctx.model, seed=data.seed, ending=ending)
        shown: set[tuple[str, ...]] = set()
        try:
            async with httpx.AsyncClient(timeout=SECONDS, headers={"Authorization": f"Bearer {secret}"}) as client:
                turn = await driven.begin()
                while turn is not None:
                    shown.add(tuple(sorted(spec.name for spec in turn.tools)))
                    body = {
                        "model": ctx.model,
                        "messages": [
                            chat_message(message) for message in turn.messages if message.content or message.requests
                        ],
                        "tools": [spec.function() for spec in turn.tools],
                    }
                    turn = await driven.reply(await _asked(client, f"{endpoint}/chat/completions", body))
        finally:
            await driven.aclose()
        record = driven.record
        if record is None or not record.judged:
            raise HarnessError(f"the episode has no verdict: {record.why if record else 'it was given up'}")
        state = trace.state
        state.outcome, state.refuse, state.exposed = record.outcome, record.refuse, record.exposed
        state.menus, state.steps = len(shown), len(record.steps)
        trace.info["crosswind"] = {
            "outcome": record.outcome,
            "condition": record.condition,
            "cause": record.cause,
            "seen": [receipt.kind for receipt in record.receipts if receipt.seen],
        }
        return ProgramResult(0, record.final, "")


class CrosswindEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())  # the harness plays in process: no sandbox


class CrosswindEnv(vf.SingleAgentEnv, vf.Env[CrosswindEnvConfig]):
    """The environment of one agent, which by default needs no account and no container."""


async def _asked(client: httpx.AsyncClient, url: str, body: dict[str, Any]) -> Message:
    """The model's reply. What the provider breaks is raised, and verifiers leaves the rollout unscored."""
    try:
        answer = await client.post(url, json=body)
    except httpx.HTTPError as error:
        raise ProviderError(f"{type(error).__name__}: {error}") from None
    if answer.status_code != 200:
        raise ProviderError(answer.text[:300], status_code=answer.status_code)
    try:
        said = answer.json()["choices"][0]["message"]
        calls = said.get("tool_calls") or ()
        requests = tuple(
            Request(id=call["id"], tool=call["function"]["name"], args=_arguments(call["function"].get("arguments")))
            for call in calls
        )
        return Message(role="assistant", content=said.get("content") or "", requests=requests)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProviderError(f"the reply is no chat completion ({type(error).__name__}: {error})") from None


def _arguments(text: Any) -> Any:
    """Arguments as an object; text that is none reaches the world, which complains as of any malformed call."""
    try:
        return json.loads(text) if isinstance(text, str) and text.strip() else text or {}
    except ValueError:
        return text


__all__ = ["CrosswindEnv", "CrosswindHarness", "CrosswindTaskset"]
