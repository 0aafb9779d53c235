"""Streams: episodes one after the other in an interface that keeps changing.

A `StreamPlan` says which changes come when, as data. A `Timeline` is one stream of it: it draws a chain of releases
(`core/release.py`), and each episode is certified under the release that it meets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal, Self, TypeVar, cast

from pydantic import AfterValidator, Field, ValidationError, model_validator

from crosswind.base.errors import CannotDraw, CannotPerturb, CrosswindError, Unfair, UnknownName
from crosswind.base.yaml_files import complaint, read
from crosswind.core.audit import is_auditable
from crosswind.core.certify import certify
from crosswind.core.domain import Domain
from crosswind.core.draw import Drawn, extend, parse_kind
from crosswind.core.flow import digest, rng_for
from crosswind.core.oracle import Walk, Walks
from crosswind.core.perturbation import Layers, Perturbation, place
from crosswind.core.registry import Registry, domains, perturbations
from crosswind.core.release import Release, evolve
from crosswind.core.types import Key, Model, Row, Split, Task, ToolSpec
from crosswind.episodes import suite
from crosswind.episodes.career import CareerPlan, check_once
from crosswind.episodes.schedule import Deck, Episode, StreamMark
from crosswind.episodes.suite import Suite, suites

WORLDS = 8  # worlds that are looked at for one episode: a task may be unfair by itself, or under a release
EARNED, WINDOW = 0.8, 10  # with the schedule "earned": success over this many episodes that brings the next release
PRECEDENCE = "Where these notes and the tools shown differ, the tools are right."


def _kinds(given: tuple[str, ...]) -> tuple[str, ...]:
    for text in given:
        parse_kind(text)
    return given


Changelog = Literal["hidden", "shown", "wrong"]
P = TypeVar("P", bound="StreamPlan | CareerPlan")
Kinds = Annotated[tuple[str, ...], AfterValidator(_kinds)]  # each as KIND or KIND:SEVERITY


class StreamPlan(Model):
    """The schedule of a stream: its releases and its number of episodes."""

    name: str
    summary: str = ""
    domains: tuple[str, ...] = ()  # empty: all; each has streams of its own
    split: Split = "test"
    levels: tuple[int, ...] = ()  # empty: all
    episodes: int = Field(default=120, ge=1, le=1_000_000)  # of one stream
    releases: int = Field(default=4, ge=0, le=1_000)  # after the first, which is the canonical interface
    schedule: Literal["abrupt", "gradual", "recurring", "cascading", "earned"] = "abrupt"
    kinds: Kinds = ("semantic_rename:2", "parameter_rename:2", "key_rename:1", "redirection:2", "envelope:1")
    announced: bool = False  # tools that will redirect say so one release before
    drift: Kinds = ()  # kinds of request style, drawn for each request
    # the share of requests in such a style at the end of the stream; it grows up to there
    drift_share: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    changelog: Changelog = "hidden"

    @model_validator(mode="after")
    def _sound(self) -> Self:
        check_once("domains", self.domains)
        check_once("kinds", [parse_kind(text)[0] for text in self.kinds])
        for text in self.kinds:
            cls = perturbations[parse_kind(text)[0]]
            if cls.axis == "query" or cls.goal == "refuse":
                raise ValueError(f"{text} is about one request and cannot be part of a release; see docs/streams.md")
        for text in self.drift:
            if perturbations[parse_kind(text)[0]].axis != "query":
                raise ValueError(f"{text} does not change the request; drift takes kinds of the axis query")
        if self.releases and not self.kinds:
            raise ValueError("releases need kinds; name at least one")
        if self.episodes <= 2 * self.releases:
            releases = f"{self.releases} release{'s' * (self.releases != 1)}"
            raise ValueError(
                f"{self.episodes} episodes are too few for {releases}; expected {2 * self.releases + 1} or more"
            )
        return self

    def where(self) -> list[str]:
        return list(self.domains or domains.names())

    def conditions(self, frozen: bool) -> tuple[str, ...]:
        """What the episodes of a run go by: releases."""
        return tuple(f"v{i + 1}" for i in range(1 + (0 if frozen else self.releases)))

    def timeline(self, domain: str, seed: int, number: int, *, frozen: bool = False) -> Timeline:
        return Timeline(self, domain, seed, number, frozen=frozen)

    def version(self, n: int, passed: Sequence[bool], salt: object = 0) -> int:
        """The release that episode `n` meets, from 0; `passed` says how the episodes before it ended."""
        last = self.releases
        if self.schedule == "earned":
            at = since = 0
            for i in range(min(n, len(passed))):
                if i + 1 - since >= WINDOW and sum(passed[i + 1 - WINDOW : i + 1]) >= EARNED * WINDOW:
                    at, since = at + 1, i + 1
            return min(at, last)
        if self.schedule == "recurring":
            return n * 2 * (last + 1) // self.episodes % (last + 1)
        if self.schedule == "cascading":
            half = self.episodes // 2
            return 0 if n < half or not last else min(last, 1 + (n - half) * last // (self.episodes - half))
        at = n * (last + 1) // self.episodes
        if self.schedule == "gradual" and at:
            span = self.episodes / (last + 1)
            share = (n - at * span + 1) / (span / 2)
            return at if rng_for("gradual", salt, n).random() < share else at - 1
        return at


# ---------------------------------------------------------------- one stream


@lru_cache(maxsize=64)
def _chain(
    name: str, kinds: tuple[tuple[str, int], ...], count: int, seed: int, split: Split, announced: bool
) -> tuple[Release, ...]:
    return tuple(evolve(domains[name], dict(kinds), count, seed, split=split, announced=announced))


class Timeline:
    """One stream in one domain. `frozen`: the same requests, but the interface never changes."""

    def __init__(self, plan: StreamPlan, domain: str, seed: int, number: int, *, frozen: bool = False) -> None:
        self.plan, self.domain, self.number, self.frozen = plan, domains[domain], number, frozen
        if not is_auditable(self.domain):
            raise CrosswindError(f"{domain} is an external benchmark without releases; choose one of ours or a plug-in")
        self.salt = ("stream", seed, number, domain)
        chance = int.from_bytes(digest(*self.salt)[:4], "big")
        kinds = tuple(map(parse_kind, plan.kinds))
        count = 0 if frozen else plan.releases
        self.releases = _chain(domain, kinds, count, chance, plan.split, plan.announced)
        self.stacks = [release.stack for release in self.releases]
        self.notices = [self._notice(i) for i in range(len(self.releases))]
        self.decks = [
            Deck(self.domain, int.from_bytes(digest(*self.salt, j)[:3], "big"), split=plan.split, levels=plan.levels)
            for j in range(WORLDS)
        ]

    def episode(self, n: int, passed: Sequence[bool]) -> Episode:
        """Episode `n`, certified under the release that it meets."""
        version = 0 if self.frozen else self.plan.version(n, passed, self.salt)
        why: Exception | None = None
        for deck in self.decks:
            try:
                task = deck.task(n)
                drawn = self._drawn(task, n, version)
            except (CannotDraw, Unfair) as unfair:
                why = unfair
                continue
            mark = StreamMark(
                number=n,
                version=version + 1,
                touched=_way(drawn.certificate.gold) != _way(drawn.certificate.clean),
                notice=self.notices[version],
            )
            return Episode(self.releases[version].name, task.id, drawn, trial=self.number, mark=mark)
        raise CannotPerturb(
            f"no task of episode {n} is fair under release {version + 1} of {self.domain.name} in {WORLDS} worlds "
            f"(last: {why}); use other kinds or another seed"
        )

    def after(self, mark: StreamMark, changes: Mapping[Key, Row | None]) -> None:
        """Take up what an episode left: nothing, because each has a world of its own."""

    def _drawn(self, task: Task, n: int, version: int) -> Drawn:
        """The task under a release, asked in the style of its time. Raises `Unfair`."""
        rng = rng_for("drift", *self.salt, n)
        if self.plan.drift and rng.random() < self.plan.drift_share * (n + 1) / self.plan.episodes:
            kind, severity = parse_kind(rng.choice(self.plan.drift))
            walks = Walks(self.domain, task)
            try:
                if not extend(walks, kind, severity, (n, 0)):
                    return self._certified(task, version, walks.layers)
            except Unfair:
                pass  # asked in plain words instead
        return self._certified(task, version, ())

    def _certified(self, task: Task, version: int, style: Layers) -> Drawn:
        layers = stacked(self.stacks[version], style)
        return noticed(self.domain, task, layers, self.notices[version])

    def _notice(self, version: int) -> str:
        """What the changelog says of a release; nothing where there is none."""
        task = next(task for task in map(self._probe, self.domain.families) if task)
        return release_notes(self.domain, task, self.stacks, version, self.plan.changelog)

    def _probe(self, family: str) -> Task | None:
        try:
            return self.domain.task(family, 0, split=self.plan.split)
        except CannotDraw:
            return None


def stacked(release: Layers, style: Sequence[Perturbation]) -> Layers:
    """The layers of a release and of a request's style, from the world outwards."""
    return tuple(sorted((*release, *style), key=place))


