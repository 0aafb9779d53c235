"""A run and its episodes in the terminal. All text from elsewhere goes through `terminal.safe`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.episodes.brief import Brief, Told
from crosswind.metrics import formats
from crosswind.metrics.groups import Some
from crosswind.report.episode import Exchange, Line, ending, lines_of
from crosswind.runs.reading import Reading
from crosswind.runs.store import AnyRun

COLOURS = {"pass": "green", "fail": "red", "error": "yellow", "unjudged": "cyan"}


def numbered(told: Iterable[Some]) -> Iterator[tuple[int, Some]]:
    """Episodes with their numbers: the line in the run, from 1, or the place among those given."""
    for place, one in enumerate(told, 1):
        yield (one.at + 1 if isinstance(one, Brief) and one.at >= 0 else place), one


def pick(told: Sequence[Some], wanted: str) -> tuple[int, Some]:
    """An episode by its number in the list, its key, or a part of the key that only one has."""
    records = list(numbered(told))
    if (
        wanted.isascii()
        and wanted.isdigit()
        and len(wanted) < 19
        and (at := [(n, one) for n, one in records if n == int(wanted)])
    ):
        return at[0]
    if wanted and not wanted.strip("0"):
        raise CrosswindError(f"no episode {terminal.short(wanted, 40)!r}; numbers start at 1 and end at {len(records)}")
    exact = [(n, r) for n, r in records if r.key == wanted]
    found = exact or [(n, r) for n, r in records if wanted in r.key]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CrosswindError(
            f"no episode {terminal.short(wanted, 120)!r} among {len(records)}; give a number or a part of a key from "
            "`crosswind show DIR`"
        )
    few = ", ".join(f"{n} ({terminal.short(r.key, 80)})" for n, r in found[:3])
    raise CrosswindError(f"{len(found)} episodes have {terminal.short(wanted, 120)!r} in their key: {few}, ...")


def listing(console: Console, run: AnyRun, chosen: Sequence[tuple[int, Told]], limit: int) -> None:
    """The episodes of a run, one line each, numbered by their place in it."""
    table = terminal.table_of("#", "outcome", "condition", "task", "steps", "ended", "cause")
    for n, record in chosen[:limit]:
        table.add_row(
            str(n),
            Text(record.outcome, style=COLOURS[record.outcome]),
            terminal.short(record.condition, 40),
            terminal.short(record.task_id, 60),
            f"{record.length}/{record.budget}",
            record.ended,
            terminal.short(record.cause or "", 30),
        )
    if chosen:
        console.print(table)
    some = f"{min(len(chosen), limit)} of " if len(chosen) > limit else ""
    more = "; --limit lists more" if len(chosen) > limit else ""
    matching = f"{len(chosen)} of " if len(chosen) < len(run.told) else ""
    agent, folder = terminal.short(run.manifest.agent, 80), shlex.quote(terminal.safe(str(run.folder)))
    console.print(Text(f"{some}{matching}{formats.many(len(run.told), 'episode')} by {agent}{more}."))
    if chosen:
        console.print(Text(f"Open one by its number: crosswind show {folder} {chosen[0][0]}"))


def episode(console: Console, shown: Reading, number: int | None = None) -> None:
    """One episode: what the agent saw beside what the world saw and the certified way, the divergence marked."""
    record = shown.record
    nth = "" if number is None else f"{number}  "
    console.print(Text(f"{nth}{terminal.safe(record.key)}", style="bold"))
    console.print(Text(f"played by {terminal.safe(record.agent)}"))
    console.print(Text(f"user: {terminal.safe(record.query[:2000])}", style="cyan"))
    for layer, receipt in zip(record.layers, record.receipts, strict=False):
        met = "never met"
        if receipt.fired:
            where = "before the first call" if receipt.step == 0 else f"at step {receipt.step}"
            met = f"met {where}, {'seen' if receipt.seen else 'not seen'}"
        fields = json.dumps({k: v for k, v in layer.items() if k != "kind"}, ensure_ascii=False)
        text = f"obstacle: {terminal.short(str(layer.get('kind')), 60)}, {met} {terminal.short(fields, 160)}"
        console.print(Text(text, style="yellow"))
    if record.refuse:
        console.print(Text(f"should be refused: {terminal.short(shown.proof, 300)}", style="yellow"))
    table = terminal.table_of("step", "what the agent saw", "what reached the world", "the certified solution")
    for line in lines_of(shown):
        table.add_row(*_cells(line), style="on grey15" if line.diverges else "")
    console.print(table)
    mark = Text("<< first divergence", style="bold red") if shown.final_diverges else Text("")
    console.print(Text(f"agent: {terminal.safe(ending(record)[:2000]) or '(says nothing)'} ", style="cyan") + mark)
    if shown.gold_final:
        console.print(Text(f"certified: {terminal.short(shown.gold_final, 2000)}"))
    if shown.missing:
        console.print(Text(terminal.safe(shown.missing), style="yellow"))
    console.print(f"ended: {record.ended} after {formats.many(len(record.steps), 'step')}; budget {record.budget}")
    if record.why:
        if record.ended == "exception":
            console.print(Text(f"the agent's code raised {terminal.safe(record.why)}", style="yellow"))
        else:
            blamed = "the infrastructure failed" if record.outcome == "error" else "why it ended"
            console.print(Text(f"{blamed}: {terminal.short(record.why, 600)}", style="yellow"))
    for check in record.checks:
        passed = "ok " if check.passed else "NOT"
        console.print(Text(f"  {passed} {terminal.short(check.name, 60)}: {terminal.short(check.why, 300)}"))
    if shown.diagnosis is not None:
        found = shown.diagnosis
        told = f"{found.cause} ({found.stage}): {terminal.short(found.why, 600)}"
        console.print(Text(told, style="red"))
    console.print(Text(record.outcome.upper(), style=f"bold {COLOURS[record.outcome]}"))


def _cells(line: Line) -> list[Text]:
    number = Text("" if line.step is None else str(line.step))
    for kind in line.met:
        number.append(f"\n[{terminal.short(kind, 40)}]", style="yellow")
    if line.diverges:
        number.append("\n>> first\n   divergence", style="bold red")
    agent = _exchange(line.agent) if line.agent else Text("-", style="dim")
    for heard in line.heard:
        agent.append(f"\nuser: {terminal.short(heard, 400)}", style="cyan")
    world = Text("\n").join(map(_exchange, line.world)) if line.world else Text("-", style="dim")
    return [number, agent, world, _exchange(line.gold) if line.gold else Text("-", style="dim")]


def _exchange(one: Exchange) -> Text:
    text = Text(terminal.short(one.call, 200))
    return text.append(
        f"\n{'!' if one.failed else '='} {terminal.short(one.result, 240)}", style="red" if one.failed else "dim"
    )
