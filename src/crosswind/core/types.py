"""The data types that pass between an agent, its layers and a world.

Calls, results and steps are made at every turn and are slotted dataclasses; what is stored or read from a file is a
strict pydantic model. Nothing here acts.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

Axis = Literal["query", "action", "observation", "domain"]
Tier = Literal["perception", "interaction", "reasoning", "internalization"]
Split = Literal["train", "dev", "test"]
Row = Mapping[str, Any]
Key = tuple[str, str]  # (table, id)
Changes = dict[Key, Row | None]  # rows that differ from the start; None: the row is gone

AXES: tuple[Axis, ...] = ("query", "action", "observation", "domain")
TIERS: tuple[Tier, ...] = ("perception", "interaction", "reasoning", "internalization")
SPLITS: tuple[Split, ...] = ("train", "dev", "test")

ASK = "ask_user"  # the tool through which an agent may ask; plain words do as well
CHANGED = "changed"  # the code of a write that was made on what is no longer true
FINISH = "finish"  # the tool that ends an episode, where words do not; see `finish.py`
SAY = "(say)"  # how a message without a tool call stands among the steps
TALK = (ASK, SAY, FINISH)  # calls that reach the user, and no world
NOTE = "(note)"  # working that a solution writes down before it acts; it is not a step and reaches no world


class Model(BaseModel):
    """Frozen, strict, and closed to unknown fields: what crosses a boundary."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


# ---------------------------------------------------------------- made at every step


@dataclass(frozen=True, slots=True)
class ToolError:
    code: str
    text: str = ""
    retryable: bool = False  # nothing happened, and the same call may succeed if repeated


@dataclass(frozen=True, slots=True)
class ToolResult:
    content: Any = None
    error: ToolError | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def named(self, tool: str) -> ToolCall:
        return ToolCall(tool, self.args)

    def with_args(self, **args: Any) -> ToolCall:
        return ToolCall(self.tool, {**self.args, **args})

    def without(self, *names: str) -> ToolCall:
        return ToolCall(self.tool, {k: v for k, v in self.args.items() if k not in names})


@dataclass(frozen=True, slots=True)
class Step:
    """One call as the agent made it and was answered, and the calls it became on the world's side."""

    call: ToolCall
    result: ToolResult
    inner: tuple[tuple[ToolCall, ToolResult], ...] = ()
    fired: tuple[int, ...] = ()  # layers whose obstacle was met here, by their place in the stack
    heard: tuple[str, ...] = ()  # what the user said of their own accord after this step


def failed(code: str, text: str = "", *, retryable: bool = False) -> ToolResult:
    """A result that is an error."""
    return ToolResult(None, ToolError(code, text, retryable))


Flow = Generator[ToolCall, ToolResult, ToolResult]  # asks for calls, reads results, returns one
Solution = Generator[ToolCall, ToolResult, "str | Refusal"]  # the same, returning how the episode ends


@dataclass(frozen=True, slots=True)
class Refusal:
    """The end of a solution that found out that the request cannot be met."""

    reason: str

    @property
    def text(self) -> str:
        return f"I cannot do this: {self.reason}."


