"""A plug-in for pytest: run an agent over a suite, and the gate, inside a test.

    def test_my_agent(crosswind_evaluate, crosswind_gate):
        run = crosswind_evaluate(my_agent, "tiers", limit=200)
        crosswind_gate(run, "all=0.10", "tier=0.15", min_clean=0.7)

Fixtures:

- `crosswind_evaluate(agent, suite="quick", ...)` is `crosswind.evaluate`, writing into a folder of the test;
- `crosswind_gate(run, *rules, ...)` fails the test if the gate fails, skips it if the verdict is inconclusive, and
  raises if infrastructure left no verdict;
- `crosswind_run` is the run that `--crosswind-run DIR` names; without the option its tests are skipped.
  `crosswind_baseline` is the same for `--crosswind-baseline DIR`.

pytest loads this module in every session where crosswind is installed, so it imports nothing before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from crosswind.api.run import Run
    from crosswind.gate.gate import Outcome


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
    from crosswind.api.run import load_run

    folder = request.config.getoption(option)
    if folder is None:
        pytest.skip(f"needs {option} DIR")
    return load_run(folder)


@pytest.fixture
def crosswind_evaluate(tmp_path: Path) -> Callable[..., Run]:
    """`crosswind.evaluate`, writing into a folder of the test unless `out` names another."""
    from crosswind.api.evaluate import evaluate

    def evaluated(agent: object, suite: str = "quick", *, out: Path | str | None = None, **options: Any) -> Run:
        return evaluate(agent, suite, out=out or tmp_path / "crosswind-run", **options)

    return evaluated


@pytest.fixture
def crosswind_gate() -> Callable[..., Outcome]:
    """`Run.gate` as an assertion: rules such as "tier=0.10", and its keywords."""
    from crosswind.base.errors import InfrastructureError

    def judged(run: Run, *rules: str, **demands: Any) -> Outcome:
        outcome = run.gate(rules, **demands)
        if outcome.verdict == "infrastructure":
            raise InfrastructureError(str(outcome))
        if outcome.verdict == "fail":
            pytest.fail(str(outcome), pytrace=False)
        if outcome.verdict == "inconclusive":
            pytest.skip(str(outcome))
        return outcome

    return judged
