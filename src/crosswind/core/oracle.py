"""The oracle: a family's own solution, walked through layers by somebody who knows every workaround.

`walk` drives the solution once; `Walks` keeps the walks through each prefix of a stack. A walk is recorded and never
edited: it is the gold trajectory, the proof that a task can be solved, and a demonstration to train on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crosswind.base.errors import CrosswindError, InfrastructureError, ToolFailed, Unfair
from crosswind.core import endings, entity_names
from crosswind.core.blame import culprit, is_ours, words_of
from crosswind.core.domain import Domain, recover
from crosswind.core.flow import Send, StepOf, driven
from crosswind.core.perturbation import Layers, Memo, Perturbation, performed
from crosswind.core.session import Session
from crosswind.core.types import (
    ASK,
    CHANGED,
    NOTE,
    SAY,
    Brief,
    Change,
    Changes,
    Finish,
    Flow,
    Key,
    Refusal,
    Solution,
    Step,
    Task,
    ToolCall,
    ToolError,
    ToolResult,
    Tools,
    ToolSpec,
)

RETRIES = 6  # of a call that says nothing was done and that it may be repeated
NOTED = 190  # characters of several notes before one step; most are digits, and of a token each
Done = list[tuple[ToolCall, ToolResult]]
Swap = Callable[[ToolCall], ToolCall]


class Told(NamedTuple):
    """A canonical call that the solution asked for, what it was told, and the steps of the session that this took."""

    call: ToolCall
    result: ToolResult
    first: int
    after: int  # one past the last step


@dataclass(slots=True)
class Walk:
    """An oracle's way from a request to its end."""

    session: Session
    end: str | Refusal
    changes: Changes  # of the canonical state, normalised
    noted: list[tuple[int, Any]] = field(default_factory=list)  # working, with the step before which it was written
    told: list[Told] = field(default_factory=list)
    proof: str = ""  # of the task by itself, once it was certified by this walk
    asked: list[Any] = field(default_factory=list)  # values to be told, where nothing is to be written

    @property
    def steps(self) -> list[Step]:
        return self.session.steps

    @property
    def final(self) -> str:
        end = self.end.text if isinstance(self.end, Refusal) else self.end
        return entity_names.shown(self.session.task, end)

    @property
    def finish(self) -> Finish:
        """The end as the tool `finish` takes it."""
        session = self.session
        family, task = session.domain.family(session.task), session.task
        if family.typed:
            return endings.gold(family, task, session.domain.state(task), session.world.state, self.final)
        if isinstance(self.end, Refusal):
            return Finish(status="cannot", reason="information_missing", message=self.final)
        return Finish(status="done", message=self.final)

    @property
    def notes(self) -> dict[int, str]:
        """The working by the step that it comes before, in the words of the episode.

        Where a layer has merged calls there may be more of it than a reply holds: then the last is kept.
        """
        out: dict[int, str] = {}
        for at, working in self.noted:
            text = entity_names.shown(self.session.task, str(working))
            whole = f"{out[at]}; {text}" if at in out else text
            out[at] = whole if len(whole) <= NOTED else text
        return out

    @property
    def calls(self) -> list[Step]:
        """The steps that are calls of tools of the world or of a layer."""
        return [step for step in self.session.steps if step.call.tool not in (ASK, SAY)]


def swap(call: ToolCall, other: ToolCall) -> Swap:
    """One call in the place of another, wherever that would be made."""
    return lambda made: other if made == call else made


def give_up(done: Done, specs: dict[str, ToolSpec], reason: str) -> Solution:
    """Take back what was written, then refuse."""
    yield from undo(done, specs)
    return Refusal(reason)


def undo(done: Done, specs: dict[str, ToolSpec]) -> Generator[ToolCall, ToolResult, None]:
    """The calls that take back what was written, the last first."""
    made: list[ToolCall] = []
    for call, result in reversed(done):
        spec = specs[call.tool]
        if spec.undo:
            back = ToolCall(spec.undo[0], {spec.undo[1]: result.content[spec.undo[1]]})
            if back not in made:
                made.append(back)
                yield back


