"""The front door: what `import crosswind` offers, as somebody in a script or a notebook uses it."""

from __future__ import annotations

import ast
import asyncio
import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crosswind as cw
from crosswind.base.errors import CrosswindError

ROOT = Path(__file__).resolve().parents[2]
SHRUG = "I am sorry, I cannot do this."


def shrug(query: str, tools: cw.SyncToolset) -> str:
    return SHRUG


# ---------------------------------------------------------------- the list of public names


def test_every_public_name_is_there_and_typed() -> None:
    """The block for type checkers and the table of places name the same things in the same modules."""
    tree = ast.parse((ROOT / "src/crosswind/__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname or alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed.pop("metrics") == "crosswind"
    assert typed == cw._NAMES
    assert set(cw.__all__) == {"__version__", "metrics", *typed} == set(dir(cw))
    for name in cw.__all__:
        assert getattr(cw, name) is getattr(cw, name), name


def test_public_names_outlive_packages_of_the_same_name() -> None:
    names = ("agents", "domains", "perturbations", "gate", "train")
    before = [getattr(cw, name) for name in names]
    code = f"import crosswind.cli.app, crosswind as cw; print(*(type(getattr(cw, n)).__name__ for n in {names!r}))"
    done = run_python("-c", code)
    assert done.stdout.split() == [type(thing).__name__ for thing in before]
    for name in names:
        importlib.import_module(f"crosswind.{name}")
    assert [getattr(cw, name) for name in names] == before


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'evalaute'"):
        _ = cw.evalaute


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("numpy", "torch", "yaml", "pandas", "pydantic", "rich", "openai", "anthropic", "mcp")
    code = f"import sys, crosswind; dir(crosswind); print([name for name in {heavy!r} if name in sys.modules])"
    assert run_python("-c", code).stdout.strip() == "[]"


def test_nothing_in_the_package_imports_from_its_root() -> None:
    ours = [path for path in (ROOT / "src/crosswind").rglob("*.py") if path.name != "__init__.py"]
    for path in ours:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "crosswind":
                rooms = [alias.name for alias in node.names if not (ROOT / "src/crosswind" / alias.name).is_dir()]
                assert not rooms, f"{path} imports {rooms} from the root"


def run_python(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


# ---------------------------------------------------------------- documents


def blocks(page: Path) -> list[str]:
    """The Python code of a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def test_documents_templates_and_examples_import_from_the_root_alone() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    code = {f"{page}, block {n}": text for page in pages for n, text in enumerate(blocks(page), 1)}
    examples = [path for path in (ROOT / "examples").rglob("*.py") if ".venv" not in path.parts]  # made by `evaluate`
    files = [*(ROOT / "src/crosswind/data/templates").glob("*.txt"), *examples]
    code |= {str(path): path.read_text(encoding="utf-8") for path in files}
    assert len(code) > 25
    # frameworks import the module that adapts them, and with it their own packages
    inner = re.compile(r"^\s*(from|import) crosswind\.(?!frameworks\.)", re.M)
    assert [where for where, text in code.items() if inner.search(text)] == []
    for where, text in code.items():
        for names in re.findall(r"^from crosswind import (?:\(([^)]*)\)|(.+))$", text, re.M):
            for name in re.findall(r"\w+", "".join(names)):
                assert name in cw.__all__, f"{where}: {name}"
        for name in re.findall(r"\bcw\.(\w+)", text):
            assert name in cw.__all__, f"{where}: cw.{name}"


def test_a_solution_hears_of_a_failed_call_by_a_public_exception() -> None:
    failed = cw.ToolFailed("already_lent", "")
    assert (failed.code, str(failed)) == ("already_lent", "already_lent")
    assert "ToolFailed" in cw.__all__


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_examples_run(page: str, tmp_path: Path) -> None:
    """All blocks of a page, one after the other as a reader would paste them."""
    pytest.importorskip("pandas")
    found = blocks(ROOT / page)
    first = [line for line in found[0].splitlines() if line.strip()]
    assert "frame = run.to_frame()" in found[0]
    assert len(first) <= (5 if page == "README.md" else 6)
    (tmp_path / "pasted.py").write_text("\n".join(found) + "\nassert len(frame) == 20 and not frame.clean.all()\n")
    done = run_python("-W", "error", "pasted.py", cwd=tmp_path)
    assert "all shifted" in done.stdout


DOCTESTS = """
import doctest, importlib, sys
for name in sys.argv[1:]:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed, name
"""


def test_the_examples_in_docstrings_are_true() -> None:
    """In a process of their own: one of them loads a plug-in."""
    pytest.importorskip("pandas")
    modules = [f"crosswind.api.{path.stem}" for path in (ROOT / "src/crosswind/api").glob("[a-z]*.py")]
    assert len(modules) > 4
    run_python("-c", DOCTESTS, "crosswind", *modules, cwd=ROOT)


def test_public_functions_teach_by_example() -> None:
    for name in cw.__all__:
        thing = getattr(cw, name)
        if getattr(thing, "__module__", "").startswith("crosswind.api.") and callable(thing) and name[0].islower():
            assert f"cw.{name}(" in (thing.__doc__ or ""), name


# ---------------------------------------------------------------- evaluate


def test_in_a_running_loop_and_as_a_coroutine() -> None:
    async def shrug_later(query: str, tools: cw.Toolset) -> str:
        return SHRUG

    async def notebook() -> tuple[int, int, str]:
        here = cw.evaluate(shrug_later, "quick", limit=2)
        there = await cw.aevaluate(shrug, "quick", limit=2)
        return len(here), len(there), (await cw.aplay("oracle")).outcome + cw.play("oracle").outcome

    assert asyncio.run(notebook()) == (2, 2, "passpass")


@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_in_a_notebook_ends_the_run(tmp_path: Path) -> None:
    def interrupts(query: str, tools: cw.SyncToolset) -> str:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        return SHRUG

    async def notebook() -> None:
        cw.evaluate(interrupts, "quick", out=tmp_path / "run", concurrency=1)

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(notebook())
    finally:
        loop.close()
    assert cw.load_run(tmp_path / "run").manifest.state == "stopped"
    assert not [thread for thread in threading.enumerate() if thread.name == "crosswind"]


def test_a_run_in_a_folder_is_resumed(tmp_path: Path) -> None:
    played = []

    def agent(query: str, tools: cw.SyncToolset) -> str:
        played.append(query)
        return SHRUG

    out = tmp_path / "run"
    first = cw.evaluate(agent, "quick", limit=3, out=out)
    assert (len(first), len(played), first.folder) == (3, 3, out)
    told = []
    again = cw.evaluate(agent, "quick", limit=6, out=out, progress=lambda done, total: told.append((done, total)))
    assert (len(again), len(played)) == (6, 6)
    assert told[-1] == (6, 6)
    with pytest.raises(CrosswindError, match="different configuration: agent was"):
        cw.evaluate("oracle", "quick", out=out)


def test_without_a_folder_the_run_lives_as_long_as_the_object() -> None:
    run = cw.evaluate("oracle", "quick", limit=2)
    folder = run.folder
    assert len(cw.load_run(folder)) == 2
    del run
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"suite": "qiuck"}, "did you mean quick"),
        ({"suite": "nowhere.yaml"}, "nowhere.yaml"),
        ({"suite": "nosuite"}, "no suite 'nosuite'; known: .*quick, tiers$"),
        ({"suite": {"name": "x"}}, "suite is a dict; expected the name of a suite, a YAML file, or a Suite"),
        ({"domain": "pou"}, "no domain 'pou'; did you mean poi"),
        ({"limit": 0}, "limit is 0; expected 1 or more"),
        ({"trials": 0}, "trials is 0; expected 1 or more"),
        ({"settings": {"temprature": 0}}, "settings: temprature: .*; the settings are max_tokens, temperature"),
        ({"settings": {"temperature": -1}}, "settings: temperature: .*at least 0"),
        ({"agent": "openai:m@http://127.0.0.1:1/v1", "max_cost": 1.0}, "no price is known for openai:m.*'price_in'"),
    ],
)
def test_options_that_cannot_work_are_refused_with_what_to_do(options: dict[str, Any], told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        cw.evaluate(**{"agent": shrug, **options})


def test_a_suite_may_be_an_object_a_file_or_narrowed(tmp_path: Path) -> None:
    suite = cw.Suite(
        name="own",
        domains=("retail",),
        tasks=1,
        conditions=(cw.Condition(name="shift", stack=(cw.Choice(kind="typos"),)),),
    )
    run = cw.evaluate("oracle", suite)
    assert {r.domain for r in run} == {"retail"}
    assert {r.condition for r in run} == {"clean", "shift"}
    path = tmp_path / "own.yaml"
    path.write_text(
        "name: own\ndomains: [retail]\ntasks: 1\nconditions:\n  - name: shift\n    stack: [{kind: typos}]\n"
    )
    assert [r.key for r in cw.evaluate("oracle", path)] == [r.key for r in run]
    assert {r.domain for r in cw.evaluate("oracle", "tiers", domain="banking", tasks=1, limit=3)} == {"banking"}


# ---------------------------------------------------------------- runs


@pytest.fixture(scope="module")
def memoriser() -> cw.Run:
    return cw.evaluate("memoriser", "quick")


def test_a_run_prints_the_table_of_the_command(memoriser: cw.Run, tmp_path: Path) -> None:
    done = run_python("-m", "crosswind", "run", "quick", "--agent", "memoriser", "--out", str(tmp_path / "run"))
    table = [line for line in done.stdout.splitlines() if "│" in line]
    assert table
    assert [line for line in str(memoriser).splitlines() if "│" in line] == table
    assert str(cw.load_run(tmp_path / "run")).splitlines()[:8] == str(memoriser).splitlines()[:8]


def test_html_is_escaped() -> None:
    def agent(query: str, tools: cw.SyncToolset) -> str:
        raise ValueError("<script>alert(1)</script>")

    page = cw.evaluate(agent, "quick", limit=1)._repr_html_()
    assert "<table" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_drops_are_those_of_the_statistics(memoriser: cw.Run) -> None:
    drops = memoriser.drops(by="kind")
    assert drops == cw.metrics.drops(memoriser.records, "kind")
    assert drops["semantic_rename"].delta == -1
    assert "semantic_rename" in str(drops)
    assert "<td>semantic_rename</td>" in drops._repr_html_()
    with pytest.raises(CrosswindError, match=r"not grouped by 'tiers'; groupings are all, condition"):
        memoriser.drops(by="tiers")  # type: ignore[arg-type]


def test_a_frame_has_a_row_per_episode(memoriser: cw.Run) -> None:
    pandas = pytest.importorskip("pandas")
    frame = memoriser.to_frame()
    assert len(frame) == len(memoriser) == 20
    wanted = (
        "key task domain family level kind tier axis severity condition clean outcome passed refuse exposed stage cause"
    )
    assert set(f"{wanted} steps tokens seconds cost".split()) <= set(frame.columns)
    one = next(r for r in memoriser if not r.clean and not r.passed)
    row = frame.set_index("key").loc[one.key]
    assert (row.kind, row.tier, row.axis, row.severity) == (one.kinds[0], one.tier, one.axis, one.severity)
    assert (row.outcome, bool(row.passed), row.stage, row.cause) == (one.outcome, False, one.stage, one.cause)
    assert (row.steps, row.seconds) == (len(one.steps), one.usage.seconds)
    assert frame[frame.clean].exposed.isna().all()
    assert frame.passed.mean() == sum(r.passed for r in memoriser) / 20
    assert frame.clean_passed.notna().sum() == 12  # four of sixteen shifted tasks are to be refused
    assert isinstance(frame, pandas.DataFrame)


def test_a_frame_of_errors_has_no_verdict_in_it() -> None:
    pytest.importorskip("pandas")

    async def offline(query: str, tools: cw.Toolset) -> str:
        raise cw.InfrastructureError("gone")

    from crosswind.runs import runner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "PAUSES", ())
        run = cw.evaluate(offline, "quick", limit=2)
    assert run.to_frame().passed.isna().all()
    assert "2 ended in infrastructure errors" in str(run)
    assert run.gate(0.5).verdict == "infrastructure"


def test_without_pandas_the_error_says_what_to_install(memoriser: cw.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(CrosswindError, match="run: pip install pandas"):
        memoriser.to_frame()


def test_the_report_and_the_comparison_are_pages(memoriser: cw.Run, tmp_path: Path) -> None:
    page = memoriser.report(tmp_path / "report.html", baselines=0, episodes=1)
    assert "memoriser" in page.read_text()
    found = memoriser.compare(cw.evaluate("oracle", "quick"))
    assert "oracle solves 100" in found.verdict
    assert "perception" in str(found)
    assert "<table" in found._repr_html_()
    assert "oracle" in found.report(tmp_path / "compare.html").read_text()
    with pytest.raises(CrosswindError, match="cannot be written"):
        memoriser.report(tmp_path / "no" / "folder.html", baselines=0, episodes=0)
    with pytest.raises(CrosswindError, match="takes two or more runs"):
        cw.compare(memoriser)


def test_the_gate_gives_a_verdict_that_is_true_or_false(memoriser: cw.Run) -> None:
    oracle = cw.evaluate("oracle", "quick")
    verdict = oracle.gate(max_drop={"all": 0.9}, min_clean=0.1)
    assert verdict
    assert verdict.passed
    worse = cw.gate(memoriser, {"all": 0.1}, baseline=oracle)
    assert not worse
    assert worse.verdict in ("fail", "inconclusive")
    assert "all:" in str(worse)
    rules = [f.rule for f in memoriser.gate(["tier=0.5"]).findings]
    assert rules == [*["tier=0.5"] * 3, "min-clean=0.5", *["better-than-trivial"] * 2]
    with pytest.raises(CrosswindError, match="no group of episodes is called 'teir'"):
        memoriser.gate({"teir": 0.1})


# ---------------------------------------------------------------- one episode


def test_draw_play_judge_and_show() -> None:
    drawn = cw.draw("poi", "book_visit", ["semantic_rename:3"], seed=1)
    assert [layer.kind for layer in drawn.layers] == ["semantic_rename"]
    episode = cw.play("memoriser", drawn)
    assert episode == cw.play("memoriser", family="book_visit", perturb="semantic_rename:3", seed=1).model_copy(
        update={"usage": episode.usage, "seed": episode.seed}
    )
    assert cw.judge(episode).outcome == episode.outcome == "fail"
    assert "semantic_rename" in cw.show(episode)
    assert cw.certify("poi", drawn.base, drawn.layers).budget == drawn.certificate.budget


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: cw.draw("poo"), "no domain 'poo'"),
        (lambda: cw.draw("poi", "book_vist"), "no family 'book_vist' in poi; did you mean book_visit"),
        (lambda: cw.draw("poi", perturb=["typo"]), "no perturbation 'typo'; did you mean typos"),
        (lambda: cw.draw("poi", perturb=["typos:9"]), "is not one of 1 to 5; expected KIND or KIND:SEVERITY"),
        (lambda: cw.draw("poi", split="tset"), "no split 'tset'"),  # type: ignore[arg-type]
        (lambda: cw.play("oracle", "poi"), "expected what `draw` returns"),  # type: ignore[arg-type]
        (lambda: cw.certify("poi", "book_visit", [{"kind": "typo"}]), "no perturbation 'typo'"),
        (lambda: cw.draw("poi", perturb=["nope"]), "no perturbation 'nope'; `crosswind catalog kinds` lists all"),
        (lambda: cw.train(method="foo"), "method is 'foo'; expected one of sft, paft, grpo"),  # type: ignore[arg-type]
        (lambda: cw.load_run("nowhere"), "give the folder of a run"),
    ],
)
def test_mistakes_are_told_with_what_to_do(ask: Callable[[], Any], told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        ask()


EVALUATE: Any = cw.evaluate  # as someone without a type checker calls it


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: EVALUATE("oracle", tasks="three"), cw.CrosswindError, "tasks is 'three'; expected a whole number"),
        (lambda: EVALUATE("oracle", seed=-1), cw.CrosswindError, "seed is -1; expected 0 or more"),
        (lambda: EVALUATE("oracle", episode_timeout="9"), cw.CrosswindError, "episode_timeout is '9'; expected a"),
        (lambda: EVALUATE("oracle", limt=3), TypeError, r"evaluate\(\): .* 'limt'; did you mean limit\?"),
        (lambda: EVALUATE(3), cw.CrosswindError, "the agent 3 is int, which is not an agent; expected a function"),
        (
            lambda: cw.gate(EVALUATE("oracle", limit=4), ["clean=0.1"]),
            cw.CrosswindError,
            "give baseline DIR, or use min_cl",
        ),
    ],
)
def test_errors_name_the_argument(call: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        call()


def test_long_values_have_short_forms() -> None:
    drawn = cw.draw("poi", "book_visit", ["semantic_rename"], seed=1)
    run = cw.evaluate("oracle", limit=4)
    for one in (drawn, drawn.certificate, run.records[0], run.gate(0.9)):
        assert len(repr(one)) < 160, one
    assert "semantic_rename" in repr(drawn)
    assert "replay" in repr(drawn.certificate)
    assert not any("--" in note for note in run.gate().notes)
    with pytest.raises(AttributeError, match="did you mean doc"):
        cw.ToolSpec("look", "Looks.").description  # noqa: B018
