"""Does a run pass? Rules over groups of episodes, each of them decided by `decide`.

A run is judged alone (clean against shifted) or beside a baseline (the same episodes then and now). Nothing here prints
or writes. docs/gate.md has the rules and why they are as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from crosswind.base.errors import CrosswindError
from crosswind.base.terminal import safe
from crosswind.core.registry import did_you_mean, domains, perturbations
from crosswind.core.types import AXES, TIERS, Model
from crosswind.episodes.record import Record
from crosswind.episodes.suite import CLEAN
from crosswind.gate.decision import SURELY, Decision, Word, decide, decide_rate
from crosswind.metrics.groups import GROUP_OF
from crosswind.metrics.scores import Pair, pairs

MOST_ERRORS = 0.05  # share of episodes lost to infrastructure beyond which nothing is decided
BROKEN, FINAL = 20, 300  # episodes listed for a finding, and characters of what the agent said in each
EXITS = {"pass": 0, "fail": 1, "infrastructure": 3, "inconclusive": 4}


# ---------------------------------------------------------------- rules


class Rule(Model):
    """An allowed drop, for one group of episodes or for each group of a grouping."""

    by: str  # a grouping
    name: str = ""  # one group of it; empty: each
    most: float

    def __str__(self) -> str:
        return f"{self.by}:{self.name}={self.most:g}" if self.name else f"{self.by}={self.most:g}"


def parse_rule(text: str) -> Rule:
    """A rule as it is written: `tier=0.10`, `perception=5%`, `kind:semantic_rename=0.2`, or `0.10` for all."""
    name, equals, share = text.rpartition("=")
    return rule(name.strip() if equals else "all", share.strip(), text)


def rule(name: str, share: str | float, text: str = "") -> Rule:
    """A rule from a name and an allowed drop."""
    most = _share(share, text or f"{name}={share}")
    by, colon, one = name.partition(":")
    if colon and by in GROUP_OF and one:
        return Rule(by=by, name=one, most=most)
    if name in GROUP_OF or name == CLEAN:
        return Rule(by=name, most=most)
    for by, names in (("tier", TIERS), ("axis", AXES), ("kind", perturbations.names()), ("domain", domains.names())):
        if name in names:
            return Rule(by=by, name=name, most=most)
    known = [*GROUP_OF, CLEAN, *TIERS, *(a for a in AXES if a != "domain"), *perturbations.names(), *domains.names()]
    raise CrosswindError(
        f"no group of episodes is called {name!r}; {did_you_mean(name, known)}; write it as in tier=0.10"
    )


def _share(share: str | float, text: str) -> float:
    try:
        number = float(share[:-1]) / 100 if isinstance(share, str) and share.endswith("%") else float(share)
    except ValueError:
        raise CrosswindError(f"{text!r} is no rule; write a name and a share, as in tier=0.10 or all=10%") from None
    if not 0 <= number < 1:
        raise CrosswindError(f"{text!r} allows a drop of {number:g}; give a share from 0 to below 1, such as 0.10")
    return number


# ---------------------------------------------------------------- a run under rules


class Broken(Model):
    """An episode that counts against the run."""

    key: str
    kinds: tuple[str, ...]
    stage: str | None
    cause: str | None
    final: str  # what the agent said, shortened: text from elsewhere


class RuleResult(Model):
    """What one rule says of one group."""

    rule: str
    group: str
    most: float  # allowed drop, or the least clean success
    verdict: Word
    decision: Decision
    broken: tuple[Broken, ...] = ()

    @property
    def says(self) -> str:
        """The finding as a sentence."""
        d = self.decision
        if not d.n:
            return f"{self.group}: the run has no such episodes; {_wanted(d)}"
        seen = (
            f"clean success {100 * d.after:.1f} % of {d.n}, wanted {100 * self.most:g} %"
            if self.rule.startswith("min-clean")
            else f"{100 * d.before:.1f} % to {100 * d.after:.1f} % over {d.n} pairs of {d.tasks} tasks, "
            f"a {'fall' if d.delta <= 0 else 'rise'} of {abs(100 * d.delta):.1f} points, allowed {100 * self.most:g}"
        )
        return f"{self.group}: {seen}" + (f"; {_wanted(d)}" if self.verdict == "inconclusive" else "")


def _wanted(decision: Decision) -> str:
    if decision.needed_n is None:
        return "so near to what is allowed that no number of pairs would decide"
    return f"about {decision.needed_n} would decide"


class Outcome(Model):
    """What the gate says of a run."""

    verdict: Literal["pass", "fail", "inconclusive", "infrastructure"]
    exit_code: int
    says: str
    episodes: int
    errors: int  # episodes lost to infrastructure, and left out
    agent: str
    baseline: str | None  # the agent of the other run
    findings: tuple[RuleResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict == "pass"

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        """The verdict, the findings that decided it, and the notes, one per line."""
        deciding = (finding.says for finding in self.findings if finding.verdict == self.verdict)
        return safe("\n".join((self.says, *deciding, *self.notes)))


def examine(
    records: Sequence[Record],
    rules: Sequence[Rule],
    *,
    baseline: Sequence[Record] | None = None,
    min_clean: float | None = None,
    max_errors: float = MOST_ERRORS,
    unfinished: Sequence[str] = (),
) -> Outcome:
    """Judge a run by its rules. `unfinished` are reasons why the run cannot be judged at all."""
    if not rules and min_clean is None:
        raise CrosswindError("the gate has no rule; give --max-drop tier=0.10, or --min-clean 0.8")
    if baseline is None and any(r.by == CLEAN for r in rules):
        raise CrosswindError("the rule for clean compares with a baseline; give --baseline, or --min-clean 0.8")
    notes: list[str] = []
    if baseline is None:
        found = _clean_and_shifted(records, notes)
    else:
        found = _then_and_now(baseline, records, notes)
    tests = [test for one in rules for test in _tests(one, found)]
    if min_clean is not None:
        tests.append(_clean_test(records, min_clean))
    findings = _decided(tests)
    everything = [*records, *(baseline or ())]
    errors = sum(r.outcome == "error" for r in everything)
    reasons = list(unfinished)
    if not records:
        reasons.append("the run has no finished episode; give the same run command again")
    elif errors > max_errors * len(everything):
        reasons.append(
            f"{errors} of {len(everything)} episodes were lost to infrastructure, more than {100 * max_errors:g} %; "
            "give the same run command again to play them"
        )
    words: Literal["pass", "fail", "inconclusive", "infrastructure"]
    verdicts = {f.verdict for f in findings}
    words = "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"
    if reasons:
        words = "infrastructure"
    return Outcome(
        verdict=words,
        exit_code=EXITS[words],
        says=_sentence(words, findings, reasons),
        episodes=len(records),
        errors=errors,
        agent=", ".join(sorted({r.agent for r in records})),
        baseline=None if baseline is None else ", ".join(sorted({r.agent for r in baseline})),
        findings=tuple(findings),
        notes=(*reasons, *notes),
    )


def _sentence(verdict: str, findings: Sequence[RuleResult], reasons: Sequence[str]) -> str:
    against = [f.group for f in findings if f.verdict == verdict]
    if verdict == "pass":
        return f"Pass: all {len(findings)} checks are within what is allowed."
    if verdict == "fail":
        return f"Fail: {len(against)} of {len(findings)} checks are beyond what is allowed ({', '.join(against)})."
    if verdict == "infrastructure":
        return f"No verdict: {reasons[0]}."
    return f"Inconclusive: {len(against)} of {len(findings)} checks need more pairs ({', '.join(against)})."


class _Test(NamedTuple):
    """A rule on its way to a verdict: `decide` takes the level at which a fall is sure."""

    rule: str
    group: str
    most: float
    decide: Callable[[float], Decision]
    broken: Sequence[Record]


def _decided(tests: Sequence[_Test]) -> list[RuleResult]:
    """Decide all tests together, the sureness of a fall shared out by Holm's procedure."""
    alone = [test.decide(SURELY) for test in tests]
    order = sorted(range(len(tests)), key=lambda i: alone[i].p_fall)
    out: dict[int, RuleResult] = {}
    level, open_ = 1 - SURELY, True
    for rank, i in enumerate(order):
        if open_:
            level = (1 - SURELY) / (len(tests) - rank)
            open_ = alone[i].p_fall <= level
        decision = tests[i].decide(1 - level)
        broken = tests[i].broken[:BROKEN] if decision.verdict == "fail" else []
        out[i] = RuleResult(
            rule=tests[i].rule,
            group=tests[i].group,
            most=tests[i].most,
            verdict=decision.verdict,
            decision=decision,
            broken=tuple(
                Broken(key=r.key, kinds=r.kinds, stage=r.stage, cause=r.cause, final=r.final[:FINAL]) for r in broken
            ),
        )
    return [out[i] for i in range(len(tests))]


