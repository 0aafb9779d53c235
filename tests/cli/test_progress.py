"""The progress of commands: an updating line on a terminal, few lines in a log, nothing if quiet."""

from __future__ import annotations

import io
import sys
import time

import pytest

from crosswind.cli import progress
from crosswind.cli.progress import Display, RunDisplay
from crosswind.metrics.groups import Count
from crosswind.runs.runner import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with Display("drawing") as display:
        for n in range(1000):
            display.say(f"{n} episodes")
        assert capsys.readouterr().err == ""
        display.say("the end", at_once=True)
        monkeypatch.setattr(progress, "LOG", 0.0)
        display.say("\x1b[2Jone more")
    assert capsys.readouterr().err == "drawing the end\ndrawing \N{REPLACEMENT CHARACTER}one more\n"


def test_a_log_gets_few_lines_in_an_hour(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    with Display("drawing") as display:
        for clock in range(3600):  # noqa: B007
            display.say("on")
    assert 5 <= len(capsys.readouterr().err.splitlines()) <= 12


def test_nothing_is_said_if_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with Display("drawing", quiet=True) as display:
        display.say("this", at_once=True)
        display.note("that")
    assert shown.getvalue() == ""


def test_a_terminal_has_one_line_which_goes_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    monkeypatch.setenv("COLUMNS", "10")
    with Display() as display:
        display.say("x" * 25)
        display.say("short", at_once=True)
        display.note("stays")
        display.say("short", at_once=True)
    cleared, up = "\r\x1b[J", "\r\x1b[2A\x1b[J"  # a line that takes three rows is cleared from its first
    assert shown.getvalue() == f"{cleared}{'x' * 25}{up}short{cleared}stays\n{cleared}short{cleared}"


def test_a_run_is_told_with_its_scores() -> None:
    told = Progress(total=20, before=5, done=5, errors=1, scores={"stacks": Count(4, 1), "clean": Count(2, 2)})
    line = RunDisplay(quiet=True).line(told)
    assert line.startswith("10 of 20 episodes, ")
    assert line.endswith(", 1 errors; clean 100 %; stacks 25 %")
    assert "clean" not in RunDisplay(quiet=True, scores=False).line(told)
    resumed = Progress(total=18, before=20, done=2, estimated=True)  # not all that was finished is counted yet
    assert RunDisplay(quiet=True).line(resumed).startswith("22 of about 22 episodes, ")
