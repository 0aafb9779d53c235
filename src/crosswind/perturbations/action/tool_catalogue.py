"""Hundreds of tools, of which only those are listed that a search has opened."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.registry import domains
from crosswind.core.types import Flow, Param, Split, Step, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations import _catalogue
from crosswind.perturbations._added_names import new_tool, new_word
from crosswind.perturbations.query._changes import wording
from crosswind.words import banks

SEARCHES = banks.own("tool_catalogue", "searches")
PARAMS = banks.own("tool_catalogue", "params")
SIZE = {1: 100, 2: 200, 3: 400, 4: 700, 5: 1000}
HITS = {1: 8, 2: 7, 3: 6, 4: 5, 5: 4}  # tools that one search opens
NOT_OPEN = "not_open"
SEARCHES_AGAIN = 4


@perturbation
class ToolCatalogue(Perturbation):
    """Only a search tool is listed; tools of a large catalogue can be called once a search has found them."""

    kind: Literal["tool_catalogue"] = "tool_catalogue"
    axis, tier, rank, group = "action", "reasoning", "fault", "listing"
    receipt_source, speaks = "tools", True
    severities = "Irrelevant tools in the catalogue: 100, 200, 400, 700, 1000; a search opens 8, 7, 6, 5, 4."
    needs = "tools in the solution that can be found by words of the request"
    way = "search for each tool by words of the request, and call the tools that were found"
    domain: str
    split: Split
    count: int
    start: int
    hits: int
    name: str  # of the search tool
    param: str
    doc: str
    closed: str  # what a call of a tool that is not open is answered
    first: tuple[str, ...]  # tools that are open from the start, since the policy speaks of them
    words: dict[str, tuple[str, ...]]  # tool on the way -> words of the request by which it is found

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, split = scene.task, scene.task.split
        path = [name for name in dict.fromkeys(scene.path) if not scene.tools[name].opaque]
        if not path or scene.domain.name not in domains:  # nobody knows how a live server's tools are asked for
            return None
        name = new_tool(SEARCHES, split, rng, scene.names)
        param = new_word(PARAMS, split, rng)
        if param is None:
            return None
        policy = re.findall(r"\{([\w-]+)\}", task.brief.policy)
        layer = cls(
            domain=scene.domain.name,
            split=split,
            count=SIZE[severity],
            start=rng.randrange(8) * 271,
            hits=HITS[severity],
            name=name,
            param=param,
            doc=wording("tool_catalogue", "docs", split, rng, param=param),
            closed=wording("tool_catalogue", "closed", split, rng).replace("<search>", f"{{{name}}}"),
            first=tuple(sorted(n for n, t in scene.tools.items() if t.ids.intersection(policy))),
            words={},
        )
        asked = " ".join((task.brief.query, *(change.words for change in task.changes))).lower()
        tools = tuple(scene.tools.values())
        needed, idle = layer._index(tools)
        opened, words = layer._mentioned(set(layer.first), tools), dict[str, tuple[str, ...]]()
        for one in path:
            if one not in opened:
                words[one] = _catalogue.telling(asked, one, needed, idle, layer.hits)
                if not words[one]:
                    return None
                opened |= layer._found(words[one], tools)
        return layer.model_copy(update={"words": words}) if words else None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each search, and each hundred of tools to search in."""
        return len(self.words) + self.count // 100

    # -- what the catalogue holds

    def _idle(self, tools: Tools) -> tuple[str, Split, int, int, frozenset[str]]:
        return self.domain, self.split, self.count, self.start, frozenset(t.name for t in tools if not t.opaque)

    def _index(self, tools: Tools) -> tuple[Mapping[str, _catalogue.Weights], _catalogue.Index]:
        hidden = {t.name: _catalogue.words_of(t, self.domain) for t in tools if not t.opaque}
        return hidden, _catalogue.index_of_idle(*self._idle(tools))

    def _mentioned(self, names: set[str], tools: Tools) -> set[str]:
        """Some tools, and those that their descriptions speak of."""
        of = {id: t.name for t in tools for id in t.ids}
        docs = {t.name: t.doc for t in tools}
        out, left = set[str](), sorted(names)
        while left:
            name = left.pop()
            if name not in out:
                out.add(name)
                left += [of[id] for id in re.findall(r"\{([\w-]+)\}", docs.get(name, "")) if id in of]
        return out

    def _found(self, words: Sequence[str], tools: Tools) -> set[str]:
        needed, idle = self._index(tools)
        return self._mentioned(set(_catalogue.search(words, needed, idle, self.hits)), tools)

    # -- what is shown

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        search = ToolSpec.new(self.name, self.doc, {self.param: Param("array", extra={"items": {"type": "string"}})})
        return (search, *tools, *_catalogue.idle_tools(*self._idle(tools)))

    def lists(self, tools: Tools, memo: Memo) -> Tools:
        opened = self._open(memo)
        out = []
        for tool in tools:
            if tool.opaque and tool.listed:
                out.append(tool)  # the search, and what other layers add
            elif tool.name in opened:
                out.append(tool if tool.listed else tool.replace(listed=tool.opaque))
            else:
                out.append(tool.replace(listed=False) if tool.listed else tool)
        return tuple(out)

    def _open(self, memo: Memo) -> set[str]:
        return self._mentioned({*self.first, *memo.notes.get("open", ())}, tuple(memo.tools.values()))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        inner = memo.tools.get(call.tool)
        if inner is not None and inner.opaque:
            return (yield call)
        tools = tuple(memo.tools.values())
        if call.tool == self.name:
            memo.fire()
            said = [word for word in call.args[self.param] if isinstance(word, str)]
            found = self._found(said[:40], tools)
            before = memo.notes.get("open", [])
            memo.notes["open"] = [*before, *sorted(found.difference(before))]
            memo.reveal()
            docs = {t.name: t for t in (*tools, *_catalogue.idle_tools(*self._idle(tools)))}
            return ToolResult([{"tool": f"{{{name}}}", "about": docs[name].doc} for name in sorted(found)])
        if call.tool not in self._open(memo):
            memo.fire()
            return failed(NOT_OPEN, self.closed)
        if inner is None:
            return ToolResult({"status": "ok", "items": []})
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        words = self.words.get(call.tool)
        opened: list[str] = memo.notes.setdefault("open", [])
        for _ in range(SEARCHES_AGAIN if words and call.tool not in opened else 0):
            result = yield ToolCall(self.name, {self.param: list(words or ())})
            if result.error:
                return result
            opened += sorted(self._found(words or (), tuple(memo.tools.values())).difference(opened))
            result = yield call
            if result.error is None or result.error.code not in (NOT_OPEN, "unknown_tool"):
                return result  # otherwise it has not joined the tools yet, and is looked for again
        return (yield call)
