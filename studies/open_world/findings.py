"""The curve of this study: success in domains that an arm was not trained on, against the number of its worlds.

`crosswind study report studies/open_world` loads this file. Success is that of tasks which can be solved; an interval
goes by domains, drawn again with replacement, since the question is about domains that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean

from crosswind.episodes.record import Record
from crosswind.report.markdown import literal
from crosswind.study.results import ArmResults, Results, solvable
from crosswind.train.worlds import worlds_of

DRAWS = 2000
Share = tuple[float, float, float]  # with its interval


def worlds(arm: ArmResults) -> str:
    """How many worlds an arm was trained on."""
    names = arm.arm.train.get("data", {}).get("domains", {}) if arm.arm.method else {}
    ranges = [found for name in names if (found := worlds_of(name))]
    if any(one.last is None for one in ranges):
        return "endless"
    return str(len(names) - len(ranges) + sum(one.last - one.first + 1 for one in ranges if one.last is not None))


def unseen(results: Results, arm: ArmResults) -> list[str]:
    """The domains of the test that an arm was not trained on."""
    trained = arm.arm.train.get("data", {}).get("domains", {}) if arm.arm.method else {}
    return [name for name in results.study.test.domains if name not in trained]


def success(records: Sequence[Record], domains: Sequence[str]) -> Share | None:
    """The mean over domains of the share passed, with 95 % of what drawing domains again gives."""
    each = [[r.passed for r in records if r.domain == name and r.judged and solvable(r)] for name in domains]
    shares = [fmean(passed) for passed in each if passed]
    if not shares:
        return None
    rng = Random(0)
    again = sorted(fmean(rng.choices(shares, k=len(shares))) for _ in range(DRAWS))
    return fmean(shares), again[DRAWS * 25 // 1000], again[DRAWS * 975 // 1000 - 1]


def said(share: Share | None) -> str:
    return "-" if share is None else f"{100 * share[0]:.0f} ({100 * share[1]:.0f} to {100 * share[2]:.0f})"


def curve(results: Results) -> str:
    rows = ["| arm | worlds | unseen domains | clean | trained kinds | kinds never trained | false refusals |"]
    rows.append("|---|---:|---:|---:|---:|---:|---:|")
    for arm in results.arms.values():
        here = unseen(results, arm)
        played = [success(arm.clean, here), *(success(arm.of(suite), here) for suite in ("tiers", "heldout"))]
        able = [r for r in (*arm.clean, *arm.of("tiers"), *arm.of("heldout")) if solvable(r) and r.domain in here]
        refused = f"{100 * fmean(r.ended == 'refusal' for r in able):.0f} %" if able else "-"
        cells = (literal(arm.name), worlds(arm), str(len(here)), *map(said, played), refused)
        rows.append(f"| {' | '.join(cells)} |")
    told = "Percent of solvable episodes passed, the mean over domains; in brackets 95 % intervals over domains."
    return "\n".join([*rows, "", told])


SECTIONS: dict[str, Callable[[Results], str]] = {"curve": curve}
