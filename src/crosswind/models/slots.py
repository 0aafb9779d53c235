"""Keys and values of many conversations on one device, and the two passes that extend them: reading and writing.

Each conversation has a slot: a row of buffers that are allocated once. What it will write next, how long it is and
whether it has ended lie on the device as well, by slot; so a batch is a list of slots, conversations join and leave it
without anything being copied, and a step of writing needs no word from the host. `models.engine` decides who is read
and who writes.

The tokens of all conversations lie one after the other in one row, as the model sees it, each with its own position;
`models.attention` knows which belong together. It takes the place of the model's own through transformers' attention
interface, so the models are transformers' own. On a GPU each pass is captured once as a graph for each size and
replayed; `models.kernels` reads the keys there, and plain torch elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from crosswind.base.errors import CrosswindError
from crosswind.models.attention import NAME, Layout, attend_padded, attend_rows, attention, current
from crosswind.models.cuda_graphs import GraphPool, Pass, sent

RUNNING, STOPPED, LENGTH = 0, 1, 2  # how a reply stands
READ = tuple(128 << n for n in range(8))  # tokens of a pass that reads, 128 to 16,384
PADDED = 1 << 25  # queries times keys of a pass that reads without the kernel
SLOTS = 1024  # where nobody says and there is room


class NewTokens(NamedTuple):
    """New tokens of one conversation, after which it writes."""

    slot: int
    first: int  # position of the first of them
    ids: Sequence[int]
    limit: int  # tokens to write
    heat: float = 0.0
    forced: Sequence[int] = ()  # tokens to write, whatever the model would
    uniform: Sequence[float] = ()  # for each token, the number between 0 and 1 that chooses it


class Stops(NamedTuple):
    """When a reply ends: after some tokens, or when its text has come to hold one of some strings."""

    tokens: frozenset[int]
    table: Any  # [states, vocabulary]: the state after a token; the last state is the end


class Slots:
    """Room for this many conversations of a window each."""

    def __init__(
        self, model: Any, *, slots: int | None, window: int, stops: Stops, graphs: bool, kernel: bool | None
    ) -> None:
        self.model, self.window = model, window
        self.device, self.dtype = model.device, model.dtype
        self.cuda = self.device.type == "cuda"
        self.graphs = graphs and self.cuda
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self._layout: Layout | None = None
        self._shapes: dict[int, tuple[int, int]] = {}
        self._pool = GraphPool(self.device, self.graphs)
        self._passes: dict[tuple[Any, ...], Pass] = {}
        self._forced: set[int] = set()  # slots with forced tokens
        self.barred: Any = None  # by slot: tokens that may not be written; made when first needed
        self._barred: set[int] = set()  # slots with such tokens
        self._was = model.config._attn_implementation
        ALL_ATTENTION_FUNCTIONS.register(NAME, attention)
        model.set_attn_implementation(NAME)
        try:
            self.slots = self._allocate(slots)
        except Exception:
            self.close()
            raise
        self._kernel = self._load_kernel(kernel)
        self._state(stops)

    # -- room

    def _allocate(self, wanted: int | None) -> int:
        """Ask the model for the shape of its keys by one token, and make room; for how many, comes back."""
        with torch.inference_mode():
            self._forward(torch.zeros(1, dtype=torch.long, device=self.device), Layout(None, None))
        layers = int(getattr(self.model.config, "num_hidden_layers", 0))
        if not self._shapes or sorted(self._shapes) != list(range(layers)):
            raise CrosswindError(
                f"{type(self.model).__name__} has {layers} layers, of which {len(self._shapes)} use transformers' "
                "attention interface: models with plain attention in every layer can be run"
            )
        each = self.token_bytes * self.window
        slots = room(self.device, each, self.vocabulary, wanted or SLOTS)
        if slots < (wanted or 1):
            told = f"{wanted or 1:,} slots of {self.window:,} tokens take {(wanted or 1) * each / 2**30:.1f} GiB"
            less = f"{slots:,} slots" if slots else f"a window of {self.window // 2:,}"
            raise CrosswindError(f"{told}, more than fit on {self.device}: try {less}")
        for _, (heads, dim) in sorted(self._shapes.items()):
            shape = (slots + 1, heads, self.window, dim)  # the last slot is nobody's: what only fills a batch
            self.keys.append(torch.zeros(shape, dtype=self.dtype, device=self.device))
            self.values.append(torch.zeros(shape, dtype=self.dtype, device=self.device))
        return slots

    def _load_kernel(self, wanted: bool | None) -> Any:
        """The kernel, where it can be used and is wanted (None: if it can be)."""
        if wanted is False or not self.cuda or self.dtype not in (torch.bfloat16, torch.float16):
            return None
        try:
            from crosswind.models import kernels
        except ImportError:
            if wanted:
                raise
            return None
        return kernels

    def _state(self, stops: Stops) -> None:
        n, device = self.slots + 1, self.device

        def whole(*shape: int, fill: int = 0, dtype: Any = torch.long) -> Any:
            return torch.full(shape, fill, dtype=dtype, device=device)

        self.token, self.position, self.count, self.limit = whole(n), whole(n), whole(n), whole(n)
        self.ended = whole(n, fill=STOPPED)
        self.match = whole(n)  # how much of a string that ends replies was just written
        self.heat = whole(n, dtype=torch.float)
        self.uniform = whole(n, self.window + 1, dtype=torch.float)
        self.forced = whole(n, self.window + 1, fill=-1, dtype=torch.int)
        self.written = whole(n, self.window + 1, dtype=torch.int)
        self.logprob = whole(n, self.window + 1, dtype=torch.float)
        self.final = len(stops.table) - 1
        table = np.zeros((len(stops.table), self.vocabulary), np.int64)
        width = min(self.vocabulary, stops.table.shape[1])
        table[:, :width] = stops.table[:, :width]
        self.table = torch.from_numpy(table).to(device)
        ends = np.zeros(self.vocabulary, bool)
        ends[[token for token in stops.tokens if token < self.vocabulary]] = True
        self.ends = torch.from_numpy(ends).to(device)

    def close(self) -> None:
        """Give the room back, and the model its own attention."""
        self._passes.clear()
        self.keys.clear()
        self.values.clear()
        self.model.set_attn_implementation(self._was)

    @property
    def kernel(self) -> bool:
        return self._kernel is not None

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of one token."""
        return sum(2 * heads * dim for heads, dim in self._shapes.values()) * int(self.dtype.itemsize)

    # -- reading

    def read(self, readings: Sequence[NewTokens]) -> None:
        """Take in the new tokens of some conversations and choose the first token that each writes."""
        for some in self._batches(readings):
            self._prepare(some)
            hot = any(one.heat for one in some)
            if self._kernel:
                self._read_packed(some, hot, bool(self._barred))
            else:
                self._read_padded(some, hot, bool(self._barred))

    def _batches(self, readings: Sequence[NewTokens]) -> list[list[NewTokens]]:
        """Readings by pass. Without the kernel short ones go with short ones, since they are padded."""
        out: list[list[NewTokens]] = []
        tokens = longest = span = 0
        for one in readings if self._kernel else sorted(readings, key=lambda one: len(one.ids)):
            tokens += len(one.ids)
            longest, span = max(longest, len(one.ids)), max(span, one.first + len(one.ids))
            if self._kernel:
                full = tokens > READ[-1] or (out and len(out[-1]) == _most(READ[-1]))
            else:
                full = bool(out) and (len(out[-1]) + 1) * longest * span > PADDED
            if full or not out:
                out.append([])
                tokens, longest, span = len(one.ids), len(one.ids), one.first + len(one.ids)
            out[-1].append(one)
        return out

    def _prepare(self, readings: Sequence[NewTokens]) -> None:
        """Put in place what only some replies have: forced tokens and numbers to choose by."""
        special = [one for one in readings if one.forced or one.slot in self._forced]
        if special:
            width = max(len(one.forced) for one in special) + 1
            rows = np.full((len(special), self.window + 1), -1, np.int32)
            for i, one in enumerate(special):
                rows[i, : len(one.forced)] = one.forced
            if not self._forced.intersection(one.slot for one in special):
                rows = rows[:, :width]
            slots = self._on([one.slot for one in special])
            self.forced[slots, : rows.shape[1]] = sent(rows, self.device)
            self._forced.difference_update(one.slot for one in special)
            self._forced.update(one.slot for one in special if one.forced)
        if any(one.heat for one in readings):
            heat = np.asarray([one.heat for one in readings], np.float32)
            self.heat[self._on([one.slot for one in readings])] = sent(heat, self.device)
        hot = [one for one in readings if one.uniform]
        if hot:
            numbers = np.zeros((len(hot), max(len(one.uniform) for one in hot)), np.float32)
            for i, one in enumerate(hot):
                numbers[i, : len(one.uniform)] = one.uniform
            slots = self._on([one.slot for one in hot])
            self.uniform[slots, : numbers.shape[1]] = sent(numbers, self.device)

    def _read_packed(self, readings: Sequence[NewTokens], hot: bool, barred: bool) -> None:
        """One pass with the kernel; its size is one of a few, so that there is a graph for it."""
        from crosswind.models.kernels import TILE

        total = sum(len(one.ids) for one in readings)
        size = next(n for n in READ if n >= total and _most(n) >= len(readings))
        most = _most(size)
        tiles = size // TILE + most
        made = self._read_pass(size, hot, barred)
        meta = made.empty.copy()
        ids, positions, slots = meta[: 3 * size].reshape(3, size)
        tile = meta[3 * size : 3 * size + 4 * tiles].reshape(4, tiles)
        ends = meta[3 * size + 4 * tiles :].reshape(4, most)
        at = used = 0
        for i, one in enumerate(readings):
            n = len(one.ids)
            ids[at : at + n] = one.ids
            positions[at : at + n] = np.arange(one.first, one.first + n)
            slots[at : at + n] = one.slot
            parts = -(-n // TILE)
            offsets = np.arange(parts) * TILE
            tile[0, used : used + parts] = at + offsets
            tile[1, used : used + parts] = np.minimum(TILE, n - offsets)
            tile[2, used : used + parts] = one.slot
            tile[3, used : used + parts] = one.first + offsets
            ends[:, i] = at + n - 1, one.slot, one.first + n - 1, one.limit
            at, used = at + n, used + parts
        made.run(meta)

    def _read_pass(self, size: int, hot: bool, barred: bool = False) -> Pass:
        from crosswind.models.kernels import TILE

        key = ("read", size, hot, barred)
        if key not in self._passes:
            most = _most(size)
            tiles = size // TILE + most
            empty = np.zeros(3 * size + 4 * tiles + 4 * most, np.int64)
            empty[2 * size : 3 * size] = self.slots
            empty[3 * size + 4 * tiles + most : 3 * size + 4 * tiles + 2 * most] = self.slots
            self._passes[key] = Pass(
                self._pool, empty, lambda meta: self._read_step(meta, size, tiles, most, hot, barred)
            )
        return self._passes[key]

    def _read_step(self, meta: Any, size: int, tiles: int, most: int, hot: bool, barred: bool) -> None:
        from crosswind.models.kernels import TILE

        ids, positions, slots = meta[: 3 * size].view(3, size)
        tile = meta[3 * size : 3 * size + 4 * tiles].view(4, tiles)
        last, owners, position, limit = meta[3 * size + 4 * tiles :].view(4, most)
        logits = self._forward(ids, Layout(slots, positions, tile, TILE), positions, last)
        self._begin(logits, owners, position, limit, hot, barred)

    def _read_padded(self, readings: Sequence[NewTokens], hot: bool, barred: bool) -> None:
        """One pass in plain torch."""
        lengths = [len(one.ids) for one in readings]
        total, longest = sum(lengths), max(lengths)
        span = min(self.window, -(-max(one.first + len(one.ids) for one in readings) // 8) * 8)
        spread = np.zeros((len(readings), longest), np.int64)
        packed = np.zeros(total, np.int64)
        slots, positions = np.zeros(total, np.int64), np.zeros(total, np.int64)
        at = 0
        for i, (one, n) in enumerate(zip(readings, lengths, strict=True)):
            spread[i, :n] = np.arange(at, at + n)
            packed[at : at + n] = i * longest + np.arange(n)
            slots[at : at + n] = one.slot
            positions[at : at + n] = np.arange(one.first, one.first + n)
            at += n
        owners = self._on([one.slot for one in readings])
        layout = Layout(
            self._on(slots), self._on(positions), span=span, owners=owners, spread=self._on(spread),
            packed=self._on(packed), mask={},
        )  # fmt: skip
        ids = self._on([token for one in readings for token in one.ids])
        logits = self._forward(ids, layout, layout.positions, self._on(np.cumsum(lengths) - 1))
        position = self._on([one.first + len(one.ids) - 1 for one in readings])
        self._begin(logits, owners, position, self._on([one.limit for one in readings]), hot, barred)

    def _begin(self, logits: Any, owners: Any, position: Any, limit: Any, hot: bool, barred: bool) -> None:
        """What was read begins to write."""
        zero = torch.zeros_like(owners)
        self.position[owners], self.limit[owners] = position, limit
        self.count[owners], self.match[owners], self.ended[owners] = zero, zero, zero
        self._choose(logits, owners, hot, barred)

    # -- writing

    def write(self, active: Sequence[int], steps: int, span: int, *, hot: bool) -> None:
        """This many steps of the conversations in these slots, none of them longer than `span`; who has ended stays."""
        if self._kernel:
            size, span = _size(len(active)), 0
            rows = np.full(size, self.slots, np.int64)
            rows[: len(active)] = active
        else:  # rows are views of the first slots, so that no keys are copied
            size, span = min(_size(max(active) + 1), self.slots), min(self.window, -(-span // 128) * 128)
            rows = np.full(size, self.slots, np.int64)
            rows[list(active)] = active
        self._write_pass(size, span, hot, bool(self._barred)).run(rows, steps)

    def _write_pass(self, size: int, span: int, hot: bool, barred: bool = False) -> Pass:
        key = ("write", size, span, hot, barred)
        if key not in self._passes:
            empty = np.full(size, self.slots, np.int64)
            self._passes[key] = Pass(self._pool, empty, lambda rows: self._write_step(rows, span, hot, barred))
        return self._passes[key]

    def _write_step(self, rows: Any, span: int, hot: bool, barred: bool) -> None:
        positions = self.position[rows]
        layout = Layout(rows, positions, span=span, mask={})
        if self._kernel:
            each = torch.arange(len(rows), device=self.device)
            layout.tiles = torch.stack((each, (rows != self.slots).long(), rows, positions))
        self._choose(self._forward(self.token[rows], layout, positions), rows, hot, barred)

    def _choose(self, logits: Any, rows: Any, hot: bool, barred: bool) -> None:
        """Choose the next token of each conversation, and see whether its reply has ended with it."""
        count, live = self.count[rows], self.ended[rows] == RUNNING
        logits = logits.float()
        if barred:
            logits = logits.masked_fill(self.barred[rows], -torch.inf)
        token = logits.argmax(-1)
        if hot:
            heat = self.heat[rows]
            logits = logits / (heat + (heat <= 0))[:, None]
            ladder = logits.softmax(-1).cumsum(-1)
            drawn = torch.searchsorted(ladder, (self.uniform[rows, count] * ladder[:, -1])[:, None], right=True)[:, 0]
            token = torch.where(heat > 0, drawn.clamp(max=self.vocabulary - 1), token)
        forced = self.forced[rows, count].long()
        token = torch.where(forced >= 0, forced, token)
        logprob = logits.gather(1, token[:, None])[:, 0] - logits.logsumexp(-1)
        self.written[rows, count], self.logprob[rows, count] = token.int(), logprob  # of the ended: past their end
        match = self.table[self.match[rows], token]
        count = count + live
        over = self.ends[token] | (match == self.final)
        ended = over * STOPPED + (~over & (count >= self.limit[rows])) * LENGTH
        self.ended[rows] = torch.where(live, ended, self.ended[rows])
        self.token[rows] = torch.where(live, token, self.token[rows])
        self.match[rows] = torch.where(live, match, self.match[rows])
        self.position[rows] = self.position[rows] + live
        self.count[rows] = count

    def prepare(self, *, hot: bool) -> None:
        """Capture the graphs of all sizes. Without the kernel they depend on the keys' span too, and are left alone."""
        if not self.graphs or not self._kernel:
            return
        for size in READ:
            self._read_pass(size, hot)
        for size in sorted({_size(rows) for rows in range(1, self.slots + 1)}):
            self._write_pass(size, 0, hot)

    def bar(self, masks: Mapping[int, Any]) -> None:
        """Bar some tokens in some slots, as arrays of truth values; None: none."""
        if self.barred is None:
            if not any(mask is not None for mask in masks.values()):
                return
            self.barred = torch.zeros(self.slots + 1, self.vocabulary, dtype=torch.bool, device=self.device)
        free = [slot for slot, mask in masks.items() if mask is None and slot in self._barred]
        if free:
            self.barred[self._on(free)] = False
        held = {slot: mask for slot, mask in masks.items() if mask is not None}
        if held:
            rows = np.ones((len(held), self.vocabulary), bool)  # rows of the model that are not tokens stay barred
            for row, mask in zip(rows, held.values(), strict=True):
                row[: len(mask)] = mask
            self.barred[self._on([*held])] = sent(rows, self.device)
        self._barred.difference_update(free)
        self._barred.update(held)

    # -- what came of it

    def latest(self, slots: Sequence[int]) -> Any:
        """The last token in each of these slots, how its reply stands, and how many tokens it has."""
        rows = self._on(slots)
        return torch.stack((self.token[rows], self.ended[rows], self.count[rows])).cpu().numpy()

    def standing(self, slots: Sequence[int]) -> tuple[Any, Any]:
        """How the replies in these slots stand, and how many tokens each has; waits for the device."""
        rows = self._on(slots)
        ended, count = torch.stack((self.ended[rows], self.count[rows])).cpu().numpy()
        return ended, count

    def replies(self, slots: Sequence[int], longest: int) -> Callable[[], tuple[Any, Any]]:
        """Ask for the tokens written in these slots and their log-probabilities; what comes back waits for them.

        What is launched on the device afterwards is not waited for.
        """
        rows = self._on(slots)
        both = torch.stack((self.written[rows, :longest].float(), self.logprob[rows, :longest]))
        arrived = None
        if self.cuda:
            there = torch.empty(both.shape, dtype=both.dtype, pin_memory=True)
            both = there.copy_(both, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()

        def fetch() -> tuple[Any, Any]:
            if arrived is not None:
                arrived.synchronize()
            ids, logprobs = both.numpy()
            return ids.astype(np.int64), logprobs

        return fetch

    # -- the model

    def _on(self, values: Any) -> Any:
        return sent(np.asarray(values, np.int64), self.device)

    def _forward(self, ids: Any, layout: Layout, positions: Any = None, keep: Any = 0) -> Any:
        """Scores of the next token, after the tokens to keep (0: all)."""
        current.slots, self._layout = self, layout
        if positions is None:
            positions = torch.zeros_like(ids)
        try:
            out = self.model(
                input_ids=ids[None],
                position_ids=positions[None],
                use_cache=False,
                logits_to_keep=keep,
                return_dict=True,
            )
        finally:
            current.slots = None
        return out.logits[0]

    def attend(self, module: Any, query: Any, key: Any, value: Any, scale: float | None, reach: int) -> Any:
        """Put new keys and values in their slots and read those that each query may see."""
        layout, layer = self._layout, int(module.layer_idx)
        if layout is None or layout.slots is None:
            if key.shape != value.shape:
                raise CrosswindError("models whose keys and values differ in size cannot be run")
            self._shapes[layer] = int(key.shape[1]), int(key.shape[3])
            return query.transpose(1, 2).contiguous()
        keys, values = self.keys[layer], self.values[layer]
        keys[layout.slots, :, layout.positions] = key[0].transpose(0, 1)
        values[layout.slots, :, layout.positions] = value[0].transpose(0, 1)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        if layout.tiles is not None:
            return self._kernel.attend(query, keys, values, layout.tiles, rows=layout.rows, scale=scale, reach=reach)
        if layout.owners is None:
            return attend_rows(layout, query, keys, values, scale, reach)
        return attend_padded(layout, query, keys, values, scale, reach)


def room(device: Any, each: int, vocabulary: int, most: int) -> int:
    """For how many slots of this many bytes there is memory, beside what a pass needs; `most` at the most."""
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
        free -= torch.cuda.memory_allocated(device)
    elif hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    else:
        return most
    beside = 20 * vocabulary  # scores of a row, as read and in the forms that choosing takes
    return max(0, min(most, int((0.9 * free - 2**30) / (each + beside)) - 1))


def _most(size: int) -> int:
    """Conversations that a pass of this many tokens reads at most."""
    return min(512, size // 16)


def _size(rows: int) -> int:
    """Rows of the batch that takes these: powers of two, from 256 on multiples of 128."""
    return -(-rows // 128) * 128 if rows > 256 else max(8, 1 << (rows - 1).bit_length())
