"""Tools get other names that mean the same."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Scene, perturbation
from crosswind.perturbations.action._renaming import Renaming, share
from crosswind.words import banks


@perturbation
class SemanticRename(Renaming):
    """Tools are renamed to synonyms; the old names no longer work."""

    kind: Literal["semantic_rename"] = "semantic_rename"
    tier = "perception"
    severities = (
        "Tools in the solution that are renamed: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 all tools."
    )
    needs = "a tool in the solution for which a bank or the lexicon has another name"
    way = "find each tool under its new name"

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        taken, names = scene.names, {}
        for name in share(scene, rng, severity):
            new = banks.tool_name(scene.domain.name, scene.tools[name], scene.task.split, rng, taken)
            if new is not None:
                names[name] = new
                taken.add(new)
        return cls(names=names) if names else None
