"""Dates, times and numbers in results are written as elsewhere in the world."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolResult, Tools
from crosswind.perturbations.observation._locales import FORMS, OF_SPLIT, Forms, Localiser, canonical
from crosswind.perturbations.observation._rows import valued
from crosswind.perturbations.observation._shapes import sorts_of
from crosswind.words import banks

LEGENDS = banks.own("locale_format", "legends")


@perturbation
class LocaleFormat(Perturbation):
    """Dates, times and numbers in results are in the format of another locale."""

    kind: Literal["locale_format"] = "locale_format"
    axis, tier, rank = "observation", "interaction", "vocabulary"
    severities = (
        "Sorts of values (dates, times, numbers) that look different: 1 one in one tool in the solution, 2 two, 3 all "
        "in all tools in the solution, 4 also two forms of each in turn, 5 also no description that says so."
    )
    needs = "a date, a time or a large or decimal number in a result in the solution"
    way = "read dates, times and numbers in the format shown"
    forms: dict[str, dict[str, tuple[str, ...]]]  # tool -> sort of value -> forms that take turns
    docs: dict[str, str]  # tool -> what its description says of it; empty where nothing is said

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split = scene.task.split
        places: dict[str, list[str]] = {}
        for step in scene.gold:
            for sort in sorted(sorts_of(step.result.content)):
                if step.call.tool not in places.setdefault(sort, []):
                    places[sort].append(step.call.tool)
        if not places:
            return None
        if severity < 3:
            few = rng.sample(sorted(places), min(len(places), severity))
            places = {sort: [rng.choice(names)] for sort, names in places.items() if sort in few}
        forms: dict[str, dict[str, tuple[str, ...]]] = {}
        for sort, names in places.items():
            turns = rng.sample(OF_SPLIT[split][sort], len(OF_SPLIT[split][sort]))
            for name in names:
                forms.setdefault(name, {})[sort] = tuple(turns if severity >= 4 else turns[:1])
        legend = rng.choice(LEGENDS[split])
        docs = {name: legend.format(_examples(form)) for name, form in forms.items()} if severity < 5 else {}
        return cls(forms=forms, docs=docs)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each form in each tool, twice where it is not explained."""
        count = sum(len(turns) for forms in self.forms.values() for turns in forms.values())
        return count * (1 if self.docs else 2)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(doc=f"{t.doc} {self.docs[t.name]}") if t.name in self.docs else t for t in tools)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        forms = self.forms.get(call.tool)
        if forms is None or result.error:
            return result
        content = valued(result.content, Localiser(forms))
        return result if content is result.content else ToolResult(content)

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        forms = self.forms.get(call.tool)
        if forms is None or result.error:
            return result
        return ToolResult(valued(result.content, lambda value: canonical(value, forms)))


_EXAMPLES = {"date": "2030-12-31", "time": "17:05", "number": 1234.5}
_CALLED = {"date": "dates", "time": "times", "number": "numbers"}


def _examples(forms: Forms) -> str:
    """The forms in words."""
    said = [
        f"{_CALLED[sort]} like {' or '.join(str(FORMS[sort][name].write(_EXAMPLES[sort])) for name in turns)}"
        for sort, turns in forms.items()
    ]
    return " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))
