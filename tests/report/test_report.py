"""Reports, comparisons and episodes on show: what they say, and that they say it in bounds."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib
import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from crosswind import __version__
from crosswind.base.errors import CrosswindError
from crosswind.cli.app import app
from crosswind.core.registry import agents
from crosswind.core.types import AXES, TIERS
from crosswind.episodes.play import judge, play
from crosswind.episodes.record import Record, Usage, recorded
from crosswind.episodes.schedule import Episode, episodes
from crosswind.episodes.suite import Asked, Suite, suites
from crosswind.metrics import summary
from crosswind.metrics.diagnosis import diagnose
from crosswind.report import html, markdown, parts, show
from crosswind.report.compare import page as compare_page
from crosswind.report.compare import verdict as compare_verdict
from crosswind.report.content import Content, content
from crosswind.report.episode import lines_of
from crosswind.report.markup import clipped, join, tag, visible
from crosswind.report.verdict import details, verdict
from crosswind.runs import runner
from crosswind.runs.analysis import analyse, select
from crosswind.runs.baselines import NAMES, sample
from crosswind.runs.comparison import compare
from crosswind.runs.reading import read
from crosswind.runs.store import Manifest, StoredRun, as_line, open_run
from tests.test_rooms import FILES, imported


def crosswind(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


@cache
def played(agent: str, suite: str = "quick", tasks: int = 4) -> tuple[Record, ...]:
    """A scripted agent over a suite, diagnosed as a runner does it."""
    where = ("poi", "retail") if suite == "tiers" else ("poi",)
    chosen: Suite = suites[suite].model_copy(update={"tasks": tasks, "domains": where})

    async def run() -> Iterator[Record]:
        out = []
        for episode in episodes(chosen, 0):
            trajectory = await play(episode.drawn, agents[agent](episode.drawn), agent)
            usage = Usage(input_tokens=100, output_tokens=10, requests=2, seconds=0.5, cost=0.01)
            record = recorded(episode, trajectory, judge(trajectory), seed=0, usage=usage)
            if record.outcome == "fail":
                found = diagnose(record, episode.drawn.certificate)
                record = record.model_copy(update={"stage": found.stage, "cause": found.cause})
            out.append(record)
        return iter(out)

    return tuple(asyncio.run(run()))


def run_of(records: tuple[Record, ...], folder: Path, agent: str = "", suite: str = "quick") -> StoredRun:
    """Records as a run in a folder."""
    manifest = Manifest(
        created="2026-01-02T03:04:05+00:00",
        updated="2026-01-02T03:04:05+00:00",
        crosswind=__version__,
        judge="1",
        python="3.11",
        suite={"name": suite},
        asked=Asked(suite=suite),
        conditions=tuple(dict.fromkeys(r.condition for r in records)),
        seed=0,
        agent=agent or records[0].agent,
        state="finished",
        planned=len(records),
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(manifest.model_dump_json())
    (folder / "episodes.jsonl").write_bytes(b"".join(map(as_line, records)))
    return StoredRun(folder, manifest, list(records))


class Reader(HTMLParser):
    """What a page holds: elements with their attributes, and text by element."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.inside: list[str] = []
        self.feed(page)
        self.close()
        assert self.inside == [], self.inside

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.inside:
            self.scripts.append(data)
        elif "style" not in self.inside:
            self.texts.append(data)

    def names(self) -> list[str]:
        return [name for name, _ in self.elements]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Content:
    run = run_of(played("by_name", "tiers", 1), tmp_path_factory.mktemp("run"), suite="tiers")
    return content(analyse(run, baselines=20, opened=12))


@pytest.fixture(scope="module")
def reader(said: Content) -> Reader:
    return Reader(html.page(said))


# ---------------------------------------------------------------- the page


def test_the_page_says_what_the_metrics_say(said: Content, reader: Reader) -> None:
    drop = said.summary.drop
    assert drop is not None
    assert f"{100 * drop.clean:.0f} % of the solvable tasks in the clean world" in reader.text
    assert f"a fall of {-100 * drop.delta:.0f} points" in reader.text
    assert all(tier in reader.text for tier in TIERS)
    assert all(axis in reader.text for axis in AXES)
    assert all(kind in reader.text for kind in said.summary.drops["kind"])
    assert all(cause in reader.text for cause in said.summary.causes)
    assert all(name in reader.text for name in NAMES)
    assert said.summary.clean.rate == 1
    for heading in ("For comparison", "Tier by axis", "Each perturbation", "Severity", "Why it fails", "Kinds of task"):
        assert heading in reader.text


