"""Many OpenEnv sessions at a time on one server: latency of a step, memory, errors.

python bench/frameworks/openenv_sessions.py --sessions 1000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect


async def ask(socket: Any, message: dict[str, Any]) -> tuple[dict[str, Any], float]:
    began = time.perf_counter()
    await socket.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(await socket.recv())
    return answer, time.perf_counter() - began


async def client(url: str, number: int, steps: int, start: asyncio.Event) -> list[float]:
    async with connect(url, max_size=None, ping_interval=None, open_timeout=120) as socket:
        await ask(socket, {"type": "reset", "data": {"domain": "poi", "seed": number % 50}})
        await start.wait()
        times = []
        for step in range(steps):
            call = {"id": str(step), "tool": "find_places", "args": {"city": "Nowhere", "category": "museum"}}
            answer, seconds = await ask(socket, {"type": "step", "data": {"calls": [call]}})
            assert answer["type"] == "observation", answer
            times.append(seconds)
        return times


async def measure(url: str, sessions: int, steps: int) -> None:
    start = asyncio.Event()
    began = time.perf_counter()
    clients = [asyncio.ensure_future(client(url, n, steps, start)) for n in range(sessions)]
    await asyncio.sleep(0)
    await asyncio.sleep(max(2.0, sessions / 100))
    start.set()
    times = sorted(seconds for found in await asyncio.gather(*clients) for seconds in found)
    median, late = times[len(times) // 2], times[int(0.99 * len(times))]
    print(
        f"{sessions} sessions, {len(times)} steps in {time.perf_counter() - began:.1f} s with the resets; a step takes "
        f"{1000 * median:.0f} ms (median), {1000 * late:.0f} ms (99 %)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=3)
    asked = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    command = [sys.executable, "-m", "crosswind", "serve", "openenv", "--port", "0", "--sessions", str(asked.sessions)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = next(word for word in server.stdout.readline().split() if word.startswith("ws://")).rstrip(";")
        asyncio.run(measure(url, asked.sessions, asked.steps))
        status = Path(f"/proc/{server.pid}/status").read_text()
        peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
        print(f"memory of the server at its peak: {int(peak) / 1024:.0f} MiB")
        server.terminate()


if __name__ == "__main__":
    main()
