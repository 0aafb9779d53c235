"""What every registered perturbation and domain must satisfy. A new one is tested the moment it exists."""

from __future__ import annotations

import asyncio
import json
from functools import lru_cache

import pytest

from crosswind.agents.memoriser import Memoriser
from crosswind.agents.oracle import Oracle
from crosswind.base.errors import CannotPerturb
from crosswind.core.audit import audit_domain, examine
from crosswind.core.certify import certify
from crosswind.core.domain import Domain
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import rng_for
from crosswind.core.perturbation import RANKS, SEVERITIES, Perturbation, dump_layers, load_layers
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import AXES, TIERS, Task, ToolSpec
from crosswind.episodes.play import judge, play
from crosswind.episodes.recipe import random_kinds

EVERY = [(domain, kind) for domain in domains.names() for kind in perturbations.names()]

SEEDS = 5  # draws of a kind at a severity in a domain


@pytest.fixture(scope="module", params=EVERY, ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A domain and a kind. Its scope makes the tests of a pair run one after the other, on the same draws."""
    chosen: tuple[str, str] = request.param
    return chosen


@lru_cache(maxsize=len(SEVERITIES))
def draws(name: str, kind: str, severity: int) -> list[Drawn]:
    """Some certified draws of a kind; none of those that were fair to try may be given up."""
    domain, out = domains[name], list[Drawn]()
    names = list(domain.families)
    wanted = 8 if severity == 3 else SEEDS  # most laws are looked at in the middle
    for n in range(4 * len(names)):
        if len(out) == wanted:
            break
        task = domain.task(names[(7 * n + severity) % len(names)], 100 * severity + n)
        try:
            out.append(draw(domain, task, [kind], n, severity=severity))
            if len(out) < 3:
                examine(out[-1], [(kind, severity)], n)
        except CannotPerturb as cannot:
            if cannot.applies:
                raise
    return out


def test_every_kind_keeps_every_law(pair: tuple[str, str]) -> None:
    name, kind = pair
    domain = domains[name]
    for severity in SEVERITIES:
        found = draws(name, kind, severity)
        assert len(found) >= SEEDS, f"{kind} at {severity} was drawn {len(found)} times in {name}"
        for drawn in found:
            where = (drawn.base.id, severity)
            clean = drawn.certificate.clean
            again = draw(domain, drawn.base, [kind], _seed(drawn), severity=severity, clean=clean)
            assert again.layers == drawn.layers, where  # seeded
            stored = json.loads(json.dumps(dump_layers(drawn.layers)))
            loaded = load_layers(stored)
            assert loaded == drawn.layers, where
            replayed = certify(domain, drawn.base, loaded)
            assert replayed.gold.steps == drawn.certificate.gold.steps, where  # the JSON is the replay


def _seed(drawn: Drawn) -> int:
    """`draws` seeds by position, and the world seed tells it."""
    return drawn.base.seed % 100


def test_oracle_passes_and_the_receipts_say_so(pair: tuple[str, str]) -> None:
    for drawn in draws(*pair, 3):
        trajectory = asyncio.run(play(drawn, Oracle(drawn), "oracle"))
        assert judge(trajectory).outcome == "pass", trajectory
        assert [r.kind for r in trajectory.receipts] == [layer.kind for layer in drawn.layers]
        assert all(r.fired and r.seen for r in trajectory.receipts)


def required(spec: ToolSpec) -> set[str]:
    return {name for name, param in spec.params.items() if param.required}


def test_stale_gold_fails_where_a_name_or_parameter_changed(pair: tuple[str, str]) -> None:
    """The clean calls, sent to the perturbed session, are no longer enough."""
    domain = domains[pair[0]]
    for drawn in draws(*pair, 3):
        if drawn.certificate.task.refuse:
            continue  # anyone who fails and gives up is right there
        shown = {t.name: t for t in drawn.certificate.gold.session.tools()}
        clean = {step.call.tool for step in drawn.certificate.clean.calls}
        canonical = {t.name: t for t in domain.world_class.specs}

        changed = [t for t in clean if t not in shown or required(shown[t]) != required(canonical[t])]
        if not changed:
            continue
        trajectory = asyncio.run(play(drawn, Memoriser(drawn), "memoriser"))
        assert judge(trajectory).outcome == "fail", (drawn.base.id, changed)


@pytest.mark.parametrize("kind", perturbations.names())
def test_every_kind_says_what_it_is(kind: str) -> None:
    cls = perturbations[kind]
    assert cls.model_fields["kind"].default == kind
    assert cls.__module__.endswith(f"perturbations.{cls.axis}.{kind}")  # one file, named by its kind
    assert cls.axis in AXES
    assert cls.tier in TIERS
    assert cls.rank in RANKS
    assert (cls.__doc__ or "").strip().endswith(".")
    assert cls.severities.endswith(".")
    assert issubclass(cls, Perturbation)


@pytest.mark.parametrize("name", domains.names())
def test_random_stacks_are_certified_and_passed(name: str) -> None:
    domain = domains[name]
    names = list(domain.families)
    sizes = set()
    for n in range(150):
        task = domain.task(names[n % len(names)], 5000 + n)
        drawn = draw(domain, task, random_kinds(rng_for("laws", n), 4), n, strict=False)
        sizes.add(len(drawn.layers))
        trajectory = asyncio.run(play(drawn, Oracle(drawn), "oracle"))
        assert judge(trajectory).outcome == "pass", (task.id, drawn.layers)
    assert {1, 2, 3} <= sizes


def test_a_layer_does_not_move_the_stream_of_another(pair: tuple[str, str]) -> None:
    """`transient_error` looks at the way alone; beside a layer further out its draw stays the same."""
    name, kind = pair
    domain = domains[name]
    for drawn in draws(name, kind, 3)[:3] if kind != "transient_error" else ():
        alone = _draw(domain, drawn.base, ["transient_error"])
        both = _draw(domain, drawn.base, ["transient_error", kind])
        if alone is None or both is None or len(both.layers) < 2:
            continue
        inner = [type(layer).rank for layer in both.layers]
        one = next(layer for layer in both.layers if layer.kind == "transient_error")
        if inner.index("fault") == 0:  # the other stands further out
            assert one == alone.layers[0]


def _draw(domain: Domain, task: Task, kinds: list[str]) -> Drawn | None:
    try:
        return draw(domain, task, kinds, 11)
    except CannotPerturb:
        return None


@pytest.mark.parametrize("name", domains.names())
def test_a_change_of_mind_ends_alike_whenever_it_comes(name: str) -> None:
    domain = domains[name]
    met = 0
    for seed in range(6):
        for family in domain.families:
            task = domain.task(family, seed)
            try:
                drawn = draw(domain, task, ["changed_mind"], seed, severity=1)
            except CannotPerturb:
                continue
            ends = {json.dumps(sorted(map(repr, drawn.certificate.gold.changes.items())))}
            for severity in (2, 3, 4, 5):
                later = draw(domain, task, ["changed_mind"], seed, severity=severity)
                assert later.layers[0].model_dump() | {"after": ""} == drawn.layers[0].model_dump() | {"after": ""}
                ends.add(json.dumps(sorted(map(repr, later.certificate.gold.changes.items()))))
            assert len(ends) == 1, task.id
            met += 1
    assert met >= 40


@pytest.mark.parametrize("name", domains.names())
def test_every_domain_keeps_every_law(name: str) -> None:
    """Footprints of all tools, clean certificates, ties, and agents that call nothing."""
    assert audit_domain(domains[name]) == []