# ---------------------------------------------------------------- tools


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of a tool, as JSON schema sees it."""

    type: str  # string, integer, number, boolean, array or object
    doc: str = ""
    required: bool = True
    enum: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)  # any other keyword of its schema, kept as it came

    def schema(self) -> dict[str, Any]:
        out: dict[str, Any] = {"type": self.type, **self.extra}
        if self.doc:
            out["description"] = self.doc
        if self.enum:
            out["enum"] = list(self.enum)
        return out


ALL_CUES = frozenset({"name", "doc", "params"})


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as one side sees it, with what the certificate must know and the agent is never shown."""

    name: str
    doc: str
    params: Mapping[str, Param] = field(default_factory=dict)
    writes: bool = False
    undo: tuple[str, str] | None = None  # (tool, key): that tool, given `key` of this one's result, takes it back
    lasting: bool = True  # False: a write that leaves nothing of consequence
    cues: frozenset[str] = ALL_CUES  # what still tells the truth about it: name, doc, params
    listed: bool = True  # False: a tombstone that answers with an error, and is not shown
    ids: frozenset[str] = frozenset()  # what texts call it by: {id} is rendered with the name shown
    opaque: bool = False  # made by a layer: it has no canonical tool of its own

    def __getattr__(self, name: str) -> Any:
        """Name the field that is meant where the name is that of a JSON schema."""
        meant = {"description": "doc", "parameters": "params"}.get(name)
        hint = f"; did you mean {meant}?" if meant else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    @classmethod
    def new(cls, name: str, doc: str, params: Mapping[str, Param] | None = None, **more: Any) -> ToolSpec:
        """A tool that a layer adds."""
        return cls(name, doc, params or {}, ids=frozenset({name}), opaque=True, **more)

    def replace(self, **changes: Any) -> ToolSpec:
        """The same with some fields changed; `dataclasses.replace`, several times faster."""
        new = object.__new__(ToolSpec)
        for name in _SPEC_FIELDS:
            object.__setattr__(new, name, changes.pop(name) if name in changes else getattr(self, name))
        if changes:
            raise TypeError(f"a tool has no {', '.join(changes)}")
        return new

    @property
    def final(self) -> bool:
        """A write that cannot be taken back."""
        return self.writes and self.lasting and self.undo is None

    def made(self, name: str, *others: ToolSpec, **changes: Any) -> ToolSpec:
        """Another tool made out of this one and `others`; a plain renaming is `but(name=...)`."""
        return self.replace(name=name, ids=self.ids.union({name}, *(o.ids for o in others)), **changes)

    def with_param(
        self,
        name: str,
        type: str,
        doc: str = "",
        *,
        required: bool = False,
        says: str | None = None,
        enum: tuple[str, ...] = (),
    ) -> ToolSpec:
        """The same with one more parameter; `says` is what its description says of it, `enum` lists its values."""
        whole = self.doc if says is None else f"{self.doc} {says}".rstrip()
        return self.replace(params={**self.params, name: Param(type, doc, required, enum)}, doc=whole)

    def without_param(self, *names: str) -> ToolSpec:
        return self.replace(params={k: v for k, v in self.params.items() if k not in names})

    def function(self) -> dict[str, Any]:
        """The JSON-schema function that chat APIs take as a tool."""
        parameters: dict[str, Any] = {"type": "object", "properties": {k: p.schema() for k, p in self.params.items()}}
        if required := [k for k, p in self.params.items() if p.required]:
            parameters["required"] = required
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.doc, "parameters": parameters},
        }


_SPEC_FIELDS = tuple(f.name for f in fields(ToolSpec))
Tools = tuple[ToolSpec, ...]


# ---------------------------------------------------------------- tasks


class Brief(Model):
    """All that an agent is told: the query and the policy. `solve` reads the same, already taken apart."""

    query: str
    stated: dict[str, Any]  # details that the query gives; the rest must be asked for or looked up
    policy: str = ""
    rules: dict[str, str] = {}  # the policy as `solve` reads it, such as {"city": "records"}
    vague: dict[str, str] = {}  # what the query says in the place of a withheld detail


class Change(Model):
    """The user changes the request once a canonical tool was called, or at the latest when the agent would end."""

    after: str
    stated: dict[str, Any]
    words: str
    family: str = ""  # the request gives way to one of this family, which `stated` and `words` make up
    adds: bool = False  # the same once more with these details, and what was asked before still counts


class Event(Model):
    """Somebody else changes rows, once one of them was read and before the agent has written anything."""

    column: str  # "table.column", which changes
    was: dict[str, dict[str, Any]]  # "table/id" -> row
    now: dict[str, dict[str, Any]]
    text: str  # what a write is answered that comes before one of the rows was read again


class EntityNames(Model):
    """Other words for entities, as everybody in the episode says them; see `entity_names.py`."""

    words: dict[str, str] = {}  # in the records -> in the episode, such as {"museum": "bakery"}
    endings: dict[str, str] = {}  # of made-up names


class Task(Model):
    """One request in one world. Small: the world is a function of it."""

    id: str
    domain: str
    family: str
    brief: Brief
    seed: int  # of the world
    size: int  # entities in the world
    split: Split = "test"
    withheld: dict[str, Any] = {}  # what the user knows, has not said, and answers when asked
    changes: tuple[Change, ...] = ()
    remembered: dict[str, Any] = {}  # what the user said in an earlier episode of a career and does not repeat
    carried: dict[str, dict[str, Any] | None] = {}  # "table/id" -> row or None, as earlier episodes left it
    edits: dict[str, dict[str, Any] | None] = {}  # the same, applied to the derived world and what was carried
    events: tuple[Event, ...] = ()  # changes by others; what is right is what is right after them
    obstacle: dict[str, dict[str, Any] | None] = {}  # the same: edits that make the request impossible
    blocked: dict[str, str] = {}  # canonical tools that never work here, and why
    entity_names: EntityNames | None = None

    @property
    def refuse(self) -> bool:
        """Is a refusal the right end?"""
        return bool(self.obstacle or self.blocked)

    @property
    def wanted(self) -> dict[str, Any]:
        """The request's details as they are in the end, wherever they were said."""
        out = {**self.brief.stated, **self.withheld, **self.remembered}
        for change in self.changes:
            out = {**change.stated} if change.family else {**out, **change.stated}
        return out

    @property
    def given(self) -> frozenset[str]:
        """All values that the request gives, at whatever time, as text."""
        changed = (value for change in self.changes for value in change.stated.values())
        return frozenset(
            map(str, (*self.brief.stated.values(), *self.withheld.values(), *self.remembered.values(), *changed))
        )

    def replace(self, **changes: Any) -> Task:
        return self.model_copy(update=changes)

    def briefed(self, **changes: Any) -> Task:
        return self.model_copy(update={"brief": self.brief.model_copy(update=changes)})

    def unobstructed(self) -> Task:
        """The same request in a world where nothing stands in its way."""
        return self.replace(obstacle={}, blocked={}, events=())