def _tests(one: Rule, compared: Sequence[Pair]) -> list[_Test]:
    """A rule as tests, one for each group it speaks of."""
    if one.by == CLEAN:
        found = {CLEAN: [p for p in compared if p[1].clean]}
    else:
        name_of = GROUP_OF[one.by]
        found = {one.name: []} if one.name else {}
        for pair in compared:
            name = None if pair[1].clean else name_of(pair[1])
            if name is not None and one.name in ("", name):
                found.setdefault(name, []).append(pair)
    if not found:
        found = {one.by: []}
    return [_drop_test(one, name, found[name]) for name in sorted(found)]


def _drop_test(one: Rule, name: str, compared: Sequence[Pair]) -> _Test:
    before, after = [a.passed for a, _ in compared], [b.passed for _, b in compared]
    ids, first = [b.task_id for _, b in compared], [a.key for a, _ in compared]

    def decided(surely: float) -> Decision:
        return decide(before, after, one.most, tasks=ids, shared=first, surely=surely)

    label = name if one.by in (name, "tier", "axis", "kind") else f"{one.by} {name}"
    return _Test(str(one), label, one.most, decided, [b for a, b in compared if a.passed and not b.passed])


def _clean_test(records: Sequence[Record], least: float) -> _Test:
    clean = [r for r in records if r.clean and r.judged]
    outcomes, ids = [r.passed for r in clean], [r.task_id for r in clean]

    def decided(surely: float) -> Decision:
        return decide_rate(outcomes, least, tasks=ids, surely=surely)

    return _Test(f"min-clean={least:g}", "clean success", least, decided, [r for r in clean if not r.passed])


