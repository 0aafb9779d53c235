"""A plug-in for pytest: an agent over a suite, and the gate, inside a test.

    def test_my_agent(crosswind_evaluate, crosswind_gate):
        run = crosswind_evaluate(my_agent, "tiers", limit=200)
        crosswind_gate(run, "all=0.10", "tier=0.15", min_clean=0.7)

Fixtures:

- `crosswind_evaluate(agent, suite="quick", ...)` plays an agent and gives the run. The agent is a spec, as for
  `crosswind run --agent`, or `async def agent(query, tools) -> str`;
- `crosswind_gate(run, *rules, ...)` fails the test where the gate fails, skips it where the pairs do not decide, and
  raises where infrastructure left no verdict;
- `crosswind_run` is the run that `--crosswind-run DIR` names; its tests are skipped without that option.
  `crosswind_baseline` is the same for `--crosswind-baseline DIR`.

pytest loads this module in every session where crosswind is installed, so it imports nothing before it is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from crosswind.gate.gate import Outcome
    from crosswind.models.base import AgentSource
    from crosswind.runs.store import Run

    Callee = Callable[[str, Any], Awaitable[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crosswind")
    group.addoption("--crosswind-run", metavar="DIR", help="the run that the fixture crosswind_run gives")
    group.addoption("--crosswind-baseline", metavar="DIR", help="the run that the fixture crosswind_baseline gives")


@pytest.fixture(scope="session")
def crosswind_run(request: pytest.FixtureRequest) -> Run:
    """The run that `--crosswind-run` names."""
    return _given(request, "--crosswind-run")


@pytest.fixture(scope="session")
def crosswind_baseline(request: pytest.FixtureRequest) -> Run:
    """The run that `--crosswind-baseline` names."""
    return _given(request, "--crosswind-baseline")


def _given(request: pytest.FixtureRequest, option: str) -> Run:
    from crosswind.runs.store import load_run

    folder = request.config.getoption(option)
    if folder is None:
        pytest.skip(f"needs {option} DIR")
    return load_run(folder)


@pytest.fixture
def crosswind_evaluate(tmp_path: Path) -> Callable[..., Run]:
    """`evaluate`, writing into a folder of the test unless told otherwise."""

    def evaluated(agent: str | Callee, suite: str = "quick", *, out: Path | str | None = None, **settings: Any) -> Run:
        return evaluate(agent, suite, out or tmp_path / "crosswind-run", **settings)

    return evaluated


@pytest.fixture
def crosswind_gate() -> Callable[..., Outcome]:
    """`check`: the gate as an assertion."""
    return check


# ---------------------------------------------------------------- what the fixtures do


def evaluate(
    agent: str | Callee,
    suite: str,
    out: Path | str,
    *,
    seed: int = 0,
    trials: int = 1,
    limit: int | None = None,
    concurrency: int | None = None,
    episode_timeout: float | None = None,
) -> Run:
    """Play an agent over a suite into a folder, or go on with the run that is there."""
    import asyncio

    from crosswind.episodes.suite import load_suite
    from crosswind.runs.runner import Limits, run
    from crosswind.runs.store import load_run

    async def played() -> None:
        source = _source(agent)
        try:
            await run(
                load_suite(suite),
                source,
                out,
                seed=seed,
                trials=trials,
                limit=limit,
                concurrency=concurrency,
                limits=Limits(episode=episode_timeout),
            )
        finally:
            await source.aclose()

    asyncio.run(played())
    return load_run(out)


def _source(agent: str | Callee) -> AgentSource:
    """Where the agents come from: a spec says so, and a callable is its own."""
    import os

    from crosswind.models.base import AgentSettings
    from crosswind.models.python_agent import KEYS, PythonAgents
    from crosswind.models.redact import Secrets
    from crosswind.models.spec import open_agent

    if isinstance(agent, str):
        return open_agent(agent, AgentSettings())

    class Given(PythonAgents):
        """A callable that is here already."""

        def __init__(self, callee: Callee) -> None:
            called = f"{callee.__module__}:{getattr(callee, '__qualname__', type(callee).__qualname__)}"
            self.name, self.price, self.settings = f"python:{called}", None, {"callable": called}
            self.callee, self.secrets = callee, Secrets(*(os.environ.get(name) for name in KEYS))

    return Given(agent)


def check(
    run: Run,
    *rules: str,
    baseline: Run | None = None,
    min_clean: float | None = None,
    max_errors: float | None = None,
) -> Outcome:
    """Judge a run by rules such as `tier=0.10`: fails or skips the test, or gives what the gate says."""
    from crosswind.base.errors import InfrastructureError
    from crosswind.base.terminal import safe
    from crosswind.gate.gate import MOST_ERRORS, examine, parse_rule

    outcome = examine(
        run.records,
        [parse_rule(text) for text in rules],
        baseline=None if baseline is None else baseline.records,
        min_clean=min_clean,
        max_errors=MOST_ERRORS if max_errors is None else max_errors,
        unfinished=[f"{r.folder}: {r.lacks}" for r in (run, baseline) if r and r.lacks],
    )
    lines = [outcome.says, *(f.says for f in outcome.findings if f.verdict == outcome.verdict), *outcome.notes]
    text = safe("\n".join(lines))
    if outcome.verdict == "infrastructure":
        raise InfrastructureError(text)
    if outcome.verdict == "fail":
        pytest.fail(text, pytrace=False)
    if outcome.verdict == "inconclusive":
        pytest.skip(text)
    return outcome
