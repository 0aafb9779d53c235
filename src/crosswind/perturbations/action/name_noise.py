"""Tool names in another spelling, with version marks and other noise."""

from __future__ import annotations

import re
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Scene, perturbation
from crosswind.perturbations.action._renaming import Renaming, share
from crosswind.words import banks

# what vendors put round a name
BEFORE = banks.own("name_noise", "before")
AFTER = banks.own("name_noise", "after")
STYLES = ("camel", "pascal", "kebab", "upper", "snake")


@perturbation
class NameNoise(Renaming):
    """Tool names keep their words but change their spelling: case, separators, prefixes, version suffixes."""

    kind: Literal["name_noise"] = "name_noise"
    tier = "perception"
    severities = (
        "Tools in the solution with another spelling: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 all "
        "tools."
    )
    needs = "a tool in the solution"
    way = "call tools by the names shown, whatever their spelling"

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split, taken, names = scene.task.split, scene.names, {}
        style = rng.choice(STYLES)
        for name in share(scene, rng, severity):
            words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])", name)
            for _ in range(20):
                before, after = rng.choice(BEFORE[split]), rng.choice(AFTER[split])
                new = banks.styled([w for w in (before, *words, after) if w], style)
                if new not in taken and len(new) <= 60:
                    names[name] = new
                    taken.add(new)
                    break
        return cls(names=names) if names else None
