"""Advice and the list of all episodes: what a figure counts and what its link finds are the same episodes."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from crosswind.metrics.diagnosis import CAUSES
from crosswind.metrics.mistakes import patterns
from crosswind.report import front, html, parts
from crosswind.report.advice import REMEDIES
from crosswind.report.content import Content, content
from crosswind.report.finder import columns
from crosswind.report.markup import data
from crosswind.report.verdict import details
from crosswind.runs.analysis import analyse
from crosswind.runs.reading import read
from crosswind.runs.store import open_run
from tests.report.test_report import Reader, played, run_of
from tests.runs.test_hostile import chromium, rendered


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Content:
    folder = tmp_path_factory.mktemp("run")
    run_of(played("by_name", "tiers", 1), folder, suite="tiers")
    return content(analyse(open_run(folder), baselines=0, opened=6))


@pytest.fixture(scope="module")
def page(said: Content) -> str:
    return html.page(said)


def matching(held: dict[str, Any], query: str) -> int:
    """How many episodes a filter finds, as `finder.js` counts them."""
    names, rows = held["names"], held["rows"]
    bits = {"refuse": 1, "side": 2, "pair": 4, "broke": 8, "fixed": 16}

    def has(i: int, field: str, wanted: str) -> bool:
        kinds, tier, axis, published = names["kinds"][rows["kinds"][i]]
        domain, family, level = names["family"][rows["family"][i]]
        if field in bits:
            return bool(rows["bits"][i] & bits[field]) == (wanted == "1")
        known = {
            "only": kinds[0] if len(kinds) == 1 else "",
            "tier": tier,
            "axis": axis,
            "published": published,
            "clean": "0" if kinds else "1",
            "family": f"{domain}/{family}",
            "domain": domain,
            "level": str(level),
            "outcome": held["outcomes"][rows["outcome"][i]],
            "judged": str(int(rows["outcome"][i] < 2)),
            "severity": str(rows["severity"][i]),
        }
        if field == "kind":
            return wanted in kinds
        return bool((known[field] if field in known else names[field][rows[field][i]]) == wanted)

    return sum(all(has(i, *one) for one in parse_qsl(query)) for i in range(len(rows["n"])))


def held_by(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="find-data">(.*?)</script>', page, re.DOTALL)
    assert found
    out: dict[str, Any] = json.loads(found[1])
    return out


def test_what_a_link_says_is_what_it_finds(page: str) -> None:
    held = held_by(page)
    links = re.findall(r'<a href="#find" class="find" data-find="([^"]*)">(.*?)</a>', page)
    counted = 0
    for query, text in links:
        shown = re.sub("<[^>]*>", "", text)
        if number := re.match(
            r"(?:(?:show )?all )?([\d,]+)(?: (?:(?:episodes? )?(?:broke|fixed)|of|pairs?)\b|$)", shown
        ):
            assert matching(held, unescape(query)) == int(number[1].replace(",", "")), (query, text)
            counted += 1
    assert counted > 100
    assert all(matching(held, unescape(query)) for query, _ in links)


def test_advice_names_what_is_in_the_run_and_covers_what_it_says(said: Content, page: str) -> None:
    held = held_by(page)
    failures = [one for one in said.run.told if one.outcome == "fail"]
    assert said.advice
    for one in said.advice:
        assert one.of == len(failures)
        assert one.failures == sum((r.cause or "undetermined") == one.why for r in failures)
        assert any(what in ("tool", "error", "key") for what, _, _ in one.named)
        for what, name, n in one.named:
            query = "&".join(f"{k}={v}" for k, v in {**one.find, what: name}.items())
            assert matching(held, query) == n > 0
        words = one.command.split()
        assert words[:3] == ["crosswind", "run", "tiers"]
        kinds = words[words.index("--only") + 1].split(",")
        assert all(any(kind in r.kinds and r.cause == one.why for r in failures) for kind in kinds)
    assert len({one.command for one in said.advice}) == len(said.advice)
    text = Reader(page).text
    assert all(f"{one.failures:,} of {len(failures):,} failures" in text for one in said.advice)


def test_every_cause_has_a_remedy() -> None:
    assert set(REMEDIES) == set(CAUSES)


def test_the_first_screen_says_whether_it_is_sure_and_what_hurts_most(said: Content, tmp_path: Path) -> None:
    kinds = said.summary.drops["kind"].values()
    worst = front.worst_of(said.summary)
    assert worst[0].delta == min(drop.delta for drop in kinds)
    assert "This change is statistically significant: " in details(said.summary)
    run_of(played("by_name"), tmp_path)
    few = content(analyse(open_run(tmp_path), baselines=0, opened=0))
    assert "This change may be due to chance: " in details(few.summary)
    assert "Run more tasks" in few.advice[-1].what
    needed = int(re.search(r"--tasks (\d+)", few.advice[-1].command)[1])  # type: ignore[index]
    assert needed > few.summary.tasks


def test_an_agent_that_does_nothing_is_told_so_first(tmp_path: Path) -> None:
    run_of(played("idle"), tmp_path)
    first = content(analyse(open_run(tmp_path), baselines=0, opened=0)).advice[0]
    assert "work in the clean world" in first.what
    assert "20 episodes of 20 made no tool call" in first.why


def test_failures_without_a_stored_mistake_are_diagnosed_for_the_report(said: Content) -> None:
    found = patterns(said.run.told, said.mistakes)
    assert all(one.mistake is None for one in said.run.told)  # as runs of earlier versions are
    assert sum(one.failures for one in found) == sum(one.outcome == "fail" for one in said.run.told)
    assert any(one.tools for one in found)


def test_data_cannot_end_its_element() -> None:
    text = data("x", {"</script><b>": ["\u202e<!--", 1, [2, 3]]}).html
    assert text.count("<") == 2
    inside = re.sub("<[^>]*>", "", text)
    assert json.loads(inside) == {"</script><b>": ["\\u202e<!--", 1, [2, 3]]}


def test_columns_hold_each_episode_once(said: Content) -> None:
    held = columns(said.run, said.mistakes, [])
    assert {len(values) for values in held["rows"].values()} == {len(said.run.told)}
    assert held["rows"]["n"] == list(range(1, len(said.run.told) + 1))


def test_equal_columns_of_a_step_are_shown_once() -> None:
    clean = next(r for r in played("oracle") if r.clean and r.steps)
    page = parts.episode(read(clean)).html
    assert page.count('class="agent three"') == len(clean.steps)
    assert 'class="world' not in page
    shifted = next(r for r in played("oracle", "tiers", 1) if "key_rename" in r.kinds and r.steps)
    page = parts.episode(read(shifted)).html
    assert 'class="agent"' in page  # what the agent saw and what the world saw differ


def test_the_script_filters_in_a_browser(page: str, tmp_path: Path) -> None:
    chromium()
    path = tmp_path / "report.html"
    held = held_by(page)
    query = f"cause={held['names']['cause'][-1].replace(' ', '+')}&outcome=fail"
    path.write_text(page.replace("<body>", '<body id="top">'), encoding="utf-8")
    document = rendered(path, tmp_path / "profile", f"#find?{query}")
    assert f">{matching(held, query)} of {len(held['rows']['n'])} episodes</p>" in document
    assert document.count('<span class="chip fail">') >= 1
