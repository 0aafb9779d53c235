"""An agent made with LangGraph, its tools from an MCP server. Nothing here knows of crosswind.

    python agent.py --url http://127.0.0.1:8000/mcp --policy policy.txt "the request"

The model is at OPENAI_BASE_URL (OpenAI's own unless set), its name in MODEL. The answer is printed. Exit code 75 says
that the provider failed, not the agent.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from openai import APIError


async def answer(url: str, policy: str, query: str) -> str:
    client = MultiServerMCPClient({"tools": {"transport": "streamable_http", "url": url}})
    tools = await client.get_tools()
    for tool in tools:
        tool.handle_tool_error = True  # a model can read what went wrong
    agent = create_agent(ChatOpenAI(model=os.environ.get("MODEL", "gpt-5-mini")), tools, system_prompt=policy)
    result = await agent.ainvoke({"messages": [{"role": "user", "content": query}]}, {"recursion_limit": 80})
    return str(result["messages"][-1].text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("query")
    given = parser.parse_args()
    try:
        print(asyncio.run(answer(given.url, given.policy.read_text(), given.query)))
    except APIError as error:
        print(f"the provider failed: {error}", file=sys.stderr)
        sys.exit(75)


if __name__ == "__main__":
    main()
