"""Law "no secrets": all that is needed to translate a call or a result can be read in what was shown.

Two tests. `read_off` runs at every draw: what a layer's way round tells the solution must be in what was shown, or a
shown text must say how to convert it. `confusable` compares two stacks that show the same texts and tools: if what one
of them showed is read by the other as something else, nobody could know which of them is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from crosswind.base.errors import CrosswindError, Unfair
from crosswind.core import entity_names, legends
from crosswind.core.oracle import Diverged, Told, Walk, Walks, retrace, walk
from crosswind.core.perturbation import Layers, Perturbation
from crosswind.core.session import Session
from crosswind.core.types import ASK, SAY, Refusal, Task, ToolCall, ToolSpec
from crosswind.text import values

_TOKEN = re.compile(r"[^\s,;|\"'=<>()\[\]{}]+")


# ---------------------------------------------------------------- contents


def scalars(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The single values of some content, each with the keys that lead to it."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from scalars(value, (*path, str(key)))
    elif isinstance(content, (list, tuple)):
        for i, value in enumerate(content):
            yield from scalars(value, (*path, str(i)))
    else:
        yield path, content


def flat(content: Any) -> list[Any]:
    """The single values of some content, without the keys that lead to them."""
    out: list[Any] = []
    left = [content]
    while left:
        one = left.pop()
        if type(one) in SINGLE:
            out.append(one)
        elif isinstance(one, Mapping):
            left.extend(one.values())
        elif isinstance(one, (list, tuple)):
            left.extend(one)
        else:
            out.append(one)
    return out


SINGLE = frozenset({str, int, float, bool, type(None)})  # told at once; what is a mapping takes longer


def shape(content: Any) -> Any:
    """What content looks like with its values left out: keys, lengths and JSON types."""
    if isinstance(content, Mapping):
        return {key: shape(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [shape(value) for value in content]
    return "number" if isinstance(content, (int, float)) and not isinstance(content, bool) else type(content).__name__


def is_same(one: Any, two: Any) -> bool:
    """Is it one value, perhaps in another form of its kind?"""
    if one == two:
        return type(one) is type(two) or (not isinstance(one, bool) and not isinstance(two, bool))
    if isinstance(one, (bool, type(None))) or isinstance(two, (bool, type(None))):
        return False
    if isinstance(one, (int, float)) and isinstance(two, (int, float)):
        return abs(one - two) <= 1e-9 * max(abs(one), abs(two))
    return values.shown(one, str(two)) or values.shown(two, str(one))


def is_label(value: Any) -> bool:
    """Is it an id, which means nothing by itself? Anyone who hands it back unread is right, whatever it stands for."""
    return (
        isinstance(value, str)
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and not any(c.isspace() for c in value)
        and not (values.dates(value) or values.times(value))
    )


# ---------------------------------------------------------------- at every draw


def read_off(gold: Walk) -> None:
    """No secrets: what the solution is told is in what was shown, or a shown text says how to convert it."""
    session, task = gold.session, gold.session.task
    if all(layer.is_passthrough for layer in session.layers):
        return
    plain = entity_names.translator(task.entity_names, back=True) if task.entity_names else None
    for told in gold.told:
        content = told.result.content
        if told.result.error or content is None:
            continue
        shown = [s.result.content for s in gold.steps[told.first : told.after] if s.result.error is None]
        if not shown or any(one is content or one == content for one in shown):
            continue
        if plain is not None:
            shown = [entity_names.through(one, plain) for one in shown]
        _explained(gold, told, content, shown)


def sent_off(gold: Walk) -> None:
    """No secrets: what is sent and reaches the world as another value of its kind is so by a text that was shown."""
    session = gold.session
    if all(layer.is_passthrough for layer in session.layers):
        return
    entries = session.world.entries
    for n, step in enumerate(gold.steps):
        spec = session.ever.get(step.call.tool)
        if spec is None or all(call.args == step.call.args for call, _ in step.inner):
            continue
        earlier = [s.call for s in gold.steps[:n]]
        for call, _ in step.inner:
            if call in earlier:
                continue  # one that was asked for before and is made now
            for name, meant in call.args.items():
                sent = step.call.args.get(name)
                if sent is None or sent == meant or call.tool not in entries or is_same(sent, meant):
                    continue
                choices = entries[call.tool].spec.params[name].enum
                number = isinstance(meant, (int, float)) and isinstance(sent, (int, float))
                if not (number or sent in choices or (choices and meant in choices) or _are_dates(sent, meant)):
                    continue  # nobody would take it for another value
                legend = _legend(gold, _texts_for(gold, n, spec))
                if number:
                    right = legend.number(name, [sent], meant, ())
                elif wrong := legend.contradicts(str(sent), str(meant), choices):
                    raise Unfair("secrets", f"{call.tool}: {name} {sent!r} means {meant!r}, but a text says {wrong!r}")
                else:
                    right = (sent not in choices and not _are_dates(sent, meant)) or legend.word([sent], str(meant))
                if not right:
                    raise Unfair(
                        "secrets",
                        f"{call.tool}: {name} {sent!r} reaches the world as {meant!r}, and no text shown for it says "
                        "so; say by what number, order or table, or derive the kind from `ValueMap`",
                    )


def _are_dates(one: Any, two: Any) -> bool:
    return isinstance(one, str) and isinstance(two, str) and any(True for _ in legends.apart(one, two))


def _texts_for(gold: Walk, n: int, spec: ToolSpec) -> list[str]:
    """Texts that may say how the arguments of the call at step n are written."""
    own, steps = own_texts(gold.session), gold.steps[:n]
    spoken = [text for s in steps for text in (*s.heard, *([s.result.error.text] if s.result.error else ()))]
    shown = [text for step in steps for text in said(step.result.content) if " " in text.strip()]
    return [*(text for text in (gold.session.policy(), *docs([spec])) if text not in own), *spoken, *shown]


def legend_of(gold: Walk, told: Told) -> legends.Legend:
    """What was said, by the time the solution is told something, of how it is to be read."""
    return _legend(gold, _said_before(gold, told)[0])


def _said_before(gold: Walk, told: Told) -> tuple[list[str], list[str]]:
    """Texts that may say how to read what the solution is told, and all that was shown or sent so far."""
    session, steps = gold.session, gold.steps[: told.after]
    called = {step.call.tool for step in gold.steps[told.first : told.after]}
    spoken = [text for s in steps for text in (*s.heard, *([s.result.error.text] if s.result.error else ()))]
    own = own_texts(session)
    shown_docs = [session.policy(), *docs(spec for name, spec in session.ever.items() if name in called)]
    shown = [text for step in steps for text in said(step.result.content)]
    legends = [text for text in shown if " " in text.strip() or not text.isascii()]
    return (
        [*(text for text in shown_docs if text not in own), *spoken, *legends],
        [session.query(), *shown_docs, *spoken, *shown, *(text for step in steps for text in said(step.call.args))],
    )


def own_texts(session: Session) -> set[str]:
    """What the tools and the policy say without any layer."""
    return {*docs(session.domain.tools(session.task)), session.domain.policy}


def said(content: Any) -> list[str]:
    """All that some content says, keys and values, as texts. Places in a list and nulls are not said."""
    if isinstance(content, Mapping):
        return [text for key, value in content.items() for text in (str(key), *said(value))]
    if isinstance(content, (list, tuple)):
        return [text for value in content for text in said(value)]
    return [] if content is None else [str(content)]


def docs(specs: Iterable[ToolSpec]) -> list[str]:
    return [text for s in specs for text in (s.doc, *(t for n, p in s.params.items() for t in (n, p.doc, *p.enum)))]


Pair = tuple[tuple[str, ...], list[Any], Any, legends.Beside]  # where, what was shown, what is meant, what is beside


class _Misfit(Exception):
    """Two contents that have not the same parts."""


def _aligned(shown: Any, meant: Any, path: tuple[str, ...] = (), beside: legends.Beside = ()) -> Iterator[Pair]:
    """Values that differ, where what was shown has all the parts of what is meant and perhaps more."""
    if isinstance(meant, Mapping):
        if not isinstance(shown, Mapping) or not meant.keys() <= shown.keys():
            raise _Misfit
        more = [pair for key, value in shown.items() if key not in meant for pair in scalars(value, (key,))]
        for key, value in meant.items():
            yield from _aligned(shown[key], value, (*path, str(key)), (*beside, *more) if more else beside)
    elif isinstance(meant, (list, tuple)):
        if not isinstance(shown, (list, tuple)) or len(shown) != len(meant):
            raise _Misfit
        for i, value in enumerate(meant):
            yield from _aligned(shown[i], value, (*path, str(i)), beside)
    elif isinstance(shown, (Mapping, list, tuple)):
        parts = list(scalars(shown))
        if not any(is_same(value, meant) for _, value in parts):
            yield path, [value for _, value in parts], meant, (*beside, *parts)
    elif not is_same(shown, meant):
        yield path, [shown], meant, beside


def _pairs(content: Any, shown: list[Any]) -> tuple[list[Pair], bool]:
    """What the solution is told and was not shown as it is, and whether it was shown with the same parts."""
    for one in reversed(shown):
        if type(one) is type(content):
            try:
                return list(_aligned(one, content)), True
            except _Misfit:
                continue
    seen = [pair for one in shown for pair in scalars(one)]
    own = {_key(path) for path, _ in scalars(content)}
    beside = [(path, value) for path, value in seen if _key(path) not in own]
    return [
        (path, [s for p, s in seen if _key(p) == _key(path) and type(s) is type(value)], value, beside)
        for path, value in scalars(content)
        if value is not None and not isinstance(value, bool)
    ], False


def _told(content: Any) -> list[Any]:
    """The single values of some content that say something: neither null nor yes and no."""
    return [value for value in flat(content) if value is not None and not isinstance(value, bool)]


def _standing(shown: list[Any]) -> set[str]:
    """Every value that was shown, and every token of the texts among them."""
    seen = [value for one in shown for value in flat(one)]
    known = {str(value) for value in seen}
    known.update(t.strip(".:!") for value in seen if isinstance(value, str) for t in _TOKEN.findall(value))
    return known


def _explained(gold: Walk, told: Told, content: Any, shown: list[Any]) -> None:
    """Raise `Unfair` for a value that the solution is told and nobody could read off what was shown."""
    known: set[str] | None = None
    if not any(type(one) is type(content) for one in shown):
        known = _standing(shown)
        if all(str(value) in known for value in _told(content)):
            return  # in another form altogether, and every value stands there: most results that layers rewrite
    pairs, same = _pairs(content, shown)
    loose = [p for p in pairs if not same or not any(shape(r) == shape(p[2]) for r in p[1])]
    if loose:  # it may stand somewhere else
        known = _standing(shown) if known is None else known
        pairs = [p for p in pairs if p not in loose or str(p[2]) not in known]
    if not pairs:
        return
    texts, everything = _said_before(gold, told)
    if loose:
        blob, known = "\n".join(everything), set(everything)
        pairs = [
            p for p in pairs
            if p not in loose
            or not (str(p[2]) in known or (isinstance(p[2], str) and p[2] in blob) or values.shown(p[2], blob))
        ]  # fmt: skip
    legend = _legend(gold, texts)
    for pair in pairs:
        if not _reads(gold, told, legend, pair, same=same):
            path, rivals, meant, _ = pair
            read = f"{rivals[0]!r} is read as {meant!r}" if rivals else f"{meant!r} is not shown"
            raise Unfair(
                "secrets",
                f"{told.call.tool}: {_key(path) or 'the result'} {read}, and no text shown for it says "
                "how to read it; say by what number, unit or table, or derive the kind from `ValueMap`",
            )


def _legend(gold: Walk, texts: list[str]) -> legends.Legend:
    figures = (pair for told in gold.told for pair in scalars(told.result.content))
    return legends.Legend(texts, {_key(path) for path, value in figures if isinstance(value, (int, float))})


def _reads(gold: Walk, told: Told, legend: legends.Legend, pair: Pair, *, same: bool) -> bool:
    """Could somebody who has read what was shown read the one value as the other?"""
    path, rivals, meant, beside = pair
    if not rivals:  # left out, or in another form altogether, and a text says which
        texts = [s.result.content for s in gold.steps[told.first : told.after] if isinstance(s.result.content, str)]
        for text in texts:
            if (decoded := legend.decodes(text, str(meant))) is not None:
                return decoded
        return _documented(gold, told) and (bool(texts) or legend.names(_key(path)))
    if is_label(meant) and same and is_label(rivals[0]) and _relabelled(gold, meant):
        return True
    if isinstance(meant, (int, float)) and not isinstance(meant, bool):
        return legend.number(_key(path), rivals, meant, beside)
    if not isinstance(meant, str):
        return False
    if any(isinstance(r, str) and legend.contradicts(r, meant, _words(gold, _key(path))) for r in rivals):
        return False
    if legend.word(rivals, meant):
        return True
    if meant.isalpha() or any(legend.misleads(r, meant) for r in rivals if isinstance(r, str)):
        return False  # a word in the place of a word, or in a way of writing that is not named
    return not any(_is_plausible(r, gold) for r in rivals) and _documented(gold, told)  # it cannot be mistaken


def _words(gold: Walk, key: str) -> set[str]:
    """The words that the solution is told under a key."""
    return {v for t in gold.told for path, v in scalars(t.result.content) if isinstance(v, str) and _key(path) == key}


def _by_legend(gold: Walk, told: Told, path: tuple[str, ...], x: Any, y: Any) -> bool:
    """Does a legend say that what was shown means x, and not y? Then another draw that shows it would be lying."""
    shown = [s.result.content for s in gold.steps[told.first : told.after] if s.result.error is None]
    pairs, same = _pairs(told.result.content, shown)
    found = next((pair for pair in pairs if pair[0] == path), None)
    if found is None or not found[1]:
        return False
    legend = _legend(gold, _said_before(gold, told)[0])
    there = (path, found[1], y, found[3])
    return _reads(gold, told, legend, found, same=same) and not _reads(gold, told, legend, there, same=same)


def is_encoded(gold: Walk, value: Any) -> bool:
    """Was a value told to the solution out of a text that holds all it was told, in a form that a text describes?"""
    for told in gold.told:
        if told.result.error is None and any(value == one for _, one in scalars(told.result.content)):
            shown = [s.result.content for s in gold.steps[told.first : told.after] if isinstance(s.result.content, str)]
            whole = len(json.dumps(told.result.content, default=str))
            if any(len(text) >= whole // 2 for text in shown) and _documented(gold, told):
                return True
    return False


def _key(path: tuple[str, ...]) -> str:
    return next((key for key in reversed(path) if not key.isdigit()), "")


def _documented(gold: Walk, told: Told) -> bool:
    """Does a text that goes with these calls say anything that the tools do not say without layers?"""
    session, own = gold.session, own_texts(gold.session)
    called = {step.call.tool for step in gold.steps[told.first : told.after]}
    texts = [session.task.brief.policy, *docs(spec for name, spec in session.ever.items() if name in called)]
    return any(text not in own for text in texts if " " in text.strip())


def _is_plausible(value: Any, gold: Walk) -> bool:
    """Might a shown text be a value of the world: does the solution hear of the same one elsewhere?"""
    return isinstance(value, str) and any(
        value == other for told in gold.told for _, other in scalars(told.result.content)
    )


def _relabelled(gold: Walk, meant: Any) -> bool:
    """Is an id shown under another label wherever the agent meets it? Then the label is as good as the id."""
    final = gold.final
    return str(meant) not in final and not any(
        str(meant) in said(step.result.content) or meant in step.call.args.values() for step in gold.steps
    )


# ---------------------------------------------------------------- two stacks that look the same


def _texts(session: Session) -> tuple[Any, ...]:
    """All that is shown before anything is called, at whatever call."""
    out: list[Any] = [session.query(), session.policy()]
    for nth in sorted({0, *session.moments}):
        session.show(nth)
        out.append(
            [(t.name, t.doc, {n: (p.doc, p.type, p.enum) for n, p in t.params.items()}) for t in session.tools()]
        )
        out[-1].sort(key=lambda tool: tool[0])  # their order says nothing
    session.show(0)
    return tuple(out)


def confusable(walks: Walks, layers: Layers, said: str, *, alike: bool = False, drawn: bool = True) -> None:
    """Raise `Unfair` if another stack over the same task shows the same and reads what gold saw as something else.

    `said` names the other stack in the reason. A stack that shows other texts or tools, or cannot read what was shown,
    can be told apart and is not a rival. `alike` says that it is known to show the same. One that is not `drawn` by the
    kind is not a rival either where its legend would be wrong.
    """
    gold, task = walks.gold, walks.tasks[0]
    other: Task = task
    try:
        for layer in layers:
            other = layer.on_task(other)
        if not alike and (other.brief.query, other.brief.policy, other.entity_names) != (
            walks.shifted.brief.query,
            walks.shifted.brief.policy,
            walks.shifted.entity_names,
        ):
            return
        here, there = _moments(walks.layers), _moments(layers)
        if here != there or (
            not alike
            and _texts(Session.of(gold.session.domain, walks.shifted, walks.layers))
            != _texts(Session.of(gold.session.domain, other, layers))
        ):
            return
        plans = {
            i: [s.call for s in walks.at(i).calls] for i, layer in enumerate(layers) if layer.plans and i in walks.made
        }
        told, end = retrace(gold, other, layers, plans)
    except Diverged as diverged:
        if _same_so_far(gold, diverged.args[0], said, drawn=drawn):
            _alike_where_they_part(walks, other, layers, diverged, said, drawn=drawn)
        return
    except (CrosswindError, KeyError, IndexError, TypeError, AttributeError, ValueError, LookupError):
        return  # it cannot read what was shown, so the two can be told apart
    if _same_so_far(gold, told, said, drawn=drawn) and end is not None and end != gold.end:
        raise Unfair("secrets", f"{said} shows the same, but there the right answer is {end!r} and not {gold.end!r}")


def _moments(layers: Layers) -> tuple[int, ...]:
    return tuple(sorted({n for layer in layers for n in layer.turns()}))


def _call(call: ToolCall) -> str:
    return f"{call.tool}({', '.join(f'{k}={v!r}' for k, v in call.args.items())})"


def _same_so_far(gold: Walk, there: list[Told], said: str, *, drawn: bool) -> bool:
    """Are the results read alike, as far as both go? False: the other stack cannot have shown them."""
    for one, two in zip(gold.told, there, strict=False):
        if (one.result.error is None) != (two.result.error is None):
            return False
        a, b = one.result.content, two.result.content
        if a == b or one.result.error is not None:
            continue
        if shape(a) != shape(b):
            return False
        for (path, x), (_, y) in zip(scalars(a), scalars(b), strict=True):
            if not is_same(x, y) and not (is_label(x) and is_label(y)):
                if not drawn and _by_legend(gold, one, path, x, y):
                    return False
                key = next((k for k in reversed(path) if not k.isdigit()), "the result")
                raise Unfair(
                    "secrets",
                    f"{one.call.tool}: the {key} that is read as {x!r} would mean {y!r} with {said}, which shows the "
                    "same texts and tools",
                )
    return True


def _alike_where_they_part(
    walks: Walks, task: Task, layers: Layers, diverged: Diverged, said: str, *, drawn: bool
) -> None:
    """Raise `Unfair` if nothing shown tells two stacks apart at a call that only one of them makes.

    Either that call works in both and means something else in each, or all was alike so far and the ends differ.
    """
    gold, became, alike = walks.gold, [], True
    for over, stack in ((walks.shifted, walks.layers), (task, layers)):
        session = Session.of(gold.session.domain, over, stack)
        for step in gold.steps[: diverged.step]:
            if step.call.tool == SAY:
                session.say(step.call.args["text"])
            else:
                session.call(step.call)
            alike = alike and (session.steps[-1].result, session.steps[-1].heard) == (step.result, step.heard)
        if diverged.call.tool in (ASK, SAY):
            return
        result = session.call(diverged.call)
        if result.error is not None:
            return  # its author gets the complaint
        became.append([call for call, _ in session.steps[-1].inner])
    if became[0] != became[1] and not (not drawn and _said_in_calls(gold, diverged.call, *became)):
        does = f"there {_call(diverged.call)} does something else"
        raise Unfair("secrets", f"{said} shows the same texts and tools, but {does}") from None
    if alike and not walks.shifted.refuse and not task.refuse:
        there = walk(walks.domain, task, layers)
        if not drawn and isinstance(there.end, Refusal):
            return  # its own way round fails, so that it is not a fair draw, and nobody meets it
        if (there.end, there.changes) != (gold.end, gold.changes):
            raise Unfair(
                "secrets", f"{said} shows the same, but there the right end is {there.final!r} and not {gold.final!r}"
            ) from None


def _said_in_calls(gold: Walk, call: ToolCall, here: list[ToolCall], there: list[ToolCall]) -> bool:
    """Do the tool's own texts say that what is sent becomes what it does here, and not what it would do there?"""
    spec = gold.session.ever.get(call.tool)
    if spec is None or len(here) != len(there):
        return False
    own = own_texts(gold.session)
    texts = [text for text in (gold.session.policy(), *docs([spec])) if text not in own]
    legend = legends.Legend(texts, spec.params)
    sent = [value for _, value in scalars(call.args)]
    differ = 0
    for one, two in zip(here, there, strict=True):
        for (path, x), (_, y) in zip(scalars(one.args), scalars(two.args), strict=False):
            if x != y and isinstance(x, (int, float)) and isinstance(y, (int, float)):
                if not legend.number(_key(path), sent, x, ()) or legend.number(_key(path), sent, y, ()):
                    return False
                differ += 1
            elif x != y:
                if not isinstance(x, str) or not legend.word(sent, x) or legend.word(sent, str(y)):
                    return False
                differ += 1
    return differ > 0


