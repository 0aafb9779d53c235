"""What others found, and what was asked of our arms, each with a rule that turns our numbers into a mark.

The rules were written before the numbers; README.md lists those that were made clearer or stricter since. A claim is
`reproduced` or `not reproduced`; `different` where the numbers say neither, or where the question does not arise (a
model that solves nothing clean has nothing to lose). A demand is `met` or `not met`. Where an arm is not there the mark
is `missing`. `crosswind study report studies/fragility` loads this file; `crosswind.study.findings` explains how.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from crosswind.metrics import Cell, Drop, cell, clean_and_robust, formats, score
from crosswind.report.markdown import literal
from crosswind.study import plots, tables
from crosswind.study.definition import Section
from crosswind.study.findings import Hypothesis, JudgedHypothesis, count_marks, judge_hypotheses, marks_table
from crosswind.study.results import Absent, ArmResults, Results, between, impossible, solvable, there
from crosswind.words.held_out import HELD_OUT

THREE = ("perception", "interaction", "reasoning")
CLEAR = 0.20  # a loss of tens of points
ABLE = 0.20  # clean accuracy from which on a model has something to lose
SYMBOLS = ("name_noise", "semantic_rename", "identity_erasure", "parameter_rename")
REQUESTS = ("ambiguous", "underspecified", "verbose_query")
ARMS = 10  # over which a correlation is told; former versions of an arm do not count
YES, NO, ELSE = "reproduced", "not reproduced", "different"
MET, UNMET = "met", "not met"
FALSE = 0.02  # false refusals that are allowed


class Look:
    """The figures that the rules need; what is not there raises `Absent`. `best`: the arm that stands for PAFT."""

    def __init__(self, results: Results, best: str = "paft") -> None:
        self.results, self.found, self.best = results, results.arms, best
        self.arm, self.tier = results.arm, results.tier

    def three(self, arm: str, suite: str = "original") -> list[Drop]:
        return [self.tier(arm, suite, tier) for tier in THREE]

    def mean(self, arm: str, suite: str = "original") -> float:
        """The mean change over the three tiers that have one."""
        return sum(one.delta for one in self.three(arm, suite)) / len(THREE)

    def kinds(self, arm: str, kinds: Collection[str], suite: str = "original") -> Drop:
        among = self.arm(arm).drop(suite, lambda record: record.kinds[0] in kinds)
        return there(among, f"{arm} under {', '.join(kinds)}")

    def refusals(self, arm: str, suite: str = "original") -> float:
        return self.results.refusals(arm, suite)

    def by_kind(self, arm: str, suite: str = "original") -> dict[str, Cell]:
        """Right refusals under each kind, with a mark on kinds that were never trained."""
        one = self.arm(arm)
        kinds = sorted({kind for r in one.of(suite) if impossible(r) for kind in r.kinds})
        return {
            f"{kind}, never trained" if kind in HELD_OUT else kind: one.refusals(suite, lambda r, k=kind: k in r.kinds)  # type: ignore[misc]
            for kind in kinds
        }

    def clean(self, arm: str, domain: str = "poi") -> float:
        return self.results.clean(arm, domain)

    def false(self, arm: str) -> tuple[float, float]:
        """False refusals on poi: in clean episodes, and under train kinds in test words."""
        cells = self.arm(arm).clean_refusals("poi").false, self.arm(arm).false_refusals("tiers")
        clean, shifted = (there(one.rate, f"false refusals of {arm}") for one in cells)
        return clean, shifted


Told = tuple[str, str]  # a mark and numbers


def _span(one: Drop) -> str:
    return f"{formats.points(one.delta)} ({formats.span(one.low, one.high)})"


def _tens(one: Drop) -> bool:
    return one.high < -CLEAR


def _list(some: Mapping[str, Drop]) -> str:
    return ", ".join(f"{name} {_span(one)}" for name, one in some.items())


# ---------------------------------------------------------------- the original study


def _static_falls(look: Look) -> Told:
    changes = look.three("static")
    mark = YES if all(map(_tens, changes)) else NO if not any(one.delta < -CLEAR / 2 for one in changes) else ELSE
    return mark, _list(dict(zip(THREE, changes, strict=True)))


def _order(look: Look) -> Told:
    changes = look.three("static")
    deltas = [one.delta for one in changes]
    mark = YES if deltas == sorted(deltas) else NO if deltas[0] == max(deltas) else ELSE
    return mark, _list(dict(zip(THREE, changes, strict=True)))


def _worse_than_untrained(look: Look) -> Told:
    clean, ours, before = look.clean("base"), look.three("static"), look.three("base")
    told = (
        f"base solves {formats.percent(clean)} clean; mean change {formats.points(look.mean('base'))}, "
        f"static {formats.points(look.mean('static'))}"
    )
    if clean < ABLE:
        return ELSE, f"{told}: base has nothing to lose"
    more = [one.high < other.low for one, other in zip(ours, before, strict=True)]
    return (YES if all(more) else NO if not any(more) else ELSE), told


def _longer(look: Look) -> Told:
    means = {arm: look.mean(arm) for arm in ("static-200", "static-400", "static", "static-3200")}
    first, last = means["static-200"], means["static-3200"]
    told = ", ".join(f"{arm} {formats.points(value)}" for arm, value in means.items())
    if first > -CLEAR / 2:
        return ELSE, f"{told}: there is little to heal"
    if last > first / 4:
        return NO, told
    return (YES if first + 0.02 < last < first / 2 else ELSE), told


def _more_data(look: Look) -> Told:
    few, many = look.mean("static-6k"), look.mean("static-24k")
    told = f"static-6k {formats.points(few)}, static-24k {formats.points(many)}"
    if few > -CLEAR / 2:
        return ELSE, f"{told}: there is little to heal"
    return (YES if many < few / 2 else NO if many > few / 4 else ELSE), told


def _won_back(look: Look, arm: str, suite: str, tiers: Collection[str]) -> dict[str, float | None]:
    """The share of static's loss that an arm does not have; None where there is hardly a loss."""
    out: dict[str, float | None] = {}
    for tier in tiers:
        lost, kept = look.tier("static", suite, tier).delta, look.tier(arm, suite, tier).delta
        out[tier] = (kept - lost) / -lost if lost < -0.02 else None
    return out


