"""What right ends rest on: each choice has a reason that the request states, each answer comes out of what was shown.

The solution and the goal are written by one author and may agree on something that nobody else can know: an unwritten
filter, a hidden constant, one of two sources. These laws look at several tasks of a family and ask what the shown
results and texts say by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core import legends
from crosswind.core.domain import Domain, words_for
from crosswind.core.footprints import look_ups
from crosswind.core.oracle import Walk, walk
from crosswind.core.secrets import docs, is_label, is_same, said, scalars
from crosswind.core.task_laws import promises_order
from crosswind.core.types import Key, Refusal, Row, Step, Task, ToolCall, ToolSpec
from crosswind.text import values

LEAST = 5  # tasks with different figures, before a constant is taken for one

Rows = Mapping[str, Row]
Reason = tuple[str, str]  # a column, and which end of it


# ---------------------------------------------------------------- choices

CHOOSING = re.compile(
    r"\b(most|least|best|worst|top|bottom|max\w*|min\w*|prefer\w*|favou?r\w*|first|last|next|final|whichever|extreme\w*"
    r"|rank\w*|(?:in|de)creas\w*|lead\w*|head|record|soon\w*|close\w*|near\w*|recent\w*|earl\w+|late\w*|better|worse"
    r"|fewer|less than|more than|(?!re(?:qu)?est|inter)\w{2,}est|(?:low|high|cheap|dear|long|short|new|old|large|small"
    r"|bigg|fast|slow|quiet|calm|busi|great|warm|cold|strong|light|heavi|young|wid|narrow|deep|tall|saf|rich|poor|hard"
    r"|easi|soft|loud|clean|dri|wett)er)\b",
    re.IGNORECASE,
)
RULES = re.compile(
    r"\b(only|never|must|not|no|except\w*|unless|without|skip|ignore|leave out|even|odd|whose|ends?|starts?|begins?"
    rf"|any)\b|{CHOOSING.pattern}",
    re.IGNORECASE,
)
LIMITS = re.compile(  # "at least 12 metres", "no later than 2031-01-14": a bound, and no choice of first or last
    r"\b(?:at (?:the )?(?:very )?(?:least|most|latest|earliest)|(?:(?:no|not|nothing|none) )?\w+ than|(?:up|down) to)"
    r"(?= (?:\S+ ){0,2}?\S*\d)",
    re.IGNORECASE,
)
LABELS = frozenset({"id", "number", "digit", "code", "reference", "letter", "name", "alphabet", "alphabetically"})


def chosen_for_a_reason(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """Grounded: of the rows of a result, the one that the solution goes on with is set apart by what was shown.

    It alone has what the request names, or it is the first or last of those that have it, in the same column whenever
    a request of the family has the same choosing words. Otherwise another row must do as well. A rule about ids, or
    about a column of words, is believed.
    """
    alike: dict[Any, set[Reason]] = {}
    for task, clean in walked:
        if task.refuse or isinstance(clean.end, Refusal):
            continue
        words = frozenset(map(str.lower, CHOOSING.findall(LIMITS.sub("", task.brief.query))))
        told = [str(e.value) for e in domain.family(task).answer(task, domain.state(task), clean.session.world.state)]
        for n, step in enumerate(clean.calls):
            for rows in _tables(step.result.content):
                id = _chosen(clean, n, rows, told)
                reasons = _reasons(clean, n, rows, id) if id is not None else None
                if reasons is None:
                    continue
                where = (words, step.call.tool, sum(s.call.tool == step.call.tool for s in clean.calls[:n]))
                left = alike[where] = alike.get(where, reasons) & reasons
                if left or not all(_fails(domain, task, str(id), other) for other in rows if other != id):
                    continue
                raise Unfair(
                    "grounded",
                    f"of the {len(rows)} rows of {step.call.tool}, {id} is taken ({task.brief.query!r}); it is neither "
                    "alone in having what the request names, nor always first or last in one column that a text asks "
                    "for, and no other will do; say in the request or the policy what decides, or accept them all",
                )


def _reasons(clean: Walk, n: int, rows: Rows, id: str) -> set[Reason] | None:
    """Why the way may go on with one of some rows; None: there is no need to ask."""
    step, task = clean.calls[n], clean.session.task
    withheld = map(str, task.withheld.values())
    texts = [task.brief.query, task.brief.policy, *withheld, *(words for s in clean.steps for words in s.heard)]
    spec = clean.session.ever[step.call.tool]
    if _ruled([*texts, spec.doc], rows):
        return None
    earlier = [v for s in clean.calls[:n] for _, v in scalars(s.result.content)]
    found = _set_apart(rows, id, texts, earlier)
    if found is None or not any(CHOOSING.search(LIMITS.sub("", text)) for text in texts):
        return None if found is None else set()
    if promises_order(spec):
        found |= {("", end) for end, at in (("first", 0), ("last", -1)) if [*rows][at] == id}
    return found


def _ruled(texts: Sequence[str], rows: Rows) -> bool:
    """Does a sentence make a rule about ids, or about something that a row holds besides figures?"""
    ids = {
        key for id, row in rows.items() for key, value in row.items() if value == id
    }  # "no berth", "a room" says little
    held = LABELS | {
        w for row in rows.values() for key in row.keys() - ids for w in legends.stems(key.replace("_", " "))
    } - {"of"}
    figures = {
        w for row in rows.values() for k, v in row.items() if is_number(v) for w in legends.stems(k.replace("_", " "))
    }
    return any(
        RULES.search(sentence) and legends.stems(sentence) & (held - figures)
        for text in texts
        for sentence in legends.SENTENCE.split(LIMITS.sub("", text))
    )


def _tables(content: Any) -> Iterator[dict[str, Row]]:
    """Lists of two or more records in a result, each record by its id."""
    if isinstance(content, Mapping):
        for value in content.values():
            yield from _tables(value)
    elif isinstance(content, (list, tuple)) and len(content) > 1 and all(isinstance(r, Mapping) for r in content):
        for key in content[0]:
            ids = [row.get(key) for row in content]
            if all(isinstance(id, str) and id for id in ids) and len({*ids}) == len(ids):
                yield {row[key]: row for row in content}
                return


def _chosen(clean: Walk, n: int, rows: Rows, told: Sequence[str]) -> str | None:
    """The one row that the way goes on with; None: there is none, or it looks at several more closely."""
    later = {str(value) for step in clean.calls[n + 1 :] for _, value in scalars(step.call.args)}
    labels = {id: {v for v in row.values() if isinstance(v, str)} for id, row in rows.items()}
    every = [v for held in labels.values() for v in held]
    own = {id: {v for v in held if every.count(v) == 1} for id, held in labels.items()}
    met = [id for id in rows if own[id] & later] or [id for id in rows if own[id] & {*told}]
    return met[0] if len(met) == 1 else None


def _strings(args: Mapping[str, Any]) -> list[str]:
    return [str(value) for _, value in scalars(args)]


def _set_apart(rows: Rows, id: str, texts: Sequence[str], earlier: Sequence[Any]) -> set[Reason] | None:
    """In what a row is first or last among those that have what was named; None: it is alone in having it."""
    mine = {key: value for key, value in rows[id].items() if all(key in row for row in rows.values())}
    whole = "\n".join(texts)
    if values.shown(id, whole) or id in earlier:
        return None
    tests = [{*rows}, *_tests(rows, mine, whole, earlier)]
    together = {*rows}.intersection(*tests)
    if together == {id}:
        return None
    out: set[Reason] = set()
    for group in [together, *(a & b for a, b in combinations_with_replacement(tests, 2))]:
        for key, value in mine.items():
            held: list[Any] = [rows[one][key] for one in group]
            moment = isinstance(value, str) and bool(values.dates(value) or values.times(value))
            if not (all(map(is_number, held)) or (moment and all(isinstance(v, str) for v in held))):
                continue
            if len({*held}) > 1:
                out |= {(key, end) for end, pick in (("least", min), ("greatest", max)) if value == pick(held)}
    return out


def _tests(rows: Rows, mine: Row, whole: str, earlier: Sequence[Any]) -> Iterator[set[str]]:
    """The rows that pass each test which one passes: what was named or seen before, limits, yes and no, plain words."""
    named = {*values.numbers(whole)}
    numbers = {*named, *filter(is_number, earlier)}
    numbers |= {n for one in numbers for by in named if by > 0 and by != int(by) for n in (one * by, one / by)}
    limits = [*values.dates(whole), *values.times(whole)]
    for key, value in mine.items():
        held = {one: row[key] for one, row in rows.items()}
        if isinstance(value, (list, tuple)):
            for part in value:
                if values.shown(part, whole) or part in earlier:
                    yield {one for one, v in held.items() if isinstance(v, (list, tuple)) and part in v}
        elif is_number(value) and all(map(is_number, held.values())):
            yield from (
                {o for o, v in held.items() if v >= n}
                for n in [max((n for n in numbers if n <= value), default=None)]
                if n is not None
            )
            yield from (
                {o for o, v in held.items() if v <= n}
                for n in [min((n for n in numbers if n >= value), default=None)]
                if n is not None
            )
            if value in numbers:
                yield {one for one, v in held.items() if v == value}
        elif isinstance(value, str):
            if not any(c.isdigit() for c in value) or value in earlier or values.shown(value, whole):
                yield {one for one, v in held.items() if v == value}
            yield from (
                {o for o, v in held.items() if isinstance(v, str) and (v >= t) == (value >= t)}
                for t in map(str, limits)
            )
        elif isinstance(value, bool):
            yield {one for one, v in held.items() if v == value}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _fails(domain: Domain, task: Task, id: str, other: str) -> bool:
    """Would a solution that goes on with another row, wherever this one is named, come to a wrong end?"""
    try:
        there = walk(domain, task, instead=lambda call: _named(call, id, other))
    except Unfair:
        return True
    checks = domain.family(task).checks(task, domain.state(task), there.session.world.state, there.final)
    return not all(check.passed for check in checks)


def _named(call: ToolCall, id: str, other: str) -> ToolCall:
    return ToolCall(call.tool, {k: other if v == id else v for k, v in call.args.items()})


# ---------------------------------------------------------------- answers


def worked_out(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """No secrets: what is to be told was shown, or can be worked out with constants and words that were shown.

    Looked for is a figure, or a sum, difference or product of two, from which what is to be told always differs by the
    same factor and the same summand. If so, a text must give them. Words that are to be told must be shown somewhere.
    """
    asked: dict[tuple[int, str], list[tuple[Walk, Any, dict[Figure, float]]]] = {}
    for task, clean in walked:
        if task.refuse or isinstance(clean.end, Refusal):
            continue
        shown = _everything(clean)
        for n, e in enumerate(domain.family(task).answer(task, domain.state(task), clean.session.world.state)):
            if e.kind == "yesno" or values.shown(e.value, shown):
                continue
            if e.kind in ("name", "id", "choice"):
                if not any(values.shown(one, shown) for one in e.alike):
                    raise Unfair("secrets", f"{e.value!r} is to be told ({task.brief.query!r}) and was shown nowhere")
            else:
                asked.setdefault((n, e.kind), []).append((clean, e.value, _figures(clean)))
    for (_, kind), cases in asked.items():
        if kind in ("number", "money"):
            _no_constant(cases)
        else:
            _no_shift(cases)


def _everything(clean: Walk) -> str:
    session = clean.session
    heard = [words for step in clean.steps for words in step.heard]
    errors = [step.result.error.text for step in clean.steps if step.result.error]
    results = [text for step in clean.steps for text in said(step.result.content)]
    return "\n".join([session.query(), session.policy(), *docs(session.ever.values()), *results, *heard, *errors])


Figure = tuple[str, ...]  # where a figure stands: the tool, its how manieth call, the key, how it is taken


def _figures(clean: Walk) -> dict[Figure, float]:
    """Figures of a walk that stand at one place in all walks of a family, those of whole lists included."""
    out: dict[Figure, float] = {("stated", k): v for k, v in clean.session.task.wanted.items() if is_number(v)}
    later = [{str(v) for _, v in scalars(s.call.args)} for s in clean.calls]
    for n, step in enumerate(clean.calls):
        place = (step.call.tool, str(sum(s.call.tool == step.call.tool for s in clean.calls[:n])))
        for path, value in scalars(step.result.content):
            if is_number(value) and not any(part.isdigit() for part in path):
                out[(*place, *path)] = value
        for rows in _lists(step.result.content):
            out[(*place, "rows")] = len(rows)
            met = [row for row in rows if {*map(str, row.values())} & set().union(*later[n + 1 :])]
            for key in rows[0]:
                held: list[Any] = [row.get(key) for row in rows]
                if all(map(is_number, held)):
                    kinds = {"sum": sum(held), "least": min(held), "greatest": max(held)}
                    out |= {(*place, key, how): value for how, value in kinds.items()}
                    if len(met) == 1:
                        out[(*place, key, "met")] = met[0][key]
    return out


def _lists(content: Any) -> Iterator[list[Mapping[str, Any]]]:
    if isinstance(content, Mapping):
        for value in content.values():
            yield from _lists(value)
    elif isinstance(content, (list, tuple)) and content and all(isinstance(row, Mapping) for row in content):
        yield list(content)


def _no_constant(cases: Sequence[tuple[Walk, Any, dict[Figure, float]]]) -> None:
    """Raise `Unfair` if a value handed to the solution follows from what was shown by constants that no text gives."""
    common = set.intersection(*({*figures} for _, _, figures in cases))
    series: dict[tuple[Any, ...], list[float]] = {(f,): [figures[f] for _, _, figures in cases] for f in common}
    for a, b in combinations_with_replacement(sorted(common), 2):
        x, y = series[a,], series[b,]
        series[a, b, "times"] = [p * q for p, q in zip(x, y, strict=True)]
        if a != b:
            series[a, b, "plus"] = [p + q for p, q in zip(x, y, strict=True)]
            series[a, b, "minus"] = [abs(p - q) for p, q in zip(x, y, strict=True)]
    told = [float(value) for _, value, _ in cases]
    if len({*told}) < LEAST:
        return
    found = [(made, line) for made, xs in series.items() if (line := _line(xs, told)) is not None]
    if any(line == (1.0, 0.0) for _, line in found):
        return
    if not found:
        _no_rounded_constant(cases, series, told)
        return
    for at, (clean, value, _) in enumerate(cases):
        legend = legends.Legend(_said_in(clean), ())
        if any(legend.number(_last(made), [series[made][at]], value, ()) for made, _ in found):
            return
    made, (factor, summand) = min(found, key=lambda pair: (len(pair[0]), pair[1][1] != 0, pair[1][0] != 1))
    where = (
        f" {made[-1]} ".join(_last((figure,)) for figure in made[:2] if isinstance(figure, tuple))
        if len(made) > 1
        else _last(made)
    )
    how = " ".join(([f"times {factor:g}"] if factor != 1 else []) + ([f"plus {summand:g}"] if summand else []))
    raise Unfair(
        "secrets", f"what is to be told is always {where} {how}, and no text says so; say by what number or unit"
    )


def _said_in(clean: Walk) -> list[str]:
    """The texts of an episode: request, policy, descriptions, and sentences in results."""
    texts = [clean.session.query(), clean.session.policy(), *docs(clean.session.ever.values())]
    return texts + [text for step in clean.steps for text in said(step.result.content) if " " in text.strip()]


def _no_rounded_constant(
    cases: Sequence[tuple[Walk, Any, dict[Figure, float]]],
    series: Mapping[tuple[Any, ...], list[float]],
    told: list[float],
) -> None:
    """Raise `Unfair` if whole numbers to be told are a figure over one constant, rounded, and no text gives it."""
    if any(value != int(value) for value in told):
        return
    by: dict[tuple[Any, ...], tuple[float, float]] = {}
    for made, xs in series.items():
        for low, high in _between(xs, told):
            if low <= 1.0 <= high:
                return  # rounded as it stands, or by what another figure says
            by.setdefault(made, (low, high))
    for (a,) in [made for made in by if len(made) == 1]:
        for other in [made for made in series if len(made) == 1 and made != (a,)]:
            parts = [x / y if y else 0.0 for x, y in zip(series[a,], series[other], strict=True)]
            if any(low <= 1.0 <= high for low, high in _between(parts, told)):
                return
    for clean, _, _ in cases if by else ():
        texts = _said_in(clean)
        words = set().union(*map(legends.stems, texts))
        given = {n for text in texts for n in values.numbers(text)} | {
            n for word in words & legends.SCALES.keys() for n in legends.SCALES[word]
        }
        given |= {1 / n for n in given if n}
        if any(low <= n <= high for low, high in by.values() for n in given):
            return
    if by:
        made, (low, high) = min(by.items(), key=lambda pair: len(pair[0]))
        how = f"divided by {low:.4g} to {high:.4g}" if low > 1 else f"times {1 / high:.4g} to {1 / low:.4g}"
        raise Unfair(
            "secrets",
            f"what is to be told is always {_last(made)} {how} and rounded, and no text says so; say by what number, "
            "and how it is rounded",
        )


def _between(xs: Sequence[float], told: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Between which numbers a divisor lies that gives every x for its whole number, rounded up, down or to the nearest.

    Only where that is known to a fifth: else it may be chance.
    """
    if len({*xs}) < LEAST or min(xs) <= 0 or min(told) <= 0 or max(told) < LEAST:
        return
    for under, over in ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5)):  # how far below and above the quotient may lie
        low = max(x / (y + over) for x, y in zip(xs, told, strict=True))
        high = min(x / (y - under) if y > under else float("inf") for x, y in zip(xs, told, strict=True))
        if low <= high <= 1.2 * low:
            yield low, high


