"""Several processes of one training that agree at every step: what each has is gathered, gradients are summed.

`torchrun` or `accelerate launch` starts them; each has a device of its own. With one process nothing happens here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import distributed

T = TypeVar("T")
PATIENCE = timedelta(hours=2)  # for the slowest process


class Processes:
    """This process among those of its run."""

    def __init__(self, device: str) -> None:
        self.count, self.rank = int(os.environ.get("WORLD_SIZE") or 1), int(os.environ.get("RANK") or 0)
        if device == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK") or 0))
        if self.count > 1 and not distributed.is_initialized():
            distributed.init_process_group("nccl" if device == "cuda" else "gloo", timeout=PATIENCE)

    @property
    def main(self) -> bool:
        return self.rank == 0

    def share(self, items: list[T]) -> list[T]:
        """This process's part of a list."""
        return items[self.rank :: self.count]

    def gathered(self, mine: T) -> list[T]:
        """What every process has, by rank."""
        if self.count == 1:
            return [mine]
        every: list[Any] = [None] * self.count
        distributed.all_gather_object(every, mine)
        return every

    def together(self, parts: Iterable[list[T]]) -> list[T]:
        """The parts of a list in the order that it had before it was shared."""
        held = [list(part) for part in parts]
        return [held[n % self.count][n // self.count] for n in range(sum(map(len, held)))]

    def add_up(self, tensors: Iterable[Any]) -> None:
        """Put the sum over all processes in the place of each tensor."""
        if self.count == 1:
            return
        listed = list(tensors)
        flat = torch.cat([tensor.flatten().float() for tensor in listed])
        distributed.all_reduce(flat)
        for tensor, part in zip(listed, flat.split([tensor.numel() for tensor in listed]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def wait(self) -> None:
        """Wait until every process has come here."""
        if self.count > 1:
            distributed.barrier()
