"""The gate: the decision, the rules, the command with its files and exit codes, `init`, and the pytest plug-in."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.app import app
from crosswind.cli.config import Config, load_config
from crosswind.cli.init import write_start
from crosswind.episodes.record import Record
from crosswind.episodes.suite import Asked, suites
from crosswind.gate.decision import Decision, decide, decide_rate
from crosswind.gate.gate import EXITS, TRIVIAL_RULE, examine, parse_rule
from crosswind.gate.junit import junit
from crosswind.gate.markdown import cells, markdown
from crosswind.metrics import formats
from crosswind.metrics.scores import summary
from crosswind.runs.manifest import load_manifest
from tests.gate_runs import HOSTILE, folder_of, made_up, noisy, played

ROOT = Path(__file__).parents[2]

# ---------------------------------------------------------------- the decision


def simulated(n: int, before: float, after: float, max_drop: float, times: int = 200) -> dict[str, float]:
    found = dict.fromkeys(("pass", "fail", "inconclusive"), 0)
    for seed in range(times):
        pairs = noisy(n, before, after, seed)
        found[decide([b for b, _ in pairs], [a for _, a in pairs], max_drop).verdict] += 1
    return {verdict: count / times for verdict, count in found.items()}


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.9, 0.98])
@pytest.mark.parametrize(("max_drop", "most"), [(0.0, 0.09), (0.05, 0.02), (0.10, 0.01)])
def test_an_unchanged_noisy_agent_is_hardly_ever_failed(rate: float, max_drop: float, most: float) -> None:
    assert simulated(100, rate, rate, max_drop)["fail"] <= most  # 5 % by the level, where no fall is allowed at all


@pytest.mark.parametrize("rate", [0.95, 0.9, 0.8, 0.7, 0.6, 0.4, 0.3])
def test_a_drop_of_twenty_points_is_failed(rate: float) -> None:
    assert simulated(200, rate, rate - 0.2, 0.05)["fail"] >= 0.80
    assert simulated(200, rate, rate - 0.2, 0.10)["pass"] == 0


@pytest.mark.parametrize("conditions", [1, 4, 12])
def test_pairs_that_share_a_clean_episode_count_for_what_they_are_worth(conditions: int) -> None:
    """40 tasks of unlike difficulty; one clean episode of each beside several shifted ones."""
    failed = passed = 0
    for seed in range(100):
        rng = Random(seed)
        before, after, tasks = [], [], []
        for task in range(40):
            rate = rng.betavariate(1.4, 0.6)
            clean = rng.random() < rate
            for _ in range(conditions):
                before.append(clean)
                after.append(rng.random() < rate)
                tasks.append(task)
        failed += decide(before, after, 0.0, tasks=tasks, checks=5).verdict == "fail"
        worse = [a and rng.random() > 0.143 for a in after]  # ten points of seventy, which is just what is allowed
        passed += decide(before, worse, 0.10, tasks=tasks).verdict == "pass"
    assert failed <= 3
    assert passed <= 10


def test_what_is_printed_as_an_interval_decides() -> None:
    """36 pairs, 14 of which broke: whether that is sure depends on how many clean episodes there were."""
    before, after = [True] * 36, [nth % 36 >= 14 for nth in range(36)]
    alone = decide(before, after, 0.15, checks=5)
    assert (alone.verdict, alone.high < -0.15) == ("fail", True)
    tasks = [nth % 4 for nth in range(36)]
    shared = decide(before, after, 0.15, tasks=tasks, checks=5)
    assert (shared.verdict, shared.high > -0.15) == ("inconclusive", True)
    assert alone.delta == shared.delta
    assert shared.needed_n is not None


def test_few_tasks_pass_nothing_however_many_pairs_they_make() -> None:
    """A fall may take whole tasks: ten tasks of ten pairs may just have missed it."""
    tasks = [nth // 10 for nth in range(100)]
    found = decide([True] * 100, [True] * 100, 0.10, tasks=tasks)
    assert (found.verdict, found.needed_n) == ("inconclusive", 290)
    tasks = [nth // 10 for nth in range(290)]
    assert decide([True] * 290, [True] * 290, 0.10, tasks=tasks).verdict == "pass"


def test_what_decides_at_the_smallest_numbers() -> None:
    verdicts = [decide([True] * n, [True] * n, 0.10).verdict for n in (0, 1, 28, 29)]
    assert verdicts == ["inconclusive", "inconclusive", "inconclusive", "pass"]
    assert decide([True] * 5, [True] * 5, 0.10).needed_n == 29
    assert [decide([True] * n, [False] * n, 0.10).verdict for n in (1, 2)] == ["inconclusive", "fail"]
    assert decide([True] * 3, [False] * 3, 0.10, checks=20).verdict == "inconclusive"


def test_the_number_named_would_decide() -> None:
    decided = 0
    for seed in range(40):
        pairs = noisy(60, 0.9, 0.75, seed)
        found = decide([b for b, _ in pairs], [a for _, a in pairs], 0.10)
        if found.needed_n is not None:
            times = found.needed_n // 60 + 1
            more = decide([b for b, _ in pairs] * times, [a for _, a in pairs] * times, 0.10)
            assert more.verdict == ("fail" if found.delta < -0.10 else "pass")
            decided += 1
    assert decided > 10


def test_a_rule_of_nothing_passes_only_what_rose() -> None:
    assert decide([True] * 500, [True] * 500, 0.0).verdict == "inconclusive"
    assert decide([True] * 80 + [False] * 20, [True] * 100, 0.0).verdict == "pass"


def test_a_drop_that_is_just_what_is_allowed_is_never_decided() -> None:
    found = decide([True] * 100, [False] * 10 + [True] * 90, 0.10)
    assert (found.verdict, found.needed_n) == ("inconclusive", None)


def test_the_bounds_go_with_the_verdict() -> None:
    for seed in range(60):
        pairs = noisy(150, 0.85, 0.72, seed)
        found = decide([b for b, _ in pairs], [a for _, a in pairs], 0.10)
        assert found.low <= found.delta <= found.high
        if found.verdict == "pass":
            assert found.low >= -0.10 - 1e-6
        if found.verdict == "fail":
            assert found.high <= -0.10 + 1e-6


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 5)), max_size=60), st.floats(0, 0.9))
@settings(max_examples=150, deadline=None)
def test_every_decision_is_sound(rows: list[tuple[bool, bool, int]], max_drop: float) -> None:
    before, after, tasks = ([row[i] for row in rows] for i in range(3))
    found = decide(before, after, max_drop, tasks=tasks)  # type: ignore[arg-type]
    assert -1 <= found.low <= found.delta <= found.high <= 1
    assert found.n == len(rows)
    if rows:
        limit = -max_drop
        expected = "fail" if found.high < limit else "pass" if found.low >= limit else "inconclusive"
        assert found.verdict == expected
    assert found.needed_n is None or found.needed_n > found.n
    again = Decision.model_validate_json(found.model_dump_json())
    assert again == found


def test_lists_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(CrosswindError, match="outcomes come in pairs"):
        decide([True], [], 0.1)
    with pytest.raises(CrosswindError, match="not a valid share"):
        decide([True], [True], 10)


def test_a_rate_is_decided_by_its_interval() -> None:
    def verdict(passed: int, n: int, least: float) -> str:
        return decide_rate([nth < passed for nth in range(n)], least).verdict

    assert [verdict(n, n, 0.8) for n in (10, 11)] == ["inconclusive", "pass"]
    assert verdict(10, 20, 0.8) == "fail"
    assert verdict(14, 20, 0.8) == "inconclusive"
    assert verdict(0, 0, 0.8) == "inconclusive"
    assert decide_rate([True] * 50, 0.8, tasks=[0] * 50).verdict == "inconclusive"  # one task is one outcome


# ---------------------------------------------------------------- rules


def test_rules_are_written_in_words_people_use() -> None:
    texts = ("0.10", "all=10%", "tier=.1", "perception=0.1", "level:3=0.2", "axis:domain=0", "domain=0.1", "retail=0.1")
    parsed = [str(parse_rule(text)) for text in texts]
    assert parsed == [
        *("all=0.1", "all=0.1", "tier=0.1", "tier:perception=0.1", "level:3=0.2", "axis:domain=0", "domain=0.1"),
        "domain:retail=0.1",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tir=0.1", "did you mean tier"),
        ("tier=ten", "is not a rule"),
        ("tier=10", "at least 0 and below 1"),
        ("tier=-0.1", "at least 0 and below 1"),
        ("tier=nan", "at least 0 and below 1"),
        ("", "is not a rule"),
    ],
)
def test_a_wrong_rule_says_what_to_write(text: str, words: str) -> None:
    with pytest.raises(CrosswindError, match=words):
        parse_rule(text)


def test_a_grouping_is_a_rule_for_each_group() -> None:
    records = made_up(noisy(40, 1, 1), kinds=("semantic_rename", "format_switch"))
    outcome = examine(records, [parse_rule("kind=0.1"), parse_rule("tier:reasoning=0.1")], min_clean=0)
    assert [(f.group, f.decision.n) for f in outcome.findings if f.rule != TRIVIAL_RULE] == [
        *(("format_switch", 20), ("semantic_rename", 20), ("reasoning", 0)),
    ]
    assert outcome.verdict == "inconclusive"
    assert "no such episodes" in outcome.findings[2].says


def test_one_fall_among_many_rules_must_be_surer() -> None:
    records = made_up([(True, False)] * 6 + [(True, True)] * 4)
    assert examine(records, [parse_rule("all=0.1")], min_clean=0).verdict == "fail"
    many = [parse_rule(text) for text in ("all=0.1", "kind=0.1", "tier=0.1", "axis=0.1", "domain=0.1", "level=0.1")]
    outcome = examine(records, many)
    assert outcome.verdict == "inconclusive"
    assert all(f.decision.needed_n for f in outcome.findings if f.verdict == "inconclusive")


def test_a_baseline_is_compared_episode_by_episode() -> None:
    then = made_up([(True, True)] * 80)
    now = made_up([(True, nth % 3 > 0) for nth in range(80)])
    assert examine(now, [parse_rule("all=0.1")], baseline=then).verdict == "fail"
    assert examine(now, [parse_rule("clean=0.1")], baseline=then).verdict == "pass"
    assert examine(then, [parse_rule("all=0.1")], baseline=now).verdict == "pass"


def test_an_agent_that_solves_next_to_nothing_never_passes() -> None:
    nothing = made_up([(False, False)] * 80)  # so nothing drops
    for least in (None, 0.0):
        outcome = examine(nothing, [parse_rule("all=0.1")], min_clean=least)
        assert outcome.verdict == "fail"
        assert "no better than an agent that does nothing" in str(outcome)
        assert examine(nothing, [parse_rule("all=0.1")], baseline=nothing, min_clean=least).verdict == "fail"
    third = made_up([(nth % 3 == 0, nth % 3 == 0) for nth in range(80)])
    assert examine(third, [parse_rule("all=0.1")]).verdict == "fail"  # of what it solves clean by default
    assert examine(third, [parse_rule("all=0.1")], min_clean=0.2).verdict == "pass"
    lucky = [r.model_copy(update={"agent": "echo"}) for r in third]  # tasks that give their answers away
    assert examine(third, [parse_rule("all=0.1")], min_clean=0.2, trivial={"echo": lucky}).verdict == "fail"


def test_where_a_trivial_agent_solves_every_task_nobody_can_be_told_from_it() -> None:
    one = made_up([(True, True)])  # as a small shard may have it
    guessed = {"guesser": [r.model_copy(update={"agent": "guesser"}) for r in one]}
    outcome = examine(one, [], min_clean=0, trivial=guessed)
    assert outcome.verdict == "fail"
    assert [(f.rule, f.most, f.decision.needed_n) for f in outcome.findings] == [("better-than-trivial", 1, None)] * 2
    found = summary(one, measures=False, trivial=guessed)
    assert found.score is None
    assert "would have to exceed 100" in formats.no_better(found.trivial["clean"])


def test_tasks_to_refuse_count_in_no_drop_and_have_rules_of_their_own() -> None:
    solvable = made_up([(True, True)] * 60)
    impossible = [
        r.model_copy(update={"refuse": True, "outcome": "fail", "task_id": f"{r.task_id}1", "key": f"1{r.key}"})
        for r in solvable
        if not r.clean
    ]
    run = [*solvable, *impossible]
    assert examine(run, [parse_rule("tier=0.1")]).verdict == "pass"
    assert examine(run, [parse_rule("tier=0.1")], min_refusals=0.8).verdict == "fail"
    assert examine(run, [parse_rule("tier=0.1")], max_false_refusals=0.1).verdict == "pass"
    timid = [r.model_copy(update={"ended": "refusal"}) if nth % 3 else r for nth, r in enumerate(run)]
    outcome = examine(timid, [parse_rule("tier=0.1")], max_false_refusals=0.1)
    assert outcome.verdict == "fail"
    finding = next(f for f in outcome.findings if f.verdict == "fail")
    assert (finding.group, finding.allowed, finding.most) == ("false refusals", "at most 10 %", 0.1)
    assert finding.decision.after == pytest.approx(2 / 3)
    assert 0.1 < 0.1 + finding.decision.low < finding.decision.after < 0.1 + finding.decision.high


def test_what_cannot_be_compared_is_refused_or_told() -> None:
    here = made_up([(True, True)] * 10)
    with pytest.raises(CrosswindError, match=r"0 of 20.*same suite"):
        examine(here, [parse_rule("all=0.1")], baseline=list(played("oracle")))
    with pytest.raises(CrosswindError, match="different verifiers"):
        examine(here, [parse_rule("all=0.1")], baseline=made_up([(True, True)] * 10, judge="0"))
    with pytest.raises(CrosswindError, match="compares with an earlier run"):
        examine(here, [parse_rule("clean=0.1")])
    other = made_up([(True, True)] * 10, kinds=("transient_error",))  # another suite over the same tasks
    with pytest.raises(CrosswindError, match="10 clean and no shifted ones of 20"):
        examine(here, [parse_rule("all=0.1")], baseline=other)
    with pytest.raises(CrosswindError, match="share only 10 of 30 episodes"):
        examine(here, [parse_rule("clean=0.4")], baseline=other)
    assert examine(here, [parse_rule("clean=0.4")], baseline=other, partial=True).verdict == "pass"
    less = examine(here, [parse_rule("all=0.1")], baseline=here[:-2])
    assert any("no scored counterpart" in note for note in less.notes)
    assert not any("only" in note for note in less.notes)
    few = examine(here, [parse_rule("all=0.1")], baseline=here[:6], partial=True)
    assert any("only 6 of 20 episodes are common" in note for note in few.notes)


def test_without_a_rule_the_defaults_are_checked_and_told() -> None:
    outcome = examine(made_up([(True, True)] * 20), [])
    assert [(f.rule, f.group) for f in outcome.findings] == [
        ("min-clean=0.5", "clean success"), (TRIVIAL_RULE, "clean"), (TRIVIAL_RULE, "shifted"),
    ]  # fmt: skip
    assert outcome.passed
    assert any("no --max-drop rule was given" in note for note in outcome.notes)
    assert examine(made_up([(False, False)] * 20), []).verdict == "fail"


def test_errors_are_left_out_and_too_many_leave_no_verdict() -> None:
    records = made_up([(True, True)] * 100)
    lost = [r.model_copy(update={"outcome": "error"}) if nth < 8 else r for nth, r in enumerate(records)]
    few = examine(lost, [parse_rule("all=0.1")])
    assert (few.verdict, few.exit_code, few.errors, few.findings[0].decision.n) == ("pass", 0, 8, 96)
    many = examine(lost, [parse_rule("all=0.1")], max_errors=0.03)
    assert (many.verdict, many.exit_code) == ("infrastructure", 3)
    nothing = examine([], [parse_rule("all=0.1")])
    assert nothing.verdict == "infrastructure"
    assert "no finished episode" in nothing.says
    assert "0 of 0" not in nothing.says
    recorded = examine([r.model_copy(update={"outcome": "unjudged"}) for r in records], [parse_rule("all=0.1")])
    assert recorded.verdict == "infrastructure"
    assert "recorded sessions, which have no verdict" in recorded.says


# ---------------------------------------------------------------- the command


def run(*args: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in args])
    if isinstance(result.exception, CrosswindError):
        return 2, str(result.exception)
    return result.exit_code, result.output


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "good", made_up([(True, True)] * 60))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "bad", made_up([(True, nth % 2 > 0) for nth in range(60)]))


def test_exit_codes(tmp_path: Path, good: Path, bad: Path) -> None:
    assert run("gate", good, "--max-drop", "tier=0.10", "--min-clean", "0.8")[0] == 0
    assert run("gate", bad, "--max-drop", "tier=0.10")[0] == 1
    assert run("gate", bad, "--baseline", good, "--max-drop", "all=0.10")[0] == 1
    assert run("gate", good, "--max-drop", "tier")[0] == 2
    assert run("gate", tmp_path, "--max-drop", "tier=0.10")[0] == 2
    half = folder_of(tmp_path / "half", made_up([(True, True)] * 60), state="stopped", why="it was interrupted")
    code, text = run("gate", half, "--max-drop", "tier=0.10")
    assert (code, "it was interrupted" in " ".join(text.split())) == (3, True)
    assert run("gate", half, "--max-drop", "tier=0.10", "--allow-unfinished")[0] == 0
    torn = folder_of(tmp_path / "torn", made_up([(True, True)] * 60), planned=121)
    code, text = run("gate", torn, "--max-drop", "tier=0.10")
    assert (
        code,
        "1 of its 121 episodes are missing; a copy of a run needs the whole folder" in " ".join(text.split()),
    ) == (3, True)
    assert run("gate", good, "--baseline", torn, "--max-drop", "all=0.10")[0] == 3
    small = folder_of(tmp_path / "small", made_up([(True, True)] * 9))
    code, text = run("gate", small, "--max-drop", "tier=0.10")
    assert code == 4
    assert "tasks" in text
    assert "about 20 more" in text  # 29 are needed, 9 are there
    assert run("gate", good)[0] == 0
    assert run("gate", good, "--min-clean", "90%")[0] == 0
    code, text = run("gate", good, "--min-clean", "90 percent")
    assert (code, "is not a share" in text) == (2, True)
    assert run("gate", small, "--max-drop", "tier=0.10", "--allow-inconclusive")[0] == 0


def test_a_baseline_with_little_in_common_is_refused(tmp_path: Path, good: Path) -> None:
    small = folder_of(tmp_path / "small", made_up([(True, True)] * 20))
    rules = ("--baseline", small, "--max-drop", "all=0.10", "--min-clean", "0")
    code, text = run("gate", good, *rules)
    assert (code, "share only 40 of 120 episodes" in text) == (2, True)
    code, text = run("gate", good, *rules, "--partial", "--allow-inconclusive")
    assert (code, "only 40 of 120 episodes are common" in " ".join(text.split())) == (0, True)


def test_a_full_disk_does_not_take_the_verdict(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes, mode: int = 0) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("crosswind.base.files.replace_file", full)
    code, text = run("gate", good, "--max-drop", "tier=0.10", "--markdown", tmp_path / "summary.md")
    assert code == 3
    assert "Pass" in text
    assert "make room" in text
    assert not (tmp_path / "summary.md").exists()


def test_json_is_one_document(bad: Path) -> None:
    code, text = run("gate", bad, "--max-drop", "tier=0.10", "--json")
    data = json.loads(text)
    assert (code, data["verdict"], data["exit_code"]) == (1, "fail", 1)
    assert data["findings"][0]["decision"]["broke"] == 30
    least = next(f for f in data["findings"] if f["rule"].startswith("min-clean"))
    assert {least["decision"][name] for name in ("before", "broke", "fixed")} == {None}


def test_files_for_a_ci_system(tmp_path: Path, bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, xml = tmp_path / "summary.md", tmp_path / "gate.xml"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert run("gate", bad, "--max-drop", "tier=0.10", "--junit", xml, "--markdown", summary)[0] == 1
    assert summary.read_text().startswith("before\n### ❌ crosswind gate: fail")
    suite = ET.fromstring(xml.read_text()).find("testsuite")
    assert suite is not None
    assert suite.attrib["failures"] == "1"
    assert run("gate", bad, "--max-drop", "tier=0.10", "--junit", tmp_path / "none" / "gate.xml")[0] == 2


def test_rules_come_from_a_file(tmp_path: Path, good: Path, bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "crosswind.yaml"
    path.write_text(f"gate:\n  max_drop: {{all: 10%}}\n  baseline: {good}\n")
    assert run("gate", bad)[0] == 1
    assert run("gate", bad, "--max-drop", "all=0.9")[0] == 0  # the command line wins, and the file is not read
    path.write_text("gate:\n  max_drop:\n    all: 0.1\n    teir: 0.1\n")
    code, text = run("gate", bad)
    assert code == 2
    assert "crosswind.yaml:4: gate.max_drop.teir: no group" in text


# ---------------------------------------------------------------- hostile text


def hostile() -> list[Record]:
    return made_up([(True, False)] * 30, final=HOSTILE, agent=HOSTILE, cause=HOSTILE, stage=HOSTILE)


def test_xml_stays_valid_under_hostile_text() -> None:
    outcome = examine(hostile(), [parse_rule("tier=0.10")], unfinished=[HOSTILE])
    text = junit(outcome)
    root = ET.fromstring(text.encode())
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\u202e]", text)
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.text is not None
    assert "<script>alert(1)</script> ]]>" in failure.text


def test_markdown_has_no_markup_but_ours() -> None:
    text = markdown(examine(hostile(), [parse_rule("tier=0.10")], unfinished=[HOSTILE]))
    assert "<script" not in text
    assert "](http" not in text
    assert "@everyone" not in text
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {9}


def test_no_escape_reaches_the_terminal(tmp_path: Path) -> None:
    records = made_up([(True, False)] * 30, condition=HOSTILE)
    folder = folder_of(tmp_path / "run", hostile(), state="stopped", why=HOSTILE.encode("utf-8", "replace").decode())
    for args in (("gate", folder, "--max-drop", "tier=0.1"), ("gate", folder, "--max-drop", "condition=0.1")):
        _, text = run(*args)
        assert terminal.safe(text) == text
    assert terminal.safe(examine(records, [parse_rule("all=0.1")]).says)


def test_a_rule_without_episodes_has_no_figures() -> None:
    outcome = examine([], [parse_rule("all=0.1")], min_clean=0.7)
    for finding in outcome.findings:
        assert cells(finding)[2:4] == ["–", "–"]


# ---------------------------------------------------------------- init


def test_init_writes_a_configuration_and_a_workflow_that_are_sound(tmp_path: Path) -> None:
    code, text = run("init", "--out", tmp_path)
    assert code == 0
    assert "crosswind run --config" in text
    assert "put the wheel there" in text
    config = load_config(tmp_path / "crosswind.yaml")
    assert (config.agent, config.suite) == ("python:my_agent:agent", "tiers")
    assert [str(rule) for rule in config.gate.rules()] == ["all=0.1", "tier=0.15"]
    workflow = tmp_path / ".github" / "workflows" / "crosswind.yml"
    assert "pull_request_target" not in yaml.safe_load(workflow.read_text())[True]
    assert workflow.read_text() == (ROOT / "examples" / "github-actions.yml").read_text()
    code, text = run(
        "init", "--out", tmp_path, "--force", "--install", "crosswind[openai] @ git+https://a.example/c: #1"
    )
    steps = yaml.safe_load(workflow.read_text())["jobs"]["gate"]["steps"]
    stored = next(step["with"]["path"].split() for step in steps if "upload-artifact" in step.get("uses", ""))
    assert "runs/ci" in stored  # all of it: of a large run most is in parts
    installs = [step["run"] for step in steps if "pip install" in step.get("run", "")]
    assert list(map(shlex.split, installs)) == [
        ["python", "-m", "pip", "install", "crosswind[openai] @ git+https://a.example/c: #1"]
    ]
    assert "vendor" not in text


def test_what_init_writes_runs_within_its_budget_and_is_not_green_by_itself(tmp_path: Path) -> None:
    assert run("init", "--out", tmp_path)[0] == 0
    environment = {**os.environ, "NO_COLOR": "1"}
    call = partial(subprocess.run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    start = [sys.executable, "-m", "crosswind.cli.app"]
    config = ["--config", "crosswind.yaml"]
    forecast = call([*start, "run", "tiers", *config, "--agent", "oracle", "--limit", "60", "--dry-run", "--json"])
    data = json.loads(forecast.stdout)
    whole = suites["tiers"]
    most = sum((c.tasks or whole.tasks) * len(whole.where(c)) for c in whole.all_conditions())
    needed = (data["input_tokens"] + data["output_tokens"]) / data["episodes"] * most
    assert needed * 2 < (load_config(tmp_path / "crosswind.yaml").budgets.max_tokens or 0)
    ran = call([*start, "run", "tiers", *config, "--tasks", "1", "--domain", "poi", "--out", "runs/ci"])
    assert ran.returncode == 0, ran.stderr
    assert call([*start, "gate", "runs/ci", *config]).returncode != 0


def test_the_commands_that_init_prints_work_from_where_it_was_called(tmp_path: Path) -> None:
    call = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=False)
    cli = f"{shlex.quote(sys.executable)} -m crosswind.cli.app"
    told = call(["bash", "-c", f"{cli} init --out 'my ci'"]).stdout
    assert "GitHub reads workflows only at the root of a repository, and my ci is not one" in told
    steps = [line.strip() for line in told.splitlines() if line.startswith("  ")]
    assert steps[0] == "cd 'my ci'"
    _, play, judge, *_ = (step.partition("  #")[0].replace("crosswind ", f"{cli} ", 1) for step in steps)
    assert suites["quick"].tasks * len(suites["quick"].all_conditions()) <= 24  # so that a verdict takes a minute
    ran = call(["bash", "-c", f"{steps[0]} && {play} --limit 1 --no-progress && {judge}"])
    assert "Next: crosswind report runs/quick" in ran.stdout, ran.stderr
    assert ran.returncode in EXITS.values()
    (tmp_path / ".git").mkdir()
    told = call(["bash", "-c", f"{cli} init"]).stdout
    assert "GitHub reads" not in told
    assert "cd " not in told


def test_init_never_writes_over_a_file_unasked(tmp_path: Path) -> None:
    (tmp_path / "crosswind.yaml").write_text("mine")
    assert run("init", "--out", tmp_path)[0] == 2
    assert (tmp_path / "crosswind.yaml").read_text() == "mine"
    assert not (tmp_path / ".github").exists()
    assert run("init", "--out", tmp_path, "--force")[0] == 0
    assert load_config(tmp_path / "crosswind.yaml").agent == "python:my_agent:agent"
    (tmp_path / "my_agent.py").write_text("mine")
    assert run("init", "--out", tmp_path, "--force")[0] == 0
    assert (tmp_path / "my_agent.py").read_text() == "mine"
    with pytest.raises(CrosswindError, match="is not an agent"):
        write_start(tmp_path, "x\nseed: 1", force=True)


def test_a_configuration_says_what_is_played_as_options_do(tmp_path: Path) -> None:
    path = tmp_path / "crosswind.yaml"
    path.write_text(
        "suite: tiers\ndomain: poi\ntasks: 1\nonly: [typos, transient_error]\ntier: perception\naxis: query\n"
    )
    assert run("run", "--config", path, "--agent", "oracle", "--out", tmp_path / "run")[0] == 0
    assert load_manifest(tmp_path / "run").asked == Asked(
        suite="tiers@2",
        domains=("poi",),
        tasks=1,
        only=("typos", "transient_error"),
        tier=("perception",),
        axis=("query",),
    )
    told = run("run", "--config", path, "--agent", "oracle", "--domain", "retail", "--dry-run")
    assert told[0] == 0
    assert load_config(path).options()["domain"] == ["poi"]


def test_a_verdict_on_few_tasks_says_why_the_report_is_less_sure() -> None:
    """Four of four tasks fall: wholly beyond ten points, and the toss of a coin one time in eight."""
    said = "calls the same drop one that may be chance"
    few, many = (made_up([(True, False)] * n) for n in (4, 12))
    drops = [summary(records, measures=False, by=()).drop for records in (few, many)]
    assert [drop and drop.clear for drop in drops] == [False, True]
    outcomes = [examine(records, [parse_rule("all=0.1")], min_clean=0) for records in (few, many)]
    assert [outcome.findings[0].verdict for outcome in outcomes] == ["fail", "fail"]
    assert [said in "\n".join(outcome.notes) for outcome in outcomes] == [True, False]


def test_a_configuration_complains_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "crosswind.yaml"
    path.write_text("suite: tiers\nagnet: oracle\n")
    with pytest.raises(CrosswindError, match=r"crosswind\.yaml:2: agnet: .*expected one of the keys suite, agent"):
        load_config(path)
    path.write_text("gate:\n  min_clean: hello\n")
    with pytest.raises(
        CrosswindError, match=r"yaml:2: gate\.min_clean: got 'hello'; expected a share such as 0\.9 or 90%"
    ):
        load_config(path)
    path.write_text("{}")
    assert load_config(path) == Config()


# ---------------------------------------------------------------- the pytest plug-in

TESTS = """
async def shrug(query, tools):
    return "I do not know."

