"""The same interface over entities of another field."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core import entity_names
from crosswind.core.names import Namer
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import SPLITS, EntityNames, Param, Step, Task, ToolCall, ToolError, ToolResult, Tools
from crosswind.words import banks

NAMED = {1: (), 2: (), 3: ("thing",), 4: ("thing", "group"), 5: ("thing", "group", "person")}


@perturbation
class EntityReskin(Perturbation):
    """Entity types and names come from another field, in the request, in arguments and in results."""

    kind: Literal["entity_reskin"] = "entity_reskin"
    axis, tier, rank = "domain", "internalization", "domain"
    severities = (
        "What comes from another field: 1 the kind asked for, 2 all kinds, 3 also names of things, 4 of groups, 5 of "
        "people."
    )
    needs = "a domain with kinds of things, and a bank with words of another field"
    way = "use entity types and names as the request and the results give them"
    words: dict[str, str]
    endings: dict[str, str]
    names: int  # sorts of names that changed

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        domain, task = scene.domain, scene.task
        fields = banks.data(domain.name).get("fields", {}).get(task.split)
        kinds = sorted(domain.kinds())
        if task.entity_names or not fields or not kinds:
            return None
        field = rng.choice(fields)
        asked = [v for v in sorted(task.given) if v in kinds]
        if len(field) < len(kinds) or (severity == 1 and not asked):
            return None
        words = dict(zip(kinds, rng.sample(field, len(kinds)), strict=True))
        if severity == 1:
            words = {asked[0]: words[asked[0]]}
        endings: dict[str, str] = {}
        sorts = [domain.namers[sort] for sort in NAMED[severity] if sort in domain.namers]
        fresh = rng.sample(list(banks.entries("endings", task.split)), sum(len(_of(n, task)) for n in sorts))
        for namer in sorts:
            endings |= {old: fresh.pop() for old in _of(namer, task)}
        if len(set(endings.values())) < len(endings):
            return None
        layer = cls(words=words, endings=endings, names=len(sorts))
        if task.refuse and not any(layer._met(step) for step in scene.gold):
            return None  # the way ends before an entity is named
        return layer

    def _met(self, step: Step) -> bool:
        return self._through(step.call, back=False) is not step.call or (
            self._said(step.result, back=False) is not step.result
        )

    @property
    def entity_names(self) -> EntityNames:
        return EntityNames(words=self.words, endings=self.endings)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return super().difficulty(gold, place) + self.names + (len(self.words) > 1)

    def on_task(self, task: Task) -> Task:
        return task.replace(entity_names=self.entity_names)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        out = []
        for tool in tools:
            changed = {
                name: Param(p.type, p.doc, p.required, tuple(self.words.get(v, v) for v in p.enum), p.extra)
                for name, p in tool.params.items()
                if any(v in self.words for v in p.enum)
            }
            out.append(tool.replace(params={**tool.params, **changed}) if changed else tool)
        return tuple(out)

    def encode_call(self, call: ToolCall) -> ToolCall:
        return self._through(call, back=False)

    def decode_call(self, call: ToolCall) -> ToolCall:
        return self._through(call, back=True)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return self._said(result, back=False)

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return self._said(result, back=True)

    def _through(self, call: ToolCall, *, back: bool) -> ToolCall:
        args = entity_names.through(dict(call.args), entity_names.translator(self.entity_names, back=back))
        return call if args == call.args else ToolCall(call.tool, args)

    def _said(self, result: ToolResult, *, back: bool) -> ToolResult:
        translate = entity_names.translator(self.entity_names, back=back)
        if result.error:
            error = result.error
            text = translate(error.text)
            return result if text == error.text else ToolResult(None, ToolError(error.code, text, error.retryable))
        content = entity_names.through(result.content, translate)
        return result if content == result.content else ToolResult(content)


def _of(namer: Namer, task: Task) -> tuple[str, ...]:
    return namer.endings[SPLITS.index(task.split)]
