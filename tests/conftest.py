"""What holds for every test."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


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
