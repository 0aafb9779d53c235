"""Tasks for Inspect AI: every suite, with Inspect's models or an Inspect agent of the user's own.

    inspect eval crosswind/quick --model openai/MODEL                       # tools are listed again at every turn
    inspect eval crosswind/quick --model ... --solver my_agent.py@agent     # an agent that takes `crosswind_tools()`

Inspect imports this module through its entry point. The first solver, `open_episode`, draws and opens the episode of a
sample; the scorer closes it and gives the verdict of the judge. Solvable tasks and tasks to refuse are never pooled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolCall, ToolDef, ToolInfo, ToolParams, ToolSource
from inspect_ai.util import store

from crosswind.base.errors import CrosswindError
from crosswind.base.version import __version__
from crosswind.core.registry import domains
from crosswind.core.types import Ending, Message, Request, ToolSpec
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import CLEAN, Suite, load_suite, suites
from crosswind.episodes.ticket import Ticket
from crosswind.frameworks.driven import DrivenEpisode, ToolCalls
from crosswind.frameworks.inspect_logs import RECORD, RUN

REFUSE = "to refuse"  # the group of tasks that only a refusal ends rightly
KEY = "crosswind:open"  # in the store of a sample
_open: dict[str, ToolCalls] = {}  # episodes under way, by the id of their sample


# ---------------------------------------------------------------- tasks


def suite_task(name: str) -> Callable[..., Task]:
    """The Inspect task of a suite."""

    def crosswind_task(
        domain: str | list[str] = "",
        seed: int = 0,
        limit: int | None = None,
        ending: Ending = "finish",
        trials: int = 1,
    ) -> Task:
        return task_of(load_suite(name), domain, seed, limit=limit, ending=ending, trials=trials)

    return crosswind_task


def task_of(
    suite: Suite,
    domain: str | Sequence[str] = "",
    seed: int = 0,
    *,
    limit: int | None = None,
    ending: Ending = "finish",
    trials: int = 1,
) -> Task:
    """The Inspect task of any suite. `domain` is one name, or several: a list, or with commas between.

    `limit` counts episodes. The same seed gives the same draws as `crosswind run`.
    """
    given = [domain] if isinstance(domain, str) else domain  # Inspect makes a list of what has commas
    names = list(dict.fromkeys(one.strip() for some in given for one in str(some).split(",") if one.strip()))
    for one in names:
        if one not in domains:
            raise CrosswindError(f"no domain {one!r}; {domains.meant(one)}")
    if names:
        suite = suite.model_copy(update={"domains": tuple(names)})
    drawn = (e for e in Schedule(suite, seed, trials=trials, limit=limit) if e is not None)
    samples = [sample_of(Ticket.of(episode), episode.drawn.certificate.task.refuse, seed) for episode in drawn]
    return Task(
        dataset=MemoryDataset(samples, name=f"{suite.name}@{suite.version}" if suite.version else suite.name),
        setup=open_episode(seed, ending),
        solver=crosswind_turns(),
        scorer=verdict(),
        version=__version__,
        name=f"crosswind_{suite.name}",
        metadata={
            RUN: {
                "suite": suite.model_dump(mode="json"),
                "conditions": [condition.name for condition in suite.all_conditions()],
                "seed": seed,
                "trials": trials,
                "limit": limit,
                "ending": ending,
            }
        },
    )


def sample_of(ticket: Ticket, refuse: bool, seed: int) -> Sample:
    shifted = ticket.condition != CLEAN
    return Sample(
        id=ticket.key,
        input="(the request is drawn with the episode)",
        target="refuse" if refuse else "solve",
        metadata={
            "group": REFUSE if refuse else "shifted" if shifted else CLEAN,
            "condition": ticket.condition,
            "domain": ticket.domain,
            "task": ticket.task_id,
            "seed": seed,
            "ticket": ticket.model_dump(mode="json"),
        },
    )


for _name in suites.names():
    task(name=_name)(suite_task(_name))


# ---------------------------------------------------------------- the episode of a sample


@solver
def open_episode(seed: int = 0, ending: Ending = "finish") -> Solver:
    """Draw the episode of a sample and show its request; the tools come from `crosswind_tools()`."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        ticket = Ticket.read(state.metadata["ticket"])
        calls = ToolCalls(DrivenEpisode(ticket.episode(), name=f"inspect:{state.model}", seed=seed, ending=ending))
        turn = await calls.begin()
        state.messages = [_shown(message, {}) for message in turn.messages if message.content]
        store().set(KEY, state.uuid)
        _open[state.uuid] = calls
        return state

    return solve


def episode_here() -> ToolCalls:
    """The episode of the sample that is being played."""
    found = _open.get(store().get(KEY, ""))
    if found is None:
        raise CrosswindError("no episode is open in this sample; use a task of crosswind's, such as crosswind/quick")
    return found


