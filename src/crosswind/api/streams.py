"""Play streams and careers from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from crosswind.api.arguments import at_least, naming_arguments
from crosswind.api.evaluate import Told, agent_settings, blocking, stored_run, watching
from crosswind.api.run import Run
from crosswind.core.types import Ending
from crosswind.episodes.career import CareerPlan
from crosswind.episodes.stream import Plan, StreamPlan, load_plan, with_changes
from crosswind.metrics.streams import StreamSummary, summarise
from crosswind.models.notes import SIZE, with_memory
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.report import streams as report
from crosswind.report.table import as_text
from crosswind.runs.streams import play_streams


class StreamRun(Run):
    """The episodes of one agent over streams or careers. `stream` makes it."""

    @property
    def figures(self) -> StreamSummary:
        """Success over time, what changes cost, and what needed memory."""
        return summarise(self.records)

    def __str__(self) -> str:
        found = self.figures
        return f"{as_text(report.HEADS, report.rows(found))}\n{report.sentence(found, self.manifest.agent)}"


@naming_arguments
async def astream(
    agent: object,
    plan: str | os.PathLike[str] | Plan = "evolving",
    *,
    seed: int = 0,
    streams: int = 1,
    domain: str | None = None,
    episodes: int | None = None,
    frozen: bool = False,
    memory: Literal["", "notes"] = "",
    notes_size: int = SIZE,
    concurrency: int = 1,
    out: str | os.PathLike[str] | None = None,
    settings: AgentSettings | Mapping[str, Any] | None = None,
    ending: Ending | None = None,
    progress: Told | None = None,
) -> StreamRun:
    """Play an agent through streams or careers and return the run. `await cw.astream(...)` does it in a running loop.

    >>> import crosswind as cw
    >>> run = cw.stream("memoryless", "careers", domain="poi", episodes=12)
    >>> run.figures.career.independent.value, run.figures.career.dependent.value
    (1.0, 0.0)

    Args:
        plan: The name of a stream, a YAML file, or a `StreamPlan` or `CareerPlan`.
        seed: Equal seeds give equal streams.
        streams: Streams per domain.
        domain: Stay in this domain.
        episodes: Episodes per stream (default: the plan's).
        frozen: Keep the first release, or state every fact, for comparison.
        memory: "notes" gives the agent tools by which it keeps notes; by default it has what it keeps itself.
        notes_size: Largest number of characters in the notes.
        concurrency: Streams at a time. The episodes of one stream always follow each other.
        out: Folder for the run. If it holds a run of the same agent and plan, that run is resumed. By default the run
            is in a temporary folder, which is deleted with the run.
        settings: Options of a model named by a spec, such as {"temperature": 0}.
        ending: How the agent ends an episode, as for `evaluate`.
        progress: Called after each episode with the number of finished and of all episodes.
    """
    at_least(1, streams=streams, episodes=episodes, notes_size=notes_size, concurrency=concurrency)
    at_least(0, seed=seed)
    chosen = plan if isinstance(plan, StreamPlan | CareerPlan) else load_plan(os.fspath(plan))
    changes: dict[str, object] = {"episodes": episodes} if episodes else {}
    chosen = with_changes(chosen, {**changes, "domains": (domain,)} if domain else changes)
    source = with_memory(open_agent(agent, agent_settings(settings), ending), memory, notes_size)
    watch = watching(progress)
    options: dict[str, Any] = {"seed": seed, "streams": streams, "frozen": frozen, "concurrency": concurrency}
    play = partial(play_streams, chosen, source, **options, watch=watch)
    return await stored_run(StreamRun, play, source, out)


stream = blocking(astream)
