"""Attention over the slots of a batch, in Triton: each row reads the keys of its own length and no more.

Needs a GPU. `models.attention` has the same in plain torch, which is what runs elsewhere.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

TILE = 32  # queries of one conversation that a program takes when it reads a prompt
KEYS = 64  # that a program looks at together
LOG2E = 1.4426950408889634
LOW = -1.0e30


def _attend(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, out: tl.tensor,
    starts: tl.tensor, counts: tl.tensor, slots: tl.tensor, firsts: tl.tensor,
    scale: tl.tensor,
    q_token: tl.tensor, q_head: tl.tensor, out_token: tl.tensor, out_head: tl.tensor,
    slot_stride: tl.tensor, head_stride: tl.tensor,
    DIM: tl.constexpr, WIDTH: tl.constexpr, GROUP: tl.constexpr, LANES: tl.constexpr, ROWS: tl.constexpr,
    KEYS: tl.constexpr, REACH: tl.constexpr, LOW: tl.constexpr,
) -> None:  # fmt: skip
    """Some queries of one conversation against one key head: row `i` is query `i // LANES`, query head `i % LANES`."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    count = tl.load(counts + tile).to(tl.int32)
    if count == 0:
        return
    start = tl.load(starts + tile).to(tl.int32)
    first = tl.load(firsts + tile).to(tl.int32)  # position of the first query
    base = tl.load(slots + tile).to(tl.int64) * slot_stride + head * head_stride
    k += base
    v += base
    rows = tl.arange(0, ROWS * LANES)
    query = rows // LANES
    lane = rows % LANES
    dims = tl.arange(0, WIDTH)
    real = ((query < count) & (lane < GROUP))[:, None] & (dims < DIM)[None, :]
    token = start + query
    heads = head * GROUP + lane
    asked = tl.load(q + (token * q_token + heads * q_head)[:, None] + dims[None, :], mask=real, other=0.0)
    position = first + query
    best = tl.full([ROWS * LANES], LOW, tl.float32)
    total = tl.zeros([ROWS * LANES], tl.float32)
    mixed = tl.zeros([ROWS * LANES, WIDTH], tl.float32)
    end = first + count
    low = 0
    if REACH > 0:
        low = (tl.maximum(first - REACH + 1, 0) // KEYS) * KEYS
    for at in range(low, end, KEYS):
        keys = at + tl.arange(0, KEYS)
        there = (keys < end)[:, None] & (dims < DIM)[None, :]
        cells = (keys * DIM)[:, None] + dims[None, :]
        key = tl.load(k + cells, mask=there, other=0.0)
        score = tl.dot(asked, tl.trans(key)) * scale
        seen = keys[None, :] <= position[:, None]
        if REACH > 0:
            seen = seen & (keys[None, :] > position[:, None] - REACH)
        score = tl.where(seen, score, LOW)
        higher = tl.maximum(best, tl.max(score, 1))
        fade = tl.exp2(best - higher)
        weight = tl.where(seen, tl.exp2(score - higher[:, None]), 0.0)
        total = total * fade + tl.sum(weight, 1)
        value = tl.load(v + cells, mask=there, other=0.0)
        mixed = mixed * fade[:, None] + tl.dot(weight.to(value.dtype), value)
        best = higher
    mixed = mixed / tl.where(total > 0, total, 1.0)[:, None]
    where = (token * out_token + heads * out_head)[:, None] + dims[None, :]
    tl.store(out + where, mixed.to(out.dtype.element_ty), mask=real)


_kernel: Any = triton.jit(_attend)


def attend(q: Any, keys: Any, values: Any, tiles: Any, *, rows: int, scale: float, reach: int) -> Any:
    """What each query reads: q is [1, heads, tokens, dim], keys and values are [slots, key heads, window, dim].

    `tiles` is [4, n]: the first token, the number of tokens (at most `rows`, a power of two), the slot, and the
    position of the first token; a tile of no tokens does nothing. What comes back is [1, tokens, heads, dim].
    """
    _, heads, tokens, dim = q.shape
    kv = keys.shape[1]
    group = heads // kv
    lanes = triton.next_power_of_2(group)
    lanes = max(lanes, 16 // rows)  # a matrix product takes sixteen rows at least
    q = q if q.stride(3) == 1 else q.contiguous()
    out = torch.empty(1, tokens, heads, dim, dtype=q.dtype, device=q.device)
    _kernel[(tiles.shape[1], kv)](
        q, keys, values, out,
        tiles[0], tiles[1], tiles[2], tiles[3],
        scale * LOG2E,
        q.stride(2), q.stride(1), out.stride(1), out.stride(2), keys.stride(0), keys.stride(1),
        DIM=dim, WIDTH=triton.next_power_of_2(dim), GROUP=group, LANES=lanes, ROWS=rows,
        KEYS=KEYS, REACH=reach, LOW=LOW,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    return out
