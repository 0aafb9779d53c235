"""The command line as a person and a script meet it."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import BadFile, CrosswindError, Unfair
from crosswind.base.terminal import safe
from crosswind.base.yaml_files import read
from crosswind.cli import app as cli
from crosswind.cli import demo as commands_demo
from crosswind.cli.catalog import _checked
from crosswind.core import laws
from crosswind.core.perturbation import EXAMPLE, load_layers
from crosswind.core.registry import agents, domains, perturbations
from crosswind.episodes.recipe import recipes
from crosswind.episodes.suite import suites
from crosswind.models.spec import PROVIDERS
from crosswind.runs.store import load_run
from crosswind.study.outcomes import unpack


def crosswind(*args: str, code: int = 0) -> str:
    """What the command prints, called in this process: starting one takes a second, and a test below does."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("NO_COLOR", "1")
        patch.setattr(sys, "argv", ["crosswind", *args])
        patch.setattr(warnings, "formatwarning", warnings.formatwarning)  # `main` sets its own
        with pytest.raises(SystemExit) as ended:  # and nothing else, which would be a traceback
            cli.main()
    assert (ended.value.code or 0) == code, err.getvalue() + out.getvalue()
    return out.getvalue() if code == 0 else out.getvalue() + err.getvalue()


def json_of(*args: str, code: int = 0) -> Any:
    return json.loads(crosswind(*args, "--json", code=code))


def test_catalog_lists_everything() -> None:
    data = json_of("catalog")
    assert [d["name"] for d in data["domains"]] == domains.names()
    for domain in data["domains"]:
        assert len(domain["tools"]) >= 12
        assert {"name", "level", "refusal"} <= set(domain["families"][0])
        assert any(f["refusal"] for f in domain["families"])
    assert [p["kind"] for p in data["perturbations"]] == perturbations.names()
    assert all(p["axis"] and p["tier"] and p["summary"] for p in data["perturbations"])
    assert {"oracle", "idle", "memoriser", "refuser", "retrier"} <= set(data["agents"])
    assert [suite["name"] for suite in data["suite_details"]] == data["suites"]
    assert all(suite["summary"] and suite["kinds"] and suite["episodes"] for suite in data["suite_details"])
    assert {recipe["name"] for recipe in data["recipes"]} == set(recipes.names())
    assert {spec.split(":")[0].split("[")[0] for spec in data["agent_specs"]} == set(PROVIDERS)


def test_an_unknown_option_is_answered_with_one_that_is_alike() -> None:
    assert "--address" not in crosswind("certify", "--tasks", "0", code=2)
    assert "--severity" in crosswind("certify", "--severty", "1", code=2)


@pytest.mark.parametrize(("name", "topic"), [("semantic_rename", "kinds"), ("poi", "domains"), ("quick", "suites")])
def test_a_name_instead_of_a_topic_is_sent_to_its_topic(name: str, topic: str) -> None:
    told = f"is not a topic but one of the {topic}; use `crosswind catalog {topic} --search {name}`"
    with pytest.raises(CrosswindError, match=told):
        _checked(name, {})
    assert name in crosswind("catalog", topic, "--search", name)


def test_the_catalog_is_one_screen_and_details_come_by_topic() -> None:
    lines = crosswind("catalog").splitlines()
    assert len(lines) <= 46
    assert max(map(len, lines)) < 80
    text = "\n".join(lines)
    for name in (*domains.names(), *perturbations.names(), *suites.names(), *agents.names(), *recipes.names()):
        assert name in text
    assert "book_visit" not in text
    assert "book_visit" in crosswind("catalog", "families")
    for topic in ("domains", "kinds", "suites", "agents", "recipes"):
        assert json_of("catalog", topic)[topic]
    assert "oracle" in crosswind("catalog", "agents")


