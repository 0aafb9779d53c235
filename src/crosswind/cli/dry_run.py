"""`crosswind run --dry-run`: how much a run would take, without asking the agent."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.base import terminal
from crosswind.cli.progress import Display, span

if TYPE_CHECKING:
    from crosswind.core.draw import Drawn
    from crosswind.core.types import Ending
    from crosswind.episodes.suite import Suite
    from crosswind.models.source import AgentSource

DRAWN = 2000  # episodes that a dry run draws at most
WEIGHED = 300  # of these, whose tokens it counts
REQUEST = 2.0  # seconds that a request is assumed to take


def forecast(
    suite: Suite,
    source: AgentSource,
    *,
    seed: int,
    trials: int,
    limit: int | None,
    concurrency: int,
    json_: bool,
    out: Path | None = None,
) -> None:
    """How much a run would be: from drawing up to `DRAWN` episodes and walking the certified way through them.

    Trials repeat the same draws, so one trial is drawn and counted as often as there are trials. What a folder `out`
    holds already is taken off, as the share of the whole that it is.
    """
    from crosswind.episodes.schedule import Schedule
    from crosswind.episodes.suite import BANDS, CLEAN, band_of
    from crosswind.models.source import CHARACTERS
    from crosswind.models.spec import ScriptedSource

    schedule = Schedule(suite, seed, limit=None if limit is None else ceil(limit / trials))
    rows: dict[str, Forecast] = {}
    shifted, met = Forecast(), Forecast()  # without the clean ones, and all
    asked = told = turns = 0
    began = time.perf_counter()
    with Display("drawing", quiet=json_) as display:
        for n, episode in enumerate(islice(filter(None, schedule), DRAWN), 1):
            display.say(f"{n} episodes")
            if n <= WEIGHED:
                one_in, one_out = _tokens(episode.drawn, source.ending)
                asked, told = asked + one_in, told + one_out
                turns += len(episode.drawn.certificate.gold.steps) + 1
            band = band_of([layer.kind for layer in episode.drawn.layers])
            for row in (rows.setdefault(band, Forecast()), met, *([] if band == CLEAN else [shifted])):
                row.add(episode.task_id)
    rows = {name: rows[name] for name in BANDS if name in rows}
    drawn, once = met.episodes, schedule.total
    total = once * trials if limit is None else min(limit, once * trials)
    scale = total / drawn if drawn else 0.0
    done = min(total, _finished(out))
    left = (total - done) / total if total else 0.0
    weighed = left * total / min(drawn, WEIGHED) if drawn else 0.0
    drawing = left * (time.perf_counter() - began) * (once / drawn if drawn else 0.0)
    tokens = round(asked * weighed), round(told * weighed)
    cost = source.price.of(*tokens) if source.price else None
    requests = 0 if isinstance(source, ScriptedSource) else round(turns * weighed)
    seconds = max(drawing, requests * REQUEST / concurrency)
    smallest = {name: row.detectable for name, row in rows.items() if name != CLEAN}
    smallest["all"] = shifted.detectable
    if json_:
        terminal.print_json(
            {
                "suite": suite.name,
                "agent": source.name,
                "episodes": total,
                "left": total - done,
                "exact": schedule.whole,
                "by_tier": {name: round(row.episodes * scale) for name, row in rows.items()},
                "tasks": {**{name: len(row.sizes) for name, row in rows.items()}, "all": len(met.sizes)},
                "input_tokens": tokens[0],
                "output_tokens": tokens[1],
                "cost": cost,
                "currency": source.price.currency if source.price else None,
                "requests": requests,
                "seconds": round(seconds),
                "detectable": smallest,
            }
        )
        return
    console = terminal.console()
    table = terminal.table_of("tier", "episodes", "tasks", "smallest detectable drop")
    for name, row in rows.items():
        shows = "" if name == CLEAN else _points(smallest[name])
        table.add_row(name, str(round(row.episodes * scale)), str(len(row.sizes)), shows)
    table.add_row("all", str(total), str(len(met.sizes)), _points(smallest["all"]), style="bold")
    console.print(table)
    if done:
        console.print(
            f"{done} of {total} episodes are in {terminal.safe(str(out))}; tokens, cost and time are for the other "
            f"{total - done}.",
            soft_wrap=True,
        )
    about = "" if schedule.whole else f", estimated from the first {drawn}, whose tasks the table counts"
    price = "no price is known (--price-in, --price-out)"
    if source.price and cost is not None:
        price = f"cost about {cost:.4g} {source.price.currency}"
    pace = (
        f"{requests:,} requests of {REQUEST:g} s each, {concurrency} at a time"
        if requests
        else "only to generate the episodes"
    )
    console.print(
        f"{total} episodes{about}. About {tokens[0]:,} input and {tokens[1]:,} output tokens for the certified "
        "solutions, at "
        f"{CHARACTERS} characters a token; agents that take detours use more; "
        f"{price}.\n"
        f"Time: about {span(seconds)} ({pace}).\n"
        "Smallest detectable drop: detected with 80 % power at the 5 % level, if 10 % of pairs change by chance and "
        "all "
        "episodes of a task end alike. More tasks make it smaller."
        f"{_to_see(smallest['all'])}\n"
        f"Dry run: no episode was played, and {source.name} was not called."
    )


def _finished(out: Path | None) -> int:
    """Episodes that a folder holds and that are not played again."""
    from crosswind.runs.store import MANIFEST, iter_briefs

    if out is None or not (out / MANIFEST).exists():
        return 0
    return sum(brief.outcome != "error" for brief in iter_briefs(out, None, []))


@dataclass(slots=True)
class Forecast:
    """Episodes of one band that were drawn, by task."""

    sizes: dict[str, int] = field(default_factory=dict)  # task -> its episodes

    def add(self, task: str) -> None:
        self.sizes[task] = self.sizes.get(task, 0) + 1

    @property
    def episodes(self) -> int:
        return sum(self.sizes.values())

    @property
    def detectable(self) -> float | None:
        """The smallest drop that these show if pairs of one task are all alike.

        n pairs are then worth n^2 / (sum of the squares of the tasks' numbers of pairs) independent ones: as many as
        there are tasks where all have equally many, fewer where they have not.
        """
        from crosswind.metrics import minimum_detectable_effect

        if not self.sizes:
            return None
        worth = self.episodes**2 / sum(size**2 for size in self.sizes.values())
        return minimum_detectable_effect(int(worth + 1e-9))


SOUGHT = (0.2, 0.1, 0.05)  # drops that are worth seeing


def _to_see(smallest: float | None) -> str:
    """How many tasks would show a smaller drop, and how to play them."""
    from crosswind.metrics.stats import pairs_needed

    sought = next((drop for drop in SOUGHT if smallest is None or drop < smallest), None)
    tasks = pairs_needed(sought) if sought else None
    if sought is None or tasks is None:
        return ""
    more = "use --tasks, more domains or a larger suite (--trials only repeats the same tasks)"
    return f" To detect a drop of {_points(sought)}, play about {tasks} tasks: {more}."


def _points(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.0f} points"


def _tokens(drawn: Drawn, ending: Ending) -> tuple[int, int]:
    """Tokens in and out on the certified way: the whole conversation is sent again at every turn."""
    from crosswind.core.session import Session
    from crosswind.episodes.play import result_text
    from crosswind.models.source import CHARACTERS

    certificate = drawn.certificate
    session = Session.of(drawn.domain, certificate.task, certificate.layers, ending=ending)
    tools = sum(len(json.dumps(tool.function())) for tool in session.tools())
    context = len(session.policy()) + len(session.query()) + tools
    asked, told = context, len(certificate.gold.final)
    for step in certificate.gold.steps:
        sent = len(json.dumps({"name": step.call.tool, "arguments": dict(step.call.args)}, default=str))
        context += sent + len(result_text(step.result))
        asked, told = asked + context, told + sent
    return asked // CHARACTERS, told // CHARACTERS
