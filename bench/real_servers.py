"""Put real MCP servers behind the proxy, drive them with a real client, and compare every call with the direct one.

First with nothing laid over: every answer must be the direct one, `_meta`, pictures and errors included, and what the
proxy writes must be byte for byte what the server behind it wrote.

Then under stacks of random kinds. Calls with seeded arguments go to a server of its own directly, and through the way
round the stack to a twin behind the proxy; results must be the same once translated back, and so must the words of
errors. Counted besides: names that a stack hides and that show nevertheless, in lists of tools, contents, structured
contents or errors (a plain word where it is in quotes or said to be a parameter or a tool; any other name wherever it
occurs, also within words and in other spellings), results that the client's validation against the listed schema
refuses, and stacks that differ from what the same seed gave before.

The client is the MCP SDK of the environment this runs in (1.x or 2.x), or with --node the TypeScript SDK that lies in
that folder; the servers are commands, in which {root} is the folder they work in:

    python bench/real_servers.py --calls 1000 --out real.json \\
        --time "mcp-server-time --local-timezone UTC" --git mcp-server-git \\
        --filesystem "npx -y @modelcontextprotocol/server-filesystem {root}" \\
        --sqlite "mcp-server-sqlite --db-path {root}/trees.db" --editor mcp-text-editor \\
        --excel "excel-mcp-server stdio" --everything mcp-server-everything \\
        --memory "env MEMORY_FILE_PATH={root}/memory.json mcp-server-memory"

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
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Set
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

from real_worlds import BEFORE, SERVERS, STEADY  # type: ignore[import-not-found]  # beside this file

from crosswind.core.draw import Drawn
from crosswind.core.flow import adrive, chain
from crosswind.core.oracle import workarounds
from crosswind.core.perturbation import dump_layers
from crosswind.core.session import Session
from crosswind.core.types import ToolCall, ToolError, ToolResult
from crosswind.mcp import hiding, live
from crosswind.mcp import tools as forms
from crosswind.mcp.listing import parameter_names
from crosswind.mcp.tools import SERVER

RETRIES = 6
ATTEMPTS = 20  # at a stack of which something lies
# kinds that only rename or reshape: every single call must be answered as the direct one
MAPS = {
    *("semantic_rename", "identity_erasure", "name_noise", "parameter_rename", "parameter_format", "schema_noise"),
    *("key_rename", "envelope", "format_switch", "locale_format", "foreign_interface", "description_rewrite"),
    *("distractor_tools", "lookalike_tools", "semantic_trap"),
}
HERE = Path(__file__).resolve().parent


# ---------------------------------------------------------------- a real client, of whichever era the SDK has


@contextlib.asynccontextmanager
async def client(command: list[str], env: dict[str, str], node: str = "") -> AsyncIterator[Any]:
    """`listing()` and `call(name, args)` of an SDK client, both as JSON."""
    if node:
        async with _node(command, env, node) as said:
            yield said
        return
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
        try:
            result = await self.call_tool(name, args)
        except Exception as error:
            told = getattr(error, "error", None)
            if told is None:
                raise
            return refusal(told.code, told.message, told.data)
        return dict(result.model_dump(mode="json", by_alias=True, exclude_none=True))


def refusal(code: Any, message: str, data: Any) -> dict[str, Any]:
    """An error of the protocol in the form of a result."""
    kept = {"code": code, **({} if data is None else {"data": data})}
    return {"content": [{"type": "text", "text": message}], "isError": True, "protocol": kept}


@contextlib.asynccontextmanager
async def _node(command: list[str], env: dict[str, str], modules: str) -> AsyncIterator[Any]:
    process = await asyncio.create_subprocess_exec(
        *("node", str(HERE / "real_client.mjs"), modules, *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=env,
        limit=2**24,
    )
    assert process.stdin
    try:
        yield _Node(process)
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 20)


class _Node:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        return dict(json.loads(await self.process.stdout.readline()))

    async def listing(self) -> list[dict[str, Any]]:
        return list((await self._ask({}))["value"]["tools"])

    async def call(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        said = await self._ask({"name": name, "arguments": args})
        if "value" in said:
            return dict(said["value"])
        message = said["message"].removeprefix(f"MCP error {said.get('code')}: ")
        if "output schema" in message and ("tructured content" in message):
            raise RuntimeError(message)
        return refusal(said.get("code"), message, said.get("data"))


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


# ---------------------------------------------------------------- comparing


_CLOCK = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.+Z-]+|[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} [^\n\"]*| at 0x[0-9a-f]+"
    r"|\d\d:\d\d:\d\d(?:\.\d+)?|after [\d.]+ seconds|\d{10}\.\d+"
    r"|'size': \d+"  # of a workbook, since the times in it compress unlike
)


def comparable(result: ToolResult, root: Path) -> str:
    """A result without what differs between two twins: their folder, the time of day, where objects are in memory."""
    text = json.dumps(result.content, sort_keys=True) if result.error is None else result.error.text
    return masked(text, root)


def masked(text: str, root: Path) -> str:
    """A text in which two twins agree; servers cut long values in their errors, and so the names of folders."""
    return _CLOCK.sub("CLOCK", text.replace(str(root), "ROOT").replace(f"/{root.name}", "/SIDE"))


def others(raw: dict[str, Any]) -> str:
    """What of a result is no text: pictures, links, resources."""
    blocks = raw.get("content")
    return json.dumps([b for b in blocks if b.get("type") != "text"] if isinstance(blocks, list) else blocks)


# ---------------------------------------------------------------- without a stack


async def clean(name: str, command: list[str], args: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Calls with nothing laid over: answers as the direct ones, and bytes as the server behind the proxy wrote them."""
    make, world = SERVERS[name]
    roots = [scratch / side for side in ("direct", "behind")]
    for root in roots:
        world(root)
    env = {**os.environ, **STEADY}
    frames = {side: scratch / f"{side}.frames" for side in ("direct", "server", "proxy")}
    direct_command = teed(frames["direct"], at(command, roots[0]))
    server_command = teed(frames["server"], at(command, roots[1]))
    behind = teed(frames["proxy"], [*args.proxy, "--log", str(scratch / "log"), "--", *server_command])
    counts: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    async with client(direct_command, env, args.node) as direct, client(behind, env, args.node) as other:
        listed = [json.dumps(await one.listing(), sort_keys=True) for one in (direct, other)]
        counts["other listings"] += listed[0] != listed[1]
        rngs = [Random(f"{name}/clean/{args.seed}") for _ in roots]
        for n in range(args.calls):
            mine, theirs = (make(rng, root) for rng, root in zip(rngs, roots, strict=True))
            if n == 0:
                for one, root in zip((direct, other), roots, strict=True):
                    for call in BEFORE.get(name, lambda _: [])(root):
                        await one.call(call.tool, dict(call.args))
            raws = [await one.call(c.tool, dict(c.args)) for one, c in ((direct, mine), (other, theirs))]
            texts = [masked(json.dumps(raw, sort_keys=True), root) for raw, root in zip(raws, roots, strict=True)]
            counts["calls"] += 1
            counts["same"] += texts[0] == texts[1]
            counts["errors"] += bool(raws[0].get("isError"))
            if texts[0] != texts[1]:
                wrong.append(
                    {"call": mine.tool, "args": dict(mine.args), "want": texts[0][:300], "have": texts[1][:300]}
                )
    wrote = [
        [line for line in frames[side].read_bytes().splitlines() if b'"crosswind-' not in line]
        for side in ("server", "proxy")
    ]
    with (scratch / "log" / "episodes.jsonl").open() as lines:
        steps = json.loads(next(lines))["steps"]
    return {
        **counts,
        "frames": len(wrote[0]),
        "frames byte for byte": sum(one == other for one, other in zip(*wrote, strict=False)),
        "other number of frames": abs(len(wrote[0]) - len(wrote[1])),
        "recorded": len(steps),
        "wrong": wrong[:5],
    }


