"""Watch episodes one after the other: learn what is usual, test every channel, gather evidence, name the shift.

Two sorts of alarm exist. Where all reference episodes show the same list of tools (or the same policy), another one is
a fact: it alarms at once and is never false. Everything else is tested by `sequential`, which bounds the false alarms
of all channels together. After an alarm, a few more episodes are read before the shift is named; what came with it is
part of the same alarm, and becomes the new usual.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import mean, pstdev
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.models.redact import HIDDEN, Secrets, environment
from crosswind.watch.alarms import Alarm, NamedShift, recipe_of
from crosswind.watch.channels import COSTS, STREAMS, Profile
from crosswind.watch.naming import name_shift
from crosswind.watch.observed import ObservedEpisode
from crosswind.watch.sequential import ConformalStream

PER = 1000  # episodes without a change in which one false alarm is expected at most, over all channels
EVIDENCE = 8  # episodes that are read after the test decided, before the shift is named
SETTLE = 20  # episodes from which a changed channel learns what is usual now
LEAST = 20  # reference episodes
MOST = 2_000  # that are used
KEPT = 120  # episodes that are kept for naming
SHOWN = 20  # ids of episodes in an alarm
FACTS = ("listing", "policy")
# keys inside a longer name, where `redact` sees no beginning of a word
_INNER = re.compile(
    r"(?<=_)(?:sk|pk|rk|gsk|xai|gh[opsu]|github_pat|glpat|xox[abp])[-_](?=\S{0,64}\d)[A-Za-z0-9_-]{16,}"
)


@dataclass
class _Event:
    """A change that was decided on and is not yet named."""

    at: int
    since: int
    channel: str
    channels: dict[str, float] = field(default_factory=dict)  # with the level of each
    facts: Counter[str] = field(default_factory=Counter)  # how often each fact changed


class Watcher:
    """Reads episodes, gives alarms."""

    def __init__(self, reference: Iterable[ObservedEpisode], *, per: int = PER, evidence: int = EVIDENCE) -> None:
        first = _first(reference)
        self.is_listing = all(episode.is_snapshot for episode in first)
        if not first or (len(first) < LEAST and not self.is_listing):
            raise CrosswindError(
                f"the reference has {len(first)} episodes; expected at least {LEAST} from a period without changes "
                "(of tools/list, one snapshot is enough)"
            )
        self.per, self.evidence = per, evidence
        self.threshold = float(per * len(STREAMS))
        half = first if self.is_listing else first[::2]
        self.profile = Profile.of(half)
        tested = first if self.is_listing else first[1::2]
        scores = [self.profile.scores(episode) for episode in tested]
        self.usual = {name: [s[name] for s in scores if name in s] for name in STREAMS}
        self.streams = {
            name: ConformalStream(name, values) for name, values in self.usual.items() if len(values) >= LEAST // 2
        }
        self.reference = len(first)
        self.constant = {name: _constant(first, name) for name in FACTS}
        self.history: deque[tuple[int, ObservedEpisode, dict[str, float]]] = deque(maxlen=KEPT)
        for back, episode in enumerate(reversed(first[-KEPT:]), 1):
            self.history.appendleft((-back, episode, self.profile.scores(episode)))
        self.base = -len(first) - 1  # the first episode of what is usual now
        self.count = 0
        self.pending: _Event | None = None
        self.last: _Event | None = None
        self.settled = 0  # the last event is over when so many episodes were read
        self.learning: dict[str, list[float]] = {}
        self.secrets = Secrets(*environment())

    @property
    def levels(self) -> dict[str, float]:
        """How near each channel is to its threshold, from 0 to 1."""
        out = {name: min(1.0, stream.level / self.threshold) for name, stream in self.streams.items()}
        if self.pending is not None:
            out |= dict.fromkeys(self.pending.channels, 1.0)
        return out

    @property
    def guarantee(self) -> str:
        """What is promised of false alarms."""
        if self.is_listing:
            return "Lists of tools are compared as they are; there are no false alarms."
        return (
            f"While episodes are exchangeable with the {self.reference} of the reference, the first false alarm of all "
            f"{len(STREAMS)} channels together takes {self.per:,} episodes or more on average; each channel has "
            f"1/{len(STREAMS)} of that rate."
        )

    # ------------------------------------------------------------ reading

    def add(self, episode: ObservedEpisode) -> Iterator[Alarm]:
        """Take the next episode; gives the alarm that it completes."""
        index = self.count
        self.count += 1
        scores = self.profile.scores(episode)
        self.history.append((index, episode, scores))
        for name in FACTS:
            if self._is_another(name, episode):
                if self.pending is not None and name not in self.pending.channels and index > self.pending.at:
                    yield self._named(index)  # another change before the last one was named
                self._crossed(name, index, index, 0.0)
        for name, score in scores.items():
            if name in self.learning:
                self._learn(name, score)
                continue
            stream = self.streams.get(name)
            if stream is None or (self.constant.get(name) is not None and name in FACTS):
                continue
            if stream.add(score) >= self.threshold:
                self._crossed(name, index, index + 1 - stream.since, stream.level)
                stream.restart()
        if index < self.settled:
            self.profile.absorb(episode)
        if self.pending is not None and (index >= self.pending.at + self.evidence or self.is_listing):
            yield self._named()

    def end(self) -> Iterator[Alarm]:
        """The log is over: name what is pending."""
        if self.pending is not None:
            yield self._named()

    def _is_another(self, name: str, episode: ObservedEpisode) -> bool:
        """Is something that never changed different now?"""
        usual, found = self.constant[name], _fact(episode, name)
        if usual is None or found is None or found == usual:
            return False
        is_third = self.pending is not None and self.pending.facts[name] > 1
        self.constant[name] = None if is_third else found  # one that changes all the time is tested like a channel
        return not is_third

    def _crossed(self, name: str, at: int, since: int, level: float) -> None:
        """A channel decided that something changed."""
        since = max(since, self.base if self.last else 0)
        if self.pending is None:
            last = self.last
            if last is not None and name not in FACTS and since <= last.at + self.evidence + 1 and at <= self.settled:
                self.learning[name] = []  # the same change, which shows here later
                return
            self.pending = _Event(at, since, name)
        self.pending.channels[name] = round(level, 1)
        self.pending.facts[name] += 1
        self.learning.setdefault(name, [])

    def _learn(self, name: str, score: float) -> None:
        """Gather what is usual after a change; with enough of it the channel is tested again."""
        values = self.learning[name]
        values.append(score)
        if len(values) >= SETTLE:
            del self.learning[name]
            self.usual[name] = values
            self.streams[name] = ConformalStream(f"{name} from {self.count}", values)

    # ------------------------------------------------------------ naming

    def _named(self, until: int | None = None) -> Alarm:
        """The alarm of what is pending, by the episodes before `until`."""
        event, self.pending = self.pending, None
        assert event is not None
        end = self.count if until is None else until
        before = [(i, e, s) for i, e, s in self.history if self.base <= i < event.since]
        if len(before) < 3:
            before = [(i, e, s) for i, e, s in self.history if i < event.since] or list(self.history)[:1]
        after = [(i, e, s) for i, e, s in self.history if event.since <= i < end] or list(self.history)[-1:]
        shift, facts = name_shift([e for _, e, _ in before], [e for _, e, _ in after])
        costs = _costs([s for _, _, s in before], [s for _, _, s in after])
        evidence: dict[str, Any] = {
            "channels": event.channels,
            "changes": facts,
            "cost": costs,
            "impact": "costs the agent" if any(cost["clear"] for cost in costs.values()) else "no cost seen",
            "episodes_read": len(after),
        }
        for _, episode, _ in after:
            self.profile.absorb(episode)
        self.last, self.base = event, event.since
        self.settled = self.count + SETTLE
        for name, stream in self.streams.items():  # what is on its way to a decision is part of this change
            if (
                name not in self.learning
                and stream.level > self.threshold**0.5
                and stream.since <= self.count - event.since + 2
            ):
                self.learning[name] = []
                stream.restart()
        return self._alarm(event, shift, evidence, [e.id for _, e, _ in after][:SHOWN])

    def _alarm(self, event: _Event, shift: NamedShift | None, evidence: dict[str, Any], ids: Sequence[str]) -> Alarm:
        """The alarm, without anything that looks like a secret."""
        if shift is not None:
            shift = NamedShift.model_validate(self.clean(shift.model_dump()))
        recipe = None
        if shift is not None:
            recipe = recipe_of(shift.kind, shift.severity, f"What changed at episode {event.since} of the watched log.")
        return Alarm(
            channel=event.channel,
            at=event.at,
            since=event.since,
            evidence=self.clean(evidence),
            shift=shift,
            recipe=recipe,
            episodes=tuple(self.clean(one) for one in ids),
        )

    def clean(self, value: Any) -> Any:
        """A value without what looks like a key or a password, wherever in it."""
        if isinstance(value, str):
            return _INNER.sub(HIDDEN, self.secrets.beginning(value))
        if isinstance(value, (list, tuple)):
            return type(value)(self.clean(one) for one in value)
        if isinstance(value, dict):
            return {self.clean(key): self.clean(one) for key, one in value.items()}
        return value


def _first(reference: Iterable[ObservedEpisode]) -> list[ObservedEpisode]:
    out = []
    for episode in reference:
        out.append(episode)
        if len(out) >= MOST:
            break
    return out


def _fact(episode: ObservedEpisode, name: str) -> object:
    """The tools shown, or the policy, as a whole; None where the log does not have it."""
    if name == "policy":
        return episode.policy
    return frozenset(tool.shape for tool in episode.listing) if episode.listing is not None else None


def _constant(episodes: Sequence[ObservedEpisode], name: str) -> object:
    """What every episode of the reference has alike; None if they differ or it is nowhere."""
    found = {_fact(episode, name) for episode in episodes}
    return found.pop() if len(found) == 1 else None


def _costs(before: Sequence[dict[str, float]], after: Sequence[dict[str, float]]) -> dict[str, Any]:
    """What the agent pays, before and after; clear if the rise is over two standard errors."""
    out: dict[str, Any] = {}
    for name in COSTS:
        was, now = [s[name] for s in before if name in s], [s[name] for s in after if name in s]
        if not was or not now:
            continue
        rise = mean(now) - mean(was)
        error = (max(pstdev(was), 0.3) ** 2 * (1 / len(was) + 1 / len(now))) ** 0.5
        if rise > 0.05:
            out[name] = {"before": round(mean(was), 3), "after": round(mean(now), 3), "clear": rise > 2 * error}
    return out
