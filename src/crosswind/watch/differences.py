"""What is different between the episodes before a change and those after it, as facts about tools, results and talk."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from crosswind.mcp.schema import record
from crosswind.watch.channels import questions, refused, repeats, results, sentences, words
from crosswind.watch.observed import ListedTool, Listing, ObservedCall, ObservedEpisode, bare

ALIKE = 0.45  # of two tools, for one to be the other under a new name
MANY = 80  # tools without a partner beyond which only exact descriptions are compared
PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def pieces(name: str) -> list[str]:
    """The words of a name in any style."""
    return [piece.lower() for piece in PIECE.findall(name)]


def overlap(one: Iterable[str], other: Iterable[str]) -> float:
    """The share of words that two texts have in common, by their first five letters."""
    left, right = {word[:5] for word in one}, {word[:5] for word in other}
    return len(left & right) / len(left | right) if left | right else 0.0


# ---------------------------------------------------------------- tools


@dataclass
class ToolChange:
    """What is different about one tool."""

    old: ListedTool
    new: ListedTool
    renamed: dict[str, str] = field(default_factory=dict)  # parameters
    added: dict[str, Any] = field(default_factory=dict)  # parameter -> schema
    removed: tuple[str, ...] = ()
    retyped: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # the schema, descriptions left out
    reworded: tuple[str, ...] = ()  # parameters whose descriptions changed

    @property
    def doc(self) -> bool:
        return self.old.doc != self.new.doc

    @property
    def added_doc(self) -> str:
        """What was added at the end of a description; empty where it is another one."""
        grown = self.old.doc and self.new.doc.startswith(self.old.doc)
        return self.new.doc[len(self.old.doc) :].strip() if grown else ""

    @property
    def is_any(self) -> bool:
        changed = self.renamed or self.added or self.removed or self.retyped or self.reworded
        return bool(changed) or self.doc or self.old.name != self.new.name or self.old.output != self.new.output


@dataclass
class ListingChange:
    """What is different between two lists of tools."""

    renamed: dict[str, str] = field(default_factory=dict)
    added: list[ListedTool] = field(default_factory=list)
    removed: list[ListedTool] = field(default_factory=list)
    tools: dict[str, ToolChange] = field(default_factory=dict)  # by the old name
    before: Listing = ()
    after: Listing = ()

    @classmethod
    def between(cls, before: Listing, after: Listing) -> ListingChange:
        old, new = {t.name: t for t in before}, {t.name: t for t in after}
        gone = [t for name, t in old.items() if name not in new]
        come = [t for name, t in new.items() if name not in old]
        places = {t.name: i / max(1, len(before)) for i, t in enumerate(before)}
        places_now = {t.name: i / max(1, len(after)) for i, t in enumerate(after)}
        pairs = _paired(gone, come, places, places_now)
        out = cls(pairs, before=before, after=after)
        out.added = [t for t in come if t.name not in pairs.values()]
        out.removed = [t for t in gone if t.name not in pairs]
        for name, tool in old.items():
            other = new.get(pairs.get(name, name))
            if other is None:
                continue
            told = replace(tool, doc=respelt(tool.doc, pairs)) if pairs else tool  # texts follow renamed tools
            if (change := _tool_change(told, other)).is_any:
                out.tools[name] = change
        return out

    @property
    def is_any(self) -> bool:
        return bool(self.renamed or self.added or self.removed or self.tools)

    def now(self, name: str) -> str:
        """The name that a tool has now."""
        return self.renamed.get(name, name)


def respelt(text: str, names: Mapping[str, str]) -> str:
    """A text that speaks of tools, with their new names."""
    for old, new in names.items():
        if old in text:
            text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
    return text


def _paired(
    gone: Sequence[ListedTool], come: Sequence[ListedTool], was: Mapping[str, float], now: Mapping[str, float]
) -> dict[str, str]:
    """Which tool that is gone is which one that came: the likest first, each once."""
    out: dict[str, str] = {}
    docs = defaultdict(list)
    for tool in come:
        docs[tool.doc, tuple(sorted(tool.params))].append(tool.name)
    for tool in gone:
        same = docs.get((tool.doc, tuple(sorted(tool.params))), [])
        if tool.doc and len(same) == 1 and same[0] not in out.values():
            out[tool.name] = same[0]
    left = [t for t in gone if t.name not in out]
    free = [t for t in come if t.name not in out.values()]
    if len(left) * len(free) > MANY * MANY:
        return out
    ranked = sorted(
        ((_likeness(a, b, was[a.name], now[b.name]), a.name, b.name) for a in left for b in free),
        key=lambda one: (-one[0], one[1:]),
    )
    for alike, a, b in ranked:
        if alike >= ALIKE and a not in out and b not in out.values():
            out[a] = b
    return out


def _likeness(one: ListedTool, other: ListedTool, was: float, now: float) -> float:
    """How much two tools have in common, from 0 to 1: descriptions, parameters, names and their place in the list."""
    parts = [(0.1, 1 - abs(was - now)), (0.15, overlap(pieces(one.name), pieces(other.name)))]
    if one.doc and other.doc:
        ratio = difflib.SequenceMatcher(None, one.doc[:600], other.doc[:600]).ratio()
        parts.append((0.4, max(overlap(words(one.doc), words(other.doc)), 2 * ratio - 1)))
    if one.has_schema and other.has_schema:
        names = overlap(one.params, other.params) if one.params or other.params else 1.0
        kinds = [sorted(json.dumps(bare(s), sort_keys=True) for s in t.params.values()) for t in (one, other)]
        parts.append((0.35, max(names, 0.8 * (kinds[0] == kinds[1] and len(kinds[0]) > 0))))
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def _tool_change(old: ListedTool, new: ListedTool) -> ToolChange:
    gone = [p for p in old.params if p not in new.params]
    come = [p for p in new.params if p not in old.params]
    renamed: dict[str, str] = {}
    for p in gone:
        fits = [q for q in come if q not in renamed.values() and _fits(old, p, new, q)]
        if fits:
            place = list(old.params).index(p)
            renamed[p] = min(fits, key=lambda q: abs(list(new.params).index(q) - place))
    out = ToolChange(old, new, renamed)
    out.added = {p: new.params[p] for p in come if p not in renamed.values()}
    out.removed = tuple(p for p in gone if p not in renamed)
    for p, schema in old.params.items():
        if (other := new.params.get(renamed.get(p, p))) is None:
            continue
        if bare(schema) != bare(other):
            out.retyped[p] = (schema, other)
        elif record(schema).get("description") != record(other).get("description"):
            out.reworded = (*out.reworded, p)
    return out


def _fits(old: ListedTool, p: str, new: ListedTool, q: str) -> bool:
    """May a parameter be another under a new name?"""
    a, b = record(old.params[p]), record(new.params[q])
    same = (a.get("type"), a.get("enum")) == (b.get("type"), b.get("enum"))
    return same and (p in old.required) == (q in new.required)


# ---------------------------------------------------------------- episodes


def listing_key(episode: ObservedEpisode) -> frozenset[str]:
    """Equal for equal lists of tools, whatever their order."""
    return frozenset(tool.shape for tool in episode.listing or ())


@dataclass
class Side:
    """The episodes before or after, with the figures that naming asks for."""

    episodes: Sequence[ObservedEpisode]

    @cached_property
    def listing(self) -> Listing | None:
        """The list that most episodes showed; of several equally frequent ones the last."""
        found: dict[frozenset[str], Listing] = {}
        keys: Counter[frozenset[str]] = Counter()
        for episode in self.episodes:
            if episode.listing is not None:
                key = listing_key(episode)
                found[key] = episode.listing
                keys[key] += 1
        return found[max(keys, key=lambda key: keys[key])] if keys else None

    @cached_property
    def described(self) -> Listing:
        """Tools that were called and described, each as it was last."""
        return tuple({tool.name: tool for episode in self.episodes for tool in episode.described}.values())

    @cached_property
    def n(self) -> int:
        return max(1, len(self.episodes))

    @cached_property
    def errors(self) -> Counter[tuple[str, str]]:
        """Episodes in which a tool fails with a code."""
        out: Counter[tuple[str, str]] = Counter()
        for episode in self.episodes:
            out.update({(call.tool, call.error) for call in episode.work if call.error})
        return out

    @cached_property
    def codes(self) -> Counter[str]:
        out: Counter[str] = Counter()
        for episode in self.episodes:
            out.update({call.error for call in episode.work if call.error})
        return out

    @cached_property
    def texts(self) -> dict[str, set[str]]:
        """The texts of errors, by code."""
        out: dict[str, set[str]] = defaultdict(set)
        for episode in self.episodes:
            for call in episode.work:
                if call.error and call.text and len(out[call.error]) < 50:
                    out[call.error].add(call.text)
        return out

    @cached_property
    def contents(self) -> dict[str, list[Any]]:
        """Results by tool."""
        out: dict[str, list[Any]] = defaultdict(list)
        for episode in self.episodes:
            for call in results(episode):
                if len(out[call.tool]) < 60:
                    out[call.tool].append(call.result)
        return out

    @cached_property
    def arguments(self) -> dict[str, list[dict[str, Any]]]:
        out: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for episode in self.episodes:
            for call in episode.work:
                if isinstance(call.args, dict) and len(out[call.tool]) < 100:
                    out[call.tool].append(call.args)
        return out

    @cached_property
    def called(self) -> Counter[str]:
        out: Counter[str] = Counter()
        for episode in self.episodes:
            out.update({call.tool for call in episode.work})
        return out

    @cached_property
    def policy(self) -> Counter[str]:
        """Sentences of the policy, by the number of episodes that have them."""
        out: Counter[str] = Counter()
        for episode in self.episodes:
            out.update(set(sentences(episode.policy or "")))
        return out

    @cached_property
    def queries(self) -> list[str]:
        return [episode.query for episode in self.episodes if episode.query]

    def mean(self, figure: Any) -> float:
        values = [value for episode in self.episodes if (value := figure(episode)) is not None]
        return sum(values) / len(values) if values else 0.0

    def share(self, holds: Any) -> float:
        return sum(bool(holds(episode)) for episode in self.episodes) / self.n

    @cached_property
    def has_content(self) -> bool:
        return any(True for episode in self.episodes for _ in results(episode))


@dataclass
class Differences:
    """Two sides and what is different between their lists of tools."""

    before: Side
    after: Side

    @classmethod
    def of(cls, before: Sequence[ObservedEpisode], after: Sequence[ObservedEpisode]) -> Differences:
        """Where only some episodes show other tools or another policy, those are what is after the change."""
        known = {listing_key(e) for e in before}, {e.policy for e in before}
        met = [e for e in after if listing_key(e) not in known[0] or (len(known[1]) == 1 and e.policy not in known[1])]
        return cls(Side(before), Side(met if len(met) >= 2 else after))

    @cached_property
    def tools(self) -> ListingChange:
        was, now = self.before.listing, self.after.listing
        if was is None and now is None and (was := self.before.described) and (now := self.after.described):
            first = ListingChange.between(was, now)  # a tool that was not called is neither new nor gone
            added = {tool.name for tool in first.added}
            now = (*(tool for tool in now if tool.name not in added), *first.removed)
        return ListingChange.between(was, now) if was is not None and now is not None else ListingChange()

    @cached_property
    def later(self) -> list[ListingChange]:
        """How lists changed within episodes after the change, where they did not before."""
        if any(episode.later for episode in self.before.episodes):
            return []
        out = []
        for episode in self.after.episodes:
            first = episode.listing
            for second in episode.later:
                if first is not None:
                    out.append(ListingChange.between(first, second))
        return out

    @cached_property
    def new_errors(self) -> dict[str, float]:
        """Codes of errors that are much more frequent: the share of episodes that have them now."""
        out = {}
        for code, n in self.after.codes.items():
            now, was = n / self.after.n, self.before.codes[code] / self.before.n
            if now > was + 0.1 and now > 2 * was:
                out[code] = round(now, 3)
        return out

    @cached_property
    def failing(self) -> list[str]:
        """Tools that fail much more often than before, by their names now."""
        back = {new: old for old, new in self.tools.renamed.items()}
        out = []
        for tool in self.after.called:
            now = sum(n for (t, _), n in self.after.errors.items() if t == tool) / max(1, self.after.called[tool])
            old = back.get(tool, tool)
            was = sum(n for (t, _), n in self.before.errors.items() if t == old) / max(1, self.before.called[old])
            if now > was + 0.15:
                out.append(tool)
        return sorted(out)

    @cached_property
    def added_policy(self) -> list[str]:
        """Sentences of the policy that no episode before had."""
        return [one for one in self.after.policy if one not in self.before.policy]

    @cached_property
    def recovered(self) -> tuple[float, float]:
        """Of failures after the change: the share whose same call succeeded later, and how many failures it took."""
        failures = healed = 0
        tries: list[int] = []
        for episode in self.after.episodes:
            missed: Counter[str] = Counter()
            for call in episode.work:
                key = f"{call.tool} {call.args!r}"
                if call.error:
                    missed[key] += 1
                elif missed.get(key):
                    healed += 1
                    tries.append(missed.pop(key))
            failures += len(missed)
        total = failures + healed
        return (healed / total if total else 0.0), (sum(tries) / len(tries) if tries else 0.0)

    @cached_property
    def lasting(self) -> float:
        """Of calls that failed after the change and were repeated: the share that never succeeded."""
        again = never = 0
        for episode in self.after.episodes:
            failed: Counter[str] = Counter()
            done = set()
            for call in episode.work:
                key = f"{call.tool} {call.args!r}"
                failed[key] += call.error is not None
                if call.error is None:
                    done.add(key)
            repeated = [key for key, n in failed.items() if n > 1]
            again += len(repeated)
            never += sum(key not in done for key in repeated)
        return never / again if again else 0.0

    def change(self, figure: Any) -> float:
        """How much a figure rose."""
        return self.after.mean(figure) - self.before.mean(figure)

    @cached_property
    def refusals(self) -> float:
        return self.change(refused)

    @cached_property
    def heard(self) -> float:
        return self.after.share(lambda e: e.heard) - self.before.share(lambda e: e.heard)

    @cached_property
    def asked(self) -> float:
        return self.change(questions)

    @cached_property
    def repeated(self) -> float:
        return self.change(repeats)

    @cached_property
    def steps(self) -> float:
        return self.change(lambda episode: len(episode.work))


def failures(episodes: Iterable[ObservedEpisode]) -> Iterable[tuple[int, ObservedCall]]:
    for episode in episodes:
        for nth, call in enumerate(episode.work):
            if call.error:
                yield nth, call
