"""An agent made with the OpenAI Agents SDK, its tools from an MCP server. Nothing here knows of crosswind.

    python agent.py --url http://127.0.0.1:8000/mcp --policy policy.txt "the request"

The model is at OPENAI_BASE_URL (OpenAI's own unless set), its name in MODEL. The answer is printed. Exit code 75 says
that the provider failed, not the agent.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import APIError, AsyncOpenAI


async def answer(url: str, policy: str, query: str) -> str:
    model = OpenAIChatCompletionsModel(model=os.environ.get("MODEL", "gpt-5-mini"), openai_client=AsyncOpenAI())
    async with MCPServerStreamableHttp(params={"url": url}, client_session_timeout_seconds=60) as server:
        agent = Agent(name="desk", instructions=policy, mcp_servers=[server], model=model)
        result = await Runner.run(agent, query, max_turns=30)
    return str(result.final_output)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("query")
    given = parser.parse_args()
    set_tracing_disabled(True)
    try:
        print(asyncio.run(answer(given.url, given.policy.read_text(), given.query)))
    except APIError as error:
        print(f"the provider failed: {error}", file=sys.stderr)
        sys.exit(75)


if __name__ == "__main__":
    main()
