"""Tools described in other words; not a perturbation itself."""

from __future__ import annotations

from random import Random

from crosswind.core.perturbation import Scene
from crosswind.core.types import ToolSpec
from crosswind.words import banks


def described(scene: Scene, spec: ToolSpec, rng: Random) -> str | None:
    """Another true description of a tool, with what other layers added to the canonical one; None: none is known."""
    entries = scene.domain.world_class.entries
    ids = [i for i in sorted(spec.ids) if i in entries]
    if len(ids) != 1 or not spec.doc.startswith(entries[ids[0]].spec.doc):
        return None
    new = banks.description(scene.domain.name, spec, scene.task.split, rng)
    return None if new is None else new + spec.doc[len(entries[ids[0]].spec.doc) :]