def walk(
    domain: Domain,
    task: Task,
    layers: Sequence[Perturbation] = (),
    plans: dict[int, list[ToolCall]] | None = None,
    seen: set[Key] | None = None,
    instead: Swap | None = None,
    aside: Sequence[ToolCall] = (),
    at: int = 0,
) -> Walk:
    """Drive the family's solution through the layers, knowing every way round; `seen` collects the rows looked at.

    With `instead`, each call of the solution is made as that gives it. The calls `aside` are made before its `at`th.

    The world is fenced: a tool that reads or writes what it does not declare raises `Unfair`.
    """
    session = Session.of(domain.prepare(task, layers), task, layers, fenced=True)
    session.world.state.seen = seen
    oracle = _Oracle(session, plans or {})
    oracle.instead, oracle.aside, oracle.at = instead, aside, at
    try:
        end = oracle.run()
    except (CrosswindError, InfrastructureError):
        raise
    except Exception as error:
        if is_ours(error):
            raise
        own = domain.grounds and not domain.hosted
        if (layers or not own) and "perturbation" not in culprit(
            error
        ):  # what `solve` does with a result that lacks what it needs
            raise Unfair("replay", f"the solution no longer finds what it needs: {words_of(error)}") from error
        raise Unfair("code", words_of(error)) from error
    return Walk(session, end, domain.normalise(session.world.state), oracle.noted, oracle.told)


def through(session: Session, plans: dict[int, list[ToolCall]]) -> Send:
    """The function that makes a canonical call in a session by the ways round its layers."""
    return _Oracle(session, plans).through()


class Diverged(Exception):
    """Read by other layers, the same observations lead to another call than the one that was made."""

    def __init__(self, wanted: ToolCall, call: ToolCall, step: int) -> None:
        super().__init__(call.tool)
        self.wanted, self.call, self.step = wanted, call, step


def retrace(gold: Walk, task: Task, layers: Layers, plans: dict[int, list[ToolCall]]) -> tuple[list[Told], str | None]:
    """What the solution is told, and how it ends, if what `gold` observed is read by other layers.

    No world is asked: each call is answered as in `gold`. Raises `Diverged` at a call that `gold` did not make; its
    `told` are those so far. Any other exception says that the layers cannot read what was observed.
    """
    oracle = _Retracer(Session.of(gold.session.domain, task, layers), plans, gold.steps)
    try:
        end = oracle.run()
    except Diverged as diverged:
        diverged.args = (oracle.told,)
        raise
    return oracle.told, None if isinstance(end, Refusal) else end


class Workaround:
    """How a capable agent gets past one layer, as a step of a chain."""

    __slots__ = ("layer", "memo")

    def __init__(self, layer: Perturbation, memo: Memo) -> None:
        self.layer, self.memo = layer, memo

    def __call__(self, call: ToolCall) -> Flow:
        self.memo.at += 1  # what is ahead of this call, for a layer that plans
        return self.layer.perform(call, self.memo)


def workarounds(session: Session, plans: Mapping[int, Sequence[ToolCall]] | None = None) -> list[Workaround]:
    """How to get past each layer of a session that takes part in calls. Each has a memo of its own."""
    out = []
    for i, layer in enumerate(session.layers):
        if layer.is_passthrough:
            continue
        memo = Memo(session.clock, i)
        memo.tools = session.memos[i].tools
        if layer.plans:
            memo.plan = (plans or {}).get(i, ())
            memo.details = session.task.given
        out.append(Workaround(layer, memo))
    return out


