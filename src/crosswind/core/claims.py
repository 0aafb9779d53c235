"""What the texts of a domain claim, held against its rows: lists that are whole, errors, effects, units, rules.

An agent believes what it reads. If a text says that something is all there is, missing, in cents or forbidden, the
records and the right end must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core.domain import Domain
from crosswind.core.evidence import RULES, is_number
from crosswind.core.footprints import collect, look_ups, tries
from crosswind.core.legends import SENTENCE, stems
from crosswind.core.oracle import Walk, swap, walk
from crosswind.core.secrets import docs, is_label, is_same, said, scalars
from crosswind.core.types import Key, Refusal, Step, Task

LOOKS = 6  # look-ups of each tool, in each task, whose rows are taken away
CALLS = 24  # calls of each tool whose errors are read
ALIKE = 3  # tasks at least in which a number keeps its value where the unit changes


def hold(domain: Domain, tasks: Iterable[Task]) -> None:
    """The laws about tools: what they list is whole, and what their errors call missing is missing."""
    for task in tasks:
        try:
            steps = walk(domain, task).calls
        except Unfair:
            continue
        _whole(domain, task, steps)
        _missing(domain, task, steps)


# ---------------------------------------------------------------- lists

SOME = re.compile(
    r"\b((?:first|last)(?! names?\b)|next|previous|top|up to|at most|no more than|maximum|limit\w*|pages?|offset|cursor"
    r"|some|several"
    r"|one of|any|a few|sample|most recent|recent|current|featured|suggest\w*|recommend\w*|part of|\d+ of"
    r"|nearest|closest|best|worst|newest|latest|oldest|earliest|soonest|cheapest|dearest|highest|lowest|largest"
    r"|smallest|longest|shortest|default|main|primary|free|open|available|due|upcoming|following)\b",
    re.IGNORECASE,
)


def _whole(domain: Domain, task: Task, steps: Sequence[Step]) -> None:
    """No secrets: what a look-up shows is all that there is, unless a text says which part it shows.

    The rows that it shows are taken away. If others appear in their place, they were there and were passed over.
    """
    made: dict[str, int] = {}
    for call in look_ups(domain, task, steps):
        made[call.tool] = made.get(call.tool, 0) + 1
        if made[call.tool] > LOOKS:
            continue
        world = domain.world(task)
        seen = world.state.seen = set()
        before = world.call(call)
        shown = {text for text in said(before.content) if is_label(text)}
        rows = {key for key in seen if key[1] in shown and key[1] not in call.args.values()}
        if before.error or not rows:
            continue
        other = domain.world(task)
        other.state.edits = {**other.state.edits, **dict.fromkeys(rows)}
        try:
            after = other.call(call)
        except Unfair:  # a world that the author never meant
            continue
        new = [text for text in said(after.content) if is_label(text) and text not in shown]
        tables = {table for table, _ in rows}
        new = [id for id in new if any((table, id) in seen or other.state.row(table, id) for table in tables)]
        spec = world.entries[call.tool].spec
        texts = [spec.doc, domain.policy, *(part for name, p in spec.params.items() for part in (name, p.doc))]
        if new and not SOME.search(" ".join(texts).replace("_", " ")):
            raise Unfair(
                "secrets",
                f"{call.tool} shows {len(rows)} rows; without them it shows {new[0]!r}, which was there all along, and "
                "no description says that it shows only some; show them all, or say which it shows",
            )


# ---------------------------------------------------------------- errors


def _missing(domain: Domain, task: Task, steps: Sequence[Step]) -> None:
    """No secrets: what an error says does not exist does not exist: the tool itself did not find it."""
    pool: dict[str, dict[Any, None]] = {}
    collect(pool, task, steps)
    for name, entry in domain.world_class.entries.items():
        for _, world, call in islice(tries(domain, [(task, list(steps))], name, entry, pool), CALLS):
            seen = world.state.seen = set()
            try:
                result = world.call(call)
                if entry.effects and result.error is None:
                    result = world.call(call)  # once more: many are refused then
            except Unfair:
                continue  # the business of `footprints.exercise`
            world.state.seen = None
            for id in {str(value) for value in call.args.values() if is_label(value)} if result.error else ():
                looked = [world.state.row(*key) for key in seen if key[1] == id]
                if looked and None not in looked and _denies(result.error.text if result.error else "", id):
                    raise Unfair(
                        "secrets",
                        f"tool {name!r} answers {result.error and result.error.text!r}, and has found {id}: who "
                        "believes it looks for another, or gives up; say what really stands in the way",
                    )


def _denies(text: str, id: str) -> bool:
    """Does an error say that something with this id does not exist at all?"""
    own = rf"[\"'`]?{re.escape(id)}\b"
    gone = r"(?:does not exist|is unknown|is not known|(?:was|is|were) not found|could not be found|not found)"
    return (
        re.search(rf"\b(?:no (?:such )?\w+ {own}|unknown \w+ {own}|{own}[\"'`]? {gone})", text, re.IGNORECASE)
        is not None
    )


# ---------------------------------------------------------------- effects


def told_of(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """No secrets: what a write does to rows that were there is said in some text about it, sent, or shown.

    A column that a write changes goes by a word in the tool's own texts, the request or the policy; or the new value
    was sent or is shown, or differs from the old one by a number that was.
    """
    for task, clean in walked:
        world = domain.world(task)
        for step in clean.calls:
            spec = world.entries[step.call.tool].spec if step.call.tool in world.entries else None
            before = {key: world.state.row(*key) for key in world.state.overlay}
            result = world.call(step.call)
            if spec is None or not spec.writes or result.error is not None:
                continue
            texts = [spec.name, *docs([spec]), task.brief.query, task.brief.policy, *said(result.content)]
            sent = [value for _, value in (*scalars(dict(step.call.args)), *scalars(result.content))]
            words = {word[:4] for text in texts for word in stems(text.replace("_", " "))}
            for key, row in world.state.overlay.items():
                old = before.get(key, world.state.start(*key))
                if old is None or row is None or old == row:
                    continue
                for column in row:
                    if row[column] != old.get(column) and not _is_told(
                        column, old.get(column), row[column], sent, words
                    ):
                        raise Unfair(
                            "secrets",
                            f"{spec.name} changes {column} of {key[0]}/{key[1]} from {old.get(column)!r} to "
                            f"{row[column]!r}, and no text says so; say it in its description, or leave it as it is",
                        )


def _is_told(column: str, old: Any, new: Any, sent: Sequence[Any], words: set[str]) -> bool:
    if new in (None, "") or {word[:4] for word in stems(column.replace("_", " "))} & words:
        return True  # what is emptied goes with what the write takes back
    if isinstance(new, str) and {word[:4] for word in stems(new.replace("_", " "))} & words:
        return True
    if any(value is not None and is_same(value, new) for value in sent):
        return True
    if isinstance(new, (list, tuple)):
        more = [value for value in new if not isinstance(old, (list, tuple)) or value not in old]
        return all(any(is_same(value, one) for one in sent) for value in more)
    if is_number(old) and is_number(new):
        return any(is_number(value) and abs(abs(new - old) - abs(value)) < 1e-9 for value in (*sent, 1))
    return isinstance(new, bool) or not isinstance(new, (str, int, float))


WARNS = re.compile(
    r"\b(before\w*|no longer|once|after\w*|first|hid\w*|hidden|gone|vanish\w*|disappear\w*|withdraw\w*|cannot be"
    r" (?:seen|looked|shown|asked)|not (?:shown|seen|on show|visible)|taken off|removed?|until|while|only)\b",
    re.IGNORECASE,
)


def stays_in_sight(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """Goal: what is to be told can still be looked up after a write that cannot be undone, unless a text warns.

    Requests may be followed in the order in which they are said.
    """
    for task, clean in walked:
        if task.refuse or isinstance(clean.end, Refusal):
            continue
        steps = [step for step in clean.calls if step.result.error is None]
        specs = clean.session.specs
        at = next((n for n, step in enumerate(steps) if specs[step.call.tool].final), None)
        expected = domain.family(task).answer(task, domain.state(task), clean.session.world.state)
        for step in steps[:at] if at is not None else ():
            held = [value for _, value in scalars(step.result.content)]
            needed = [e.value for e in expected if any(is_same(e.value, value) for value in held)]
            if not needed or specs[step.call.tool].writes:
                continue
            world = domain.world(task)
            world.state.overlay.update(clean.session.world.state.overlay)
            again = world.call(step.call)
            write = steps[at or 0].call.tool
            texts = " ".join([domain.policy, specs[write].doc, specs[step.call.tool].doc])
            if again.error is not None and not WARNS.search(texts):
                raise Unfair(
                    "goal",
                    f"after {write!r}, which cannot be undone, {step.call.tool!r} no longer shows {needed[0]!r}, which "
                    f"is to be told ({again.error.text!r}), and no description warns: who does first what the request "
                    "says first fails",
                )


FALLBACK = re.compile(
    r"\b(?:if (?:there (?:is|are) (?:none|no\b|nothing)|not\b|none\b"
    r"|(?:that|it) (?:is|does)(?: not|n't))|otherwise|failing that|in that case|or else)[^.?!]*"
    r"\b(?:will do|would do|instead|take|lend|book|give|any other|the next|another)\b",
    re.IGNORECASE,
)


def no_way_out(task: Task) -> None:
    """Goal: a request that is to be refused names nothing that would do instead."""
    if found := FALLBACK.search(task.brief.query):
        raise Unfair(
            "goal",
            f"the request says {found[0]!r}, and where it cannot be met as it stands it is to be refused: let `solve` "
            "and `ends` follow the fallback, or leave it out",
        )


# ---------------------------------------------------------------- tools that do alike


def told_apart(domain: Domain, walked: Sequence[tuple[Task, Walk]]) -> None:
    """Grounded: of two writes that both succeed, something shown says which is wanted.

    Where the tasks of a family take now the one and now the other, with the same arguments, and the other fails the
    goal, the request, the policy or a result must speak of what tells them apart, or a description must set a rule.
    """
    entries = domain.world_class.entries
    used: dict[str, list[tuple[Task, Walk, Step]]] = {}
    for task, clean in walked:
        if not task.refuse and not isinstance(clean.end, Refusal):
            for step in clean.calls:
                if step.call.tool in entries and entries[step.call.tool].effects and step.result.error is None:
                    used.setdefault(step.call.tool, []).append((task, clean, step))
    for name, cases in used.items():
        for other in used.keys() - {name}:
            if {*entries[name].spec.params} != {*entries[other].spec.params} or _apart(domain, name, other, cases):
                continue
            task, _, step = cases[0]
            try:
                there = walk(domain, task, instead=swap(step.call, step.call.named(other)))
            except Unfair:
                continue
            state = domain.state(task)
            if not domain.family(task).goal(task, state, there.session.world.state, there.final):
                raise Unfair(
                    "grounded",
                    f"{task.brief.query!r} takes {name!r}, and {other!r} works as well and is wrong: nothing shown "
                    "says which is wanted; say so in the request, the policy or their descriptions",
                )


def _apart(domain: Domain, name: str, other: str, cases: Sequence[tuple[Task, Walk, Step]]) -> bool:
    """Does something that was shown tell which of two tools is wanted?"""
    specs = [domain.world_class.entries[one].spec for one in (name, other)]
    own = [stems(f"{spec.name.replace('_', ' ')} {spec.doc}") for spec in specs]
    words = {word[:4] for word in own[0] ^ own[1] if len(word) > 2}
    if any(RULES.search(part) or re.search(r"\d", part) for spec in specs for part in SENTENCE.split(spec.doc)):
        return True
    for task, clean, _ in cases:
        told = [task.brief.query, task.brief.policy, *(text for s in clean.steps for text in said(s.result.content))]
        if not {word[:4] for text in told for word in stems(text.replace("_", " "))} & words:
            return False
    return True


# ---------------------------------------------------------------- units

UNITS: Mapping[str, tuple[str, float]] = {  # what a unit measures, and how much of it that is
    **dict.fromkeys(("euro", "eur"), ("euros", 1.0)),
    **dict.fromkeys(("cent", "eurocent"), ("euros", 0.01)),
    **dict.fromkeys(("kilo", "kilogram", "kilogramme", "kg"), ("weight", 1.0)),
    **dict.fromkeys(("gram", "gramme"), ("weight", 0.001)),
    **dict.fromkeys(("tonne",), ("weight", 1000.0)),
    **dict.fromkeys(("pound", "lb"), ("weight", 0.45359237)),
    **dict.fromkeys(("ounce", "oz"), ("weight", 0.0283495)),
    **dict.fromkeys(("metre", "meter"), ("length", 1.0)),
    **dict.fromkeys(("kilometre", "kilometer", "km"), ("length", 1000.0)),
    **dict.fromkeys(("centimetre", "centimeter", "cm"), ("length", 0.01)),
    **dict.fromkeys(("millimetre", "millimeter", "mm"), ("length", 0.001)),
    **dict.fromkeys(("mile",), ("length", 1609.344)),
    **dict.fromkeys(("foot", "feet"), ("length", 0.3048)),
    **dict.fromkeys(("inch", "inches"), ("length", 0.0254)),
    **dict.fromkeys(("yard",), ("length", 0.9144)),
    **dict.fromkeys(("seconds",), ("time", 1.0)),
    **dict.fromkeys(("minute",), ("time", 60.0)),
    **dict.fromkeys(("hour",), ("time", 3600.0)),
    **dict.fromkeys(("day",), ("time", 86400.0)),
    **dict.fromkeys(("week",), ("time", 604800.0)),
    **dict.fromkeys(("litre", "liter"), ("volume", 1.0)),
    **dict.fromkeys(("millilitre", "milliliter", "ml"), ("volume", 0.001)),
    **dict.fromkeys(("gallon",), ("volume", 4.54609)),
    **dict.fromkeys(("celsius",), ("warmth", 1.0)),
    **dict.fromkeys(("fahrenheit",), ("warmth", 1.8)),
}
_CLAUSE = re.compile(r"[,;.:]\s|\band\b|\n")
_IN = re.compile(r"\b(?:in|as|of|counts?) (?:whole |full )?([a-z]+)\b", re.IGNORECASE)


def unit_of(key: str, texts: Iterable[str]) -> tuple[str, float] | None:
    """The unit that a key's own words name, or the clause that speaks of it; None: there is none, or there are two."""
    own = stems(key.replace("_", " "))
    found = {UNITS[word] for word in own & UNITS.keys()}
    for text in texts if not found else ():
        for clause in _CLAUSE.split(text.lower()):
            if own & stems(clause):
                found |= {UNITS[w] for m in _IN.finditer(clause) for w in stems(m[1]) & UNITS.keys()}
    return found.pop() if len(found) == 1 else None


