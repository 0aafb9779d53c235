"""Results carry fields that mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.flow import digest
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolResult
from crosswind.perturbations.observation._rows import Record, mapped
from crosswind.perturbations.observation._shapes import on_the_way
from crosswind.words import banks

COUNT = {1: 1, 2: 2, 3: 4, 4: 6, 5: 9}
NESTED = 3  # fields from this severity on are in a record of their own as well
FIRST = 4  # from this one on they come before the real ones


@perturbation
class ExtraFields(Perturbation):
    """Every record in a result has extra, irrelevant fields."""

    kind: Literal["extra_fields"] = "extra_fields"
    axis, tier, rank = "observation", "interaction", "vocabulary"
    severities = (
        "Extra fields: 1, 2, 4, 6, 9; from 3 on half of them nested in a record of their own, from 4 on before the "
        "real ones."
    )
    needs = "a result in the solution that holds records"
    way = "ignore irrelevant fields"
    release_note = "Every record of a result has further fields that nobody needs."
    fields: tuple[str, ...]
    nest: str  # the field in which the later half of them lies; empty where none does
    first: bool
    salt: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        way = on_the_way(scene)
        if not way:
            return None
        taken = {key for shape in way.values() for key in (shape.id, *shape.facts)}
        free = [name for name in banks.entries("extras", scene.task.split) if name not in taken]
        nest, *fields = rng.sample(free, COUNT[severity] + 1)
        return cls(
            fields=tuple(fields),
            nest=nest if severity >= NESTED else "",
            first=severity >= FIRST,
            salt=rng.randrange(10**6),
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each further field."""
        return (len(self.fields) + bool(self.nest)) * any(place in step.fired for step in gold)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        flat = self.fields[: len(self.fields) // 2] if self.nest else self.fields

        def change(record: Record) -> Record:
            more = {name: self._filler(name, record) for name in flat}
            if self.nest:
                more[self.nest] = {name: self._filler(name, record) for name in self.fields[len(flat) :]}
            return {**more, **record} if self.first else {**record, **more}

        content = mapped(result.content, change)
        return result if content is result.content else ToolResult(content)

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        added = {*self.fields, self.nest}

        def change(record: Record) -> Record:
            return {key: value for key, value in record.items() if key not in added}

        return result if result.error else ToolResult(mapped(result.content, change))

    def _filler(self, name: str, record: Record) -> Any:
        """A value that means nothing, the same for the same record."""
        first = next(iter(record.values()), "")
        chance = digest(self.salt, name, first if isinstance(first, str) else "")
        sort = digest(self.salt, name)[0] % 4
        if sort == 0:
            return bool(chance[0] % 2)
        return chance[1] if sort == 1 else chance[2:6].hex() if sort == 2 else f"{name[:2]}-{chance[0] % 8}"