def test_the_page_loads_nothing_and_runs_one_script_of_its_own(reader: Reader) -> None:
    kinds = [attributes.get("type") for name, attributes in reader.elements if name == "script"]
    assert kinds == ["application/json", None]  # data, which no browser runs, and the script
    assert not {"iframe", "img", "link", "object", "embed", "base", "form"} & set(reader.names())
    for name, attributes in reader.elements:
        for key, value in attributes.items():
            assert not key.startswith("on"), (name, key)
            assert key not in ("src", "srcset", "style", "action"), (name, key)
            assert key != "href" or (value or "").startswith("#")
    policies = [a["content"] for n, a in reader.elements if n == "meta" and a.get("http-equiv") is not None]
    assert len(policies) == 1
    assert (policies[0] or "").startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in (policies[0] or "")
    digest = base64.b64encode(hashlib.sha256(reader.scripts[-1].encode()).digest()).decode()
    assert (policies[0] or "").endswith(f"script-src 'sha256-{digest}'")
    assert all(
        word not in reader.scripts[-1] for word in ("innerHTML", "outerHTML", "eval(", "document.write", "fetch")
    )


def test_every_link_leads_somewhere(reader: Reader) -> None:
    ids = {a["id"] for _, a in reader.elements if "id" in a}
    links = [(a["href"] or "")[1:] for n, a in reader.elements if n == "a"]
    assert links
    assert set(links) <= ids


def test_every_cell_of_the_heat_table_has_its_n_and_interval(said: Content) -> None:
    text = Reader(parts.heat(said.summary.drops["cell"]).html).text
    for drop in said.summary.drops["cell"].values():
        assert f"{drop.pairs} pairs from {drop.tasks} tasks" in text
        assert "to" in text
    assert text.count("no pairs") == 16 - len(said.summary.drops["cell"])


def test_doses_make_a_curve(tmp_path: Path) -> None:
    page = html.page(content(analyse(run_of(played("retrier", "doses", 1), tmp_path), baselines=0, opened=0)))
    reader = Reader(page)
    assert "Change by kind and severity" in reader.text
    labels = [a["aria-label"] or "" for n, a in reader.elements if n == "svg" and "aria-label" in a]
    assert re.search(r"severity 1: \d+ %.*severity 5: \d+ %", labels[0])


def test_a_page_of_a_large_run_is_small(tmp_path: Path) -> None:
    """Size depends on what is chosen, not on the number of episodes."""
    some = played("by_name", "tiers", 1)
    many = [r.model_copy(update={"key": f"{r.key}#{n}", "pair": f"{r.pair}#{n}"}) for n in range(4) for r in some]
    huge = [r.model_copy(update={"final": "x" * 20_000}) for r in many]
    page = html.page(content(analyse(run_of(tuple(huge), tmp_path), baselines=0)))
    assert len(page) < 3_000_000
    assert f"48 of {len(huge):,} episodes" in Reader(page).text


def test_trials_show_how_often_all_pass(tmp_path: Path) -> None:
    first = played("by_name")
    again = tuple(
        r.model_copy(update={"key": r.key[:-1] + "1", "pair": r.pair[:-1] + "1", "trial": 1}) for r in played("oracle")
    )
    text = Reader(html.page(content(analyse(run_of((*first, *again), tmp_path), baselines=2, opened=0)))).text
    assert "Share of tasks that pass in all of k trials" in text
    assert "2 trials each" in text
    once = content(analyse(run_of(first, tmp_path), baselines=0, opened=0))
    assert "Share of tasks that pass in all of k trials" not in Reader(html.page(once)).text


def test_the_page_is_the_same_every_time(said: Content) -> None:
    assert html.page(said) == html.page(said)
    again = content(analyse(said.run, baselines=20, opened=12))
    assert html.page(again) == html.page(said)


