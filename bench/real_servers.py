"""Put real MCP servers behind the proxy, drive them with a real client, and compare every call with the direct one.

Each stack of random kinds is applied to a server by `crosswind proxy`. Calls with seeded arguments go to a server of
its own directly, and through the way round the stack to a twin behind the proxy; results must be the same once
translated back, and so must the words of errors. Counted besides: names that a stack hides and that show nevertheless,
in lists of tools, contents, structured contents or errors (a plain word where it is in quotes or said to be a
parameter or a tool), results that the client's validation against the listed schema refuses, and stacks that differ
from what the same seed gave before.

The client is the MCP SDK of the environment this runs in (1.x or 2.x), the servers are commands:

    python bench/real_servers.py --calls 1000 --out real.json \\
        --time "mcp-server-time --local-timezone UTC" --git mcp-server-git \\
        --filesystem "npx -y @modelcontextprotocol/server-filesystem"

Servers work in scratch folders only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

from crosswind.core.draw import Drawn
from crosswind.core.flow import adrive, chain
from crosswind.core.oracle import workarounds
from crosswind.core.perturbation import dump_layers
from crosswind.core.session import Session
from crosswind.core.types import ToolCall, ToolError, ToolResult
from crosswind.mcp import live
from crosswind.mcp import tools as forms
from crosswind.mcp.listing import parameter_names
from crosswind.mcp.tools import SERVER

RETRIES = 6
ATTEMPTS = 20  # at a stack of which something lies
ZONES = ("UTC", "Europe/London", "Asia/Tokyo", "America/New_York", "Australia/Sydney", "Mars/Olympus")
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath")
# kinds that only rename or reshape: every single call must be answered as the direct one
MAPS = {
    *("semantic_rename", "identity_erasure", "name_noise", "parameter_rename", "parameter_format", "schema_noise"),
    *("key_rename", "envelope", "format_switch", "locale_format", "foreign_interface", "description_rewrite"),
    *("distractor_tools", "lookalike_tools", "semantic_trap"),
}
Make = Callable[[Random, Path], ToolCall]


# ---------------------------------------------------------------- a real client, of whichever era the SDK has


@contextlib.asynccontextmanager
async def client(command: list[str], env: dict[str, str]) -> AsyncIterator[Any]:
    """`listing()` and `call(name, args)` of an SDK client, both as JSON."""
    import mcp

    parameters = mcp.StdioServerParameters(command=command[0], args=command[1:], env=env)
    if hasattr(mcp, "Client"):
        async with mcp.Client(parameters) as modern:
            yield _Client(modern.list_tools, modern.call_tool)
        return
    from mcp.client.stdio import stdio_client

    async with stdio_client(parameters) as (reader, writer), mcp.ClientSession(reader, writer) as session:
        await session.initialize()
        yield _Client(session.list_tools, session.call_tool)


class _Client:
    def __init__(self, list_tools: Any, call_tool: Any) -> None:
        self.list_tools, self.call_tool = list_tools, call_tool

    async def listing(self) -> list[dict[str, Any]]:
        listed = await self.list_tools()
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]

    async def call(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        result = await self.call_tool(name, args)
        return dict(result.model_dump(mode="json", by_alias=True, exclude_none=True))


def as_result(raw: dict[str, Any]) -> ToolResult:
    """What the client got, as the way round reads it."""
    result = forms.result_of(raw, None)
    if result.error is not None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(result.error.text)
            return ToolResult(None, ToolError(told["error"], told["message"], told["error"] == "unavailable"))
        return ToolResult(None, ToolError(SERVER, result.error.text))
    content = result.content
    if isinstance(content, dict) and list(content) == ["result"] and not isinstance(content["result"], dict):
        content = content["result"]
    return ToolResult(content)


# ---------------------------------------------------------------- calls


def time_call(rng: Random, _: Path) -> ToolCall:
    if rng.random() < 0.3:
        return ToolCall("get_current_time", {"timezone": rng.choice(ZONES)})
    args = {"source_timezone": rng.choice(ZONES), "target_timezone": rng.choice(ZONES)}
    return ToolCall("convert_time", {**args, "time": f"{rng.randrange(25):02}:{rng.randrange(60):02}"})


def git_call(rng: Random, root: Path) -> ToolCall:
    repo = {"repo_path": str(root)}
    word = rng.choice(WORDS)
    tool = rng.choice(
        ["git_status", "git_diff_unstaged", "git_diff_staged", "git_diff", "git_log", "git_show", "git_branch"] * 2
        + ["git_add", "git_commit", "git_reset", "git_create_branch", "git_checkout"]
    )
    known: dict[str, dict[str, Any]] = {
        "git_diff": {"target": rng.choice(("HEAD", "HEAD~1", "nowhere"))},
        "git_log": {"max_count": rng.randint(1, 5)},
        "git_show": {"revision": rng.choice(("HEAD", "HEAD~1", "nowhere"))},
        "git_branch": {"branch_type": rng.choice(("local", "all"))},
        "git_add": {"files": [f"{word}.txt"]},
        "git_commit": {"message": f"Add {word}"},
        "git_create_branch": {"branch_name": f"{word}-{rng.randrange(100)}"},
        "git_checkout": {"branch_name": rng.choice(("main", word))},
    }
    (root / f"{word}.txt").write_text(f"{rng.random()}\n")  # something to be done
    return ToolCall(tool, {**repo, **known.get(tool, {})})


def file_call(rng: Random, root: Path) -> ToolCall:
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    path = str(root / f"{word}.txt")
    calls: list[ToolCall] = [
        ToolCall("read_text_file", {"path": path}),
        ToolCall("read_text_file", {"path": path, "head": rng.randint(1, 3)}),
        ToolCall("read_text_file", {"path": path, "head": 1, "tail": 1}),  # an error that names both
        ToolCall("read_file", {"path": path}),
        ToolCall("read_multiple_files", {"paths": [path, str(root / f"{other}.txt")]}),
        ToolCall("write_file", {"path": path, "content": f"{word}\n{rng.randrange(10**6)}\n"}),
        ToolCall("edit_file", {"path": path, "edits": [{"oldText": word, "newText": other}], "dryRun": True}),
        ToolCall("create_directory", {"path": str(root / f"dir-{other}")}),
        ToolCall("list_directory", {"path": str(root)}),
        ToolCall("list_directory_with_sizes", {"path": str(root), "sortBy": rng.choice(("name", "size"))}),
        ToolCall("directory_tree", {"path": str(root)}),
        ToolCall("move_file", {"source": path, "destination": str(root / f"{other}.txt")}),
        ToolCall("search_files", {"path": str(root), "pattern": f"*{word}*"}),
        ToolCall("get_file_info", {"path": path}),
        ToolCall("list_allowed_directories", {}),
    ]
    return rng.choice(calls)


def time_world(root: Path) -> None:
    root.mkdir(parents=True)


def git_world(root: Path) -> None:
    root.mkdir(parents=True)
    for word in WORDS:
        (root / f"{word}.txt").write_text(f"{word}\n")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for key, value in (("user.name", "t"), ("user.email", "t@example.org")):
        subprocess.run([*git, "config", key, value], check=True)
    for n in range(3):
        (root / "count.txt").write_text(f"{n}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"Count {n}"], check=True, env={**os.environ, **STEADY})


def file_world(root: Path) -> None:
    root.mkdir(parents=True)
    for word in WORDS[:5]:
        (root / f"{word}.txt").write_text(f"{word}\none\ntwo\nthree\n")


STEADY = {"GIT_AUTHOR_DATE": "2030-01-01 00:00:00 +0000", "GIT_COMMITTER_DATE": "2030-01-01 00:00:00 +0000"}
SERVERS: dict[str, tuple[Make, Callable[[Path], None]]] = {
    "time": (time_call, time_world),
    "git": (git_call, git_world),
    "filesystem": (file_call, file_world),
}
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+Z-]+|[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} [^\n\"]*| at 0x[0-9a-f]+")


def comparable(result: ToolResult, root: Path) -> str:
    """A result without what differs between two twins: their folder, the time of day, where objects are in memory."""
    text = json.dumps(result.content, sort_keys=True) if result.error is None else result.error.text
    return _CLOCK.sub("CLOCK", text.replace(str(root), "ROOT"))


# ---------------------------------------------------------------- one stack


class Names:
    """What a stack calls tools and parameters: to look for hidden names in all that is shown, and to translate back."""

    def __init__(self, drawn: Drawn, tools: dict[str, forms.Tool]) -> None:
        first = _fresh(drawn)  # a name that retires later was shown before
        sessions = (first, drawn.certificate.gold.session)
        specs = [spec for session in sessions for spec in session.tools()]
        shown = {spec.name for spec in specs}
        self.hidden = [name for name in tools if name not in shown]
        self.params = {tool: names for session in sessions for tool, names in parameter_names(session).items()}
        self.tools = {spec.name: id for spec in specs for id in spec.ids & tools.keys()}
        for session in sessions:  # a tool that was split is spoken of as both of its parts
            for id in tools:
                self.tools[
                    " and ".join(spec.name for spec in session.specs.values() if spec.listed and id in spec.ids)
                ] = id
        self.tools.pop("", None)
        self.found: Counter[str] = Counter()

    def listing(self, listed: list[dict[str, Any]]) -> None:
        """Look at a list of tools, each for the parameters that are hidden in it."""
        for tool in listed:
            words = [text for key, part in tool.items() if key != "name" for text in _texts(part)]
            self._look(tool["name"], [tool["name"], *words, *tool["inputSchema"].get("properties", {})], "", "listed")

    def result(self, tool: str, raw: dict[str, Any], direct: str) -> None:
        """Look at a result. One that is not an error is data: names that the server itself gave are its own."""
        if raw.get("isError"):
            self._look(tool, list(_texts(raw.get("content"))), "", "error")
            return
        self._look(tool, list(_texts(raw.get("content"))), direct, "content")
        self._look(tool, list(_texts(raw.get("structuredContent"))), direct, "structured")

    def _look(self, tool: str, texts: list[str], direct: str, where: str) -> None:
        params = [old for old, new in self.params.get(tool, {}).items() if old != new]
        for sort, names in (("tool", self.hidden), ("param(?:eter)?|arg(?:ument)?", params)):
            for name in names:
                if any(_names(text, name, sort) for text in texts) and name not in direct:
                    self.found[f"{where}: {name}"] += 1

    def back(self, text: str, tool: str) -> str:
        """A text in which shown names are those of the server again, wherever they stand."""
        names = {new: old for old, new in self.params.get(tool, {}).items()}
        names |= self.tools
        every = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return re.sub(rf"(?<![\w-])(?:{every})(?![\w-])", lambda found: names[found[0]], text) if every else text


def _fresh(drawn: Drawn) -> Session:
    """A session at its start, for what each layer sees further in."""
    return Session(drawn.domain.world(drawn.base), drawn.layers)


def _names(text: str, name: str, sort: str) -> bool:
    """Does a text name a tool or a parameter? A plain word does where it is alone, in quotes or beside its sort."""
    if text == name:
        return True
    if not forms.PLAIN_WORD.fullmatch(name):
        return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None
    text = re.sub(r'"path"\s*:\s*\[', "", text)  # a key of complaints that are JSON themselves
    return re.search(rf"[`'\"]{name}[`'\"]|\b{name} (?:{sort})s?\b|\b(?:{sort})s? {name}\b", text) is not None


def _texts(value: Any) -> Iterator[str]:
    """All texts in some JSON."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


