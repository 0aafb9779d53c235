"""Scores that cannot be gamed: giving up earns nothing, and a figure is the same wherever it is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import crosswind as cw
from crosswind.cli.app import app
from crosswind.episodes.record import Record
from crosswind.gate.gate import examine, parse_rule
from crosswind.metrics import Drop, Summary, formats, summary, tasks_needed
from crosswind.metrics.scores import TRIVIAL
from crosswind.report import html
from crosswind.report.content import content
from crosswind.report.table import score_rows
from crosswind.report.verdict import verdict
from crosswind.runs.analysis import analyse
from tests.gate_runs import folder_of, made_up, played

KEYS = [record.key for record in played("oracle")]
PLAYED = {name: played(name) for name in TRIVIAL}


def mixed(choice: list[str]) -> list[Record]:
    """A run whose every episode was played by the agent named for it."""
    by_key = {name: {r.key: r for r in played(name)} for name in set(choice)}
    return [by_key[name][key].model_copy(update={"agent": "mine"}) for name, key in zip(choice, KEYS, strict=True)]


# ---------------------------------------------------------------- giving up


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(TRIVIAL), min_size=len(KEYS), max_size=len(KEYS)), st.sampled_from([None, 0.0, 0.1]))
def test_whatever_trivial_agents_play_earns_nothing(choice: list[str], least: float | None) -> None:
    """Even one that refuses exactly where refusing is right, and guesses elsewhere."""
    records = mixed(choice)
    found = summary(records, measures=False, trivial=PLAYED)
    assert found.score
    assert (found.score.value, found.score.low) == (0, 0)
    assert "no better than an agent that does nothing" in verdict(found, "mine")
    assert "rise" not in verdict(found, "mine")
    for baseline in (None, records):
        rules = [parse_rule("tier=0.9")]
        outcome = examine(records, rules, min_clean=least, baseline=baseline, trivial=PLAYED)
        assert outcome.verdict == "fail"


def test_the_one_number_of_scripted_agents_is_known() -> None:
    names = ("oracle", "memoriser", *TRIVIAL)
    values = {name: summary(played(name), measures=False, trivial=PLAYED).score for name in names}
    assert {name: one and one.value for name, one in values.items() if name != "memoriser"} == {
        "oracle": 1,
        **dict.fromkeys(TRIVIAL, 0),
    }
    assert values["memoriser"]
    # a third of the solvable tasks, which is less than guessing gets of these four
    guessed = [r.passed for r in played("guesser") if not r.clean and not r.refuse]
    assert sum(guessed) / len(guessed) == 0.5
    assert values["memoriser"].value == 0
    alone = summary(played("memoriser"), measures=False).score  # one in twenty counts as chance where nobody guessed
    assert alone
    assert alone.value == pytest.approx((1 / 3 - 0.05) / 0.95 / 2)
    assert alone.high - alone.low > 0.2  # four tasks


def test_a_guesser_is_trivial_whether_or_not_a_report_was_made(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", played("guesser"))
    run = cw.load_run(folder)
    assert not any(step for record in played("guesser") for step in record.steps)
    for _ in range(2):  # played, then read back
        outcome = run.gate(min_clean=0)
        assert (outcome.verdict, outcome.says) == (
            "fail",
            "Fail: 2 of 2 checks failed (better than trivial: clean and shifted).",
        )
        assert "no better than an agent that does nothing" in str(run)
        done = CliRunner().invoke(app, ["report", str(folder), "--json"])
        assert json.loads(done.output)["summary"]["score"]["value"] == 0


def test_a_refusal_with_a_wrong_cause_is_not_told_as_none() -> None:
    wrong = [r.model_copy(update={"outcome": "fail"}) if r.refuse else r for r in played("refuser")]
    found = summary(wrong)
    told = verdict(found, "mine")
    assert "It refuses all 4 episodes that should be refused, 0 of them correctly, and 100\N{NO-BREAK SPACE}%" in told
    assert "refuses 0\N{NO-BREAK SPACE}%" not in told
    assert score_rows(found)[-1][-2] == "0\N{NO-BREAK SPACE}% of 4, 4 wrongly"
    assert "wrongly" not in str(score_rows(summary(played("refuser"))))
    one = summary([*(r for r in wrong if not r.refuse), next(r for r in wrong if r.refuse)])
    assert "It refuses the only episode that should be refused, but wrongly, and 100" in verdict(one, "mine")
    some = [
        r.model_copy(update={"ended": "answer"}) if r.key == next(w.key for w in wrong if w.refuse) else r
        for r in wrong
    ]
    told = verdict(summary(some), "mine")
    assert "It refuses 3 of the 4 episodes that should be refused, 0 of them correctly" in told


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["oracle", "memoriser", "idle"]), min_size=len(KEYS), max_size=len(KEYS)), st.data())
def test_refusing_by_chance_never_pays(choice: list[str], data: st.DataObject) -> None:
    """Who cannot tell the two sorts of tasks apart gains nothing by refusing more of both."""
    records = mixed(choice)
    without = [r if not r.refuse else r.model_copy(update={"outcome": "fail", "ended": "answer"}) for r in records]
    before = summary(without, measures=False).score
    assert before
    share = data.draw(st.sampled_from([2, 3]))
    solvable = sorted(r.key for r in records if not r.refuse and not r.clean)
    impossible = sorted(r.key for r in records if r.refuse)
    gone = {*solvable[::share], *impossible[::share]} if share == 2 else {*solvable, *impossible}
    refusing = [
        r.model_copy(update={"ended": "refusal", "outcome": "pass" if r.refuse else "fail"}) if r.key in gone else r
        for r in without
    ]
    after = summary(refusing, measures=False).score
    assert after
    assert after.value <= before.value + 1e-9


def test_an_agent_that_gives_up_when_shifted_has_no_rise() -> None:
    """Thirteen in a hundred solved clean, nothing shifted, and every task to refuse refused."""
    solved = made_up([(nth % 8 == 0, False) for nth in range(160)])
    impossible = [
        r.model_copy(
            update={"refuse": True, "outcome": "pass", "ended": "refusal", "key": f"{r.key}!", "condition": "x"}
        )
        for r in solved
        if not r.clean
    ]
    records = [*solved, *impossible]
    found = summary(records, measures=False)
    assert found.drop
    assert (found.drop.clean, found.drop.shifted) == (0.125, 0)
    assert found.refusals["shifted"].right.rate == 1
    assert "a fall of 12 points" in verdict(found, "mine")
    assert "In the open world it is no better than an agent that does nothing" in verdict(found, "mine")
    assert examine(records, [parse_rule("tier=0.15")]).verdict == "fail"


def test_pairs_of_each_sort_count_once_and_in_their_place() -> None:
    solvable = made_up([(True, True), (True, False), (True, True), (True, True)])

    def with_refusal(task: int, *, clean: bool, shifted: bool) -> list[Record]:
        return [
            r.model_copy(update={"refuse": clean if r.clean else shifted}) for r in solvable[2 * task : 2 * task + 2]
        ]

    records = [
        *solvable[:4],
        *with_refusal(2, clean=False, shifted=True),  # a shift took the task away
        *with_refusal(3, clean=True, shifted=True),  # it never could be done
    ]
    found = summary(records, measures=False)
    assert found.drop
    assert (found.drop.pairs, found.clean.n, found.shifted.n, found.excluded.to_refuse) == (2, 2, 2, 2)
    assert (found.refusals["clean"].right.n, found.refusals["shifted"].right.n) == (1, 2)
    assert (found.refusals["clean"].false.n, found.refusals["shifted"].false.n) == (3, 2)


# ---------------------------------------------------------------- one figure


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> cw.Run:
    """Tasks differ in how many perturbations they meet, so that shares of episodes and of pairs differ."""
    records = list(cw.evaluate("retrier", "tiers", limit=90))
    tasks = sorted({r.task_id for r in records})
    missed = {task for nth, task in enumerate(tasks) if nth % 3 == 0}
    flawed = [r.model_copy(update={"outcome": "fail"}) if r.task_id in missed and r.clean else r for r in records]
    return cw.load_run(folder_of(tmp_path_factory.mktemp("one") / "run", flawed))


def test_a_figure_is_the_same_everywhere(run: cw.Run) -> None:
    found = summary(run.records, measures=False)
    clean, shifted = (formats.percent(cell.rate) for cell in (found.clean, found.shifted))
    assert found.drop
    assert (found.clean.rate, found.shifted.rate) == (found.drop.clean, found.drop.shifted)
    change = formats.points(found.drop.delta)
    alone = [r.passed for r in run if r.clean and not r.refuse]
    assert sum(alone) / len(alone) != found.clean.rate  # or the test would show nothing

    assert f"solves {clean} of the solvable tasks" in verdict(found, "mine")
    row = score_rows(found)[-1]
    assert (row[3], row[4]) == tuple(x.removesuffix(formats.PERCENT) for x in (clean, shifted))
    assert row[5].startswith(f"{change} (")
    assert " | ".join(row) in " | ".join(line for line in re.sub(r" *│ *", " | ", str(run)).splitlines())
    assert f"clean {clean}, shifted {shifted}".replace(formats.PERCENT, " %") in repr(run)

    page = html.page(content(analyse(run.stored, baselines=0, opened=0)))
    tiles = [re.sub("<[^>]*>", "", one) for one in re.findall(r'<dd class="big[^"]*">(.*?)</dd>', page)]
    assert tiles[:3] == [clean, shifted, change]

    gate = run.gate({"all": 0.1}, min_clean=0.1)
    drop, least = gate.findings[0].decision, gate.findings[1].decision
    assert (drop.before, drop.after, least.after) == (found.drop.clean, found.drop.shifted, found.drop.clean)
    assert f"{clean} to {shifted}" in gate.findings[0].says

    done = CliRunner().invoke(app, ["report", str(run.folder), "--json", "--baselines", "0"])
    data = Summary.model_validate_json(json.dumps(json.loads(done.output)["summary"]))
    assert (data.clean.rate, data.shifted.rate, data.drop) == (found.clean.rate, found.shifted.rate, found.drop)

    same = cw.compare(run, run)
    first, beside = same.found.summaries[same.found.first], same.found.versus[0]
    assert (first.clean.rate, first.shifted.rate) == (found.clean.rate, found.shifted.rate)
    assert beside.clean
    assert beside.shifted
    assert (beside.clean.clean, beside.shifted.clean) == (found.clean.rate, found.shifted.rate)
    assert beside.false
    assert beside.false.clean == found.refusals["shifted"].false.rate

    sampled = content(analyse(run.stored, baselines=10, opened=0))  # the run's own row is over all of it
    assert sampled.scale
    assert sampled.scale.summaries[run.manifest.agent] is sampled.summary
    assert "the others over a sample of " in html.page(sampled)

    pytest.importorskip("pandas")
    frame = run.to_frame()
    counted = frame[frame.clean_passed.notna()]
    assert counted.clean_passed.mean() == pytest.approx(found.drop.clean)
    assert counted.passed.mean() == pytest.approx(found.drop.shifted)


@pytest.mark.parametrize(
    ("clean", "shifted"), [(0.976, 0.412), (0.0651, 0.0149), (1.0, 0.28), (0.5, 0.5), (0.104, 0.495)]
)
def test_shares_and_their_change_add_up(clean: float, shifted: float) -> None:
    found = Drop(
        name="x", pairs=99, tasks=99, clean=clean, shifted=shifted, delta=shifted - clean, low=-1, high=1, p=1.0,
        p_holm=1.0, broke=1, fixed=1, kept=0,
    )  # fmt: skip
    before, after = (float(text.removesuffix(formats.PERCENT)) for text in formats.sides(found))
    assert abs(after - before - round(100 * found.delta)) <= 0.6
    assert abs(before - 100 * clean) <= 0.5
    whole = round(100 * shifted) - round(100 * clean) == round(100 * found.delta)
    assert (before.is_integer() and after.is_integer()) is whole


def test_an_adjusted_p_says_so_and_what_it_would_take() -> None:
    """Six tasks, all broken, among 32 kinds: the interval is clear, the adjusted p is not."""
    found = Drop(
        name="semantic_rename", pairs=6, tasks=6, clean=1, shifted=0, delta=-1, low=-1, high=-0.45, p=2 / 64,
        p_holm=1.0, tests=32, broke=6, fixed=0, kept=0,
    )  # fmt: skip
    assert not found.clear
    assert formats.adjusted(found) == "p = 1.00 (Holm, 32 tests)"
    assert formats.brief(found) == "a fall of 100 points, which may be due to chance"
    assert "p = 1.00 (Holm, 32 tests); although the interval excludes zero, 6 tasks are too few" in (
        formats.certainty(found)
    )
    needed = tasks_needed(found)
    assert needed
    assert 2 / 2**needed <= 0.05 / 32 < 2 / 2 ** (needed - 1)  # all broken again
    assert f"about {needed} tasks would be enough to detect a change of this size" in formats.certainty(found)


def test_old_stored_runs_and_baselines_are_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", played("memoriser"))
    (folder / "baselines.jsonl").write_text('{"schema_version": 1, "crosswind": "0.1.0", "judge": "1", "agents": {}}\n')
    before = cw.load_run(folder).gate({"all": 0.9}, min_clean=0.1)
    assert '"guesser"' in (folder / "baselines.jsonl").read_text()  # played again
    assert cw.load_run(folder).gate({"all": 0.9}, min_clean=0.1) == before
