"""The certificate: a stack is fair when the oracle's walk through it proves it.

`certify` compares that walk with the same request on the canonical interface and checks the laws (`laws.py`); where
refusing is right, it demands a proof (`refusal_proofs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.base.errors import Unfair
from crosswind.core import laws, refusal_proofs
from crosswind.core.domain import Domain
from crosswind.core.oracle import Walk, Walks
from crosswind.core.perturbation import Layers, Perturbation
from crosswind.core.types import Task

STEPS_PER_GOLD_STEP, SPARE_STEPS = 3, 5


def step_budget(gold: Walk) -> int:
    """How many steps an agent may take: longer certified ways are not punished twice."""
    return STEPS_PER_GOLD_STEP * len(gold.steps) + SPARE_STEPS


@dataclass(slots=True)
class Certificate:
    """Proof that a perturbed task is fair: the oracle's walk, or why refusing is right."""

    task: Task  # as the layers leave it
    layers: Layers
    gold: Walk
    clean: Walk
    proof: str  # "replay", or the proof that it cannot be done
    budget: int  # steps an agent may take


def certify(
    domain: Domain, task: Task, layers: Sequence[Perturbation] = (), walks: Walks | None = None, *, deep: bool = False
) -> Certificate:
    """Certify a stack over a task or raise `Unfair` with the law it breaks.

    `walks` are those already made while drawing. `deep` adds the laws that need no look per draw: value, round trip,
    closed and twin.
    """
    layers = tuple(layers)
    laws.stackable(layers)
    if walks is None:
        walks = Walks(domain, task, snapshot=deep)
        for layer in layers:
            walks.add(layer)
    laws.alive(walks)
    shifted, gold, family = walks.shifted, walks.gold, domain.family(task)
    laws.stated(family, shifted)
    reference = walks.clean if shifted is task else walks.reference()
    if shifted.refuse:
        if not task.refuse and not any(layer.goal == "refuse" for layer in layers):
            raise Unfair("refusal", "the request was made impossible by a layer that does not claim to")
        laws.refused(gold)
        laws.found_out(shifted, gold, reference)
        proof = refusal_proofs.prove(domain, shifted)
    else:
        proof = "replay"
        laws.kept(walks.moved(), reference)
        laws.replayed(gold, reference)
        laws.reached(domain, shifted, gold)
        laws.not_idle(domain, shifted)
    laws.grounded(shifted, gold, None if domain.grounds else walks.clean)
    laws.cues(domain, gold)
    laws.mentions(domain, gold)
    laws.bites(walks.clean, gold)
    if deep:
        laws.value(domain, walks)
        laws.round_trip(gold)
        laws.closed(domain, shifted, layers)
        laws.twin(domain, task, layers, certify)
    return Certificate(shifted, layers, gold, walks.clean, proof, step_budget(gold))