def _heals(look: Look) -> Told:
    back = _won_back(look, "paft", "original", THREE)
    told = ", ".join(f"{tier} {formats.percent(value)}" for tier, value in back.items())
    shares = [value for value in back.values() if value is not None]
    if not shares:
        return ELSE, "static hardly loses anything"
    mark = YES if min(shares) > 0.5 else NO if max(shares) < 0.5 else ELSE
    return mark, f"won back of static's loss: {told}; left: {_list(dict(zip(THREE, look.three('paft'), strict=True)))}"


def _best_share(look: Look) -> Told:
    arms = ("paft-0.1", "paft-0.2", "paft", "paft-0.5")
    means = {arm: look.mean(arm) for arm in arms}
    best = max(means, key=lambda arm: means[arm])
    told = ", ".join(f"{arm} {formats.points(value)}" for arm, value in means.items())
    near = means[best] - means["paft"] < 0.02
    return (YES if best == "paft" else ELSE if near else NO), f"{told}; best: {best}"


def _forces(look: Look) -> Told:
    base, static = look.refusals("base"), look.refusals("static")
    told = f"right refusals: base {formats.percent(base)}, static {formats.percent(static)}"
    if static >= base:
        return NO, told
    return (YES if static < 0.1 else ELSE), told


def _refuses(look: Look) -> Told:
    paft, static = look.refusals("paft"), look.refusals("static")
    told = f"right refusals: static {formats.percent(static)}, PAFT {formats.percent(paft)} ("
    told += ", ".join(f"{kind} {formats.percent(one.rate)}" for kind, one in look.by_kind("paft").items()) + ")"
    return (YES if paft >= 0.9 and paft > static + 0.2 else NO if paft < static + 0.1 else ELSE), told