def at(command: list[str], root: Path) -> list[str]:
    """A server's command with its folder."""
    return [part.replace("{root}", str(root)) for part in command]


def teed(frames: Path, command: list[str]) -> list[str]:
    """A command of which every line is kept."""
    return [sys.executable, str(HERE / "tee.py"), str(frames), "--", *command]


# ---------------------------------------------------------------- one stack


class Names:
    """What a stack calls tools and parameters: to look for hidden names in all that is shown, and to translate back."""

    def __init__(self, drawn: Drawn, tools: dict[str, forms.Tool]) -> None:
        first = _fresh(drawn)  # a name that retires later was shown before
        sessions = (first, drawn.certificate.gold.session)
        specs = [spec for session in sessions for spec in session.tools()]
        shown = {spec.name for spec in specs}
        self.hidden, self.shown = [name for name in tools if name not in shown], shown
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
            texts = [text for part in tool.values() for text in _texts(part, keys=True)]
            own = set(tool["inputSchema"].get("properties", ()))
            self._look(tool["name"], texts, "", "listed", own)

    def instructions(self, message: dict[str, Any]) -> None:
        """Look at what the server says of itself, if a message holds it."""
        told = message.get("result")
        if isinstance(told, dict) and isinstance(text := told.get("instructions"), str):
            self._look("", [text], "", "instructions")

    def result(self, tool: str, raw: dict[str, Any], direct: str) -> None:
        """Look at a result. One that is not an error is data: names that the server itself gave are its own."""
        if raw.get("isError"):
            self._look(tool, list(_texts(raw.get("content"))), "", "error")
            return
        self._look(tool, list(_texts(raw.get("content"))), direct, "content")
        self._look(tool, list(_texts(raw.get("structuredContent"))), direct, "structured")

    def _look(self, tool: str, texts: list[str], direct: str, where: str, own: Set[str] = frozenset()) -> None:
        """Look for hidden names; `own` are the parameters of the tool, which are no names of tools."""
        params = [old for old, new in self.params.get(tool, {}).items() if old != new]
        for sort, names in (("tool", self.hidden), ("param(?:eter)?|arg(?:ument)?", params)):
            for name in names:
                known = [name, *(sorted(hiding.spellings(name)) if sort == "tool" else ())]
                called = self.shown | (set(self.params.get(tool, {}).values()) if sort != "tool" else set())
                shown = [one for one in called if any(part in one for part in known)]  # it is called so now
                if where in ("listed", "error"):
                    direct = ""
                said = [_without(text, shown) for text in texts if sort != "tool" or text not in own]
                if any(_names(text, one, sort) for text in said for one in known if one not in direct):
                    self.found[f"{where}: {name} in {tool}"] += 1

    def back(self, text: str, tool: str) -> str:
        """A text in which shown names are those of the server again, wherever they stand."""
        names = {new: old for old, new in self.params.get(tool, {}).items()}
        names |= self.tools
        every = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        text = re.sub(rf"(?<![\w-])(?:{every})(?![\w-])", lambda found: names[found[0]], text) if every else text
        for name, id in self.tools.items():
            text = text.replace(f"{name}Arguments", f"{id}Arguments")
        return text


