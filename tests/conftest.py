"""What holds for every test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of pytest-xdist set COLUMNS, which tables obey."""
    monkeypatch.delenv("COLUMNS", raising=False)
