"""Tests of the marks: each rule of the findings, and of what was asked, on both sides of each of its thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crosswind.core.registry import perturbations
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import key_of, pair_of
from crosswind.episodes.suite import CLEAN
from crosswind.metrics import By, Cell, Drop, Measures
from crosswind.study.definition import Arm, load_study
from crosswind.study.findings import judge_hypotheses
from crosswind.study.outcomes import OutcomeRow
from crosswind.study.results import ArmResults, Results
from studies.fragility.findings import ASKED, ORIGINAL, Look, of_asked, of_original

STUDY_FOLDER = Path(__file__).parent.parent.parent / "studies" / "fragility"
STUDY = load_study(STUDY_FOLDER)
YES, NO, ELSE, MISSING, MET, UNMET = "reproduced", "not reproduced", "different", "missing", "met", "not met"
THREE = ("perception", "interaction", "reasoning")
RENAMED = "identity_erasure name_noise parameter_rename semantic_rename"
REWORDED = "ambiguous underspecified verbose_query"

Change = float | tuple[float, float, float]  # with its interval, or with one so wide that it tells nothing
SURE: Change = (-0.6, -0.5, -0.4)


# ---------------------------------------------------------------- arms made of numbers, and of episodes


def made(change: Change, name: str = "") -> Drop:
    low, delta, high = change if isinstance(change, tuple) else (change - 0.7, change, change + 0.7)
    return Drop(
        name=name, pairs=100, tasks=100, clean=1.0, shifted=1.0 + delta, delta=delta, low=low, high=high,
        p=1.0, p_holm=1.0, broke=0, fixed=0, kept=None,
    )  # fmt: skip


def share(rate: float | None) -> Cell:
    return Cell(n=0 if rate is None else 1000, passed=0, rate=rate, low=0.0, high=1.0)


@cache
def shifted_by(kind: str) -> Record:
    return record("some", kind)


class Numbers(ArmResults):
    """An arm that gives the numbers it was made with, and says of all others that they are not there.

    Changes are told by suite, or by suite and tier or kinds ("original perception"); clean shares by domain.
    """

    def __init__(
        self,
        changes: Mapping[str, Change] | None = None,
        *,
        clean: Mapping[str, float] | None = None,
        refused: Mapping[str, float] | None = None,
        families: Mapping[str, Change] | None = None,
        rows: Iterable[OutcomeRow] = (),
    ) -> None:
        super().__init__(Arm(name="some", wave="A"), [], rows)
        self.changes, self.families = changes or {}, families or {}
        self.shares, self.right = clean or {}, refused or {}

    def _change(self, name: str) -> Drop | None:
        return made(self.changes[name]) if name in self.changes else None

    def tier(self, suite: str, tier: str) -> Drop | None:
        return self._change(f"{suite} {tier}")

    def drop(self, suite: str, keep: Callable[[Record], bool] = lambda _: True) -> Drop | None:
        kinds = sorted(perturbations.names())
        kept = [kind for kind in kinds if keep(shifted_by(kind))]
        return self._change(suite if kept == kinds else f"{suite} {' '.join(kept)}")

    def drops(self, suite: str, by: By, keep: Callable[[Record], bool] = lambda _: True) -> dict[str, Drop]:
        assert (suite, by) == ("original", "family")
        return {name: made(change, name) for name, change in self.families.items()}

    def solved(self, *domains: str) -> Cell:
        return share(self.shares.get(*domains))

    def refusals(self, suite: str, keep: Callable[[Record], bool] = lambda _: True) -> Cell:
        return share(self.right.get(suite))


def under(*changes: Change, suite: str = "original", **also: Any) -> Numbers:
    """An arm of which the changes in perception, interaction and reasoning are known."""
    return Numbers({f"{suite} {tier}": one for tier, one in zip(THREE, changes, strict=True)}, **also)


def about(mean: float) -> Numbers:
    """An arm whose changes in the three tiers differ and have this mean."""
    return under(mean - 0.25, mean + 0.125, mean + 0.125)


def refusing(rate: float) -> Numbers:
    return Numbers(refused={"original": rate})


def record(
    task: str,
    kind: str = "",
    passed: bool = True,
    *,
    suite: str = "original",
    domain: str = "poi",
    family: str = "one",
    refuse: bool = False,
) -> Record:
    condition = f"{suite}/{kind}" if kind else CLEAN
    return Record(
        key=key_of(task, condition, 0), pair=pair_of(task, 0), task_id=task, domain=domain, family=family, level=1,
        seed=0, trial=0, condition=condition, severity=3 if kind else None, layers=({"kind": kind},) if kind else (),
        agent="some", outcome="pass" if passed else "fail", ended="refusal" if refuse and passed else "answer",
        refuse=refuse, query="", policy="", tools=(), steps=(), final="",
    )  # fmt: skip


def row(one: Record, exploration: float | None = None) -> OutcomeRow:
    measures = Measures(
        calls=1, gold_calls=1, questions=0, errors=0, own_errors=0, exploration=exploration,
        refused=one.ended == "refusal", refuse=one.refuse, fault=False, recovered=False, resumed=None, collateral=0,
        duplicates=0, false_success=False, wrong_answer=False,
    )  # fmt: skip
    return OutcomeRow(one, measures)


def played(*records: Record) -> ArmResults:
    return ArmResults(Arm(name="some", wave="A"), [], map(row, records))


def mark(claim: str, arms: Mapping[str, ArmResults], best: str = "paft") -> str:
    """What the rule of the claim that starts so says."""
    (one,) = judge_hypotheses(
        [one for one in (*ORIGINAL, *ASKED) if one.text.startswith(claim)], Look(results(arms), best)
    )
    return one.mark


def results(arms: Mapping[str, ArmResults]) -> Results:
    return Results(STUDY, STUDY_FOLDER, arms)


# ---------------------------------------------------------------- what is not there

CLAIMS = {  # with the arms that they need
    "Static SFT loses tens": "static",
    "It loses most in perception": "static",
    "Static SFT is more fragile": "static base",
    "Longer training": "static-200 static-400 static static-3200",
    "More data": "static-6k static-24k",
    "PAFT at share 0.3": "static paft",
    "Of the shares": "paft-0.1 paft-0.2 paft paft-0.5",
    "Static SFT forces": "base static",
    "PAFT refuses rightly": "static paft",
    "SFT anchors": "static",
    "SFT runs open loop": "static paft",
    "RL grounds": "static rl",
    "SFT and RL both": "static rl",
    "RL forces": "static rl",
    "The fall is uneven": "static",
    "What was learnt": "static",
    "Static SFT solves": "static",
    "Static SFT is fragile": "static",
    "PAFT is as good": "static paft-wide",
    "PAFT holds on trained": "paft-wide",
    "PAFT holds on kinds never": "static paft-wide",
    "PAFT carries over": "static paft-wide",
    "Perturbed RL": "rl rl-perturbed",
}


def some_of_all() -> ArmResults:
    """An arm that played something of whatever is asked for, all of it well."""
    kinds = ("name_noise", "ambiguous", "format_switch", "dependency_inversion", "unsolvable")
    some = [record(f"{family}/{n}", family=family) for family in ("one", "two") for n in range(2)]
    for clean in list(some):
        for suite in ("original", "tiers", "heldout"):
            for kind in kinds:
                impossible = kind == "unsolvable"
                some.append(record(clean.task_id, kind, suite=suite, family=clean.family, refuse=impossible))
    some += [record("there", domain="medical"), record("there", "name_noise", suite="medical", domain="medical")]
    return ArmResults(Arm(name="some", wave="A"), [], (row(one, 0.5) for one in some))


def test_without_arms_every_mark_is_missing() -> None:
    every = [*of_original(results({})), *of_asked(results({}))]
    assert len(every) == len(ORIGINAL) + len(ASKED)
    assert {one.mark for one in every} == {MISSING}


def test_no_claim_is_forgotten_here() -> None:
    further_down = ("Clean accuracy does not predict", "PAFT refuses when it should")
    for claim, *_ in (*ORIGINAL, *ASKED):
        assert sum(claim.startswith(start) for start in (*CLAIMS, *further_down)) == 1, claim


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_mark_is_missing_if_an_arm_or_its_episodes_are_not_there(claim: str) -> None:
    arms = dict.fromkeys(CLAIMS[claim].split(), some_of_all())
    assert mark(claim, arms, "paft-wide") != MISSING
    for name in arms:
        fewer = {other: pool for other, pool in arms.items() if other != name}
        assert mark(claim, fewer, "paft-wide") == MISSING
        assert mark(claim, {**arms, name: played()}, "paft-wide") == MISSING  # it is there and played nothing


# ---------------------------------------------------------------- the original study


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(-0.30, -0.25, -0.201)] * 3, YES),
        ([(-0.30, -0.25, -0.20), SURE, SURE], ELSE),  # one of them may be less
        ([SURE, (-0.30, -0.25, -0.199), SURE], ELSE),
        ([SURE, SURE, (-0.30, -0.25, -0.199)], ELSE),
        ([-0.5, -0.5, -0.5], ELSE),
        ([-0.101, 0.0, 0.0], ELSE),
        ([0.0, -0.101, 0.0], ELSE),
        ([0.0, 0.0, -0.101], ELSE),
        ([-0.10] * 3, NO),
    ],
)
def test_static_loses_tens_of_points_in_all_three_tiers(changes: list[Change], expected: str) -> None:
    assert mark("Static SFT loses tens", {"static": under(*changes)}) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((-0.301, -0.300, -0.299), YES),
        (((-0.5, -0.301, -0.1), (-0.4, -0.300, -0.2), (-0.31, -0.299, -0.29)), YES),  # intervals do not count
        ((-0.300, -0.301, -0.299), ELSE),
        ((-0.301, -0.299, -0.300), ELSE),
        ((-0.300, -0.299, -0.301), ELSE),
        ((-0.299, -0.301, -0.300), NO),
        ((-0.299, -0.300, -0.301), NO),
    ],
)
def test_static_loses_most_in_perception_and_least_in_reasoning(changes: tuple[Change, ...], expected: str) -> None:
    assert mark("It loses most in perception", {"static": under(*changes)}) == expected


@pytest.mark.parametrize(
    ("clean", "static", "expected"),
    [
        (0.20, [(-0.5, -0.4, -0.301)] * 3, YES),
        (0.199, [(-0.5, -0.4, -0.301)] * 3, ELSE),  # base has nothing to lose
        (0.9, [(-0.5, -0.4, -0.301)] * 2 + [(-0.5, -0.4, -0.30)], ELSE),  # one interval meets base's
        (0.9, [(-0.5, -0.4, -0.30)] * 2 + [(-0.5, -0.4, -0.301)], ELSE),
        (0.9, [(-0.5, -0.4, -0.30)] * 3, NO),
    ],
)
def test_static_is_more_fragile_than_base(clean: float, static: list[Change], expected: str) -> None:
    arms = {"static": under(*static), "base": under(*[(-0.30, -0.2, -0.1)] * 3, clean={"poi": clean})}
    assert mark("Static SFT is more fragile", arms) == expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (-0.40, -0.201, YES),
        (-0.40, -0.379, YES),
        (-0.40, -0.381, ELSE),  # hardly any less
        (-0.40, -0.50, ELSE),
        (-0.40, -0.199, ELSE),  # between half and a quarter
        (-0.50, -0.25, ELSE),  # half of it, neither more nor less
        (-0.40, -0.101, ELSE),
        (-0.50, -0.125, ELSE),
        (-0.40, -0.099, NO),
        (-0.101, -0.06, YES),
        (-0.099, -0.06, ELSE),  # little to heal
        (-0.099, 0.0, ELSE),
    ],
)
def test_longer_training_eases_and_does_not_heal(first: float, last: float, expected: str) -> None:
    between = {"static-400": about(-0.9), "static": about(0.0)}  # they are told and do not count
    assert mark("Longer training", {"static-200": about(first), "static-3200": about(last), **between}) == expected


@pytest.mark.parametrize(
    ("few", "many", "expected"),
    [
        (-0.40, -0.201, YES),
        (-0.40, -0.50, YES),
        (-0.40, -0.199, ELSE),
        (-0.50, -0.25, ELSE),  # half of it, neither more nor less
        (-0.40, -0.101, ELSE),
        (-0.50, -0.125, ELSE),
        (-0.40, -0.099, NO),
        (-0.101, -0.06, YES),
        (-0.099, -0.06, ELSE),  # little to heal
    ],
)
def test_more_data_does_not_heal(few: float, many: float, expected: str) -> None:
    assert mark("More data", {"static-6k": about(few), "static-24k": about(many)}) == expected


@pytest.mark.parametrize(
    ("static", "paft", "expected"),
    [
        ((-0.40, -0.40, -0.20), (-0.199, -0.199, -0.099), YES),
        ((-0.40, -0.40, -0.20), (-0.201, 0.0, 0.0), ELSE),
        ((-0.40, -0.40, -0.20), (0.0, -0.201, 0.0), ELSE),
        ((-0.40, -0.40, -0.20), (0.0, 0.0, -0.101), ELSE),
        ((-0.40, -0.40, -0.20), (-0.20, -0.20, -0.10), ELSE),  # half, neither more nor less
        ((-0.40, -0.40, -0.20), (-0.199, -0.3, -0.2), ELSE),
        ((-0.40, -0.40, -0.20), (-0.201, -0.201, -0.101), NO),
        ((-0.40, -0.40, -0.021), (0.0, 0.0, -0.021), ELSE),
        ((-0.40, -0.40, -0.020), (0.0, 0.0, -0.020), YES),  # a loss too small to count
        ((-0.02, -0.02, 0.1), (0.0, 0.0, 0.0), ELSE),  # nothing to win back
    ],
)
def test_paft_wins_most_of_it_back(static: tuple[float, ...], paft: tuple[float, ...], expected: str) -> None:
    assert mark("PAFT at share 0.3", {"static": under(*static), "paft": under(*paft)}) == expected


@pytest.mark.parametrize("other", ["paft-0.1", "paft-0.2", "paft-0.5"])
@pytest.mark.parametrize(("mean", "expected"), [(-0.101, YES), (-0.099, ELSE), (-0.081, ELSE), (-0.079, NO)])
def test_the_share_of_paft_is_the_best(other: str, mean: float, expected: str) -> None:
    arms = dict.fromkeys(("paft-0.1", "paft-0.2", "paft-0.5"), about(-0.3))
    assert mark("Of the shares", {**arms, "paft": about(-0.1), other: about(mean)}) == expected


@pytest.mark.parametrize(
    ("base", "static", "expected"),
    [
        (0.12, 0.099, YES),
        (0.051, 0.05, YES),
        (0.12, 0.10, ELSE),
        (0.12, 0.119, ELSE),
        (0.12, 0.12, NO),
        (0.05, 0.05, NO),  # also where it is little
        (0.05, 0.051, NO),
    ],
)
def test_static_refuses_less_than_base(base: float, static: float, expected: str) -> None:
    assert mark("Static SFT forces", {"base": refusing(base), "static": refusing(static)}) == expected


@pytest.mark.parametrize(
    ("static", "paft", "expected"),
    [
        (0.0, 0.90, YES),
        (0.0, 0.899, ELSE),
        (0.749, 0.95, YES),
        (0.75, 0.95, ELSE),  # not so far above static
        (0.849, 0.95, ELSE),
        (0.851, 0.95, NO),
        (0.0, 0.10, ELSE),
        (0.0, 0.099, NO),
        (0.20, 0.301, ELSE),
        (0.20, 0.299, NO),
        (0.20, 0.10, NO),
    ],
)
def test_paft_refuses_rightly_and_more_than_static(static: float, paft: float, expected: str) -> None:
    assert mark("PAFT refuses rightly", {"static": refusing(static), "paft": refusing(paft)}) == expected


@pytest.mark.parametrize(
    ("renamed", "reworded", "expected"),
    [
        ((-0.4, -0.3, -0.201), (-0.20, -0.1, 0.0), YES),
        ((-0.4, -0.3, -0.199), (-0.19, -0.1, 0.0), ELSE),  # below, and not by tens
        ((-0.5, -0.4, -0.30), (-0.30, -0.1, 0.0), ELSE),  # by tens, and the intervals meet
        ((-0.5, -0.4, -0.30), (-0.299, -0.1, 0.0), YES),
        ((-0.3, -0.2, -0.1), (-0.5, -0.4, -0.30), ELSE),
        ((-0.3, -0.2, -0.1), (-0.5, -0.4, -0.301), NO),  # it loses more under other words
    ],
)
def test_static_loses_more_under_renamed_symbols(renamed: Change, reworded: Change, expected: str) -> None:
    static = Numbers({f"original {RENAMED}": renamed, f"original {REWORDED}": reworded})
    assert mark("SFT anchors", {"static": static}) == expected


@pytest.mark.parametrize(
    ("static", "change", "expected"),
    [
        (0.449, (-0.4, -0.3, -0.201), YES),
        (0.451, (-0.4, -0.3, -0.201), ELSE),
        (0.449, (-0.4, -0.3, -0.199), ELSE),
        (0.451, (-0.4, -0.3, -0.199), NO),
    ],
)
def test_static_explores_less_than_paft_and_loses(static: float, change: Change, expected: str) -> None:
    def exploring(score: float, **changes: Change) -> Numbers:
        """So much under interaction in the original scenarios; elsewhere the other way round."""
        some = [row(record(f"{n}", "format_switch"), score + away) for n, away in enumerate((-0.1, 0.1))]
        some += [row(record("2", "name_noise"), 1 - score), row(record("2", "key_rename", suite="tiers"), 1 - score)]
        return Numbers({f"original {tier}": one for tier, one in changes.items()}, rows=some)

    arms = {"static": exploring(static, interaction=change), "paft": exploring(0.5)}
    assert mark("SFT runs open loop", arms) == expected


@pytest.mark.parametrize(
    ("rl", "expected"),
    [
        ((-0.299, -0.2, -0.1), YES),
        ((-0.30, -0.2, -0.1), ELSE),  # the intervals meet
        ((-0.5, -0.399, -0.3), ELSE),
        ((-0.5, -0.40, -0.2), NO),
        ((-0.6, -0.5, -0.4), NO),
    ],
)
def test_rl_loses_less_in_perception(rl: Change, expected: str) -> None:
    arms = {"static": Numbers({"original perception": (-0.5, -0.4, -0.30)}), "rl": Numbers({"original perception": rl})}
    assert mark("RL grounds", arms) == expected
    assert mark("RL grounds", {**arms, "rl-brief": Numbers({"original perception": 0.0})}) == expected  # only told


@pytest.mark.parametrize(
    ("static", "rl", "expected"),
    [
        ((-0.4, -0.3, -0.201), (-0.4, -0.3, -0.201), YES),
        ((-0.4, -0.3, -0.20), SURE, ELSE),
        (SURE, (-0.4, -0.3, -0.199), ELSE),
        (-0.101, 0.0, ELSE),
        (0.0, -0.101, ELSE),
        (-0.10, -0.10, NO),
    ],
)
def test_an_inverted_order_of_calls_breaks_sft_and_rl(static: Change, rl: Change, expected: str) -> None:
    arms = {name: Numbers({"original dependency_inversion": one}) for name, one in (("static", static), ("rl", rl))}
    assert mark("SFT and RL both", arms) == expected


@pytest.mark.parametrize(
    ("static", "rl", "expected"),
    [(0.0, 0.099, YES), (0.0, 0.10, ELSE), (0.3, 0.499, ELSE), (0.3, 0.501, NO), (0.0, 0.20, ELSE), (0.0, 0.201, NO)],
)
def test_rl_hardly_refuses(static: float, rl: float, expected: str) -> None:
    assert mark("RL forces", {"static": refusing(static), "rl": refusing(rl)}) == expected


@pytest.mark.parametrize(
    ("families", "expected"),
    [
        ([(-0.5, -0.4, -0.301), (-0.35, -0.3, -0.2), (-0.30, -0.2, -0.1)], YES),
        ([(-0.5, -0.4, -0.30), (-0.30, -0.2, -0.1)], ELSE),  # the intervals meet
        ([(-0.30, -0.2, -0.1), (-0.5, -0.4, -0.301)], YES),  # in whatever order they come
        ([(-0.5, -0.4, -0.301), -0.3, (-0.30, -0.2, -0.1)], YES),  # one that is not sure is neither worst nor best
        ([(-0.5, -0.4, -0.25), (-0.36, -0.35, -0.34), (-0.22, -0.21, -0.2), (-0.30, -0.2, -0.1)], ELSE),
        ([-0.10, 0.0], ELSE),
        ([-0.099, -0.05, 0.0], NO),
        ([SURE], MISSING),  # one alone
    ],
)
def test_families_fall_unevenly(families: list[Change], expected: str) -> None:
    static = Numbers(families={f"poi/{n}": one for n, one in enumerate(families)})
    assert mark("The fall is uneven", {"static": static}) == expected


@pytest.mark.parametrize(("there", "expected"), [(0.299, YES), (0.30, ELSE), (0.45, ELSE), (0.451, NO), (0.60, NO)])
def test_static_solves_less_in_another_domain(there: float, expected: str) -> None:
    assert mark("What was learnt", {"static": Numbers(clean={"poi": 0.5, "medical": there})}) == expected


# ---------------------------------------------------------------- what was asked of the arms


@pytest.mark.parametrize(("clean", "expected"), [(0.95, MET), (0.949, UNMET)])
def test_static_is_to_solve_clean_tasks(clean: float, expected: str) -> None:
    assert mark("Static SFT solves", {"static": Numbers(clean={"poi": clean, "medical": 0.95})}) == expected


@pytest.mark.parametrize(
    ("perception", "interaction", "expected"),
    [(-0.40, -0.25, MET), (-0.399, -0.5, UNMET), (-0.5, -0.249, UNMET)],
)
def test_static_is_to_be_fragile(perception: float, interaction: float, expected: str) -> None:
    static = under(perception, interaction, 0.0, suite="tiers")
    assert mark("Static SFT is fragile", {"static": static}) == expected


@pytest.mark.parametrize(("clean", "expected"), [(1.0, MET), (0.89, MET), (0.889, UNMET)])
def test_paft_is_to_be_as_good_as_static_in_clean_worlds(clean: float, expected: str) -> None:
    arms = {name: Numbers(clean={"poi": one}) for name, one in (("static", 0.9), ("paft", 0.5), ("paft-wide", clean))}
    assert mark("PAFT is as good", arms, "paft-wide") == expected
    assert mark("PAFT is as good", arms) == UNMET  # another arm stands for PAFT


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((-0.05, -0.05, -0.10), MET),
        ((-0.051, 0.0, 0.0), UNMET),
        ((0.0, -0.051, 0.0), UNMET),
        ((0.0, 0.0, -0.101), UNMET),
    ],
)
def test_paft_is_to_hold_on_trained_kinds(changes: tuple[float, ...], expected: str) -> None:
    arms = {"paft-wide": under(*changes, suite="tiers"), "paft": under(-0.9, -0.9, -0.9, suite="tiers")}
    assert mark("PAFT holds on trained", arms, "paft-wide") == expected
    assert mark("PAFT holds on trained", arms) == UNMET


@pytest.mark.parametrize(
    ("static", "paft", "expected"),
    [
        (-0.40, -0.20, MET),  # half of it
        (-0.40, -0.201, UNMET),
        (-0.40, 0.1, MET),
        (-0.40, -0.50, UNMET),
        (-0.021, -0.01, MET),
        (-0.020, 0.0, UNMET),  # nothing to win back
    ],
)
def test_paft_is_to_hold_on_kinds_never_trained(static: float, paft: float, expected: str) -> None:
    changes = {"static": static, "paft-wide": paft, "paft": static}
    arms = {name: Numbers({"heldout": one}) for name, one in changes.items()}
    assert mark("PAFT holds on kinds never", arms, "paft-wide") == expected
    assert mark("PAFT holds on kinds never", arms) == UNMET


def in_medical(solvable: int, impossible: int, *, suite: str = "medical") -> ArmResults:
    """An arm that passed this many of twenty episodes that can be solved, and of twenty that are to be refused."""
    some = [record(f"can/{n}", "name_noise", n < solvable, suite=suite, domain="medical") for n in range(20)]
    for n in range(20):
        some.append(record(f"not/{n}", "unsolvable", n < impossible, suite=suite, domain="medical", refuse=True))
    return played(*some)


@pytest.mark.parametrize(
    ("solvable", "impossible", "expected"),
    [
        (15, 10, MET),  # five more, and none fewer, are the fewest that are clear
        (14, 10, UNMET),
        (14, 20, UNMET),  # refusals are no way to carry over
        (10, 20, UNMET),
        (15, 0, MET),
        (20, 10, MET),
        (6, 10, UNMET),  # clearly worse
    ],
)
def test_paft_is_to_carry_over_to_medical(solvable: int, impossible: int, expected: str) -> None:
    arms = {"static": in_medical(10, 10), "paft-wide": in_medical(solvable, impossible), "paft": in_medical(10, 10)}
    assert mark("PAFT carries over", arms, "paft-wide") == expected
    assert mark("PAFT carries over", arms) == UNMET
    elsewhere = in_medical(20, 20, suite="original")
    assert mark("PAFT carries over", {**arms, "paft": elsewhere}) == MISSING
    refusals = played(*arms["static"].of("medical", keep=lambda one: one.refuse))
    assert mark("PAFT carries over", {**arms, "paft": refusals}) == MISSING  # nothing that can be solved


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        ("rl rl-perturbed", MET),
        ("rl-brief rl-brief-perturbed", MET),
        ("rl rl-brief rl-brief-perturbed", MET),
        ("rl rl-brief", MISSING),
        ("rl rl-brief-perturbed", MISSING),  # they began elsewhere
        ("rl-perturbed rl-brief-perturbed", MISSING),
    ],
)
def test_rl_is_to_be_measured_clean_and_perturbed(arms: str, expected: str) -> None:
    assert mark("Perturbed RL", dict.fromkeys(arms.split(), Numbers({"tiers": -0.1}))) == expected
    assert mark("Perturbed RL", dict.fromkeys(arms.split(), Numbers({"original": -0.1}))) == MISSING


# ---------------------------------------------------------------- from episodes to marks


def test_marks_of_arms_that_played() -> None:
    """The same rules, with what real pools make of episodes."""

    def arm(passed: Mapping[str, int], refused: int, medical: int) -> ArmResults:
        """Of forty episodes of each kind, some passed, in two families, the second of which loses more."""
        some = [record(f"{n}", family="one" if n < 20 else "two") for n in range(40)]
        for suite in ("original", "tiers", "heldout"):
            for kind, many in passed.items():
                family = ("one", "two")
                some += [record(f"{n}", kind, n < many, suite=suite, family=family[n >= 20]) for n in range(40)]
            some += [record(f"{n}", "unsolvable", n < refused, suite=suite, refuse=True) for n in range(40)]
        return played(*some, *(record(f"there/{n}", "", n < medical, domain="medical") for n in range(40)))

    kinds = ("name_noise", "ambiguous", "format_switch", "dependency_inversion")
    frail = arm(dict(zip(kinds, (2, 38, 20, 22), strict=True)), 1, 8)
    sound = arm(dict(zip(kinds, (40, 39, 39, 38), strict=True)), 39, 40)
    weak, strong = {"static": frail, "base": sound, "paft": sound, "rl": frail}, {"static": sound, "base": frail}
    expected = {
        "Static SFT loses tens": (YES, NO),
        "It loses most in perception": (YES, NO),
        "Static SFT is more fragile": (YES, NO),
        "Static SFT forces": (YES, NO),
        "SFT anchors": (YES, ELSE),
        "The fall is uneven": (YES, NO),
        "What was learnt": (YES, NO),
        "Static SFT solves": (MET, MET),
        "Static SFT is fragile": (MET, UNMET),
        "PAFT at share 0.3": (YES, MISSING),
        "PAFT refuses rightly": (YES, MISSING),
        "RL grounds": (NO, MISSING),
        "RL forces": (YES, MISSING),
        "SFT and RL both": (YES, MISSING),
        "PAFT is as good": (MET, MISSING),
        "PAFT holds on trained": (MET, MISSING),
        "PAFT holds on kinds never": (MET, MISSING),
    }
    assert {claim: (mark(claim, weak), mark(claim, strong)) for claim in expected} == expected


# ---------------------------------------------------------------- rules over whole arms


def graded(name: str, clean: int, kept: int, *, domain: str = "poi", at: str = "") -> ArmResults:
    """An arm that solves this many of twenty tasks clean, and of these this many under a shift."""
    tasks = [f"{domain}/one/test/{n}" for n in range(20)]
    shown = [record(task, passed=n < clean, domain=domain) for n, task in enumerate(tasks)]
    shown += [record(task, "typos", n < kept, domain=domain) for n, task in enumerate(tasks)]
    return ArmResults(Arm(name=name, wave="A", at=at), [], map(row, shown))


def both(name: str, here: tuple[int, int], there: tuple[int, int], at: str = "") -> ArmResults:
    """An arm that solves so many, and keeps so many, on poi and on medical."""
    parts = graded(name, *here), graded(name, *there, domain="medical")
    return ArmResults(Arm(name=name, wave="A", at=at), [], [row(one) for part in parts for one in part.records])


RISING = [(n, n - 8) for n in range(8, 20)]  # who solves more keeps a greater share of it
FLAT = [(n, n // (2 + n % 2)) for n in range(8, 20)]  # a half or a third of it, in turns
FALLING = [(n, (19 - n) // 2) for n in range(8, 20)]


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (RISING, RISING, NO),
        (FLAT, FLAT, YES),
        (FLAT, RISING, ELSE),  # clear with medical, and not on poi
        (FALLING, FALLING, ELSE),  # clear, but the other way
        (RISING[:9], RISING[:9], MISSING),
    ],
)
def test_whether_the_clean_score_predicts(
    here: list[tuple[int, int]], there: list[tuple[int, int]], expected: str
) -> None:
    arms = {f"arm-{n}": both(f"arm-{n}", *pair) for n, pair in enumerate(zip(here, there, strict=True))}
    assert mark("Clean accuracy does not predict", arms) == expected
    former = {f"former-{n}": both(f"former-{n}", (20 - n, n), (20 - n, n), at="c0ffee") for n in range(8)}
    assert mark("Clean accuracy does not predict", {**arms, **former}) == expected  # former versions do not count


def refuser(right: int, clean: int, shifted: int, abroad: int) -> ArmResults:
    """An arm that refuses this many of a hundred: rightly, falsely in clean and in shifted worlds, and on medical."""
    out = []
    for domain, some in (("poi", clean), ("medical", abroad)):
        for n in range(100):
            one = record(f"{domain}/one/test/{n}", domain=domain)
            out.append(one.model_copy(update={"ended": "refusal"} if n < some else {}))
    for n in range(100):
        one = record(f"poi/one/test/{n}", "typos", suite="tiers")
        out.append(one.model_copy(update={"ended": "refusal"} if n < shifted else {}))
        out.append(record(f"poi/two/test/{n}", "unsolvable", n < right, suite="tiers", refuse=True))
    return played(*out)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((97, 2, 2, 2), MET),
        ((96, 2, 2, 2), UNMET),
        ((97, 3, 2, 2), UNMET),
        ((97, 2, 3, 2), UNMET),
        ((97, 2, 2, 90), MET),  # the mark by the frozen rule is told next to it
    ],
)
def test_whether_paft_refuses_when_it_should(counts: tuple[int, int, int, int], expected: str) -> None:
    arms = {"paft-wide": refuser(*counts), "paft": refuser(0, 100, 100, 100)}
    (one,) = (one for one in of_asked(results(arms), "paft-wide") if one.text.startswith("PAFT refuses when"))
    assert one.mark == expected
    assert ("as the rule was frozen, 46\N{NO-BREAK SPACE}% clean: not met" in one.numbers) is (counts[3] == 90)
