"""Tools lose their names: what they do stands in their descriptions alone."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal, Self

from crosswind.perturbation import Scene, perturbation
from crosswind.perturbations.action._renaming import Renaming, share
from crosswind.types import Split

STYLES: Mapping[Split, tuple[str, ...]] = {
    "train": ("tool_{0}", "fn{0:02d}", "op_{1}"),
    "dev": ("action_{0}", "x{1}"),
    "test": ("call{0:03d}", "q_{1}", "endpoint_{0}"),
}


@perturbation
class IdentityErasure(Renaming):
    """Tool names are replaced by names without meaning; the descriptions stay true."""

    kind: Literal["identity_erasure"] = "identity_erasure"
    tier = "perception"
    lost = frozenset({"name"})
    severities = (
        "Tools on the way that lose their name: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 all tools."
    )
    needs = "a tool on the way"
    way = "choose tools by their descriptions"

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        chosen = share(scene, rng, severity)
        if not chosen:
            return None
        style = rng.choice(STYLES[scene.task.split])
        numbers = rng.sample(range(1, 1 + 3 * len(chosen)), len(chosen))
        taken = scene.names
        names = {n: style.format(i, f"{i * 7919 % 46656:03x}") for n, i in zip(chosen, numbers, strict=True)}
        return None if taken & set(names.values()) else cls(names=names)
