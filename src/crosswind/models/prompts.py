"""The words that models are given, all in one place.

A model with native tool calls is given the policy as the domain has it, and nothing else. A model without is told of
its tools in few words and writes its calls as `<tool_call>{...}</tool_call>`. `Script` and `Conversation` put such a
conversation into tokens, turn by turn: the same ones in training and in evaluation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.finish import FINISH_SPEC
from crosswind.core.flow import once_each
from crosswind.core.types import FINISH, Message, Param, Request, Tools, ToolSpec
from crosswind.models.parsing import clean

OPEN, CLOSE = "<tool_call>", "</tool_call>"
RULES = """\
To use a tool, write only this, with its name and its arguments as JSON:
<tool_call>{"name":"TOOL","arguments":{"KEY":"VALUE"}}</tool_call>
The result comes back as <tool_response>. Copy ids and values exactly. When you know enough, """
IN_WORDS, BY_FINISH = "write the final answer in plain words, without a tool call.", f"call {FINISH}."
_json = json.JSONEncoder(ensure_ascii=False, default=str).encode
_tight = json.JSONEncoder(ensure_ascii=False, default=str, separators=(",", ":")).encode  # a tenth fewer tokens


@once_each()
def signature(tool: ToolSpec) -> str:
    """A tool in one line: name, arguments (those with ? may be left out), and what it does."""
    return f"{call_form(tool)}: {tool.doc}"


@once_each()
def quoted_signature(tool: ToolSpec) -> str:
    """The same line with every name in quotes."""
    return f"{call_form(tool, quoted=True)}: {tool.doc}"


def call_form(tool: ToolSpec, known: Mapping[str, bool] | None = None, *, quoted: bool = False) -> str:
    """How a tool is called: its line as far as the description; with `known`, whether each argument is known.

    A name in quotes has the same tokens as in a call. Without, it often has others: a word after a space is cut another
    way than one after a quotation mark, so that a small model has to know how a word is spelt before it can copy it.
    """
    mark = '"' if quoted else ""
    params = [f"{mark}{name}{mark}{'' if p.required else '?'}{_type(p, mark)}" for name, p in tool.params.items()]
    if known is not None:
        params = [f"{said} {'yes' if known[name] else 'no'}" for said, name in zip(params, tool.params, strict=True)]
    return f"{mark}{tool.name}{mark}({', '.join(params)})"


def _type(param: Param, mark: str = "") -> str:
    kind = "|".join(f"{mark}{value}{mark}" for value in param.enum) or ("" if param.type == "string" else param.type)
    return (f": {kind}" if kind else "") + (f" ({param.doc})" if param.doc else "")


def with_tools(policy: str, tools: Tools, *, quoted: bool = False) -> str:
    """The system message of a model that writes its calls as text."""
    line = quoted_signature if quoted else signature
    listed = "\n".join(f"- {line(tool)}" for tool in tools)
    rules = RULES + (BY_FINISH if FINISH_SPEC in tools else IN_WORDS)
    return f"{policy}\n\nTools (arguments are strings unless marked):\n{listed}\n\n{rules}".strip()


def call_text(request: Request) -> str:
    """A call as the text protocol writes it."""
    args = request.args
    if isinstance(args, str):
        return f"{OPEN}{args[:2000]}{CLOSE}"  # as it came: it was no JSON
    return f"{OPEN}{_tight({'name': request.tool, 'arguments': args})}{CLOSE}"


def tight(text: str) -> str:
    """A result that is JSON as we write it, without its spaces; anything else as it is."""
    if not text.startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
        return _tight(value) if _json(value) == text else text
    except (ValueError, RecursionError):
        return text


def spoken(message: Message) -> str:
    """A message as a model without native tools reads or writes it; a system message is left as it is."""
    if message.role == "tool":
        return f"<tool_response>{tight(message.content)}</tool_response>"
    if message.role == "assistant":
        return "\n".join(part for part in (message.content, *map(call_text, message.requests)) if part)
    return message.content


def as_text(chat: Sequence[Message], tools: Tools, *, quoted: bool = False) -> list[dict[str, Any]]:
    """The conversation for a model without native tools: roles and plain content, results as the user's turns."""
    out: list[dict[str, Any]] = []
    for message in chat:
        role = "user" if message.role == "tool" else message.role
        content = with_tools(message.content, tools, quoted=quoted) if role == "system" else spoken(message)
        if out and out[-1]["role"] == role == "user":
            out[-1]["content"] += f"\n{content}"
        else:
            out.append({"role": role, "content": content})
    return out


