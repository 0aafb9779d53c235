"""A live MCP server in a stream: a FastMCP server behind `crosswind proxy --stream`, met by FastMCP's own client.

Neither knows of crosswind. In each session a client looks up a customer, lists the open orders, pays the dearest one
and reads its state. One client keeps the names of tools, parameters and keys as it met them first. The other
finds tools in every session by their descriptions, parameters by their places, and values wherever they stand.
Success is what the server's own file says afterwards.

    python bench/live_stream.py --crosswind PYTHON --sessions 40 --out FOLDER

Run it in an environment with fastmcp; PYTHON is that of one with crosswind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

SERVER = '''
import json, os
from fastmcp import FastMCP
from pydantic import BaseModel

class Customer(BaseModel):
    customer_id: str
    name: str
class Order(BaseModel):
    order_id: str
    total: float
    status: str
class Orders(BaseModel):
    orders: list[Order]

PATH = os.environ["SHOP"]
READ = {"readOnlyHint": True}
app = FastMCP("shop")

def rows():
    return json.load(open(PATH))

@app.tool(annotations=READ)
def get_customer(name: str) -> Customer:
    """Get the record of a customer by name."""
    return Customer(customer_id="C" + name[-1], name=name)

@app.tool(annotations=READ)
def search_orders(customer_id: str) -> Orders:
    """Search the orders of a customer."""
    return Orders(orders=[Order(**row) for row in rows()[customer_id]])

@app.tool(annotations=READ)
def get_order(order_id: str) -> Order:
    """Get the record of an order."""
    return next(Order(**row) for some in rows().values() for row in some if row["order_id"] == order_id)

@app.tool
def update_order(order_id: str, status: str) -> Order:
    """Update the status of an order."""
    found = rows()
    row = next(row for some in found.values() for row in some if row["order_id"] == order_id)
    row["status"] = status
    json.dump(found, open(PATH, "w"))
    return Order(**row)

app.run(show_banner=False)
'''
DOCS = {
    "get_customer": r"customer by name",
    "search_orders": r"orders of a customer",
    "get_order": r"record of an order",
    "update_order": r"status of an order",
}


def orders(n: int) -> dict[str, list[dict[str, Any]]]:
    made = [{"order_id": f"O{n}{i}", "total": 10.0 + (i * 7 + n) % 5, "status": "open"} for i in range(3)]
    return {f"C{n % 10}": made}


def values(data: Any) -> list[Any]:
    """Every value in a result, wherever it stands."""
    if isinstance(data, dict):
        return [found for one in data.values() for found in values(one)]
    if isinstance(data, list):
        return [found for one in data for found in values(one)]
    return [data]


def content(result: Any) -> Any:
    text = result.content[0].text if result.content else ""
    try:
        return json.loads(text)
    except ValueError:
        return text


class Reader:
    """Reads everything afresh."""

    def __init__(self, client: Any, tools: list[Any]) -> None:
        self.client, self.tools = client, tools

    async def call(self, what: str, *given: str) -> Any:
        for tool in self.tools:
            if re.search(DOCS[what], tool.description or ""):
                names = list(tool.input_schema["properties"])[: len(given)]
                result = await self.client.call_tool(
                    tool.name, dict(zip(names, given, strict=True)), raise_on_error=False
                )
                if not result.is_error:
                    return content(result)
        raise LookupError(what)

    async def work(self, name: str) -> None:
        customer = next(v for v in values(await self.call("get_customer", name)) if re.fullmatch(r"C\d", str(v)))
        flat = values(await self.call("search_orders", customer))
        ids = [v for v in flat if re.fullmatch(r"O\d+", str(v))]
        totals = [v for v in flat if isinstance(v, float | int) and not isinstance(v, bool)]
        dearest = max(zip(totals, ids, strict=True))[1]
        await self.call("update_order", dearest, "paid")
        await self.call("get_order", dearest)


class Keeper:
    """Goes by what it met first."""

    def __init__(self, client: Any, tools: list[Any]) -> None:
        self.client = client

    async def call(self, tool: str, **args: str) -> Any:
        result = await self.client.call_tool(tool, args, raise_on_error=False)
        if result.is_error:
            raise LookupError(tool)
        return content(result)

    async def work(self, name: str) -> None:
        customer = (await self.call("get_customer", name=name))["customer_id"]
        found = (await self.call("search_orders", customer_id=customer))["orders"]
        dearest = max((row["total"], row["order_id"]) for row in found)[1]
        await self.call("update_order", order_id=dearest, status="paid")
        await self.call("get_order", order_id=dearest)


async def session(args: argparse.Namespace, folder: Path, n: int, agent: type) -> tuple[bool, str]:
    """One session; did it end as it should, and how not?"""
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    shop = folder / "shop.json"
    shop.write_text(json.dumps(orders(n)))
    server = folder / "server.py"
    server.write_text(SERVER)
    flags = ["proxy", "--stream", args.stream, "--seed", str(args.seed), "--log", str(folder / "log"), "--"]
    command = ["-m", "crosswind", *flags, sys.executable, str(server)]
    env = {**os.environ, "SHOP": str(shop)}
    why = ""
    with (folder / "stderr").open("a") as errors:
        transport = StdioTransport(args.crosswind, command, env=env, log_file=errors, keep_alive=False)
        async with Client(transport) as client:
            tools = await client.list_tools()
            try:
                await agent(client, tools).work(f"Customer {n % 10}")
            except Exception as error:
                why = f"{type(error).__name__}: {error}"[:100]
    found = json.loads(shop.read_text())
    best = max((row["total"], row["order_id"]) for row in orders(n)[f"C{n % 10}"])[1]
    paid = [row["order_id"] for rows in found.values() for row in rows if row["status"] == "paid"]
    return paid == [best] and not why, why


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crosswind", required=True)
    parser.add_argument("--stream", default="evolving")
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    for agent in (Reader, Keeper):
        folder = args.out / agent.__name__.lower()
        folder.mkdir(parents=True)
        ends: list[tuple[bool, str]] = [await session(args, folder, n, agent) for n in range(args.sessions)]
        records = [json.loads(line) for line in (folder / "log" / "episodes.jsonl").read_text().splitlines()]
        by = defaultdict(list)
        for record, (passed, why) in zip(records, ends, strict=True):
            by[record["condition"]].append((passed, why))
        for release, found in sorted(by.items()):
            reasons = "; ".join(sorted({why for _, why in found if why}))
            print(f"| {agent.__name__} | {release} | {sum(p for p, _ in found)} of {len(found)} | {reasons} |")


if __name__ == "__main__":
    asyncio.run(main())
