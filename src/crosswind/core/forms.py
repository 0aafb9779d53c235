"""Law "no secrets", of how records and values are written: rows keep their keys, and values the form that was shown.

A layer may write both otherwise where a header or a text says how.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core import entity_names
from crosswind.core.oracle import Told, Walk
from crosswind.core.secrets import SINGLE, docs, flat, is_same, legend_of, own_texts, said
from crosswind.core.session import Session
from crosswind.core.types import SAY, ToolSpec


def keyed(gold: Walk) -> None:
    """No secrets: rows that lose their keys have a header, or a text that names the columns."""
    session = gold.session
    if all(layer.is_passthrough for layer in session.layers):
        return
    plain = entity_names.translator(session.task.entity_names, back=True) if session.task.entity_names else None
    for told in gold.told:
        content = told.result.content
        if told.result.error or not isinstance(content, (Mapping, list, tuple)):
            continue
        shown = [s.result.content for s in gold.steps[told.first : told.after] if s.result.error is None]
        if any(one is content for one in shown):
            continue
        if plain is not None:
            shown = [entity_names.through(one, plain) for one in shown]
        _columns_are_known(gold, told, content, shown)


def _columns_are_known(gold: Walk, told: Told, content: Any, shown: list[Any]) -> None:
    bare = [(rows, headers) for rows, headers in map(_bare, shown) if rows]
    keys = max((list(row) for row in _records(content)), key=len, default=[]) if bare else []
    if len(keys) < 2:
        return
    held = {str(value) for value in flat(content)}
    words = set(_WORD.findall("\n".join(held).lower()))
    for rows, headers in bare:
        if not any({*map(str, row)} <= held for row in rows):
            continue
        labels = [{*_WORD.findall("\n".join(map(str, header)).lower())} - words for header in headers]
        if any(len(own) >= min(len(keys), len(rows[0])) for own in labels):
            continue
        legend = legend_of(gold, told)
        if missing := [key for key in keys if not legend.names(key)]:
            raise Unfair(
                "secrets",
                f"{told.call.tool}: rows come without keys or header, and no text says which column is "
                f"{missing[0]!r}; show the keys once, or describe the columns",
            )


_WORD = re.compile(r"[a-z_]{2,}")


def _records(content: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, Mapping):
        yield content
        content = list(content.values())
    for one in content if isinstance(content, (list, tuple)) else ():
        if type(one) not in SINGLE:
            yield from _records(one)


def _bare(content: Any) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    """Rows that are lists of single values, and what might be a header of theirs: lists of words, keys of others."""
    rows: list[Sequence[Any]] = []
    headers: list[Sequence[Any]] = []
    if isinstance(content, str):
        if _CELL.search(content) is None:
            return rows, headers
        lines = [[cell for cell in _CELL.split(line) if cell] for line in content.splitlines()]
        if len({len(line) for line in lines}) == 1 and len(lines[0]) > 1:
            rows, headers = list(lines), [lines[0]]
        return rows, headers
    if not isinstance(content, (Mapping, list, tuple)):
        return rows, headers
    parts = list(content.values() if isinstance(content, Mapping) else content)
    if isinstance(content, Mapping) and _are_columns(parts):
        return [list(row) for row in zip(*parts, strict=True)], [list(content)]
    single = not any(isinstance(one, (Mapping, list, tuple)) for one in parts)
    if single and len(parts) > 1 and not isinstance(content, Mapping):
        return [parts], [parts]
    for one in parts:
        if isinstance(one, (str, Mapping, list, tuple)):
            inner, more = _bare(one)
            rows += inner
            headers += more
    if isinstance(content, Mapping) and not rows:
        headers.append(list(content))
    return rows, headers


def _are_columns(parts: Sequence[Any]) -> bool:
    """Are these lists of single values of one length, so that the keys they stand under name the columns?"""
    return (
        len(parts) > 1
        and all(isinstance(one, (list, tuple)) and one for one in parts)
        and len({len(one) for one in parts}) == 1
        and all(type(value) in SINGLE for one in parts for value in one)
    )


_CELL = re.compile(r"[,;|\t]+ *")


CASES = re.compile(r"\b(upper|lower|capital\w*|case|caps|block letters?|small letters?)", re.IGNORECASE)


def written_as_shown(gold: Walk) -> None:
    """No secrets: a value that must be written in another form than was shown has a text that says so."""
    session = gold.session
    if all(layer.is_passthrough for layer in session.layers):
        return
    for n, step in enumerate(gold.steps):
        spec = session.ever.get(step.call.tool)
        if spec is None or all(call.args == step.call.args for call, _ in step.inner):
            continue
        for call, _ in step.inner:
            for name, meant in call.args.items():
                sent = step.call.args.get(name)
                if sent != meant and call.tool in session.world.entries and is_same(sent, meant):
                    _form_is_said(gold, n, spec, name, sent, meant)


def _form_is_said(gold: Walk, n: int, spec: ToolSpec, name: str, sent: Any, meant: Any) -> None:
    """Raise `Unfair` if a value must be written in another form than was shown, and no text says in which."""
    if not isinstance(sent, str) or not isinstance(meant, str) or sent in spec.params[name].enum:
        return  # a schema that lists the word says how it is written
    session, steps = gold.session, gold.steps[:n]
    own = own_texts(session)
    heard = [text for s in steps for text in (*s.heard, *([s.result.error.text] if s.result.error else ()))]
    texts = [*(text for text in (session.policy(), *docs([spec])) if text not in own), *heard]
    if any(CASES.search(text) for text in texts) if sent.casefold() == meant.casefold() else texts:
        return
    shown = "\n".join([session.query(), *heard, *(text for step in steps for text in said(step.result.content))])
    if sent in shown or meant not in shown:
        return
    if replayed(gold, n).call(gold.steps[n].call.with_args(**{name: meant})).error is not None:
        raise Unfair(
            "secrets", f"{spec.name}: {name} must be written {sent!r} where {meant!r} was shown, and no text says so"
        )


def not_crossed(gold: Walk) -> None:
    """No secrets: two arguments that reach the world each as the other do so by a text that speaks of both."""
    session = gold.session
    if all(layer.is_passthrough for layer in session.layers):
        return
    own: set[str] | None = None
    for n, step in enumerate(gold.steps):
        spec, sent = session.ever.get(step.call.tool), step.call.args
        for call, _ in step.inner if spec is not None and len(sent) > 1 else ():
            if call.args == sent:
                continue
            for one, two in combinations(sent.keys() & call.args.keys(), 2):
                if sent[one] == sent[two] or (call.args[one], call.args[two]) != (sent[two], sent[one]):
                    continue
                own = own_texts(session) if own is None else own
                texts = [t for t in (session.policy(), *docs([spec] if spec else [])) if t not in own]
                texts += [s.result.error.text for s in gold.steps[:n] if s.result.error]
                said_so = "\n".join(texts).replace("_", " ").lower()
                if not all(name.replace("_", " ").lower() in said_so for name in (one, two)):
                    a, b = sorted((one, two))
                    raise Unfair(
                        "secrets",
                        f"{step.call.tool}: {a!r} reaches the world as {b!r} and the other way round, and no text "
                        "shown for it speaks of both; say which parameter means what",
                    )


def replayed(gold: Walk, n: int) -> Session:
    """A session in which an agent has made the first n steps of gold."""
    session = Session.of(gold.session.domain, gold.session.task, gold.session.layers)
    for step in gold.steps[:n]:
        if step.call.tool == SAY:
            session.say(step.call.args["text"])
        else:
            session.call(step.call)
    return session
