"""On-policy corrections: an agent played, and from its first mistake on the oracle shows how it should have gone on.

A step of a failed episode was right if it is what the oracle would have done next, or if the oracle has less left to do
after it. The first that was not is the mistake. The conversation up to it is context and is not learnt; what the oracle
does from there is. It does not ask again what the agent was told, and takes back a wrong write first, where a tool does
that. Nothing is kept that the judge does not pass, that repeats a call already answered, or that undoes right work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from crosswind.agents._scripted import requesting
from crosswind.base.errors import CannotDraw, CrosswindError
from crosswind.core.draw import Drawn
from crosswind.core.oracle import Resumed, Walk, Walks, undo
from crosswind.core.session import Session
from crosswind.core.types import ASK, SAY, Message, Refusal, Step, ToolCall, ToolResult, Trajectory
from crosswind.episodes.play import judge, result_text, step_data
from crosswind.episodes.record import Record, redrawn
from crosswind.runs.store import iter_records
from crosswind.train.rows import PLAIN, Demonstration, after, described, thought
from crosswind.train.thoughts import Habits, Thinking
from crosswind.words import held_out

Sort = Literal["accepted", "refused", "ended"]  # the mistake: a call the world took, one it did not, or the end
TRIED = 40  # episodes that are looked at for one correction
ACCEPTED = 1 / 3  # the least share of corrections that follow a call which the world accepted


class Takeover(NamedTuple):
    """The oracle's way on from where an agent stood after some steps."""

    walk: Walk
    made: int  # steps of the agent
    undone: tuple[ToolCall, ...]  # calls that take back what the agent wrote

    @property
    def live(self) -> list[Step]:
        return self.walk.steps[self.made :]


@dataclass(frozen=True, slots=True)
class Correction:
    """What came of one failed episode."""

    sort: Sort
    shown: Demonstration


class _Replay:
    """An episode that can be gone through again up to any of its steps."""

    def __init__(self, drawn: Drawn, calls: Sequence[ToolCall]) -> None:
        self.drawn, self.calls = drawn, calls
        certificate = drawn.certificate
        walks = Walks(drawn.domain, drawn.base, certificate.clean)
        for layer in certificate.layers:
            walks.add(layer)
        self.plans = walks.plans(len(certificate.layers))
        self.specs = {spec.name: spec for spec in certificate.gold.session.world.specs}

    def stands(self, count: int) -> Session:
        """A session in which the agent has made this many of its steps."""
        certificate = self.drawn.certificate
        session = Session.of(self.drawn.domain, certificate.task, certificate.layers)
        for call in self.calls[:count]:
            session.say(str(call.args.get("text", ""))) if call.tool == SAY else session.call(call)
            session.user.said.clear()
        return session

    def takeover(self, count: int) -> Takeover | None:
        """The oracle's way on after this many steps; None where it has none."""
        try:
            oracle = Resumed(self.stands(count), self.plans, [])
            walk = oracle.walk()
            wrong = [
                (call, result)
                for step in oracle.left
                for call, result in step.inner
                if result.error is None and call.tool in self.specs and self.specs[call.tool].writes
            ]
            if not wrong:
                return Takeover(walk, count, ())
            if not all(self.specs[call.tool].undo for call, _ in wrong):
                return None
            back = tuple(_sent(undo(wrong, self.specs)))
            return Takeover(Resumed(self.stands(count), self.plans, wrong).walk(), count, back)
        except Exception:  # the solution was not written for what it finds; another episode will do
            return None


def _sent(flow: Any) -> Iterator[ToolCall]:
    """The calls of a flow that takes no notice of its answers."""
    try:
        call = next(flow)
        while True:
            yield call
            call = flow.send(ToolResult(None))
    except StopIteration:
        return


def corrected(
    record: Record, counts: Counter[str], *, reasons: bool = True, habits: Habits = PLAIN
) -> Correction | None:
    """The correction of a failed episode; None where there is none, with the reason counted."""
    if record.passed or record.outcome != "fail":
        return None
    try:
        drawn = redrawn(record)
    except (CannotDraw, CrosswindError):
        counts["dropped: the episode cannot be drawn again"] += 1
        return None
    held_out.check_drawn(drawn)
    session = drawn.certificate.gold.session
    if session.moments or drawn.certificate.task.changes:
        counts["dropped: tools or the request change midway"] += 1
        return None
    calls = [ToolCall(step["call"]["tool"], step["call"]["args"]) for step in record.steps]
    replay = _Replay(drawn, calls)
    way = replay.takeover(0)
    for n, call in enumerate(calls):
        if way is None:
            break
        then = replay.takeover(n + 1)
        if then is None:
            counts["dropped: what followed from the mistake cannot be taken back"] += 1
            return None
        meant = bool(way.live) and way.live[0].call == call
        if not then.undone and (meant or len(then.live) < len(way.live)):
            way = then
            continue
        error = then.walk.steps[n].result.error
        return _kept(record, replay, then, "refused" if error else "accepted", counts, reasons, habits)
    if way is None:
        counts["dropped: the oracle does not find its way on"] += 1
        return None
    return _kept(record, replay, way, "ended", counts, reasons, habits)


