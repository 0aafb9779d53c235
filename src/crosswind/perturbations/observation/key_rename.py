"""Keys of results get other names."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolResult
from crosswind.perturbations.observation._rows import records, renamed_keys
from crosswind.words import banks


@perturbation
class KeyRename(Perturbation):
    """Result keys are renamed to synonyms, consistently; argument names stay the same."""

    kind: Literal["key_rename"] = "key_rename"
    axis, tier, rank = "observation", "interaction", "vocabulary"
    severities = "Share of the keys in the solution that are renamed: 20, 40, 60, 80, 100 %."
    needs = "a key of a result in the solution for which a bank or the lexicon has another name"
    way = "read keys by their meaning"
    release_note = "Keys of results go by other names that mean the same, everywhere alike; arguments keep theirs."
    keys: dict[str, str]  # further in -> shown

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        found = dict.fromkeys(key for s in scene.gold for record in records(s.result.content) for key in record)
        met = [key for key in found if key.isidentifier()]
        rng.shuffle(met)
        domain, split, style = scene.domain.name, scene.task.split, rng.choice(("snake", "snake", "camel"))
        taken = {*found, *banks.entries("extras", split), *(p for spec in scene.tools.values() for p in spec.params)}
        keys: dict[str, str] = {}
        for key in met:
            if new := banks.key_name(domain, key, split, rng, taken, style):
                keys[key] = new
                taken.add(new)
        count = max(1, round(len(keys) * severity / 5))
        return cls(keys=dict(list(keys.items())[:count])) if keys else None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each renamed key that is met."""
        met = [result.content for step in gold if place in step.fired for _, result in step.inner]
        seen = {key for record in records(met) for key in record if key in self.keys}
        return len(seen) or super().difficulty(gold, place)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        content = renamed_keys(result.content, self.keys)
        return result if content is result.content else ToolResult(content)

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        content = renamed_keys(result.content, {new: old for old, new in self.keys.items()})
        return result if content is result.content else ToolResult(content)
