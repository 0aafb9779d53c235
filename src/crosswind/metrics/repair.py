"""Is the diagnosis right? Play a failed episode again with one channel repaired, and see which repair helps.

A channel is a part of what the agent meets: the query, the tools, what comes back, or the rules. To repair one is to
leave those layers of the stack out that work on it; everything else stays as it was drawn, and the rest of the stack
must still be certified. The agent plays from the start. An agent that does the same when shown the same goes the way
it went before up to the first step at which it met one of those layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from crosswind.certify import certify
from crosswind.errors import Unfair
from crosswind.metrics.diagnosis import UNDETERMINED
from crosswind.perturbation import Layers, Perturbation
from crosswind.play import judge
from crosswind.recipe import Drawn
from crosswind.record import Record, redrawn
from crosswind.types import Model, Trajectory

CHANNELS: Mapping[str, str] = {
    "query": "the request as it was first put: layers of the axis query",
    "tools": "names, parameters, descriptions and calling orders: layers of the axis action, and foreign vocabularies",
    "observations": "results and errors: layers of the axis observation",
    "rules": "the world and its rules: layers of the axis domain",
}
ANY = tuple(CHANNELS)
EXPECTED: Mapping[str, tuple[str, ...]] = {  # the channels whose repair bears a cause out
    "memorised interface": ("tools",),
    "wrong tool": ("tools", "observations"),
    "wrong argument": ("query", "tools", "rules"),
    "malformed call": ("tools",),
    "misread result": ("observations", "rules"),
    "ignored error": ("observations", "tools"),
    "unsafe retry": ("observations",),
    "blind repetition": ("observations", "tools"),
    "wrong order": ("tools",),
    "gave up": ("observations", "tools"),
    "ran out of steps": ANY,
    "fabricated value": ("query", "observations"),
    "false success": ANY,
    "forced completion": ("rules",),
    "missed refusal": ("rules",),
    "over-refusal": ANY,
    "obeyed an injection": ("observations",),
}
Player = Callable[[Drawn], Awaitable[Trajectory]]


class Repair(Model):
    """What came of playing one episode again."""

    key: str
    stage: str
    cause: str
    again: bool | None  # did it fail again with nothing repaired? None: it was not tried
    helped: tuple[str, ...]  # channels whose repair restored success
    useless: tuple[str, ...]  # channels whose repair did not
    untried: tuple[str, ...]  # channels that no layer touches, or whose repair leaves an unfair stack

    @property
    def confirmed(self) -> bool | None:
        """Does the repair that helps agree with the cause? None where no repair helps, or none was possible."""
        if not self.helped or self.cause not in EXPECTED:
            return None
        return any(channel in EXPECTED[self.cause] for channel in self.helped)


def channel_of(layer: Perturbation) -> str:
    """The channel on which a layer works."""
    if layer.axis == "domain":
        return "tools" if layer.rank == "vocabulary" else "rules"
    return {"query": "query", "action": "tools", "observation": "observations"}[layer.axis]


def repaired(drawn: Drawn, channel: str) -> Drawn | None:
    """The same episode without the layers of one channel; None where there are none, or the rest is not fair."""
    rest: Layers = tuple(layer for layer in drawn.layers if channel_of(layer) != channel)
    if len(rest) == len(drawn.layers):
        return None
    try:
        return Drawn(drawn.domain, drawn.base, rest, certify(drawn.domain, drawn.base, rest))
    except Unfair:
        return None


async def repair(record: Record, play_again: Player, *, check: bool = True) -> Repair:
    """Repair each channel of a failed episode in turn. With `check` it is first played again as it is."""
    drawn = redrawn(record)
    again: bool | None = None
    if check:
        again = judge(await play_again(drawn), drawn.domain).outcome == "fail"
    helped: list[str] = []
    useless: list[str] = []
    untried: list[str] = []
    for channel in CHANNELS:
        mended = repaired(drawn, channel)
        if mended is None:
            untried.append(channel)
            continue
        outcome = judge(await play_again(mended), mended.domain).outcome
        (helped if outcome == "pass" else useless).append(channel)
    return Repair(
        key=record.key,
        stage=record.stage or UNDETERMINED,
        cause=record.cause or UNDETERMINED,
        again=again,
        helped=tuple(helped),
        useless=tuple(useless),
        untried=tuple(untried),
    )


class Agreement(Model):
    """How often the repairs bear the diagnoses out."""

    tried: int
    steady: int  # failed again with nothing repaired
    helped: dict[str, int]  # by channel
    agree: int  # a repair helped that bears the cause out
    disagree: int  # a repair helped that does not
    silent: int  # no repair helped, or none was possible


def agreement(repairs: Sequence[Repair]) -> Agreement:
    by_channel = Counter(channel for r in repairs for channel in r.helped)
    verdicts = Counter(r.confirmed for r in repairs)
    return Agreement(
        tried=len(repairs),
        steady=sum(r.again is not False for r in repairs),
        helped=dict(by_channel),
        agree=verdicts[True],
        disagree=verdicts[False],
        silent=verdicts[None],
    )