def _last(made: Any) -> str:
    names: list[str] = [part for part in made[0] if not part.isdigit()]
    return next((n for n in reversed(names) if n not in ("sum", "least", "greatest", "met", "rows")), names[0])


def _line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float] | None:
    """The factor and summand that lead from each x to its y, if they are the same for all and not found by chance."""
    if len({*xs}) < LEAST:
        return None
    low, high = min(range(len(xs)), key=xs.__getitem__), max(range(len(xs)), key=xs.__getitem__)
    a = (ys[high] - ys[low]) / (xs[high] - xs[low])
    b = ys[low] - a * xs[low]
    a, b = (round(c) if abs(c - round(c)) < 1e-9 else c for c in (a, b))
    near = all(abs(a * x + b - y) <= 1e-6 * max(1.0, abs(y)) for x, y in zip(xs, ys, strict=True))
    return (float(a), float(b)) if near and a else None


FEW = 6  # different words that a part of an id stands for: with more, each may be there by chance


def not_in_the_request(domain: Domain, walked: Iterable[tuple[Task, Walk]]) -> None:
    """Leak: what is to be told does not follow from the digits of what the request states, in whatever order."""
    told: dict[str, list[tuple[str, Any]]] = {}
    for task, clean in walked:
        expected = domain.family(task).answer(task, domain.state(task), clean.session.world.state)
        if task.refuse or isinstance(clean.end, Refusal) or len(expected) != 1:
            continue
        for key, value in task.brief.stated.items():
            if isinstance(value, str) and any(c.isdigit() for c in value):
                told.setdefault(key, []).append((value, expected[0].value))
    for key, cases in told.items():
        size = min(len(text) for text, _ in cases)
        answers = [value for _, value in cases]
        for head in range(size):
            for tail in range(head + 1, size + 1):
                parts = [text[head:tail] for text, _ in cases]
                why = _follows(parts, answers, whole=tail - head == size)
                if why is not None:
                    raise Unfair(
                        "leak",
                        f"what is to be told follows from characters {head + 1} to {tail} of the {key}{why and ' '}"
                        f"{why}: an agent that calls nothing can pass",
                    )


