"""The table that maps tiers to the published definitions says what reports group by."""

from __future__ import annotations

import re
from pathlib import Path

from crosswind.core.registry import perturbations
from crosswind.metrics.groups import PUBLISHED

PAGE = Path(__file__).parents[2] / "docs" / "openagent.md"


def test_every_kind_is_in_the_table_where_reports_put_it() -> None:
    text = PAGE.read_text().partition("## Tiers here and tiers as published")[2].partition("###")[0]
    rows = re.findall(r"^\| (perception|interaction|reasoning|internalization) \|(.*)$", text, re.MULTILINE)
    said = {kind: tier for tier, row in rows for kind in re.findall(r"`(\w+)`", row)}
    assert said == {kind: PUBLISHED.get(kind, perturbations[kind].tier) for kind in perturbations.names()}


def test_only_kinds_whose_tier_differs_are_listed() -> None:
    assert not [kind for kind, tier in PUBLISHED.items() if perturbations[kind].tier == tier]
