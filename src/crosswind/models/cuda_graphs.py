"""Passes of a model over a batch, captured as CUDA graphs where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(slots=True)
class GraphPool:
    """The memory that all graphs of a device share: nothing in it outlives a replay."""

    device: Any
    captures: bool  # whether passes are captured at all
    memory: Any = None


class Pass:
    """A pass of one size: its numbers, which are in one place on the device, and on a GPU the graph of its work."""

    def __init__(self, pool: GraphPool, empty: Any, work: Callable[[Any], None]) -> None:
        self.empty, self.work = empty, work
        self.meta = torch.from_numpy(empty.copy()).to(pool.device)
        self.graph: Any = None
        if pool.captures:
            self._capture(pool)

    def _capture(self, pool: GraphPool) -> None:
        """Run the work on nobody's slot, to have all libraries ready, and once more to keep it as a graph."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.work(self.meta)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool.memory, capture_error_mode="thread_local"):
            self.work(self.meta)
        pool.memory = pool.memory or graph.pool()
        self.graph = graph

    def run(self, numbers: Any, times: int = 1) -> None:
        self.meta.copy_(sent(numbers, self.meta.device), non_blocking=True)
        for _ in range(times):
            if self.graph is None:
                self.work(self.meta)
            else:
                self.graph.replay()


def sent(numbers: Any, device: Any) -> Any:
    """An array on a device. A GPU gets it by way of pinned memory, so that the host need not wait for its queue."""
    values = torch.from_numpy(numbers)
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values
