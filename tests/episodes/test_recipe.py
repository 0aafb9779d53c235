"""Recipes: seeded distributions over certified stacks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from crosswind.base.errors import BadFile, CannotPerturb, CrosswindError, NotForTraining, UnknownName
from crosswind.core.draw import draw
from crosswind.core.flow import rng_for
from crosswind.core.registry import domains, perturbations
from crosswind.episodes.recipe import Choice, Recipe, follow, kinds_of, load_recipe, maybe, one_of, recipes
from crosswind.episodes.schedule import episodes
from crosswind.episodes.suite import load_suite
from crosswind.train.data import DataConfig, demonstration_at
from crosswind.words.held_out import HELD_OUT, check_kinds, train_kinds
from tests.toys import poi, task

RECIPE = Recipe(
    stack=(
        one_of("semantic_rename", "identity_erasure", severity=(1, 5)),
        maybe(0.5, "transient_error"),
        Choice(one_of={"format_switch": 3.0, "paged_results": 1.0}, severity=(2, 2)),
    )
)


def test_a_recipe_picks_by_weight_chance_and_severity() -> None:
    picks = [RECIPE.pick(rng_for("recipe", n)) for n in range(800)]
    kinds = Counter(kind for pick in picks for kind, _ in pick)
    assert 330 < kinds["semantic_rename"] < 470
    assert 330 < kinds["transient_error"] < 470
    assert 530 < kinds["format_switch"] < 670
    severities = {severity for pick in picks for kind, severity in pick if kind.startswith(("semantic", "identity"))}
    assert severities == {1, 2, 3, 4, 5}
    assert {s for pick in picks for k, s in pick if k == "format_switch"} == {2}


def test_a_recipe_is_followed_the_same_way_twice_and_is_data() -> None:
    stacks = set()
    for seed in range(12):
        given = task("book_visit", seed)
        one, two = (
            follow(poi(), given, recipe, seed)
            for recipe in (RECIPE, Recipe.model_validate_json(RECIPE.model_dump_json()))
        )
        assert one.layers == two.layers
        stacks.add(tuple(layer.kind for layer in one.layers))
    assert len(stacks) > 3


def test_count_and_groups() -> None:
    recipe = Recipe(
        stack=(Choice(group="train", count=(2, 3), severity=(1, 2)), Choice(kind="fatal_error", chance=0.5))
    )
    sizes = Counter(len([k for k, _ in recipe.pick(rng_for("count", n)) if k != "fatal_error"]) for n in range(60))
    assert set(sizes) == {2, 3}
    assert set(recipe.kinds()) - {"fatal_error"} == set(train_kinds())
    assert set(kinds_of("heldout")) == HELD_OUT
    assert set(kinds_of("query")) == {k for k in train_kinds() if perturbations[k].axis == "query"}
    for name in recipes.names():
        assert recipes[name].pick(rng_for("ours", name))
    with pytest.raises(NotForTraining, match="held out"):
        check_kinds(recipes["unseen"].kinds())
    check_kinds(recipes["mixed"].kinds())


GOOD = """
name: mine
stack:
  - one_of: {semantic_rename: 2, parameter_rename: 1}
    severity: 1-3
  - {kind: transient_error, chance: 0.5, severity: 2}
  - {group: reasoning, count: 0-2}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("kind: transient_error", "kind: transient_eror", 6, "no perturbation 'transient_eror'; did you mean"),
        ("chance: 0.5", "chance: 1.5", 6, "expected at most 1"),
        ("severity: 1-3", "severity: 0-3", 5, "stack.0.severity: got '0-3'; expected 1 to 5"),
        ("severity: 1-3", "severity: low", 5, "stack.0.severity: got 'low'; expected 1 to 5, such as 3 or 2-4"),
        ("count: 0-2", "count: 2-9", 7, "stack.2.count: got '2-9'; expected 0 to 8"),
        ("severity: 1-3", "severities: 3", 5, "expected one of the keys kind, one_of, group"),
        ("group: reasoning", "group: reason", 7, "expected 'train'"),
        ("{semantic_rename: 2", "{semantic_rename: -2", 4, "the weight of 'semantic_rename' is -2; expected a number"),
        ("name: mine", "name: mine\nname: yours", 3, "the key 'name' appears twice"),
        ("name: mine", "name: &a mine", 2, "the anchor &a is not allowed"),
        ("name: mine", "name: !!str mine", 2, "the tag .* is not allowed"),
        ("stack:", "stack: [", 4, "not valid YAML"),
        (GOOD.partition("stack:")[2], " []", 3, "is empty; name at least one kind"),
    ],
)
def test_recipes_are_files_and_wrong_ones_are_told_with_line_and_remedy(
    tmp_path: Path, old: str, new: str, line: int, why: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    recipe = load_recipe(str(path))
    assert recipe.stack[0].severity == (1, 3)
    assert recipe.stack[2].count == (0, 2)
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(BadFile, match=why) as told:
        load_recipe(str(path))
    assert f"mine.yaml:{line}:" in str(told.value)


def test_for_training_no_kind_is_offered_that_would_be_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("stack:\n- kind: zzz\n")
    with pytest.raises(
        BadFile, match=r"mine.yaml:2: stack.0: no perturbation 'zzz'; `crosswind catalog kinds` lists all"
    ):
        load_recipe(str(path))
    with pytest.raises(BadFile, match=r"mine.yaml:2: stack.0: no perturbation 'zzz'; known: ambiguous") as read:
        load_recipe(str(path), training=True)
    with pytest.raises(UnknownName, match="no perturbation 'zzz'; known: ambiguous") as checked:
        check_kinds(["zzz"])
    for told in (str(read.value), str(checked.value)):
        assert told.rpartition("known: ")[2].split(", ") == train_kinds()
    path.write_text("stack:\n- kind: envelop\n")  # near to one that is held out
    with pytest.raises(CrosswindError, match="no perturbation 'envelop'; known: ambiguous"):
        demonstration_at(DataConfig(recipe=str(path)), 0)


SUITE = """
name: ours
domains: [poi, retail]
tasks: 2
conditions:
  - name: renamed and paged
    stack: [{kind: semantic_rename, severity: 4}, {kind: paged_results}]
"""


def test_suites_are_files_too(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(SUITE)
    made = list(episodes(load_suite(str(path)), 0))
    assert {e.condition for e in made} == {"clean", "renamed and paged"}
    assert {e.drawn.domain.name for e in made} == {"poi", "retail"}
    wrong = {
        "retail]": ("retial]", r"ours.yaml:3: domains: no domain 'retial'; did you mean retail"),
        "kind: paged_results": ("kind: pages", r"ours.yaml:7: .*no perturbation 'pages'"),
        "tasks: 2": ("tasks: 0", r"ours.yaml:4: tasks: .*at least 1"),
        "name: renamed and paged": ("name: clean", "the condition 'clean' comes twice"),
    }
    for old, (new, why) in wrong.items():
        path.write_text(SUITE.replace(old, new))
        with pytest.raises(BadFile, match=why):
            load_suite(str(path))
    path.write_text("name: none\n")
    with pytest.raises(BadFile, match="has no condition"):
        load_suite(str(path))
    with pytest.raises(BadFile, match="file not found"):
        load_suite(str(tmp_path / "nowhere.yaml"))
    with pytest.raises(BadFile, match="cannot be read"):
        load_suite(str(tmp_path / "no\0where.yaml"))
    with pytest.raises(UnknownName, match="no suite 'tier'; did you mean tiers"):
        load_suite("tier")


def test_a_bad_recipe_is_refused() -> None:
    with pytest.raises(ValidationError):
        Choice(one_of={"transient_error": 1.0}, chance=1.5)
    with pytest.raises(ValueError, match=r"the weight of 'typos' is 1e.308; expected a number above 0 and up to 1e.09"):
        Choice(one_of={"typos": 1e308, "paraphrase": 1e308})  # their sum is infinite
    with pytest.raises(UnknownName, match="did you mean transient_error"):
        draw(poi(), task("book_visit"), ["transient_errors"], 0)


def test_excluded_and_inapplicable_kinds_are_left_out_with_the_reason() -> None:
    drawn = draw(
        poi(), task("best_price"), ["semantic_rename", "identity_erasure", "confirm_before_write"], 0, strict=False
    )
    assert len(drawn.layers) == 1
    assert any("does not stack" in why for why in drawn.left_out)
    assert any("does not apply" in why for why in drawn.left_out)


@pytest.mark.parametrize("kind", ["format_switch", "envelope"])
def test_on_the_way_to_a_refusal_another_form_of_results_costs_no_walk_to_draw(kind: str) -> None:
    inner = ["underspecified", "paged_results"]
    drawn = draw(poi(), task("sold_out"), [*inner, kind], 1)
    assert [layer.kind for layer in drawn.layers] == [*inner, kind]
    assert drawn.walks == draw(poi(), task("sold_out"), inner, 1).walks


def test_a_group_may_have_some_weights_changed() -> None:
    choice = Choice(group="train", one_of={"rule_change": 4.0})
    weights = choice.weights()
    assert set(weights) == set(train_kinds())
    assert {kind for kind, weight in weights.items() if weight != 1.0} == {"rule_change"}
    with pytest.raises(ValidationError, match="give either kind"):
        Choice(kind="typos", group="train")
    with pytest.raises(ValidationError, match="give either kind"):
        Choice()


def test_kinds_that_few_tasks_admit_come_up_as_often_as_others() -> None:
    """In demonstrations of the recipe that is the default for training."""
    config, found = DataConfig(domains={"poi": 1.0}, share=1.0, recipe="mixed", reasons=False), Counter[str]()
    for index in range(500):
        found.update(demonstration_at(config, index).meta["kinds"])
    assert set(found) == set(kinds_of("train@1"))
    usual = sorted(found.values())[len(found) // 2]
    assert all(found[kind] > usual / 3 for kind in kinds_of("train@1")), found


def test_a_kind_that_does_not_fit_a_family_never_applies_to_it() -> None:
    """What is told at a glance is borne out by draws."""
    known: Counter[bool] = Counter()
    for name in ("poi", "medical"):
        here = domains[name]
        for kind in train_kinds():
            for family in here.families.values():
                fits = perturbations[kind].fits(family)
                known[fits] += 1
                if not fits:
                    with pytest.raises(CannotPerturb):
                        draw(here, here.task(family.name, 5), [(kind, 3)], 5)
    assert known[False] > 20
