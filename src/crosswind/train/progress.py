"""How far a training run is, and the runs in between that measure its model: one sort of update for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.episodes.suite import Suite
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.runs import runner


class Halt(Exception):
    """Raised by a progress callback to stop a run: it is saved first, and resumes from there."""


@dataclass(frozen=True, slots=True)
class Update:
    """How far a run is."""

    doing: str  # training, or what it does between
    step: int
    steps: int
    loss: float | None = None
    tokens_per_second: float | None = None
    left: float | None = None  # seconds, as far as one can tell
    reward: float | None = None  # of the step's episodes, in reinforcement


Progress = Callable[[Update], None]


class _Watch:
    """Tells of a run's progress as of a training's."""

    def __init__(self, doing: str, progress: Progress) -> None:
        self.doing, self.progress = doing, progress

    def show(self, progress: runner.Progress) -> None:
        self.progress(Update(self.doing, progress.before + progress.done, progress.total))


async def play_suite(
    agent: str,
    suite: Suite,
    folder: Path,
    settings: AgentSettings,
    *,
    name: str,
    about: dict[str, Any],
    slots: int | None,
    doing: str,
    progress: Progress | None,
    **options: Any,
) -> runner.Ran:
    """Play a suite with a model in this process into a folder, and go on where an earlier call stopped.

    Records call the agent `name` and tell `about` it instead of where its files lie, so that the folder can be moved.
    """
    source = open_agent(agent, settings)
    kept = {key: value for key, value in source.settings.items() if key not in ("model", "adapter")}
    source.name, source.settings = name, {**kept, **about}
    if slots:
        source.slots = slots  # type: ignore[attr-defined]
    watch = _Watch(doing, progress) if progress else None
    try:
        return await runner.run(suite, source, folder, watch=watch, **options)
    finally:
        await source.aclose()
