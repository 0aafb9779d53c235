"""`crosswind gate`: a verdict for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter, Exit, Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, RunFolder, warn_of_damage, write_page

if TYPE_CHECKING:
    from crosswind.gate.gate import Outcome

GATE_EPILOG = epilog(
    "crosswind gate runs/new --max-drop tier=0.10 --min-clean 80%",
    "crosswind gate runs/new --baseline runs/old --max-drop all=0.05 --max-drop clean=0.05",
    "crosswind gate runs/new --config crosswind.yaml --junit gate.xml --markdown summary.md",
    exits={
        0: "pass",
        1: "fail",
        3: "no verdict: the run is unfinished, or too many episodes were lost to infrastructure",
        4: "inconclusive",
    },
)
app = App()


def _share(help_: str, least: float, most: float, default: str = "") -> Any:
    """An option that takes a share: 0.9 or 90%."""

    def parse(text: str) -> float:
        from crosswind.gate.gate import parse_share

        try:
            share = parse_share(text)
        except ValueError:
            raise BadParameter(f"{text!r} is not a share; write it as 0.9 or 90%") from None
        if not least <= share <= most:
            raise BadParameter(f"got {text}; expected a share from {least:g} to {most:g}")
        return share

    return Option(parser=parse, metavar="SHARE", help=help_, show_default=default or False)


@app.command(epilog=GATE_EPILOG)
def gate(
    folder: RunFolder,
    baseline: Annotated[
        Path | None, Option(metavar="DIR", help="Earlier run to compare with, of the same suite, seed and trials.")
    ] = None,
    max_drop: Annotated[
        list[str], Option(metavar="NAME=SHARE", help="Largest allowed drop in success, such as tier=0.10; repeatable.")
    ] = [],  # noqa: B006
    partial: Annotated[
        bool, Option("--partial", help="Accept a baseline that shares less than half of the episodes.")
    ] = False,
    min_clean: Annotated[
        float | None, _share("Minimum clean success on solvable tasks; 0: no minimum.", 0, 0.999, "0.5")
    ] = None,
    min_refusals: Annotated[
        float | None, _share("Of the tasks to refuse, the minimum share that is correctly refused.", 0, 0.999)
    ] = None,
    max_false_refusals: Annotated[
        float | None, _share("Of the solvable tasks, the maximum share that is refused.", 0.001, 1)
    ] = None,
    min_stability: Annotated[
        float | None, _share("Streams: minimum success on tasks that no release affects.", 0, 0.999)
    ] = None,
    max_recovery: Annotated[
        int | None,
        Option(min=0, metavar="N", help="Streams: at least 80 % of changes must be recovered from within N episodes."),
    ] = None,
    min_gain: Annotated[
        list[str],
        Option(
            metavar="NAME=SHARE",
            help="With a baseline: minimum required rise in success, such as tier=0.05; repeatable.",
        ),
    ] = [],  # noqa: B006
    max_refusal_drop: Annotated[
        float | None, _share("With a baseline: largest allowed drop in correct refusals.", 0, 0.999)
    ] = None,
    max_errors: Annotated[
        float | None, _share("Give no verdict if a larger share of episodes was lost to infrastructure errors.", 0, 1)
    ] = None,
    config: Annotated[
        Path | None, Option(metavar="FILE", help="File with rules.", show_default="crosswind.yaml, if no rule is given")
    ] = None,
    junit: Annotated[Path | None, Option(metavar="FILE", help="Write JUnit XML.")] = None,
    markdown: Annotated[
        Path | None, Option(metavar="FILE", help="Write Markdown; append if FILE is $GITHUB_STEP_SUMMARY.")
    ] = None,
    allow_inconclusive: Annotated[
        bool, Option("--allow-inconclusive", help="Exit with 0 instead of 4 if inconclusive.")
    ] = False,
    allow_unfinished: Annotated[bool, Option("--allow-unfinished", help="Judge a run that is not finished.")] = False,
    json_: Json = False,
) -> None:
    """Judge a run by rules: pass, fail or inconclusive.

    Without a baseline, a drop is clean success minus shifted success over the same tasks. With one, it is the
    baseline's success minus this run's over the same episodes. Only solvable tasks count; refusals have their own
    rules. An agent no better than a trivial one cannot pass. An inconclusive verdict says how many more tasks are
    needed.

    In --max-drop, NAME is one of: all; a grouping (tier, published, axis, cell, kind, condition, domain, family, level,
    severity or kind@severity), which applies the rule to each of its groups; or one group, such as perception,
    semantic_rename or level:3. With a baseline, it may also be clean.
    """
    from crosswind.cli.config import NAME, GateRules, load_config
    from crosswind.gate.gate import examine, parse_rule
    from crosswind.metrics.together import same_ending
    from crosswind.runs.baselines import trivial_of
    from crosswind.runs.store import BriefRun, open_run

    rules, held = [parse_rule(text) for text in max_drop], GateRules()
    if config or (not rules and min_clean is None and Path(NAME).exists()):
        held = load_config(config or NAME).gate
    if baseline is None and held.baseline:
        baseline = Path(held.baseline)
    run = open_run(folder, damaged=True)
    other: BriefRun | None = open_run(baseline, damaged=True) if baseline else None
    runs = [run, other] if other else [run]
    warn_of_damage(*runs)
    same_ending(*runs)
    unfinished = [f"{one.folder}: {one.lacks}" for one in runs if one.lacks and not allow_unfinished]
    outcome = examine(
        run.told,
        rules or held.rules(),
        baseline=other.told if other else None,
        partial=partial,
        min_clean=held.min_clean if min_clean is None else min_clean,
        min_refusals=held.min_refusals if min_refusals is None else min_refusals,
        max_false_refusals=held.max_false_refusals if max_false_refusals is None else max_false_refusals,
        min_stability=held.min_stability if min_stability is None else min_stability,
        max_recovery=held.max_recovery if max_recovery is None else max_recovery,
        gains=[parse_rule(text) for text in min_gain],
        max_refusal_drop=max_refusal_drop,
        max_errors=held.max_errors if max_errors is None else max_errors,
        unfinished=unfinished,
        trivial=trivial_of(run),
        whole=run.whole,
    )
    if json_:
        terminal.print_json(outcome.model_dump(mode="json"))
    else:
        _show(outcome)
    _write_files(outcome, junit, markdown)
    code = 0 if outcome.verdict == "inconclusive" and allow_inconclusive else outcome.exit_code
    raise Exit(code)


def _write_files(outcome: Outcome, junit: Path | None, markdown: Path | None) -> None:
    from crosswind.gate.junit import junit as xml
    from crosswind.gate.markdown import markdown as summary

    for path, text in ((junit, xml), (markdown, summary)):
        if path is None:
            continue
        before = ""
        if path is markdown and str(path) == os.environ.get("GITHUB_STEP_SUMMARY") and path.exists():
            before = path.read_text(encoding="utf-8", errors="replace")
        write_page(path, before + text(outcome), "another path")


def _show(outcome: Outcome) -> None:
    from rich.text import Text

    from crosswind.gate.markdown import cells, levels

    console = terminal.console()
    table = terminal.table_of("check", "before", "after", "change or rate", "pairs", "tasks", "limit", "verdict")
    colour = {"pass": "green", "fail": "red", "inconclusive": "yellow", "infrastructure": "magenta"}
    for finding in outcome.findings:
        row = [Text(terminal.safe(cell)) for cell in cells(finding)]
        row[-1].stylize(colour[finding.verdict])
        table.add_row(*row)
    if outcome.findings:
        console.print(terminal.fitted(table))
        console.print(Text(levels(outcome)))
    for note in outcome.notes:
        console.print(Text(f"note: {terminal.safe(note)}"))
    console.print(Text(terminal.safe(outcome.says), style=f"bold {colour[outcome.verdict]}"))
