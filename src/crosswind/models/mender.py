"""What the wrapper does with one call, whoever drives it: an agent's episode, or a connection of the proxy.

`Mender.handle` is a generator that asks for calls and gets their results as text; it returns what the caller is told.
So a repair may take several calls: a repetition, a wait, a successor, the next page.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from hashlib import sha256
from typing import Any

from crosswind.core.types import Request, Tools, ToolSpec
from crosswind.core.world import bad_arguments
from crosswind.models import repairs
from crosswind.models.interface import KnownInterface, matched_params, may_write, words_of
from crosswind.models.shapes import found_in, in_shape, joined, lacks, with_known_keys

TRIES = 3  # of a call that fails for a passing reason, after the first
WAITS = 8  # calls of a tool that waits, for one call
HOPS = 3  # successors that are followed
PAGES = 40  # that are read for one list
EXTRA = 60  # calls that one call of the agent may take besides its own
KEPT = 50  # results in which something may be found again
SAME = 2  # times that a call may bring the same result before the agent is told

Mending = Generator[Request, str, str]
RULE = (
    "If a detail is missing that only the user knows, ask the user for it. If no tool shown can do what is asked, or a "
    "rule forbids it, say so and change nothing."
)


class Mender:
    """The repairs of one conversation."""

    def __init__(self, parts: frozenset[str], known: KnownInterface | None = None) -> None:
        self.parts = parts
        self.known = KnownInterface() if known is None else known
        self.taught = KnownInterface()  # what this conversation taught, for later ones
        self.made = 0  # calls besides those of the agent
        self.results: Counter[tuple[str, str]] = Counter()  # how often a call brought a result
        self.last: dict[str, str] = {}  # call -> its last result; of results a digest is kept: a session may be long
        self.seen: deque[Any] = deque(maxlen=KEPT)  # results as the agent read them
        self._matched: tuple[Tools, dict[str, str]] = ((), {})

    # -- before a call

    def fitted(self, request: Request, tools: Tools) -> Request:
        """A call as the tools shown take it, as far as that is clear."""
        name, args = request.tool, request.args
        shown = {tool.name: tool for tool in tools}
        known = self.known.tools.get(name)
        if "names" in self.parts and name not in shown:
            name = self._successor(name, tools) or repairs.tool_for(name, args, tools) or name
        if "arguments" in self.parts and name in shown:
            params = shown[name].params
            if known is not None and isinstance(args, Mapping) and bad_arguments(params, args) is not None:
                names = matched_params(known.spec.params, params)
                args = {names.get(key, key): value for key, value in args.items()}
            args = repairs.arguments_for(args, params)
        return request.model_copy(update={"tool": name, "args": args})

    def _successor(self, name: str, tools: Tools) -> str:
        """The tool shown that is most like one that the agent knows."""
        if self._matched[0] != tools:
            self._matched = (tools, self.known.matches(tools))
        return self._matched[1].get(name, "")

    def objection(self, request: Request, tools: Tools) -> str:
        """Why a call should not be made as it is; empty where nothing speaks against it."""
        tool = next((tool for tool in tools if tool.name == request.tool), None)
        if self._recalled(request) is not None or (tool is not None and self._supplier(request, tool, tools)):
            return ""
        if "check" in self.parts:
            if tool is None:
                names = ", ".join(tool.name for tool in tools)
                return f"There is no tool {request.tool[:64]!r}. The tools are: {names}."
            if bad := bad_arguments(tool.params, request.args):
                return f"{bad}. The tool is {repairs.signature(tool)}."
        call = key_of(request)
        if "stuck" in self.parts and self.results[call, self.last.get(call, "")] >= SAME:
            told = "The same call was made before and brought the same result. Do something else, or end."
            if others := repairs.nearest(request.tool, tools):
                told += f" Tools that may help: {'; '.join(map(repairs.signature, others))}."
            return f"{told} {RULE}" if "ask" in self.parts else told
        return ""

    # -- the call

    def handle(self, asked: Request, tools: Callable[[], Tools]) -> Mending:
        """Make a call and what it takes besides; gives the result as the agent reads it."""
        budget, request = self.made + EXTRA, self.fitted(asked, tools())
        if all(tool.name != request.tool for tool in tools()) and (held := self._recalled(asked)) is not None:
            return json.dumps(held, ensure_ascii=False)
        request = yield from self._supplied(asked, request, tools())
        answer = yield request
        tried: Counter[str] = Counter()
        hops = {request.tool}
        while (error := repairs.error_in(answer)) and self.made < budget:
            follow = self._follow(request, error, tools(), hops)
            if follow is not None:
                request = follow
                hops.add(request.tool)
            elif self._may_repeat(request, error, tools()):
                wait = repairs.waiting_tool(error, request.tool, tools())
                if wait and tried["wait"] < WAITS:
                    tried["wait"] += 1
                    yield self._own(asked, wait, {})
                elif tried["again"] < TRIES:
                    tried["again"] += 1
                else:
                    break
            else:
                break
            answer = yield self._own(asked, request.tool, request.args)
        if not error:
            answer = yield from self._whole(asked, request, answer, tools())
        text = self._told(asked, request, answer, error, tools())
        if not error:
            text = yield from self._completed(asked, request, text, tools())
            self.seen.append(repairs.as_data(text))
        return text

    def _own(self, asked: Request, tool: str, args: Any) -> Request:
        """A call that the agent did not ask for."""
        self.made += 1
        return Request(id=f"again_{self.made}", tool=tool, args=args)

    def _may_repeat(self, request: Request, error: str, tools: Tools) -> bool:
        if "retry" not in self.parts or not repairs.PASSING.search(error):
            return False
        return not (repairs.UNCERTAIN.search(error) and may_write(request.tool, tools))

    def _follow(self, request: Request, error: str, tools: Tools, hops: set[str]) -> Request | None:
        """The same call of the one tool that an error names, where that takes the same."""
        if "redirect" not in self.parts or len(hops) > HOPS or not isinstance(request.args, Mapping):
            return None
        named = [tool for tool in repairs.named_in(error, tools) if tool.name not in hops]
        if len(named) != 1 or not request.args:
            return None
        args = repairs.arguments_for(request.args, named[0].params)
        if bad_arguments(named[0].params, args) is not None or len(args) != len(request.args):
            return None
        return request.model_copy(update={"tool": named[0].name, "args": args})

    def _whole(self, asked: Request, request: Request, answer: str, tools: Tools) -> Mending:
        """A list to its last page."""
        spec = next((tool for tool in tools if tool.name == request.tool), None)
        if "pages" not in self.parts or spec is None or not isinstance(request.args, Mapping):
            return answer
        known = self.known.tools.get(asked.tool)
        before = known.spec.params if known else ()
        page = repairs.page_in(repairs.as_data(answer), spec, request.args, before)
        rows, seen = list(page.rows) if page else [], set[str]()
        while page is not None and page.following is not None and len(seen) < PAGES:
            if str(page.following) in seen:
                return answer  # it never ends
            seen.add(str(page.following))
            args = {**request.args, page.param: page.following}
            more = yield self._own(asked, request.tool, args)
            page_key, next_key = page.key, page.next_key
            data = repairs.as_data(more)
            if not isinstance(data, Mapping) or not isinstance(data.get(page_key), list):
                return answer
            rows += data[page_key]
            page = page._replace(rows=data[page_key], following=data.get(next_key))
        if page is None or page.following is not None:
            return answer  # no list in pages, or one that is too long
        return json.dumps(rows, ensure_ascii=False)

    # -- what is missing

    def _recalled(self, asked: Request) -> Any:
        """What a reading tool that is gone would answer, out of results that hold it already; None where none does."""
        known = self.known.tools.get(asked.tool)
        if "complete" not in self.parts or known is None or known.shape is None or not isinstance(asked.args, Mapping):
            return None
        if may_write(asked.tool, (known.spec,)) or len(asked.args) != 1:
            return None
        (value,) = asked.args.values()
        return found_in(reversed(self.seen), value, known.shape)

    def _supplier(self, request: Request, tool: ToolSpec, tools: Tools) -> tuple[str, ToolSpec, dict[str, Any]] | None:
        """The one required argument that a call lacks, the new tool that gives it, and the arguments of that."""
        if "replan" not in self.parts or not self.known or not isinstance(request.args, Mapping):
            return None
        args = request.args
        lacking = [name for name, param in tool.params.items() if param.required and name not in args]
        if len(lacking) != 1 or bad_arguments(tool.params, {**args, lacking[0]: "x"}) is not None:
            return None
        words = words_of(lacking[0])
        taken = set(self.known.tools) | set(self.known.matches(tools).values()) | {tool.name}
        found, named = [], {one.name for one in repairs.named_in(tool.doc, tools)}
        for other in tools:
            needs = {name for name, param in other.params.items() if param.required}
            speaks = other.name in named or bool(words & words_of(f"{other.name} {other.doc}"))
            if other.name not in taken and needs <= args.keys() and speaks:
                found.append((other, {name: args[name] for name in needs}))
        found = [one for one in found if one[0].name in named] or found
        return (lacking[0], *found[0]) if len(found) == 1 else None

    def _supplied(self, asked: Request, request: Request, tools: Tools) -> Generator[Request, str, Request]:
        """A call with the argument that it lacks, if a new tool gives it."""
        tool = next((tool for tool in tools if tool.name == request.tool), None)
        supplier = self._supplier(request, tool, tools) if tool is not None else None
        if supplier is None:
            return request
        param, source, args = supplier
        data = repairs.as_data((yield self._own(asked, source.name, args)))
        values = (
            {key: value for key, value in data.items() if not isinstance(value, Mapping | list)}
            if isinstance(data, Mapping) and not data.get("error")
            else {}
        )
        named = [value for key, value in values.items() if words_of(key) & words_of(param)]
        value = named[0] if named else next(iter(values.values())) if len(values) == 1 else None
        return request if value is None else request.model_copy(update={"args": {**request.args, param: value}})

    def _completed(self, asked: Request, request: Request, text: str, tools: Tools) -> Mending:
        """A result with what it lacks, from new reading tools that take the same arguments."""
        known = self.known.tools.get(asked.tool)
        data = repairs.as_data(text)
        if "complete" not in self.parts or known is None or known.shape is None or not lacks(data, known.shape):
            return text
        if not isinstance(request.args, Mapping) or not isinstance(data, Mapping | list):
            return text
        called = next((tool for tool in tools if tool.name == request.tool), None)
        record = data if isinstance(data, Mapping) else {}
        for other in repairs.named_in(called.doc, tools) if called and record else ():
            needs = {name: record.get(name) for name, param in other.params.items() if param.required}
            if other.name not in (request.tool, *self.known.tools) and needs and None not in needs.values():
                return (yield from self._second_half(asked, other.name, needs, text))
        if may_write(request.tool, tools):
            return text
        for other in tools:
            if not lacks(data, known.shape):
                break
            new = other.name not in self.known.tools and other.name != request.tool
            if new and not may_write(other.name, tools) and bad_arguments(other.params, request.args) is None:
                answer = yield self._own(asked, other.name, request.args)
                if repairs.error_in(answer):
                    continue
                more = repairs.read_result(answer, expected=True)
                whole = joined(data, with_known_keys(more, known.shape))
                if whole is not None and _closer(whole, data, known.shape.keys):
                    data = whole
        return json.dumps(data, ensure_ascii=False)

    def _second_half(self, asked: Request, tool: str, args: dict[str, Any], text: str) -> Mending:
        """The rest of a call in two stages: the tool that the first names, with what the first gave."""
        answer = yield self._own(asked, tool, args)
        if error := repairs.error_in(answer):
            return repairs.noted(text, f"The next stage, {tool}, failed: {error}")
        shape = self.known.tools[asked.tool].shape
        data = repairs.read_result(answer, expected=True)
        return json.dumps(in_shape(data, shape) if shape else data, ensure_ascii=False)

    # -- after it

    def _told(self, asked: Request, request: Request, text: str, error: str, tools: Tools) -> str:
        """A result as the agent reads it."""
        call = key_of(asked)
        self.last[call] = sha256(text.encode("utf-8", "replace")).hexdigest()
        self.results[call, self.last[call]] += 1
        if not error:
            return self._in_shape(asked, request, text, tools)
        if "verify" in self.parts and repairs.UNCERTAIN.search(error) and may_write(request.tool, tools):
            return repairs.noted(text, "It may have been done all the same: look whether it was before you repeat it.")
        if "replan" in self.parts and (note := repairs.precondition(error, request, tools)):
            text = repairs.noted(text, note)
        if "ask" in self.parts and self.results[call, self.last[call]] >= SAME:
            text = repairs.noted(text, RULE)
        return text

    def _learn(self, name: str, data: Any, tools: Tools) -> None:
        """Remember a tool and its results for later conversations, unless it is a known one by another name."""
        if name in self.known.tools:
            self.known.answered(name, data)
        elif name not in self.known.matches(tools).values():
            self.taught.meet(tool for tool in tools if tool.name == name)
            self.taught.answered(name, data)

    def _in_shape(self, asked: Request, request: Request, text: str, tools: Tools) -> str:
        known = self.known.tools.get(asked.tool)
        if known is None:  # the agent called it by its name of today
            old = {new: old for old, new in self.known.matches(tools).items()}.get(request.tool, "")
            known = self.known.tools.get(old)
        shape = known.shape if known else None
        data = repairs.as_data(text)
        spec = next((tool for tool in tools if tool.name == request.tool), None)
        if spec is not None and isinstance(request.args, Mapping):
            page = repairs.page_in(data, spec, request.args, known.spec.params if known else ())
            if page is not None and page.following is not None:
                return text  # the agent must see that there is more
        if "results" in self.parts:
            data = repairs.read_result(text, expected=shape is not None)
            if shape is not None:
                data = in_shape(data, shape, keys="keys" in self.parts)
            elif not isinstance(data, str):
                data = repairs.unwrapped_result(data)
        elif "keys" in self.parts and shape is not None:
            data = with_known_keys(data, shape)
        if "notes" in self.parts and not isinstance(data, str):
            self._learn(request.tool, data, tools)
        same = data == repairs.as_data(text)
        return text if same or isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _closer(one: Any, other: Any, keys: Mapping[str, Any]) -> bool:
    """Does a result have more of some keys than another one?"""
    counts = [
        min((len(keys.keys() & row.keys()) for row in (data if isinstance(data, list) else [data])), default=0)
        for data in (one, other)
    ]
    return counts[0] > counts[1]


def key_of(request: Request) -> str:
    """A call as the key of a table."""
    return f"{request.tool} {request.args!r}"
