"""Tools get other names that mean the same."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.perturbation import Scene, perturbation
from crosswind.perturbations.action._renaming import Renaming
from crosswind.words import renamed


@perturbation
class SemanticRename(Renaming):
    """Tools get other names that mean the same; the old names are gone."""

    kind: Literal["semantic_rename"] = "semantic_rename"
    tier = "perception"
    severities = "Which tools are renamed: 1 one on the way, 2 a third of those on the way, 3 all on the way, 4-5 all."

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        path = list(dict.fromkeys(scene.path))
        if not path:
            return None
        if severity >= 4:
            chosen = list(scene.tools)
        elif severity == 3:
            chosen = path
        else:
            chosen = rng.sample(path, 1 if severity == 1 else max(1, len(path) // 3))
        taken, names = scene.names, {}
        for name in chosen:
            names[name] = renamed(name, rng, taken)
            taken.add(names[name])
        return cls(names=names)
