"""`constrained:SPEC`: a model in this process that can only call tools as the menu shows them.

    constrained:hf:embedded+paft            names of tools and arguments, enums and types from the menu
    constrained:seen:hf:embedded+paft       string values, too, must stand somewhere in the conversation
    constrained:embedded:static             the same in llama.cpp, as a grammar

A reply is free until it holds `<tool_call>`; from there on the call must be one that the shown tools take. What the
values mean, and whether a call is a good idea, is left to the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Message, Tools
from crosswind.models.prompts import CLOSE, OPEN
from crosswind.models.source import AgentSettings, AgentSource

Node = tuple[Any, ...]  # what may come next; its first part says which sort it is
State = frozenset[Node]
LONGEST = 120  # characters of a value that is copied
NESTED = 5  # lists and objects inside one another
SPACE = " \n"
DONE: Node = ("done",)
_IN_JSON = frozenset(' ,:0123456789.-+eEtrufalsn"')
_CLOSES = {"[": "]", "{": "}"}


def open_constrained(rest: str, settings: AgentSettings) -> AgentSource:
    """The agents of the spec behind `constrained:`, held to the menu."""
    from crosswind.models.spec import open_agent

    seen, colon, inner = rest.partition(":")
    level = "seen" if seen == "seen" and colon else "menu"
    spec = inner if level == "seen" else rest
    if spec.partition(":")[0] not in ("hf", "embedded"):
        raise CrosswindError(
            f"constrained:{rest}: only in-process models can be constrained to the tools shown; expected "
            "constrained:hf:PATH or constrained:embedded (or constrained:seen:..., which also limits values to those "
            "seen)"
        )
    source = open_agent(spec, settings.model_copy(update={"constrain": level}))
    source.name = f"constrained:{'seen:' if level == 'seen' else ''}{source.name}"
    return source


# ---------------------------------------------------------------- what a call may look like


class Grammar:
    """The calls that some tools take, as an automaton over characters and as a grammar of llama.cpp."""

    def __init__(self, functions: Sequence[dict[str, Any]], *, seen: bool = False) -> None:
        self.seen = seen
        self.tools: list[tuple[str, dict[str, Any], frozenset[str]]] = []
        for function in functions:
            schema = function["function"].get("parameters", {})
            known = {name: about for name, about in schema.get("properties", {}).items() if isinstance(about, dict)}
            self.tools.append((function["function"]["name"], known, frozenset(schema.get("required", ())) & {*known}))
        self.masks: dict[State, Any] = {}  # of states that do not depend on the conversation
        self.start: State = frozenset({("free", 0)})

    # A node is ("text", characters still to come, what follows), ("free", how much of OPEN was just written),
    # ("string" | "escape" | "nested string", ...), ("copy", places in the conversation, length, what follows),
    # ("number", phase, whole?, what follows), ("nested", brackets to close, what follows), ("space", what follows),
    # ("arguments", tool, names used) or DONE. Those that read nothing are opened at once.

    def opened(self, node: Node) -> Iterator[Node]:
        """The nodes that read a character, of one that may read none."""
        kind = node[0]
        if kind == "text" and not node[1]:
            yield from self.opened(node[2])
        elif kind == "any of":
            for one in node[1]:
                yield from self.opened(one)
        elif kind == "space":
            yield node
            yield from self.opened(node[1])
        elif kind == "call":
            then = ("any of", tuple(_text(_quoted(t[0])[1:], self._after_name(n)) for n, t in enumerate(self.tools)))
            yield from self.opened(("space", _text('{"name":', _spaced(_text('"', then)))))
        elif kind == "arguments":
            yield from self.opened(self._more(node[1], node[2]))
        else:
            yield node

    def _after_name(self, tool: int) -> Node:
        return _text(",", _spaced(_text('"arguments":', _spaced(_text("{", ("arguments", tool, frozenset()))))))

    def _more(self, tool: int, used: frozenset[str]) -> Node:
        """Another argument, or the end of the call if none that must be there is lacking."""
        _, known, required = self.tools[tool]
        options = []
        for name, about in known.items():
            if name not in used:
                value = self._value(about, ("arguments", tool, used | {name}))
                pair = _text(_quoted(name) + ":", _spaced(value))
                options.append(_text(",", _spaced(pair)) if used else pair)
        if required <= used:
            options.append(_text("}", ("space", _text("}", ("space", _text(CLOSE, DONE))))))
        return "any of", tuple(options)

    def _value(self, about: dict[str, Any], then: Node) -> Node:
        kind = about.get("type")
        if isinstance(about.get("enum"), list) and about["enum"]:
            return "any of", tuple(_text(json.dumps(one, ensure_ascii=False), then) for one in about["enum"])
        if kind == "string":
            return _text('"', ("copy", None, 0, then) if self.seen else ("string", then))
        if kind in ("integer", "number"):
            return "number", "first", kind == "integer", then
        if kind == "boolean":
            return "any of", (_text("true", then), _text("false", then))
        if kind == "array":
            return _text("[", ("nested", "]", then))
        if kind == "object":
            return _text("{", ("nested", "}", then))
        simple = [self._value({"type": name}, then) for name in ("string", "number", "boolean", "array", "object")]
        return "any of", (*simple, _text("null", then))

    def step(self, state: State, letter: str, text: str = "", starts: Sequence[int] = ()) -> State:
        """What may follow after one more character; empty if it may not be written.

        `text` is the conversation, and `starts` the places where its words begin.
        """
        out: set[Node] = set()
        for node in state:
            for after in self._read(node, letter, text, starts):
                out.update(self.opened(after))
        return frozenset(out)

    def _read(self, node: Node, letter: str, text: str, starts: Sequence[int]) -> Iterator[Node]:
        kind = node[0]
        if kind == "text":
            if node[1][0] == letter:
                yield "text", node[1][1:], node[2]
        elif kind == "free":
            written = OPEN[: node[1]] + letter
            known = next(n for n in range(len(written), -1, -1) if OPEN[:n] == written[len(written) - n :])
            yield ("call",) if known == len(OPEN) else ("free", known)
        elif kind == "string":
            if letter == '"':
                yield node[1]
            elif letter == "\\":
                yield "escape", node
            elif letter >= " ":
                yield node
        elif kind == "escape":
            if letter in '"\\/bfnrt':
                yield node[1]
        elif kind == "copy":
            yield from self._copied(node, letter, text, starts)
        elif kind == "number":
            yield from self._digit(node, letter)
        elif kind == "nested":
            yield from self._nested(node, letter)
        elif kind == "space":
            if letter in SPACE:
                yield node
        elif kind == "done":
            yield node

    def _copied(self, node: Node, letter: str, text: str, starts: Sequence[int]) -> Iterator[Node]:
        _, places, length, then = node
        if letter == '"':
            if places and any(at == len(text) or not text[at].isalnum() for at in places):
                yield then
        elif letter >= " " and letter != "\\" and length < LONGEST:
            here = starts if places is None else places
            if found := tuple(at + 1 for at in here if at < len(text) and text[at] == letter):
                yield "copy", found, length + 1, then

    def _digit(self, node: Node, letter: str) -> Iterator[Node]:
        _, phase, whole, then = node
        if letter.isascii() and letter.isdigit():
            if phase != "zero":
                zero = letter == "0" and phase in ("first", "sign")
                yield "number", "zero" if zero else "digits" if phase in ("first", "sign") else phase, whole, then
                if phase == "point":
                    yield "number", "fraction", whole, then
        elif letter == "-" and phase == "first":
            yield "number", "sign", whole, then
        elif letter == "." and phase in ("zero", "digits") and not whole:
            yield "number", "point", whole, then
        elif phase in ("zero", "digits", "fraction"):
            for after in self.opened(then):
                yield from self._read(after, letter, "", ())

    def _nested(self, node: Node, letter: str) -> Iterator[Node]:
        _, open_, then = node
        if letter == '"':
            yield "string", node
        elif letter in _CLOSES and len(open_) < NESTED:
            yield "nested", open_ + _CLOSES[letter], then
        elif letter == open_[-1]:
            yield ("nested", open_[:-1], then) if len(open_) > 1 else then
        elif letter in _IN_JSON:
            yield node

    # ------------------------------------------------------------ for llama.cpp

    def gbnf(self) -> str:
        """The whole reply as a grammar: anything without a call, or with one that the tools take at its end."""
        lines = ["root ::= free-0", *_free()]
        for n, (name, known, _) in enumerate(self.tools):
            lines.append(f'tool-{n} ::= {_literal(_quoted(name)[1:])} {_GAP} {_ARGUMENTS} sp "{{" {_set(n, 0)}')
            names = list(known)
            for used in self._sets(n):
                lines.append(f"{_set(n, used)} ::= {' | '.join(self._rest(n, used, names)) or _END}")
            lines += [f"value-{n}-{i} ::= {self._form(known[name])}" for i, name in enumerate(names)]
        picks = " | ".join(f"tool-{n}" for n in range(len(self.tools))) or '"none"'
        lines.append(f"call ::= ws {_NAME} sp {_QUOTE} ({picks})")
        return "\n".join([*lines, *_VALUES])

    def _sets(self, tool: int) -> Iterable[int]:
        """The sets of arguments that may be there already, as bits; too many to tell apart are one."""
        count = len(self.tools[tool][1])
        return range(2**count) if count <= MOST_TOLD_APART else (0, 1)

    def _rest(self, tool: int, used: int, names: Sequence[str]) -> list[str]:
        _, known, required = self.tools[tool]
        apart = len(known) <= MOST_TOLD_APART
        there = {name for i, name in enumerate(names) if used >> i & 1} if apart else set[str]()
        out = []
        for i, name in enumerate(names):
            if name not in there:
                gap = f"{_GAP} " if used else ""
                then = _set(tool, used | 1 << i if apart else 1)
                out.append(f"{gap}{_literal(_quoted(name) + ':')} sp value-{tool}-{i} {then}")
        if required <= there or (not apart and (used or not required)):
            out.append(_END)
        return out

    def _form(self, about: dict[str, Any]) -> str:
        if isinstance(about.get("enum"), list) and about["enum"]:
            return " | ".join(_literal(json.dumps(one, ensure_ascii=False)) for one in about["enum"])
        kind = about.get("type")
        return str(kind) if kind in ("string", "integer", "number", "boolean", "array", "object") else "value"


MOST_TOLD_APART = 6  # arguments of a tool of which the grammar of llama.cpp keeps track


def _text(text: str, then: Node) -> Node:
    return "text", text, then


def _spaced(then: Node) -> Node:
    """What may have one blank before it."""
    return "any of", (then, _text(" ", then))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _literal(text: str) -> str:
    """A text as GBNF writes it."""
    return json.dumps(text, ensure_ascii=False)


def _set(tool: int, used: int) -> str:
    return f"args-{tool}-{used}"


_GAP = '"," sp'
_NAME, _ARGUMENTS, _QUOTE = (_literal(text) for text in ('{"name":', '"arguments":', '"'))
_END = f'"}}" ws "}}" ws {_literal(CLOSE)}'
_VALUES = """\
sp ::= " "?
ws ::= [ \\n]*
string ::= "\\"" ( [^"\\\\\\x00-\\x1F] | "\\\\" ["\\\\/bfnrt] )* "\\""
integer ::= "-"? ( "0" | [1-9] [0-9]* )
number ::= integer ( "." [0-9]+ )?
boolean ::= "true" | "false"
value ::= string | number | boolean | array | object | "null"
array ::= "[" ws ( value ( ws "," ws value )* )? ws "]"
object ::= "{" ws ( string ":" sp value ( ws "," ws string ":" sp value )* )? ws "}\"""".split("\n")


def _free() -> list[str]:
    """Text in which no call begins, and then perhaps one."""
    lines = []
    for n in range(len(OPEN)):
        letter = OPEN[n]
        then = "call" if n + 1 == len(OPEN) else f"free-{n + 1}"
        others = [f'"{letter}" {then}', f"[^{letter}<] free-0", '""']
        if letter == "<":
            others[1] = "[^<] free-0"
        else:
            others.insert(1, '"<" free-1')
        lines.append(f"free-{n} ::= {' | '.join(others)}")
    return lines


# ---------------------------------------------------------------- over tokens


class Vocabulary:
    """The tokens of a tokenizer as texts, in a tree by letters."""

    def __init__(self, texts: Sequence[str], special: Iterable[int]) -> None:
        self.size = len(texts)
        barred = set(special)
        kept = [(id, text) for id, text in enumerate(texts) if text and id not in barred]
        self.texts = dict(kept)
        self.tree: dict[str, Any] = {}
        for id, text in kept:
            at = self.tree
            for letter in text:
                at = at.setdefault(letter, {})
            at.setdefault("", []).append(id)
        self.plain = np.zeros(self.size, bool)  # those that go on with a text between quotes, whatever comes after it
        self.plain[[id for id, text in kept if not any(c in '"\\' or c < " " for c in text)]] = True
        self.others = [(id, text) for id, text in kept if not self.plain[id]]
        self._from: dict[int, list[int]] = {}

    def opening(self, known: int) -> list[int]:
        """Tokens with which a call begins and goes on, after so much of its mark."""
        if known not in self._from:
            marked = ((id, OPEN[:known] + text) for id, text in self.texts.items())
            self._from[known] = [id for id, text in marked if OPEN in text and not text.endswith(OPEN)]
        return self._from[known]


@lru_cache(maxsize=4)
def vocabulary_of(tokenizer: Any) -> Vocabulary:
    from crosswind.models.engine import texts_of

    special = [id for id, token in tokenizer.added_tokens_decoder.items() if token.special]
    return Vocabulary(texts_of(tokenizer), special)


class Constraint:
    """What may be written next in one reply, told token by token."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, text: str = "") -> None:
        self.grammar, self.vocabulary, self.text = grammar, vocabulary, text
        self.starts: list[int] = []
        if grammar.seen:
            word = [letter.isalnum() for letter in text]
            self.starts = [at for at, here in enumerate(word) if here and not (at and word[at - 1])]
        self.state = grammar.start
        self.dropped = False  # nothing could be written any more, so that it was left free

    def wrote(self, token: int) -> None:
        """Take note of a token that was written."""
        self.state = self._after(self.state, self.vocabulary.texts.get(token, ""))

    def barred(self) -> Any:
        """The tokens that may not come next, as an array of truth values; None: any may."""
        if not self.state or DONE in self.state:
            self.dropped = self.dropped or not self.state
            return None
        if not any(node[0] == "copy" for node in self.state):
            if self.state not in self.grammar.masks:
                self.grammar.masks[self.state] = self._barred()
            return self.grammar.masks[self.state]
        return self._barred()

    def _barred(self) -> Any:
        allowed = np.zeros(self.vocabulary.size, bool)
        free = next((node[1] for node in self.state if node[0] == "free"), None)
        if free is not None:
            stray = [id for id in self.vocabulary.opening(free) if not self._fits(id)]
            if not stray:
                return None
            allowed[:] = True
            allowed[stray] = False
        elif any(node[0] == "string" for node in self.state):
            allowed |= self.vocabulary.plain
            allowed[[id for id, _ in self.vocabulary.others if self._fits(id)]] = True
        else:
            self._walk(self.vocabulary.tree, self.state, allowed)
        return None if not allowed.any() else ~allowed

    def _after(self, state: State, text: str) -> State:
        for letter in text:
            state = self.grammar.step(state, letter, self.text, self.starts)
            if not state:
                break
        return state

    def _fits(self, token: int) -> bool:
        return bool(self._after(self.state, self.vocabulary.texts[token]))

    def _walk(self, tree: dict[str, Any], state: State, allowed: Any) -> None:
        for letter, below in tree.items():
            if not letter:
                allowed[below] = True
            elif after := self.grammar.step(state, letter, self.text, self.starts):
                self._walk(below, after, allowed)


class Menus:
    """The grammars of the menus of a run: one for each, however many episodes show it."""

    def __init__(self, *, seen: bool) -> None:
        self.seen = seen
        self._made = lru_cache(maxsize=64)(self._grammar)

    def _grammar(self, functions: str) -> Grammar:
        return Grammar(json.loads(functions), seen=self.seen)

    def grammar(self, tools: Tools) -> Grammar:
        return self._made(json.dumps([tool.function() for tool in tools]))

    def rule(self, chat: Sequence[Message], tools: Tools, tokenizer: Any) -> Constraint:
        """What the next reply of a conversation is held to."""
        text = "\n".join(message.content for message in chat if message.role != "assistant") if self.seen else ""
        return Constraint(self.grammar(tools), vocabulary_of(tokenizer), text)
