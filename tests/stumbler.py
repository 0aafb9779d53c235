"""An agent that gets past each obstacle with a fixed probability, to measure severities with."""

from __future__ import annotations

from crosswind.agents._scripted import Reciter, lines_of
from crosswind.core.draw import Drawn
from crosswind.core.flow import rng_for
from crosswind.core.perturbation import dump_layers
from crosswind.core.types import Message

COPES = 0.9


class Stumbler(Reciter):
    """Knows every way round and gets past each single obstacle nine times in ten; severities mean nothing to it."""

    def __init__(self, drawn: Drawn) -> None:
        gold = drawn.certificate.gold
        rng = rng_for("stumbler", drawn.base.id, dump_layers(drawn.layers))
        difficulty = sum(layer.difficulty(gold.steps, i) for i, layer in enumerate(drawn.layers))
        lines = list(lines_of(gold))
        if any(rng.random() >= COPES for _ in range(difficulty)):
            lines = [*lines[: rng.randrange(len(lines))], Message(role="assistant", content="Done.")]
        super().__init__(lines)
