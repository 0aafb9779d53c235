"""Pairs of writes in a walk of which the second needs something that the first made; not a perturbation itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.core.types import Step, ToolSpec


@dataclass(frozen=True, slots=True)
class WriteLink:
    first: str
    second: str
    key: str  # in the first one's result
    param: str  # of the second


def links(gold: Sequence[Step], tools: Mapping[str, ToolSpec]) -> list[tuple[WriteLink, Step, Step]]:
    """All such pairs with their steps, without those in which the second takes the first back."""
    out: dict[WriteLink, tuple[WriteLink, Step, Step]] = {}
    for i, one in enumerate(gold):
        first = tools.get(one.call.tool)
        if first is None or not first.writes or not isinstance(one.result.content, dict):
            continue
        for two in gold[i + 1 :]:
            second = tools.get(two.call.tool)
            if second is None or not second.writes or second.name == first.name:
                continue
            if first.undo and first.undo[0] in second.ids:
                continue
            for param, value in two.call.args.items():
                for key, made in one.result.content.items():
                    link = WriteLink(first.name, second.name, key, param)
                    if isinstance(value, str) and value == made and key not in one.call.args:
                        out.setdefault(link, (link, one, two))
    return list(out.values())
