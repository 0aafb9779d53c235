"""The certificate: a stack is fair when the oracle's walk through it proves it.

`certify` compares that walk with the same request on the canonical interface and checks the laws (`laws.py`); where
refusing is right, it demands a proof (`refusal_proofs.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from crosswind.base.errors import Unfair, UnfairTask
from crosswind.core import conduct, forms, laws, refusal_proofs, secrets, task_laws
from crosswind.core.blame import blaming
from crosswind.core.domain import Domain
from crosswind.core.flow import digest
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

    def __repr__(self) -> str:
        kinds = ", ".join(layer.kind for layer in self.layers) or "clean"
        return f"<Certificate of {self.task.id}: {kinds}; proof: {self.proof}; budget of {self.budget} steps>"


def certify(
    domain: Domain,
    task: Task,
    layers: Sequence[Perturbation] = (),
    walks: Walks | None = None,
    *,
    release: bool = False,
) -> Certificate:
    """Certify a stack over a task or raise `Unfair` with the law it breaks.

    `UnfairTask` says that the task is unfair by itself, so that no layer is to blame. `walks` are those already made
    while drawing. A `release` was drawn for a whole domain: it need not bite on this task. Laws that judge a kind or a
    domain as a whole are in `audit.py`.
    """
    layers = tuple(layers)
    laws.stackable(layers)
    if walks is None:
        walks = Walks(domain, task)
    with blaming_the_task(walks):
        for layer in layers[len(walks.layers) :]:
            walks.add(layer)
        proof = _certified(walks, release=release) if layers else certify_task(walks)
    return Certificate(walks.shifted, layers, walks.gold, walks.clean, proof, step_budget(walks.gold))


def fingerprint(certificate: Certificate) -> str:
    """A short name for a certified way: the proof and each call with its result. Equal in every process."""
    gold = certificate.gold
    return digest(certificate.proof, gold.end, *((s.call, s.result, s.inner) for s in gold.steps)).hex()


def retrace(
    domain: Domain, task: Task, layers: Layers, proof: str, expected: str, clean: Walk | None = None
) -> Certificate:
    """A certificate that another process made with the same code: its ways are walked again, its laws are not.

    Raises `Unfair` where the certified way is not the `expected` one (`fingerprint`).
    """
    walks = Walks(domain, task, clean)
    for layer in layers:
        walks.add(layer)
    made = Certificate(walks.shifted, layers, walks.gold, walks.clean, proof, step_budget(walks.gold))
    if fingerprint(made) != expected:
        raise Unfair("seeded", f"the certified way of {task.id} is another here than where it was certified")
    return made


def _certified(walks: Walks, *, release: bool) -> str:
    if not release:
        laws.alive(walks)
    conduct.heeded(walks)
    proof = _proof(walks)
    if not release:
        laws.bites(walks.clean, walks.gold)
    forms.keyed(walks.gold)
    laws.leisurely(walks.gold)
    secrets.read_off(walks.gold)
    forms.written_as_shown(walks.gold)
    secrets.sent_off(walks.gold)
    forms.not_crossed(walks.gold)
    conduct.truthful(walks.gold)
    secrets.without(walks)
    if not walks.clean.proof and _is_ours(walks):
        task_laws.untied(walks.domain, walks.tasks[0], walks.clean)
    if _is_ours(walks) and _decides_anew(walks):  # it may tie where the task by itself does not
        task_laws.untied_through(walks)
    return proof


@contextmanager
def blaming_the_task(walks: Walks) -> Iterator[None]:
    """Where a law is broken, see whether the task breaks one by itself: then `UnfairTask` is raised instead."""
    try:
        with blaming():
            yield
    except UnfairTask:
        raise
    except Unfair:
        certify_task(walks)
        raise


def certify_task(walks: Walks) -> str:
    """Certify the task of a stack by itself, once for each clean walk. Raises `UnfairTask`."""
    domain, task = walks.domain, walks.tasks[0]
    try:
        with blaming():
            clean = walks.clean
            if not clean.proof:
                proof = _proof(Walks(domain, task, clean))
                if _is_ours(walks):
                    task_laws.untied(domain, task, clean)
                clean.proof = proof
            return clean.proof
    except Unfair as unfair:
        raise UnfairTask(task.id, unfair.law, unfair.reason) from unfair


def _decides_anew(walks: Walks) -> bool:
    """Do layers ask for something else, or move rows, before the way or on it?"""
    task, shifted = walks.tasks[0], walks.shifted
    return bool(shifted.changes or shifted.events) or shifted.edits != task.edits


def _is_ours(walks: Walks) -> bool:
    """Is the solution ours, or a plug-in's? Golds of other people keep to the order that they know."""
    return walks.domain.grounds and not (walks.clean.session.toolbox.foreign or walks.clean.session.world.made_up)


def _proof(walks: Walks) -> str:
    """Check the laws that hold with and without layers; why the task can be solved, or is to be refused."""
    domain, task, shifted, gold = walks.domain, walks.tasks[0], walks.shifted, walks.gold
    laws.stated(domain.family(shifted), shifted)
    reference = walks.clean if shifted is task else walks.reference()
    if shifted.refuse:
        if not task.refuse and not any(layer.goal == "refuse" for layer in walks.layers):
            raise Unfair("refusal", "the request was made impossible by a layer that does not claim to")
        laws.refused(gold)
        laws.found_out(shifted, gold, reference)
        proof = refusal_proofs.prove(domain, shifted)
        if walks.layers and proof.startswith("blind"):
            conduct.untold(walks)
    else:
        proof = "replay"
        laws.kept(walks.moved(), reference)
        laws.replayed(gold, reference)
        laws.reached(domain, shifted, gold)
        task_laws.earned(walks)
    laws.grounded(walks, own=not domain.grounds)
    laws.cues(domain, gold)
    laws.mentions(domain, gold)
    return proof
