"""One episode from Python: draw it, certify it, play it, judge it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crosswind.api.arguments import at_least, naming_arguments
from crosswind.api.evaluate import agent_settings, blocking
from crosswind.base.errors import CrosswindError, UnknownName
from crosswind.core import certify as certificates
from crosswind.core import draw as draws
from crosswind.core.audit import examine, is_auditable
from crosswind.core.certify import Certificate
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import SEVERITY, Drawn
from crosswind.core.perturbation import Perturbation, load_layers
from crosswind.core.registry import did_you_mean, domains
from crosswind.core.types import SPLITS, Ending, Split, Task, Trajectory, Verdict
from crosswind.episodes import play as plays
from crosswind.episodes.record import Record, trajectory_of
from crosswind.episodes.schedule import Episode
from crosswind.episodes.suite import CLEAN
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.runs import runner

Perturb = Iterable[str | tuple[str, int]] | str


@naming_arguments
def draw(
    domain: str | Domain,
    task: str | Task = "",
    perturb: Perturb = (),
    *,
    seed: int = 0,
    severity: int = SEVERITY,
    split: Split = "test",
    size: int = SIZE,
    strict: bool = True,
) -> Drawn:
    """Draw a task under perturbations, with the certificate that it is fair.

    >>> import crosswind as cw
    >>> drawn = cw.draw("poi", "book_visit", ["semantic_rename:2", "lost_acknowledgement"], seed=1)
    >>> [layer.kind for layer in drawn.layers], drawn.certificate.proof
    (['lost_acknowledgement', 'semantic_rename'], 'replay')

    `task` is a family, by default one that the seed chooses, or a `Task`. `perturb` names kinds, each with a severity
    if it is written "kind:severity".

    Args:
        severity: Severity of kinds that come without one, 1 to 5.
        split: Entities of the world: "train", "dev" or "test".
        size: Entities in the world.
        strict: Raise `CannotPerturb` where a kind does not apply; otherwise it is left out (`drawn.left_out`).
    """
    at_least(0, seed=seed)
    at_least(1, size=size)
    here = _domain(domain)
    named = [perturb] if isinstance(perturb, str) else perturb
    kinds = [draws.parse_kind(one, severity) if isinstance(one, str) else one for one in named]
    return draws.draw(here, task_of(here, task, seed, split, size), kinds, seed, strict=strict)


def certify(
    domain: str | Domain,
    task: str | Task,
    layers: Sequence[Perturbation | Mapping[str, Any]] = (),
    *,
    seed: int = 0,
) -> Certificate:
    """Certify given perturbations over a task, or raise `Unfair` with the law they break.

    >>> import crosswind as cw
    >>> drawn = cw.draw("poi", "book_visit", ["semantic_rename"], seed=1)
    >>> cw.certify("poi", drawn.base, cw.dump_layers(drawn.layers)).proof
    'replay'

    `layers` are perturbations or their JSON. All laws are checked, those included that a draw leaves to the audit.
    """
    here = _domain(domain)
    stack = [one if isinstance(one, Perturbation) else load_layers([dict(one)], "layers")[0] for one in layers]
    base = task_of(here, task, seed, "test", SIZE)
    certificate = certificates.certify(here, base, stack)
    if stack and is_auditable(here):
        examine(Drawn(here, base, tuple(stack), certificate))
    return certificate


@naming_arguments
async def aplay(
    agent: object,
    drawn: Drawn | None = None,
    *,
    domain: str | Domain = "poi",
    family: str = "",
    perturb: Perturb = (),
    seed: int = 0,
    settings: AgentSettings | Mapping[str, Any] | None = None,
    ending: Ending | None = None,
    episode_timeout: float | None = None,
) -> Record:
    """Play one episode and return its record: what happened, the verdict, and the cause if it failed.

    >>> import crosswind as cw
    >>> episode = cw.play("retrier", domain="poi", family="book_visit", perturb=["semantic_rename:3"], seed=1)
    >>> episode.outcome, episode.kinds, episode.exposed
    ('fail', ('semantic_rename',), True)

    `aplay` does the same in a running event loop:

    >>> import asyncio
    >>> asyncio.run(cw.aplay("oracle", domain="retail", seed=3)).outcome
    'pass'

    `agent` and `ending` are what `evaluate` takes. The episode is one that `draw` gave, or is drawn from the keywords.
    `show` prints it.
    """
    if drawn is None:
        drawn = draw(domain, family, perturb, seed=seed)
    elif not isinstance(drawn, Drawn):
        raise CrosswindError(
            f"play was given {type(drawn).__name__} to play; expected what `draw` returns, or keywords"
        )
    source = open_agent(agent, agent_settings(settings), ending)
    condition = "+".join(layer.kind for layer in drawn.layers) or CLEAN
    episode = Episode(condition, drawn.base.id, drawn)
    try:
        return await runner.play_episode(episode, source, seed=seed, seconds=episode_timeout)
    finally:
        await source.aclose()


play = blocking(aplay)


def judge(episode: Record | Trajectory) -> Verdict:
    """Judge a stored episode again: its calls are replayed in a fresh world, and the end is compared.

    >>> import crosswind as cw
    >>> cw.judge(cw.play("oracle", seed=1)).outcome
    'pass'
    """
    return plays.judge(episode if isinstance(episode, Trajectory) else trajectory_of(episode))


def show(episode: Record) -> str:
    """Return an episode as text: what the agent saw, what the world saw, and the certified solution.

    >>> import crosswind as cw
    >>> print(cw.show(cw.play("oracle", domain="poi", family="best_price", seed=1)))  # doctest: +ELLIPSIS
    1  poi/best_price/test/1|clean|0
    played by oracle
    ...
    PASS
    <BLANKLINE>
    """
    from crosswind.report.show import episode as print_episode
    from crosswind.report.table import printed
    from crosswind.runs.reading import read

    return printed(lambda console: print_episode(console, read(episode), 1))


# ---------------------------------------------------------------- what was meant


def _domain(domain: str | Domain) -> Domain:
    return domains[domain] if isinstance(domain, str) else domain


def task_of(domain: Domain, task: str | Task, seed: int, split: str = "test", size: int = SIZE) -> Task:
    """A task, or that of a family; the seed chooses the family where none is named."""
    if isinstance(task, Task):
        return task
    names = list(domain.families)
    family = task or names[seed % len(names)]
    if family not in domain.families:
        raise UnknownName(f"no family {family!r} in {domain.name}; {did_you_mean(family, names)}")
    if split not in SPLITS:
        raise UnknownName(f"no split {split!r}; {did_you_mean(split, list(SPLITS))}")
    return domain.task(family, seed, size=size, split=split)
