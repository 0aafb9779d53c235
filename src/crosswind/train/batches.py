"""Batches as a function of a configuration and a number: what a loader's workers make, and what a resumed run goes on
with.

Demonstrations are drawn a buffer at a time, some batches together, sorted by length and cut into batches, so that rows
of one batch are about equally long. Nothing is remembered from one buffer to the next: the nth is the same in every
process, however many there are and wherever a run begins. With several devices each takes every Nth buffer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crosswind.core.flow import rng_for
from crosswind.models.native import script_for
from crosswind.models.prompts import Script
from crosswind.train.config import TrainConfig
from crosswind.train.data import DataConfig, demonstration_at
from crosswind.train.rows import Row, Tokens, rows, tokens

Ints = NDArray[np.int32]


class Batch(NamedTuple):
    """Rows padded on the right, and where in them something is learnt.

    Right padding needs no mask under causal attention: no token that counts ever looks at what follows it.
    """

    ids: Ints  # rows x length
    places: Ints  # in the rows laid end to end: the tokens from which the next one is predicted
    targets: Ints  # what follows at each of the places
    real: int  # tokens that are not padding

    @property
    def size(self) -> int:
        """Tokens, padding included."""
        return int(self.ids.size)


class Buffer(NamedTuple):
    """Some batches that were drawn together, and what was left out of them."""

    batches: list[Batch]
    demonstrations: int
    perturbed: int
    left_out: Counter[str]  # reason -> draws


def collate(rows: Sequence[Tokens], pad: int, multiple: int) -> Batch:
    """Rows of tokens as one batch."""
    longest = max(len(row.ids) for row in rows)
    width = -(-longest // multiple) * multiple
    ids = np.full((len(rows), width), pad, dtype=np.int32)
    places: list[Ints] = []
    targets: list[Ints] = []
    for n, row in enumerate(rows):
        here = np.asarray(row.ids, dtype=np.int32)
        ids[n, : len(here)] = here
        learnt = np.flatnonzero(np.asarray(row.mask)[1:]).astype(np.int32)  # predicted from the token before
        places.append(learnt + np.int32(n * width))
        targets.append(here[learnt + 1])
    return Batch(ids, np.concatenate(places), np.concatenate(targets), sum(len(row.ids) for row in rows))


class Buffers:
    """The buffers of a run by number; picklable, so that worker processes can make them."""

    def __init__(self, data: DataConfig, tokenizer: Any, config: TrainConfig, total: int, *, micro: int) -> None:
        self.data, self.tokenizer, self.total = data, tokenizer, total  # of demonstrations, for the curriculum
        self.multiple, self.each, self.count = config.pad_to, micro, config.buffer
        self.pad, self.protocol = int(tokenizer.pad_token_id), config.protocol
        self._script: Script | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_script": None}  # made again where it is needed

    @property
    def script(self) -> Script:
        self._script = self._script or script_for(self.tokenizer, self.protocol)
        return self._script

    def __getitem__(self, number: int) -> Buffer:
        wanted = self.each * self.count
        found: list[Tokens] = []
        counts: Counter[str] = Counter()
        perturbed = 0
        for index in range(number * wanted, (number + 1) * wanted):
            made: list[Tokens] = []

            def measure(row: Row, made: list[Tokens] = made) -> int:
                made.append(tokens(row, self.script))
                return len(made[-1].ids)

            shown = demonstration_at(self.data, index, min(1.0, index / self.total), measure=measure, counts=counts)
            some = rows(shown)
            found += made[-len(some) :] or [
                tokens(row, self.script) for row in some
            ]  # without a limit none was measured
            perturbed += bool(shown.meta["kinds"])
        found.sort(key=lambda row: len(row.ids))
        cuts = np.linspace(0, len(found), self.count + 1).round().astype(int)
        groups = [found[a:b] for a, b in pairwise(cuts)]
        rng_for("batches", self.data.seed, number).shuffle(groups)
        batches = [collate(group, self.pad, self.multiple) for group in groups]
        left_out = Counter({why: n for why, n in counts.items() if why != "drawn"})
        return Buffer(batches, wanted, perturbed, left_out)


class Feed:
    """The batches of one process in order, from the nth on; counts what it gave and how long it was waited for."""

    def __init__(
        self, buffers: Buffers, *, start: int, stop: int, workers: int, rank: int = 0, world: int = 1, ahead: int = 2
    ) -> None:
        self.buffers, self.start, self.stop, self.workers = buffers, start, stop, workers
        self.rank, self.world, self.ahead = rank, world, ahead
        self.waited = 0.0  # seconds
        self.real = self.padded = self.learnt = 0  # tokens
        self.demonstrations = self.perturbed = 0
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        at, count = self.start, self.buffers.count
        made = self._made(range(self.start // count, -(-self.stop // count)))
        try:
            while at < self.stop:
                began = time.perf_counter()
                buffer = next(made)
                self.waited += time.perf_counter() - began
                if at % count == 0:  # otherwise an earlier part of the run began it, and counted it
                    self.left_out += buffer.left_out
                for batch in buffer.batches[at % count : at % count + self.stop - at]:
                    self.real, self.padded = self.real + batch.real, self.padded + batch.size
                    self.learnt += len(batch.targets)
                    n = at % count  # each batch has its part of what the buffer holds
                    self.demonstrations += _part(buffer.demonstrations, n, count)
                    self.perturbed += _part(buffer.perturbed, n, count)
                    at += 1
                    yield as_tensors(batch)
        finally:
            made.close()

    def _made(self, numbers: Sequence[int]) -> Generator[Any]:
        """The buffers of this process, by worker processes where there are any."""
        mine = [n * self.world + self.rank for n in numbers]
        if not self.workers:
            for n in mine:
                yield self.buffers[n]
            return
        from torch.utils.data import DataLoader

        loader = DataLoader(
            self.buffers,
            batch_size=None,
            sampler=mine,
            num_workers=min(self.workers, len(mine)),
            prefetch_factor=self.ahead,
            collate_fn=as_it_is,
        )
        yield from loader


def _part(whole: int, n: int, count: int) -> int:
    """The nth of this many parts of a number, which add up to it."""
    return whole * (n + 1) // count - whole * n // count


def as_it_is(made: Any) -> Any:
    """Collate nothing: what was made is a batch already. Worker processes can unpickle a function with a name."""
    return made


def as_tensors(batch: Batch) -> dict[str, Any]:
    """A batch as the trainer takes it."""
    import torch

    def made(array: Ints) -> Any:
        return torch.from_numpy(array.astype(np.int64))

    targets = made(batch.targets)
    return {"input_ids": made(batch.ids), "places": made(batch.places), "labels": targets, "shift_labels": targets}