def noticed(domain: Domain, task: Task, layers: Layers, notice: str) -> Drawn:
    """A task under a release. It is certified without the changelog, which is then added to the policy.

    So an episode is fair whether the changelog is hidden, shown or wrong: the tools and results alone lead to the end.
    """
    certificate = certify(domain, task, layers, release=True)
    if notice:
        shifted = certificate.task
        certificate.task = shifted.briefed(policy=f"{shifted.brief.policy} {notice}".strip())
    return Drawn(domain, task, layers, certificate)


def _way(walked: Walk) -> list[object]:
    return [(step.call, step.result) for step in walked.steps]


def _shown(domain: Domain, task: Task, layers: Layers) -> dict[str, ToolSpec]:
    """The tools under a stack, each by the canonical tool that it is."""
    walks = Walks(domain, task)
    for layer in layers:
        walks.add(layer)
    canonical = {tool.name for tool in domain.tools(task)}
    shown = walks.shown(len(layers), 0)
    return {id: tool for tool in shown if tool.listed for id in sorted(tool.ids & canonical) or [f"old {tool.name}"]}


def release_notes(domain: Domain, task: Task, stacks: Sequence[Layers], version: int, changelog: Changelog) -> str:
    """What a changelog says of a release, counted from 0; nothing where it is hidden, and of the first."""
    if changelog == "hidden" or version == 0:
        return ""
    old, new = (_shown(domain, task, stacks[i]) for i in (version - 1, version))
    lines = differences(old, new, wrong=changelog == "wrong")
    for layer in stacks[version]:
        if layer not in stacks[version - 1] and not layer.retools:
            said = "no longer applies" if changelog == "wrong" else "is new"
            lines.append(f"This {said}: {(type(layer).__doc__ or '').strip().splitlines()[0]}")
    if not lines:
        return ""
    return f"Release notes of version {version + 1}: {' '.join(lines)} {PRECEDENCE}"