def _follows(parts: Sequence[str], answers: Sequence[Any], *, whole: bool) -> str | None:
    """How parts of a detail give the answers; None: they do not do so in every task."""
    if all(map(is_number, answers)) and len({*answers}) >= LEAST:
        told = [float(value) for value in answers]
        if all(part.isdigit() for part in parts):
            made = {"": parts, "read backwards": [part[::-1] for part in parts]}
            for how, texts in made.items():
                if (line := _line([float(text) for text in texts], told)) is not None:
                    by = [f"times {line[0]:g}"] if line[0] != 1 else []
                    return " ".join([*([how] if how else []), *by, *([f"plus {line[1]:g}"] if line[1] else [])])
            if _line([float(sum(map(int, part))) for part in parts], told) is not None:
                return "by the sum of their digits"
    elif not whole and 2 < len({*map(str, answers)}) <= FEW and len(answers) > 2 * FEW:
        pairs = {*zip(parts, map(str, answers), strict=True)}
        if len(pairs) == len({*parts}) == len({*map(str, answers)}):
            return "by a table"
    return None


def _no_shift(cases: Sequence[tuple[Walk, Any, dict[Figure, float]]]) -> None:
    """Raise `Unfair` if a date or time in the solution is always equally far from one shown, and no text says so."""
    common: set[tuple[str, float]] | None = None
    said_so = False
    for clean, value, _ in cases:
        seen = [(path[-1] if path else "", one) for s in clean.steps for path, one in scalars(s.result.content)]
        seen += [(key, one) for key, one in clean.session.task.wanted.items()]
        gaps = {(key, gap) for key, one in seen if isinstance(one, str) for gap in legends.apart(one, str(value))}
        common = gaps if common is None else common & gaps
        texts = [clean.session.query(), clean.session.policy(), *docs(clean.session.ever.values())]
        legend = legends.Legend(texts, ())
        said_so = said_so or legend.word([one for _, one in seen], str(value))
    if common and not said_so and len({str(value) for _, value, _ in cases}) >= LEAST:
        key, gap = min(common)
        raise Unfair(
            "secrets", f"what is to be told is always {gap:g} days or minutes from the {key}, and no text says so"
        )