# ---------------------------------------------------------------- the verdict


def test_verdicts(said: Content, tmp_path: Path) -> None:
    assert "a fall of" in said.verdict
    assert said.verdict.endswith(".")
    oracle = summary(played("oracle"), measures=False)
    assert "no change seen" in verdict(oracle, "oracle")
    few = summary(played("by_name"), measures=False)
    assert "which may be due to chance" in verdict(few, "by_name")
    assert "This change may be due to chance: " in details(few)
    assert "tasks would be enough to detect a change of this size" in details(few)
    idle = summary(played("idle"), measures=False)
    assert verdict(idle, "idle").startswith("idle is no better than an agent that does nothing")
    assert details(idle).startswith("No better than a trivial agent: it solves 0")
    for one in (oracle, few, idle):
        assert len(re.findall(r"[.!?](?= |$)", verdict(one, "mine"))) <= 3
    clean = summary([r for r in played("oracle") if r.clean], measures=False)
    assert "no solvable task was played both clean and shifted" in verdict(clean, "oracle")
    assert "no result yet" in verdict(summary([], measures=False), "nobody")


def test_empty_and_broken_runs_still_make_a_page(tmp_path: Path) -> None:
    error = {"outcome": "error", "ended": "error", "why": "the provider was away", "checks": (), "stage": None}
    records = played("oracle")
    for some in ((), records[:1], tuple(r.model_copy(update=error) for r in records)):
        run = run_of(some, tmp_path, "someone")
        page = Reader(html.page(content(analyse(run))))
        assert "someone" in page.text
        assert markdown.report(content(analyse(run, opened=0)))
    assert "20 episodes ended in infrastructure errors" in page.text
    assert "the provider was away" in page.text


# ---------------------------------------------------------------- baselines


