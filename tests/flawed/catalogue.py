"""Every agent with a planted flaw, by name. Only tests and benches use them, so they are in no registry."""

from __future__ import annotations

from tests.flawed import feedback, fresh, interface, limits, mixed, planning, reported, varied
from tests.flawed.walker import FLAWED

__all__ = ["FLAWED", "feedback", "fresh", "interface", "limits", "mixed", "planning", "reported", "varied"]