class _Oracle:
    def __init__(self, session: Session, plans: dict[int, list[ToolCall]]) -> None:
        self.session, self.task = session, session.task
        self.family = self.solver = session.domain.family(session.task)
        self.specs = {t.name: t for t in session.world.specs}
        self.noted: list[tuple[int, Any]] = []
        self.told: list[Told] = []
        self.instead: Swap | None = None
        self.aside: Sequence[ToolCall] = ()
        self.at = self.sent = 0
        self.ways: list[StepOf] = [*workarounds(session, plans)]

    def through(self) -> Send:
        """The function that makes a canonical call by the ways round all layers."""
        send: Send = self._send
        for way in reversed(self.ways):
            if isinstance(way, Workaround) and not way.layer.plans:
                send = performed(way.layer, way.memo, send)
            else:
                send = driven(way, send)
        return send

    def run(self) -> str | Refusal:
        session, specs = self.session, self.specs
        brief: Brief = self.task.brief
        done: Done = []
        flow, send = self._begun(brief), self.through()
        result: Any = None
        error: ToolError | None = None
        while True:
            if session.user.said:
                keeps = all(change.adds for change in session.user.said)
                while session.user.said:
                    brief = self._changed_by(session.user.said.pop(0), brief)
                flow.close()
                flow, result, error, done = self._anew(brief, [] if keeps else done), None, None, []
            try:
                call = flow.throw(ToolFailed(error.code, error.text)) if error else flow.send(result)
            except ToolFailed as stopped:  # the solution has no way on: leave nothing half done
                if not any(specs[c.tool].undo for c, _ in done):
                    return Refusal(_reason(stopped))
                flow, result, error, done = give_up(done, specs, _reason(stopped)), None, None, []
                call = next(flow)
            except StopIteration as stop:
                end: str | Refusal = stop.value
                if isinstance(end, Refusal) or not session.user.pending:
                    return end
                if self._say(entity_names.shown(self.task, end)) is None:
                    raise Unfair("replay", f"the final message {end!r} is not taken for an answer") from None
                continue
            error = None
            if call.tool == NOTE:
                self.noted.append((len(session.steps), call.args["text"]))
                result = None
                continue
            if call.tool == ASK:
                result = ToolResult(self._ask(call.args["about"]))
                continue
            if call.tool == SAY:  # the end of a turn in a conversation whose turns the solution knows
                result = ToolResult(self._say(call.args["text"]))
                session.user.said.clear()
                continue
            first = self._at()
            result = send(call)
            self.told.append(Told(call, result, first, self._at()))
            if result.error and result.error.code == CHANGED:  # what was read is no longer true: begin again
                flow.close()
                flow, result, done = self._anew(brief, done), None, []
            elif result.error:
                error = result.error
            elif specs[call.tool].writes:
                done.append((call, result))

    def _begun(self, brief: Brief) -> Solution:
        return self.solver.solve(brief)

    def _changed_by(self, change: Change, brief: Brief) -> Brief:
        """What the oracle is told once the user has spoken."""
        heard = self._heard(change.words, list(change.stated))
        if change.family:
            self.solver = self.session.domain.families[change.family]
            return brief.model_copy(update={"query": change.words, "stated": heard, "vague": {}})
        return brief.model_copy(update={"stated": {**brief.stated, **heard}})

    def _anew(self, brief: Brief, done: Done) -> Solution:
        yield from undo(done, self.specs)
        return (yield from self.solver.solve(brief))

    def _send(self, call: ToolCall) -> ToolResult:
        if self.instead:
            call = self.instead(call)
        for call_aside in self.aside if self.sent == self.at else ():
            self.session.call(call_aside)
        self.sent += 1
        for _ in range(RETRIES + 1):
            if len(self.session.steps) >= self.family.longest_walk:
                raise Unfair("budget", f"the way round takes more than {self.family.longest_walk} steps")
            result = self.session.call(call)
            if not (result.error and result.error.retryable):
                return result
        raise Unfair(
            "replay", f"{call.tool!r} still fails after {RETRIES} retries: {result.error and result.error.text}"
        )

    def _at(self) -> int:
        return len(self.session.steps)

    def _say(self, text: str) -> str | None:
        return self.session.say(text)

    def _ask(self, key: str) -> Any:
        reply = self._send(ToolCall(ASK, {"question": self.family.details[key].question})).content
        return self._heard(entity_names.plain(self.task, reply), [key])[key]

    def _heard(self, text: str, keys: list[str]) -> dict[str, Any]:
        found = recover(text, self.family.details, keys)
        if missing := [key for key in keys if key not in found]:
            raise Unfair("stated", f"the user's words {text!r} do not give {', '.join(missing)}")
        return found