# ---------------------------------------------------------------- conversations and episodes


class Request(Model):
    """A tool call in a message, as chat APIs write it. `args` is whatever came."""

    id: str
    tool: str
    args: Any = Field(default_factory=dict)


class Message(Model):
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    requests: tuple[Request, ...] = ()  # of an assistant
    request_id: str = ""  # of a tool's answer


class Agent(Protocol):
    """A policy over the conversation. Anyone who plays owns the loop."""

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message: ...


class Receipt(Model):
    """What became of one obstacle."""

    kind: str
    fired: bool
    step: int | None  # the first step at which it fired; 0 is before the first call
    seen: bool  # the agent had a turn after it


Ending = Literal["finish", "words"]  # how agents of a run end an episode: by the tool, or by a message without a call
# exception: the agent's own code broke; error: its provider or a machine did; closed: a client of the proxy left
Ended = Literal["answer", "refusal", "budget", "exception", "error", "closed"]


Status = Literal["done", "cannot"]
ValueKind = Literal["name", "id", "choice", "yes_no", "number", "money", "date", "time"]
Cause = Literal["not_found", "none_available", "not_allowed", "tool_unavailable", "information_missing"]
CAUSES: Mapping[Cause, str] = {
    "not_found": "something that the request needs does not exist",
    "none_available": "it exists, but nothing that fits is free or left",
    "not_allowed": "a rule, or the state that something is in, forbids it",
    "tool_unavailable": "a tool that the request needs is missing, switched off or broken",
    "information_missing": "a fact that the request depends on cannot be looked up",
}


class FinishValue(Model):
    """One value that an agent reports."""

    kind: ValueKind
    value: str | int | float | bool
    unit: str = ""
    about: str = ""

    @property
    def text(self) -> str:
        said = ("yes" if self.value else "no") if isinstance(self.value, bool) else str(self.value)
        said = f"{said} {self.unit}" if self.unit else said
        return f"{self.about}: {said}" if self.about else said


class Finish(Model):
    """How an agent ended an episode by the tool `finish`."""

    status: Status
    answer: tuple[FinishValue, ...] = ()
    reason: Cause | None = None
    message: str = ""

    @property
    def text(self) -> str:
        """The same in words: the message, and the values that it does not mention."""
        parts = [self.message.strip()] if self.message.strip() else []
        if self.status == "cannot":
            return parts[0] if parts else f"I cannot do this: {CAUSES[self.reason]}." if self.reason else "I cannot."
        missing = [v.text for v in self.answer if str(v.value).lower() not in self.message.lower()]
        return " ".join([*parts, *(["; ".join(missing) + "."] if missing else [])]) or "Done."

    def args(self) -> dict[str, Any]:
        """The arguments of the call."""
        entries = [{k: v for k, v in one.model_dump().items() if v != "" or k == "value"} for one in self.answer]
        whole = {"status": self.status, "answer": entries, "reason": self.reason, "message": self.message}
        return {name: value for name, value in whole.items() if value}


class Check(Model):
    name: str
    passed: bool
    why: str = ""


class Verdict(Model):
    outcome: Literal["pass", "fail", "error"]  # error: ours or the provider's fault, never counted as a failure
    checks: tuple[Check, ...] = ()
    judge: str = ""  # version of what judged


class Trajectory(Model):
    """What is stored of an episode; verdicts, metrics and training rows are computed from it."""

    schema_version: int = 1
    task: Task  # as the layers left it
    layers: tuple[dict[str, Any], ...]
    agent: str
    policy: str  # as shown
    tools: tuple[dict[str, Any], ...]  # as first shown
    steps: tuple[dict[str, Any], ...]
    final: str
    finish: Finish | None = None  # the same as a typed end, where the agent ended by the tool
    ended: Ended
    why: str = ""  # for an error or an exception: what went wrong, with the traceback of an exception
    receipts: tuple[Receipt, ...] = ()
    gold_steps: int = 0
    budget: int = 0


__all__ = [name for name in globals() if name[0] != "_" and name not in ("annotations", "BaseModel", "ConfigDict")]
