"""What a domain promises: rows in the order that a description names, the same answer whatever was asked before, and
requests that hold nothing idle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core import legends
from crosswind.core.aggregates import lists
from crosswind.core.domain import Domain
from crosswind.core.evidence import is_number
from crosswind.core.flow import rng_for
from crosswind.core.footprints import look_ups
from crosswind.core.oracle import Walk, walk
from crosswind.core.secrets import is_same
from crosswind.core.task_laws import dicts
from crosswind.core.types import Refusal, Row, Task, ToolCall, ToolSpec
from crosswind.core.world import World
from crosswind.text import values

TRIES = 20  # requests that are proposed until a detail is another
VALUES = 6  # of a detail that are tried in one task

# ---------------------------------------------------------------- tools


def kept(domain: Domain, tasks: Iterable[Task]) -> None:
    """Every look-up answers the same whatever was asked before, and its rows come in the order that it promises."""
    shown: dict[str, list[list[Row]]] = {}
    for task in tasks:
        try:
            steps = [*walk(domain, task).calls]
        except Unfair:
            continue
        used = domain.world(task)
        for call in look_ups(domain, task, steps):
            alone = domain.world(task).call(call)
            if used.call(call) != alone:
                raise Unfair(
                    "footprint",
                    f"tool {call.tool!r} answers otherwise once something else was looked up, though nothing was "
                    "written: it remembers what it was asked; what a tool answers must follow from its arguments and "
                    "the rows",
                )
            if alone.error is None:
                shown.setdefault(call.tool, []).extend(lists(alone.content))
    for name, tables in shown.items():
        in_order(domain.world_class.entries[name].spec, tables)


AS_IT_WAS = re.compile(
    r"\b(original\w*|initial\w*|at first|before|earlier|previous\w*|history|as (?:it|they) was)\b", re.I
)


def as_rows_stand(domain: Domain, tasks: Iterable[Task]) -> None:
    """Footprint: once something is written, look-ups show it, and a write tells what it wrote.

    What a look-up answers must follow from the rows as they stand: not from what a tool noted elsewhere when it wrote,
    nor from the rows as they were before, unless its description says so.
    """
    for task in tasks:
        try:
            steps = walk(domain, task).calls
        except Unfair:
            continue
        world = domain.world(task)
        for step in steps:
            before = dict(world.state.overlay)
            result = world.call(step.call)
            rows = [row for key, row in world.state.overlay.items() if row is not None and before.get(key) != row]
            _told_as_written(step.call.tool, result.content, rows)
        written = dict(world.state.overlay)
        for call in look_ups(domain, task, steps) if written else ():
            fresh = domain.world(task)
            fresh.state.overlay.update(written)
            answer = world.call(call)
            stale = "" if AS_IT_WAS.search(world.entries[call.tool].spec.doc) else _stale(world, call, answer.content)
            if stale or answer != fresh.call(call):
                raise Unfair(
                    "footprint",
                    f"tool {call.tool!r} answers otherwise than the rows stand after a write: it shows "
                    f"{stale or 'what another tool noted elsewhere'}; read rows with `state.row`, and keep everything "
                    "in rows",
                )


def _stale(world: World, call: ToolCall, content: Any) -> str:
    """A value of a row that was written, as it was before; empty if none is shown."""
    state, sent = world.state, {*map(str, call.args.values())}
    for (table, id), row in state.overlay.items():
        old = state.start(table, id)
        if row is None or old is None:
            continue
        for record in dicts(content):
            if id not in sent and id not in map(str, record.values()):
                continue
            for key in row.keys() & record.keys():
                if record[key] == old.get(key) != row[key]:
                    return f"{key}={record[key]!r} of {id}, which is {row[key]!r} now"
    return ""


def _told_as_written(tool: str, content: Any, rows: Sequence[Row]) -> None:
    """Raise `Unfair` if the result of a write says another value than the one row with such a column holds."""
    for key, value in content.items() if isinstance(content, Mapping) else ():
        held = [row[key] for row in rows if key in row]
        if len(held) == 1 and isinstance(value, (str, int, float)) and not is_same(value, held[0]):
            raise Unfair(
                "secrets",
                f"tool {tool!r} says {key}={value!r} and has written {held[0]!r}; report what was written",
            )


_LATE, _EARLY = "newest latest last", "oldest earliest soonest next first"
_HIGH = "highest best largest biggest greatest dearest longest most heaviest strongest busiest top maximum"
_LOW = "lowest cheapest smallest least nearest closest shortest fewest lightest weakest quietest minimum"
_FIRST = re.compile(
    r"\b(?:the |from the )?(\w+)(?: (?:ones?|of them|of all|(?!and\b|or\b)\w+))?(?: comes?| are| is| at the)?"
    r" (?:first|top of the list)\b"
)
_BY = re.compile(
    r"\b(?:sorted|ordered|ranked|arranged|listed|in (?:the )?(?:ascending |descending |rising |falling )?order)"
    r"(?: (?:up|down|in \w+ order|from \w+ to \w+|ascending|descending))?,? (?:by|of|after|on) (?:the |its |their )?"
    r"(\w+)(?: (\w+))?"
)
_FALLING = re.compile(r"\b(descending|falling|decreasing|down|highest to|newest to|latest to|largest to|high to low)\b")
_RISING = re.compile(r"\b(ascending|rising|increasing|lowest to|oldest to|earliest to|smallest to|low to high)\b")


def in_order(spec: ToolSpec, tables: Sequence[Sequence[Row]]) -> None:
    """Raise `Unfair` where a description promises an order by what its rows show, and they come in another."""
    for sentence in re.split(r"[.;:]\s+", spec.doc.lower()):
        named, moment, rises, said = _promise(sentence)
        if not said:
            continue
        columns = {key for rows in tables for key in rows[0]}
        fit = {key for key in columns if _fits(key, named, tables, moment=moment)}
        if fit and not any(_runs(key, rows_of, rises) for key in fit for rows_of in [tables]):
            raise Unfair(
                "ties",
                f"the description of {spec.name!r} promises {said!r}, and its rows come in another order "
                f"({_held(min(fit), tables)}); return them in that order, or do not promise it",
            )


def _promise(sentence: str) -> tuple[str, bool | None, bool | None, str]:
    """The column an order is by, whether that is of dates, whether it rises, and the words; no words: no promise."""
    falling, rising = _FALLING.search(sentence) is not None, _RISING.search(sentence) is not None
    if found := _BY.search(sentence):
        way = None if falling == rising else rising
        return found[1], None, way, found[0]
    for found in _FIRST.finditer(sentence):
        word = found[1]
        if word in _LATE.split() or word in _EARLY.split():
            return "", True, word not in _LATE.split(), found[0]
        if word in _HIGH.split() or word in _LOW.split():
            return "", False, word in _LOW.split(), found[0]
    return "", None, None, ""


def _fits(key: str, named: str, tables: Sequence[Sequence[Row]], *, moment: bool | None) -> bool:
    """May a column be the one that an order is by?"""
    held = [row.get(key) for rows in tables for row in rows]
    if named and not any(
        one[:4] == two[:4] for one in legends.stems(named) for two in legends.stems(key.replace("_", " "))
    ):
        return False
    dated = all(isinstance(v, str) and bool(values.dates(v) or values.times(v)) for v in held)
    if moment is None:
        return dated or all(map(is_number, held))
    return dated if moment else all(map(is_number, held))


def _runs(key: str, tables: Sequence[Sequence[Row]], rises: bool | None) -> bool:
    """Do the values of a column rise, or fall, in every list?"""
    ways = {True, False} if rises is None else {rises}
    for rows in tables:
        held: list[Any] = [row[key] for row in rows]
        ways &= {way for way in ways if all((a <= b) if way else (a >= b) for a, b in pairwise(held))}
    return bool(ways)


def _held(key: str, tables: Sequence[Sequence[Row]]) -> str:
    rows = max(tables, key=len)
    return f"{key} {', '.join(str(row.get(key)) for row in rows[:4])}"


# ---------------------------------------------------------------- requests


def needed(domain: Domain, walked: Sequence[tuple[Task, Walk]]) -> None:
    """Goal: each detail that a request states makes a difference, to a call or to the end, in one of its tasks.

    A request that is to be refused may be refused before all of it matters.
    """
    walked = [(task, clean) for task, clean in walked if not task.refuse]
    keys = dict.fromkeys(key for task, _ in walked for key in task.brief.stated)
    for key in keys:
        tried = 0
        for task, clean in walked:
            differs = _differs(domain, task, clean, key) if key in task.brief.stated else None
            if differs:
                break
            tried += differs is not None
        else:
            if tried:
                task = walked[0][0]
                raise Unfair(
                    "goal",
                    f"the request states the {domain.family(task).details[key].label} ({task.brief.query!r}), and with "
                    f"another one every call and every end is the same in {tried} tasks: who follows the request may "
                    "end elsewhere; let `solve` and `ends` follow it, or leave it out",
                )


def _differs(domain: Domain, task: Task, clean: Walk, key: str) -> bool | None:
    """Is something else done or right with another value of a detail? None: no other value was proposed.

    Several values are tried, since a small change of a number may make no difference in a world with room to spare.
    """
    family, state = domain.family(task), domain.state(task)
    rng = rng_for("needed", task.id, key)
    tried: list[Any] = [task.brief.stated[key]]
    for _ in range(TRIES):
        other = family.propose(rng, state, task.split)
        if other is None or other.get(key, tried[0]) in tried:
            continue
        if len(tried) > VALUES:
            break
        tried.append(other[key])
        changed = task.briefed(stated={**task.brief.stated, key: other[key]})
        try:
            if family.right(changed, state) != family.right(task, state):
                return True
            there = walk(domain, changed)
        except Unfair:
            return True
        except Exception:  # a request that the author never meant
            return True
        if (there.end, [s.call for s in there.steps]) != (clean.end, [s.call for s in clean.steps]):
            return True
    return None if len(tried) == 1 else False


MOST = re.compile(
    r"\b(?:at most|(?:no|not) more than|up to|(?:a )?maximum(?: of| is)?|max\.?|limited to|(?:cannot|must not|may not)"
    r" exceed|not exceed)\s+(\d+)(?![\d:/-]|\.\d)"
)
LEAST = re.compile(r"\b(?:at least|no(?:t)? (?:less|fewer) than|(?:a )?minimum(?: of| is)?)\s+(\d+)(?![\d:/-]|\.\d)")
EXAMPLE = re.compile(
    r"(?:\bsuch as|\be\.g\.,?|\bfor example,?|\bfor instance,?|\blike|\bin the form(?: of)?|\bas in"
    r"|\bformat(?:ted)?(?: as|:)?|\bwritten(?: as)?)\s+[\"'`]?"
    r"([A-Za-z]{0,12}[-_.:/#]?\d[\w.:/#-]*\w|(?:[DMYH]{1,4}[-/.:]){1,2}[DMYHS]{1,4})"
)


def as_described(walked: Iterable[tuple[Task, Walk]]) -> None:
    """Mentions: what the solution sends keeps to the limits and has the form that the tool's description names."""
    forms: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for _, clean in walked:
        for step in clean.calls:
            spec = clean.session.specs[step.call.tool]
            for name, value in step.call.args.items() if step.result.error is None else ():
                own = spec.params[name].doc
                if is_number(value):
                    _is_within(spec, name, value, own)
                elif isinstance(value, str) and (found := EXAMPLE.search(own)):
                    forms.setdefault((spec.name, name), (found[1], []))[1].append(value)
    for (tool, name), (example, sent) in forms.items():
        if all(map(values_form, sent)) and values_form(example) not in set(map(values_form, sent)):
            raise Unfair(
                "mentions",
                f"the note of {name} of {tool!r} gives {example!r} as an example, and the solution sends {sent[0]!r}: "
                "say how it is really written",
            )


