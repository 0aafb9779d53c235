"""Recipes: seeded distributions over certified stacks."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from crosswind.errors import UnknownName
from crosswind.flow import rng_for
from crosswind.recipe import Choice, Recipe, draw, follow, maybe, one_of
from tests.toys import poi, task

RECIPE = Recipe(
    choices=(
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


def test_a_bad_recipe_is_refused() -> None:
    with pytest.raises(ValidationError):
        Choice(one_of={"transient_error": 1.0}, chance=1.5)
    with pytest.raises(UnknownName, match="did you mean transient_error"):
        draw(poi(), task("book_visit"), ["transient_errors"], 0)


def test_excluded_and_inapplicable_kinds_are_left_out_with_the_reason() -> None:
    drawn = draw(
        poi(), task("best_price"), ["semantic_rename", "identity_erasure", "confirm_before_write"], 0, strict=False
    )
    assert len(drawn.layers) == 1
    assert any("does not stack" in why for why in drawn.left_out)
    assert any("nothing to bite on" in why for why in drawn.left_out)
