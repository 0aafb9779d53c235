"""Which kinds work as releases, and in which domains: the table of docs/streams.md."""

from __future__ import annotations

import re
from functools import cache

import pytest

from crosswind.core.registry import domains, perturbations
from crosswind.core.release import probes_of
from crosswind.episodes.stream import StreamPlan
from tests.episodes.test_suites import ROOT, bench_of

SECTION = re.compile(r"## Kinds as releases\n(.*?)\n## ", re.DOTALL)
OURS = ("banking", "medical", "operations", "poi", "retail", "workspace")


@cache
def stated() -> dict[str, frozenset[str]]:
    """Kind -> the domains in which the page says that it works."""
    found = SECTION.search((ROOT / "docs" / "streams.md").read_text())
    assert found is not None
    listed = found[1].partition("all six:")[2].partition("`typos` and")[0]
    out = {kind: frozenset(OURS) for kind in re.findall(r"`(\w+)`", listed)}
    for kind, works in re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", found[1], re.MULTILINE):
        assert kind not in out
        out[kind] = frozenset(works.split(", ")) - {"none"}
    return out


def kinds() -> list[str]:
    """The kinds that the package brings."""
    return [k for k in perturbations.names() if perturbations[k].__module__.startswith("crosswind.perturbations.")]


def test_every_kind_is_in_the_table_once() -> None:
    assert sorted(stated()) == sorted(kinds())
    found = SECTION.search((ROOT / "docs" / "streams.md").read_text())
    assert found is not None
    counts = [len(works) for works in stated().values()]
    everywhere, nowhere = counts.count(6), counts.count(0)
    said = [int(number) for number in re.findall(r"\d+", found[1])[:3]]
    assert said == [len(counts), everywhere, len(counts) - everywhere - nowhere]
    assert f"and {nowhere} in none" in " ".join(found[1].split())


@pytest.mark.parametrize("place", range(len(OURS)), ids=OURS)
def test_a_kind_works_as_a_release_where_the_table_says_so(place: int) -> None:
    """Each kind in one of the domains, and in all of them where they differ; the benchmark tries them all."""
    bench, domain = bench_of("streams"), OURS[place]
    probes = probes_of(domains[domain])
    tried = [k for n, k in enumerate(kinds()) if n % len(OURS) == place or 0 < len(stated()[k]) < len(OURS)]
    works = {kind for kind in tried if not bench.why_not(probes, kind)}
    assert works == {kind for kind in tried if domain in stated()[kind]}


def test_a_plan_takes_no_kind_that_is_about_one_request() -> None:
    for kind in ("typos", "verbose_query", "paraphrase", "unsolvable"):
        with pytest.raises(ValueError, match="changes a single request"):
            StreamPlan(name="x", kinds=(kind,))
