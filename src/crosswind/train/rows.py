"""From a certified draw to rows to learn from: the oracle's walk as a conversation, and the tokens of it.

A demonstration is what `play` would record of the oracle: the same messages under the same menus of tools, with its
working as a thought before the turn that it leads to. Only the agent's turns are learnt. Nothing here draws anything;
see `data.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from crosswind.agents._scripted import requesting
from crosswind.core.draw import Drawn
from crosswind.core.session import Session
from crosswind.core.types import ASK, SAY, Message, Refusal, Tools
from crosswind.episodes.play import result_text
from crosswind.models.prompts import CLOSE, OPEN, Script, script_of
from crosswind.train.slips import slip
from crosswind.train.thoughts import Habits, Thinking

THINK, THOUGHT = "<think>", "</think>"
PLAIN = Habits()


@dataclass(frozen=True, slots=True)
class Demonstration:
    """The oracle's way through a draw, as the conversation an agent would have had."""

    chat: tuple[Message, ...]  # system, user, then the agent's turns and what came back
    menus: tuple[tuple[int, Tools], ...]  # (the place in the chat from which it was shown, the tools); the first at 0
    meta: dict[str, Any]  # which task under which layers, as JSON
    drawn: Drawn = field(compare=False, repr=False)  # what it demonstrates
    slipped: frozenset[int] = frozenset()  # places in the chat of mistakes, which are not learnt

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
    return f"{THINK}{note}{THOUGHT}"


def demonstration(
    drawn: Drawn, *, reasons: bool = True, slips: Random | None = None, habits: Habits = PLAIN
) -> Demonstration:
    """The certified walk of a draw as a demonstration; `reasons`: with what the oracle thinks (`thoughts.py`); `slips`:
    with a mistake, if one is found, drawn by this generator (`slips.py`).

    A walk that would end for want of a tool ends where that is seen, at the beginning, if that is right by the judge;
    or, if it is a habit to look first, where nothing was left to look up.
    """
    gold = drawn.certificate.gold
    texts = [result_text(step.result) for step in gold.steps]
    session = gold.session
    again = Session.of(drawn.domain, drawn.certificate.task, drawn.certificate.layers) if session.moments else None
    shown = again or session
    chat = [Message(role="system", content=shown.policy()), Message(role="user", content=shown.query())]
    menus = [(0, shown.tools())]
    thinking = Thinking(gold, texts, f"{chat[0].content}\n{chat[1].content}", habits) if reasons else None
    task, slipped = drawn.certificate.task, set[int]()
    early = habits.refusals == "at_once" or not gold.steps
    hopeless = thinking.hopeless(menus[0][1]) if thinking and early else ""
    if hopeless and drawn.domain.judge(task, drawn.domain.state(task), gold.final).outcome == "pass":
        chat.append(Message(role="assistant", content=after(hopeless, gold.final)))
        return Demonstration(tuple(chat), tuple(menus), described(drawn, 0), drawn)
    late = [n for n, step in enumerate(gold.steps) if n and step.call.tool not in (ASK, SAY)]
    wrong = slips.choice(late) if slips and thinking and late and not again else None
    for n, step in enumerate(gold.steps):
        if again and again.tools() != menus[-1][1]:
            menus.append((len(chat), again.tools()))
        call = step.call
        mistake = None
        if slips and thinking and n == wrong:
            menu = thinking.named(menus[-1][1])
            mistake = slip(slips, call, thinking.meant(n, menu), menu)
        if thinking and mistake:
            slipped.add(len(chat))
            said, id = thinking.slipping(n, mistake.call.tool), n + len(texts)
            chat.append(requesting(mistake.call, id, thought(said)))
            chat.append(Message(role="tool", content=result_text(mistake.result), request_id=f"call_{id}"))
        said = thinking.before(n, menus[-1][1], mistake.result.error if mistake else None) if thinking else ""
        if call.tool == SAY:
            chat.append(Message(role="assistant", content=after(said, call.args["text"])))
            chat.append(Message(role="user", content=step.result.content))
        else:
            chat.append(requesting(call, n, thought(said) if said else ""))
            chat.append(Message(role="tool", content=texts[n], request_id=f"call_{n}"))
            chat += [Message(role="user", content=words) for words in step.heard]
        if again:
            again.say(call.args["text"]) if call.tool == SAY else again.call(call)
            again.user.said.clear()
    if again and again.tools() != menus[-1][1]:
        menus.append((len(chat), again.tools()))
    said = thinking.before(len(gold.steps), menus[-1][1]) if thinking else ""
    chat.append(Message(role="assistant", content=after(said, gold.final)))
    return Demonstration(tuple(chat), tuple(menus), described(drawn, len(gold.steps)), drawn, frozenset(slipped))


def legible(shown: Demonstration) -> bool:
    """Can the agent's turns be read back as what they are? Not if a value in them holds a mark of the protocol."""
    for at in shown.turns:
        said, calls = shown.chat[at].content, [str(request.args) for request in shown.chat[at].requests]
        if any(said.count(mark) > said.startswith(THINK) for mark in (THINK, THOUGHT)):
            return False
        if any(mark in text for mark in (OPEN, CLOSE) for text in (said, *calls)):
            return False
    return True


def described(drawn: Drawn, steps: int) -> dict[str, Any]:
    """Which task under which layers a demonstration is of, as JSON."""
    task = drawn.certificate.task
    return {
        "task": task.id,
        "domain": task.domain,
        "family": task.family,
        "level": drawn.domain.family(task).level,
        "split": task.split,
        "kinds": [layer.kind for layer in drawn.layers],
        "steps": steps,
        "ended": "refusal" if isinstance(drawn.certificate.gold.end, Refusal) else "answer",
        "proof": drawn.certificate.proof,
    }


def after(note: str, text: str) -> str:
    """What is said after some working."""
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
            out.append(Row(shown.chat[: turns[-1] + 1], tools, frozenset(turns) - shown.slipped, shown.meta))
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