def _fresh(drawn: Drawn) -> Session:
    """A session at its start, for what each layer sees further in."""
    return Session(drawn.domain.world(drawn.base), drawn.layers)


def _without(text: str, shown: list[str]) -> str:
    for name in sorted(shown, key=len, reverse=True):
        text = text.replace(name, "")
    return text


def _names(text: str, name: str, sort: str) -> bool:
    """Does a text name a tool or a parameter? A plain word does where it is alone, in quotes or beside its sort."""
    if text == name:
        return True
    if not hiding.PLAIN_WORD.fullmatch(name):
        return name in text
    text = re.sub(r'"path"\s*:\s*\[', "", text)  # a key of complaints that are JSON themselves
    return re.search(rf"[`'\"]{name}[`'\"]|\b{name} (?:{sort})s?\b|\b(?:{sort})s? {name}\b", text) is not None


def _texts(value: Any, *, keys: bool = False, below: int = 0) -> Iterator[str]:
    """All texts in some JSON; with `keys` those of a tool, where names of nested properties are the server's own."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, keys=keys, below=below)
    elif isinstance(value, dict):
        for key, part in value.items():
            if keys and key in ("enum", "const", "default", "required"):
                continue  # what the server wants to be sent
            if keys and key == "properties" and isinstance(part, dict):
                yield from part if below == 0 else ()
                for one in part.values():
                    yield from _texts(one, keys=keys, below=below + 1)
                continue
            if keys:
                yield key
            yield from _texts(part, keys=keys, below=below)


async def one_stack(
    name: str,
    command: list[str],
    args: argparse.Namespace,
    kinds: list[tuple[str, int]],
    seed: int,
    calls: int,
    scratch: Path,
) -> dict[str, Any] | None:
    """Calls through one stack; None where nothing of it can be applied to the server."""
    make, world = SERVERS[name]
    roots = [scratch / f"{seed:03}" / side for side in ("direct", "behind")]
    for root in roots:
        world(root)
    env = {**os.environ, **STEADY}
    flags = [part for kind, severity in kinds for part in ("--perturb", f"{kind}:{severity}")]
    log = scratch / f"{seed:03}" / "log"
    frames = scratch / f"{seed:03}" / "frames"
    twin = teed(frames, at(command, roots[1]))
    behind = teed(Path(f"{frames}.proxy"), [*args.proxy, *flags, "--seed", str(seed), "--log", str(log), "--", *twin])
    counts: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    async with contextlib.AsyncExitStack() as stack:
        own = teed(Path(f"{frames}.direct"), at(command, roots[0]))
        direct = await stack.enter_async_context(client(own, env, args.node))
        tools = forms.tools_of(await direct.listing())
        drawn = live.draw(tools, kinds, seed)
        if not drawn.layers:
            return None  # the proxy refuses it as well
        other = await stack.enter_async_context(client(behind, env, args.node))
        inside, names = _fresh(drawn), Names(drawn, tools)
        ways = workarounds(inside)
        names.listing(await other.listing())
        rngs = [Random(seed), Random(seed)]
        last = called = got_others = ""

        async def send(call: ToolCall) -> ToolResult:
            nonlocal called, got_others
            called = call.tool
            for _ in range(RETRIES + 1):
                counts["made"] += 1
                inside.clock.nth += 1
                raw = await other.call(call.tool, dict(call.args))
                names.result(call.tool, raw, last)
                got_others = others(raw)
                result = as_result(raw)
                if not (result.error and result.error.retryable):
                    break
            return result

        for n in range(calls):
            mine, theirs = (make(rng, root) for rng, root in zip(rngs, roots, strict=True))
            if n == 0:
                for root in roots:
                    for call in BEFORE.get(name, lambda _: [])(root):
                        await direct.call(call.tool, dict(call.args))
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
            if (others(raw) == "[]") is not (got_others == "[]"):
                want += " and pictures"
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
    for line in Path(f"{frames}.proxy").read_bytes().splitlines():
        names.instructions(json.loads(line))
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
        without = await clean(name, command, args, Path(folder) / "clean")
        print(f"{name} clean: {json.dumps(without)}", file=sys.stderr, flush=True)
        for n in range(args.stacks):
            rng = Random(f"{name}/{args.seed}/{n}")
            share = args.calls * (n + 1) // args.stacks - args.calls * n // args.stacks
            one = None
            for again in range(ATTEMPTS):
                chosen = [(kind, rng.randint(1, 5)) for kind in rng.sample(kinds, rng.randint(1, 4))]
                chosen = [*([(args.also, 5)] if args.also else []), *(one for one in chosen if one[0] != args.also)]
                scratch = Path(folder) / f"{name}-{again}"
                if (one := await one_stack(name, command, args, chosen, n, share, scratch)) is not None:
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
        "clean": without,
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
    parser.add_argument("--node", default="", metavar="NODE_MODULES", help="drive them with the TypeScript SDK in it")
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
    sdk = f"TypeScript, {args.node}" if args.node else version("mcp")
    found: dict[str, Any] = {"python": platform.python_version(), "client": sdk, "seed": args.seed}
    for name in SERVERS:
        if command := shlex.split(getattr(args, name)):
            found[name] = asyncio.run(server(name, command, args))
            shown = {k: v for k, v in found[name].items() if k not in ("each", "kinds", "command")}
            print(name, json.dumps(shown))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
