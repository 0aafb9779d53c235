"""Tools that never work, so that refusing is right; not a perturbation itself."""

from __future__ import annotations

from random import Random

from crosswind.core.perturbation import Scene


def needed(scene: Scene, rng: Random, severity: int, words: str, *, silent: bool) -> str | None:
    """A tool on the way without which the request provably cannot be met, from the first (1) to the last (5).

    With `silent` the tool is not shown, so it must not be one that other tools' descriptions speak of.
    """
    task = scene.task
    if task.refuse:
        return None
    path = list(dict.fromkeys(scene.path))
    if silent:
        path = [name for name in path if not any(f"{{{name}}}" in t.doc for t in scene.tools.values())]
    middle = (severity - 1) / 4 * (len(path) - 1) + rng.uniform(-0.6, 0.6)
    for name in sorted(path, key=lambda name: abs(path.index(name) - middle)):
        if scene.provable(task.replace(blocked={name: words})):
            return name
    return None
