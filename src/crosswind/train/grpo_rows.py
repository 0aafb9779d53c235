"""What a step of GRPO learns from: the rows of groups with a signal, their log-probabilities and gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from crosswind.base.errors import CrosswindError
from crosswind.train.batches import Batch
from crosswind.train.rollouts import Group, Sampled

SCORES = 2**26  # numbers of the output layer that are held at a time


@dataclass(slots=True)
class Learnt:
    """A row to learn from."""

    row: Sampled
    advantage: float
    weight: float = 1.0  # of each of its tokens in the loss
    old: Any = None  # log-probabilities of its tokens before the step
    reference: Any = None  # and at the start of the run
    mine: bool = True  # is it learnt from in this process?


def learnt(groups: Sequence[Group], *, std: bool, even: bool = False) -> list[list[Learnt]]:
    """The rows of each group that has a signal, with `even` so weighed that every episode counts the same.

    An episode without a reward gives none.
    """
    out: list[list[Learnt]] = []
    for group in groups:
        if not group.signal:
            continue
        some: list[Learnt] = []
        for one, advantage in zip(group.rollouts, group.advantages(std=std), strict=True):
            if one.reward is not None:
                weight = 1 / max(1, sum(len(row.logprobs) for row in one.rows)) if even else 1.0
                some += [Learnt(row, advantage, weight) for row in one.rows]
        out.append(some)
    return out


def packed(rows: Sequence[Learnt], micro: int, multiple: int) -> Iterator[list[Learnt]]:
    """Rows of about the same length together, as many as with their padding have at most `micro` tokens."""
    some: list[Learnt] = []
    for one in sorted(rows, key=lambda one: -len(one.row.ids)):
        width = -(-len((some or [one])[0].row.ids) // multiple) * multiple
        if some and (len(some) + 1) * width > micro:
            yield some
            some = []
        some.append(one)
    if some:
        yield some


def log_probs(model: Any, batch: Batch, temperature: float) -> tuple[Any, Any]:
    """Log-probabilities of the tokens that were drawn, and the entropy of what each was drawn from.

    Only where something was drawn is the output layer computed, a part at a time; its scores are thrown away and
    computed again when gradients are wanted, so that the memory they take does not grow with the batch.
    """
    device = model.device
    places, targets = (torch.from_numpy(array).long().to(device) for array in (batch.places, batch.targets))
    head, found = model.get_output_embeddings(), list[Any]()

    def take(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = args[0]
        found.append(hidden.reshape(-1, hidden.shape[-1]).index_select(0, places))
        return (found[0][:1], *args[1:])

    hook = head.register_forward_pre_hook(take)
    try:
        model(input_ids=torch.from_numpy(batch.ids).long().to(device), use_cache=False)
    finally:
        hook.remove()
    parts = []
    size = max(1, SCORES // int(head.weight.shape[0]))
    for hidden, wanted in zip(found[0].split(size), targets.split(size), strict=True):
        if torch.is_grad_enabled():
            parts.append(checkpoint(_chosen, head, hidden, wanted, temperature, use_reentrant=False))
        else:
            parts.append(_chosen(head, hidden, wanted, temperature))
    return torch.cat([one for one, _ in parts]), torch.cat([other for _, other in parts])


def _chosen(head: Any, hidden: Any, targets: Any, temperature: float) -> tuple[Any, Any]:
    scores = head(hidden).float() / temperature
    total = scores.logsumexp(-1)
    chosen = scores.gather(1, targets[:, None])[:, 0] - total
    with torch.no_grad():
        entropy = total - ((scores - total[:, None]).exp() * scores).sum(-1)
    return chosen, entropy


def direction(weights: Iterable[Any], together: Any) -> Any:
    """The sum of the gradients' directions so far, with that of the present one."""
    flat = torch.cat([p.grad.flatten().float() for p in weights if p.grad is not None])
    flat /= flat.norm().clamp_min(1e-30)
    return flat if together is None else together.add_(flat)


def agreement(together: Any, parts: int) -> float:
    """Mean cosine between the gradients of this many updates, of which the sum of directions is given."""
    return (float(together.square().sum()) - parts) / (parts * (parts - 1))


def check_output(model: Any) -> None:
    """Refuse a model that changes the scores after its output layer: what is computed here would not be its own."""
    for name in ("final_logit_softcapping", "logits_scaling", "logit_scale"):
        if getattr(model.config, name, None) not in (None, 1, 1.0):
            raise CrosswindError(f"models with {name} cannot be trained by grpo; take one without")