async def one_stack(
    name: str, command: list[str], proxy: list[str], kinds: list[tuple[str, int]], seed: int, calls: int, scratch: Path
) -> dict[str, Any] | None:
    """Calls through one stack; None where nothing of it can be applied to the server."""
    make, world = SERVERS[name]
    roots = [scratch / f"{seed:03}" / side for side in ("direct", "behind")]
    for root in roots:
        world(root)
    with_root = [*command, *([str(root) for root in roots[:1]] if name == "filesystem" else [])]
    twin = [*command, *([str(roots[1])] if name == "filesystem" else [])]
    env = {**os.environ, **STEADY}
    flags = [part for kind, severity in kinds for part in ("--perturb", f"{kind}:{severity}")]
    log = scratch / f"{seed:03}" / "log"
    behind = [*proxy, *flags, "--seed", str(seed), "--log", str(log), "--", *twin]
    counts: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    async with contextlib.AsyncExitStack() as stack:
        direct = await stack.enter_async_context(client(with_root, env))
        tools = forms.tools_of(await direct.listing())
        drawn = live.draw(tools, kinds, seed)
        if not drawn.layers:
            return None  # the proxy refuses it as well
        other = await stack.enter_async_context(client(behind, env))
        inside, names = _fresh(drawn), Names(drawn, tools)
        ways = workarounds(inside)
        names.listing(await other.listing())
        rngs = [Random(seed), Random(seed)]
        last = called = ""

        async def send(call: ToolCall) -> ToolResult:
            nonlocal called
            called = call.tool
            for _ in range(RETRIES + 1):
                counts["made"] += 1
                inside.clock.nth += 1
                raw = await other.call(call.tool, dict(call.args))
                names.result(call.tool, raw, last)
                result = as_result(raw)
                if not (result.error and result.error.retryable):
                    break
            return result

        for _ in range(calls):
            mine, theirs = (make(rng, root) for rng, root in zip(rngs, roots, strict=True))
            raw = await direct.call(mine.tool, dict(mine.args))
            last = json.dumps([raw.get("content"), raw.get("structuredContent")])
            expected = as_result(raw)
            counts["calls"] += 1
            try:
                got = await adrive(chain(theirs, ways), send)
            except Exception as error:
                counts["refused by the client" if isinstance(error, RuntimeError) else "raised"] += 1
                wrong.append({"call": theirs.tool, "error": f"{type(error).__name__}: {error}"[:300]})
                continue
            want, have = comparable(expected, roots[0]), comparable(got, roots[1])
            if expected.error is not None and got.error is not None:
                counts["same"] += 1
                counts["errors on both sides"] += 1
                want, have = names.back(want, called), names.back(have, called)
                counts["errors in other words"] += want != have
            elif want == have and (expected.error is None) is (got.error is None):
                counts["same"] += 1
                continue
            if want != have:
                wrong.append({"call": theirs.tool, "args": dict(theirs.args), "want": want[:300], "have": have[:300]})
    with (log / "episodes.jsonl").open() as lines:
        record = json.loads(next(lines))
    return {
        "seed": seed,
        "asked": kinds,
        "laid": [layer.kind for layer in drawn.layers],
        "left_out": list(drawn.left_out),
        "only_maps": all(layer.kind in MAPS for layer in drawn.layers),
        "same_stack": record["layers"] == json.loads(json.dumps(dump_layers(drawn.layers))),
        "met": [receipt["kind"] for receipt in record["receipts"] if receipt["fired"]],
        "leaks": dict(names.found),
        **counts,
        "wrong": wrong[:5],
    }


