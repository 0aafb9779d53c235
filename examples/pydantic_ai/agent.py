"""An agent made with pydantic-ai, its tools from an MCP server. Nothing here knows of crosswind.

    python agent.py --url http://127.0.0.1:8000/mcp --policy policy.txt "the request"

The model is at OPENAI_BASE_URL (OpenAI's own unless set), its name in MODEL. The answer is printed. Exit code 75 says
that the provider failed, not the agent.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel


async def answer(url: str, policy: str, query: str) -> str:
    model = OpenAIChatModel(os.environ.get("MODEL", "gpt-5-mini"))
    agent = Agent(model, instructions=policy, toolsets=[MCPToolset(url)], retries=3)
    async with agent:
        return str((await agent.run(query)).output)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("query")
    given = parser.parse_args()
    try:
        print(asyncio.run(answer(given.url, given.policy.read_text(), given.query)))
    except ModelAPIError as error:
        print(f"the provider failed: {error}", file=sys.stderr)
        sys.exit(75)


if __name__ == "__main__":
    main()