# ---------------------------------------------------------------- rows and tools of a domain

DERIVED = 200  # times that a row is derived
ROWS = 12  # rows that this is done with


def lasting(domain: Domain, tasks: Iterable[Task]) -> None:
    """Seeded: a row is the same however often it is derived."""
    for task in tasks:
        seen: set[Key] = set()
        try:
            walk(domain, task, seen=seen)
        except Unfair:
            continue
        derive = domain.derive(task.seed, task.size, task.split)
        for table, id in sorted(seen)[:ROWS]:
            first = derive(table, id)
            for n in range(2, DERIVED):
                if (row := derive(table, id)) != first:
                    raise Unfair(
                        "seeded",
                        f"the row {table}/{id} derived for the {n}th time is {words_for({(table, id): row})}, and not "
                        f"{words_for({(table, id): first})}: a row must follow from the seed and its id alone",
                    )
        return


def agreed(domain: Domain, tasks: Iterable[Task]) -> None:
    """No secrets: two tools that show one thing under one key show the same, unless their descriptions differ in it."""
    for task in tasks:
        try:
            steps = [*walk(domain, task).calls]
        except Unfair:
            continue
        facts: dict[tuple[str, str], tuple[ToolSpec, Any]] = {}
        for spec, content in [*_looked_up(domain, task, steps)]:
            for id, row in content:
                for key, value in row.items():
                    if isinstance(value, (Mapping, list, tuple)) or value is None or value == id:
                        continue
                    other, before = facts.setdefault((id, key), (spec, value))
                    if other.name == spec.name or is_same(value, before):
                        continue
                    if _qualified(spec, key) == _qualified(other, key):
                        raise Unfair(
                            "secrets",
                            f"{other.name} shows the {key} {before!r} of {id} and {spec.name} shows {value!r}, and no "
                            "description says how they differ",
                        )


def _looked_up(domain: Domain, task: Task, steps: Sequence[Step]) -> Iterator[tuple[ToolSpec, list[tuple[str, Row]]]]:
    """What each look-up shows of which thing, in a world where nothing was written."""
    for call in look_ups(domain, task, steps):
        spec, content = domain.world_class.entries[call.tool].spec, domain.world(task).call(call).content
        labels = [v for v in call.args.values() if is_label(v)]
        if isinstance(content, Mapping) and len(labels) == 1:
            yield spec, [(labels[0], content)]
        elif isinstance(content, list):
            yield spec, [pair for rows in _tables(content) for pair in rows.items() if is_label(pair[0])]


def _qualified(spec: ToolSpec, key: str) -> set[str]:
    """The words by which a description says more about a key than its name."""
    own = legends.stems(key.replace("_", " "))
    named = {word for param in spec.params for word in param.split("_")} | {*spec.name.split("_")}
    parts = [legends.stems(part) for part in re.split(r"[,;.:]|\band\b|\bwith\b", spec.doc)]
    more = {word.removesuffix("s") for part in parts if part & own for word in part}
    return {word for word in more - own - named if len(word) > 2 and word not in _IDLE}


_IDLE = frozenset("the it for all each one item per every has have are that which thi and not".split())
