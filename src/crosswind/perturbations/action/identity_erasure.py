"""Tools lose their names: what they do stands in their descriptions alone."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.perturbation import Scene, perturbation
from crosswind.perturbations.action._renaming import Renaming

STYLES = ("tool_{0}", "fn{0:02d}", "op_{1}", "x{1}", "action_{0}")


@perturbation
class IdentityErasure(Renaming):
    """Tool names are replaced by names without meaning; the descriptions stay true."""

    kind: Literal["identity_erasure"] = "identity_erasure"
    tier = "perception"
    lost = frozenset({"name"})
    severities = "Share of all tools that lose their name, the ones on the way first: 20, 40, 60, 80, 100 %."

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        path = list(dict.fromkeys(scene.path))
        if not path:
            return None
        rng.shuffle(path)
        rest = sorted(set(scene.tools) - set(path))
        rng.shuffle(rest)
        count = max(1, round(len(scene.tools) * severity / 5))
        chosen = (path + rest)[:count]
        style = rng.choice(STYLES)
        numbers = rng.sample(range(1, 1 + 3 * len(chosen)), len(chosen))
        taken = scene.names
        names = {n: style.format(i, f"{i * 7919 % 46656:03x}") for n, i in zip(chosen, numbers, strict=True)}
        return None if taken & set(names.values()) else cls(names=names)
