"""A small MCP server over pipes, of either era and with every fault a proxy must bear; standard library only.

Run it as a process (`python fake_mcp.py [--fault NAME]`), or ask `Shop` for answers directly.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

Json = dict[str, Any]
CUSTOMER = {"type": "object", "properties": {"customer_id": {"type": "string"}}, "required": ["customer_id"]}
ROW = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "total": {"type": "number"},
        "date": {"type": "string", "format": "date"},
        "status": {"type": "string"},
    },
    "required": ["order_id", "total", "date", "status"],
    "additionalProperties": False,
}
TOOLS: list[Json] = [
    {
        "name": "search_orders",
        "title": "Search Orders",
        "description": "Search orders of a customer; get_customer tells who that is.",
        "inputSchema": {
            "type": "object",
            "title": "search_ordersArguments",
            "properties": {
                "customer_id": {"type": "string", "title": "Customer Id"},
                "status": {"type": "string", "enum": ["open", "paid"], "title": "Status"},
                "limit": {"type": "integer", "minimum": 1, "title": "Limit"},
            },
            "required": ["customer_id"],
        },
        "outputSchema": {
            "type": "object",
            "title": "search_ordersOutput",
            "properties": {"result": {"type": "array", "items": ROW}},
            "required": ["result"],
        },
        "annotations": {"title": "Search Orders", "readOnlyHint": True},
    },
    {
        "name": "get_customer",
        "description": "Get the record of a customer.",
        "inputSchema": CUSTOMER,
        "outputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "city": {"type": "string"}, "balance": {"type": "number"}},
            "required": ["name", "city", "balance"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "create_order",
        "description": "Create an order.",
        "inputSchema": {
            "type": "object",
            "properties": {"customer_id": {"type": "string"}, "item": {"type": "string"}},
            "required": ["customer_id", "item"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"order_id": {"type": "string"}, "total": {"type": "number"}},
            "required": ["order_id", "total"],
        },
    },
]
MORE: list[Json] = [
    {
        "name": "read_note",
        "description": "Read a note, as it was written. {braces} stay.",
        "inputSchema": {
            "type": "object",
            "properties": {"note_name": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        },
        "annotations": {"readOnlyHint": True},
    },
    {"name": "see_picture", "description": "A picture.", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "slow_call", "description": "Takes long.", "inputSchema": {"type": "object", "properties": {}}},
]
META = "io.modelcontextprotocol/"


class Shop:
    """The server's answers to requests, and what it was asked."""

    def __init__(self, tools: list[Json] | None = None) -> None:
        self.tools = [*TOOLS, *MORE] if tools is None else tools
        self.calls: list[Json] = []
        self.made = 0

    def answer(self, message: Json) -> Json | None:
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message or method is None:
            return None
        modern = f"{META}protocolVersion" in (params.get("_meta") or {})
        value: Json | None = None
        if method == "initialize":
            value = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": False}, "prompts": {}},
                "serverInfo": {"name": "shop", "version": "1"},
                "instructions": "Be kind.",
            }
        elif method == "server/discover":
            value = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "instructions": "Be kind."}
        elif method == "tools/list":
            value = self._page(params.get("cursor"))
        elif method == "tools/call":
            value = self._call(params)
        elif method in ("prompts/list", "ping"):
            value = {"prompts": []} if method == "prompts/list" else {}
        if value is None:
            text = f"no tool {params.get('name')!r}" if method == "tools/call" else f"no method {method}"
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": text}}
        if modern:
            value = {"resultType": "complete", **value}
        return {"jsonrpc": "2.0", "id": message["id"], "result": value}

    def _page(self, cursor: str | None) -> Json:
        """Two tools a page."""
        start = int(cursor or 0)
        page: Json = {"tools": self.tools[start : start + 2]}
        return page | ({"nextCursor": str(start + 2)} if start + 2 < len(self.tools) else {})

    def _call(self, params: Json) -> Json | None:
        name, args = params.get("name"), params.get("arguments") or {}
        self.calls.append({"name": name, "arguments": args})
        if name not in {tool["name"] for tool in self.tools}:
            return None
        if name == "search_orders":
            if args.get("limit", 1) > 100:
                return _error("1 error for search_orders\nlimit\n  Too large")
            rows = [
                {"order_id": f"O{n}", "total": 1000.5 + n, "date": f"2030-01-0{n}", "status": "open"} for n in (1, 2, 3)
            ]
            blocks = [{"type": "text", "text": json.dumps(row)} for row in rows]
            return {"content": blocks, "structuredContent": {"result": rows}, "isError": False}
        if name == "get_customer":
            if not args.get("customer_id"):
                return _error("Error executing tool get_customer: Field required")
            return _structured({"name": f"Customer {args['customer_id']}", "city": "Ulm", "balance": 1250.75})
        if name == "create_order":
            self.made += 1
            return _structured({"order_id": f"O{100 + self.made}", "total": 12.5})
        if name == "see_picture":
            return {
                "content": [{"type": "text", "text": "A tree."}, {"type": "image", "data": "QUJD", "mimeType": "x/y"}]
            }
        return {"content": [{"type": "text", "text": f'Note {args.get("note_name")}: {{"a"'}]}


def _structured(value: Json) -> Json:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def _error(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def main() -> None:
    fault = sys.argv[sys.argv.index("--fault") + 1] if "--fault" in sys.argv else ""
    shop = Shop()
    if fault == "no start":
        sys.exit(7)
    if fault == "child":  # something that would outlive us, were it not for the group
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(f"child {child.pid}", file=sys.stderr, flush=True)
    if fault == "deaf":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if fault == "noise":
        print("Starting the server, hello!", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        method, name = message.get("method"), (message.get("params") or {}).get("name")
        if method == "tools/list" and fault in ("lies", "endless", "mute list"):
            value: Json = {"tools": "none"} if fault == "lies" else {"tools": [], "nextCursor": "again"}
            if fault != "mute list":
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}), flush=True)
            continue
        if method == "tools/call":
            if fault == "dies":
                os._exit(9)
            if fault == "huge":
                print('{"jsonrpc":"2.0","id":1,"result":"' + "x" * (17 * 2**20) + '"}', flush=True)
            if fault == "no end":  # of a line, ever
                while True:
                    sys.stdout.write("x" * 2**16)
            if fault == "flood":
                for _ in range(3000):
                    print("this is no message", flush=True)
            if fault == "noise":
                print("working...", flush=True)
            if name == "slow_call":
                time.sleep(0.2 if fault == "" else 30)
        answer = shop.answer(message)
        if answer is not None:
            print(json.dumps(answer), flush=True)
    if fault in ("deaf", "child"):
        time.sleep(60)


if __name__ == "__main__":
    main()
