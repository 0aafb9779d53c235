"""Draw one certified stack of named kinds over a task, without an audit of the kinds (`draw.py` adds that).

Layers are drawn from the world outwards, each on what those before it leave, each from a generator of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from crosswind.base.errors import CannotPerturb, CrosswindError, Unfair, UnfairTask
from crosswind.core import laws, refusal_proofs
from crosswind.core.certify import Certificate, blaming_the_task, certify
from crosswind.core.domain import Domain, Family
from crosswind.core.flow import rng_for
from crosswind.core.memory import Recall
from crosswind.core.oracle import Walk, Walks, walk
from crosswind.core.perturbation import SEVERITIES, Layers, place
from crosswind.core.registry import perturbations
from crosswind.core.types import ASK, SAY, Step, Task, ToolSpec

ATTEMPTS = 4
SEVERITY = 3  # where none is named


@dataclass(frozen=True, slots=True)
class Drawn:
    """A certified stack over a task."""

    domain: Domain
    base: Task
    layers: Layers
    certificate: Certificate
    left_out: tuple[str, ...] = ()  # kinds that found nothing to bite on or do not stack, with the reason
    refused: tuple[Unfair, ...] = ()  # draws before this one that broke a law
    walks: int = 0  # the oracle's walks it took
    recall: Recall | None = None  # of an episode in a career

    def __repr__(self) -> str:
        kinds = ", ".join(layer.kind for layer in self.layers) or "clean"
        return f"<Drawn {self.base.id}: {kinds}; proof: {self.certificate.proof}>"


class DrawScene:
    """What a layer may look at when it is drawn (see `perturbation.Scene`)."""

    def __init__(self, walks: Walks) -> None:
        self.walks, self.n = walks, len(walks.layers)

    @property
    def domain(self) -> Domain:
        return self.walks.domain

    @property
    def task(self) -> Task:
        return self.walks.tasks[self.n]

    @property
    def family(self) -> Family:
        return self.domain.family(self.task)

    @property
    def gold(self) -> list[Step]:
        return self.walks.at(self.n).calls

    @cached_property
    def _every(self) -> dict[str, ToolSpec]:
        """Every tool of the episode by name, as it is when it first appears."""
        moments = sorted({0, *(n for layer in self.walks.layers[: self.n] if layer.retools for n in layer.turns())})
        out: dict[str, ToolSpec] = {}
        for nth in moments:
            for tool in self.walks.shown(self.n, nth):
                out.setdefault(tool.name, tool)
        return out

    @cached_property
    def tools(self) -> Mapping[str, ToolSpec]:
        return {name: tool for name, tool in self._every.items() if tool.listed}

    @property
    def names(self) -> set[str]:
        return set(self._every)

    @property
    def _latest(self) -> int:
        """The last walk made so far that leads the same way."""
        latest = max((n for n in self.walks.made if n <= self.n), default=0)
        if self.walks.tasks[latest] is not self.task or any(layer.turns() for layer in self.walks.layers[latest:]):
            return self.n  # another request, or tools that come and go, may lead another way
        return latest

    @property
    def answers(self) -> bool:
        latest = self.walks.at(self._latest)
        return latest.session.world.made_up or _answered(latest.calls) or _answered(self.gold)

    @property
    def path(self) -> list[str]:
        latest = self._latest
        session = self.walks.at(latest).session
        called = dict.fromkeys(step.call.tool for step in session.steps if step.call.tool not in (ASK, SAY))
        shown = self.tools
        if latest == self.n:
            return [name for name in called if name in shown]
        order = dict.fromkeys(session.specs[name].ids for name in called if name in session.specs)
        return [tool.name for ids in order for tool in shown.values() if tool.ids & ids]

    def lasts(self, task: Task) -> int:
        return len(walk(self.domain, task).steps)

    def provable(self, task: Task) -> bool:
        try:
            laws.refused(walk(self.domain, task))
            refusal_proofs.prove(self.domain, task)
        except Unfair:
            return False
        return True


def _answered(steps: list[Step]) -> bool:
    return any(step.result.error is None and step.result.content for step in steps)


def draw_unaudited(
    domain: Domain,
    task: Task,
    kinds: Iterable[str | tuple[str, int]],
    seed: int,
    *,
    severity: int = SEVERITY,
    strict: bool = True,
    clean: Walk | None = None,
) -> Drawn:
    """One certified stack of kinds, which nobody has audited; see `draw`."""
    wanted = outwards((k, severity) if isinstance(k, str) else k for k in kinds)
    refused: list[Unfair] = []
    for attempt in range(ATTEMPTS):
        walks = Walks(domain, task, clean)
        try:
            with blaming_the_task(walks):
                left_out = _stack(walks, wanted, (seed, attempt), strict=strict)
            certificate = certify(domain, task, walks.layers, walks)
        except UnfairTask as unfair:
            raise CannotPerturb(str(unfair), law=unfair.law, at_fault="task") from unfair
        except Unfair as unfair:
            refused.append(unfair)
            clean = walks.made.get(0)
            continue
        return Drawn(domain, task, walks.layers, certificate, tuple(left_out), tuple(refused), walks.count)
    names = ", ".join(kind for kind, _ in wanted)
    last = refused[-1]
    raise CannotPerturb(
        f"no fair draw of {names} for {task.id} in {ATTEMPTS} attempts (last: {last}); "
        "lower the severity, or leave a kind out",
        law=last.law,
    )


def _stack(walks: Walks, wanted: Sequence[tuple[str, int]], salt: tuple[int, int], *, strict: bool) -> list[str]:
    """Draw the layers one after the other; what comes back was left out."""
    out: list[str] = []
    for kind, severity in wanted:
        if why := extend(walks, kind, severity, salt):
            if strict:
                raise CannotPerturb(why, applies=False)
            out.append(why)
    return out


def outwards(kinds: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Kinds with their severities, sorted as their layers are drawn: from the world outwards."""
    return sorted(kinds, key=lambda pair: place(perturbations[pair[0]]))


def extend(walks: Walks, kind: str, severity: int, salt: tuple[int, int]) -> str:
    """Draw one more layer and add it. Returns the reason if there is none; `salt` is a seed and an attempt's number."""
    cls, task = perturbations[kind], walks.tasks[0]
    if severity not in SEVERITIES:
        raise CannotPerturb(f"severity of {kind} is {severity}; expected 1 to 5", applies=False)
    if cls.group and any(layer.group == cls.group for layer in walks.layers):
        return f"{kind} does not stack with another of the group {cls.group!r}: leave one of them out"
    seed, attempt = salt
    parts = ("draw", seed, task.id, kind, attempt)
    layer = cls.sample(DrawScene(walks), rng_for(*parts), severity)
    if layer is None:
        return f"{kind} does not apply to {task.id}" + (f": it needs {cls.needs}" if cls.needs else "")
    walks.add(layer)
    return ""


def parse_kind(text: str, default: int = SEVERITY) -> tuple[str, int]:
    """The kind and severity that KIND or KIND:SEVERITY stands for."""
    kind, colon, severity = text.partition(":")
    perturbations[kind]  # raises `UnknownName`, which suggests near names
    if colon and severity not in map(str, SEVERITIES):
        raise CrosswindError(
            f"{text!r}: the severity {severity!r} is not one of 1 to 5; expected KIND or KIND:SEVERITY"
        )
    return kind, int(severity or default)