@solver
def crosswind_turns() -> Solver:
    """Inspect's model, turn by turn. Its tools are listed again at every turn."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        calls = episode_here()
        turn, named = calls.turn, dict[str, str]()
        while turn is not None:
            tools = [_info(spec) for spec in turn.tools]
            output: ModelOutput = await get_model().generate(state.messages, tools=tools)
            state.output = output
            state.messages.append(output.message)
            message = _said(output.message)
            named |= {request.id: request.tool for request in message.requests}
            turn = calls.turn = await calls.episode.reply(message)
            state.messages += [_shown(message, named) for message in (turn.new if turn else ())]
        return state

    return solve


class _CrosswindTools(ToolSource):
    """The tools of the open episode, as they are shown now.

    Inspect asks for them twice: to show them to the model, and to carry out what the model called. It would answer
    unknown names and wrong arguments itself. The world has answers to those too, and a step to count, so what the model
    has just called is passed through unchecked, also by a name that is not shown.
    """

    async def tools(self) -> list[Tool]:
        calls = episode_here()
        called: dict[str, list[str]] = {}  # by the model and not made yet: name -> ids
        for call in _last_calls():
            if call.id not in calls.passed:
                called.setdefault(call.function, []).append(call.id)
        shown = [_tool(calls, spec) for spec in calls.tools if spec.name not in called]
        return [*shown, *(_unchecked(calls, name, ids) for name, ids in called.items())]


def crosswind_tools() -> ToolSource:
    """The tools of a sample's episode, for an agent of your own: `react(tools=[crosswind_tools()], submit=False)`."""
    return _CrosswindTools()


def _last_calls() -> Sequence[ToolCall]:
    """The calls that the model asked for last."""
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent):
            return event.output.message.tool_calls or () if event.output.choices else ()
    return ()


def _tool(calls: ToolCalls, spec: ToolSpec) -> Tool:
    function = spec.function()["function"]
    parameters = ToolParams.model_validate(function["parameters"])
    for name, param in parameters.properties.items():
        param.description = param.description or name  # Inspect takes no parameter without a description
    return _made(calls, spec.name, function["description"] or spec.name, parameters)


def _unchecked(calls: ToolCalls, name: str, ids: Sequence[str]) -> Tool:
    return _made(calls, name, name or "(no name)", ToolParams(additionalProperties=True), ids)


class _NoName(str):
    """The empty name that a model called. Inspect would take a false one for a tool that nobody described."""

    def __bool__(self) -> bool:
        return True


def _made(calls: ToolCalls, name: str, description: str, parameters: ToolParams, ids: Sequence[str] = ()) -> Tool:
    async def execute(**args: Any) -> str:
        calls.passed.update(ids)
        return await calls.call(name, args)

    # one call after the other: Inspect would run the calls of a message side by side
    return ToolDef(execute, name or _NoName(), description, parameters, parallel=False).as_tool()


# ---------------------------------------------------------------- the verdict


@scorer(
    metrics=[
        grouped(accuracy(), "group", all=False),
        grouped(stderr(cluster="task"), "group", all=False, name_template="{group_name} stderr"),
        grouped(accuracy(), "condition", all=False, name_template="{group_name} (all tasks)"),
    ]
)
def verdict() -> Scorer:
    """The judge's verdict on what the agent did to the world and said. Faults of infrastructure stay unscored."""

    async def score(state: TaskState, target: Target) -> Score:
        calls = _open.pop(state.uuid, None)
        if calls is None:
            return Score.unscored(explanation="no episode was opened; keep the task's setup when you change its solver")
        try:
            record = await calls.end(state.output.completion if state.output.choices else "")
        finally:
            await calls.episode.aclose()
        store().set(RECORD, record.model_dump(mode="json"))
        if record.outcome == "error":
            return Score.unscored(explanation=record.why or "infrastructure failed")
        passed = record.outcome == "pass"
        return Score(
            value=CORRECT if passed else INCORRECT,
            answer=record.final,
            explanation="; ".join(f"{c.name}: {c.why}" for c in record.checks if not c.passed) or record.outcome,
            metadata={
                "outcome": record.outcome,
                "cause": record.cause,
                "stage": record.stage,
                "seen": [receipt.kind for receipt in record.receipts if receipt.seen],
                "steps": len(record.steps),
            },
        )

    return score


# ---------------------------------------------------------------- messages


def _info(spec: ToolSpec) -> ToolInfo:
    function = spec.function()["function"]
    return ToolInfo(
        name=spec.name,
        description=function["description"],
        parameters=ToolParams.model_validate(function["parameters"]),
    )


def _shown(message: Message, named: dict[str, str]) -> ChatMessage:
    if message.role == "system":
        return ChatMessageSystem(content=message.content)
    if message.role == "tool":
        name = named.get(message.request_id)
        return ChatMessageTool(content=message.content, tool_call_id=message.request_id, function=name)
    return ChatMessageUser(content=message.content)


def _said(message: ChatMessageAssistant) -> Message:
    calls = message.tool_calls or ()
    requests = tuple(Request(id=c.id, tool=c.function, args=_arguments(c.arguments, c.parse_error)) for c in calls)
    return Message(role="assistant", content=message.text, requests=requests)


def _arguments(arguments: Any, unread: str | None) -> Any:
    """What the model wrote; arguments that are not JSON reach the world as they came."""
    return arguments if unread is None else arguments or unread


__all__ = ["crosswind_tools", "crosswind_turns", "open_episode", "task_of", "verdict"]