def without(walks: Walks, *, ours: bool = False) -> None:
    """No secrets: no layer of a stack could be missing without anybody noticing, and yet change what things mean.

    At every draw this is asked of layers from outside; of `ours` the audit asks it.
    """
    for i, layer in enumerate(walks.layers):
        if type(layer).__module__.startswith("crosswind.perturbations.") and not ours:
            continue
        here, there = walks.tasks[i], walks.tasks[i + 1]
        if here.brief.query != there.brief.query or here.brief.policy != there.brief.policy:
            continue
        if layer.retools and any(walks.shown(i, n) != walks.shown(i + 1, n) for n in (0, *_moments(walks.layers))):
            continue
        if not layer.is_passthrough or here.brief != there.brief:
            confusable(walks, (*walks.layers[:i], *walks.layers[i + 1 :]), f"no {layer.kind!r}", alike=True)


# ---------------------------------------------------------------- the same draw with other field values


def everything_shown(gold: Walk) -> str:
    """All that an agent saw on a walk, as one text."""
    return repr((_texts(gold.session), [(step.call, step.result, step.heard) for step in gold.steps]))


def altered(layer: Perturbation, shown: str) -> Iterator[tuple[str, Perturbation]]:
    """The layer with one field changed that nobody sees: numbers, choices, and texts that are shown nowhere."""
    data = layer.model_dump(mode="json")
    for name, field in type(layer).model_fields.items():
        if name == "kind":
            continue
        for value in _others(data[name], field.annotation, shown):
            try:
                other = type(layer).model_validate_json(json.dumps({**data, name: value}))
            except (ValidationError, ValueError):
                continue
            if other != layer:
                yield name, other


def _others(value: Any, annotation: Any, shown: str) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from (one for one in get_args(annotation) if one != value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value + 7)
    elif isinstance(value, float):
        yield from (value * 2, value + 0.5)
    elif isinstance(value, str):
        if value and value not in shown:
            yield value[::-1] if value[::-1] != value else value + value
    elif isinstance(value, dict):
        if len(value) > 1 and not any(isinstance(one, str) and one in shown for one in value.values()):
            first, *rest = value.values()  # what stands for what; words that are shown may mean what they say
            yield dict(zip(value, (*rest, first), strict=True))
        for key, one in value.items():
            for other in _others(one, None, shown):
                yield {**value, key: other}
                break
    elif isinstance(value, list):
        if len(value) > 1 and not any(isinstance(one, str) and one in shown for one in value):
            yield value[::-1]
        for i, one in enumerate(value):
            for other in _others(one, None, shown):
                yield [*value[:i], other, *value[i + 1 :]]
                break