def test_the_catalog_is_filtered() -> None:
    some = json_of("catalog", "--tier", "reasoning", "--axis", "action")
    assert list(some) == ["version", "kinds"]
    kept = [kind for kind in perturbations if (kind.tier, kind.axis) == ("reasoning", "action")]
    assert len(some["kinds"]) == len(kept) > 1
    assert {row["domain"] for row in json_of("catalog", "--domain", "poi")["families"]} == {"poi"}
    found = {row["name"]: row["domains"] for row in json_of("catalog", "suites", "--domain", "retail")["suites"]}
    assert "quick" not in found
    assert all("retail" in names for names in found.values())
    one = json_of("catalog", "--search", "LOST_ack")
    assert [row["kind"] for row in one["kinds"]] == ["lost_acknowledgement"]
    assert not one["domains"]
    assert "lost_acknowledgement" in crosswind("catalog", "--search", "lost_ack")
    assert "nothing in the catalog contains 'xyzzy'" in crosswind("catalog", "--search", "xyzzy")


def test_certify_counts_and_exits_zero() -> None:
    data = json_of("certify", "--domain", "all", "--perturb", "all", "--count", "3", "--seed", "5")
    assert data["certified"] == 3 * len(domains.names()) * len(perturbations.names())
    assert data["refused"] == sum(r["refused"] for r in data["rows"])
    assert data["not_applicable"] == sum(r["not_applicable"] for r in data["rows"]) > 0
    assert len(data["rows"]) == len(domains.names()) * len(perturbations.names())
    assert data["seconds"] > 0
    assert isinstance(data["reasons"], dict)
    assert "certified" in crosswind("certify", "--domain", "poi", "--perturb", "transient_error", "--count", "2")


def test_certify_exits_one_where_a_kind_has_no_certified_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise Unfair("bites", "on purpose")

    monkeypatch.setattr(laws, "bites", never)
    data = json_of("certify", "--domain", "poi", "--perturb", "transient_error", "--count", "1", code=1)
    assert data["certified"] == 0
    assert data["refused"] > 0
    assert any("on purpose" in reason for reason in data["reasons"])


def test_play_shows_an_episode() -> None:
    text = crosswind("play", "--domain", "poi", "--seed", "9", "--perturb", "transient_error:5", "--agent", "retrier")
    for words in ("what the agent saw", "what reached the world", "[transient_error]", "met at step", "PASS"):
        assert words in text
    assert "FAIL" in crosswind("play", "--domain", "medical", "--family", "best_fee", "--agent", "idle")


def test_play_json_holds_the_episode_and_no_clock() -> None:
    data = json_of("play", "--domain", "poi", "--family", "book_visit", "--seed", "3", "--perturb", "semantic_rename:4")
    assert data["verdict"]["outcome"] == "pass"
    assert data["receipts"] == [{"kind": "semantic_rename", "fired": True, "step": 0, "seen": True}]
    assert data["steps"][0]["inner"][0]["call"]["tool"] == "find_places"
    assert data["steps"][0]["call"]["tool"] != "find_places"
    assert not {"seconds", "time", "date", "path"} & set(data)


def test_a_stored_stack_replays(tmp_path: Path) -> None:
    args = ("play", "--domain", "poi", "--family", "book_visit", "--seed", "3")
    kinds = ("semantic_rename", "format_switch:5", "retired_midway")
    first = json_of(*args, *(word for kind in kinds for word in ("--perturb", kind)))
    stack = tmp_path / "stack.json"
    stack.write_text(json.dumps(first["layers"]))
    assert json_of(*args, "--stack", str(stack)) == first