class _Retracer(_Oracle):
    """An oracle whose calls are answered by the steps of a walk already made."""

    def __init__(self, session: Session, plans: dict[int, list[ToolCall]], steps: Sequence[Step]) -> None:
        super().__init__(session, plans)
        self.observed, self.n = steps, 0

    def _at(self) -> int:
        return self.n

    def _next(self, call: ToolCall) -> Step:
        if self.n == len(self.observed) or self.observed[self.n].call != call:
            raise Diverged(call, call, self.n)
        step = self.observed[self.n]
        self.session.clock.nth = self.n
        self.n += 1
        if self.n in self.session.moments:
            self.session.show(self.n)
        for words in step.heard:
            self._changed(words)
        return step

    def _changed(self, words: str) -> None:
        if entity_names.shown(self.task, self.session.user.change("").words) != words:
            raise LookupError("the user would have said something else")

    def _send(self, call: ToolCall) -> ToolResult:
        for _ in range(RETRIES + 1):
            result = self._next(call).result
            if not (result.error and result.error.retryable):
                break
        return result

    def _say(self, text: str) -> str | None:
        step = self._next(ToolCall(SAY, {"text": text}))
        words: str | None = step.result.content
        if words is not None and self.session.user.pending:
            self._changed(words)
        return words


class Resumed(_Oracle):
    """An oracle that goes on where an agent stands: what the agent was told already is not asked again.

    `left` are the agent's steps that the solution did not need; `undo` are writes to be taken back first.
    """

    def __init__(self, session: Session, plans: dict[int, list[ToolCall]], back: Done) -> None:
        super().__init__(session, plans)
        self.left = [*session.steps]
        self.back = back

    def _begun(self, brief: Brief) -> Solution:
        return self._anew(brief, self.back) if self.back else super()._begun(brief)

    def walk(self) -> Walk:
        end = self.run()
        session = self.session
        return Walk(session, end, session.domain.normalise(session.world.state), self.noted, self.told)

    def _send(self, call: ToolCall) -> ToolResult:
        for i, step in enumerate(self.left):
            if step.call == call and not (step.result.error and step.result.error.retryable):
                return self.left.pop(i).result
        return super()._send(call)

    def _ask(self, key: str) -> Any:
        for i, step in enumerate(self.left):
            if step.call.tool in (ASK, SAY) and isinstance(step.result.content, str):
                text = entity_names.plain(self.task, step.result.content)
                if key in (found := recover(text, self.family.details, [key])):
                    del self.left[i]
                    return found[key]
        return super()._ask(key)


class _Remembering(_Oracle):
    """An oracle whose calls are answered as those of a walk were, in whatever order they come."""

    def __init__(self, session: Session, steps: Sequence[Step], results: Sequence[ToolResult]) -> None:
        super().__init__(session, {})
        self.calls = [repr(step.call) for step in steps]
        self.made: list[str] = []
        self.answers: dict[str, list[tuple[Step, ToolResult]]] = {}
        for key, step, result in zip(reversed(self.calls), reversed(steps), reversed(results), strict=True):
            self.answers.setdefault(key, []).append((step, result))

    def _send(self, call: ToolCall) -> ToolResult:
        key = repr(call)
        answers = self.answers.get(key)
        if not answers:
            raise Diverged(call, call, 0)
        self.made.append(key)
        step, result = answers.pop() if len(answers) > 1 else answers[0]
        for _ in step.heard[: len(self.session.user.pending)]:
            self.session.user.change("")
        return result

    def _say(self, text: str) -> str | None:
        raise Diverged(ToolCall(SAY), ToolCall(SAY), 0)


def remembered(clean: Walk, results: Sequence[ToolResult]) -> bool:
    """If a clean walk's steps had these results, would the solution make the same calls and end the same?"""
    try:
        oracle = _Remembering(Session.of(clean.session.domain, clean.session.task), clean.steps, results)
        return oracle.run() == clean.end and sorted(oracle.made) == sorted(oracle.calls)
    except Exception:  # a real walk will tell
        return False