async def server(name: str, command: list[str], args: argparse.Namespace) -> dict[str, Any]:
    kinds, stacks = live.applicable(), []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="real-") as folder:
        for n in range(args.stacks):
            rng = Random(f"{name}/{args.seed}/{n}")
            share = args.calls * (n + 1) // args.stacks - args.calls * n // args.stacks
            one = None
            for again in range(ATTEMPTS):
                chosen = [(kind, rng.randint(1, 5)) for kind in rng.sample(kinds, rng.randint(1, 4))]
                chosen = [*([(args.also, 5)] if args.also else []), *(one for one in chosen if one[0] != args.also)]
                scratch = Path(folder) / f"{name}-{again}"
                if (one := await one_stack(name, command, args.proxy, chosen, n, share, scratch)) is not None:
                    break
            if one is None:
                continue
            stacks.append(one)
            bad = one["calls"] - one.get("same", 0)
            print(
                f"{name} {n}: {'+'.join(one['laid'])}: {one['calls']} calls, {bad} differ", file=sys.stderr, flush=True
            )
    total = Counter({k: sum(s.get(k, 0) for s in stacks) for k in ("calls", "same", "made", "refused by the client")})
    return {
        "command": command,
        **total,
        "errors on both sides": sum(s.get("errors on both sides", 0) for s in stacks),
        "errors in other words": sum(s.get("errors in other words", 0) for s in stacks),
        "stacks": len(stacks),
        "layers": sum(len(s["laid"]) for s in stacks),
        "leaks": sum(sum(s["leaks"].values()) for s in stacks),
        "other stacks than the seed gives": sum(not s["same_stack"] for s in stacks),
        "kinds": dict(Counter(kind for s in stacks for kind in s["laid"])),
        "seconds": round(time.monotonic() - began, 1),
        "each": stacks,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SERVERS:
        parser.add_argument(f"--{name}", default="", metavar="COMMAND", help=f"starts the {name} server")
    parser.add_argument("--proxy", default=f"{sys.executable} -m crosswind.cli.app proxy", help="starts the proxy")
    parser.add_argument("--calls", type=int, default=1000, help="of each server")
    parser.add_argument("--stacks", type=int, default=20, help="of each server")
    parser.add_argument(
        "--also", default="", metavar="KIND", help="in every stack, at severity 5, besides the random ones"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    args.proxy = shlex.split(args.proxy)
    found: dict[str, Any] = {"python": platform.python_version(), "mcp": version("mcp"), "seed": args.seed}
    for name in SERVERS:
        if command := shlex.split(getattr(args, name)):
            found[name] = asyncio.run(server(name, command, args))
            shown = {k: v for k, v in found[name].items() if k not in ("each", "kinds", "command")}
            print(name, json.dumps(shown))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