def test_a_process_of_its_own_says_the_same_and_exits_with_the_same_codes() -> None:
    for args, code in ((("catalog", "--json"), 0), (("play", "--domain", "poy"), 2)):
        command = [sys.executable, "-m", "crosswind.cli.app", *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_COLOR": "1"})
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout + done.stderr == crosswind(*args, code=code)


def test_an_output_that_lacks_characters_or_room_is_no_bug(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crosswind", "run", "quick", "--agent", "retrier", "--limit", "4"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, "--out", tmp_path / "run"], capture_output=True, timeout=120, env=ascii_only)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b" %" in done.stdout
    with open("/dev/full", "w") as full:
        done = subprocess.run([*command[:3], "catalog", "kinds"], stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 3
    assert done.stderr.startswith(b"error: standard output cannot be written (No space left on device)")


WRONG = [
    (["catalog", "kind"], "no topic 'kind'; did you mean kinds"),
    (["catalog", "things"], "no topic 'things'; known: domains, families, kinds"),
    (["proxy", "--idle", "5", "--", "true"], "--idle ends sessions over HTTP; give --http PORT as well"),
    (["catalog", "--domain", "poy"], "no domain 'poy'; did you mean poi?"),
    (["catalog", "kinds", "--tier", "perceptio"], "no tier 'perceptio'; did you mean perception"),
    (["catalog", "--axis", "actoin"], "no axis 'actoin'; did you mean action"),
    (["catalog", "suites", "--tier", "perception"], "--tier does not apply to suites; use it with kinds"),
    (["play", "--domain", "poy"], "no domain 'poy'; did you mean poi?"),
    (["play", "--domain", "poi", "--agent", "oracel"], "did you mean oracle"),
    (["play", "--domain", "poi", "--family", "book_visits"], "did you mean book_visit"),
    (["play", "--domain", "poi", "--perturb", "transient_eror"], "did you mean transient_error"),
    (["play", "--domain", "poi", "--perturb", "transient_error:9"], "not one of 1 to 5; expected KIND or"),
    (["play", "--domain", "poi", "--split", "tset"], "did you mean test"),
    (["play", "--domain", "poi", "--family", "best_price", "--perturb", "lost_acknowledgement"], "does not apply"),
    (["play", "--domain", "poi", "--stack", "nowhere.json"], "cannot be read"),
    (["certify", "--domain", "medicine"], "did you mean medical?"),
    (["certify", "--perturb", "semantic_renames"], "did you mean semantic_rename"),
    (["baselines", "--domain", "zzz"], "known: banking, medical"),
    *(
        ([*command, "--perturb", kind, *rest], words)
        for command, rest in ((["serve", "mcp", "--domain", "poi"], []), (["proxy"], ["--", "true"]))
        for kind, words in (
            ("transient_eror", "no perturbation 'transient_eror'; did you mean transient_error"),
            ("transient_error:9", "the severity '9' is not one of 1 to 5; expected KIND or KIND:SEVERITY"),
            ("transient_error:", "the severity '' is not one of 1 to 5; expected KIND or KIND:SEVERITY"),
        )
    ),
]


@pytest.mark.parametrize(("args", "words"), WRONG)
def test_wrong_names_are_answered_with_near_misses(args: list[str], words: str) -> None:
    assert words in crosswind(*args, code=2)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["certify", "--severity", "abc"], "Invalid value for '--severity': got 'abc'; expected a number from 1 to 5"),
        (["data", "--share", "3"], "Invalid value for '--share': got '3'; expected a number from 0 to 1"),
        (["data", "--count", "0"], "Invalid value for '--count': got '0'; expected at least 1"),
        (["data", "--level", "low"], "Invalid value for '--level': got 'low'; expected a whole number"),
    ],
)
def test_an_option_out_of_range_is_told_with_its_value(args: list[str], told: str) -> None:
    said = crosswind(*args, code=2)
    assert told in " ".join(said.replace("│", " ").split())


STACKS = [
    ("{", "1:2:"),
    ("[1]", "[0]: expected an object"),
    ("{}", "expected a list of objects"),
    ('[{"kind": "transient_eror"}]', "[0].kind: no perturbation 'transient_eror'; did you mean transient_error"),
    ('[{"kind": "transient_error", "tools": 3, "times": 1, "text": "x"}]', "[0].tools: got 3; expected a list"),
    ('[{"kind": "transient_error", "tools": [], "times": 1, "text": "x", "more": 1}]', "[0].more: unknown key"),
    ('[{"kind": "transient_error"}]', "[0].tools: this key is missing"),
    ("[" * 100_000, "nested too deeply"),
]