def differences(old: dict[str, ToolSpec], new: dict[str, ToolSpec], *, wrong: bool = False) -> list[str]:
    """How the tools differ, a sentence each. If `wrong`, every new name is said to be another's."""
    names = [(old[id].name, new[id].name) for id in old if id in new and old[id].name != new[id].name]
    params = [
        (new[id].name, was, now)
        for id in old
        if id in new and len(old[id].params) == len(new[id].params)
        for was, now in zip(old[id].params, new[id].params, strict=True)
        if was != now
    ]
    if wrong:
        turned = [now for _, now in names]
        names = [(was, now) for (was, _), now in zip(names, [*turned[1:], *turned[:1]], strict=True)]
        params = [(tool, now, was) for tool, was, now in params]
    lines = [f"{was} is now called {now}." for was, now in names]
    lines += [f"In {tool}, {was} is now called {now}." for tool, was, now in params]
    before = {tool.name for tool in old.values()}
    fresh = [tool.name for id, tool in new.items() if id not in old]
    added = [name for name in fresh if name not in before]
    lines += [f"{name} is deprecated." for name in fresh if name in before and not wrong]
    removed = [tool.name for id, tool in old.items() if id not in new]
    if wrong:
        added, removed = removed, added
    lines += [f"{name} is new." for name in added] + [f"{name} was removed." for name in removed]
    return lines


