"""AgentDojo (package `agentdojo`) as a domain: its four suites of user tasks, without attacks.

An environment of a suite is the world, the tasks' ground truths are the gold, and their utility functions the judge:
they look at the environment before and after, at the final message and, in some tasks, at the calls.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

from crosswind.base.errors import ToolFailure
from crosswind.base.extras import install
from crosswind.benchmarks import borrowed, needed
from crosswind.benchmarks.borrowed import BorrowedWorld, RecordedGold
from crosswind.core.types import Task, ToolCall, Tools, ToolSpec
from crosswind.core.world import World

VERSION = "v1.2.2"  # of the benchmark
SUITES = {
    "workspace": "Mail, calendar and files.",
    "travel": "Hotels, restaurants, cars and flights.",
    "banking": "Payments of one account.",
    "slack": "Channels, messages and web pages.",
}
CLOCKED = frozenset({"timestamp", "last_modified"})  # what the package fills with the time of day


class DojoSuite:
    """One of its suites: tools, user tasks, and the environment they start from."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runtime = needed("agentdojo.functions_runtime", "agentdojo", install("agentdojo"))
        self.suite = needed("agentdojo.task_suite.load_suites", "agentdojo", install("agentdojo")).get_suite(
            VERSION, name
        )
        self.functions = self.runtime.FunctionsRuntime(self.suite.tools)
        self.tasks: list[Any] = list(self.suite.user_tasks.values())

    @cached_property
    def _default(self) -> bytes:
        return pickle.dumps(self.suite.load_and_inject_default_environment({}))

    def environment(self, task: Any) -> Any:
        """The environment as a task finds it."""
        return task.init_environment(pickle.loads(self._default))

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(_spec(function) for function in self.suite.tools)

    def golds(self) -> list[RecordedGold]:
        return [self._gold(task) for task in self.tasks]

    def _gold(self, task: Any) -> RecordedGold:
        calls = [ToolCall(call.function, _plain(dict(call.args))) for call in task.ground_truth(self.environment(task))]
        return RecordedGold(
            f"{self.name}/{task.ID}", (task.PROMPT,), (tuple(calls),), (task.GROUND_TRUTH_OUTPUT or "Done.",)
        )


def _spec(function: Any) -> ToolSpec:
    schema = function.parameters.model_json_schema()
    required, defs = schema.get("required", ()), schema.get("$defs", {})
    params = {
        name: borrowed.param({**defs.get(one.get("$ref", "").rpartition("/")[2], {}), **one}, required=name in required)
        for name, one in schema.get("properties", {}).items()
    }
    return ToolSpec(function.name, function.description, params, ids=frozenset({function.name}))


def _plain(value: Any) -> Any:
    """What a tool returns or a gold hands over, as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _timeless(value: Any) -> Any:
    """Data without what depends on the time of day."""
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in CLOCKED}
    return [_timeless(v) for v in value] if isinstance(value, list) else value


class DojoWorld(BorrowedWorld):
    """The environment of one task."""

    def __init__(self, suite: DojoSuite, task: Any, specs: Tools, blocked: Mapping[str, str]) -> None:
        super().__init__(specs, blocked)
        self.suite, self.task = suite, task

    @cached_property
    def environment(self) -> Any:
        return self.suite.environment(self.task)

    def run(self, call: ToolCall) -> Any:
        result, error = self.suite.functions.run_function(self.environment, call.tool, dict(call.args))
        if error is not None:
            raise ToolFailure("failed", str(error))
        return _plain(result)

    def mark(self) -> bytes:
        return borrowed.marked(_timeless(_plain(self.environment)))

    def twin(self) -> Self:
        other = type(self)(self.suite, self.task, self.specs, self.blocked)
        other.environment = pickle.loads(pickle.dumps(self.environment))
        return other

    def kept(self) -> dict[str, bytes]:
        now, start = self.mark(), DojoWorld(self.suite, self.task, self.specs, {}).mark()
        return {"environment": now} if now != start else {}


class UserTasks(borrowed.BorrowedFamily):
    """The user tasks of a suite."""

    def judged(self, world: BorrowedWorld, final: str) -> str:
        """What the task's own utility function says."""
        assert isinstance(world, DojoWorld)
        task, before = world.task, world.suite.environment(world.task)
        made = [call for calls in world.turns for call in calls]
        trace = [world.suite.runtime.FunctionCall(function=call.tool, args=dict(call.args)) for call in made]
        found = task.utility_from_traces(final, before, world.environment, trace)
        if found is None:
            found = task.utility(final, before, world.environment)
        return "" if found else f"the utility function of {task.ID} says no"


class Agentdojo(borrowed.BorrowedDomain):
    """User tasks in four environments."""

    name: ClassVar[str] = "agentdojo"
    summary: ClassVar[str] = f"AgentDojo {VERSION}: user tasks in an office, at a travel desk, at a bank and in a chat"
    policy: ClassVar[str] = (
        "Do what the user asks with the tools you are given, and nothing else. When it is done, say so, and state what "
        "the user wants to know."
    )
    world_class: type[World]  # type: ignore[misc]

    def __init__(self) -> None:
        self.suites = {name: DojoSuite(name) for name in SUITES}
        self.families = {
            name: UserTasks.called(name, about)(self, self.suites[name].golds()) for name, about in SUITES.items()
        }
        specs = {spec.name: spec for suite in self.suites.values() for spec in suite.specs}
        worlds = (
            (DojoWorld(suite, task, (), {}), gold)
            for name, suite in self.suites.items()
            for task, gold in zip(suite.tasks, self.families[name].golds, strict=True)
        )
        self.world_class = borrowed.catalogue(
            borrowed.widened(list(specs.values()), self.families.values()), borrowed.footprints(worlds)
        )

    def tools(self, task: Task) -> Tools:
        return tuple(self.world_class.entries[spec.name].spec for spec in self.suites[task.family].specs)

    def world(self, task: Task, *, fenced: bool = False) -> DojoWorld:
        suite = self.suites[task.family]
        return DojoWorld(suite, suite.tasks[task.seed], self.tools(task), task.blocked)


@lru_cache(maxsize=1)
def load() -> Agentdojo:
    """The domain, made when it is first asked for."""
    return Agentdojo()
