"""Tool names that suggest another tool."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Scene, perturbation
from crosswind.perturbations.action._renaming import Renaming
from crosswind.words import banks

TRAPS = {1: 2, 2: 3, 3: 4, 4: 6, 5: 99}


@perturbation
class SemanticTrap(Renaming):
    """Tools get one another's names; only their descriptions are true."""

    kind: Literal["semantic_trap"] = "semantic_trap"
    tier = "perception"
    lost = frozenset({"name"})
    severities = "Tools that swap names, those in the solution first: 2, 3, 4, 6, all."
    needs = "two tools that a bank or the lexicon can name, one of them in the solution"
    way = "trust descriptions, not names"

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        known = [n for n, spec in scene.tools.items() if banks.concept(scene.domain.name, spec) or not spec.opaque]
        path = [n for n in dict.fromkeys(scene.path) if n in known]
        rest = [n for n in known if n not in path]
        rng.shuffle(path)
        rng.shuffle(rest)
        chosen = (path + rest)[: TRAPS[severity]]
        if len(chosen) < 2 or not path:
            return None
        turned = [*chosen[1:], chosen[0]]  # everybody bears the name of the next one
        taken, names = scene.names, {}
        for name, other in zip(chosen, turned, strict=True):
            new = banks.tool_name(scene.domain.name, scene.tools[other], scene.task.split, rng, taken)
            if new is None:
                return None
            names[name] = new
            taken.add(new)
        return cls(names=names)
