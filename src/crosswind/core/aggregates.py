"""Figures over several rows: a count or a sum that is to be told is over all the rows that have what was named.

Each row of a list is taken away in turn, and the goal is asked for its answer again: that tells which rows it counts.
If a row that it passes over differs from the others in nothing that a text names, nobody else can know why.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core import legends
from crosswind.core.domain import Domain
from crosswind.core.evidence import LEAST, RULES, is_number
from crosswind.core.oracle import Walk, walk
from crosswind.core.secrets import scalars
from crosswind.core.types import Key, Refusal, Row, Step, Task
from crosswind.text import values

UNEXPLAINED = 2  # tasks, before a family is refused: one may be read wrongly
ROWS = 60  # rows that are taken away in turn
BY_CUSTOM = re.compile(  # words that everybody can put a limit to
    r"\b(morning|noon|afternoon|evening|night|day|week\w*|month\w*|quarter|year|century|above average|below average"
    r"|average|mean|median|half|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april"
    r"|may|june|july|august|september|october|november|december|spring|summer|autumn|winter|even|odd|negative|positive"
    r"|zero|empty|none)\b",
    re.IGNORECASE,
)
COMPARED = (operator.lt, operator.le, operator.eq, operator.ge, operator.gt)
Places = frozenset[int]  # of rows in a list


def over_what_is_named(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """Grounded: a count or a sum passes over no row of a list for a reason that nobody was told."""
    looked = found = 0
    odd = list[str]()
    for task, clean in walked:
        if task.refuse or isinstance(clean.end, Refusal) or clean.changes:
            continue
        start = domain.state(task)
        told = [
            (n, e.value) for n, e in enumerate(domain.family(task).answer(task, start, start)) if is_number(e.value)
        ]
        if not told or (looked >= LEAST and not found):
            return  # nothing is counted here
        looked += 1
        seen: set[Key] = set()
        walk(domain, task, seen=seen)
        for step in clean.calls:
            for rows, taken in _counted(domain, task, step, told, sorted(seen)):
                found += 1
                rows = [{**row, **_looked_up(clean, step, row)} for row in rows]
                if (other := _unexplained(clean, step, rows, taken)) is not None:
                    odd.append(
                        f"of the {len(rows)} rows of {step.call.tool}, {len(taken)} are counted "
                        f"({task.brief.query!r}), and not {other}: nothing that the request or the policy names sets "
                        "them apart; say there which rows count, or count them all"
                    )
    if len(odd) >= UNEXPLAINED:
        raise Unfair("grounded", odd[0])


def _counted(
    domain: Domain, task: Task, step: Step, told: Sequence[tuple[int, Any]], seen: Sequence[Key]
) -> Iterator[tuple[list[Row], Places]]:
    """Lists of a result with the places of the rows that a told figure counts or adds up, where it does either."""
    before = lists(step.result.content)
    if not before:
        return
    without: dict[tuple[int, int], list[Any]] = {}  # the list and the place in it: the answers without that row
    shown = {str(value) for _, value in scalars(step.result.content)}
    for table, id in sorted(seen, key=lambda key: key[1] not in shown)[:ROWS]:
        other = task.replace(edits={**task.edits, f"{table}/{id}": None})
        try:
            after = lists(domain.world(other).call(step.call).content)
            if len(after) != len(before):
                continue
            for n, rows in enumerate(before):
                if (place := _missing(rows, after[n])) is not None:
                    state = domain.state(other)
                    without[n, place] = [e.value for e in domain.family(task).answer(other, state, state)]
        except Unfair:
            continue
        except Exception:  # a world that the author never meant
            continue
    for n, rows in enumerate(before):
        for at, value in told:
            less = {i: value - found[at] for (m, i), found in without.items() if m == n and _has_number(found, at)}
            taken = {i: by for i, by in less.items() if by}
            if len(less) == len(rows) > len(taken) > 1 and _is_total(rows, taken, value):
                yield list(rows), frozenset(taken)


def _has_number(found: Sequence[Any], at: int) -> bool:
    return len(found) > at and is_number(found[at])


def lists(content: Any) -> list[list[Row]]:
    """The lists of two or more records in some content."""
    if isinstance(content, Mapping):
        return [rows for value in content.values() for rows in lists(value)]
    if isinstance(content, (list, tuple)) and len(content) > 1 and all(isinstance(row, Mapping) for row in content):
        return [list(content)]
    return []


def _missing(rows: Sequence[Row], left: Sequence[Row]) -> int | None:
    """The place of the one row that is there no more."""
    if len(left) != len(rows) - 1:
        return None
    counters = {key for key in rows[0] if all(row.get(key) in (i, i + 1) for i, row in enumerate(rows))}
    rows, left = ([{k: v for k, v in row.items() if k not in counters} for row in many] for many in (rows, left))
    at = next((i for i, row in enumerate(left) if row != rows[i]), len(left))
    return at if [*rows[:at], *rows[at + 1 :]] == [*left] else None


def _is_total(rows: Sequence[Row], taken: Mapping[int, float], value: float) -> bool:
    """Is a figure so much for each row that it counts, or for what each holds in some column?"""
    (first, by), *_ = taken.items()
    if abs(by * len(taken) - value) < 1e-6 and all(abs(one - by) < 1e-6 for one in taken.values()):
        return True
    for key, held in rows[first].items():
        figures = {i: rows[i].get(key) for i in taken}
        if not is_number(held) or not held or not all(map(is_number, figures.values())):
            continue
        factor = by / held
        total = sum(factor * figure for figure in figures.values())
        if abs(total - value) < 1e-6 and all(abs(factor * figures[i] - one) < 1e-6 for i, one in taken.items()):
            return True
    return False


def _looked_up(clean: Walk, step: Step, row: Row) -> Row:
    """What other calls showed of a row."""
    ids = {value for value in row.values() if isinstance(value, str) and any(c.isdigit() for c in value)}
    out: dict[str, Any] = {}
    for other in clean.calls:
        if other is not step and isinstance(other.result.content, Mapping) and ids & {*other.call.args.values()}:
            out |= {key: value for key, value in other.result.content.items() if not isinstance(value, Mapping)}
    return out


def _unexplained(clean: Walk, step: Step, rows: Sequence[Row], taken: Places) -> Any:
    """A row that is not counted though it has all that was named and that those counted have; None: there is none."""
    every = frozenset(range(len(rows)))
    left = every - taken
    tests = list(_tests(clean, step, rows))
    for group in (taken, left):  # those that are counted have something in common, or those that are not
        alike = every.intersection(*(test for test in tests if group <= test))
        if alike == group:
            return None
    spare = every.intersection(*(test for test in tests if taken <= test)) - taken
    return rows[min(spare or left)]


def _tests(clean: Walk, step: Step, rows: Sequence[Row]) -> Iterator[Places]:
    """The rows that pass each test which somebody can make who has read the texts and seen the other results."""
    task = clean.session.task
    texts = [task.brief.query, task.brief.policy, *map(str, task.withheld.values())]
    texts += [words for s in clean.steps for words in s.heard]
    whole = "\n".join(texts)
    docs = clean.session.ever[step.call.tool].doc
    seen = [v for s in clean.calls if s is not step for _, v in scalars(s.result.content)]
    numbers = {*values.numbers(whole), *values.numbers(docs), *filter(is_number, seen)}
    moments = {*values.dates(whole), *values.times(whole), *values.dates(docs), *values.times(docs)}
    moments |= {v for v in seen if isinstance(v, str) and _is_moment(v)}
    custom = BY_CUSTOM.search(whole) is not None
    calendar = [*_periods(f"{whole}\n{docs}")]
    columns = {key: [row[key] for row in rows] for key in rows[0] if all(key in row for row in rows)}
    for key, held in columns.items():
        if all(map(is_number, held)):
            yield from _split(held, {*held} if custom else numbers)
        elif all(isinstance(v, str) and _is_moment(v) for v in held):
            yield from _split(held, {*held} if custom and not calendar else moments)
            yield from (_where(held, lambda v, period=period: _months(v) & period) for period in calendar)
        elif all(isinstance(v, (list, tuple)) for v in held):
            yield from (_where(held, lambda v, p=part: p in v) for one in held for part in one)
        elif len({*map(str, held)}) < len(held):  # an id would set any row apart
            spoken = _is_spoken_of(key, held, whole, docs)
            for value in {*held} if all(map(_is_plain, held)) else ():
                if spoken or value in seen or values.shown(value, whole):
                    yield _where(held, lambda v, x=value: v == x)
                    yield _where(held, lambda v, x=value: v != x)
    figures = [held for held in columns.values() if all(map(is_number, held))]
    for n, one in enumerate(figures):
        for two in figures[n + 1 :]:
            for test in COMPARED:
                yield frozenset(i for i, (a, b) in enumerate(zip(one, two, strict=True)) if test(a, b))


QUARTERS = re.compile(r"\b(?:(first|second|third|fourth|last|[1-4](?:st|nd|rd|th)?) quarter|q([1-4]))\b", re.IGNORECASE)
MONTHS = tuple(
    "january february march april may june july august september october november december".split(),
)


def _periods(text: str) -> Iterator[frozenset[int]]:
    """The months that a text names: one by one, from one to another, and those of its quarters of the year."""
    low = text.lower()
    for found in QUARTERS.finditer(low):
        n = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}.get(found[1] or "") or int(
            (found[1] or found[2])[0]
        )
        yield frozenset(range(3 * n - 2, 3 * n + 1))
    named = [MONTHS.index(word) + 1 for word in re.findall(rf"\b({'|'.join(MONTHS)})\b", low)]
    for n, first in enumerate(named):
        yield frozenset({first})
        yield from (frozenset(range(first, last + 1)) for last in named[n + 1 :] if last > first)


def _months(value: str) -> frozenset[int]:
    return frozenset(int(day[5:7]) for day in values.dates(value))


def _split(held: Sequence[Any], limits: Iterable[Any]) -> Iterator[Places]:
    for limit in limits:
        for test in (*COMPARED, operator.ne):
            yield _where(held, lambda v, test=test, limit=limit: test(v, limit))


def _where(held: Sequence[Any], test: Any) -> Places:
    return frozenset(i for i, value in enumerate(held) if test(value))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool))


def _is_moment(value: str) -> bool:
    return bool(values.dates(value) or values.times(value))


def _is_spoken_of(key: str, held: Sequence[Any], whole: str, docs: str) -> bool:
    """Do request or policy use the words of a column or a part of them, or does a description make a rule of it?"""
    own = {word for word in legends.stems(key.replace("_", " ")) if len(word) > 2}
    kinds = {word for v in held if isinstance(v, str) and not any(c.isdigit() for c in v) for word in legends.stems(v)}
    low = whole.lower()
    if any(word[: max(4, len(word) - 2)] in low for word in own | {k for k in kinds if len(k) > 3}):
        return True
    return any(RULES.search(part) and legends.stems(part) & (own | kinds) for part in legends.SENTENCE.split(docs))