def test_baselines_give_the_scale(tmp_path: Path) -> None:
    records = played("by_name")
    found = analyse(run_of(records, tmp_path)).baselines
    played_by = found.played
    assert {r.key for r in found.sample} == {r.key for r in records}
    records = found.sample
    assert tuple(played_by) == NAMES
    assert all([r.key for r in some] == [r.key for r in records] for some in played_by.values())
    assert all(r.passed for r in played_by["oracle"])
    assert all(r.passed == r.refuse for r in played_by["refuser"])
    assert all(r.passed for r in played_by["memoriser"] if r.clean)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of stored episodes whose gold is walked from now on."""
    walked: list[str] = []
    for module, name in (("crosswind.runs.reading", "redrawn"), ("crosswind.metrics.measures", "walk_gold")):
        real = getattr(importlib.import_module(module), name)

        def again(record: Record, real: Any = real) -> Any:
            walked.append(record.key)
            return real(record)

        monkeypatch.setattr(f"{module}.{name}", again)
    return walked


def test_gold_is_walked_once_for_each_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = played("by_name")
    walked = counted(monkeypatch)
    found = analyse(run_of(records, tmp_path))
    assert sorted(walked) == sorted(r.key for r in records)
    assert set(found.measures) == {r.key for r in records}
    assert found.summary == summary(records, trivial=found.baselines.played)
    assert len(found.readings) == len(records)
    walked.clear()
    html.page(content(found))
    assert walked == []


def test_baselines_are_stored_with_the_run_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(played("by_name"), tmp_path)
    first = analyse(run, baselines=6).baselines
    head, *lines = (tmp_path / "baselines.jsonl").read_text().splitlines()
    assert json.loads(head)["crosswind"] == __version__
    assert set(json.loads(head)["covers"]) == {r.key for r in first.sample}
    assert len(lines) == len(NAMES) * len(first.sample)
    playing: list[str] = []
    real = runner.play_episode

    async def noted(episode: Episode, source: Any, **given: Any) -> Record:
        playing.append(episode.key)
        return await real(episode, source, **given)

    monkeypatch.setattr(runner, "play_episode", noted)
    assert analyse(run, baselines=6).baselines == first
    assert playing == []
    more = analyse(run, baselines=9).baselines
    assert set(playing) == {r.key for r in more.sample} - {r.key for r in first.sample}
    playing.clear()
    (tmp_path / "baselines.jsonl").write_text(head.replace(__version__, "0.0.1") + "\n" + "\n".join(lines))
    assert analyse(run, baselines=6).baselines == first
    assert set(playing) == {r.key for r in first.sample}  # another version played those
    playing.clear()
    (tmp_path / "baselines.jsonl").write_text("damaged")
    assert analyse(run, baselines=6).baselines == first
    assert playing


def test_a_run_that_cannot_be_written_to_gets_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, data: bytes) -> None:
        if path.parent == tmp_path / "run":
            raise PermissionError(13, "Permission denied")
        path.write_bytes(data)

    run_of(played("by_name"), tmp_path / "run")
    monkeypatch.setattr("crosswind.runs.baselines.replace_file", denied)
    done = crosswind("report", str(tmp_path / "run"), "-o", str(tmp_path / "r.html"))
    assert done.exit_code == 0, done.output
    assert "baselines.jsonl cannot be written (Permission denied)" in done.stderr
    assert "For comparison" in Reader((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["episodes.jsonl", "run.json"]


def test_a_report_plays_nothing() -> None:
    plays = re.compile(r"crosswind\.(episodes\.(play|schedule)|core\.(oracle|certify|draw|session)|runs\.runner)\b")
    for name in (name for name in FILES if name.parts[0] == "report"):
        found = [module for module in imported(name) if plays.match(module)]
        assert not found, f"{name} imports {found}"


def test_a_sample_holds_whole_pairs(tmp_path: Path) -> None:
    records = played("by_name", "tiers", 1)
    chosen = sample(records, 30)
    shifted = [r for r in chosen if not r.clean]
    assert len(shifted) == 30
    assert {r.pair for r in shifted} == {r.pair for r in chosen if r.clean}
    assert len({r.domain for r in shifted}) == 2  # spread over the run
    assert sample([], 30) == []


# ---------------------------------------------------------------- episodes


def test_a_view_marks_the_divergence_and_the_obstacles() -> None:
    failures = [r for r in played("by_name") if r.outcome == "fail"]
    assert failures
    for record in failures:
        shown = read(record)
        found = diagnose(record)
        lines = list(lines_of(shown))
        marked = [line.step for line in lines if line.diverges]
        assert marked == ([found.step] if found.step <= len(record.steps) else [])
        assert shown.final_diverges == (found.step > len(record.steps))
        met = {kind for line in lines for kind in line.met} | set(shown.at_start)
        assert met == {r.kind for r in record.receipts if r.fired}
        assert [line.step for line in lines if line.step] == list(range(1, len(record.steps) + 1))
        assert shown.gold_final


def test_the_oracle_walks_beside_the_certified_way() -> None:
    for record in played("oracle"):
        lines = lines_of(read(record))
        assert all(line.agent and line.gold and line.agent.call == line.gold.call for line in lines)


def test_an_episode_that_cannot_be_drawn_again_is_shown_without_gold(tmp_path: Path) -> None:
    record = played("by_name")[0].model_copy(update={"task_id": "nowhere/at/all"})
    shown = read(record)
    assert "cannot be regenerated here" in shown.missing
    assert "cannot be regenerated here" in Reader(parts.episode(shown).html).text


def test_selection_takes_one_of_each_cause_and_kind_before_a_second() -> None:
    records = played("by_name", "tiers", 1)
    sorts = {(r.cause, r.condition) for r in records if r.outcome == "fail"}
    chosen = select(records, 2 * len(sorts))
    failures = [r for r in chosen if r.outcome == "fail"]
    assert {(r.cause, r.condition) for r in failures[: len(sorts)]} == sorts
    assert any(r.passed for r in chosen)
    assert len(chosen) == 2 * len(sorts)
    assert len({r.key for r in chosen}) == len(chosen)
    assert select(records, 0) == []
    assert select([], 5) == []


# ---------------------------------------------------------------- two runs


def test_a_run_compared_with_itself_shows_nothing(tmp_path: Path) -> None:
    run = run_of(played("by_name"), tmp_path)
    said = compare([run, run])
    one = said.versus[0]
    assert one.shifted
    assert one.right
    assert (one.shifted.delta, one.right.delta, one.opened) == (0, 0, ())
    assert "no change seen" in compare_verdict(said)
    Reader(compare_page(said))


def test_two_runs_are_paired_by_key(tmp_path: Path) -> None:
    first, second = run_of(played("idle"), tmp_path / "a"), run_of(played("oracle")[:-3], tmp_path / "b")
    said = compare([first, second], opened=4)
    one = said.versus[0]
    assert (one.shared, one.unshared, one.changed) == (17, 3, 17)
    assert one.clean
    assert one.shifted
    solvable = [r for r in played("idle")[:-3] if not r.refuse]
    counted = sum(not r.clean for r in solvable)  # a clean episode counts once for each shifted one
    assert one.clean.fixed == one.shifted.fixed == one.clean.pairs == one.shifted.pairs == counted
    assert "idle is no better than an agent that does nothing" in compare_verdict(said)
    assert len(one.opened) == 4
    text = Reader(compare_page(said)).text
    assert "oracle passed, idle failed" in text
    assert "3 episodes of idle or oracle have no scored counterpart in the other run" in text


def test_a_better_run_is_called_better(tmp_path: Path) -> None:
    runs = [run_of(played(name, "tiers", 1), tmp_path / name) for name in ("by_name", "oracle")]
    assert "oracle is better" in compare_verdict(compare(runs, opened=0))
    assert "by_name is worse" in compare_verdict(compare(runs[::-1], opened=0))


def test_runs_of_different_verifiers_are_refused(tmp_path: Path) -> None:
    records = played("oracle")
    older = tuple(record.model_copy(update={"judge": "0"}) for record in records)
    runs = [run_of(records, tmp_path / "one"), run_of(older, tmp_path / "other")]
    with pytest.raises(CrosswindError, match=r"judged by different verifiers .*crosswind rescore DIR --write"):
        compare(runs, opened=0)


def test_runs_with_little_in_common_are_refused_or_say_so_first(tmp_path: Path) -> None:
    first, few = played("by_name"), played("oracle")[:2]
    runs = [run_of(first, tmp_path / "a"), run_of(few, tmp_path / "b")]
    with pytest.raises(CrosswindError, match="share only 2 of 20 episodes"):
        compare(runs, opened=0)
    told = compare_verdict(compare(runs, opened=0, partial=True))
    assert told.startswith("oracle and by_name share only 2 of 20 episodes")
    assert "no clear difference" not in told


def test_other_obstacles_under_one_key_are_left_out(tmp_path: Path) -> None:
    records = played("oracle")
    changed = tuple(r if r.clean else r.model_copy(update={"layers": ()}) for r in records)
    said = compare([run_of(records, tmp_path / "a"), run_of(changed, tmp_path / "b", "another")], partial=True)
    assert said.versus[0].other == sum(not r.clean for r in records)


def test_three_runs_have_a_rank_correlation(tmp_path: Path) -> None:
    names = ("memoriser", "by_name", "retrier")
    said = compare([run_of(played(name), tmp_path / name) for name in names], opened=0)
    assert said.ranks is not None
    assert set(said.ranks.agents) == set(names)
    assert "Rank correlation" in Reader(compare_page(said)).text
    assert len(said.versus) == 2


def test_runs_that_share_nothing_are_refused(tmp_path: Path) -> None:
    records = played("oracle")
    other = tuple(r.model_copy(update={"key": f"other {r.key}"}) for r in records)
    with pytest.raises(CrosswindError, match=r"have no episode in common"):
        compare([run_of(records, tmp_path / "a"), run_of(other, tmp_path / "b")])


# ---------------------------------------------------------------- commands


def test_report_writes_a_page_and_prints_the_verdict(tmp_path: Path) -> None:
    run_of(played("by_name"), tmp_path)
    done = crosswind("report", str(tmp_path), "--baselines", "4", "--episodes", "2")
    assert done.exit_code == 0, done.output
    assert "by_name solves" in done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Episode transcripts" in Reader(page).text


def test_report_as_json_and_markdown(tmp_path: Path) -> None:
    run_of(played("by_name"), tmp_path)
    data = json.loads(crosswind("report", str(tmp_path), "--json", "--baselines", "4").output)
    assert data["summary"]["episodes"] == 20
    assert set(data["baselines"]) == {"by_name", *NAMES}
    assert data["verdict"].startswith("by_name")
    text = crosswind("report", str(tmp_path), "--markdown", "--baselines", "0").output
    assert text.startswith("## crosswind: by\\_name on quick")
    assert "| perception |" in text
    assert not (tmp_path / "report.html").exists()
    crosswind("report", str(tmp_path), "--json", "--baselines", "0", "-o", str(tmp_path / "x.html"))
    assert (tmp_path / "x.html").exists()


def test_a_line_that_cannot_be_read_is_named_and_stops_no_report(tmp_path: Path) -> None:
    run_of(played("by_name"), tmp_path)
    path = tmp_path / "episodes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b"{}\n", *lines[7:]]))
    done = crosswind("report", str(tmp_path), "--baselines", "4", "--episodes", "2")
    assert done.exit_code == 0, done.output
    told = "1 of 20 lines of episodes.jsonl cannot be read and are left out: line 7 ("
    assert f"warning: {tmp_path}: {told}" in done.output
    assert done.output.count(told) == 1
    page = Reader((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert told in page
    assert "19 episodes" in page
    assert told in crosswind("show", str(tmp_path)).output
    assert told in crosswind("compare", str(tmp_path), str(tmp_path), "-o", str(tmp_path / "c.html")).output
    assert "cannot be read" in crosswind("report", str(tmp_path), "--markdown", "--baselines", "0").output


def test_a_page_that_does_not_fit_on_the_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    run_of(played("by_name"), tmp_path / "run")
    monkeypatch.setattr("crosswind.runs.store.os.fsync", full)
    done = crosswind("report", str(tmp_path / "run"), "--baselines", "0", "-o", str(tmp_path / "r.html"))
    assert done.exit_code == 3
    assert "No space left" in done.output
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_compare_commands(tmp_path: Path) -> None:
    run_of(played("by_name"), tmp_path / "a")
    run_of(played("oracle"), tmp_path / "b")
    both = ("compare", str(tmp_path / "a"), str(tmp_path / "b"))
    out = tmp_path / "c.html"
    assert "wrote" in crosswind(*both, "-o", str(out)).output
    assert out.exists()
    data = json.loads(crosswind(*both, "--json").output)
    assert data["versus"]["oracle"]["shifted"]["delta"] > 0
    assert "## crosswind: comparison" in crosswind(*both, "--markdown").output


def test_show_lists_and_opens(tmp_path: Path) -> None:
    run_of(played("by_name"), tmp_path)
    text = crosswind("show", str(tmp_path)).output
    assert "20 episodes by by_name" in text
    assert "fail" in text
    failed = next(n for n, r in enumerate(played("by_name"), 1) if r.outcome == "fail")
    text = crosswind("show", str(tmp_path), str(failed)).output
    for word in ("what the agent saw", "what reached the world", "the certified solution", "divergence", "FAIL"):
        assert word in text
    record = played("by_name")[failed - 1]
    assert json.loads(crosswind("show", str(tmp_path), record.key, "--json").output)["key"] == record.key
    listed = json.loads(crosswind("show", str(tmp_path), "--outcome", "fail", "--json").output)
    assert {one["outcome"] for one in listed} == {"fail"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("report", "{}/nowhere"), "cannot be read"),
        (("report", "{}", "--json", "--markdown"), "not both"),
        (("report", "{}", "--baselines", "0", "-o", "{}/no/where.html"), "cannot be written"),
        (("compare", "{}"), "two or more folders"),
        (("show", "{}", "nothing like this"), "no episode"),
        (("show", "{}", "0"), "no episode '0'; numbers start at 1 and end at "),
        (("show", "{}", "poi/"), "episodes have 'poi/' in their key"),
        (("show", "{}", "--outcome", "lost"), "expected pass, fail"),
    ],
)
def test_what_a_user_can_mend_is_said(args: tuple[str, ...], words: str, tmp_path: Path) -> None:
    run_of(played("oracle"), tmp_path)
    done = crosswind(*(arg.format(tmp_path) for arg in args))
    assert isinstance(done.exception, CrosswindError)
    assert words in str(done.exception)


def test_pick_prefers_an_exact_key() -> None:
    records = played("oracle")
    assert show.pick(records, records[3].key) == (4, records[3])
    assert show.pick(records, "4") == (4, records[3])


# ---------------------------------------------------------------- markup


def test_markup_escapes_and_refuses() -> None:
    assert (
        tag("p", "<b>&\"'", title='"><script>').html
        == '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;&quot;&#x27;</p>'
    )
    assert join("a", None, ["<", 1]).html == "a&lt;1"
    for name in ("script", "iframe", "p onclick=x", "P"):
        with pytest.raises(ValueError, match="on a page"):
            tag(name, "x")
    for key, value in (("onclick", "x"), ("style", "x"), ("src", "x"), ("href", "javascript:x"), ("href", "//a.b")):
        with pytest.raises(ValueError, match="on a page"):
            tag("a", **{key: value})


def test_hidden_characters_are_made_visible() -> None:
    assert visible("a\x00b\x1b[2J\u202ec\ud800\u200b\n\t") == "a\\u0000b\\u001b[2J\\u202ec\\ud800\\u200b\n\t"
    assert visible("žluťoučký 東京 مرحبا") == "žluťoučký 東京 مرحبا"
    assert clipped("x" * 12, 10) == "x" * 10 + "… [2 more characters]"


# ---------------------------------------------------------------- runs of any size


def test_briefs_give_the_same_report_as_whole_records(tmp_path: Path) -> None:
    run = run_of(played("by_name", "tiers", 1), tmp_path / "a", suite="tiers")
    other = run_of(played("retrier", "tiers", 1), tmp_path / "b", suite="tiers")
    whole, small = (content(analyse(one, baselines=0, opened=6)) for one in (run, open_run(run.folder)))
    assert small.as_json() == whole.as_json()
    assert html.page(small) == html.page(whole)
    both = compare([run, other], opened=4), compare([open_run(run.folder), open_run(other.folder)], opened=4)
    assert compare_page(both[0]) == compare_page(both[1])


def test_measures_of_a_large_run_are_of_a_sample_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.runs.analysis.MEASURED", 8)
    monkeypatch.setattr("crosswind.runs.analysis.EXPLAINED", 0)
    walked = counted(monkeypatch)
    run_of(played("retrier"), tmp_path)
    said = content(analyse(open_run(tmp_path), baselines=0, opened=0))
    assert len(walked) == said.measured == 8
    assert "over 8 spread evenly" in Reader(html.page(said)).text
    assert said.summary.episodes == 20


def test_showing_an_episode_by_number_parses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_of(played("oracle"), tmp_path)
    monkeypatch.setattr("crosswind.runs.store.iter_briefs", None)
    monkeypatch.setattr("crosswind.runs.store.iter_records", None)
    done = crosswind("show", str(tmp_path), "7", "--json")
    assert json.loads(done.output)["key"] == played("oracle")[6].key


def test_diagnose_reads_what_the_run_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswind.cli.diagnose import app as diagnosing

    def asked(*more: str) -> Any:
        done = CliRunner().invoke(diagnosing, [str(tmp_path), "--json", *more])
        assert done.exit_code == 0, done.output
        return json.loads(done.output)

    failures = [r for r in played("by_name") if r.outcome == "fail"]
    found = {r.key: diagnose(r) for r in failures}
    stored = tuple(
        r.model_copy(update={"mistake": found[r.key].mistake}) if r.key in found else r for r in played("by_name")
    )
    run_of(stored, tmp_path)
    walked = counted(monkeypatch)
    first = asked()
    assert walked == []
    assert {one["key"]: one["why"] for one in first["episodes"]} == {key: one.why for key, one in found.items()}
    assert any(one["tool"] for one in first["episodes"])
    assert asked("--again") == first
    assert [played("by_name")[one["number"] - 1].key for one in first["episodes"]] == [r.key for r in failures]
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(diagnosing, [str(tmp_path)]).output
    assert all(len(line) <= 80 for line in shown.splitlines() if "crosswind show" not in line)
    assert f"crosswind show {tmp_path} {first['episodes'][0]['number']}" in shown
    causes = [one["cause"] for one in first["episodes"]]
    assert all(word in shown for word in " ".join(causes).split())  # whole, not cut to pieces