def in_their_units(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """No secrets: a number that a text gives in one unit is not asked for, or sent, in another as it is."""
    clashes: dict[tuple[str, str], list[str]] = {}
    fits: set[tuple[str, str]] = set()
    for task, clean in walked:
        if task.refuse or isinstance(clean.end, Refusal):
            continue
        for where, value, unit in _wanted(domain, task, clean):
            came = {(step.call.tool, key): had for step, key, had in _shown_as(clean, value)}
            for place, had in came.items():
                if had is None or had[0] != unit[0]:
                    continue
                if had == unit:
                    fits.add((where, ".".join(place)))
                else:
                    clashes.setdefault((where, ".".join(place)), []).append(f"{value!r}")
    for (where, source), held in clashes.items():
        if len(held) >= ALIKE and (where, source) not in fits and len({*held}) > 1:
            raise Unfair(
                "secrets",
                f"{source} is described in one unit and wanted in another ({where}), and the number stays the same, as "
                f"in {held[0]}: who converts it is wrong; describe it as it is, or convert it",
            )


def _wanted(domain: Domain, task: Task, clean: Walk) -> Iterator[tuple[str, Any, tuple[str, float]]]:
    """Numbers that must be told or that are sent, each with the unit in which."""
    for e in domain.family(task).answer(task, domain.state(task), clean.session.world.state):
        if not is_number(e.value):
            continue
        asked = {UNITS[w] for w in stems(task.brief.query) & UNITS.keys()}
        after = re.search(rf"(?<![\d.]){re.escape(f'{e.value:g}')} ([a-z]+)", clean.final.lower())
        says = {UNITS[w] for w in (stems(after[1]) if after else ()) if w in UNITS}
        if len(found := asked or says) == 1:
            yield "the answer", e.value, found.copy().pop()
    for step in clean.calls:
        for name, value in step.call.args.items():
            param = clean.session.specs[step.call.tool].params.get(name)
            if (
                param is not None
                and is_number(value)
                and (unit := unit_of(name, [f"{name} in {param.doc}", param.doc]))
            ):
                yield f"{step.call.tool}.{name}", value, unit


def _shown_as(clean: Walk, value: Any) -> Iterator[tuple[Step, str, tuple[str, float] | None]]:
    """Where a number was shown, and in what unit its tool says it is."""
    for step in clean.calls:
        spec = clean.session.specs[step.call.tool]
        for path, shown in scalars(step.result.content):
            if is_number(shown) and shown == value and path:
                key = next((part for part in reversed(path) if not part.isdigit()), "")
                yield step, key, unit_of(key, [spec.doc])


# ---------------------------------------------------------------- rules of the house

FORBIDS = re.compile(r"\b(never|must|may not|must not|only|alone|not allowed|forbidden|except|unless)\b", re.IGNORECASE)
WORLDS = 8  # in which a column that a rule names holds another value


def followed(domain: Domain, tasks: Iterable[Task]) -> None:
    """Goal: a rule that the policy states by columns of the records decides something in some task of the domain.

    Where another value in such a column changes neither an end nor a call, in no task, nothing follows the rule: an
    agent that does fails.
    """
    rules = [rule for rule in SENTENCE.split(domain.policy) if FORBIDS.search(rule)]
    walks: list[tuple[Task, Walk]] = []
    for task in tasks if rules else ():
        with suppress(Unfair):
            walks.append((task, walk(domain, task)))
    for rule in rules:
        tried = {name: _decides(domain, walks, name) for name in sorted(_named(rule, walks))}
        if False in tried.values() and True not in tried.values():
            dead = next(name for name, decides in tried.items() if decides is False)
            raise Unfair(
                "goal",
                f"the policy says {rule.strip()!r}, and with another {dead} every call and every end is the same: who "
                "follows the rule fails; let `solve`, `ends` and the tools follow it, or leave it out",
            )


def _named(rule: str, walks: Sequence[tuple[Task, Walk]]) -> set[str]:
    """Columns of several words that a rule names in full, as TABLE.COLUMN."""
    words, out = stems(rule), set[str]()
    for _, clean in walks:
        world = clean.session.world
        for table, id in {*world.state.cache, *world.state.overlay}:
            for column in world.state.start(table, id) or {}:
                parts = [part for part in column.split("_") if part != "id"]
                if len(parts) > 1 and {*parts} <= words:
                    out.add(f"{table}.{column}")
    return out


def _decides(domain: Domain, walks: Sequence[tuple[Task, Walk]], name: str) -> bool | None:
    """Does a column decide an end or a call in any task? None: no other value of it is known."""
    table, _, column = name.partition(".")
    tried, pool = 0, dict[str, Any]()
    for _, clean in walks:
        cache = clean.session.world.state.cache
        pool |= {str(row[column]): row[column] for (t, _), row in cache.items() if t == table and row and column in row}
    for task, clean in walks:
        seen: set[Key] = set()
        walk(domain, task, seen=seen)
        state = domain.state(task)
        rows = {key: row for key in seen if key[0] == table and (row := state.start(*key)) and column in row}
        for (_, id), row in rows.items():
            for other in [value for value in pool.values() if value != row[column]][:2]:
                tried += 1
                changed = task.replace(edits={**task.edits, f"{table}/{id}": {**row, column: other}})
                if _differs(domain, task, clean, changed):
                    return True
    return False if tried >= WORLDS else None


def _differs(domain: Domain, task: Task, clean: Walk, other: Task) -> bool:
    family = domain.family(task)
    try:
        if family.right(other, domain.state(other)) != family.right(task, domain.state(task)):
            return True
        there = walk(domain, other)
    except Unfair:
        return True
    except Exception:  # a world that the author never meant
        return True
    return (there.end, [s.call for s in there.steps]) != (clean.end, [s.call for s in clean.steps])
