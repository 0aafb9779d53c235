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
from crosswind.core.types import Refusal, Row, Task, ToolSpec
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
