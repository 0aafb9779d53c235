"""The statistics, beside scipy and statsmodels."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from crosswind import metrics
from crosswind.metrics import (
    holm,
    mcnemar,
    minimum_detectable_effect,
    paired_difference,
    paired_interval,
    pairs_needed,
    pass_hat_k,
    power,
    spearman,
    wilson,
)
from crosswind.metrics.stats import flipped, ranks, resampled, sums_by


def outcomes(broke: int, fixed: int, both: int, neither: int) -> tuple[list[bool], list[bool]]:
    clean = [True] * broke + [False] * fixed + [True] * both + [False] * neither
    shifted = [False] * broke + [True] * fixed + [True] * both + [False] * neither
    return clean, shifted


def test_the_package_exports_what_it_promises() -> None:
    assert all(getattr(metrics, name) is not None for name in metrics.__all__)
    assert set(metrics.__all__) >= {"paired_difference", "wilson", "pass_hat_k", "holm", "minimum_detectable_effect"}


# ---------------------------------------------------------------- one share


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 20), (20, 20), (7, 20), (450, 1000), (1, 3)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_is_that_of_scipy_and_statsmodels(k: int, n: int, confidence: float) -> None:
    ours = wilson(k, n, confidence)
    theirs = stats.binomtest(k, n).proportion_ci(confidence, method="wilson")
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert ours == pytest.approx(proportion_confint(k, n, 1 - confidence, method="wilson"), abs=1e-9)


def test_wilson_at_the_ends() -> None:
    assert wilson(0, 0) == (0, 1)
    assert wilson(0, 9).low == 0
    assert wilson(9, 9).high == 1
    for k, n in ((1, 0), (-1, 3), (4, 3), (0, -1)):
        with pytest.raises(ValueError, match="not a share"):
            wilson(k, n)
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson(1, 2, 1.0)


# ---------------------------------------------------------------- pairs


def test_a_difference_is_shifted_minus_clean() -> None:
    found = paired_difference(*outcomes(30, 5, 40, 25))
    assert (found.n, found.broke, found.fixed) == (100, 30, 5)
    assert (found.clean, found.shifted) == (0.7, 0.45)
    assert found.delta == pytest.approx(-0.25)
    assert found.low < found.delta < found.high < 0
    turned = paired_difference(*outcomes(30, 5, 40, 25)[::-1])
    assert turned.delta == pytest.approx(0.25)
    assert turned.p == found.p
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


@pytest.mark.parametrize("table", [(30, 5, 40, 25), (3, 2, 20, 5), (200, 150, 300, 350)])
def test_its_interval_is_near_scipys_paired_bootstrap(table: tuple[int, int, int, int]) -> None:
    clean, shifted = outcomes(*table)
    ours = paired_difference(clean, shifted)

    def difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(b.mean(axis=axis) - a.mean(axis=axis))

    theirs = stats.bootstrap(
        (np.array(clean, float), np.array(shifted, float)),
        difference,
        paired=True,
        vectorized=True,
        n_resamples=10_000,
        batch=1000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.6 / len(clean) ** 0.5 / 3 + 0.002)


def test_without_correlation_it_is_newcombes_interval_of_statsmodels() -> None:
    """Two lists that go together by chance alone; the method for pairs adds the correlation to that for two samples."""
    clean, shifted = outcomes(12, 12, 18, 8)
    a, b = sum(clean), sum(shifted)
    theirs = confint_proportions_2indep(b, 50, a, 50, method="newcomb", compare="diff")
    turned = [clean[i] for i in Random(1).sample(range(50), 50)]
    ours = paired_interval(turned, shifted)
    assert ours == pytest.approx(theirs, abs=0.03)
    exact = paired_interval([True] * 50, [i < 30 for i in range(50)])  # one side never varies: no correlation at all
    assert exact == pytest.approx(
        confint_proportions_2indep(30, 50, 50, 50, method="newcomb", compare="diff"), abs=1e-9
    )


@pytest.mark.parametrize("broke", [0, 1, 3, 10, 40])
@pytest.mark.parametrize("fixed", [0, 1, 4, 25])
def test_its_p_is_the_exact_mcnemar_test(broke: int, fixed: int) -> None:
    p = paired_difference(*outcomes(broke, fixed, 7, 8)).p
    assert p == mcnemar(broke, fixed)
    assert p == pytest.approx(float(reference_mcnemar([[7, broke], [fixed, 8]], exact=True).pvalue), abs=1e-12)
    if broke + fixed:
        assert p == pytest.approx(stats.binomtest(broke, broke + fixed).pvalue, abs=1e-12)


def test_mcnemar_takes_large_numbers() -> None:
    assert mcnemar(5000, 5200) == pytest.approx(stats.binomtest(5000, 10200).pvalue, rel=1e-9)
    assert mcnemar(3000, 0) == 0  # below what a float holds
    with pytest.raises(ValueError, match="not negative"):
        mcnemar(-1, 2)


def test_edge_cases_of_a_difference() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        paired_difference([], [])
    with pytest.raises(ValueError, match="2 clean and 1 shifted"):
        paired_difference([True, False], [True])
    one = paired_difference([True], [False])
    assert (one.delta, one.low, one.p, one.broke) == (-1, -1, 1, 1)
    assert one.high > 0  # one pair shows nothing
    same = paired_difference([True, False] * 50, [True, False] * 50)
    assert (same.delta, same.p) == (0, 1)
    assert same.low == -same.high < -0.03  # a change of so few tasks may have been missed
    worst = paired_difference([True] * 20, [False] * 20)
    assert (worst.delta, worst.low) == (-1, -1)
    assert -0.8 < worst.high < -0.6
    assert worst.p == pytest.approx(2 / 2**20)


def test_the_order_of_pairs_does_not_matter() -> None:
    clean, shifted = outcomes(30, 11, 40, 20)
    mixed = Random(0).sample(range(len(clean)), len(clean))
    found, other = (
        paired_difference(clean, shifted),
        paired_difference([clean[i] for i in mixed], [shifted[i] for i in mixed]),
    )
    assert (other.low, other.high, other.p) == pytest.approx((found.low, found.high, found.p))


def test_a_thousand_pairs_take_a_moment() -> None:
    clean, shifted = outcomes(150, 50, 500, 300)
    paired_difference(clean, shifted)
    start = time.thread_time()
    paired_difference(clean, shifted)
    assert time.thread_time() - start < 0.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_a_difference_lies_between_its_bounds(pairs: list[tuple[bool, bool]]) -> None:
    found = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
    assert -1 <= found.low <= found.delta <= found.high <= 1
    assert 0 < found.p <= 1
    assert found.delta == pytest.approx(found.shifted - found.clean)
    turned = paired_difference([b for _, b in pairs], [a for a, _ in pairs])
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def missed(tasks: int, each: int, clean: float, fall: float, *, shared: bool, rounds: int = 500) -> tuple[float, float]:
    """How often the truth lies below and above the 95 % interval; tasks differ in difficulty.

    Each task has several pairs, which share their clean episode or are trials of their own.
    """
    rng, below, above = Random(f"{tasks}{each}{clean}{fall}{shared}"), 0, 0
    for _ in range(rounds):
        before, after, names = [], [], []
        for task in range(tasks):
            rate = rng.betavariate(4 * clean, 4 * (1 - clean))
            first = rng.random() < rate
            for _ in range(each):
                before.append(first if shared else rng.random() < rate)
                after.append(rng.random() < rate * (1 - fall / clean))
                names.append(task)
        low, high = paired_interval(before, after, tasks=names)
        below, above = below + (low > -fall), above + (high < -fall)
    return below / rounds, above / rounds


@pytest.mark.parametrize("fall", [0.0, 0.3])
@pytest.mark.parametrize(
    ("tasks", "each", "shared"), [(100, 1, True), (25, 1, True), (8, 1, True), (30, 4, True), (25, 4, False)]
)
def test_intervals_hold_the_truth_as_often_as_they_say(tasks: int, each: int, shared: bool, fall: float) -> None:
    for clean in (0.7, 0.95):
        assert max(missed(tasks, each, clean, fall, shared=shared)) <= 0.05  # 0.025 on each side is the aim


# ---------------------------------------------------------------- clusters


def test_resampling_sorts_of_clusters_is_resampling_clusters() -> None:
    rng = Random(5)
    clusters = [(float(rng.randint(-3, 3)), float(rng.randint(1, 5))) for _ in range(80)]
    counts: dict[tuple[float, ...], int] = {sort: clusters.count(sort) for sort in set(clusters)}
    ours = resampled(counts)
    theirs = stats.bootstrap(
        (np.array([s for s, _ in clusters], float), np.array([n for _, n in clusters], float)),
        lambda s, n, axis: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=10_000,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.02)
    with pytest.raises(ValueError, match="nothing"):
        resampled({})


def test_clusters_widen_the_interval() -> None:
    values = [(f"t{i // 4}", float(i // 4 % 2)) for i in range(80)]  # four trials that always agree
    apart = resampled(sums_by((i, v) for i, (_, v) in enumerate(values)))
    together = resampled(sums_by(values))
    assert together.high - together.low == pytest.approx(2 * (apart.high - apart.low), rel=0.15)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-4, 4), max_size=9))
def test_flipping_tasks_is_the_permutation_test(nets: list[int]) -> None:
    p = flipped(nets)
    moved = np.array([net for net in nets if net])
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(moved))).reshape(len(moved), -1) if len(moved) else np.zeros((0, 1))
    sums = signs.T @ moved if len(moved) else np.zeros(1)
    assert p == pytest.approx(float((abs(sums) >= abs(moved.sum())).mean()))


def test_flipping_agrees_with_scipy_and_with_mcnemar() -> None:
    nets = [-3, -2, -2, -1, 0, 0, 1, 2, -4]
    theirs = stats.permutation_test(
        (np.array(nets, float),), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert flipped(nets) == pytest.approx(theirs.pvalue)
    assert flipped([-1] * 9 + [1] * 2 + [0] * 5) == mcnemar(9, 2)
    assert flipped([]) == flipped([0, 0]) == 1


# ---------------------------------------------------------------- several tests, several trials


@pytest.mark.parametrize(
    "ps", [[0.01, 0.04, 0.03, 0.005], [0.5], [0.2, 0.2, 0.2], [1.0, 0.0, 0.9], [0.0499, 0.0251, 0.0166, 1e-12]]
)
def test_holm_is_that_of_statsmodels(ps: list[float]) -> None:
    assert holm(ps) == pytest.approx(list(multipletests(ps, method="holm")[1]))


def test_holm_at_the_ends() -> None:
    assert holm([]) == []
    with pytest.raises(ValueError, match="not a p-value"):
        holm([0.1, 1.2])


def test_pass_hat_k_counts_subsets() -> None:
    trials = {"a": [True] * 4, "b": [True, True, False, False], "c": [False] * 4}
    assert pass_hat_k(trials, 1).value == pytest.approx(0.5)
    assert pass_hat_k(trials, 2).value == pytest.approx((1 + 1 / 6) / 3)
    assert pass_hat_k(trials, 4).value == pytest.approx(1 / 3)
    for k in (1, 2, 3, 4):  # the chance that k trials drawn without putting back all pass
        drawn = [stats.hypergeom(len(of), sum(of), k).pmf(k) for of in trials.values()]
        assert pass_hat_k(trials, k).value == pytest.approx(np.mean(drawn))


def test_pass_hat_k_resamples_tasks() -> None:
    rng = Random(3)
    trials = {f"t{i}": [rng.random() < i / 40 for _ in range(5)] for i in range(40)}
    for k in (1, 3, 5):
        ours = pass_hat_k(trials, k)
        shares = np.array([stats.hypergeom(5, sum(of), k).pmf(k) for of in trials.values()])
        theirs = stats.bootstrap(
            (shares,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(0)
        ).confidence_interval
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
        assert ours.low < ours.value < ours.high
    alone = pass_hat_k(trials, 1)
    doubled = pass_hat_k({**trials, **{f"{t}+": of for t, of in trials.items()}}, 1)
    known = pass_hat_k(
        {**trials, **{f"{t}+": of for t, of in trials.items()}}, 1, clusters={f"{t}+": t for t in trials}
    )
    assert doubled.high - doubled.low < 0.8 * (alone.high - alone.low)
    assert (known.low, known.high) == pytest.approx((alone.low, alone.high), abs=0.01)


def test_edge_cases_of_pass_hat_k() -> None:
    with pytest.raises(ValueError, match="'b' has 1 trials"):
        pass_hat_k({"a": [True, True], "b": [True]}, 2)
    with pytest.raises(ValueError, match="no tasks"):
        pass_hat_k({}, 1)
    with pytest.raises(ValueError, match="at least one trial"):
        pass_hat_k({"a": [True]}, 0)
    one = pass_hat_k({"a": [True]}, 1)
    assert (one.value, one.low, one.high, one.tasks) == (1, 1, 1, 1)


# ---------------------------------------------------------------- how many pairs it takes


def exact_power(n: int, delta: float, noise: float) -> float:
    more, fewer = noise / 2 + delta, noise / 2
    out = 0.0
    for m in range(n + 1):
        weight = stats.binom.pmf(m, n, more + fewer)
        rejected = [k for k in range(m + 1) if m and stats.binomtest(k, m).pvalue <= 0.05]
        out += weight * stats.binom.pmf(rejected, m, more / (more + fewer)).sum()
    return float(out)


@pytest.mark.parametrize(("n", "delta", "noise"), [(12, 0.5, 0.1), (30, 0.3, 0.1), (30, 0.0, 0.4), (20, 0.6, 0.0)])
def test_power_is_the_exact_one(n: int, delta: float, noise: float) -> None:
    assert power(n, delta, noise=noise) == pytest.approx(exact_power(n, delta, noise), abs=1e-9)
    assert power(n, -delta, noise=noise) == power(n, delta, noise=noise)


def test_the_smallest_effect_is_found_as_often_as_asked_for() -> None:
    for n in (20, 100, 1000, 5000):
        effect = minimum_detectable_effect(n)
        assert effect is not None
        assert 0.8 <= power(n, effect) < 0.81
        assert power(n, 0.95 * effect) < 0.8
    found = [minimum_detectable_effect(n) or 1 for n in (20, 100, 1000)]
    assert found == sorted(found, reverse=True)
    noisy, quiet = minimum_detectable_effect(200, noise=0.3), minimum_detectable_effect(200, noise=0.02)
    assert noisy is not None
    assert quiet is not None
    assert noisy > quiet


def test_five_pairs_prove_nothing() -> None:
    assert minimum_detectable_effect(5) is None
    assert minimum_detectable_effect(0) is None
    assert mcnemar(5, 0) > 0.05


def test_pairs_needed_is_the_other_way_round() -> None:
    needed = pairs_needed(0.2)
    assert needed is not None
    assert power(needed, 0.2) >= 0.8 > power(needed - 1, 0.2)
    assert pairs_needed(0.0) is None
    assert pairs_needed(0.001, most=500) is None


def test_power_says_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="more pairs than there are"):
        power(10, 0.95, noise=0.2)
    with pytest.raises(ValueError, match="inconsistent arguments"):
        power(-1, 0.1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        minimum_detectable_effect(10, power=1.0)
    assert power(0, 0.2) == power(10, 0.0, noise=0.0) == 0


# ---------------------------------------------------------------- ranks


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=7))
def test_spearman_is_that_of_scipy(values: list[tuple[int, int]]) -> None:
    x, y = [float(a) for a, _ in values], [float(b) for _, b in values]
    assert ranks(x) == stats.rankdata(x).tolist()
    found = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert (found.rho, found.p) == (None, None)
    else:
        assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0, 2.0, 5.0, 3.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
def test_its_p_is_that_of_every_order(x: list[float]) -> None:
    y = [0.3, 0.9, 0.4, 0.7, 0.8]
    theirs = stats.permutation_test(
        (np.array(x),),
        lambda a: abs(stats.spearmanr(a, y).statistic),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert spearman(x, y).p == pytest.approx(theirs.pvalue)


def test_spearman_of_many_and_of_few() -> None:
    rng = Random(1)
    x = [rng.random() for _ in range(40)]
    y = [a + rng.random() for a in x]
    theirs = stats.spearmanr(x, y)
    found = spearman(x, y)
    assert found.rho == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue, abs=0.005)
    assert spearman([1.0], [2.0]).rho is None
    assert spearman([], []).n == 0
    assert spearman([1, 2, 3], [3, 2, 1]).rho == -1
    with pytest.raises(ValueError, match="2 and 1"):
        spearman([1, 2], [1])
