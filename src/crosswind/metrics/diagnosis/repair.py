"""Is the diagnosis right? Play a failed episode again with one channel repaired, and see which repair helps.

A channel is a part of what the agent meets: the query, the tools, what comes back, or the rules. To repair one is to
leave those layers of the stack out that work on it; everything else stays as it was drawn, and the rest of the stack
must still be certified.

The repair begins at the point of failure: what the agent had done in the world before it is done again through the
layers that are left (`retrace`), and the agent takes up that conversation. So it keeps what it did right, and only what
it met is other. Agents that cannot take up a conversation (scripted ones, programs with a loop of their own) play from
the start; one that does the same when shown the same goes its old way up to the first layer that was left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from crosswind.base.errors import Unfair
from crosswind.core.certify import certify
from crosswind.core.draw import Drawn
from crosswind.core.flow import chain, drive
from crosswind.core.oracle import workarounds
from crosswind.core.perturbation import Layers, Perturbation
from crosswind.core.session import Session
from crosswind.core.types import ASK, FINISH, SAY, Message, Model, Request, ToolCall, ToolResult, Trajectory
from crosswind.episodes.play import Opening, judge, result_text
from crosswind.episodes.record import Record, redrawn
from crosswind.metrics.diagnosis import UNDETERMINED

CHANNELS: Mapping[str, str] = {
    "query": "the request as it was first put: layers of the axis query",
    "tools": "names, parameters, descriptions and calling orders: layers of the axis action, and foreign vocabularies",
    "observations": "results and errors: layers of the axis observation",
    "rules": "the world and its rules: layers of the axis domain",
}
ANY = tuple(CHANNELS)
EXPECTED: Mapping[str, tuple[str, ...]] = {  # the channels from which a cause can come
    "memorised interface": ("tools", "rules"),  # a reskinned world gives the tools other values to choose from
    "wrong tool": ("tools", "observations"),
    "wrong argument": ("query", "tools", "rules"),
    "malformed call": ("tools",),
    "misread result": ("observations", "rules"),
    "ignored error": ("observations", "tools"),
    "unsafe retry": ("observations",),
    "blind repetition": ("observations", "tools"),
    "wrong order": ("tools",),
    "gave up": ("observations", "tools"),
    "ran out of steps": ANY,
    "timed out": ANY,
    "fabricated value": ("query", "observations"),
    "false success": ANY,
    "forced completion": ("rules",),
    "missed refusal": ("rules",),
    "over-refusal": ANY,
    "obeyed an injection": ("observations",),
}
Player = Callable[[Drawn, Opening | None], Awaitable[Trajectory]]


class CannotRetrace(Exception):
    """The way of a stored episode cannot be gone in another session."""


class Repair(Model):
    """What came of playing one episode again."""

    key: str
    stage: str
    cause: str
    again: bool | None  # did it fail again with nothing repaired? None: it was not tried
    helped: tuple[str, ...]  # channels whose repair restored success
    useless: tuple[str, ...]  # channels whose repair did not
    untried: tuple[str, ...]  # channels that no layer touches, or whose repair leaves an unfair stack
    resumed: tuple[str, ...] = ()  # channels repaired from the point of failure on, rather than from the start

    @property
    def confirmed(self) -> bool | None:
        """Does the repair that helps agree with the cause? None where no repair helps, or none was possible."""
        if not self.helped or self.cause not in EXPECTED:
            return None
        return any(channel in EXPECTED[self.cause] for channel in self.helped)


def channel_of(layer: Perturbation) -> str:
    """The channel on which a layer works."""
    if layer.axis == "domain":
        return "tools" if layer.rank == "vocabulary" else "rules"
    return {"query": "query", "action": "tools", "observation": "observations"}[layer.axis]


def repaired(drawn: Drawn, channel: str) -> Drawn | None:
    """The same episode without the layers of one channel; None where there are none, or the rest is not fair."""
    rest: Layers = tuple(layer for layer in drawn.layers if channel_of(layer) != channel)
    if len(rest) == len(drawn.layers):
        return None
    try:
        return Drawn(drawn.domain, drawn.base, rest, certify(drawn.domain, drawn.base, rest))
    except Unfair:
        return None


def retrace(record: Record, upto: int) -> Opening:
    """The way of a stored episode before its step `upto`, gone again in another session of the same request.

    What reached the world is done again in the words of the tools that are shown now, as one does it who knows the ways
    round the layers that are left; calls that never got through are left out. What the user was asked is asked again.
    """

    def opening(session: Session, chat: list[Message]) -> None:
        if planned := [layer.kind for layer in session.layers if layer.plans]:
            raise CannotRetrace(f"{planned[0]!r} needs to know what comes next")
        ways = workarounds(session)

        def send(call: ToolCall) -> ToolResult:
            if len(session.steps) >= record.budget:
                raise CannotRetrace(f"the way up to step {upto} takes more than {record.budget} steps")
            result = session.call(call)
            request = Request(id=f"before_{len(session.steps)}", tool=call.tool, args=dict(call.args))
            chat.append(Message(role="assistant", requests=(request,)))
            chat.append(Message(role="tool", content=result_text(result), request_id=request.id))
            chat.extend(Message(role="user", content=words) for words in session.steps[-1].heard)
            return result

        for step in record.steps[: upto - 1]:
            tool, args = step["call"]["tool"], step["call"]["args"]
            if tool == SAY:
                chat.append(Message(role="assistant", content=args["text"]))
                if (reply := session.say(args["text"])) is None:
                    raise CannotRetrace(f"{args['text'][:80]!r} ends the episode here")
                chat.append(Message(role="user", content=reply))
            elif tool in (ASK, FINISH):
                send(ToolCall(tool, args))
                if session.finished is not None:
                    raise CannotRetrace("the call of finish ends the episode here")
            for inner in step["inner"]:
                drive(chain(ToolCall(inner["call"]["tool"], inner["call"]["args"]), ways), send)
        session.user.said.clear()

    return opening


async def repair(record: Record, play_again: Player, *, upto: int = 1, resumes: bool = False) -> Repair:
    """Play a failed episode again as it is, then with each channel repaired in turn.

    `upto` is the step at which it failed; an agent that `resumes` takes it up there.
    """
    drawn = redrawn(record)
    again = judge(await play_again(drawn, None), drawn.domain).outcome == "fail"
    helped: list[str] = []
    useless: list[str] = []
    untried: list[str] = []
    resumed: list[str] = []
    for channel in CHANNELS:
        cleared = repaired(drawn, channel)
        if cleared is None:
            untried.append(channel)
            continue
        opening = retrace(record, upto) if resumes and upto > 1 and _can(record, upto, cleared) else None
        if opening is not None:
            resumed.append(channel)
        outcome = judge(await play_again(cleared, opening), cleared.domain).outcome
        (helped if outcome == "pass" else useless).append(channel)
    return Repair(
        key=record.key,
        stage=record.stage or UNDETERMINED,
        cause=record.cause or UNDETERMINED,
        again=again,
        helped=tuple(helped),
        useless=tuple(useless),
        untried=tuple(untried),
        resumed=tuple(resumed),
    )


def _can(record: Record, upto: int, drawn: Drawn) -> bool:
    """Can the way be gone again in this draw? Tried in a session that is thrown away."""
    try:
        retrace(record, upto)(Session.of(drawn.domain, drawn.certificate.task, drawn.layers), [])
    except (CannotRetrace, Unfair, KeyError, IndexError, TypeError, AttributeError, ValueError):
        return False  # the world is another one now, or a layer does not find what it needs
    return True


class Agreement(Model):
    """How often the repairs bear the diagnoses out."""

    tried: int
    steady: int  # failed again with nothing repaired
    helped: dict[str, int]  # by channel
    agree: int  # a repair helped through a channel from which the cause can come
    disagree: int  # a repair helped through another
    silent: int  # no repair helped, or none was possible


def agreement(repairs: Sequence[Repair]) -> Agreement:
    by_channel = Counter(channel for r in repairs for channel in r.helped)
    verdicts = Counter(r.confirmed for r in repairs)
    return Agreement(
        tried=len(repairs),
        steady=sum(r.again is not False for r in repairs),
        helped=dict(by_channel),
        agree=verdicts[True],
        disagree=verdicts[False],
        silent=verdicts[None],
    )
