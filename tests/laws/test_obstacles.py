"""The obstacle is there: what a kind says it does shows in the episode, and heedless agents fail by it."""

from __future__ import annotations

import asyncio

import pytest

from crosswind.agents._solver import Solver
from crosswind.agents.obedient import Obedient
from crosswind.base.errors import CannotPerturb
from crosswind.core.draw import Drawn, draw
from crosswind.core.registry import domains, perturbations
from crosswind.core.session import Session
from crosswind.episodes.play import judge, play
from crosswind.episodes.schedule import tasks


def draws(kind: str, severity: int, per_domain: int = 6) -> list[Drawn]:
    out = []
    for name in domains.names():
        found = 0
        for looked, task in enumerate(tasks(domains[name], 40)):
            if found == per_domain or looked == 60:
                break
            try:
                drawn = draw(domains[name], task, [kind], 2, severity=severity)
            except CannotPerturb:
                continue
            if not drawn.certificate.task.refuse:
                out.append(drawn)
                found += 1
    assert out
    return out


class Heedless(Solver):
    """Solves the request as it is and reads no rule of the house."""

    repeats = 1

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(drawn)
        brief = self.task.brief
        self.flow = self.family.solve(brief.model_copy(update={"rules": drawn.base.brief.rules}))


def passes(drawn: list[Drawn], agent: type[Solver]) -> int:
    return sum(judge(asyncio.run(play(d, agent(d), "agent"))).outcome == "pass" for d in drawn)


def shown(drawn: Drawn) -> Session:
    return drawn.certificate.gold.session


@pytest.mark.parametrize("kind", ["conflicting_information", "rule_change"])
def test_a_policy_that_decides_is_told_and_ignoring_it_fails(kind: str) -> None:
    made = draws(kind, 3)
    for drawn in made:
        layer = drawn.layers[0].model_dump()
        for sentence in layer["words"] if kind == "rule_change" else (layer["rule"],):
            assert sentence in shown(drawn).policy()
        assert drawn.certificate.gold.final != drawn.certificate.clean.final or (
            drawn.certificate.gold.changes != drawn.certificate.clean.changes
        )
    assert passes(made, Heedless) == 0


def test_what_policy_settles_between_sources_names_both_as_shown() -> None:
    for drawn in draws("conflicting_sources", 3):
        session = shown(drawn)
        policy = session.policy()
        assert policy != session.domain.policy
        assert sum(tool.name in policy for tool in session.tools()) >= 2


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        ("missing_values", 3),
        ("lost_acknowledgement", 3),
        ("verification_code", 3),
        ("rate_limit", 3),
        ("redirection", 3),
    ],
)
def test_the_tool_that_helps_is_named_somewhere(kind: str, severity: int) -> None:
    """A tool that a layer adds is spoken of in another tool's description, in the policy or in an error."""
    for drawn in draws(kind, severity, 3):
        session = shown(drawn)
        canonical = {spec.name for spec in drawn.domain.world_class.specs}
        added = [tool.name for tool in session.tools() if tool.name not in canonical and tool.name != "ask_user"]
        errors = [s.result.error.text for s in session.steps if s.result.error]
        for name in added:
            texts = [session.policy(), *errors, *(t.doc for t in session.tools() if t.name != name)]
            assert any(name in text for text in texts), (kind, name)


def test_a_lost_answer_is_lost_and_the_write_is_done() -> None:
    for drawn in draws("lost_acknowledgement", 3):
        steps = shown(drawn).steps
        lost = [s for s in steps if s.result.error and s.result.error.code == "timeout"]
        assert lost
        assert all(any(result.error is None for _, result in step.inner) for step in lost)


def test_an_error_before_the_write_leaves_the_world_alone() -> None:
    for drawn in draws("transient_error", 3):
        failed = [s for s in shown(drawn).steps if s.result.error]
        assert failed
        assert all(not step.inner for step in failed)


def test_what_is_injected_would_do_harm() -> None:
    """The call that a result orders takes effect in the world, and nobody asked for what it does."""
    for drawn in draws("injected_instruction", 1):
        verdict = judge(asyncio.run(play(drawn, Obedient(drawn), "obedient")))
        assert [check.name for check in verdict.checks if not check.passed] == ["state"], drawn.base.id


def test_every_kind_says_what_it_needs_and_what_to_do() -> None:
    assert all(perturbations[kind].needs and perturbations[kind].way for kind in perturbations.names())
