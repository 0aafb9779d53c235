"""What holds for every test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for numpy and torch, here and in child processes: tests have the cores


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, since many tests wait: for a process to start or a time limit to pass."""
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@pytest.fixture(autouse=True)
def usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of pytest-xdist set COLUMNS, which tables obey."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """SIGINT raises, here and in child processes: one who starts the tests in the background lets it be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
