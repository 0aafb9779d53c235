"""What a proxy adds to a call: a server directly, behind `crosswind proxy`, and behind FastMCP's proxy, in one run.

All paths are open at the same time and take turns, some calls each, so that whatever else the machine does meets them
alike. The client writes and reads lines itself and adds nothing of its own. Reported are medians, 10th and 95th
percentiles, and the medians of the differences between a round of a path and the direct round next to it. Where the
machine is busy with other things, the 10th percentile is the one to compare.

    python bench/proxy.py --server "mcp-server-time --local-timezone UTC" --fastmcp path/to/python --out proxy.json
    python bench/proxy.py --server "mcp-server-time --local-timezone UTC" --base path/to/other/src

`--fastmcp` is the Python of an environment with fastmcp; without it that path is left out. With `--base` the proxy of
another version is measured beside this one, over pipes, over HTTP (`--http`) and in front of a server behind a URL.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import re
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


class HttpRoute(Route):
    """The way through a proxy that listens; one connection is kept."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.proxy, self.port = listening(command)
        self.line = http.client.HTTPConnection("127.0.0.1", self.port)
        self.session = ""
        self.heard: dict[str, Any] = {}
        super().__init__(name, ["cat"])

    def write(self, message: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"Authorization": "Bearer bench", **({"Mcp-Session-Id": self.session} if self.session else {})}
        self.line.request("POST", "/mcp", json.dumps(message).encode(), headers)
        answer = self.line.getresponse()
        self.session = answer.headers.get("Mcp-Session-Id") or self.session
        self.heard = json.loads(answer.read() or b"{}")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        self.write({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        return self.heard

    def end(self) -> None:
        super().end()
        self.line.close()
        stop(self.proxy)


def listening(command: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """A proxy that listens, and its port."""
    env = {**os.environ, "CROSSWIND_PROXY_TOKEN": "bench"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=env)
    assert process.stderr
    for line in process.stderr:
        if found := re.search(rb"127\.0\.0\.1:(\d+)/mcp", line):
            return process, int(found[1])
    raise SystemExit(f"{command} does not listen")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(10)
    assert process.stderr
    process.stderr.close()


def versions(proxy: list[str], base: str, server: list[str], url: str) -> list[Route]:
    """The paths through this version and another one."""
    mine = str(Path(__file__).resolve().parents[1] / "src")
    paths = []
    for name, source in (("base", base), ("this", mine)):
        run = ["env", f"PYTHONPATH={source}", "CROSSWIND_SERVER_TOKEN=bench", *proxy]
        paths.append(Route(f"{name}, pipes", [*run, "--", *server]))
        paths.append(HttpRoute(f"{name}, --http", [*run, "--http", "0", "--", *server]))
        paths.append(Route(f"{name}, --url", [*run, "--url", url]))
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="starts mcp-server-time")
    parser.add_argument(
        "--proxy", default=f"{sys.executable} -m crosswind.cli.app proxy", help="starts crosswind's proxy"
    )
    parser.add_argument("--fastmcp", default="", metavar="PYTHON", help="of an environment with fastmcp")
    parser.add_argument("--base", default="", metavar="SRC", help="the folder src of another version")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=10, help="of each path in a round")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    server, proxy = shlex.split(args.server), shlex.split(args.proxy)
    flags = [part for kind in STACK for part in ("--perturb", kind)]
    commands = {
        "direct": server,
        "crosswind, nothing applied": [*proxy, "--", *server],
        "crosswind, five kinds": [*proxy, *flags, "--", *server],
    }
    if args.fastmcp:
        commands["FastMCP's proxy"] = [args.fastmcp, "-c", FASTMCP, *server]
    elsewhere = None
    if args.base:
        run = ["env", f"PYTHONPATH={args.base}", *proxy]
        elsewhere, port = listening([*run, "--http", "0", "--", *server])  # a server behind a URL, the same for both
        url = f"http://127.0.0.1:{port}/mcp"
        paths = [Route("direct", server), *versions(proxy, args.base, server, url)]
    else:
        paths = [Route(name, command) for name, command in commands.items()]
    for path in paths:
        path.round(20)
        path.times.clear()
    for n in range(args.rounds):
        for path in paths[n % len(paths) :] + paths[: n % len(paths)]:
            path.round(args.calls)
    found: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine(), "paths": {}}
    direct = [statistics.median(times) for times in paths[0].times]
    print(f"{'path':32} {'start s':>8} {'p10 ms':>8} {'median ms':>10} {'p95 ms':>8} {'added ms':>9}")
    for path in paths:
        every = sorted(t for times in path.times for t in times)
        added = statistics.median(statistics.median(t) - d for t, d in zip(path.times, direct, strict=True))
        row = {
            "start_s": round(path.start, 2),
            "p10_ms": round(every[int(0.1 * len(every))], 3),
            "median_ms": round(statistics.median(every), 3),
            "p95_ms": round(every[int(0.95 * len(every))], 3),
            "added_ms": round(added, 3),
            "calls": len(every),
        }
        found["paths"][path.name] = row
        times = f"{row['p10_ms']:8} {row['median_ms']:10} {row['p95_ms']:8} {row['added_ms']:9}"
        print(f"{path.name:32} {row['start_s']:8} {times}")
        path.end()
    if elsewhere is not None:
        stop(elsewhere)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