def _symbols(look: Look) -> Told:
    symbols, requests = look.kinds("static", SYMBOLS), look.kinds("static", REQUESTS)
    told = f"static under renamed symbols {_span(symbols)}, under reworded requests {_span(requests)}"
    mark = YES if symbols.high < requests.low and _tens(symbols) else NO if symbols.low > requests.high else ELSE
    return mark, told


def _open_loop(look: Look) -> Told:
    one, other = look.arm("static"), look.arm("paft")
    seen = [
        pool.averages(pool.of("original", keep=lambda r: r.tier == "interaction")).exploration for pool in (one, other)
    ]
    change = look.tier("static", "original", "interaction")
    if seen[0] is None or seen[1] is None:
        raise Absent("exploration")
    told = f"exploration under interaction: static {seen[0]:.2f}, PAFT {seen[1]:.2f}; static loses {_span(change)}"
    less = seen[0] < seen[1] - 0.05
    return (YES if less and _tens(change) else NO if not less and not _tens(change) else ELSE), told


def _rl_grounds(look: Look) -> Told:
    rl, static = look.tier("rl", "original", "perception"), look.tier("static", "original", "perception")
    told = f"perception: static {_span(static)}, GRPO after SFT {_span(rl)}"
    if "rl-brief" in look.found:
        told += f", GRPO after brief SFT {_span(look.tier('rl-brief', 'original', 'perception'))}"
    return (YES if rl.low > static.high else NO if rl.delta <= static.delta else ELSE), told


def _inversion(look: Look) -> Told:
    found = {arm: look.kinds(arm, ("dependency_inversion",)) for arm in ("static", "rl")}
    falls = [_tens(one) for one in found.values()]
    return (YES if all(falls) else NO if not any(one.delta < -CLEAR / 2 for one in found.values()) else ELSE), _list(
        found
    )


def _rl_forces(look: Look) -> Told:
    rl, static = look.refusals("rl"), look.refusals("static")
    told = f"right refusals: static {formats.percent(static)}, GRPO after SFT {formats.percent(rl)}"
    return (YES if rl < 0.1 else NO if rl > static + 0.2 else ELSE), told


def _uneven(look: Look) -> Told:
    found = look.arm("static").drops("original", "family")
    if len(found) < 2:
        raise Absent("families")
    worst, best = min(found.values(), key=lambda d: d.delta), max(found.values(), key=lambda d: d.delta)
    told = f"{len(found)} families: from {worst.name} {_span(worst)} to {best.name} {_span(best)}"
    return (YES if worst.high < best.low else NO if best.delta - worst.delta < 0.1 else ELSE), told


def _predicts(look: Look) -> Told:
    now = [pool for pool in look.found.values() if not pool.arm.at]
    told, clear, strong = [], [], []
    for where, domain in (("poi", "poi"), ("all suites", "")):
        changes = {pool.name: one for pool in now if (one := pool.drop("", lambda r, d=domain: d in ("", r.domain)))}  # type: ignore[misc]
        if len(changes) < ARMS:
            raise Absent(f"arms; {ARMS} are needed, {len(changes)} are there")
        found = clean_and_robust(changes).kept
        if found.rho is None or found.p is None:
            return ELSE, f"{where}: all of {found.n} arms are alike in one of the two"
        told.append(f"{where} {found.rho:+.2f} ({formats.chance(found.p)})")
        clear.append(found.p < 0.05)
        strong.append(found.rho > 0.5)
    mark = NO if all(clear) and all(strong) else YES if not any(clear) else ELSE
    return mark, f"rank correlation over {len(changes)} arms: {', '.join(told)}"


def _domain(look: Look) -> Told:
    here, there = look.clean("static"), look.clean("static", "medical")
    told = f"static solves {formats.percent(here)} on poi and {formats.percent(there)} on medical, both clean"
    return (YES if there < here - CLEAR else NO if there > here - 0.05 else ELSE), told


