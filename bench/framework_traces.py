"""Capture traces of agents of other frameworks, each with its own instrumentation, for `crosswind watch` to read.

    pip install openai-agents openinference-instrumentation-openai-agents 'pydantic-ai-slim[openai]' langchain \\
        langchain-openai openinference-instrumentation-langchain opentelemetry-exporter-otlp-json-file
    python bench/framework_traces.py openai_agents usual.jsonl --episodes 30
    python bench/framework_traces.py openai_agents changed.jsonl --episodes 12 --changed
    crosswind watch changed.jsonl --reference usual.jsonl

The agent looks for a room and asks for its price. Its model is a scripted server of chat completions in this process;
with `--changed`, the tool for prices has another name. Spans are written by OpenTelemetry's own exporter for OTLP-JSON
files, one request per line. Nothing here knows of crosswind. `--bare` leaves content out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CITIES = ("Bonn", "Lyon", "Porto", "Turku", "Graz", "Ghent")
POLICY = "Find a room and say what it costs."
Answer = Callable[[str], Awaitable[str]]


def find_rooms(city: str, guests: int) -> str:
    """List the free rooms of a city.

    Args:
        city: Name of the city.
        guests: Number of guests.
    """
    n = CITIES.index(city)
    rows = [{"room_id": f"R{n}{i}", "beds": guests + i, "stars": 3 + (n + i) % 3} for i in range(1 + guests % 3)]
    return json.dumps(rows)


def room_price(room_id: str) -> str:
    """Price of a room for one night.

    Args:
        room_id: Id of the room.
    """
    if room_id.endswith("2"):
        return json.dumps({"error": "not_available", "message": f"{room_id} is taken."})
    return json.dumps({"room_id": room_id, "price": 60 + sum(map(ord, room_id)) % 50, "currency": "EUR"})


def tools_of(changed: bool) -> list[Callable[..., str]]:
    """The tools, of which one has another name after the change."""
    if not changed:
        return [find_rooms, room_price]

    def quote_stay(room_id: str) -> str:
        return room_price(room_id)

    quote_stay.__doc__ = room_price.__doc__
    return [find_rooms, quote_stay]


# ---------------------------------------------------------------- the model


class Model(BaseHTTPRequestHandler):
    """Calls the first tool for the city, the second for the last room found, and says the result."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = [tool["function"]["name"] for tool in asked["tools"]]
        words = next(m for m in asked["messages"] if m["role"] == "user")["content"]
        query = words if isinstance(words, str) else words[0]["text"]
        results = [json.loads(m["content"]) for m in asked["messages"] if m["role"] == "tool"]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if not results:
            city = next(c for c in CITIES if c in query)
            message["tool_calls"] = [_call(0, names[0], {"city": city, "guests": int(query.split(" for ")[1][0])})]
        elif len(results) == 1:
            message["tool_calls"] = [_call(1, names[1], {"room_id": results[0][-1]["room_id"]})]
        else:
            found = results[-1]
            message["content"] = f"It is {found['price']} EUR." if "price" in found else found["message"]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        used = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}
        data = json.dumps({**body, "usage": used}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _call(n: int, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


# ---------------------------------------------------------------- the frameworks


def openai_agents(provider: Any, tools: list[Callable[..., str]], bare: bool) -> Answer:
    """The OpenAI Agents SDK, instrumented by OpenInference."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    config = TraceConfig(hide_inputs=bare, hide_outputs=bare)
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider, config=config)
    model = OpenAIChatCompletionsModel(model="scripted", openai_client=AsyncOpenAI())
    agent = Agent(name="desk", instructions=POLICY, tools=[function_tool(one) for one in tools], model=model)

    async def answer(query: str) -> str:
        return str((await Runner.run(agent, query)).final_output)

    return answer


def pydantic_ai(provider: Any, tools: list[Callable[..., str]], bare: bool) -> Answer:
    """Pydantic AI with its own instrumentation, which follows the GenAI conventions of OpenTelemetry."""
    from pydantic_ai import Agent, InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel

    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, include_content=not bare))
    agent = Agent(OpenAIChatModel("scripted"), instructions=POLICY, tools=tools, name="desk")

    async def answer(query: str) -> str:
        return str((await agent.run(query)).output)

    return answer


def langchain(provider: Any, tools: list[Callable[..., str]], bare: bool) -> Answer:
    """LangChain, instrumented by OpenInference."""
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.langchain import LangChainInstrumentor

    config = TraceConfig(hide_inputs=bare, hide_outputs=bare)
    LangChainInstrumentor().instrument(tracer_provider=provider, config=config)
    agent = create_agent(ChatOpenAI(model="scripted"), tools, system_prompt=POLICY)

    async def answer(query: str) -> str:
        result = await agent.ainvoke({"messages": [{"role": "user", "content": query}]})
        return str(result["messages"][-1].text)

    return answer


FRAMEWORKS = {"openai_agents": openai_agents, "pydantic_ai": pydantic_ai, "langchain": langchain}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("out")
    parser.add_argument("--episodes", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="number of the first request")
    parser.add_argument("--changed", action="store_true", help="the tool for prices has another name")
    parser.add_argument("--bare", action="store_true", help="without content")
    given = parser.parse_args()

    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/v1", "OPENAI_API_KEY": "none"}
    provider = TracerProvider(resource=Resource({"service.name": "desk"}))
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(given.out)))
    answer = FRAMEWORKS[given.framework](provider, tools_of(given.changed), given.bare)

    async def play() -> None:
        for n in range(given.first, given.first + given.episodes):
            await answer(f"I need a room in {CITIES[n % 6]} for {1 + n * n % 7} guests.")

    asyncio.run(play())
    provider.shutdown()


if __name__ == "__main__":
    main()
