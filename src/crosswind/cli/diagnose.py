"""`diagnose`: why episodes of a run failed, and through which channel they failed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, RunFolder, warn_of_damage
from crosswind.cli.progress import Display

if TYPE_CHECKING:
    from crosswind.episodes.brief import Told
    from crosswind.episodes.record import Record
    from crosswind.metrics.diagnosis import Diagnosis
    from crosswind.metrics.diagnosis.repair import Repair
    from crosswind.runs.store import AnyRun

    Found = list[tuple[Told, Diagnosis]]

EXAMPLES = 3  # reasons that the table gives for each cause
app = App()


@app.command(
    epilog=epilog(
        "crosswind diagnose runs/mine",
        "crosswind diagnose runs/mine --repair --limit 20",
        """crosswind diagnose runs/mine --json | jq '.episodes[] | select(.cause == "gave up")'""",
    )
)
def diagnose(
    folder: RunFolder,
    repair: Annotated[
        bool, Option("--repair", help="Replay failed episodes with one channel at a time unperturbed.")
    ] = False,
    agent: Annotated[str, Option(show_default="the run's", help="Agent to replay with, as for `run --agent`.")] = "",
    limit: Annotated[int, Option(min=1, help="With --repair: maximum number of failed episodes to replay.")] = 50,
    again: Annotated[bool, Option("--again", help="Recompute all diagnoses instead of using the stored ones.")] = False,
    json_: Json = False,
) -> None:
    """Say where and why each failed episode went wrong.

    The table names the stage (where) and the cause (why) of each failure. A run stores both when it plays an episode;
    missing ones are computed now, by comparing the trajectory with the certified solution.

    --repair replays each failed episode from the point of failure several times, each time with the perturbations of
    one channel removed (query, tools, observations or rules). A second table counts how often that restores success.
    Agents that cannot continue a conversation replay the episode from the start.
    """
    from crosswind.runs.store import open_run

    run = open_run(folder, damaged=True)
    warn_of_damage(run)
    found = _found(run, again, json_)
    repairs: list[Repair] = []
    if repair:
        spec = agent or str(run.manifest.agent)
        if not spec:
            raise CrosswindError(f"{folder} does not say which agent played; name it with --agent")
        some = found[:limit]
        records = run.whole(one for one, _ in some)
        repairs = _repairs([(record, said) for record, (_, said) in zip(records, some, strict=True)], spec, json_)
    if json_:
        terminal.print_json(_data(found, _numbers(run), repairs, repair))
        return
    _print(found, _numbers(run), len(run.told), folder)
    if repair:
        _print_repairs(repairs)


def _found(run: AnyRun, again: bool, quiet: bool) -> Found:
    """Every failure with what is known of it, in the order of the run."""
    from crosswind.metrics.diagnosis import diagnose as explain
    from crosswind.metrics.diagnosis import stored

    failed = [one for one in run.told if one.outcome == "fail"]
    known = {one.key: said for one in failed if not again and (said := stored(one))}
    unknown = [one for one in failed if one.key not in known]
    with Display("diagnosing", quiet=quiet) as display:
        for n, record in enumerate(run.each(unknown), 1):
            display.say(f"{n} of {len(unknown)}", terminal.short(record.key, 60))
            known[record.key] = explain(record)
    return [(one, known[one.key]) for one in failed]


def _repairs(found: list[tuple[Record, Diagnosis]], spec: str, quiet: bool) -> list[Repair]:
    """Play episodes again, one channel repaired at a time."""
    import asyncio

    from crosswind.core.draw import Drawn
    from crosswind.core.types import Trajectory
    from crosswind.episodes.play import Opening, play
    from crosswind.metrics.diagnosis.repair import repair
    from crosswind.models.source import AgentSettings
    from crosswind.models.spec import open_agent

    async def run() -> list[Repair]:
        source = open_agent(spec, AgentSettings())

        async def again(drawn: Drawn, opening: Opening | None) -> Trajectory:
            return await play(drawn, source.make(drawn), source.name, opening, ending=found[0][0].ending)

        out = []
        try:
            with Display("repairing", quiet=quiet) as display:
                for n, (record, said) in enumerate(found, 1):
                    display.say(f"{n} of {len(found)}", terminal.short(record.key, 60))
                    named = record.model_copy(update={"stage": said.stage, "cause": said.cause})
                    out.append(await repair(named, again, upto=said.step, resumes=source.resumes))
        finally:
            await source.aclose()
        return out

    return asyncio.run(run())


def _numbers(run: AnyRun) -> dict[str, int]:
    """The number by which `show` knows each episode."""
    from crosswind.report.show import numbered

    return {one.key: number for number, one in numbered(run.told)}


def _data(found: Found, numbers: dict[str, int], repairs: list[Repair], repaired: bool) -> dict[str, Any]:
    from crosswind.metrics.diagnosis.repair import agreement

    out: dict[str, Any] = {
        "stages": dict(Counter(said.stage for _, said in found).most_common()),
        "causes": dict(Counter(said.cause for _, said in found).most_common()),
        "episodes": [
            {
                "number": numbers[r.key],
                "key": r.key,
                "condition": r.condition,
                **said.model_dump(exclude={"key"}),
                "parameter": said.key,
            }
            for r, said in found
        ],
    }
    if repaired:
        out["repairs"] = [{**r.model_dump(), "confirmed": r.confirmed} for r in repairs]
        out["agreement"] = agreement(repairs).model_dump()
    return out


def _print(found: Found, numbers: dict[str, int], episodes: int, folder: Path) -> None:
    from crosswind.metrics import formats

    console = terminal.console()
    if not found:
        console.print(f"None of {episodes} episodes failed.")
        return
    table = terminal.table_of("stage", "cause", "failures", "share", "number", "why")
    counts = Counter((said.stage, said.cause) for _, said in found)
    for (stage, cause), n in counts.most_common():
        these = [(r, said) for r, said in found if (said.stage, said.cause) == (stage, cause)]
        whys = dict[str, tuple[int, int]]()  # reason -> the first episode with it, and its step
        for r, said in these:
            whys.setdefault(said.why, (numbers[r.key], said.step))
        shown = list(whys.items())[:EXAMPLES]
        lines = [terminal.short(f"step {step}: {why}", 120) for why, (_, step) in shown]
        more = [f"and {formats.many(len(whys) - len(shown), 'other reason')}"] if len(whys) > len(shown) else []
        for nth, (line, (_, (number, _))) in enumerate(zip(lines, shown, strict=True)):
            head = (
                ("", "", "", "")
                if nth
                else (terminal.one_line(stage), terminal.one_line(cause), str(n), f"{n / len(found):.0%}")
            )
            table.add_row(*head, str(number), line)
        for line in more:
            table.add_row("", "", "", "", "", line)
    console.print(terminal.fitted(table))
    console.print(
        f"{len(found)} of {episodes} episodes failed. To see one by its number: crosswind show {folder} "
        f"{numbers[found[0][0].key]}",
        soft_wrap=True,
    )


def _print_repairs(repairs: list[Repair]) -> None:
    from crosswind.metrics.diagnosis.repair import CHANNELS, agreement

    console = terminal.console()
    table = terminal.table_of("cause", "replayed", *(f"{c} repaired" for c in CHANNELS))
    for cause in dict.fromkeys(r.cause for r in repairs):
        these = [r for r in repairs if r.cause == cause]
        cells = []
        for channel in CHANNELS:
            tried = [r for r in these if channel not in r.untried]
            cells.append(f"{sum(channel in r.helped for r in tried)} of {len(tried)}" if tried else "")
        table.add_row(cause, str(len(these)), *cells)
    console.print(table)
    total = agreement(repairs)
    console.print(
        f"{total.steady} of {total.tried} episodes failed again with nothing repaired. Repairing a channel restored "
        "success "
        f"in {total.agree + total.disagree}: in {total.agree}, the cause can come from that channel; in "
        f"{total.disagree}, it cannot. In {total.silent}, no repair helped or none was possible.\n"
        "A repair shows the channel through which an episode failed, not the cause."
    )
