"""From a certified draw to rows to learn from: the oracle's walk as a conversation, and the tokens of it.

A demonstration is what `play` would record of the oracle: the same messages under the same menus of tools, with its
working as a thought before the turn that it leads to. Only the agent's turns are learnt. Nothing here draws anything;
see `data.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from crosswind import skin
from crosswind.agents._scripted import requesting
from crosswind.certify import Walk
from crosswind.models.prompts import Script, call_form, script_of
from crosswind.play import result_text
from crosswind.recipe import Drawn
from crosswind.session import Session
from crosswind.types import SAY, Message, Refusal, Step, Tools, ToolSpec


@dataclass(frozen=True, slots=True)
class Demonstration:
    """The oracle's way through a draw, as the conversation an agent would have had."""

    chat: tuple[Message, ...]  # system, user, then the agent's turns and what came back
    menus: tuple[tuple[int, Tools], ...]  # (the place in the chat from which it was shown, the tools); the first at 0
    meta: dict[str, Any]  # which task under which layers, as JSON

    @property
    def turns(self) -> list[int]:
        """The places in the chat at which the agent speaks."""
        return [i for i, message in enumerate(self.chat) if message.role == "assistant"]


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation under one menu of tools, and which of its turns are to be learnt."""

    messages: tuple[Message, ...]
    tools: Tools
    learn: frozenset[int]  # places in `messages`
    meta: dict[str, Any]


class Tokens(NamedTuple):
    """A row as a model reads it. The mask is 1 exactly on the turns to be learnt, their ends included."""

    ids: list[int]
    mask: list[int]


def thought(note: str) -> str:
    """Some working as a model writes it; `parsing.parse` takes it out of what was said."""
    return f"<think>{note}</think>"


def demonstration(drawn: Drawn, *, reasons: bool = True) -> Demonstration:
    """The certified walk of a draw as a demonstration.

    `reasons`: with the oracle's working before it acts. First comes how it has read the request (`_reading`); then, as
    they come up, what it compares and adds up, how a tool is called before it is called first, and for the sake of what
    it makes a call that the request says nothing about (`_serving`). All of it can be told from what is shown by then:
    a thought that knows how the walk goes on would teach guessing.
    """
    gold = drawn.certificate.gold
    notes = gold.notes if reasons else {}
    looked_up: set[str] = set()
    texts = [result_text(step.result) for step in gold.steps]
    session = gold.session
    again = Session(drawn.domain, drawn.certificate.task, drawn.certificate.layers) if session.moments else None
    shown = again or session
    chat = [Message(role="system", content=shown.policy()), Message(role="user", content=shown.query())]
    menus = [(0, shown.tools())]
    for n, step in enumerate(gold.steps):
        if again and again.tools() != menus[-1][1]:
            menus.append((len(chat), again.tools()))
        call = step.call
        parts = [_reading(gold, menus[0][1])] if reasons and n == 0 else []
        parts += [notes[n]] if n in notes else []
        if call.tool == SAY:
            chat.append(Message(role="assistant", content=_after("; ".join(parts), call.args["text"])))
            chat.append(Message(role="user", content=step.result.content))
        else:
            if reasons:
                parts += _serving(gold.steps, n, {tool.name: tool for tool in menus[-1][1]}, looked_up)
            said = thought("; ".join(parts)) if parts else ""
            chat.append(requesting(call, n).model_copy(update={"content": said}))
            chat.append(Message(role="tool", content=texts[n], request_id=f"call_{n}"))
            chat += [Message(role="user", content=words) for words in step.heard]
        if again:
            again.say(call.args["text"]) if call.tool == SAY else again.call(call)
            again.said.clear()
    if again and again.tools() != menus[-1][1]:
        menus.append((len(chat), again.tools()))
    last = [notes[len(gold.steps)]] if len(gold.steps) in notes else []
    if reasons and not gold.steps:
        last.insert(0, _reading(gold, menus[0][1]))
    chat.append(Message(role="assistant", content=_after("; ".join(last), gold.final)))
    task = drawn.certificate.task
    meta = {
        "task": task.id,
        "domain": task.domain,
        "family": task.family,
        "level": drawn.domain.family(task).level,
        "split": task.split,
        "kinds": [layer.kind for layer in drawn.layers],
        "steps": len(gold.steps),
        "ended": "refusal" if isinstance(gold.end, Refusal) else "answer",
        "proof": drawn.certificate.proof,
    }
    return Demonstration(tuple(chat), tuple(menus), meta)


# ---------------------------------------------------------------- what is thought


def _reading(gold: Walk, menu: Tools) -> str:
    """The request as it was read: its details in their order, the rules that stand, and the tools that it will take.

    `garden, ?, 2031-04-20; rules none; plan find_places, list_slots, none`: a detail that was not given is a question
    mark, and a tool that nobody has is none.
    """
    task, family = gold.session.task, gold.session.domain.family(gold.session.task)
    stated = task.brief.stated
    values = [skin.shown(task, str(stated[key])) if key in stated else "?" for key in family.details]
    rules = [_RULES.get(rule, "{rule} by {value}").format(rule=rule, value=v) for rule, v in task.brief.rules.items()]
    read = [", ".join(values), f"rules {', '.join(rules) or 'none'}"]
    if plan := dict.fromkeys(_planned(tool, gold, menu) for tool in family.takes()):
        read.append(f"plan {', '.join(plan)}")
    return "; ".join(part for part in read if part)


_RULES = {"latest": "latest", "strict": "strict", "spare": "spare {value}", "surcharge": "plus {value}"}


def _planned(tool: str, gold: Walk, menu: Tools) -> str:
    """By what name the walk first tries a canonical tool. Who was sent on to it by another had that one in mind."""
    name = next((shown.name for shown in menu if tool in shown.ids), "none")
    steps = gold.steps
    at = next((n for n, step in enumerate(steps) if step.call.tool == name), 0)
    while at and steps[at - 1].result.error and steps[at - 1].call.args == steps[at].call.args:
        at -= 1
        name = steps[at].call.tool
    return name


def _serving(steps: Sequence[Step], n: int, menu: Mapping[str, ToolSpec], looked_up: set[str]) -> list[str]:
    """What a call is for, and how its tool is called, if that was not said before.

    A call whose one value a later one needs is made for its sake: `reserve(slot_id, code) needs code: request_code()`.
    The call before, made again with something more, is `again, page 2`.
    """

    def form(name: str) -> str:
        if name in looked_up or name not in menu:
            return name
        looked_up.add(name)
        return call_form(menu[name])

    call = steps[n].call
    if n and steps[n - 1].call.tool == call.tool:
        before, told = steps[n - 1].call.args, steps[n - 1].result.content
        more = {key: value for key, value in call.args.items() if before.get(key) != value}
        known = list(told.values()) if isinstance(told, dict) else []
        if before.keys() <= call.args.keys() and len(more) <= 1 and all(value in known for value in more.values()):
            return [", ".join(["again", *(f"{key} {value}" for key, value in more.items())])]
    value = _issued(steps, n)
    for step in steps[n + 1 :] if value and call.tool in menu else ():
        if step.call.tool in menu and step.call.tool != call.tool and value in step.call.args.values():
            key = next(key for key, given in step.call.args.items() if given == value)
            return [f"{form(step.call.tool)} needs {key}: {form(call.tool)}"]
    return [form(call.tool)] if call.tool in menu and call.tool not in looked_up else []


def _issued(steps: Sequence[Step], n: int) -> str:
    """The one value that a call is answered with, a code say, even where the answer is lost or the call comes too early
    and is made again: what it is for was known before."""
    for step in steps[n:]:
        answers = [result.content for _, result in step.inner if result.error is None]
        answers = answers or ([step.result.content] if step.result.error is None else [])
        if step.call == steps[n].call and answers:
            values = list(answers[-1].values()) if isinstance(answers[-1], dict) else []
            return values[0] if len(values) == 1 and isinstance(values[0], str) else ""
    return ""


def _after(note: str, text: str) -> str:
    return f"{thought(note)}\n{text}" if note else text


def rows(shown: Demonstration) -> list[Row]:
    """A demonstration as rows: one, or one for each menu of tools where it changes midway.

    Each ends with the last turn made under its menu, and only the turns made under it are to be learnt.
    """
    out = []
    for n, (start, tools) in enumerate(shown.menus):
        stop = shown.menus[n + 1][0] if n + 1 < len(shown.menus) else len(shown.chat)
        turns = [i for i in shown.turns if start <= i < stop]
        if turns:
            out.append(Row(shown.chat[: turns[-1] + 1], tools, frozenset(turns), shown.meta))
    return out


def tokens(row: Row, tokenizer: Any) -> Tokens:
    """A row in the tokens that the model is given in an evaluation, and the mask of what is learnt."""
    script = tokenizer if isinstance(tokenizer, Script) else script_of(tokenizer)
    ids = script.system(row.messages[0].content, row.tools)
    mask = [0] * len(ids)
    for at, turn in script.turns(row.messages):
        ids += turn
        mask += [int(at in row.learn)] * len(turn)
    return Tokens(ids, mask)
