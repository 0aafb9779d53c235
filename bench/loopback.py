"""A real OpenAI-compatible server evaluated through `openai:`: llama.cpp's, in another process, on loopback.

    python bench/loopback.py [--suite quick] [--limit 4] [--tokens 64]

The server is the one inside xllamacpp, with the weights of the embedded agent and a key of its own. It is driven as a
user would: `crosswind doctor SPEC`, then `crosswind run SUITE --agent SPEC`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = "smollm2-135m"


def serve() -> None:
    """The child: a server that lives until its input ends."""
    from crosswind.models import weights
    from crosswind.models.embedded import serve as start

    path = weights.fetch()
    server = start(str(path), 4096, slots=2, key=os.environ["CROSSWIND_API_KEY"], alias=MODEL)
    print(server.listening_address, flush=True)
    sys.stdin.read()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--suite", default="quick")
    options.add_argument("--limit", default="4")
    options.add_argument("--tokens", default="64", help="of one reply")
    given = options.parse_args()
    if given.serve:
        serve()
        return
    env = os.environ | {"CROSSWIND_API_KEY": f"loopback-{secrets.token_hex(8)}"}
    child = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    )
    assert child.stdin is not None
    assert child.stdout is not None
    crosswind = [sys.executable, "-m", "crosswind.cli.app"]
    try:
        spec = f"openai:{MODEL}@{child.stdout.readline().strip()}/v1"
        print(f"$ crosswind doctor {spec}", flush=True)
        subprocess.run([*crosswind, "doctor", spec], env=env, check=True)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            command = ["run", given.suite, "--agent", spec, "--limit", given.limit, "--reply-tokens", given.tokens]
            print(f"$ crosswind {' '.join(command)}", flush=True)
            began = time.perf_counter()
            subprocess.run([*crosswind, *command, "--out", str(out)], env=env, check=True)
            seconds = time.perf_counter() - began
            lines = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
            stored = "".join(f.read_text() for f in out.rglob("*") if f.is_file())
            assert env["CROSSWIND_API_KEY"] not in stored, "the key is in a file of the run"
        outcomes = {o: sum(line["outcome"] == o for line in lines) for o in ("pass", "fail", "error")}
        tokens = sum(line["usage"]["input_tokens"] + line["usage"]["output_tokens"] for line in lines)
        print(f"{len(lines)} episodes in {seconds:.0f} s, {tokens} tokens: {outcomes}")
    finally:
        child.stdin.close()
        child.wait(30)


if __name__ == "__main__":
    main()
