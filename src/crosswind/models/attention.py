"""Attention over the slots of a batch, as transformers calls it and in plain torch.

`attention` takes the place of a model's own through transformers' attention interface and hands over to the slots whose
pass is running in this thread. `models.kernels` has a faster form for GPUs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from crosswind.base.errors import CrosswindError

NAME = "crosswind"
current = threading.local()  # the slots whose pass is running in this thread


@dataclass(slots=True)
class Layout:
    """Which tokens of a pass belong together, as the attention needs it."""

    slots: Any  # of each token
    positions: Any
    tiles: Any = None  # with the kernel: see `kernels.attend`
    rows: int = 1  # the most tokens in a tile
    span: int = 0  # without: keys to look at
    owners: Any = None  # without, reading: slot of each conversation
    spread: Any = None  # [conversations, longest]: where its tokens lie
    packed: Any = None  # of each token: where it is in `spread`, flat
    mask: Any = None  # by reach: what is added to the scores


def attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **more: Any,
) -> tuple[Any, None]:
    """Attention as transformers calls it."""
    for name in ("softcap", "s_aux", "position_bias"):
        if more.get(name) is not None:
            raise CrosswindError(f"models with {name!r} in their attention cannot be run in a batch")
    slots = getattr(current, "slots", None)
    if slots is None:
        raise CrosswindError("the model belongs to an engine until that is closed; train a copy and load its weights")
    return slots.attend(module, query, key, value, scaling, sliding_window or 0), None


def attend_rows(layout: Layout, query: Any, keys: Any, values: Any, scale: float, reach: int) -> Any:
    """One query for each of the first slots; the query heads that share a key head go together."""
    _, heads, rows, dim = query.shape
    kv, span = keys.shape[1], layout.span
    if reach not in layout.mask:
        layout.mask[reach] = mask_of(layout.positions[:, None], span, reach, keys.dtype)[:, None]
    asked = query[0].transpose(0, 1).reshape(rows, kv, heads // kv, dim)
    mask = layout.mask[reach].expand(rows, kv, heads // kv, span)
    out = scaled_dot_product_attention(
        asked, keys[:rows, :, :span], values[:rows, :, :span], attn_mask=mask, scale=scale
    )
    return out.reshape(1, rows, heads, dim)


def attend_padded(layout: Layout, query: Any, keys: Any, values: Any, scale: float, reach: int) -> Any:
    """Several queries for each conversation, spread out to the longest."""
    _, heads, tokens, dim = query.shape
    (n, longest), kv, span = layout.spread.shape, keys.shape[1], layout.span
    group = heads // kv
    if reach not in layout.mask:
        mask = mask_of(layout.positions[layout.spread], span, reach, keys.dtype)
        layout.mask[reach] = mask.repeat(1, group, 1)[:, None]
    asked = query[0][:, layout.spread].view(kv, group, n, longest, dim).permute(2, 0, 1, 3, 4)
    out = scaled_dot_product_attention(
        asked.reshape(n, kv, group * longest, dim),
        keys[layout.owners, :, :span],
        values[layout.owners, :, :span],
        attn_mask=layout.mask[reach].expand(n, kv, group * longest, span),
        scale=scale,
    )
    out = out.view(n, kv, group, longest, dim).permute(0, 3, 1, 2, 4).reshape(n * longest, heads, dim)
    return out[layout.packed].view(1, tokens, heads, dim)


def mask_of(positions: Any, span: int, reach: int, dtype: Any) -> Any:
    """What is added to the scores of keys 0 to `span`: nothing, or minus infinity where a key may not be seen."""
    keys = torch.arange(span, device=positions.device)
    unseen = keys > positions[..., None]
    if reach:
        unseen |= keys <= positions[..., None] - reach
    return torch.zeros(unseen.shape, dtype=dtype, device=positions.device).masked_fill_(unseen, float("-inf"))