ORIGINAL: tuple[Hypothesis[Look], ...] = (
    Hypothesis(
        "Static SFT loses tens of points in perception, interaction and reasoning (−50, −45, −28)",
        "reproduced: all three intervals end below −20; not: no change below −10",
        _static_falls,
    ),
    Hypothesis(
        "It loses most in perception, then in interaction, then in reasoning",
        "reproduced: the changes stand in this order; not: perception changes least",
        _order,
    ),
    Hypothesis(
        "Static SFT is more fragile than the model before training (−50 against −30 in perception)",
        "reproduced: in all three tiers static's interval lies below base's; not: in none; different: base solves "
        "under 20 % clean",
        _worse_than_untrained,
    ),
    Hypothesis(
        "Longer training eases the loss and does not heal it (200 to 800 steps: −68 to −50)",
        "mean of three tiers; reproduced: 3,200 steps lose less than 200 do, by over 2 points, and still over half of "
        "it; not: below a quarter of it; different: they lose no less, or there is little to lose",
        _longer,
    ),
    Hypothesis(
        "More data does not heal it",
        "mean of three tiers, a fixed set of demonstrations and four times as many; reproduced: the larger loses over "
        "half of what the smaller does; not: below a quarter of it",
        _more_data,
    ),
    Hypothesis(
        "PAFT at share 0.3 wins most of it back (left: −4, −5, −10)",
        "reproduced: more than half of static's loss in each of the three tiers where it loses over 2 points; not: "
        "less than half in each",
        _heals,
    ),
    Hypothesis(
        "Of the shares, 0.3 is best",
        "reproduced: the best mean of three tiers; different: another one is, by less than 2 points; not: by more",
        _best_share,
    ),
    Hypothesis(
        "Static SFT forces completion: it refuses less than before training (12 % to 0.2 %)",
        "reproduced: below 10 % and below base; not: no less than base",
        _forces,
    ),
    Hypothesis(
        "PAFT refuses rightly (99.6 %)",
        "reproduced: 90 % or more, and over 20 points above static; not: less than 10 points above it",
        _refuses,
    ),
    Hypothesis(
        "SFT anchors on symbols instead of functions",
        "reproduced: under renamed symbols its interval lies below that under reworded requests, and below −20; not: "
        "it lies above that",
        _symbols,
    ),
    Hypothesis(
        "SFT runs open loop and ignores feedback",
        "reproduced: under interaction it explores less than PAFT by over 0.05, and its interval ends below −20; not: "
        "neither",
        _open_loop,
    ),
    Hypothesis(
        "RL grounds meaning better than SFT",
        "reproduced: in perception the interval of GRPO after SFT lies above static's; not: GRPO loses no less",
        _rl_grounds,
    ),
    Hypothesis(
        "SFT and RL both collapse when the order of calls is inverted, though it is documented",
        "reproduced: both intervals end below −20; not: neither loses more than 10 points",
        _inversion,
    ),
    Hypothesis(
        "RL forces completion too",
        "reproduced: GRPO after SFT refuses below 10 %; not: 20 points above static",
        _rl_forces,
    ),
    Hypothesis(
        "The fall is uneven over kinds of task",
        "reproduced: the intervals of the best and of the worst family do not meet; not: within 10 points",
        _uneven,
    ),
    Hypothesis(
        "Clean accuracy does not predict robustness",
        "rank correlation of clean accuracy and share kept, on poi and over all suites; not reproduced: both above 0.5 "
        "with p < 0.05; reproduced: neither with p < 0.05",
        _predicts,
    ),
    Hypothesis(
        "What was learnt in one domain does not carry over to an unseen one",
        "reproduced: clean accuracy of static is more than 20 points lower on medical; not: within 5",
        _domain,
    ),
)


# ---------------------------------------------------------------- what was asked of the arms


def _met(yes: bool, told: str) -> Told:
    return (MET if yes else UNMET), told


def _static_clean(look: Look) -> Told:
    return _met(look.clean("static") >= 0.95, f"{100 * look.clean('static'):.1f} %")


