"""Alarms as JSON lines."""

from __future__ import annotations

import json

import pytest

from crosswind.base.errors import BadFile
from crosswind.episodes.recipe import Recipe
from crosswind.watch.alarms import Alarm, Alternative, NamedShift, read_alarms, recipe_of

ALARM = Alarm(
    channel="tools",
    at=7,
    since=5,
    evidence={"renamed": {"find": "locate"}},
    shift=NamedShift(
        axis="action",
        kind="semantic_rename",
        severity=1,
        tools=("find",),
        layer={"kind": "semantic_rename", "names": {"find": "locate"}},
        confidence=0.9,
        alternatives=(Alternative(kind="foreign_interface", confidence=0.1),),
    ),
    recipe=recipe_of("semantic_rename", 1),
    episodes=("a", "b"),
)


def test_an_alarm_survives_its_line_and_others_are_skipped() -> None:
    lines = ['{"type":"status","episodes":3}', "", ALARM.line]
    assert list(read_alarms(lines)) == [ALARM]


def test_the_recipe_of_an_alarm_is_one_that_run_takes() -> None:
    recipe = Recipe.model_validate_json(json.dumps(recipe_of("rate_limit", 4)))
    assert [(choice.kind, choice.severity) for choice in recipe.stack] == [("rate_limit", (4, 4))]


@pytest.mark.parametrize(("line", "says"), [("{", "not JSON"), ('{"type":"alarm","at":1}', "channel")])
def test_a_broken_line_is_reported_with_its_number(line: str, says: str) -> None:
    with pytest.raises(BadFile, match=f"line 1: .*{says}"):
        list(read_alarms([line]))
