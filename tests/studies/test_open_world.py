"""Tests of the open-world study: what its arms are trained on, and what they are tested in."""

from __future__ import annotations

from pathlib import Path

from crosswind.core.registry import domains
from crosswind.episodes.recipe import kinds_of
from crosswind.study.definition import load_study
from crosswind.study.findings import load_findings
from crosswind.study.results import ArmResults, load_results
from crosswind.train.config import TrainConfig, check, for_method
from crosswind.train.worlds import worlds_of
from crosswind.words.held_out import HELD_OUT
from studies.open_world import findings

FOLDER = Path(__file__).parent.parent.parent / "studies" / "open_world"


def test_the_test_is_of_all_real_domains_and_all_kinds() -> None:
    study = load_study(FOLDER)
    assert sorted(study.test.domains) == domains.names()
    kinds = {kind for condition in study.test.conditions for kind in condition.recipe.kinds()}
    assert kinds == {*kinds_of("all@1")}
    held_out = {k for c in study.test.conditions if c.name.startswith("heldout/") for k in c.recipe.kinds()}
    assert held_out == HELD_OUT & kinds


def test_generated_arms_train_on_no_domain_that_they_are_tested_in() -> None:
    study = load_study(FOLDER)
    trained = {arm.name: study.arm(arm.name).train.get("data", {}).get("domains", {}) for arm in study.arms}
    generated = {name: places for name, places in trained.items() if name.startswith(("generated-", "endless-"))}
    assert len(generated) >= 10
    for places in generated.values():
        assert all(worlds_of(place) and place.startswith("generated:train-") for place in places)
    assert {*study.test.domains} - {*trained["five"]} == {"medical"}


def test_every_arm_draws() -> None:
    study = load_study(FOLDER)
    for arm, seed in study.queue():
        if arm.method in ("sft", "paft") and "corrections" not in arm.train["data"]:  # which need a run
            check(for_method(TrainConfig.model_validate(study.options(arm, seed), strict=False), arm.method))


def test_the_curve_counts_unseen_domains_alone() -> None:
    study = load_study(FOLDER)
    results = load_results(study, FOLDER / "results")
    own = load_findings(FOLDER)
    assert {section.make for section in study.report.sections} >= {*own.sections} == {"curve"}
    for name, worlds, unseen in (("five", "5", 1), ("static", "1", 5), ("generated-100", "100", 6), ("base", "0", 6)):
        arm = ArmResults(study.arm(name), [], [])
        assert findings.worlds(arm) == worlds
        assert len(findings.unseen(results, arm)) == unseen
    assert findings.worlds(ArmResults(study.arm("endless-long"), [], [])) == "endless"
    assert "unseen domains" in findings.curve(results)
