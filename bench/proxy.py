"""What a proxy adds to a call: a server directly, behind `crosswind proxy`, and behind FastMCP's proxy, in one run.

All paths are open at the same time and take turns, some calls each, so that whatever else the machine does meets them
alike. The client writes and reads lines itself and adds nothing of its own. Reported are medians, 95th percentiles,
and the medians of the differences between a round of a path and the direct round beside it.

    python bench/proxy.py --server "mcp-server-time --local-timezone UTC" --fastmcp path/to/python --out proxy.json

`--fastmcp` is the Python of an environment with fastmcp; without it that path is left out.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CALL = ("convert_time", {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"})
STACK = ("semantic_rename:5", "parameter_rename:5", "key_rename:5", "envelope:3", "schema_noise:3")
FASTMCP = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
create_proxy(StdioTransport(command=sys.argv[1], args=sys.argv[2:], keep_alive=True), name="p").run(
    transport="stdio", show_banner=False)
"""


class Route:
    """One way to the server, as a client uses it."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name, began = name, time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.count = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = self.ask("tools/list", {})["result"]["tools"]
        self.start = time.perf_counter() - began
        self.params = self.translated(tools)
        self.times: list[list[float]] = []

    def translated(self, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """The call as this path wants it: the same tool and parameters, by their places."""
        wanted = next((t for t in tools if t["name"] == CALL[0]), None)
        wanted = wanted or next(t for t in tools if len(t["inputSchema"].get("required", ())) == len(CALL[1]))
        names = wanted["inputSchema"]["required"]
        return {"name": wanted["name"], "arguments": dict(zip(names, CALL[1].values(), strict=True))}

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout
        self.count += 1
        self.write({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        while line := self.process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self.count and "method" not in message:
                return message
        raise SystemExit(f"{self.name} ended")

    def round(self, calls: int) -> None:
        times = []
        for _ in range(calls):
            began = time.perf_counter()
            answer = self.ask("tools/call", self.params)
            times.append((time.perf_counter() - began) * 1000)
            assert not answer["result"].get("isError"), answer
        self.times.append(times)

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="starts mcp-server-time")
    parser.add_argument(
        "--proxy", default=f"{sys.executable} -m crosswind.cli.app proxy", help="starts crosswind's proxy"
    )
    parser.add_argument("--fastmcp", default="", metavar="PYTHON", help="of an environment with fastmcp")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=10, help="of each path in a round")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    server, proxy = shlex.split(args.server), shlex.split(args.proxy)
    flags = [part for kind in STACK for part in ("--perturb", kind)]
    commands = {
        "direct": server,
        "crosswind, nothing laid over": [*proxy, "--", *server],
        "crosswind, five kinds": [*proxy, *flags, "--", *server],
    }
    if args.fastmcp:
        commands["FastMCP's proxy"] = [args.fastmcp, "-c", FASTMCP, *server]
    paths = [Route(name, command) for name, command in commands.items()]
    for path in paths:
        path.round(20)
        path.times.clear()
    for n in range(args.rounds):
        for path in paths[n % len(paths) :] + paths[: n % len(paths)]:
            path.round(args.calls)
    found: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine(), "paths": {}}
    direct = [statistics.median(times) for times in paths[0].times]
    print(f"{'path':32} {'start s':>8} {'median ms':>10} {'p95 ms':>8} {'added ms':>9}")
    for path in paths:
        every = sorted(t for times in path.times for t in times)
        added = statistics.median(statistics.median(t) - d for t, d in zip(path.times, direct, strict=True))
        row = {
            "start_s": round(path.start, 2),
            "median_ms": round(statistics.median(every), 3),
            "p95_ms": round(every[int(0.95 * len(every))], 3),
            "added_ms": round(added, 3),
            "calls": len(every),
        }
        found["paths"][path.name] = row
        print(f"{path.name:32} {row['start_s']:8} {row['median_ms']:10} {row['p95_ms']:8} {row['added_ms']:9}")
        path.end()
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