@pytest.mark.parametrize(("text", "words"), STACKS)
def test_a_malformed_stack_file_names_the_place(tmp_path: Path, text: str, words: str) -> None:
    stack = tmp_path / "stack.json"
    stack.write_text(text)
    said = crosswind("play", "--domain", "poi", "--stack", str(stack), code=2)
    assert words in said
    assert str(stack) in said


@pytest.mark.parametrize("text", ["[" * 200_000, "{a: " * 50_000, "- " * 100_000, "? " * 50_000])
def test_deep_yaml_is_refused_before_it_is_parsed(text: str, tmp_path: Path) -> None:
    """A parser that read all of it would take a minute, in time that grows with the square of its depth."""
    path = tmp_path / "deep.yaml"
    path.write_text(text)
    began = time.process_time()
    with pytest.raises(BadFile, match=r"deep\.yaml:1: nested too deeply"):
        read(path)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("text", ["[" + "a," * 900_000, "".join(f"k{n}: 1\n" for n in range(100_000))])
def test_endless_yaml_is_refused_when_it_is_too_long(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(text)
    monkeypatch.setattr("crosswind.base.yaml_files.MOST", 500)
    with pytest.raises(BadFile, match=r"long\.yaml:\d+: too long; at most 500 keys"):
        read(path)


@pytest.mark.parametrize("value", ["1" + ":1" * 3000, "0x" + "f" * 5000, "9" * 5000, "0b" + "1" * 20_000])
def test_a_number_that_is_too_long_is_text(value: str, tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(f"name: {value}\n")
    assert read(path).data == {"name": value}


def test_a_directive_that_is_too_long_and_a_file_without_an_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("%YAML 1." + "1" * 5000 + "\n---\na: 1\n")
    with pytest.raises(BadFile, match=r"odd\.yaml:1: not valid YAML"):
        read(path)
    os.truncate(path, 1 << 40)
    with pytest.raises(BadFile, match=r"odd\.yaml: has more than 7 MiB"):
        read(path)


def test_the_form_shown_for_a_stack_is_one_that_loads() -> None:
    assert load_layers(json.loads(f"[{EXAMPLE}]"))[0].kind == "transient_error"


def test_an_unfair_stack_is_refused_with_its_law(tmp_path: Path) -> None:
    stack = tmp_path / "stack.json"
    stack.write_text('[{"kind": "transient_error", "tools": ["weather"], "times": 1, "text": "Try again."}]')
    said = crosswind("play", "--domain", "poi", "--family", "best_price", "--stack", str(stack), code=2)
    assert "bites: the way never meets 'transient_error'" in said


def test_baselines_print_the_table() -> None:
    text = crosswind("baselines", "--tasks", "2", "--domain", "poi")
    assert "semantic_rename" in text
    assert "oracle" in text
    data = json_of("baselines", "--tasks", "2", "--domain", "poi")
    assert all(r["passed"]["oracle"] + r["right"]["oracle"] == r["n"] >= 1 for r in data["rows"])
    assert crosswind("baselines", "--tasks", "1", "--domain", "poi", "--markdown").startswith("| domain |")


def test_help_teaches_and_version_prints() -> None:
    assert "crosswind demo" in crosswind("--help")
    for command in ("catalog", "certify", "play", "baselines", "run", "report", "gate"):
        assert "--json" in crosswind(command, "--help")
    assert crosswind("--version").startswith("crosswind ")


def test_text_from_elsewhere_cannot_steer_the_terminal() -> None:
    hostile = "a\x1b[2Jb\x1b]0;title\x07c\x00d\u202ee\x9bf\ud800"
    assert not set(safe(hostile)) & set("\x1b\x07\x00\u202e\x9b\ud800")
    assert "a" in safe(hostile)


def test_the_demo_plays_two_agents_at_once_and_says_which_is_better(tmp_path: Path) -> None:
    folders = [tmp_path / "memoriser", tmp_path / "oracle"]
    commands_demo._play_all([(folder.name, folder) for folder in folders], seed=0)
    page, found = commands_demo._compared(folders, tmp_path / "compare.html")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    measured, sure, means = commands_demo.sentences(found)
    assert "memoriser solves 100" in measured
    assert "oracle solves 100" in measured
    assert "a rise of" in sure
    assert "still solves most of them" in means
    backwards = commands_demo.sentences(commands_demo._compared(folders[::-1], page)[1])
    assert "did not help" in backwards[-1]


def test_a_demo_that_one_model_hardly_began_still_compares_what_both_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow machine one model can be far ahead when time is up."""
    folders = [tmp_path / "memoriser", tmp_path / "oracle"]
    for folder, limit in zip(folders, (3, 12), strict=True):
        crosswind("run", commands_demo.LIVE, "--agent", folder.name, "--out", str(folder), "--limit", str(limit))
    found = commands_demo._compared(folders, tmp_path / "page.html")[1]
    (little,) = commands_demo.sentences(found)
    assert "too little to tell" in little
    assert "2 pairs from 1 task" in little
    monkeypatch.setenv("COLUMNS", "80")
    told: list[str] = []
    commands_demo._tell(found, partial(told.append))
    assert max(map(len, "\n".join(told).splitlines())) <= 80


def test_one_episode_of_two_runs_is_no_comparison(tmp_path: Path) -> None:
    folders = [tmp_path / "oracle", tmp_path / "memoriser"]
    for folder in folders:
        crosswind("run", commands_demo.LIVE, "--agent", folder.name, "--out", str(folder), "--limit", "1")
    page, found = commands_demo._compared(folders, tmp_path / "page.html")
    assert "nothing yet" in commands_demo.sentences(found)[0]
    told = page.read_text(encoding="utf-8")
    assert "share 1 pair from 1 task, all clean: too little was played to compare them" in told
    assert "no change seen" not in told.split("</h1>")[0]


def test_a_model_that_is_ahead_waits_for_the_other() -> None:
    """On cores that both share, what one plays alone is in no pair."""
    names = ("quick", "slow", "done")
    quick, slow, done = (subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"]) for _ in names)
    try:
        done.kill()
        done.wait()
        commands_demo._pace([(quick, 3), (slow, 1), (done, 0)])
        assert becomes(quick, stopped=True)
        assert becomes(slow, stopped=False)
        commands_demo._pace([(quick, 3), (slow, 2), (done, 0)])
        assert becomes(quick, stopped=False)
    finally:
        for process in (quick, slow):
            process.kill()
            process.wait()


def becomes(process: subprocess.Popen[bytes], *, stopped: bool) -> bool:
    """Is a process stopped, or not, within ten seconds?"""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        state = subprocess.check_output(["ps", "-o", "state=", "-p", str(process.pid)], text=True).strip()
        if (state == "T") is stopped:
            return True
        time.sleep(0.02)
    return False


def test_an_agent_that_stops_the_demo_is_named(tmp_path: Path) -> None:
    with pytest.raises(CrosswindError, match=r"^no_such_agent stopped: .*a\.log\.$"):
        commands_demo._play_all([("no_such_agent", tmp_path / "a")], seed=0)


@pytest.mark.parametrize("name", ["static", "paft"])
def test_the_recorded_runs_are_whole(name: str, tmp_path: Path) -> None:
    run = load_run(unpack(commands_demo.RECORDED / name, tmp_path / name))
    assert len(run.records) == run.manifest.planned == 866
    assert not run.problems
    about = json.loads((commands_demo.RECORDED / "about.json").read_text())
    assert about["date"] == run.manifest.created[:10]
    assert about["commit"]
    assert about["hardware"]


def test_a_file_of_yaml_may_be_a_link_and_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("a: 1\n")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    assert read(tmp_path / "link.yaml").data == {"a": 1}
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(BadFile, match="is not a regular file"):
        read(tmp_path / "pipe.yaml")


@pytest.mark.parametrize("option", ["--only", "--domain", "--tier", "--axis"])
def test_a_list_without_a_name_is_no_filter_and_an_error(tmp_path: Path, option: str) -> None:
    out = tmp_path / "run"
    said = crosswind("run", "quick", "--agent", "oracle", "--out", str(out), option, ",", code=2)
    assert f"{option} is ',', which holds no name" in said
    assert not out.exists()


def test_an_option_of_models_is_refused_for_a_scripted_agent(tmp_path: Path) -> None:
    for option, value in (("--temperature", "0.3"), ("--reply-tokens", "9"), ("--protocol", "text")):
        said = crosswind("run", "quick", "--agent", "retrier", option, value, "--out", str(tmp_path), code=2)
        assert f"{option} is {value}, and retrier is a scripted agent" in " ".join(said.split())


def test_a_file_beside_is_named_where_its_suite_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.yaml").write_text("server: {}")
    said = crosswind("run", "notes", "--agent", "oracle", code=2)
    assert "no suite 'notes'; to use the file, write notes.yaml" in said


def test_a_run_without_a_score_has_no_table_and_leads_to_doctor(tmp_path: Path) -> None:
    agent = "openai:m@http://127.0.0.1:9/v1"
    told = crosswind("run", "quick", "--agent", agent, "--limit", "2", "--out", str(tmp_path / "run"), code=3)
    assert "No episode could be scored." in told
    assert f"Next: crosswind doctor {agent}" in told
    assert "right refusals" not in told.lower()
    said = " ".join(told.split())
    assert said.count("is a server running at") == 1, said


def test_an_agent_that_always_raises_is_told_by_its_exception_first(tmp_path: Path) -> None:
    (tmp_path / "raises_always.py").write_text("def agent(query, tools):\n    raise ValueError('no luck')\n")
    command = [sys.executable, "-m", "crosswind", "run", "quick", "--agent", "python:raises_always:agent"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ValueError: no luck" in done.stdout
    assert "no better than" not in done.stdout


def test_a_damaged_line_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    crosswind("run", "quick", "--agent", "echo", "--limit", "4", "--out", str(folder))
    path = folder / "episodes.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[1][:40] + "\n", *lines[2:]]))
    done = subprocess.run(
        [sys.executable, "-m", "crosswind", "report", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stderr.count("episodes.jsonl") >= 1
    assert "take" not in done.stdout.split("wrote")[0], done.stdout
    assert "warning:" in done.stderr


def test_what_interrupts_the_summary_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("crosswind.cli.run.conclude", interrupted)
    said = crosswind("run", "quick", "--agent", "echo", "--limit", "1", "--out", str(tmp_path / "r"), code=130)
    assert f"every episode is in {tmp_path / 'r'}" in said


def test_the_demo_ends_with_all_that_an_own_agent_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    for there in (False, True):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, there=there: find("json") if there else None)
        commands = commands_demo.own_agent()
        assert ["[openai]" in command for command in commands] == ([] if there else [True]) + [False, False]


def test_the_legend_explains_only_what_the_table_has(tmp_path: Path) -> None:
    for agent, wrongly in (("oracle", False), ("python:refuses_all:agent", True)):
        (tmp_path / "refuses_all.py").write_text("def agent(query, tools):\n    return 'Sorry, I cannot do this.'\n")
        command = [sys.executable, "-m", "crosswind", "run", "quick", "--agent", agent]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "Success counts solvable tasks" in done.stdout, done.stderr
        assert ("wrongly: refused for a wrong reason" in " ".join(done.stdout.split())) is wrongly


def test_a_missing_part_of_an_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvicorn", reason="needs a part of the extra openenv")
    for name in ("crosswind.frameworks.openenv_server", "uvicorn.protocols.websockets.websockets_sansio_impl"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "websockets", None)
    told = crosswind("serve", "openenv", code=2)
    assert "serve openenv needs the package 'websockets'" in told


def test_one_command_is_described_without_the_others() -> None:
    code = "import sys; from crosswind.cli.app import assembled; assembled(['show']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "crosswind.cli.show" in loaded
    assert "crosswind.cli.train" not in loaded
    assert "crosswind.core.registry" not in loaded
