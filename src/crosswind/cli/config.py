"""A file that says how an agent is tested: `crosswind.yaml`, which `crosswind init` writes.

`run` takes from it what is not given on the command line, `gate` its rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from crosswind.base.errors import CrosswindError
from crosswind.base.yaml_files import Document, read
from crosswind.core.types import Ending, Model
from crosswind.gate.gate import MOST_ERRORS, Rule, parse_share, rule

NAME = "crosswind.yaml"
Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]
Share = Annotated[float, BeforeValidator(lambda given: parse_share(given) if isinstance(given, str) else given)]


class Budgets(Model):
    """Where a run stops by itself; what is left out has no limit."""

    max_tokens: int | None = Field(default=None, ge=1)  # of all episodes together, in and out
    max_cost: float | None = Field(default=None, gt=0)  # in the currency of the price list
    deadline: float | None = Field(default=None, gt=0)  # seconds for the whole run
    episode_timeout: float | None = Field(default=None, gt=0)  # seconds for one episode
    max_repeats: int | None = Field(default=None, ge=1)  # failures or equal results of one call that end an episode


class GateRules(Model):
    """What a run must keep to."""

    max_drop: dict[str, float | str] = Field(default_factory=dict)  # group or grouping -> allowed drop
    min_clean: Share | None = Field(default=None, ge=0, lt=1)
    min_refusals: Share | None = Field(default=None, ge=0, lt=1)
    max_false_refusals: Share | None = Field(default=None, gt=0, le=1)
    min_stability: Share | None = Field(default=None, ge=0, lt=1)  # of streams, as the next
    max_recovery: int | None = Field(default=None, ge=0)
    max_errors: Share = Field(default=MOST_ERRORS, ge=0, le=1)
    baseline: str | None = None  # the folder of a run

    def rules(self) -> list[Rule]:
        return [rule(name, share) for name, share in self.max_drop.items()]


class Config(Model):
    """The whole file."""

    suite: str = "tiers"  # a name, or a YAML file
    agent: str | None = None  # a spec
    out: str | None = None  # the folder of the run
    seed: int = Field(default=0, ge=0)
    trials: int = Field(default=1, ge=1)
    limit: int | None = Field(default=None, ge=1)  # of episodes
    tasks: int | None = Field(default=None, ge=1)  # per domain and condition
    domain: Names = ()  # only these domains; and only kinds of these names, tiers and axes
    only: Names = ()
    tier: Names = ()
    axis: Names = ()
    concurrency: int | None = Field(default=None, ge=1)
    ending: Ending | None = None  # the agent's own unless given
    budgets: Budgets = Budgets()
    gate: GateRules = GateRules()

    def options(self) -> dict[str, Any]:
        """What the file says of a run, by the names that the options of `crosswind run` have."""
        said = self.model_dump(exclude={"budgets", "gate"}, exclude_unset=True)
        options = {**said, **self.budgets.model_dump()}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in options.items() if v is not None}


def load_config(path: Path | str) -> Config:
    """Read a configuration; every complaint names its line."""
    document: Document = read(path)
    config = document.fit(Config)
    for name, share in config.gate.max_drop.items():
        try:
            rule(name, share)
        except CrosswindError as error:
            raise document.error(("gate", "max_drop", name), str(error)) from None
    return config
