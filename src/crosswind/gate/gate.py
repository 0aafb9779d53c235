"""Does a run pass? Rules over groups of episodes, each of them decided by `decide`.

A run is judged alone (clean against shifted) or beside a baseline (the same episodes then and now). Nothing here prints
or writes. docs/gate.md has the rules and why they are as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from crosswind.base.errors import CrosswindError
from crosswind.base.terminal import safe
from crosswind.core.registry import did_you_mean, domains, perturbations
from crosswind.core.types import AXES, TIERS, Model
from crosswind.episodes.brief import Told
from crosswind.episodes.record import Record
from crosswind.episodes.suite import CLEAN
from crosswind.gate.decision import LEVEL, Decision, Word, decide, decide_against, decide_gain, decide_rate
from crosswind.metrics import formats
from crosswind.metrics.groups import GROUP_OF
from crosswind.metrics.scores import Pair, pairs, refused, sides, triviality
from crosswind.metrics.shares import Stream
from crosswind.metrics.stats import mcnemar
from crosswind.metrics.streams import changes_of, stable, streams_of
from crosswind.metrics.together import COMMON, little_in_common, same_judge

MIN_CLEAN = 0.50  # the least clean success unless given: below it, there is too little that could drop
RECOVERED = 0.8  # share of changes after which an agent is to be back within the episodes that a rule allows
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
        f"no group of episodes is called {name!r}; {did_you_mean(name, known)} "
        "(a rule is NAME=SHARE, such as tier=0.10)"
    )


def parse_share(share: str | float) -> float:
    """A share as it is written: `0.9` or `90%`. Raises `ValueError` where it is none."""
    try:
        return float(share[:-1]) / 100 if isinstance(share, str) and share.endswith("%") else float(share)
    except ValueError:
        raise ValueError(f"got {share!r}; expected a share such as 0.9 or 90%") from None


def _share(share: str | float, text: str) -> float:
    try:
        number = parse_share(share)
    except ValueError:
        raise CrosswindError(f"{text!r} is not a rule; expected NAME=SHARE, such as tier=0.10 or all=10%") from None
    if not 0 <= number < 1:
        raise CrosswindError(f"{text!r} is out of range; expected a share of at least 0 and below 1, such as 0.10")
    return number


# ---------------------------------------------------------------- a run under rules


TRIVIAL_RULE = "better-than-trivial"
MOST_RULE = "max-false-refusals"  # the one rate that has an upper limit
GAIN_RULE = "min-gain"
REFUSAL_RULE = "max-refusal-drop"
STABILITY_RULE, RECOVERY_RULE = "min-stability", "max-recovery"  # whose bounds resample whole streams


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
    most: float  # allowed drop; of a rate, the share that it is compared with
    verdict: Word
    decision: Decision
    broken: tuple[Broken, ...] = ()

    @property
    def is_rate(self) -> bool:
        """A rate against a limit, and no drop."""
        return self.decision.before is None

    @property
    def is_gain(self) -> bool:
        """A rise that is required."""
        return self.rule.startswith(f"{GAIN_RULE} ")

    @property
    def unit(self) -> str:
        """What there must be more of to decide."""
        return "stream" if self.rule in (STABILITY_RULE, RECOVERY_RULE) else "task"

    @property
    def wanted(self) -> str:
        """How much more would decide, in words; the pairs that it makes as well, where a task has several."""
        d = self.decision
        if d.needed_n is None:
            return f"no number of {self.unit}s"
        if not d.n:
            return f"about {formats.many(d.needed_n, self.unit)}"
        more = max(1, math.ceil(d.needed_n * d.tasks / d.n - 1e-9) - d.tasks)
        pairs = f" ({formats.many(d.needed_n - d.n, 'more pair')})" if d.before is not None and d.n > d.tasks else ""
        return f"about {formats.many(more, f'more {self.unit}')}{pairs}"

    @property
    def label(self) -> str:
        """What is judged, as printed everywhere."""
        return f"better than trivial: {self.group}" if self.rule == TRIVIAL_RULE else self.group

    @property
    def change(self) -> str:
        """The figure that is judged with the interval that decides, as printed everywhere."""
        d = self.decision
        if not d.n:
            return "–"
        if self.is_rate:
            bounds = [formats.percent(self.most + bound) for bound in (d.low, d.high)]
            return f"{formats.percent(d.after)} [{', '.join(bounds)}]"
        limit = self.most if self.is_gain else -self.most
        low, high = (formats.points(bound, limit) for bound in (d.low, d.high))
        return f"{formats.points(d.delta)} [{low}, {high}]"

    @property
    def allowed(self) -> str:
        """The limit, as printed everywhere."""
        if self.rule == TRIVIAL_RULE:
            return f"lower bound above {100 * self.most:.3g} %"
        if self.is_rate:
            return f"at {'most' if self.rule.startswith(MOST_RULE) else 'least'} {100 * self.most:g} %"
        if self.is_gain:
            return f"at least +{100 * self.most:g}"
        return f"{formats.MINUS}{100 * self.most:g}"

    @property
    def says(self) -> str:
        """The finding as a sentence."""
        d = self.decision
        if not d.n:
            return f"{self.label}: the run has no such episodes; {self.wanted} would decide"
        seen = (
            f"{self.change} over {formats.many(d.tasks, self.unit)}, {self.allowed}"
            if self.is_rate
            else f"{formats.percent(d.before)} to {formats.percent(d.after)} over {d.n} pairs from {d.tasks} tasks, "
            f"{self.change} points, {self.allowed} {'required' if self.is_gain else 'allowed'}"
        )
        if self.rule == TRIVIAL_RULE and self.verdict == "fail":
            seen += f": {formats.TRIVIAL}"
        return f"{self.label}: {seen}" + (f"; {self.wanted} would decide" if self.verdict == "inconclusive" else "")


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

    def __repr__(self) -> str:
        against = f" against {self.baseline}" if self.baseline else ""
        return f"<Outcome of {self.agent}{against}: {self.verdict}, {self.episodes} episodes>"

    def __str__(self) -> str:
        """The verdict, the findings that decided it, and the notes, one per line."""
        deciding = (finding.says for finding in self.findings if finding.verdict == self.verdict)
        return safe("\n".join((self.says, *deciding, *self.notes)))


def examine(
    records: Sequence[Told],
    rules: Sequence[Rule],
    *,
    baseline: Sequence[Told] | None = None,
    partial: bool = False,
    min_clean: float | None = None,
    min_refusals: float | None = None,
    max_false_refusals: float | None = None,
    min_stability: float | None = None,
    max_recovery: int | None = None,
    gains: Sequence[Rule] = (),
    max_refusal_drop: float | None = None,
    max_errors: float = MOST_ERRORS,
    unfinished: Sequence[str] = (),
    trivial: Mapping[str, Sequence[Told]] | None = None,
    whole: Callable[[Iterable[Told]], Sequence[Record]] | None = None,
) -> Outcome:
    """Judge a run by its rules. `unfinished` are reasons why the run cannot be judged at all.

    `min_clean` is 0.5 unless given; 0 asks for nothing. `trivial` are episodes of the run as trivial agents played
    them: a run that cannot be told from theirs does not pass. Without rules these two are all that is checked. Next to
    a baseline, `gains` are rises that groups must show (`most` is the least rise), and `max_refusal_drop` is the
    largest allowed drop of right refusals, over all conditions together; one that shares less than half of the episodes
    is refused unless the comparison may be `partial`. Episodes may be briefs if `whole` gives the
    records of some of them, for what the agent said in those that are listed.
    """
    if baseline is None and (gains or max_refusal_drop is not None):
        raise CrosswindError("--min-gain and --max-refusal-drop compare with an earlier run; give --baseline DIR")
    if baseline is None and any(r.by == CLEAN for r in rules):
        raise CrosswindError(
            "the rule clean=... compares with an earlier run; give --baseline DIR, or use --min-clean 0.8 instead"
        )
    notes: list[str] = []
    if not rules and not gains:
        notes.append(
            "no --max-drop rule was given, so drops are not judged; --max-drop tier=0.10 would allow each "
            "tier a drop of 10 "
            "points"
        )
    impossible: list[Pair] = []
    if baseline is None:
        found = _clean_and_shifted(records, notes)
    else:
        about_shifted = any(r.by != CLEAN for r in (*rules, *gains))
        same = _then_and_now(baseline, records, notes, shifted=about_shifted, partial=partial)
        found, impossible = [p for p in same if not p[1].refuse], [p for p in same if p[1].refuse]
    tests = [test for one in rules for test in _tests(one, found)]
    tests += [_gain_test(test) for one in gains for test in _tests(one, found)]
    if max_refusal_drop is not None:
        one = Rule(by="all", most=max_refusal_drop)
        tests.append(_drop_test(one, "right refusals", impossible)._replace(rule=f"{REFUSAL_RULE}={one.most:g}"))
    counted = sides(records)
    if least := MIN_CLEAN if min_clean is None else min_clean:
        tests.append(_rate_test("min-clean", "clean success", least, counted["clean"], lambda r: r.passed))
    shifted = [r for r in records if r.judged and not r.clean]
    if min_refusals:
        to_refuse = [r for r in shifted if r.refuse]
        tests.append(_rate_test("min-refusals", "right refusals", min_refusals, to_refuse, lambda r: r.passed))
    if max_false_refusals is not None:
        solvable = [r for r in shifted if not r.refuse]
        tests.append(_most_test(MOST_RULE, "false refusals", max_false_refusals, solvable, refused))
    tests += _stream_tests(records, min_stability, max_recovery)
    for side, against in triviality(records, trivial).items():
        tests.append(_rate_test(TRIVIAL_RULE, side, against.bar, counted[side], lambda r: r.passed))
    findings = _decided(tests, whole or _records)
    everything = [*records, *(baseline or ())]
    errors = sum(r.outcome == "error" for r in everything)
    reasons = list(unfinished)
    if not records:
        reasons.append("the run has no finished episode; rerun its command")
    elif any(r.outcome == "unjudged" for r in records) and not any(r.judged for r in records):
        reasons.append(
            "the run holds recorded sessions, which have no verdict; gate a run of tasks for the server "
            "(docs/mcp_tasks.md)"
        )
    elif errors > max_errors * len(everything):
        reasons.append(
            f"{errors} of {len(everything)} episodes were lost to infrastructure, more than {100 * max_errors:g} %; "
            "give the same run command again to play them"
        )
    few = [f.label for f in findings if f.verdict == "fail" and not f.is_rate and _by_chance(f.decision)]
    if few and baseline is None:
        notes.append(
            f"{', '.join(few[:BROKEN])}: the whole interval is beyond the limit, which decides here. "
            "The report also asks for the exact test of any change, for which these tasks are too few, and calls the "
            "same drop one that may be chance"
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


def _by_chance(decision: Decision) -> bool:
    """Do so few tasks show a drop too often by chance, by the exact test of reports?"""
    least = mcnemar(decision.tasks, 0)  # as if every task broke
    seen = mcnemar(decision.broke or 0, decision.fixed or 0) if decision.n == decision.tasks else least
    return max(least, seen) > 1 - LEVEL


def _sentence(verdict: str, findings: Sequence[RuleResult], reasons: Sequence[str]) -> str:
    found = [f for f in findings if f.verdict == verdict]
    trivial = " and ".join(f.group for f in found if f.rule == TRIVIAL_RULE)
    named = [*(f.group for f in found if f.rule != TRIVIAL_RULE)]
    names = "; ".join([*named, *([f"better than trivial: {trivial}"] if trivial else [])])
    if verdict == "pass":
        return f"Pass: all {len(findings)} checks are within their limits."
    if verdict == "fail":
        return f"Fail: {len(found)} of {len(findings)} checks failed ({names})."
    if verdict == "infrastructure":
        return f"No verdict: {reasons[0]}."
    units = sorted({f"{f.unit}s" for f in found}, reverse=True)
    return f"Inconclusive: {len(found)} of {len(findings)} checks need more {' and '.join(units)} ({names})."


class _Test(NamedTuple):
    """A rule on its way to a verdict: `decide` takes the number of checks that share the risk."""

    rule: str
    group: str
    most: float
    decide: Callable[[int], Decision]
    broken: Sequence[Told]
    gained: Callable[[int], Decision] | None = None  # the same pairs, decided as a rise


def _records(some: Iterable[Told]) -> list[Record]:
    return [one for one in some if isinstance(one, Record)]


def _decided(tests: Sequence[_Test], whole: Callable[[Iterable[Told]], Sequence[Record]]) -> list[RuleResult]:
    """Decide all tests together; the lower bound alone decides whether an agent is better than a trivial one."""
    out, sharing = [], sum(test.rule != TRIVIAL_RULE for test in tests)
    for test in tests:
        decision = test.decide(sharing)
        if test.rule == TRIVIAL_RULE and not decision.low > 0:  # what cannot be told from a trivial agent fails
            decision = decision.model_copy(update={"verdict": "fail", "needed_n": None})
        broken = test.broken[:BROKEN] if decision.verdict == "fail" else []
        out.append(
            RuleResult(
                rule=test.rule,
                group=test.group,
                most=test.most,
                verdict=decision.verdict,
                decision=decision,
                broken=tuple(
                    Broken(key=r.key, kinds=r.kinds, stage=r.stage, cause=r.cause, final=r.final[:FINAL])
                    for r in whole(broken)
                ),
            )
        )
    return out


def _stream_tests(records: Sequence[Told], min_stability: float | None, max_recovery: int | None) -> list[_Test]:
    """The rules for streams. Bounds resample whole streams."""
    if min_stability is None and max_recovery is None:
        return []
    streams = streams_of(records)
    if not streams:
        raise CrosswindError("min_stability and max_recovery judge streams, and this run has none; leave them out")
    if not any(any(changes_of(stream)) for stream in streams.values()):
        raise CrosswindError(
            "min_stability and max_recovery judge what comes after a change of the interface, and that of this run "
            "never changes; leave them out"
        )
    out = []
    if min_stability is not None:
        still = [(name, r.passed) for name, stream in streams.items() for r in stream if stable(r)]
        out.append(_over_streams(STABILITY_RULE, "stability", min_stability, still))
    if max_recovery is not None:
        times = [(name, change.recovery) for name, stream in streams.items() for change in changes_of(stream)]
        back = [(name, time is not None and time <= max_recovery) for name, time in times]
        within = f"back {formats.many(max_recovery, 'episode')} after a change"
        out.append(_over_streams(RECOVERY_RULE, within, RECOVERED, back))
    return out


def _over_streams(rule: str, group: str, least: float, found: Sequence[tuple[Stream, bool]]) -> _Test:
    outcomes, streams = [passed for _, passed in found], [stream for stream, _ in found]

    def decided(checks: int) -> Decision:
        return decide_rate(outcomes, least, tasks=streams, checks=checks)

    return _Test(rule, group, least, decided, ())


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
    ids = [b.task_id for _, b in compared]

    def decided(checks: int) -> Decision:
        return decide(before, after, one.most, tasks=ids, checks=checks)

    def gained(checks: int) -> Decision:
        return decide_gain(before, after, one.most, tasks=ids, checks=checks)

    label = name if one.by in (name, "tier", "axis", "kind") else f"{one.by} {name}"
    broken = [b for a, b in compared if a.passed and not b.passed]
    return _Test(str(one), label, one.most, decided, broken, gained)


def _gain_test(test: _Test) -> _Test:
    """A test of a drop as one of a rise over the same pairs."""
    assert test.gained is not None
    return test._replace(rule=f"{GAIN_RULE} {test.rule}", decide=test.gained)


def _rate_test(rule: str, label: str, least: float, found: Sequence[Told], of: Callable[[Told], bool]) -> _Test:
    outcomes, ids = [of(r) for r in found], [r.task_id for r in found]

    def decided(checks: int) -> Decision:
        rate = decide_against if rule == TRIVIAL_RULE else decide_rate
        return rate(outcomes, least, tasks=ids, checks=checks)

    failed = list({r.key: r for r in found if not of(r)}.values())
    return _Test(rule if rule == TRIVIAL_RULE else f"{rule}={least:g}", label, least, decided, failed)


def _most_test(rule: str, label: str, most: float, found: Sequence[Told], of: Callable[[Told], bool]) -> _Test:
    """A rate with an upper limit: the rest of the episodes has a lower one."""
    test = _rate_test(rule, label, max(0.0, 1 - most), found, lambda r: not of(r))

    def decided(checks: int) -> Decision:
        d = test.decide(checks)
        turned = {"after": 1 - d.after, "delta": -d.delta, "low": -d.high, "high": -d.low}
        return d.model_copy(update=turned) if d.n else d

    return test._replace(rule=f"{rule}={most:g}", most=most, decide=decided)


def _clean_and_shifted(records: Sequence[Told], notes: list[str]) -> list[Pair]:
    """The solvable pairs of one run, without those that lack a side."""
    clean = {r.pair: r for r in records if r.clean and r.judged}
    whole = [(clean[r.pair], r) for r in records if not r.clean and r.judged and r.pair in clean]
    shifted, found = sum(not r.clean for r in records), pairs(records)
    if len(whole) < shifted and all(r.mark is None for r in records):  # episodes of streams come in no pairs
        notes.append(
            f"{shifted - len(whole)} of {shifted} pairs are missing their clean or their shifted episode and "
            "are left out"
        )
    if left := len(whole) - len(found):
        notes.append(
            f"{left} of {len(whole)} pairs are about tasks that should be refused, and no drop counts them; "
            "--min-refusals and --max-false-refusals judge refusals"
        )
    return found


def _then_and_now(
    then: Sequence[Told], now: Sequence[Told], notes: list[str], *, shifted: bool, partial: bool
) -> list[Pair]:
    """The same episodes of two runs, without those that are not the same or lack a side; refusals are among them.

    `shifted` says that rules are about shifted episodes, so that some must be among them. Runs with little in common
    are refused, unless the comparison may be a `partial` one.
    """
    before = {r.key: r for r in then}
    same = [(before[r.key], r) for r in now if r.key in before and before[r.key].draw == r.draw]
    if not same or (shifted and all(r.clean for _, r in same) and not all(r.clean for r in now)):
        common = f"0 of {len(now)}" if not same else f"{len(same)} clean and no shifted ones of {len(now)}"
        raise CrosswindError(
            f"the baseline has too few episodes of this run ({common}); give a baseline of the same suite, seed and "
            "trials"
        )
    same_judge(r for pair in same for r in pair)
    found = [p for p in same if all(r.judged for r in p)]
    if left := max(len(then), len(now)) - len(found):
        notes.append(f"{left} episodes have no scored counterpart in the other run and are left out")
    total = len(before.keys() | {r.key for r in now})
    if len(found) < COMMON * total:
        if not partial and any(r.mark is None for r in now):
            raise little_in_common("the baseline", "this run", len(found), total)
        notes.append(
            f"only {len(found)} of {total} episodes are common to the two runs, so this says little about the runs as "
            "a whole"
        )
    return found
