"""An episode as JSON: what another process, machine or framework needs to play it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crosswind.core.types import Model
from crosswind.episodes.record import redraw
from crosswind.episodes.schedule import Episode, key_of


class Ticket(Model):
    """Names an episode; `episode` draws it again, so its certificate is checked where it is played."""

    domain: str
    condition: str
    task_id: str
    layers: tuple[dict[str, Any], ...] = ()
    severity: int | None = None
    trial: int = 0

    @classmethod
    def of(cls, episode: Episode) -> Ticket:
        layers = tuple(layer.model_dump(mode="json") for layer in episode.drawn.layers)
        name = episode.drawn.domain.name
        return cls(
            domain=name,
            condition=episode.condition,
            task_id=episode.task_id,
            layers=layers,
            severity=episode.severity,
            trial=episode.trial,
        )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Ticket:
        """A ticket from its JSON."""
        return cls.model_validate_json(json.dumps(data))

    @property
    def key(self) -> str:
        return key_of(self.task_id, self.condition, self.trial)

    def episode(self) -> Episode:
        """The episode, drawn and certified again."""
        drawn = redraw(self.domain, self.task_id, self.layers, self.key)
        return Episode(self.condition, self.task_id, drawn, self.severity, self.trial)
