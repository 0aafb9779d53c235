"""A model's own way of writing tools, calls and results, turn by turn: `protocol: native`.

The chat template of the tokenizer is rendered with tools; what each turn adds to it is found by rendering two
conversations that differ in that turn. So the tokens of an evaluation, of imitation and of reinforcement are the same
ones, what a model wrote stays as the tokens it wrote, and which tokens are the agent's needs no marks in the template.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Message, Param, Request, Tools, ToolSpec
from crosswind.models.parsing import arguments, clean, parse
from crosswind.models.prompts import NOTHING, Script, begins, encoder, neutral, script_of, specials

Protocol = Literal["text", "quoted", "native"]
Chat = list[dict[str, Any]]
SYSTEM, USER = "text1text", "text2text"
OTHERWISE = "use protocol: text, or set tokenizer.chat_template to one that does"


def script_for(tokenizer: Any, protocol: Protocol, name: str = "") -> Script:
    """How a conversation is put into tokens. Raises `CrosswindError` where the template cannot do it."""
    if protocol != "native":
        return script_of(tokenizer, quoted=protocol == "quoted")
    return _native(tokenizer, str(tokenizer.chat_template or ""), name)


@lru_cache(maxsize=8)
def _native(tokenizer: Any, template: str, name: str) -> NativeScript:
    return NativeScript(tokenizer, name=name)


class NativeScript(Script):
    """A conversation as a tokenizer's chat template writes it, tools included."""

    def __init__(self, tokenizer: Any, *, name: str = "") -> None:
        self.name = name or str(getattr(tokenizer, "name_or_path", "") or "the tokenizer")
        self._tokenizer, self._encode, self._special = tokenizer, encoder(tokenizer), specials(tokenizer)
        if not tokenizer.chat_template:
            raise CrosswindError(f"{self.name}: the tokenizer has no chat template, so it has no tool calls of its own")
        self._system = lru_cache(maxsize=64)(self._encode)
        opening: Chat = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
        self._before = self._up_to_user(self._rendered(opening))
        self._asked = self._rendered(opening[1:], goes_on=True)
        after = self._rendered([*opening[1:], {"role": "assistant", "content": SYSTEM}])
        mark = begins(after.removeprefix(self._asked).removeprefix(SYSTEM).lstrip(), self._special)
        if not mark or not after.startswith(self._asked + SYSTEM):
            raise CrosswindError(
                f"{self.name}: the chat template does not end the agent's turn with a special token after its own "
                f"generation prompt; {OTHERWISE}"
            )
        self._mark, self.end = mark, self._special[mark]
        self._check()

    # ------------------------------------------------------------ the turns

    def inert(self, text: str) -> str:
        return neutral(clean(text), self._special)

    def system(self, policy: str, tools: Tools) -> list[int]:
        return list(self._system(self._system_text(policy, tools)))

    def agent(self, text: str) -> list[int]:
        return self._agent(Message(role="assistant", content=text))

    def turns(
        self, chat: Sequence[Message], start: int = 1, wrote: Mapping[int, list[int]] = NOTHING
    ) -> Iterator[tuple[int, list[int]]]:
        for at, text in self._blocks(chat, start):
            if chat[at].role == "assistant":
                yield at, wrote[at] if at in wrote else self._agent(chat[at])
            else:
                yield at, self._encode(text)

    def _agent(self, message: Message) -> list[int]:
        return [*self._encode(self._agent_text(message).removesuffix(self._mark)), self.end]

    def _system_text(self, policy: str, tools: Tools) -> str:
        opening: Chat = [{"role": "system", "content": self.inert(policy)}, {"role": "user", "content": USER}]
        functions = [self._within(tool.function()) for tool in tools]
        return self._up_to_user(self._rendered(opening, functions))

    def _agent_text(self, message: Message) -> str:
        whole = self._rendered([{"role": "user", "content": USER}, self._message(message)])
        if not whole.startswith(self._asked):
            raise self._unfit("does not go on from its own generation prompt when the agent calls a tool")
        return self._up_to_end(whole)[len(self._asked) :]

    def _blocks(self, chat: Sequence[Message], start: int = 1) -> Iterator[tuple[int, str]]:
        """The turns from a place on: of each the place of its last message and its text; the agent's is left empty."""
        first = start
        for at in range(start, len(chat)):
            if chat[at].role == "assistant":
                yield at, ""
                first = at + 1
            elif at + 1 == len(chat) or chat[at + 1].role == "assistant":
                block = [self._message(message) for message in chat[first : at + 1]]
                if first == 1:
                    before = self._before
                    whole = self._rendered([{"role": "system", "content": SYSTEM}, *block], goes_on=True)
                else:
                    said: Chat = [{"role": "user", "content": USER}, self._message(chat[first - 1])]
                    before = self._up_to_end(self._rendered(said))
                    whole = self._rendered([*said, *block], goes_on=True)
                if not whole.startswith(before):
                    raise self._unfit("writes a turn in another way once others follow it")
                yield at, whole[len(before) :]

    # ------------------------------------------------------------ the template

    def _rendered(self, chat: Chat, tools: list[Any] | None = None, *, goes_on: bool = False) -> str:
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    chat, tools=tools or None, tokenize=False, add_generation_prompt=goes_on
                )
            )
        except Exception as error:  # whatever a template raises
            told = " ".join(str(error).split())[:300]
            raise CrosswindError(f"{self.name}: the chat template fails: {told}; {OTHERWISE}") from None

    def _message(self, message: Message) -> dict[str, Any]:
        out: dict[str, Any] = {"role": message.role, "content": self.inert(message.content)}
        if message.requests:
            out["tool_calls"] = [
                {
                    "type": "function",
                    "id": request.id,
                    "function": {"name": self.inert(request.tool), "arguments": self._within(request.args)},
                }
                for request in message.requests
            ]
        if message.role == "tool":
            out["tool_call_id"] = message.request_id
        return out

    def _within(self, value: Any) -> Any:
        """A value whose texts cannot end a turn."""
        return json.loads(self.inert(json.dumps(value, ensure_ascii=False, default=str)))

    def _up_to_user(self, text: str) -> str:
        """What comes before the user's turn."""
        before, found, _ = text.partition(USER)
        cut = max((before.rfind(mark) for mark in self._special), default=-1)
        if not found or cut < 0:
            raise self._unfit("does not begin the user's turn with a special token")
        return before[:cut]

    def _up_to_end(self, text: str) -> str:
        at = text.rfind(self._mark)
        if at < 0:
            raise self._unfit(f"does not end every turn of the agent with {self._mark}")
        return text[: at + len(self._mark)]

    def _unfit(self, what: str) -> CrosswindError:
        return CrosswindError(f"{self.name}: the chat template {what}; {OTHERWISE}")

    # ------------------------------------------------------------ what it must be able to do

    def _check(self) -> None:
        """Refuse a template that drops tools, calls or results, or whose turns are not what it writes as a whole."""
        tool = ToolSpec("probe_tool", "Say something.", {"probe_key": Param("string")})
        called = Request(id="call_0", tool="probe_tool", args={"probe_key": "probe value", "n": [1]})
        chat = [
            Message(role="system", content="Be brief."),
            Message(role="user", content="Call it."),
            Message(role="assistant", content="<think>a</think>", requests=(called,)),
            Message(role="tool", content="probe result", request_id="call_0"),
            Message(role="assistant", content="", requests=(called.model_copy(update={"id": "call_1"}),)),
            Message(role="tool", content="second result", request_id="call_1"),
            Message(role="user", content="And now?"),
            Message(role="assistant", content="Done."),
            Message(role="user", content="Once more."),
        ]
        system = self._system_text(chat[0].content, (tool,))
        parts = [system]
        for at, text in self._blocks(chat):
            parts.append(self._agent_text(chat[at]) if chat[at].role == "assistant" else text)
        if tool.name not in system or tool.doc not in system:
            raise self._unfit("shows no tools before the user's turn")
        for message in chat:
            if message.role == "assistant" and message.requests:
                _, calls = parse(self._agent_text(message).removesuffix(self._mark))
                if [(call.tool, arguments(call.args)) for call in calls] != [(called.tool, called.args)]:
                    raise self._unfit("writes no tool calls, or in a form that cannot be read back")
            elif message.role == "tool" and message.content not in "".join(parts):
                raise self._unfit("leaves results of tools out")
        whole = self._rendered([self._message(m) for m in chat], [tool.function()], goes_on=True)
        if whole != "".join(parts):
            raise self._unfit(
                "writes earlier turns in another way once others follow (such as without their thoughts), so that "
                "training and evaluation would differ"
            )