def chatml(messages: Sequence[dict[str, Any]]) -> str:
    """Messages as ChatML, ready for the assistant's turn."""
    turns = (f"<|im_start|>{m['role']}\n{_inert(m['content'])}<|im_end|>\n" for m in messages)
    return "".join(turns) + "<|im_start|>assistant\n"


_MARK = re.compile(r"<\|(?=\w)")


def _inert(text: str) -> str:
    """Text that cannot end its own turn."""
    return _MARK.sub("<| ", text) if "<|" in text else text


def neutral(text: str, marks: Iterable[str]) -> str:
    """Text without some special tokens, which are broken up."""
    text = _inert(text)
    for mark in marks:
        text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text


# ---------------------------------------------------------------- as tokens

NOTHING: Mapping[int, list[int]] = {}


class Script:
    """How a tokenizer's chat template writes a conversation: what is before, between and after the contents.

    The parts are tokenised one by one. A turn ends with a special token, at which every tokenizer cuts, so that the
    parts together are what the whole would give; and the agent's turns are cut where it begins and stops to write.
    """

    def __init__(self, tokenizer: Any, *, name: str = "", quoted: bool = False) -> None:
        self._encode, self._quoted = encoder(tokenizer), quoted
        special = specials(tokenizer)
        self.before, self.to_user, self.to_agent, self.after = _glue(tokenizer, special, name)
        mark = begins(self.after, special)
        self.end: int = special[mark]  # the token with which the agent ends its turn
        self.after = self.after.removeprefix(mark)
        glue = (self.before, self.to_user, self.to_agent, self.after)
        self._marks = [m for m in special if not _MARK.match(m) and any(m in part for part in glue)]
        self._system = lru_cache(maxsize=64)(self._encode)

    def inert(self, text: str) -> str:
        """Text of somebody else's that cannot end its own turn."""
        return neutral(clean(text), self._marks)

    def system(self, policy: str, tools: Tools) -> list[int]:
        """The first turn."""
        return list(self._system(self.before + self.inert(with_tools(policy, tools, quoted=self._quoted))))

    def user(self, text: str, *, first: bool = False) -> list[int]:
        """The prompt, up to where the model begins to write; `first`: right after the system's turn."""
        return self._encode((self.to_user if first else self.after) + self.inert(text) + self.to_agent)

    def agent(self, text: str) -> list[int]:
        """A turn of the agent as it would have written it, the end of the turn included."""
        return [*self._encode(self.inert(text)), self.end]

    def turns(
        self, chat: Sequence[Message], start: int = 1, wrote: Mapping[int, list[int]] = NOTHING
    ) -> Iterator[tuple[int, list[int]]]:
        """The turns of a chat after the system's, each with its tokens and the place of its last message.

        The agent's are taken from `wrote` where their place is there. What comes back between two of them is one turn.
        """
        told: list[str] = []
        for at, message in enumerate(chat[start:], start):
            if message.role == "assistant":
                yield at, wrote[at] if at in wrote else self.agent(spoken(message))
                continue
            told.append(spoken(message))
            if at + 1 == len(chat) or chat[at + 1].role == "assistant":
                yield at, self.user("\n".join(told), first=at == len(told))
                told = []


@lru_cache(maxsize=8)
def _script(tokenizer: Any, template: str, quoted: bool) -> Script:
    return Script(tokenizer, quoted=quoted)


def script_of(tokenizer: Any, *, quoted: bool = False) -> Script:
    """The script of a tokenizer of transformers, made once. Raises `CrosswindError` where it has none that serves."""
    return _script(tokenizer, str(tokenizer.chat_template or ""), quoted)