def test_evaluate(crosswind_evaluate, crosswind_gate):
    run = crosswind_evaluate("oracle", limit=10)
    assert all(r.passed for r in run.records)
    crosswind_gate(run, "all=0.9", min_clean=0.3)

def test_callable(crosswind_evaluate):
    run = crosswind_evaluate(shrug, "quick", limit=4)
    assert [r.outcome for r in run.records] == ["fail"] * 4

def test_passes(crosswind_run, crosswind_gate):
    crosswind_gate(crosswind_run, "all=0.7")

def test_fails(crosswind_run, crosswind_gate):
    crosswind_gate(crosswind_run, "tier=0.1")

def test_is_inconclusive(crosswind_run, crosswind_gate):
    crosswind_gate(crosswind_run, "all=0.5")

def test_baseline(crosswind_run, crosswind_baseline, crosswind_gate):
    crosswind_gate(crosswind_run, "all=0.1", baseline=crosswind_baseline)
"""


def test_the_pytest_plug_in(tmp_path: Path, bad: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "crosswind.pytest_plugin", "test_it.py"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "--crosswind-run", str(bad)], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    found = dict(re.findall(r"test_it.py::(\w+) (\w+)", done.stdout))
    assert found == {
        "test_evaluate": "PASSED",
        "test_callable": "PASSED",
        "test_passes": "PASSED",
        "test_fails": "FAILED",
        "test_is_inconclusive": "SKIPPED",
        "test_baseline": "SKIPPED",
    }, done.stdout + done.stderr
    assert "needs --crosswind-baseline DIR" in done.stdout
    assert "Fail: 1 of 4 checks" in done.stdout


def test_the_plug_in_imports_nothing_before_it_is_used() -> None:
    code = (
        "import sys, crosswind.pytest_plugin; "
        "print([m for m in sys.modules if m.startswith('crosswind.') and '.base' not in m])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert out.stdout.strip() == "['crosswind.pytest_plugin']"


def test_tables_keep_to_the_columns_there_are(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("gate", bad, "--max-drop", "tier=0.10")[1].splitlines()
    assert max(map(len, lines)) <= 80
    assert {"perception", "pairs", "verdict"} <= {word for line in lines for word in line.split()}  # none is broken


def test_a_required_rise_must_be_shown() -> None:
    worse, better = made_up([(True, False)] * 80), made_up([(True, True)] * 80)
    rise = [parse_rule("all=0.2")]
    outcome = examine(better, [], baseline=worse, gains=rise, min_clean=0)
    assert outcome.verdict == "pass"
    assert "at least +20 required" in outcome.findings[0].says
    assert examine(worse, [], baseline=worse, gains=rise, min_clean=0).verdict == "fail"
    some = made_up([(True, nth % 5 == 0) for nth in range(80)])  # a rise of just 20 points is not sure to be one
    assert examine(some, [], baseline=worse, gains=rise, min_clean=0).verdict == "inconclusive"
    with pytest.raises(CrosswindError, match="compare with an earlier run; give --baseline DIR"):
        examine(better, [], gains=rise)


def test_an_agent_that_stops_refusing_fails() -> None:
    before = made_up([(True, True)] * 80, refuse=True)
    after = made_up([(True, nth % 2 == 0) for nth in range(80)], refuse=True)
    for now, verdict in ((before, "pass"), (after, "fail")):
        outcome = examine(now, [], baseline=before, max_refusal_drop=0.1, min_clean=0)
        (found,) = (f for f in outcome.findings if f.rule.startswith("max-refusal-drop"))
        assert found.verdict == verdict
