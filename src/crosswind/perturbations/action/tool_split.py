"""One tool becomes two."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.flow import token
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, Param, Step, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.words import banks

COUNT = {1: 1, 2: 2, 3: 3, 4: 99, 5: 99}
LONGEST = 60  # of a name
HALVES = banks.own("tool_split", "halves")
STAGES = banks.own("tool_split", "stages")
DRAFTS = banks.own("tool_split", "drafts")


class Halved(Model):
    """A reading tool of which each half gives some of the keys."""

    tool: str
    names: tuple[str, str]
    docs: tuple[str, str]  # what each half's description says of the other
    keys: tuple[str, ...]  # in the first half; all others are in the second
    by: str  # the key that rows of a list have in both; empty for a single record

    def specs(self, spec: ToolSpec) -> list[ToolSpec]:
        return [
            spec.made(name, doc=f"{spec.doc} {says}".rstrip(), opaque=True)
            for name, says in zip(self.names, self.docs, strict=True)
        ]

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call.named(self.tool)
        first = call.tool == self.names[0]
        return result if result.error else ToolResult(self._half(result.content, first=first))

    def _half(self, content: Any, *, first: bool) -> Any:
        if isinstance(content, list):
            return [self._half(row, first=first) for row in content]
        if not isinstance(content, dict):
            return content
        return {k: v for k, v in content.items() if k == self.by or (k in self.keys) is first}

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        one = yield call.named(self.names[0])
        if one.error:
            return one
        two = yield call.named(self.names[1])
        return two if two.error else ToolResult(self._whole(one.content, two.content))

    def _whole(self, one: Any, two: Any) -> Any:
        if isinstance(one, dict) and isinstance(two, dict):
            return {**one, **two}
        if not isinstance(one, list) or not isinstance(two, list):
            return one
        others = {row[self.by]: row for row in two if isinstance(row, dict) and self.by in row}
        return [{**row, **others.get(row.get(self.by), {})} if isinstance(row, dict) else row for row in one]


class Staged(Model):
    """A writing tool of which the first half takes everything down and the second does it."""

    tool: str
    names: tuple[str, str]
    docs: tuple[str, str]
    param: str  # of the second half, and where the draft is in the first one's answer
    refusal: str

    def specs(self, spec: ToolSpec) -> list[ToolSpec]:
        first, second = (f"{spec.doc} {says}".rstrip() for says in self.docs)
        return [
            spec.made(self.names[0], doc=first, writes=False, undo=None, opaque=True),
            spec.made(self.names[1], doc=second, params={self.param: Param("string")}, opaque=True),
        ]

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.names[0]:
            draft = token(self.tool, json.dumps(call.args, sort_keys=True), memo.nth)
            memo.notes[draft] = [self.tool, dict(call.args)]
            return ToolResult({self.param: draft})
        tool, args = memo.notes.get(call.args[self.param], ("", {}))
        if tool != self.tool:
            return failed("refused", self.refusal)
        result = yield ToolCall(tool, args)
        if result.error is None:
            del memo.notes[call.args[self.param]]
        return result

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        first = yield call.named(self.names[0])
        if first.error:
            return first
        return (yield ToolCall(self.names[1], {self.param: first.content[self.param]}))


@perturbation
class ToolSplit(Perturbation):
    """A tool is replaced by two: each returns half of the facts, or both are needed to complete one action."""

    kind: Literal["tool_split"] = "tool_split"
    axis, tier, rank = "action", "reasoning", "structure"
    severities = "Tools in the solution that become two: 1, 2, 3, all; at 5 all, and one of each two does not say so."
    needs = "a write in the solution, or a result with two facts or more to divide"
    way = "call both halves: combine their results, or pass the first one's draft to the second"
    halved: tuple[Halved, ...]
    staged: tuple[Staged, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split, taken = scene.task.split, scene.names
        found = _splittable(scene)
        chosen = sorted(rng.sample(sorted(found), min(len(found), COUNT[severity])))
        halves, stages = rng.choice(HALVES[split]), rng.choice(STAGES[split])
        param, told = rng.choice(DRAFTS[split]), severity < 5
        halved, staged = [], []
        for tool in chosen:
            spec, record = scene.tools[tool], found[tool]
            words = [[way, tool] for way in stages] if spec.writes else [[tool, way] for way in halves]
            one, two = (banks.styled(pair, "snake") for pair in words)
            if {one, two} & taken or max(len(one), len(two)) > LONGEST:
                continue
            taken |= {one, two}
            if spec.writes:
                docs = (
                    banks.phrase("prepare_doc", split, rng, next=two),
                    banks.phrase("complete_doc", split, rng, first=one) if told else "",
                )
                refusal = banks.phrase("bad_ticket", split, rng, ticket=param)
                staged.append(Staged(tool=tool, names=(one, two), docs=docs, param=param, refusal=refusal))
                continue
            by, *keys = record
            rng.shuffle(keys)
            docs = (
                banks.phrase("part_doc", split, rng, tool=two),
                banks.phrase("part_doc", split, rng, tool=one) if told else "",
            )
            half = tuple(sorted(keys[: len(keys) // 2]))
            halved.append(Halved(tool=tool, names=(one, two), docs=docs, keys=half, by=by))
        return cls(halved=tuple(halved), staged=tuple(staged)) if halved or staged else None

    @property
    def parted(self) -> tuple[Halved | Staged, ...]:
        return (*self.halved, *self.staged)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each call of a half, and once more for each half that does not say what it is."""
        return super().difficulty(gold, place) + sum(not part.docs[1] for part in self.parted)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        by_tool = {part.tool: part for part in self.parted}
        out: list[ToolSpec] = []
        for tool in tools:
            part = by_tool.get(tool.name)
            out += [tool] if part is None else part.specs(tool)
        return tuple(out)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        for part in self.parted:
            if call.tool in part.names:
                memo.fire()
                return (yield from part.handle(call, memo))
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        for part in self.parted:
            if call.tool == part.tool:
                return (yield from part.perform(call, memo))
        return (yield call)


def _splittable(scene: Scene) -> dict[str, tuple[str, ...]]:
    """Tools on the way that can be split; of those that read, the key that rows share and all other keys."""
    out: dict[str, tuple[str, ...]] = {}
    contents: dict[str, list[Any]] = {}
    for step in scene.gold:
        spec = scene.tools.get(step.call.tool)
        if spec is None:
            continue
        if spec.writes:
            out[spec.name] = ()
        elif step.result.error is None:
            contents.setdefault(spec.name, []).append(step.result.content)
    for name, results in contents.items():
        if record := _record(results):
            out[name] = record
    return out


def _record(results: Sequence[Any]) -> tuple[str, ...] | None:
    """The key by which rows are known (none for single records) and all other keys, if there are enough of them."""
    if all(isinstance(content, dict) for content in results):
        by, keys = "", list(dict.fromkeys(k for content in results for k in content))
    elif all(isinstance(content, list) for content in results):
        rows = [row for content in results for row in content]
        if not rows or not all(isinstance(row, dict) for row in rows):
            return None
        keys = list(dict.fromkeys(k for row in rows for k in row))
        known = [k for k in keys if all(_tells_apart(k, content) for content in results)]
        if not known:
            return None
        by = known[0]
        keys.remove(by)
    else:
        return None
    return (by, *keys) if len(keys) > 1 else None


def _tells_apart(key: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Does a key hold an id of its own in every row?"""
    held = [row.get(key) for row in rows]
    return all(_is_id(value) for value in held) and len(set(held)) == len(held)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