def end_of(tokenizer: Any) -> int | None:
    """The token with which a tokenizer's chat template ends the agent's turn, whichever way it writes the others."""
    try:
        return script_of(tokenizer).end
    except CrosswindError:
        pass  # one that takes no system's turn, say
    said = "text0text"
    chat = [{"role": "user", "content": "text1text"}, {"role": "assistant", "content": said}]
    try:
        _, found, after = str(tokenizer.apply_chat_template(chat, tokenize=False)).rpartition(said)
    except Exception:  # whatever a template raises
        return None
    special = specials(tokenizer)
    return special.get(begins(after.lstrip(), special)) if found else None


class Conversation:
    """One episode's conversation as tokens, kept from turn to turn: only what is new is rendered and tokenised.

    What the model wrote stays as the tokens it wrote. When the menu of tools changes, the system's turn is made again.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.script = tokenizer if isinstance(tokenizer, Script) else script_of(tokenizer)
        self._ids: list[int] = []
        self._chat: list[Message] = []  # what `_ids` stands for
        self._tools: Tools = ()
        self._wrote: dict[int, list[int]] = {}  # place in the chat -> the tokens of that turn

    def update(self, chat: Sequence[Message], tools: Tools) -> list[int]:
        """The tokens of the conversation so far, ready for the agent to write. The caller may keep the list."""
        known = len(self._chat)
        goes_on = (
            0 < known <= len(chat)
            and tools == self._tools
            and all(a is b or a == b for a, b in zip(self._chat, chat, strict=False))
            and (known == len(chat) or chat[known].role == "assistant")
        )
        if not goes_on:
            self._ids, known = self.script.system(chat[0].content, tools), 1
        for _, ids in self.script.turns(chat, known, self._wrote):
            self._ids += ids
        self._chat, self._tools = list(chat), tools
        return list(self._ids)

    def wrote(self, ids: Sequence[int]) -> None:
        """Take note of what the model wrote as its next message, in its own tokens."""
        end = self.script.end
        self._wrote[len(self._chat)] = [*ids] if ids and ids[-1] == end else [*ids, end]


def encoder(tokenizer: Any) -> Callable[[str], list[int]]:
    """The tokenizer as a function from text to ids, special tokens in the text read as such."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return lambda text: list(tokenizer.encode(text, add_special_tokens=False))
    return lambda text: list(backend.encode(text, add_special_tokens=False).ids)


def specials(tokenizer: Any) -> dict[str, int]:
    """The tokens that are not text."""
    return {str(token.content): id for id, token in tokenizer.added_tokens_decoder.items() if token.special}


def begins(text: str, special: dict[str, int]) -> str:
    """The special token with which a text begins; none: nothing."""
    return max((mark for mark in special if text.startswith(mark)), key=len, default="")


def bad_template(name: str, error: Exception) -> CrosswindError:
    told = " ".join(str(error).split())[:300]
    return CrosswindError(
        f"{name}: the chat template takes no system message or fails: {told}; set tokenizer.chat_template to another"
    )


CHATML = ("<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")


def _glue(tokenizer: Any, special: dict[str, int], name: str) -> tuple[str, str, str, str]:
    """What a template puts before the system's text, between it and the user's, before and after the agent's."""
    name = name or str(getattr(tokenizer, "name_or_path", "") or "the tokenizer")
    if not tokenizer.chat_template:
        if {"<|im_start|>", "<|im_end|>"} <= set(special):
            return (*CHATML, CHATML[1])
        raise CrosswindError(f"{name}: the tokenizer has no chat template; use an instruct model, or set a template")
    texts = [f"text{i}text" for i in range(6)]
    roles = ("system", "user", "assistant", "user", "assistant", "user")
    chat = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    try:
        whole = str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    except Exception as error:
        raise bad_template(name, error) from None
    parts = re.split("|".join(texts), whole)
    turns = all(part.startswith(tuple(special)) for part in parts[1:])
    if len(parts) != 7 or parts[2] != parts[4] or parts[2] != parts[6] or parts[3] != parts[5] or not turns:
        raise CrosswindError(
            f"{name}: the chat template does not write every turn alike and end it with a special token, "
            "so that training and evaluation would differ; set tokenizer.chat_template to ChatML, for instance"
        )
    return parts[0], parts[1], parts[2], parts[3]
