"""Tests of the fragility study: its arms and suites, its stored results, and the adapters made from them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crosswind.core.registry import perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.builtin_suites import ORIGINAL
from crosswind.episodes.recipe import kinds_of
from crosswind.metrics import formats
from crosswind.study.definition import RESULTS, load_study, suite_of
from crosswind.study.findings import load_findings
from crosswind.study.results import Absent, Results, load_results, read_done
from studies.fragility import findings, ship

FOLDER = Path(__file__).parent.parent.parent / "studies" / "fragility"


@cache
def stored() -> Results:
    return load_results(load_study(FOLDER), FOLDER / RESULTS)


def test_the_report_finds_its_sections_and_plots() -> None:
    own = load_findings(FOLDER)
    made = {section.make for section in load_study(FOLDER).report.sections}
    assert set(own.sections) < made
    assert set(own.plots) == {"passed"}


def test_the_arms_of_the_study() -> None:
    study = load_study(FOLDER)
    waves = {wave: [arm.name for arm in study.arms if arm.wave == wave] for wave in "ABC"}
    assert waves["A"] == ["base", "static", "paft"]
    assert {"static-200", "static-400", "static-3200", "static-24k", "paft-0.1", "paft-0.5", "paft-full"} <= {
        *waves["B"]
    }
    clean = {"rl", "rl-brief", "rl-early"}
    assert {*clean, *(f"{name}-perturbed" for name in clean), "paft-rl", "adaptive", "adaptive-even"} == {*waves["C"]}
    for name in clean:
        one, other = study.arm(name), study.arm(f"{name}-perturbed")
        assert (one.start, one.seeds) == (other.start, other.seeds)  # they differ in what they play in
        assert {**other.train, "data": one.train["data"]} == one.train
    assert study.seeds_of(study.arm("paft")) == study.seeds_of(study.arm("adaptive")) == (0, 1, 2)
    assert study.arm("paft-0.1").train["data"] == {**study.arm("paft").train["data"], "share": 0.1}
    assert study.arm("paft-0.1").method == "paft"
    hashes = {study.config_hash(arm, seed) for arm, seed in study.queue()}
    assert len(hashes) == len(study.queue())


def test_stored_results_are_of_the_arms_as_they_are_now() -> None:
    study = load_study(FOLDER)
    stored = sorted((FOLDER / "results" / "arms").glob("*/seed-*/*.json"))
    assert stored
    for done in map(read_done, stored):
        arm = study.arm(done.arm)
        assert done.suite_hash == study.suite_hash(done.part)
        assert arm.at or not study.another(arm, done.seed, done.config, done.config_hash), done.arm


def test_every_arm_has_options_that_its_method_takes() -> None:
    from crosswind.train.config import TrainConfig, check, for_method

    study = load_study(FOLDER)
    for arm, seed in study.queue():
        if arm.method in ("sft", "paft"):
            check(for_method(TrainConfig.model_validate(study.options(arm, seed), strict=False), arm.method))


def test_arms_of_reinforcement_have_options_that_it_takes() -> None:
    pytest.importorskip("peft")
    from crosswind.train.config import GrpoConfig

    study = load_study(FOLDER)
    for arm, seed in study.queue():
        if arm.method == "grpo":
            config = GrpoConfig.model_validate(study.options(arm, seed), strict=False)
            assert bool(config.data.share) == arm.name.endswith(("perturbed", "paft-rl"))
            assert arm.start
            assert arm.train["steps"] == config.steps  # written down: a budget reckons with it


def test_the_suites_have_the_kinds_that_their_names_say() -> None:
    study = load_study(FOLDER)
    groups = {
        "original": set(ORIGINAL),
        "tiers": {*kinds_of("train@1")},
        "heldout": {*kinds_of("heldout@1")},
        "dev": {*kinds_of("train@1")},
    }
    for condition in (*study.dev.conditions, *study.test.conditions):
        suite, tier, *more = condition.name.split("/")
        group = groups[{"trained": "tiers", "heldout": "heldout"}[more[0]] if more else suite]
        assert set(condition.recipe.kinds()) == {kind for kind in group if perturbations[kind].tier == tier}
    cells: dict[tuple[str, str], int] = {}
    for condition in study.test.conditions:
        cell = suite_of(condition.name), condition.name.split("/")[1]
        cells[cell] = cells.get(cell, 0) + (condition.tasks or 0)
    assert cells == {(suite, tier): 300 for suite in ("original", "tiers", "heldout", "medical") for tier in TIERS}


def test_the_arm_that_stands_for_paft_is_chosen_on_dev() -> None:
    results = stored()
    found, dev = results.arms, results.dev
    former, plain = dev["paft-few-names"], dev["paft-plain"]
    some = {pool.name: pool for pool in (former, plain, dev["static"])}
    assert former.arm.at
    assert plain.arm.at
    plain.arm = plain.arm.model_copy(update={"at": ""})
    assert findings.best_paft(replace(results, dev=some)) == "paft-plain"  # those of former commits do not count
    former.arm = former.arm.model_copy(update={"at": ""})
    assert findings.best_paft(replace(results, dev=some)) == "paft-few-names"  # it passed more on dev
    assert (
        findings.best_paft(replace(results, arms={"static": found["static"]}, dev=some)) == "paft"
    )  # nothing to choose from


@pytest.mark.parametrize(
    ("means", "mark"),
    [
        ((-0.70, -0.60, -0.55, -0.50), "reproduced"),  # eased, not healed
        ((-0.70, -0.72, -0.75, -0.80), "different"),  # it loses more
        ((-0.70, -0.60, -0.55, -0.69), "different"),  # hardly any less
        ((-0.70, -0.40, -0.20, -0.10), "not reproduced"),  # healed
        ((-0.70, -0.60, -0.30, -0.30), "different"),  # between
        ((-0.70, -0.60, -0.50, None), "missing"),
        ((-0.05, -0.60, -0.50, -0.40), "different"),  # nothing to heal
    ],
)
def test_longer_training_eases_the_loss_if_the_numbers_say_so(
    means: tuple[float | None, ...], mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = dict(zip(("static-200", "static-400", "static", "static-3200"), means, strict=True))

    def mean(_: Any, arm: str) -> float:
        if (found := arms.get(arm)) is None:
            raise Absent(arm)
        return found

    monkeypatch.setattr(findings.Look, "mean", mean)
    claim = next(
        one for one in findings.of_original(Results(load_study(FOLDER), FOLDER, {})) if one.text.startswith("Longer")
    )
    assert claim.mark == mark


def test_refusals_are_told_by_suite_and_kind() -> None:
    """Against the stored rows, counted here."""
    results = stored()
    found = results.arms

    def share(arm: str, suite: str, kind: str) -> tuple[int, int]:
        some = [r for r in found[arm].of(suite) if r.kinds == (kind,) and r.refuse]
        return sum(found[arm].measures[r.key].refused for r in some), len(some)

    told = next(one for one in findings.of_original(results) if one.text.startswith("PAFT refuses")).numbers
    for kind, said in (("fatal_error", "fatal_error, never trained"), ("unsolvable", "unsolvable")):
        right, n = share("paft", "original", kind)
        assert n > 100
        assert f"{said} {formats.percent(right / n)}" in told
    told = next(one for one in findings.of_asked(results, "paft-wide") if one.text.startswith("PAFT refuses")).numbers
    right, n = share("paft-wide", "heldout", "fatal_error")
    assert f"on heldout {formats.percent(right / n)} and " in told


def test_the_adapters_in_the_package_are_those_of_the_stored_results() -> None:
    """Their cards tell what the stored outcomes say, PAFT's is the arm that was best on dev, and no part is missing."""
    gguf = pytest.importorskip("gguf")
    from crosswind.models import adapters

    results = stored()
    assert adapters.shipped() == ["static", "paft"]
    for name, arm in (("static", "static"), ("paft", findings.best_paft(results))):
        folder = adapters.FOLDER / name
        pool = results.arms[arm].seed(0)
        about = json.loads((folder / "crosswind.json").read_text(encoding="utf-8"))
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert card == ship.card_of(results.study, name, pool, about)
        assert f"Arm `{arm}`, seed 0" in card
        assert bool(about["recipe"]["data"]["share"]) == (name == "paft")
        tensors = {one.name for one in gguf.GGUFReader(str(folder / adapters.FILE)).tensors}
        assert len(tensors) == 30 * 7 * 2  # layers, linear maps in each, halves of a map's adapter
