"""Episodes as other frameworks ask for them: by a suite and a number, by domain and kinds, or by a ticket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from crosswind.base.errors import CrosswindError, UnknownName
from crosswind.core.draw import SEVERITY, draw, parse_kind
from crosswind.core.flow import rng_for
from crosswind.core.registry import did_you_mean, domains
from crosswind.core.types import Model, Split
from crosswind.episodes.recipe import load_recipe, recipes
from crosswind.episodes.schedule import Episode, Schedule
from crosswind.episodes.suite import CLEAN, load_suite, suites
from crosswind.episodes.ticket import Ticket

EXPECTED = "expected {suite, number, seed}, {domain, family, perturb or recipe, seed} or {ticket}"
SCHEDULES = 8  # suites whose episodes are kept as far as they were asked for,
NUMBERS = 50_000  # at most this many of each
TRIALS = 100


class EpisodeRequest(Model):
    """Which episode to open. The same request gives the same draw, which is that of `crosswind run`."""

    ticket: Ticket | None = None
    suite: str = ""
    number: int = Field(default=0, ge=0, lt=NUMBERS)  # of the episode in the suite's order
    trials: int = Field(default=1, ge=1, le=TRIALS)
    domain: str = ""
    family: str = ""
    perturb: tuple[str, ...] = ()  # kinds, each as KIND or KIND:SEVERITY
    recipe: str = ""  # instead: what the seed picks from a recipe for training, which has no held-out kinds
    severity: int = Field(default=SEVERITY, ge=1, le=5)
    split: Split = "test"
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum((self.ticket is not None, bool(self.suite), bool(self.domain and not self.suite))) != 1:
            raise ValueError(EXPECTED)
        return self

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> EpisodeRequest:
        """A request out of JSON. Raises `CrosswindError` where it is none."""
        try:
            return cls.model_validate(_without_lists(data))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise CrosswindError(f"{place + ': ' if place else ''}{first['msg']}; {EXPECTED}") from None

    def from_outside(self) -> Self:
        """The request as a client may make it: no file of this machine is looked for in its name."""
        version = self.suite.rpartition("@")
        if self.suite and self.suite not in suites and not (version[0] in suites and version[2].isdecimal()):
            suites[self.suite]  # says which names there are
        if self.recipe:
            recipes[self.recipe]
        return self

    def episode(self) -> Episode:
        """The episode, certified."""
        return next(episode for episode in self.drawing() if episode is not None)

    def drawing(self) -> Iterator[Episode | None]:
        """Draw episode by episode, so that others get their turns between them: None, until the one asked for comes."""
        if self.ticket is not None:
            yield self.ticket.episode()
        elif self.suite:
            yield from _of_suite(self.suite, self.domain, self.seed, self.trials).up_to(self.number)
        else:
            yield self._of_domain()

    def _of_domain(self) -> Episode:
        if self.domain not in domains:
            raise UnknownName(f"no domain {self.domain!r}; {domains.meant(self.domain)}")
        domain = domains[self.domain]
        families = list(domain.families)
        family = self.family or families[self.seed % len(families)]
        if family not in domain.families:
            raise UnknownName(f"no family {family!r} in {self.domain}; {did_you_mean(family, families)}")
        kinds = [parse_kind(kind, self.severity) for kind in self.perturb]
        if self.recipe:
            kinds += load_recipe(self.recipe, training=True).pick(rng_for("requested", self.seed))
        task = domain.task(family, self.seed, split=self.split)
        drawn = draw(domain, task, kinds, self.seed, strict=not self.recipe)
        condition = "+".join(layer.kind for layer in drawn.layers) or CLEAN
        return Episode(condition, drawn.base.id, drawn)


def _without_lists(value: Any) -> Any:
    """JSON as strict models take it."""
    if isinstance(value, Mapping):
        return {str(key): _without_lists(one) for key, one in value.items()}
    return tuple(_without_lists(one) for one in value) if isinstance(value, list) else value


class _Episodes:
    """The episodes of a suite by number, drawn as far as they were asked for and kept as tickets."""

    def __init__(self, suite: str, domain: str, seed: int, trials: int) -> None:
        found = load_suite(suite)
        if domain:
            names = dict.fromkeys(name.strip() for name in domain.split(","))
            for name in names:
                if name not in domains:
                    raise UnknownName(f"no domain {name!r}; {domains.meant(name)}")
            found = found.model_copy(update={"domains": tuple(names)})
        self.name, self.lock = suite, Lock()
        self.left: Iterator[Episode] = (e for e in Schedule(found, seed, trials=trials) if e is not None)
        self.tickets: list[Ticket] = []

    def up_to(self, n: int) -> Iterator[Episode | None]:
        """None for every episode drawn on the way to number `n`, and then that."""
        while len(self.tickets) <= n:
            with self.lock:
                drawn = next(self.left, None)
                if drawn is None:
                    raise CrosswindError(f"{self.name} has {len(self.tickets)} episodes; number {n} is too high")
                self.tickets.append(Ticket.of(drawn))
                last = len(self.tickets) == n + 1
            yield drawn if last else None
            if last:
                return
        yield self.tickets[n].episode()


@lru_cache(maxsize=SCHEDULES)
def _of_suite(suite: str, domain: str, seed: int, trials: int) -> _Episodes:
    return _Episodes(suite, domain, seed, trials)