def _kept(
    record: Record, replay: _Replay, way: Takeover, sort: Sort, counts: Counter[str], reasons: bool, habits: Habits
) -> Correction | None:
    """A takeover as a demonstration, if it is one to learn from."""
    answered = [s.call for s in way.walk.steps[: way.made] if s.result.error is None and s.call.tool not in (ASK, SAY)]
    writes = [e for s in way.walk.steps[: way.made] for e in s.inner if e[1].error is None]
    right = [e for e in writes if replay.specs.get(e[0].tool) and replay.specs[e[0].tool].writes]
    backs = [call for call in _sent(undo(right, replay.specs)) if call not in way.undone]
    live = [call for step in way.live for call, _ in step.inner]
    why = ""
    if any(step.call in answered for step in way.live):
        why = "dropped: repeats a call that was answered"
    elif any(call in live for call in backs):
        why = "dropped: undoes right work"
    elif _verdict(record, way.walk) != "pass":
        why = "dropped: does not pass"
    if why:
        counts[why] += 1
        return None
    counts[f"corrections: {sort}"] += 1
    return Correction(sort, _shown(replay.drawn, way, sort, reasons, habits))


def _verdict(record: Record, walk: Walk) -> str:
    """How the judge finds the whole way, the agent's part included."""
    return judge(
        Trajectory(
            task=walk.session.task,
            layers=record.layers,
            agent="correction",
            policy=record.policy,
            tools=record.tools,
            steps=tuple(step_data(step) for step in walk.steps),
            final=walk.final,
            ended="refusal" if isinstance(walk.end, Refusal) else "answer",
        ),
        walk.session.domain,
    ).outcome


def _shown(drawn: Drawn, way: Takeover, sort: Sort, reasons: bool, habits: Habits) -> Demonstration:
    """The conversation, of which only the oracle's turns are learnt."""
    walk = way.walk
    fresh = Session.of(drawn.domain, drawn.certificate.task, drawn.certificate.layers)
    chat = [Message(role="system", content=fresh.policy()), Message(role="user", content=fresh.query())]
    menu = fresh.tools()
    texts = [result_text(step.result) for step in walk.steps]
    thinking = Thinking(walk, texts, f"{chat[0].content}\n{chat[1].content}", habits) if reasons else None
    mistake = way.made - 1 if sort != "ended" else -1
    context: set[int] = set()
    for n, step in enumerate(walk.steps):
        if n < way.made:
            context.add(len(chat))
        elif n == way.made and thinking:
            thinking.readings, thinking.looked_up = {n}, set()
        said = ""
        if thinking and n == mistake:
            said = thinking.slipping(n, step.call.tool)
        elif thinking:
            said = thinking.before(n, menu)
        if step.call.tool == SAY:
            chat.append(Message(role="assistant", content=after(said, str(step.call.args["text"]))))
            chat.append(Message(role="user", content=str(step.result.content)))
        else:
            chat.append(requesting(step.call, n, thought(said) if said else ""))
            chat.append(Message(role="tool", content=texts[n], request_id=f"call_{n}"))
    said = thinking.before(len(walk.steps), menu) if thinking else ""
    chat.append(Message(role="assistant", content=after(said, walk.final)))
    meta = {**described(drawn, len(walk.steps)), "corrects": sort, "from": way.made}
    meta["ended"] = "refusal" if isinstance(walk.end, Refusal) else "answer"
    return Demonstration(tuple(chat), ((0, menu),), meta, drawn, frozenset(context))


# ---------------------------------------------------------------- of whole runs


def corrections(
    run: Path | str, counts: Counter[str], *, reasons: bool = True, habits: Habits = PLAIN
) -> Iterator[Correction]:
    """The corrections of a run's failed episodes, one by one; `counts` says what was dropped and why."""
    for record in iter_records(run):
        counts["episodes"] += 1
        counts["passed"] += record.passed
        if found := corrected(record, counts, reasons=reasons, habits=habits):
            yield found


def balanced(found: Sequence[Correction], counts: Counter[str]) -> list[Correction]:
    """As many that one in three follows a call which the world accepted; the last of the others are dropped."""
    room = round(sum(one.sort == "accepted" for one in found) * (1 / ACCEPTED - 1))
    kept = []
    for one in found:
        if one.sort != "accepted":
            room -= 1
        if one.sort == "accepted" or room >= 0:
            kept.append(one)
    counts["left out: too few follow a call that the world accepted"] += len(found) - len(kept)
    return kept


def kinds_of(found: Sequence[Correction]) -> Counter[str]:
    """How many corrections there are under each kind."""
    return Counter(kind for one in found for kind in one.shown.meta["kinds"] or ["clean"])


def correction_at(
    runs: tuple[str, ...], rng: Random, counts: Counter[str], *, reasons: bool = True, habits: Habits = PLAIN
) -> Demonstration:
    """A correction of any failed episode; one in three at least follows a call that the world accepted."""
    records = _failed(runs)
    wanted: Sort | None = "accepted" if rng.random() < ACCEPTED else None
    spare: Demonstration | None = None
    for _ in range(TRIED):
        found = corrected(rng.choice(records), counts, reasons=reasons, habits=habits)
        if found and (wanted is None or found.sort == wanted):
            return found.shown
        spare = spare or (found.shown if found else None)
    if spare is None:
        raise CrosswindError(
            f"{', '.join(runs)}: none of the failed episodes can be corrected; play more episodes, or different tasks"
        )
    counts["corrections: none was found after a call that the world accepted"] += 1
    return spare


@lru_cache(maxsize=4)
def _failed(runs: tuple[str, ...]) -> list[Record]:
    found = [record for run in runs for record in iter_records(run) if record.outcome == "fail"]
    if not found:
        raise CrosswindError(f"{', '.join(runs)}: no episode failed, so there is nothing to correct")
    return found
