"""Two versions of crosswind side by side: draws, calls, demonstrations, start of the command line, proxy latency.

    git worktree add ../old COMMIT
    python bench/against.py ../old/src src --rounds 7 --json against.json

Versions take turns within every round, so whatever else the machine does meets both alike. Each figure is the second
version's rate divided by the first's in the same round: above 1 is faster. Reported are the median, the least and the
greatest over the rounds. Workers measure the processor's time; the start and the proxy measure the clock's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parent.parent / "tests" / "fake_mcp.py"
STACK = ("semantic_rename:5", "parameter_rename:5", "key_rename:5", "envelope:3")
IMPORTS = """
import json, sys, time
try:
    from crosswind.core.draw import draw
    from crosswind.core.registry import domains
    from crosswind.core.session import Session
    session_of = Session.of
except ImportError:  # before the package had rooms
    from crosswind.recipe import draw
    from crosswind.registry import domains
    from crosswind.session import Session
    session_of = Session
begin = getattr(Session, "of", Session)  # before sessions had toolboxes
KINDS = ["underspecified", "paged_results", "transient_error", "semantic_rename", "format_switch"]
def drawn(count):
    out = []
    for name in ("poi", "medical", "retail", "workspace", "banking", "operations"):
        domain = domains[name]
        families = sorted(domain.families)
        for n in range(count):
            task = domain.task(families[n % len(families)], n)
            out.append(draw(domain, task, KINDS, n, strict=False))
    return out
drawn(2)
"""
DRAWS = IMPORTS + "began = time.process_time(); n = len(drawn(40)); print(n / (time.process_time() - began))"
CALLS = (
    IMPORTS
    + """
made = drawn(10)
sessions = []
for one in made * 4:
    certificate = one.certificate
    calls = [s.call for s in certificate.gold.steps if s.call.tool not in ("ask_user", "say")]
    sessions.append((begin(one.domain, certificate.task, certificate.layers), calls))
n = sum(len(calls) for _, calls in sessions)
began = time.process_time()
for session, calls in sessions:
    for call in calls:
        session.call(call)
print(n / (time.process_time() - began))
"""
)


def environment(src: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(src), "PYTHONHASHSEED": "0"}


def worker(src: Path, code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], env=environment(src), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return float(done.stdout)


def seconds(src: Path, *args: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "crosswind", *args], env=environment(src), capture_output=True, check=True)
    return time.perf_counter() - began


def demonstrations(src: Path) -> float:
    took = seconds(src, "data", "--count", "150", "--domain", "poi", "--domain", "medical", "--out", "-")
    return 150 / took


class Proxied:
    """A proxy under way before a small server, as a client uses it."""

    def __init__(self, src: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "crosswind", "proxy", *flags, "--", sys.executable, str(SERVER)]
        self.process = subprocess.Popen(
            command, env=environment(src), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.count = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        shown = self.ask("tools/list", {})["result"]["tools"]
        tool = next(t for t in shown if len(t["inputSchema"].get("required", ())) == 1 and "outputSchema" in t)
        self.call = {"name": tool["name"], "arguments": {tool["inputSchema"]["required"][0]: "C-1"}}

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        self.write({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self.count:
                return message
        sys.exit("the proxy ended")

    def rate(self, calls: int = 60) -> float:
        """Calls a second, one after the other."""
        began = time.perf_counter()
        for _ in range(calls):
            self.ask("tools/call", self.call)
        return calls / (time.perf_counter() - began)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="the src folder of one version")
    parser.add_argument("second", type=Path, help="the src folder of the other")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every round's figures there")
    options = parser.parse_args()
    both = (options.first.resolve(), options.second.resolve())
    flags = [word for kind in STACK for word in ("--perturb", kind)]
    clean, laid = [Proxied(src) for src in both], [Proxied(src, *flags) for src in both]
    figures: dict[str, list[tuple[float, float]]] = {}
    for n in range(options.rounds):
        order = (0, 1) if n % 2 == 0 else (1, 0)
        found: dict[str, dict[int, float]] = {}
        for i in order:
            found.setdefault("draws/s", {})[i] = worker(both[i], DRAWS)
            found.setdefault("calls/s", {})[i] = worker(both[i], CALLS)
            found.setdefault("demonstrations/s", {})[i] = demonstrations(both[i])
            found.setdefault("starts of --help/s", {})[i] = 1 / seconds(both[i], "--help")
            found.setdefault("proxy, clean, calls/s", {})[i] = clean[i].rate()
            found.setdefault("proxy, four layers, calls/s", {})[i] = laid[i].rate()
        for name, at in found.items():
            figures.setdefault(name, []).append((at[0], at[1]))
        print(f"round {n + 1} of {options.rounds}", file=sys.stderr, flush=True)
    for proxied in (*clean, *laid):
        proxied.close()
    print("| what | first | second | second / first | least | greatest |\n|---|---|---|---|---|---|")
    for name, pairs in figures.items():
        ratios = [b / a for a, b in pairs]
        first, second = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        ends = f"{min(ratios):.2f} | {max(ratios):.2f}"
        print(f"| {name} | {first:,.1f} | {second:,.1f} | **{statistics.median(ratios):.2f}** | {ends} |")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
