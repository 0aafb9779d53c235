"""Tools lose their names: what they do stands in their descriptions alone."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Scene, perturbation
from crosswind.perturbations._added_names import meaningless
from crosswind.perturbations.action._renaming import Renaming, share
from crosswind.words import banks

# {0}: a number, {1}: a code, {2}: a word of no language. Only with words that hardly ever come twice does a model learn
# to copy a name piece by piece; from a few styles it learns the styles.
STYLES = banks.own("identity_erasure", "styles")
TRIES = 20


@perturbation
class IdentityErasure(Renaming):
    """Tool names are replaced by meaningless ones; the descriptions stay true."""

    kind: Literal["identity_erasure"] = "identity_erasure"
    tier = "perception"
    lost = frozenset({"name"})
    severities = (
        "Tools in the solution that lose their name: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 all tools."
    )
    needs = "a tool in the solution"
    way = "choose tools by their descriptions"

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        chosen = share(scene, rng, severity)
        if not chosen:
            return None
        style = rng.choice(STYLES[scene.task.split])
        numbers = rng.sample(range(1, 1 + 3 * len(chosen)), len(chosen))
        for _ in range(TRIES if "{2}" in style else 1):
            words = [meaningless(rng) if "{2}" in style else "" for _ in chosen]
            names = {
                n: style.format(i, f"{i * 7919 % 46656:03x}", word)
                for n, i, word in zip(chosen, numbers, words, strict=True)
            }
            if len(set(names.values())) == len(names) and not scene.names & set(names.values()):
                return cls(names=names)
        return None
