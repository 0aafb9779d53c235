"""How fast does `crosswind watch` read spans, and does its memory grow with the log?

    python bench/watch_spans.py write 10000000 > spans.jsonl
    python bench/watch_spans.py measure 10000000

`measure` pipes generated spans into `crosswind watch - --reference 500` and prints, every tenth of the log, the memory
of that process; at its end the peak, its CPU time and the rate. The spans are those of an unchanged agent, without
content: eight tool spans a trace, one OTLP-JSON request per line, with errors, and conversations that interleave.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

TOOLS = ("find_places", "place_details", "list_slots", "travel_time", "request_code", "reserve", "pay", "list_reviews")
EACH = 8  # spans of a trace
INTERLEAVED = 16  # traces that are written at the same time
REFERENCE = 500


def span(trace: int, at: int, tool: str, error: str, length: int) -> str:
    """A span of a tool call as a line of OTLP-JSON."""
    failed = f',{{"key":"error.type","value":{{"stringValue":"{error}"}}}}' if error else ""
    status = 2 if error else 1
    return (
        '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},'
        f'"scopeSpans":[{{"spans":[{{"traceId":"{trace:032x}","spanId":"{trace * EACH + at:016x}",'
        f'"name":"execute_tool {tool}","kind":1,"startTimeUnixNano":"{10**18 + (trace * 60 + at) * 10**9}",'
        f'"endTimeUnixNano":"{10**18 + (trace * 60 + at) * 10**9 + length * 10**6}","attributes":['
        '{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},'
        f'{{"key":"gen_ai.tool.name","value":{{"stringValue":"{tool}"}}}}{failed}],'
        f'"status":{{"code":{status}}}}}]}}]}}]}}\n'
    )


def lines(count: int) -> Iterator[str]:
    """So many spans of an agent that does not change."""
    rng = Random(0)
    trace, written = 0, 0
    while written < count:
        rows = [[span(trace + n, at, *_call(rng)) for at in range(EACH)] for n in range(INTERLEAVED)]
        trace += INTERLEAVED
        for at in range(EACH):
            for row in rows:
                if written < count:
                    yield row[at]
                    written += 1


def _call(rng: Random) -> tuple[str, str, int]:
    drawn = rng.random()
    tool = TOOLS[int(drawn * drawn * len(TOOLS))]
    error = ("not_found", "timeout", "invalid_arguments")[int(rng.random() * 3)] if rng.random() < 0.03 else ""
    return tool, error, 5 + int(rng.random() * 200)


def status(process: int, name: str) -> int:
    """A size in MiB as Linux states it."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:"))) >> 10


def measure(count: int) -> None:
    """Pipe spans into the command and say what it takes."""
    command = [sys.executable, "-m", "crosswind", "watch", "-", "--reference", str(REFERENCE), "--json"]
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    alarms, held, peak = b"", list[str](), 0
    for written, line in enumerate(lines(count), 1):
        held.append(line)
        if len(held) == 4096 or written == count:
            child.stdin.write("".join(held).encode())
            held.clear()
            alarms += child.stdout.read() or b""
        if written % max(count // 10, 1) == 0 and written < count:
            child.stdin.flush()
            peak = max(peak, status(child.pid, "VmHWM"))
            now = status(child.pid, "VmRSS")
            print(f"{written:,} spans: {now} MiB, {time.perf_counter() - begin:.0f} s", flush=True)
    child.stdin.close()
    os.set_blocking(child.stdout.fileno(), True)
    alarms += child.stdout.read() or b""
    _, code, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code)
    cpu = used.ru_utime + used.ru_stime
    print(
        f"{count:,} spans, {count // EACH - REFERENCE:,} episodes watched, {len(alarms.splitlines()):,} alarms: "
        f"{cpu:.0f} s of CPU, {count / cpu:,.0f} spans per CPU second, "
        f"peak {max(peak, used.ru_maxrss >> 10)} MiB, exit {child.returncode}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["write", "measure"])
    parser.add_argument("spans", type=int)
    given = parser.parse_args()
    if given.step == "measure":
        measure(given.spans)
        return
    for line in lines(given.spans):
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