# ---------------------------------------------------------------- ours

Plan = StreamPlan | CareerPlan
plans: Registry[Plan] = Registry("stream", "crosswind.domains")
_ours: tuple[Plan, ...] = (
    StreamPlan(name="evolving", summary="Five releases in turn, each of which changes names, keys or forms."),
    StreamPlan(
        name="gradual", summary="A growing share of requests meets each new release.", schedule="gradual", releases=3
    ),
    StreamPlan(name="recurring", summary="Three releases that come back once.", schedule="recurring", releases=2),
    StreamPlan(
        name="cascading", summary="A long calm, then one release after the other.", schedule="cascading", releases=5
    ),
    StreamPlan(
        name="earned", summary="The next release comes when the agent has got used to the last.", schedule="earned"
    ),
    StreamPlan(
        name="drifting",
        summary="Releases, while requests become terser and more careless.",
        releases=2,
        drift=("terse_query", "typos", "paraphrase", "verbose_query"),
    ),
    StreamPlan(
        name="lifecycle",
        summary="Tools are announced to move, redirect and are gone; better tools, amended rules and other forms come.",
        episodes=140,
        releases=6,
        kinds=("redirection:2", "better_tool:1", "amended_rules:2", "locale_format:1", "key_rename:1"),
        announced=True,
    ),
    CareerPlan(
        name="careers", summary="One user in one lasting world: later requests need what was told in earlier ones."
    ),
)
for _plan in _ours:
    plans.add(_plan.name, _plan)


def load_suite(name: str) -> Suite:
    """A suite by its name or from a YAML file; of a stream it is said how to play it."""
    if name in plans and name not in suites:
        raise UnknownName(
            f"{name!r} is a stream, whose episodes follow each other; play it with `crosswind stream {name}` or "
            f"cw.stream(agent, {name!r})"
        )
    return suite.load_suite(name)


def load_plan(name: str) -> Plan:
    """A stream or career by its name, or from a YAML file; `facts`, `distances` or `twists` make a file a career."""
    if name in suites and name not in plans:
        raise UnknownName(f"{name!r} is a suite, whose episodes stand alone; play it with `crosswind run {name}`")
    if name in plans or not name.endswith((".yaml", ".yml")):
        return plans[name]
    document = read(name)
    is_career = isinstance(document.data, dict) and not {"facts", "distances", "twists"}.isdisjoint(document.data)
    plan: Plan = document.fit(CareerPlan) if is_career else document.fit(StreamPlan)
    for one in plan.domains:
        if one not in domains:
            raise document.error(("domains",), f"no domain {one!r}; known: {', '.join(domains.names())}")
    return plan


def with_changes(plan: P, changes: Mapping[str, object]) -> P:
    """A plan with other values. Raises `CrosswindError` if they do not go together."""
    if "changelog" in changes and isinstance(plan, CareerPlan):
        raise CrosswindError(
            f"{plan.name} is a career, whose interface has no releases to tell of; leave out the changelog"
        )
    try:
        return cast(P, type(plan).model_validate({**plan.model_dump(), **changes}))
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise CrosswindError(f"the stream {plan.name}: {where}{complaint(first)}") from None