def _static_loses(look: Look) -> Told:
    one, other = look.tier("static", "tiers", "perception"), look.tier("static", "tiers", "interaction")
    return _met(one.delta <= -0.40 and other.delta <= -0.25, f"perception {_span(one)}, interaction {_span(other)}")


def _paft_clean(look: Look) -> Told:
    one, other = look.clean("static"), look.clean(look.best)
    return _met(other >= one - 0.01, f"static {100 * one:.1f} %, PAFT {100 * other:.1f} %")


def _paft_holds(look: Look) -> Told:
    changes = dict(zip(THREE, look.three(look.best, "tiers"), strict=True))
    most = {"perception": -0.05, "interaction": -0.05, "reasoning": -0.10}
    return _met(all(one.delta >= most[tier] for tier, one in changes.items()), _list(changes))


def _paft_refuses(look: Look) -> Told:
    pool = look.arm(look.best)
    right, (clean, shifted) = look.refusals(look.best, "tiers"), look.false(look.best)
    told = f"right {100 * right:.1f} %; false {100 * clean:.1f} % clean, {100 * shifted:.1f} % shifted"
    for suite in ("original", "heldout"):
        rates = pool.refusals(suite).rate, pool.false_refusals(suite).rate
        told += f"; on {suite} {formats.percent(rates[0])} and {formats.percent(rates[1])} shifted"
    every = (
        pool.clean_refusals().false.rate or 0.0
    )  # the rule as it was frozen, before a model that refuses abroad was seen
    if every > FALSE >= clean:
        told += f"; with clean medical, as the rule was frozen, {formats.percent(every)} clean: not met"
    return _met(right >= 0.97 and clean <= FALSE and shifted <= FALSE, told)


def _paft_heldout(look: Look) -> Told:
    lost, kept = (look.arm(arm).drop("heldout") for arm in ("static", look.best))
    if lost is None or kept is None:
        raise Absent("heldout")
    if lost.delta >= -0.02:
        return UNMET, f"static loses {_span(lost)}: there is nothing to win back"
    back = (kept.delta - lost.delta) / -lost.delta
    return _met(back >= 0.5, f"{formats.percent(back)} of it: static {_span(lost)}, PAFT {_span(kept)}")


def _paft_medical(look: Look) -> Told:
    arms = look.arm("static"), look.arm(look.best)
    solved, refused = between(*arms, "medical"), between(*arms, "medical", impossible)
    if solved is None:
        raise Absent("medical")
    told = f"PAFT minus static in the same solvable shifted episodes {_span(solved)}"
    if refused:
        told += (
            f"; in those to refuse {_span(refused)}, where it refuses {formats.percent(refused.shifted)} and falsely "
            f"{formats.percent(arms[1].false_refusals('medical').rate)} of the solvable ones (always refusing: 100 and "
            "100)"
        )
    return _met(solved.low > 0, told)


def _rl_both(look: Look) -> Told:
    found = {}
    for arm in ("rl-brief", "rl-brief-perturbed", "rl-early", "rl-early-perturbed", "rl", "rl-perturbed"):
        if arm in look.found and (one := look.arm(arm).drop("tiers")):
            found[arm] = one
    clean = [arm for arm in found if "perturbed" not in arm]
    if not any(f"{arm}-perturbed" in found for arm in clean):
        raise Absent("clean RL beside perturbed RL")
    return MET, _list(found)


ASKED: tuple[Hypothesis[Look], ...] = (
    Hypothesis("Static SFT solves clean tasks", "95 % or more on poi", _static_clean),
    Hypothesis(
        "Static SFT is fragile", "on tiers at least 40 points lost in perception and 25 in interaction", _static_loses
    ),
    Hypothesis("PAFT is as good as static in clean worlds", "not more than 1 point below", _paft_clean),
    Hypothesis(
        "PAFT holds on trained kinds in test words",
        "on tiers at most 5 points lost in perception and interaction, 10 in reasoning",
        _paft_holds,
    ),
    Hypothesis(
        "PAFT refuses when it should",
        "on tiers (train kinds, poi) right refusals 97 % or more, false ones 2 % or less",
        _paft_refuses,
    ),
    Hypothesis(
        "PAFT holds on kinds never trained", "at least half of static's loss on heldout is won back", _paft_heldout
    ),
    Hypothesis(
        "PAFT carries over to medical",
        "clearly above static in the same episodes that can be solved",
        _paft_medical,
    ),
    Hypothesis("Perturbed RL beside clean RL", "both are measured", _rl_both),
)


