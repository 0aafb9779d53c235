"""Prices go up at a time of day, and every call takes a minute."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Memo, Scene, perturbation
from crosswind.core.types import Flow, ToolCall, ToolResult
from crosswind.perturbations._time import UntilThen
from crosswind.perturbations.query._changes import wording
from crosswind.words import banks


@perturbation
class PriceMoves(UntilThen):
    """All prices change at a certain time of day, and the request is about the prices before the change."""

    kind: Literal["price_moves"] = "price_moves"
    severities = (
        "Time until prices change, as a multiple of the time that the solution takes to read the last one: 3, 2.5, "
        "2.2, 1.9, 1.6."
    )
    needs = "a price that a tool in the solution shows"
    way = "make no unnecessary calls, so that every price is read in time"
    release_note = "Every price is another one from a time of day on, and the request is about the prices of before."
    key: str  # of results
    until: int  # the minute of the episode from which on prices are others
    percent: int
    notice: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        key = getattr(getattr(scene.domain, "terms", None), "fee", "")
        shown = [i for i, step in enumerate(scene.gold) if key and _has(step.result.content, key)]
        if not shown:
            return None
        until, holes = cls.limited(scene, severity, shown[-1], fee=banks.noun(scene.domain.name, "fee"))
        notice = wording("price_moves", "notices", scene.task.split, rng, **holes)
        return cls(key=key, until=until, percent=rng.randint(5, 40), notice=notice)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if result.error is not None or not _has(result.content, self.key):
            return result
        memo.fire()
        memo.notes["last"] = memo.now
        return result if memo.now < self.until else ToolResult(self._moved(result.content))

    def _moved(self, content: Any) -> Any:
        if isinstance(content, list):
            return [self._moved(one) for one in content]
        if not isinstance(content, dict):
            return content
        return {k: self._higher(v) if k == self.key and _is_number(v) else self._moved(v) for k, v in content.items()}

    def _higher(self, price: float) -> float:
        more = price * self.percent / 100
        return price + (max(1, round(more)) if isinstance(price, int) else round(max(more, 0.01), 2))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has(content: Any, key: str) -> bool:
    """Does a result show a number under a key?"""
    if isinstance(content, list):
        return any(_has(one, key) for one in content)
    if not isinstance(content, dict):
        return False
    return _is_number(content.get(key)) or any(_has(value, key) for value in content.values())
