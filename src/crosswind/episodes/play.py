"""One episode: `play` lets an agent act in a session, from the query to the final message; `judge` gives the verdict.

A trajectory is judged by replaying its calls in a fresh world, whether it was played just now or stored long ago.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError, words_of_any
from crosswind.core import endings, entity_names, finish
from crosswind.core.domain import Domain
from crosswind.core.draw import Drawn
from crosswind.core.perturbation import dump_layers
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.types import (
    FINISH,
    SAY,
    Agent,
    Check,
    Ended,
    Ending,
    Message,
    Step,
    ToolCall,
    ToolError,
    ToolResult,
    Trajectory,
    Verdict,
)
from crosswind.core.world import World
from crosswind.text import speech

TEXT = 20_000  # characters of one value that a trajectory keeps
ROOM = 1 << 20  # characters of all values of one call, or of its result
EACH = 8  # characters that a value takes besides its own
DEPTH = 24
_json = json.JSONEncoder(ensure_ascii=False).encode  # made once: every result of every episode passes here
Opening = Callable[[Session, list[Message]], None]  # goes the first part of the way, and adds it to the conversation


async def play(
    drawn: Drawn,
    agent: Agent,
    name: str,
    opening: Opening | None = None,
    *,
    ending: Ending = "words",
    repeats: int | None = None,
) -> Trajectory:
    """Play one episode. What the agent does wrong is data; what its provider does wrong ends it as an error.

    With an `opening` the agent takes up a conversation that has begun. With the ending "finish" it has a tool of that
    name; words without a call end the episode as well, and are judged as words. With `repeats`, the episode ends as one
    that ran out of steps once the same call has failed, or brought the same result in a row, that many times.
    """
    certificate = drawn.certificate
    if not callable(getattr(agent, "reply", None)):
        raise CrosswindError(f"the agent {name!r} is {type(agent).__name__}, which has no method reply(chat, tools)")
    session = Session.of(drawn.domain, certificate.task, certificate.layers, ending=ending)
    chat = [Message(role="system", content=session.policy()), Message(role="user", content=session.query())]
    tools = tuple(tool.function() for tool in session.tools())
    policy, budget = session.policy(), certificate.budget
    final, why, seen = "", "", 0
    ended: Ended = "budget"
    try:
        await session.world.open()
        if opening is not None:
            opening(session, chat)
            policy = session.policy()
        while len(session.steps) < budget:
            seen = len(session.steps)
            message = await agent.reply(chat, session.tools())
            chat.append(message)
            if not message.requests:
                reply = session.say(message.content)
                if reply is None:
                    final = message.content
                    ended = "refusal" if speech.classify(final) == "refusal" else "answer"
                    session.steps.pop()  # the final message is not a step
                    break
                chat.append(Message(role="user", content=reply))
                session.user.said.clear()
                continue
            chat += await _carry_out(session, message, budget)
            if session.finished is not None:
                final = session.finished.text
                ended = "refusal" if session.finished.status == "cannot" else "answer"
                session.steps.pop()  # nor is the call that ends it
                break
            if repeats and _repeats_of_last(session) >= repeats:
                break
    except InfrastructureError as error:
        ended, why = "error", words_of_any(error)
    except AgentException as error:
        ended, why = "exception", error.why
    finally:
        await session.world.close()
    return Trajectory(
        task=certificate.task,
        layers=tuple(dump_layers(certificate.layers)),
        agent=name,
        policy=policy,
        tools=tools,
        steps=tuple(step_data(step) for step in session.steps),
        final=clip(final),
        finish=session.finished,
        ended=ended,
        why=clip(why),
        receipts=session.receipts(seen),
        gold_steps=len(certificate.gold.steps),
        budget=budget,
    )


def _repeats_of_last(session: Session) -> int:
    """Count how often the last call has failed so far, or how often in a row it has brought the same result."""
    if not session.steps:
        return 0
    last = session.steps[-1]
    if last.result.error is not None:
        return sum(step.call == last.call and step.result.error is not None for step in session.steps)
    same = takewhile(lambda step: (step.call, step.result) == (last.call, last.result), reversed(session.steps))
    return sum(1 for _ in same)


async def _carry_out(session: Session, message: Message, budget: int) -> list[Message]:
    """Make the calls of a message, in order; what the user says meanwhile comes after the results."""
    out: list[Message] = []
    heard: list[str] = []
    for request in message.requests:
        if len(session.steps) >= budget:
            break
        call = ToolCall(request.tool, request.args)
        result = await session.acall(call)
        out.append(Message(role="tool", content=result_text(result), request_id=request.id))
        heard += session.steps[-1].heard
        if session.finished is not None:  # what comes after it in the same message is not done
            break
    session.user.said.clear()
    return [*out, *(Message(role="user", content=words) for words in heard)]


def result_text(result: ToolResult) -> str:
    """A result as an agent reads it."""
    if result.error:
        return _json({"error": result.error.code, "message": result.error.text})
    return result.content if isinstance(result.content, str) else _json(result.content)


def judge(trajectory: Trajectory, domain: Domain | None = None) -> Verdict:
    """The verdict on a stored episode: its world-side calls are made again in a fresh world."""
    if trajectory.ended == "error":
        return Verdict(outcome="error")
    domain = domain or domains[trajectory.task.domain]
    task, world = trajectory.task, replayed(trajectory, domain)
    if world.events:  # those that did not happen here
        missed = {key for event in world.events for key in event.now}
        obstacle = {key: row for key, row in task.obstacle.items() if key not in missed}
        task = task.replace(events=tuple(world.happened), obstacle=obstacle)
    typed = domain.family(task).typed
    verdict = domain.judge(task, world.state, trajectory.finish if trajectory.finish and typed else trajectory.final)
    if trajectory.ended == "exception":
        raised = Check(name="no exception", passed=False, why=trajectory.why.partition("\n")[0])
        return verdict.model_copy(update={"outcome": "fail", "checks": (*verdict.checks, raised)})
    offered = any(tool["function"]["name"] == FINISH for tool in trajectory.tools)
    if task.refuse and typed and offered and trajectory.finish is None:
        return verdict.model_copy(
            update={"outcome": "fail", "checks": (*verdict.checks, endings.words_only(domain, task))}
        )
    return verdict


def replayed(trajectory: Trajectory, domain: Domain) -> World:
    """The world as a stored episode left it, with the rows that the agent could have read facts from."""
    task, world = trajectory.task, domain.world(trajectory.task)
    world.state.seen = set()
    pending = list(task.changes)
    for step in trajectory.steps:
        for inner in step["inner"]:
            result = result_from(inner["result"])
            world.again(ToolCall(inner["call"]["tool"], inner["call"]["args"]), result)
            if result.error is None:
                world.state.told.append((inner["call"]["tool"], result.content))
        tool, args = step["call"]["tool"], step["call"]["args"]
        spoken = tool == SAY or (tool == FINISH and "content" in step["result"])
        said = args["text"] if tool == SAY else finish.read(args).text if spoken else ""
        for words in [step["result"].get("content")] if spoken else step["heard"]:
            if pending and words == clip(entity_names.shown(task, pending[0].words)):
                world.hear(pending.pop(0), said)
    return world


# ---------------------------------------------------------------- as data


def clip(text: str) -> str:
    """Text as it can be stored: not too long, and without halves of characters."""
    text = str.__str__(text)  # a subclass may do anything in its methods
    more = len(text) - TEXT
    if not text.isascii():
        text = text[:TEXT].encode("utf-8", "backslashreplace").decode()
    return text if more <= 0 else f"{text[:TEXT]}... [{more} more characters]"


def plain(value: Any) -> Any:
    """Whatever an agent sent, as JSON that can be stored: bounded in depth and length, without NaN."""
    return _plain(value, 0, [ROOM])


def shorter(step: dict[str, Any], room: int) -> dict[str, Any]:
    """A stored step with less in its calls and results."""
    out = dict(step)
    if isinstance(call := step.get("call"), dict):
        out["call"] = {**call, "args": _plain(call.get("args"), 0, [room])}
    if isinstance(result := step.get("result"), dict) and "content" in result:
        out["result"] = {**result, "content": _plain(result["content"], 0, [room])}
    if isinstance(inner := step.get("inner"), (list, tuple)):
        out["inner"] = [shorter(one, room) for one in inner if isinstance(one, dict)]
    return out


def _plain(value: Any, depth: int, room: list[int]) -> Any:
    """The same of a part; `room` is for how many characters more there is room."""
    if isinstance(value, str):
        text = clip(value)
        room[0] -= len(text)
        return text if room[0] >= 0 else "..."
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= DEPTH:
        return "..."
    if isinstance(value, dict):
        room[0] -= len(value) * EACH
        if room[0] < 0:
            return {"...": f"{len(value)} keys are left out"}
        return {clip(str(k)): _plain(v, depth + 1, room) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        room[0] -= len(value) * EACH
        if room[0] < 0:
            return [f"... {len(value)} values are left out"]
        return [_plain(v, depth + 1, room) for v in value]
    return clip(repr(value))


def call_data(call: ToolCall) -> dict[str, Any]:
    return {"tool": plain(call.tool), "args": plain(call.args)}


def result_data(result: ToolResult) -> dict[str, Any]:
    if result.error:
        return {"error": {"code": result.error.code, "text": result.error.text, "retryable": result.error.retryable}}
    return {"content": plain(result.content)}


def result_from(data: dict[str, Any]) -> ToolResult:
    """A result out of what is stored of it."""
    if "error" in data:
        return ToolResult(None, ToolError(**data["error"]))
    return ToolResult(data["content"])


def step_data(step: Step) -> dict[str, Any]:
    return {
        "call": call_data(step.call),
        "result": result_data(step.result),
        "inner": [{"call": call_data(call), "result": result_data(result)} for call, result in step.inner],
        "fired": list(step.fired),
        "heard": list(step.heard),
    }
