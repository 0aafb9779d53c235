"""How the steps of a failed episode relate to the certified way, and what its final message says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from crosswind.core import entity_names
from crosswind.core.types import FINISH, SAY, TALK, Step, ToolCall
from crosswind.metrics.diagnosis.evidence import NEAR, Act, Evidence, covers, leaves, likeness, strings
from crosswind.text import values

_ABSENT = re.compile(  # words that deny that something is there
    r"\bthere (?:is|are|was|were) (?:no|none|not an?)\b|\bnothing (?:is|are|was|were)\b"
    r"|\bno \w+ (?:is|are|was|were|has|exists?|matches)\b|\b(?:not|n't|unable to) (?:find|see|locate)\b"
    r"|\bnot found\b|\b(?:does not|doesn't) (?:exist|have)\b",
    re.IGNORECASE,
)
SCHEMA = frozenset({"unknown_tool", "bad_arguments"})  # errors that speak about the call and not about the world


class Case(Evidence):
    """One failed episode, and how its steps relate to the certified way."""

    def attempts(self, call: ToolCall) -> list[Act]:
        """The steps that were to make a call and did not, the most telling first."""
        ways = self.ways_to(call)
        tools = {step.call.tool for step in ways} | self.aliases(call) | {call.tool}
        exact, rejected, other, refused = [], [], [], []
        for act in self.acts:
            if any(c in self.direct for c in act.worked) or self.is_progress(act, ways):
                continue
            if act.error and any(self.is_exact(act, c, self.ways_to(c)) for c in self.direct if c != call):
                continue
            aimed = act.call.tool in tools
            if aimed and self.is_exact(act, call, ways):
                exact.append(act)
            elif any(c.tool == call.tool for c, _, _ in act.inner):
                other.append(act)
            elif aimed and act.code in SCHEMA:
                rejected.append(act)
            elif aimed:
                refused.append(act)
        if other and not exact and (not rejected or rejected[-1].n < other[-1].n):
            other = [act for act in other if act.error] or other
            return [max(other, key=lambda act: (*self.nearness(act, call), -act.n))]
        denied = next((act.n for act in exact if act.error and act.inner), self.end)  # by the world: the rest follows
        instead = [act for act in self.instead(call, ways) if act.n < denied]
        firm = sorted((*exact, *rejected, *instead), key=lambda act: act.n) or refused
        return [act for act in firm if act.call == firm[-1].call]

    def is_progress(self, act: Act, ways: Sequence[Step]) -> bool:
        """Is it a step of the certified way that answers without an error and prepares another?"""
        return act.error is None and any(self.same(act.call, s.call) for s in self.gold if s not in ways)

    def is_exact(self, act: Act, call: ToolCall, ways: Sequence[Step]) -> bool:
        """Was it the right call?"""
        if any(c == call for c, _, _ in act.inner):
            return True
        if any(self.same(act.call, step.call) for step in ways):
            return True
        return (
            act.error is not None
            and act.code not in SCHEMA
            and act.call.tool in self.aliases(call)
            and any(set(map(str, act.call.args.values())) == set(map(str, step.call.args.values())) for step in ways)
        )

    def turned_away(self) -> Act | None:
        """The last step, if the certified way makes the same call and gets an error for it as well."""
        last = next((act for act in reversed(self.acts) if act.call.tool not in TALK), None)
        if last is None or not last.error or last.code in SCHEMA:
            return None
        failed = (step.call for step in self.gold if step.result.error is not None)
        return last if any(self.same(last.call, call) for call in failed) else None

    def nearness(self, act: Act, call: ToolCall) -> tuple[int, bool, float]:
        """How much a call with other arguments looks like the one wanted: equal ones, known ones, and likeness."""
        made = next((c for c, _, _ in act.inner if c.tool == call.tool), None)
        if made is None:
            return len(call.args), True, 1.0
        differ = [(made.args.get(k), v) for k, v in call.args.items() if made.args.get(k) != v]
        known = any(self.sources(wrong, act.n) - {"tools"} for wrong, _ in differ)
        return len(call.args) - len(differ), known, max((likeness(w, r) for w, r in differ), default=1.0)

    def is_aside(self, act: Act, call: ToolCall) -> bool:
        """Has a call that worked nothing to do with the one wanted but its tool?"""
        equal, known, alike = self.nearness(act, call)
        return not act.error and not equal and not known and alike < NEAR

    def instead(self, call: ToolCall, ways: Sequence[Step]) -> list[Act]:
        """Steps with a tool that gold does not use and with the arguments of the call."""
        used = {step.call.tool for step in self.gold}
        wanted = {json.dumps(v) for step in ways for v in leaves(dict(step.call.args))}
        wanted |= {json.dumps(v) for v in call.args.values()}
        before = self.direct[: self.direct.index(call)] if call in self.direct else []
        since = max((self.first_done(c) or 0 for c in before), default=0)
        out = []
        for act in self.acts[since:]:
            if act.call.tool in used or act.call.tool in TALK:
                continue
            given = {json.dumps(v) for v in leaves(dict(act.call.args))}
            if given & wanted or act.code == "unknown_tool":
                out.append(act)
        return out

    def same(self, call: ToolCall, gold: ToolCall) -> bool:
        """Is it the gold's call? Codes and the like, which layers make up again in each episode, may differ."""
        if call.tool != gold.tool or set(call.args) != set(gold.args):
            return False
        return all(
            call.args[k] == v or (isinstance(call.args[k], str) and isinstance(v, str) and v in self._tokens)
            for k, v in gold.args.items()
        )

    @cached_property
    def _tokens(self) -> set[str]:
        """What layers made up in the gold and the world knows nothing of."""
        made = {v for step in self.gold if not step.inner for v in leaves(step.result.content) if isinstance(v, str)}
        known = {v for step in self.gold for _, result in step.inner for v in leaves(result.content)}
        return made - known - {v for step in self.gold for call, _ in step.inner for v in leaves(dict(call.args))}

    def gold_uses(self, name: str) -> bool:
        """Does gold use a tool?"""
        return any(step.call.tool == name for step in self.gold)

    def was_right_then(self, n: int, told: int) -> bool:
        """Was a step right until the user changed the request, at the step `told`?"""
        made = self.acts[n - 1].worked if n < told else []
        return bool(made) and all(call in self.shortest(self.first_wanted) for call in made)

    def is_ruled_out(self, value: Any) -> bool:
        """Does a rule of the policy put something else in the place of a value that the request states?"""
        stated = self.task.brief.stated
        return any(key in stated and stated[key] == value for key in self.task.brief.rules)

    def prerequisite(self, act: Act, call: ToolCall) -> str | None:
        """A tool of the world that gold calls first because its result is needed, and that was not called yet."""
        for step in self.ways_to(call):
            extra = [v for k, v in step.call.args.items() if k not in act.call.args]
            for earlier in self.gold:
                if earlier is step:
                    break
                spec = self.shown.get(earlier.call.tool)
                gives = any(v in list(leaves(earlier.result.content)) for v in extra)
                made = any(a.n < act.n and a.call.tool == earlier.call.tool for a in self.acts)
                if gives and not made and spec is not None and spec.ids & set(self.canonical):
                    return earlier.call.tool
        return None

    def voiced(self, value: Any, act: Act) -> bool:
        said = (*act.heard, act.content) if act.call.tool in (SAY, FINISH) else act.heard
        return any(isinstance(words, str) and self.stands(value, words) for words in said)

    @staticmethod
    def channel(known: set[str]) -> str:
        """The stage to which the place of the right value belongs."""
        if "request" in known or "tools" in known:
            return "understanding"
        return "feedback" if known & {"results", "words"} else "planning"

    def truthful(self, truth: Sequence[Any], inner: tuple[tuple[ToolCall, bool, Any], ...]) -> bool:
        """Did the agent come to see what the world answered, as far as gold did?"""
        calls = [c for c, _, _ in inner]
        same = [a for a in self.acts if not a.error and ([c for c, _, _ in a.inner] == calls or not a.inner)]
        mine = "\n".join(a.text for a in same)
        golden = "\n".join(
            json.dumps(s.result.content, ensure_ascii=False)
            for s in self.gold
            if s.result.error is None and ([c for c, _ in s.inner] == calls or not s.inner)
        )
        if not any([c for c, _ in s.inner] == calls for s in self.gold):
            return True
        return all(self.shows(v, mine) or not self.shows(v, golden) for v in truth)

    def _tells(self, truth: Sequence[Any], steps: Sequence[Step]) -> bool:
        text = "\n".join(json.dumps(s.result.content, ensure_ascii=False) for s in steps)
        return all(self.shows(v, text) for v in truth)

    def shows(self, value: Any, text: str) -> bool:
        return self.stands(value, text) or (
            isinstance(value, str) and self.stands(entity_names.shown(self.task, value), text)
        )

    def recovered(self, act: Act) -> bool:
        """Was a failed call made good later, or of no consequence?"""
        if self.repeated(act):
            return True
        spec = self.shown.get(act.call.tool)
        aims = {i for i in (spec.ids if spec else {act.call.tool}) if i in self.canonical}
        return not aims & {c.tool for c in self.missing}

    def repeated(self, act: Act) -> bool:
        """Did the tool of a failed call work later?"""
        return any(a.n > act.n and not a.error and a.call.tool == act.call.tool for a in self.acts)

    def open_error(self) -> Act | None:
        """The last error on the way that the agent did not get past, by the same call or another for the same end."""
        for act in reversed(self.acts):
            if not act.error or act.code in SCHEMA or not self.is_on_the_way(act):
                continue
            aims = [c for c in self.direct if self.is_exact(act, c, self.ways_to(c))]
            later = [a for a in self.acts[act.n :] if not a.error]
            past = any(a.call == act.call or (aims and any(c in a.worked for c in aims)) for a in later)
            checked = any(not a.inner and self.gold_uses(a.call.tool) and a.call.tool not in TALK for a in later)
            if not past and not (checked and act.worked):
                return act
        return None

    def is_on_the_way(self, act: Act) -> bool:
        """Does a step reach for something that the certified way reaches for?"""
        calls = [call for step in self.gold for call, _ in step.inner]
        if act.inner:
            return any(call in calls or call in self.direct for call, _, _ in act.inner)
        return any(self.same(act.call, step.call) for step in self.gold)

    def is_usual(self, act: Act) -> bool:
        """Does a result show what the world answered in the world's own form?"""
        return covers(
            act.content, entity_names.through(act.inner[0][2], lambda text: entity_names.shown(self.task, text))
        )

    def denied(self) -> str | None:
        """Something that the request names and results hold, and that the final message says is not there."""
        for sentence in re.split(r"(?<=[.;!?])\s", self.record.final):
            if _ABSENT.search(sentence):
                for value in sorted(self.task.given):
                    if self.shows(value, sentence) and "results" in self.sources(value, self.end):
                        return value
        return None

    def claims(self) -> list[Any]:
        """Figures, ids, dates and times that the final message states."""
        final = self.record.final
        return [
            *values.ids(final),
            *values.dates(final),
            *values.times(final),
            *values.moneys(final),
            *values.numbers(final),
        ]

    def named(self) -> list[str]:
        """Names that results gave and the final message repeats."""
        names = {v for a in self.acts for v in strings(a.content) if v.istitle() and len(v) > 3}
        names |= {
            n for a in self.acts if isinstance(a.content, str) for n in re.findall(r"\b[A-Z][a-z]{3,}\b", a.content)
        }
        return sorted(name for name in names if values.mentions(self.record.final, name))

    def asserted(self) -> list[str]:
        """Names that the final message gives and that nobody had said: a guess."""
        told = re.findall(r"(?<=[a-z,:\"'(] )[A-Z][\w'-]{2,}(?: [A-Z][\w'-]+)*", self.record.final)
        return [name for name in told if not self.sources(name, self.end)]

    def halfway(self, act: Act) -> bool:
        """Does the certified way need a further step of the same tool after this one, for the same end?"""
        for step, after in zip(self.gold, self.gold[1:], strict=False):
            if self.same(act.call, step.call) and step.call.tool == after.call.tool:
                return not step.inner or [c for c, _ in step.inner] == [c for c, _ in after.inner]
        return False