def _is_within(spec: ToolSpec, name: str, value: float, own: str) -> None:
    """Raise `Unfair` if a number is beyond the limit that a note of the parameter, or a sentence about it, sets."""
    words = legends.stems(name.replace("_", " "))
    about = [s for s in legends.SENTENCE.split(spec.doc) if words & legends.stems(s)]
    for text in (own, *about):
        beyond = [m for m in MOST.finditer(text.lower()) if value > int(m[1])]
        beyond += [m for m in LEAST.finditer(text.lower()) if value < int(m[1])]
        if beyond:
            raise Unfair(
                "mentions",
                f"the description of {spec.name!r} says {beyond[0][0]!r} of {name}, and the solution sends {value!r}, "
                "which works: an agent that believes it gives up; name the real limit",
            )


def values_form(text: str) -> str:
    """The form of an id, a date or a time: letters and digits by kind, digits counted where marks part them."""
    digits = re.sub("[A-Z]" if re.fullmatch(r"[DMYHS\-/.:]+", text) else "[0-9]", "9", text)
    form = re.sub(r"[A-Za-z]+", "a", digits)
    return form if re.search(r"9[-/.:]9", form) else re.sub("9+", "9", form)


ROLES: Sequence[tuple[frozenset[str], frozenset[str]]] = tuple(
    (frozenset(one.split()), frozenset(two.split()))
    for one, two in (
        ("from start starting origin source departure", "to target destination dest arrival"),
        ("sender payer giver lender seller", "recipient receiver payee taker borrower buyer"),
        ("old before previous", "new after next"),
        ("minimum min least lowest", "maximum max most highest"),
    )
)


def in_their_roles(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """No secrets: what the request gives as one end of something is not sent as the other, unless a text says so."""
    for task, clean in walked:
        if isinstance(clean.end, Refusal):
            continue
        details = domain.family(task).details
        for step in clean.calls:
            params = clean.session.specs[step.call.tool].params
            for name, value in step.call.args.items():
                keys = [key for key, stated in task.wanted.items() if stated == value]
                if len(keys) != 1 or params[name].doc:
                    continue
                said = {*keys[0].split("_"), *details[keys[0]].label.lower().split()}
                sent = {*name.split("_")}
                for one, two in ROLES:
                    for here, there in ((one, two), (two, one)):
                        if said & here and sent & there and not said & there and not sent & here and _has(params, here):
                            raise Unfair(
                                "secrets",
                                f"{step.call.tool} is sent the {details[keys[0]].label} as {name!r}, and no note of "
                                "that parameter says why; send it as what the request calls it, or say so in the note",
                            )


def _has(params: Mapping[str, Any], words: frozenset[str]) -> bool:
    """Is there a parameter that would have been the right one?"""
    return any({*name.split("_")} & words for name in params)
