"""What `crosswind doctor` finds out: about this installation, and about an agent before a run is spent on it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import time
from random import Random
from typing import Literal, NamedTuple

from crosswind.base.errors import CrosswindError, InfrastructureError
from crosswind.base.extras import install
from crosswind.base.version import installed
from crosswind.core.registry import domains
from crosswind.core.types import Message, Param, ToolSpec
from crosswind.models import weights
from crosswind.models.remote import OURS, ModelAgent, RemoteModel, loopback
from crosswind.models.source import AgentSettings, AgentSource
from crosswind.models.spec import open_agent

SECONDS = 30.0  # for one request of a probe
State = Literal["ok", "note", "bad"]
EXTRAS = {  # extra -> the packages that it brings, and what it is for
    "openai": (("openai",), "openai: agents"),
    "anthropic": (("anthropic",), "anthropic: agents"),
    "local": (("xllamacpp",), "the embedded agent"),
    "http": (("httpx2", "starlette", "uvicorn"), "cmd: agents, and MCP over HTTP"),
    "mcp": (("jsonschema",), "tasks for an MCP server"),
    "train": (("torch", "transformers", "peft"), "hf: agents"),
}
SERVERS = {  # where servers listen unless told otherwise
    "vLLM": "http://localhost:8000/v1",
    "SGLang": "http://localhost:30000/v1",
    "Ollama": "http://localhost:11434/v1",
    "llama.cpp": "http://localhost:8080/v1",
    "LM Studio": "http://localhost:1234/v1",
}
TOOL = ToolSpec("local_time", "The time in a city.", {"city": Param("string")})
CHAT = (
    Message(role="system", content="Answer with the tools."),
    Message(role="user", content="What time is it in Oslo?"),
)
SWITCHES = (
    "vLLM: --enable-auto-tool-choice --tool-call-parser hermes (or as the model has it); "
    "SGLang: --tool-call-parser; llama.cpp: --jinja; Ollama: a model with the tag `tools`"
)


class ProbeResult(NamedTuple):
    what: str
    state: State
    text: str


def installation() -> list[ProbeResult]:
    """Which extras are there, which keys are set, whether the weights are in the cache, which servers listen."""
    out = []
    for extra, (packages, purpose) in EXTRAS.items():
        missing = [p for p in packages if importlib.util.find_spec(p) is None]
        if missing:
            text = f"{', '.join(missing)} not installed; for {purpose}: {install(extra)}"
            out.append(ProbeResult(extra, "note", text))
        else:
            out.append(ProbeResult(extra, "ok", ", ".join(f"{p} {installed(p)}" for p in packages)))
    for variable in (OURS, "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        there = bool(os.environ.get(variable, "").strip())
        out.append(ProbeResult(variable, "ok" if there else "note", "set" if there else "not set"))
    path = weights.weights_file()
    if weights.sound(path):
        out.append(ProbeResult("weights", "ok", f"{weights.MODEL} in {path.parent}"))
    elif path.exists():
        out.append(ProbeResult("weights", "bad", f"{path} is damaged; the next run downloads it again"))
    else:
        out.append(
            ProbeResult("weights", "note", f"not in {path.parent}; downloaded when the embedded agent is first used")
        )
    return out


async def servers() -> list[ProbeResult]:
    """Local servers that listen where they usually do."""

    async def look(name: str, url: str) -> ProbeResult | None:
        host, port = "127.0.0.1", int(url.split(":")[2].split("/")[0])
        try:
            async with asyncio.timeout(0.5):
                _, writer = await asyncio.open_connection(host, port)
        except (OSError, TimeoutError):
            return None
        writer.close()
        return ProbeResult(name, "note", f"a server is listening; check it with: crosswind doctor openai:MODEL@{url}")

    return [f for f in await asyncio.gather(*(look(*server) for server in SERVERS.items())) if f]


async def examine(spec: str, settings: AgentSettings | None = None) -> list[ProbeResult]:
    """Look at an agent: can it be made, is its endpoint there, does it take the key, the model and tools, how fast."""
    settings = settings or AgentSettings(timeout=SECONDS, attempts=2, patience=2 * SECONDS, max_tokens=200)
    source = open_agent(spec, settings)
    out = [ProbeResult("spec", "ok", source.name)]
    try:
        if isinstance(source, RemoteModel):
            out += await _remote(source)
        else:
            out += await _local(source)
    finally:
        await source.aclose()
    return out


async def _remote(source: RemoteModel) -> list[ProbeResult]:
    out = []
    if source.url != source.home and not source.url.endswith("/v1") and source.provider == "openai":
        out.append(ProbeResult("address", "note", "for most servers, it must end in /v1"))
    key = "none sent" if source.keyless else "sent"
    out.append(ProbeResult("key", "ok", key + (", none needed on this machine" if loopback(source.url) else "")))
    names = await source.models()
    if names is not None:
        known = source.model in names
        text = source.model if known else f"the server lists {', '.join(names[:8]) or 'none'}, not {source.model}"
        out.append(ProbeResult("model", "ok" if known else "note", text))
    agent = ModelAgent(source, Random(0))
    source.examined = True
    began = time.perf_counter()
    try:
        message = await source.answer(agent, CHAT, (TOOL, *domains["poi"].world_class.specs))
    except (CrosswindError, InfrastructureError) as error:
        return [*out, ProbeResult("request", "bad", str(error))]
    seconds = time.perf_counter() - began
    used = agent.usage
    told = "; the server does not report token counts"
    if used.tokens is not None:
        told = f" for {used.input_tokens} tokens in, {used.output_tokens} out"
    speed = f"{seconds:.1f} s{told}"
    out.append(ProbeResult("request", "ok", speed))
    if not source.native:
        told = f"not accepted, or not passed on; called as text instead. To switch them on: {SWITCHES}"
    elif message.requests:
        call = message.requests[0]
        told = f"called {call.tool}({json.dumps(call.args, default=str)})"
    else:
        told = f"accepted, but the model did not call one when it should have. Try {SWITCHES}"
    state: State = "ok" if source.native and message.requests else "note"
    return [*out, ProbeResult("tools", state, told)]


async def _local(source: AgentSource) -> list[ProbeResult]:
    """An agent in this process: let it play one short episode."""
    from crosswind.episodes.play import judge, play
    from crosswind.episodes.schedule import episodes
    from crosswind.episodes.suite import suites

    episode = next(iter(episodes(suites["quick"], 0)))
    began = time.perf_counter()
    try:
        agent = source.make(episode.drawn)
        ready = time.perf_counter() - began
        trajectory = await play(episode.drawn, agent, source.name, ending=source.ending)
    except CrosswindError as error:
        return [ProbeResult("agent", "bad", str(error))]
    seconds = time.perf_counter() - began - ready
    if trajectory.ended in ("error", "exception"):
        return [ProbeResult("agent", "bad", trajectory.why)]
    text = f"{judge(trajectory).outcome} in {len(trajectory.steps)} steps, {seconds:.1f} s"
    return [ProbeResult("agent", "ok", f"ready in {ready:.1f} s"), ProbeResult("episode", "ok", text)]