# ---------------------------------------------------------------- sections and plots of the report


def best_paft(results: Results) -> str:
    """Of the PAFT arms that were tested, the one with the best score on dev; those of former commits do not count."""
    dev = results.dev
    tried = [p.name for p in dev.values() if p.arm.method == "paft" and not p.arm.at and p.name in results.arms]
    return max(tried, key=lambda name: _on_dev(dev[name]), default="paft")


def _on_dev(arm: ArmResults) -> float:
    found = score(arm.records)
    return found.value if found else 0.0


def of_original(results: Results) -> list[JudgedHypothesis]:
    return judge_hypotheses(ORIGINAL, Look(results))


def of_asked(results: Results, best: str = "") -> list[JudgedHypothesis]:
    return judge_hypotheses(ASKED, Look(results, best or best_paft(results)))


def short(results: Results) -> str:
    """The picture at the top, and how many claims have which mark."""
    if not results.arms:
        return ""
    claims, wanted = of_original(results), of_asked(results)
    return (
        "![solvable episodes passed and refusals, by suite](report_passed.svg)\n\n"
        f"Of {len(claims)} [findings of the original study](#the-findings-of-the-original-study): "
        f"{count_marks(claims)}. Of {len(wanted)} things [asked of the arms](#what-was-asked-of-the-arms): "
        f"{count_marks(wanted)}."
    )


def asked(results: Results) -> str:
    best = best_paft(results)
    told = "of those that were tried on dev and tested, it has the best score on dev."
    return f"PAFT is the arm {literal(best)} here: {told}\n\n{marks_table(of_asked(results, best))}"


def by_kind(results: Results) -> str:
    """The three arms of the first wave, and the arm that stands for PAFT last."""
    arms = tuple(dict.fromkeys(("base", "static", "paft", best_paft(results))))
    return tables.kinds(results, Section(title="", make="", arms=arms, suites=("tiers", "heldout")))


def passed(results: Results) -> str:
    """Solvable episodes passed, by suite, and refusals, of the arms that matter most."""

    def bar(one: Cell) -> tuple[float, float, float] | None:
        return None if one.rate is None else (one.rate, one.low, one.high)

    def group(label: str, of: Callable[[ArmResults], Cell]) -> plots.Forest:
        return label, [bar(of(arm)) if (arm := results.arms.get(name)) else None for name in names]

    best = best_paft(results)
    names = {"base": "as it is", "static": "static", "paft": "PAFT", best: f"best PAFT tested: {best}"}
    suites = {
        "the original scenarios": "original",
        "trained kinds, new words": "tiers",
        "kinds never trained": "heldout",
        "another domain": "medical",
    }
    groups = [group("clean", lambda arm: arm.solved("poi"))]
    for label, suite in suites.items():
        groups.append(group(label, lambda arm, s=suite: cell(arm.of(s, keep=solvable))))  # type: ignore[misc]
    for label, suite in {"trained kinds": "tiers", "another domain": "medical"}.items():
        groups.append(group(f"right refusals, {label}", lambda arm, s=suite: arm.refusals(s)))  # type: ignore[misc]
        groups.append(group(f"false refusals, {label}", lambda arm, s=suite: arm.false_refusals(s)))  # type: ignore[misc]
    return plots.bars("Solvable episodes passed, and refusals", list(names.values()), groups)


SECTIONS: dict[str, Callable[[Results], str]] = {
    "short": short,
    "by_kind": by_kind,
    "original": lambda results: marks_table(of_original(results)),
    "asked": asked,
}
PLOTS: dict[str, Callable[[Results], str]] = {"passed": passed}
