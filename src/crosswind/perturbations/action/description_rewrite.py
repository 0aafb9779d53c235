"""Tools described in other words."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Tools
from crosswind.perturbations._describing import described
from crosswind.perturbations.action._renaming import share


@perturbation
class DescriptionRewrite(Perturbation):
    """Tool descriptions state the same facts in different words."""

    kind: Literal["description_rewrite"] = "description_rewrite"
    axis, tier, rank, counts = "action", "perception", "vocabulary", "docs"
    severities = (
        "Tools in the solution with reworded descriptions: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 "
        "all tools."
    )
    needs = "a tool in the solution for which a bank has other descriptions"
    way = "recognise tools by reworded descriptions"
    docs: dict[str, str]  # tool further in -> its description

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        docs = {}
        for name in share(scene, rng, severity):
            if new := described(scene, scene.tools[name], rng):
                docs[name] = new
        return cls(docs=docs) if docs else None

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(doc=self.docs[t.name]) if t.name in self.docs else t for t in tools)