def _clean_and_shifted(records: Sequence[Record], notes: list[str]) -> list[Pair]:
    """The pairs of one run, without those that lack a side."""
    found, shifted = pairs(records), sum(not r.clean for r in records)
    if len(found) < shifted:
        notes.append(f"{shifted - len(found)} of {shifted} pairs lack a side and are left out")
    return found


def _then_and_now(then: Sequence[Record], now: Sequence[Record], notes: list[str]) -> list[Pair]:
    """The same episodes of two runs, without those that are not the same or lack a side."""
    before = {r.key: r for r in then}
    same = [(before[r.key], r) for r in now if r.key in before and before[r.key].layers == r.layers]
    if not same:
        raise CrosswindError(
            "the two runs share no episode; a baseline is a run of the same suite with the same seed and trials"
        )
    judges = {r.judge for pair in same for r in pair if r.judged}
    if len(judges) > 1:
        raise CrosswindError(
            f"the two runs were judged by different verifiers ({', '.join(sorted(judges))}); "
            "bring both to the present one with: crosswind rescore DIR --write"
        )
    found = [p for p in same if all(r.judged for r in p)]
    if left := max(len(then), len(now)) - len(found):
        notes.append(f"{left} episodes have no counterpart in the other run, or lack a side, and are left out")
    return found
