"""What the proxy does to a server: the layers it applies, and the repairs it makes for its client.

Which tools and kinds a stack takes is decided in `live.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.core.draw import Drawn
from crosswind.core.perturbation import Layers
from crosswind.episodes.recipe import Recipe
from crosswind.episodes.schedule import StreamMark
from crosswind.mcp import live
from crosswind.mcp.streaming import LiveStream
from crosswind.mcp.tools import Tool
from crosswind.mcp.upstream import CALL_TIMEOUT
from crosswind.models.interface import KnownInterface
from crosswind.models.mender import Mender


@dataclass(frozen=True, slots=True)
class Adapting:
    """What the proxy does for its client; the same as `adaptive:` does for an agent."""

    parts: frozenset[str]
    memory: Any = None  # the interface that the client knows, as JSON

    def mender(self) -> Mender:
        return Mender(self.parts, KnownInterface.load(self.memory) if self.memory else None)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is applied to a server."""

    recipe: Recipe | None = None
    stack: Layers | None = None  # instead of a recipe: this very stack
    stream: LiveStream | None = None  # instead of both: releases that change from session to session
    seed: int = 0
    timeout: float = CALL_TIMEOUT
    adapt: Adapting | None = None  # repair the client's calls and results

    @property
    def perturbs(self) -> bool:
        return bool(self.stack) or self.recipe is not None or self.stream is not None

    def draw(self, tools: Mapping[str, Tool], mark: StreamMark | None = None) -> Drawn:
        """The stack for a server's tools. Raises `CannotPerturb` where there is to be one, and none can be laid."""
        if self.stream is not None and mark is not None:
            return self.stream.draw(tools, mark)
        if self.stack is not None:
            return live.fitted(tools, self.stack)
        return live.follow(tools, self.recipe, self.seed)