def _reason(stopped: ToolFailed) -> str:
    return (stopped.text or stopped.code).rstrip(".")


class Walks:
    """The walks through each prefix of one stack: the one before a layer is its plan, the last one is gold."""

    def __init__(self, domain: Domain, task: Task, clean: Walk | None = None) -> None:
        self.domain, self.tasks = domain, [task]
        self.layers: Layers = ()
        self.made: dict[int, Walk] = {0: clean} if clean else {}
        self.count = 0
        self._reference: Walk | None = None
        self._shown: dict[tuple[int, int], Tools] = {}

    def add(self, layer: Perturbation) -> None:
        try:
            shifted = layer.on_task(self.tasks[-1])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Unfair("value", f"{layer.kind!r} does not fit {self.tasks[0].id}: {words_of(error)}") from error
        self.layers += (layer,)
        self.tasks.append(shifted)

    def fork(self) -> Walks:
        """A copy with the walks so far, to try another layer on."""
        fork = copy(self)
        fork.tasks, fork.made, fork._shown = list(self.tasks), dict(self.made), dict(self._shown)
        return fork

    def shown(self, n: int, nth: int) -> Tools:
        """The tools as the first n layers show them at the nth call."""
        while n and not self.layers[n - 1].retools:
            n -= 1
        if n == 0:
            return self.domain.tools(self.tasks[0])
        if (n, nth) not in self._shown:
            self._shown[n, nth] = self.layers[n - 1].on_tools(self.shown(n - 1, nth), nth)
        return self._shown[n, nth]

    def at(self, n: int) -> Walk:
        if n not in self.made:
            last = self.layers[n - 1] if n else None
            if last and last.is_passthrough and not last.retools and self.tasks[n] is self.tasks[n - 1]:
                self.made[n] = self.at(n - 1)
            else:
                self.count += 1
                self.made[n] = walk(self.domain, self.tasks[n], self.layers[:n], self.plans(n))
        return self.made[n]

    def plans(self, n: int) -> dict[int, list[ToolCall]]:
        return {i: [s.call for s in self.at(i).calls] for i in range(n) if self.layers[i].plans}

    def instead(self, call: ToolCall, other: ToolCall) -> Walk:
        """Gold with another call in the place of one."""
        n = len(self.layers)
        self.count += 1
        return walk(self.domain, self.shifted, self.layers, self.plans(n), instead=swap(call, other))

    def aside(self, calls: Sequence[ToolCall], at: int = 0) -> Walk:
        """Gold by somebody who makes other calls before it begins, or before its `at`th call."""
        self.count += 1
        return walk(self.domain, self.shifted, self.layers, self.plans(len(self.layers)), aside=calls, at=at)

    def under(self, layer: Perturbation) -> Walk:
        """Gold with one more layer on top, which leaves the task as it is."""
        self.count += 1
        return walk(self.domain, self.shifted, (*self.layers, layer), self.plans(len(self.layers)))

    @property
    def clean(self) -> Walk:
        return self.at(0)

    @property
    def gold(self) -> Walk:
        return self.at(len(self.layers))

    @property
    def shifted(self) -> Task:
        return self.tasks[-1]

    def moved(self) -> Walk:
        """The request as those layers alone shift it that say so, on the canonical interface."""
        task = self.tasks[0]
        for layer in self.layers:
            if layer.goal != "kept":
                task = layer.on_task(task)
        if task is self.tasks[0]:
            return self.clean
        if all(layer.goal != "kept" or self.tasks[i] is self.tasks[i + 1] for i, layer in enumerate(self.layers)):
            return self.reference()
        self.count += 1
        return walk(self.domain, task)

    def reference(self) -> Walk:
        """The request as shifted, on the canonical interface."""
        n = 0
        while n < len(self.layers) and self.layers[n].is_passthrough and not self.layers[n].retools:
            n += 1
        if self.tasks[n] is self.shifted:
            return self.at(n)
        if self._reference is None:
            self.count += 1
            self._reference = walk(self.domain, self.shifted)
        return self._reference
