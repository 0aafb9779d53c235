"""What careers add up to: what needs memory and what does not, by fact, twist and distance.

Forfeited episodes, which the agent's own failures made impossible, count in no share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from crosswind.core.memory import Need
from crosswind.core.types import Model
from crosswind.episodes.brief import Told
from crosswind.metrics.shares import Stream, StreamShare, share

DISTANCES = (1, 2, 6, 11, 21, 51)  # episodes since a fact was told; each bin goes up to the next


class CareerSummary(Model):
    """The figures of the careers of a run."""

    dependent: StreamShare  # episodes that need what an earlier one told
    independent: StreamShare  # the others
    forfeited: int
    facts: dict[str, StreamShare]  # recall by what was told,
    twists: dict[str, StreamShare]  # by what became of it,
    distances: dict[str, StreamShare]  # and by episodes since
    chains: StreamShare  # facts of a career, with all that needed them passed
    stale: (
        StreamShare  # failures where it was told, which would have passed with the superseded, disputed or past value
    )


def summarise_careers(records: Sequence[Told]) -> CareerSummary | None:
    """The figures of a run of careers; None for streams."""
    careers = [record for record in records if record.mark is not None and record.mark.career is not None]
    if not careers:
        return None
    judged = [record for record in careers if record.judged]
    needing = [(record, need) for record in judged if (need := need_of(record))]
    chains: dict[tuple[Stream, str], list[bool]] = {}
    for record, need in needing:
        chains.setdefault((_stream(record), need.fact), []).append(record.passed)
    return CareerSummary(
        dependent=_passed(record for record, _ in needing),
        independent=_passed(record for record in judged if need_of(record) is None),
        forfeited=sum(record.mark is not None and _is_forfeited(record) for record in careers),
        facts=_by(needing, lambda need: need.fact),
        twists=_by(needing, lambda need: need.twist),
        distances=_by(needing, lambda need: _bin(need.distance)),
        chains=share((stream, float(all(passed))) for (stream, _), passed in chains.items()),
        stale=share((_stream(r), float(_is_stale(r))) for r, _ in needing if r.outcome == "fail"),
    )


def need_of(record: Told) -> Need | None:
    """What an episode of a career takes for known."""
    career = record.mark.career if record.mark else None
    return career.recall.need if career else None


def _is_forfeited(record: Told) -> bool:
    return record.mark is not None and record.mark.career is not None and bool(record.mark.career.forfeited)


def _is_stale(record: Told) -> bool:
    return record.mark is not None and record.mark.career is not None and record.mark.career.stale


def _stream(record: Told) -> Stream:
    return record.domain, record.trial


def _passed(records: Iterable[Told]) -> StreamShare:
    return share((_stream(record), float(record.passed)) for record in records)


def _by(needing: Sequence[tuple[Told, Need]], group: Callable[[Need], str]) -> dict[str, StreamShare]:
    names = sorted({group(need) for _, need in needing}, key=lambda name: (len(name.partition("-")[0]), name))
    return {name: _passed(record for record, need in needing if group(need) == name) for name in names}


def _bin(distance: int) -> str:
    """A bin of distances, such as 6-10."""
    low = max(first for first in DISTANCES if first <= distance)
    high = next((first - 1 for first in DISTANCES if first > low), None)
    return f"{low}+" if high is None else str(low) if high == low else f"{low}-{high}"
