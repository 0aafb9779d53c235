"""Your server, your tasks: a YAML file of tasks for any MCP server, as a domain and a suite.

The file says how the server is reached and what must be true of the final message and of the calls. A task with a gold
(a list of calls) is certified by replaying it through the layers; one without is uncertified: layers are tried out
with made-up values on every tool, as the proxy does it, and nobody has shown that the task can be done at all.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from crosswind.base.errors import ToolFailed, Unfair
from crosswind.base.yaml_files import Document, Place, read
from crosswind.benchmarks.given import GivenDomain, GivenFamily, OutsideState, whole
from crosswind.core.certify import certify
from crosswind.core.domain import SIZE, Domain, Family
from crosswind.core.draw import SEVERITY
from crosswind.core.perturbation import Perturbation
from crosswind.core.registry import did_you_mean, perturbations
from crosswind.core.session import NAME
from crosswind.core.state import State
from crosswind.core.types import (
    ASK,
    Brief,
    Changes,
    Check,
    Finish,
    Model,
    Refusal,
    Solution,
    Split,
    Task,
    ToolCall,
    Tools,
    ToolSpec,
)
from crosswind.core.world import World
from crosswind.episodes.recipe import Choice, known_kinds
from crosswind.episodes.suite import CLEAN, Condition, Suite
from crosswind.mcp import drift, isolation, live, snapshots, worlds
from crosswind.mcp.conditions import CallRule, Must, Take, filled, in_order, references
from crosswind.mcp.running import Running, Server, looked_at
from crosswind.mcp.schema import NODES, TYPES, Allowance, TooComplex, inlined, misfit, record
from crosswind.mcp.tools import ANY, Example, Tool, examples, tools_of
from crosswind.mcp.wire import WireError
from crosswind.mcp.worlds import ServerFailed, ServerWorld, plain_braces

BLANK = "<FILL IN"  # how drafts mark what is still to be written; a file that has it is refused
POLICY = (
    "Do what the user asks with the tools you are given, and nothing else. When it is done, say so, and state what the "
    "user wants to know."
)
UNCERTIFIED = "it has no gold: nobody has shown that it can be done, with obstacles or without"


# ---------------------------------------------------------------- the file


class GoldCall(Model):
    """One call of a recorded solution, and what is taken from its result for later ones."""

    call: str
    args: dict[str, Any] = Field(default_factory=dict)  # `$name` is a value that was taken
    take: dict[str, Take] = Field(default_factory=dict)
    fails: bool = False  # the server answers it with an error, and the solution goes on


class TaskEntry(Model):
    """One task."""

    name: str
    query: str
    policy: str = ""  # the file's unless given
    answer: tuple[Must, ...] = ()  # all of them must be true of the final message
    calls: tuple[CallRule, ...] = ()
    order: tuple[str, ...] = ()  # rules whose calls must come one after the other, by tool or by `named`
    nothing_else: bool = False  # no other call that writes may have worked
    gold: tuple[GoldCall, ...] | None = None
    says: str = ""  # the final message of the gold; `$name` as in its calls

    @field_validator("answer", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return value if isinstance(value, (tuple, list)) else (value,)

    @field_validator("name")
    @classmethod
    def _named(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", value):
            raise ValueError(f"the task name {value!r} is invalid; use up to 64 letters, digits, _, . and -")
        return value

    @model_validator(mode="after")
    def _sound(self) -> Self:
        labels = [rule.label for rule in self.calls]
        if unknown := [one for one in self.order if one not in labels]:
            raise ValueError(f"order speaks of {unknown[0]!r}, and no rule of calls is called that; known: {labels}")
        if twice := [one for one in self.order if labels.count(one) > 1]:
            raise ValueError(f"two rules of calls are called {twice[0]!r}; tell them apart with `named`")
        if self.gold is None and self.says:
            raise ValueError("says is the last message of a gold, and there is none")
        if self.gold is not None and not self.says.strip():
            raise ValueError("a gold needs says, its final message")
        return self


class TasksFile(Model):
    """A file of tasks for a server."""

    domain: str
    summary: str = ""
    policy: str = POLICY
    server: Server
    snapshot: str = ""  # of the interface that the tasks were written for; a server that differs is refused
    kinds: tuple[str, ...] = ()  # one condition each; every kind that applies to a live server unless given
    severity: int = Field(default=SEVERITY, ge=1, le=5)
    conditions: tuple[Condition, ...] = ()  # instead of kinds: as in a suite
    tasks: tuple[TaskEntry, ...]

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", self.domain):
            raise ValueError(f"domain is {self.domain!r}; expected a short name in snake_case")
        names = [task.name for task in self.tasks]
        if not names:
            raise ValueError("there is no task")
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two tasks are called {twice[0]!r}")
        if self.kinds and self.conditions:
            raise ValueError("kinds and conditions both say how the server is perturbed; give one of them")
        return self


def is_tasks(data: object) -> bool:
    """Is what a YAML file holds a file of tasks?"""
    return isinstance(data, dict) and "server" in data and "tasks" in data


def fit(document: Document) -> TasksFile:
    """The file as it is to be understood; whatever is wrong with it is told with its line."""
    if blank := _blank(document.data, ()):
        raise document.error(blank, f"is still to be written ({BLANK} ...>); fill it in, or leave the task out")
    file = document.fit(TasksFile)
    for i, kind in enumerate(file.kinds):
        if kind not in perturbations:
            raise document.error(("kinds", i), f"no perturbation {kind!r}; {perturbations.meant(kind)}")
    for i, condition in enumerate(file.conditions):
        known_kinds(document, ("conditions", i, "stack"), condition.recipe)
        if not condition.stack or condition.name == CLEAN:
            raise document.error(("conditions", i), "needs a stack, and another name than clean")
    for i, task in enumerate(file.tasks):
        _check_gold(document, ("tasks", i), task)
        if all(check.passed for text in ("", "Done.") for check in _checks(task, (), {}, text)[1:]):
            raise document.error(
                ("tasks", i), "an agent that does nothing passes; say what must be true, in answer or calls"
            )
    return file


def _blank(data: Any, place: Place) -> Place | None:
    """Where something is still to be written."""
    if isinstance(data, str):
        return place if BLANK in data else None
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, part in parts:
        if isinstance(key, str) and BLANK in key:
            return (*place, key)
        if (found := _blank(part, (*place, key))) is not None:
            return found
    return None


def _check_gold(document: Document, place: Place, task: TaskEntry) -> None:
    taken: set[str] = set()
    for i, step in enumerate(task.gold or ()):
        if unknown := references(step.args) - taken:
            at = (*place, "gold", i, "args")
            raise document.error(at, f"${sorted(unknown)[0]} was not taken from an earlier result; $$ is a dollar sign")
        taken |= set(step.take)
    if unknown := references(task.says) - taken:
        raise document.error((*place, "says"), f"${sorted(unknown)[0]} was not taken from a result")


# ---------------------------------------------------------------- judging


def _checks(task: TaskEntry, ledger: Sequence[Any], specs: Mapping[str, ToolSpec], final: str) -> list[Check]:
    """The parts of the goal, each with its reason; the first is that there is a final message at all."""
    out = [Check(name="finished", passed=bool(final.strip()), why="" if final.strip() else "nothing was said")]
    out += [Check(name="answer", passed=m.holds(final, task.query), why=f"to be true: {m.words}") for m in task.answer]
    for rule in task.calls:
        passed, why = rule.check(ledger)
        out.append(Check(name="calls", passed=passed, why=why))
    if task.order:
        rules = {rule.label: rule for rule in task.calls}
        passed = in_order([rules[label] for label in task.order], ledger)
        out.append(Check(name="order", passed=passed, why=f"to come in this order: {', '.join(task.order)}"))
    if task.nothing_else:
        other = [
            made.call.tool
            for made in ledger
            if made.result.error is None
            and made.call.tool in specs
            and specs[made.call.tool].writes
            and not any(rule.fits(made) for rule in task.calls)
        ]
        why = f"further calls that may write: {', '.join(dict.fromkeys(other)) or 'none'}"
        if other and all(spec.writes for spec in specs.values()):
            why += " (the server marks no tool with readOnlyHint, so every tool may write: leave out nothing_else)"
        out.append(Check(name="nothing else", passed=not other, why=why))
    return out


# ---------------------------------------------------------------- the domain


class TaskFamily(GivenFamily):
    """One task of a file; a family of its own, so that reports tell tasks apart by their names."""

    def __init__(self, domain: ServerDomain, entry: TaskEntry) -> None:
        self.domain, self.server, self.entry = domain, domain, entry
        made = len(entry.gold) if entry.gold is not None else 0
        self.name = entry.name  # type: ignore[misc]
        self.level = 1 if made <= 3 else 2 if made <= 6 else 3  # type: ignore[misc]
        self.details = whole(entry.query)

    def solve(self, brief: Brief) -> Solution:
        """Make the calls of the gold, with what was taken from earlier results."""
        if self.entry.gold is None:
            return Refusal("nobody has written down how this is done")
        taken: dict[str, Any] = {}
        for step in self.entry.gold:
            try:
                result = yield ToolCall(step.call, filled(step.args, taken))
            except ToolFailed:
                if not step.fails:
                    raise
                continue
            taken |= {name: take.of(result.content) for name, take in step.take.items()}
        return str(filled(self.entry.says, taken))

    def checks(self, task: Task, start: State, end: State, answer: str | Finish) -> tuple[Check, ...]:
        assert isinstance(end, OutsideState)
        world: ServerWorld = end.world
        if world.made_up:
            return (Check(name="rehearsed", passed=True, why="every tool was called once, with made-up values"),)
        out = _checks(self.entry, world.ledger, world.known, answer if isinstance(answer, str) else answer.text)
        if self.entry.gold is None:
            out.append(Check(name="uncertified", passed=True, why=UNCERTIFIED))
        return tuple(out)


class _Rehearsal(TaskFamily):
    """A made-up solution: every tool is called once, and its result must come back as it was given."""

    def solve(self, brief: Brief) -> Solution:
        return worlds.rehearse(self.server.examples)


class _Stage(Domain):
    """Where the oracle walks through a task of a server: a world without one, or one that seldom needs one."""

    def __init__(self, of: ServerDomain, world: ServerWorld, family: Family) -> None:
        self.of, self._world, self._family = of, world, family

    def world(self, task: Task, *, fenced: bool = False) -> World:
        return self._world

    def family(self, task: Task) -> Family:
        return self._family

    def state(self, task: Task, *, fenced: bool = False) -> State:
        return self.of.state(task)


class ServerDomain(GivenDomain):
    """The tasks of a file, over the tools of its server."""

    families: dict[str, TaskFamily]  # type: ignore[assignment]

    def __init__(self, file: TasksFile, base: Path, document: Document) -> None:
        self.file, self.base, self.document = file, base, document
        self.name, self.policy = file.domain, file.policy  # type: ignore[misc]
        self.summary = file.summary or f"Tasks for an MCP server: {file.server.words}"  # type: ignore[misc]
        self.families = {entry.name: TaskFamily(self, entry) for entry in file.tasks}
        self.hosted = "shared" if file.server.url else "started"
        self.tape = worlds.Tape(file.server, base)
        self._tried = False

    # -- the server's tools

    @cached_property
    def raw(self) -> list[Any]:
        """The tools as the server lists them; it is started for that, once."""
        try:
            remote = looked_at(self.file.server, self.base)
        except WireError as error:
            raise ServerFailed(f"{self.document.at(('server',))}: {error}") from None
        if not remote.raw:
            raise ServerFailed(f"{self.document.at(('server',))}: the server has no tools")
        if self.file.snapshot:
            was = snapshots.read_snapshot(self.base / self.file.snapshot)
            if was.hash != snapshots.fingerprint(remote.raw):
                changes = drift.drifted(was.tools, remote.raw)
                what = "; ".join(change.words for change in changes[:4])
                what = f"the server's tools changed since the snapshot ({what}); review the tasks, then take a new one"
                raise self.document.error(("snapshot",), what)
        return remote.raw

    @cached_property
    def listed(self) -> dict[str, Tool]:
        """The tools as layers and providers take them: without references, and with a type for every parameter."""
        nodes = Allowance(10 * NODES)
        try:
            raws = {str(raw["name"]): {**raw, "inputSchema": inlined(raw["inputSchema"], nodes)} for raw in self.raw}
        except TooComplex:
            raise ServerFailed(f"{self.document.at(('server',))}: the schemas of its tools are too complex") from None
        for name in self.file.server.writes:
            if name not in raws:
                told = f"writes: the server has no tool {name!r}; {did_you_mean(name, list(raws))}"
                raise self.document.error(("server",), told)
            raws[name] = {**raws[name], "annotations": {**record(raws[name].get("annotations")), "readOnlyHint": False}}
        out = tools_of(list(raws.values()))
        for name in out:
            if not NAME.fullmatch(name) or name == ASK:
                raise ServerFailed(f"no provider takes {name!r} for a tool's name; letters, digits, _ and - are taken")
        return out

    @cached_property
    def _fingerprint(self) -> str:
        return snapshots.fingerprint(self.raw)

    @cached_property
    def specs(self) -> dict[str, ToolSpec]:
        return {name: _typed(tool.spec, self.listed) for name, tool in self.listed.items()}

    @cached_property
    def world_class(self) -> type[World]:  # type: ignore[override]
        return worlds.entries_class(self.specs)

    @cached_property
    def examples(self) -> list[Example]:
        return examples(self.listed)

    def tools(self, task: Task) -> Tools:
        return tuple(self.specs.values())

    # -- tasks

    def nth(
        self, n: int, seed: int, *, size: int = SIZE, split: Split = "test", levels: Sequence[int] = ()
    ) -> Task | None:
        self.try_golds()
        return super().nth(n, seed, split=split, levels=levels)

    def order(self) -> list[tuple[str, int]]:
        return [(name, 0) for name in self.families]

    def task(self, family: str, seed: int, *, size: int = SIZE, split: Split = "test") -> Task:
        """A task by its name; there is one of each, whatever the seed."""
        entry = self.families[family].entry
        policy = plain_braces(entry.policy or self.policy, self.specs)
        return self.listed_task(family, 0, entry.query, policy=policy, split=split)

    def try_golds(self) -> None:
        """Play every gold to a server, once; one that does not do what it should is told with its line."""
        if self._tried:
            return
        try:
            self._try_golds()
        finally:
            self.tape.stop()
        self._tried = True

    def _try_golds(self) -> None:
        walked: list[tuple[int, list[ToolCall]]] = []
        for i, entry in enumerate(self.file.tasks):
            self._check_calls(("tasks", i), entry)
            if entry.gold is None:
                continue
            try:
                clean = certify(self, self.task(entry.name, 0)).clean
            except Unfair as unfair:
                why = f"does not solve the task: {unfair.law}: {unfair.reason}"
                raise self.document.error(("tasks", i, "gold"), why) from None
            assert isinstance(clean.session.world, ServerWorld)
            walked.append((i, [made.call for made in clean.session.world.ledger]))
        self._play_again(walked)
        without = [entry.name for entry in self.file.tasks if entry.gold is None]
        if without:
            names = ", ".join(without[:5]) + (", ..." if len(without) > 5 else "")
            warnings.warn(f"{len(without)} of {len(self.file.tasks)} tasks are uncertified ({names})", stacklevel=3)

    def _play_again(self, walked: Sequence[tuple[int, list[ToolCall]]]) -> None:
        """Play every gold to fresh servers again: their answers must not depend on what was played before."""
        self.tape.stop()
        server = self.file.server
        try:
            for i, calls in walked:
                if why := isolation.shared(server, Running(server, self.base), self.tape.played(calls)):
                    raise self.document.error(("tasks", i, "gold"), f"episodes share state: {why}. {isolation.ADVICE}")
            for i, calls in walked:
                if all(self.specs[call.tool].writes for call in calls):
                    continue
                played = self.tape.played(calls)
                if why := isolation.counting(server, Running(server, self.base), played, self.specs):
                    told = f"a tool that is marked as read-only writes: {why}. List it in writes of the server"
                    raise self.document.error(("tasks", i, "gold"), told)
        except WireError as error:
            raise ServerFailed(f"the server failed while a gold was played again: {error}") from None

    def _check_calls(self, place: Place, entry: TaskEntry) -> None:
        """Refuse tools and parameters that the server does not have."""
        for part, tools in (
            ("calls", [rule.tool for rule in entry.calls]),
            ("gold", [g.call for g in entry.gold or ()]),
        ):
            for n, tool in enumerate(tools):
                if tool not in self.specs:
                    at = (*place, part, n)
                    raise self.document.error(
                        at, f"the server has no tool {tool!r}; {did_you_mean(tool, list(self.specs))}"
                    )
        for n, rule in enumerate(entry.calls):
            params = self.specs[rule.tool].params
            if not self.listed[rule.tool].open and (unknown := [p for p in rule.args if p not in params]):
                at = (*place, "calls", n, "args")
                raise self.document.error(
                    at, f"{rule.tool} has no parameter {unknown[0]!r}; {did_you_mean(unknown[0], list(params))}"
                )
        for n, step in enumerate(entry.gold or ()):
            if not references(step.args) and (bad := misfit(step.args, self.listed[step.call].raw["inputSchema"])):
                raise self.document.error((*place, "gold", n), f"does not fit the schema of {step.call}: {bad}")

    # -- worlds

    def world(self, task: Task, *, fenced: bool = False) -> worlds.LiveWorld:
        running = Running(self.file.server, self.base)
        return worlds.LiveWorld(self.listed, self.specs, task.blocked, running, self._fingerprint, self.tape)

    def prepare(self, task: Task, layers: Sequence[Perturbation]) -> Domain:
        family = self.families[task.family]
        if family.entry.gold is not None:
            return _Stage(self, worlds.TapedWorld(self.listed, self.specs, task.blocked, self.tape), family)
        for layer in layers:
            if why := live.needs_task(layer.kind):
                raise Unfair("replay", f"{layer.kind!r} needs a task with a gold: {why}")
        world = worlds.RehearsedWorld(self.listed, self.specs, task.blocked, self.examples)
        return _Stage(self, world, _Rehearsal(self, family.entry))

    def normalise(self, state: State) -> Changes:
        """The calls that wrote, in their order; of a rehearsal every call."""
        assert isinstance(state, OutsideState)
        world: ServerWorld = state.world
        kept = [
            made.call
            for made in world.ledger
            if world.made_up or (made.result.error is None and world.known[made.call.tool].writes)
        ]
        return {("calls", f"{n:04}"): {"tool": call.tool, "args": dict(call.args)} for n, call in enumerate(kept)}


def _typed(spec: ToolSpec, tools: Mapping[str, Tool]) -> ToolSpec:
    """A tool as providers take it: a parameter without a type of its own lists those it may have."""
    params = {}
    for name, param in spec.params.items():
        if param.type == ANY and "type" not in param.extra:
            options = [o for key in ("anyOf", "oneOf") for o in param.extra.get(key) or () if isinstance(o, dict)]
            types = [o["type"] for o in options if isinstance(o.get("type"), str)]
            found = list(dict.fromkeys(types)) if options and len(types) == len(options) else list(TYPES)
            param = type(param)(ANY, param.doc, param.required, param.enum, {**param.extra, "type": found})
        params[name] = param
    return spec.replace(doc=plain_braces(spec.doc, tools), params=params)


# ---------------------------------------------------------------- loading


def load(path: Path | str, document: Document | None = None) -> ServerDomain:
    """The domain that a file of tasks declares. Nothing is started yet."""
    document = document or read(path)
    misfit({}, {})  # says at once if its packages are missing, and not in the middle of a run
    return ServerDomain(fit(document), Path(path).expanduser().absolute().parent, document)


def suite_of(domain: ServerDomain) -> Suite:
    """All tasks of a file, clean and under each of its conditions."""
    file = domain.file
    severity = (file.severity, file.severity)
    kinds = file.kinds or (() if file.conditions else tuple(live.applicable()))
    single = tuple(Condition(name=kind, stack=(Choice(kind=kind, severity=severity),)) for kind in kinds)
    return Suite(
        name=file.domain,
        summary=domain.summary,
        domains=(file.domain,),
        tasks=len(file.tasks),
        conditions=file.conditions or single,
    )
