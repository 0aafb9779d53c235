"""Laws that a task must keep by itself: no ties, and no leak. `certify` checks them before it looks at any layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Any, ClassVar, Literal

from crosswind.base.errors import CannotDraw, Unfair
from crosswind.core.domain import Domain
from crosswind.core.flow import once_each
from crosswind.core.oracle import Walk, Walks, remembered, swap, walk
from crosswind.core.perturbation import Memo, Perturbation, Rank, check_class
from crosswind.core.session import MENTION, Session
from crosswind.core.types import Axis, Key, Refusal, Split, Step, Task, Tier, ToolCall, ToolResult, ToolSpec
from crosswind.text import values

# ---------------------------------------------------------------- no ties

ORDERED = re.compile(
    r"\b(sort|order|rank|ascending|descending|chronolog|alphabet|(?:newest|oldest|latest|earliest|best|cheapest|highest"
    r"|lowest|nearest|most recent|soonest) (?:\w+ ){0,3}first|first to last"
    r"|by (?:date|time|name|price|rating|score|number|age))",
    re.IGNORECASE,
)


class ShuffledRows(Perturbation):
    """Rows come in another order, unless the tool's description promises one. Used by the law alone, never drawn."""

    kind: Literal["shuffled_rows"] = "shuffled_rows"
    axis: ClassVar[Axis] = "observation"
    tier: ClassVar[Tier] = "perception"
    rank: ClassVar[Rank] = "form"
    seed: int = 0  # 0: the order is reversed
    only: str = ""  # the one tool whose rows are shuffled

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if (
            result.error
            or (self.only and call.tool != self.only)
            or promises_order(memo.tools.get(call.tool), memo.tools)
        ):
            return result
        content = self._shuffled(result.content)
        return result if content is result.content else ToolResult(content)

    def _shuffled(self, content: Any) -> Any:
        if isinstance(content, (list, tuple)) and len(content) > 1 and all(isinstance(row, dict) for row in content):
            return self._order([self._shuffled(row) for row in content])
        if isinstance(content, dict):
            inner = {key: self._shuffled(value) for key, value in content.items()}
            rows = len(inner) > 1 and all(isinstance(value, dict) for value in inner.values())
            return dict(self._order(list(inner.items()))) if rows else inner
        return content

    def _order(self, rows: list[Any]) -> list[Any]:
        if not self.seed:
            return rows[::-1]
        Random(self.seed).shuffle(rows)
        return rows


check_class(ShuffledRows)


def promises_order(spec: ToolSpec | None, tools: Mapping[str, ToolSpec] | None = None) -> bool:
    """Does a tool's description say in which order its rows come, or that of a tool that it says it stands for?"""
    if spec is None or _is_ordered(spec.doc):
        return spec is not None
    meant = {*MENTION.findall(spec.doc)} if tools else set()
    return (
        any(meant & {one.name, *one.ids} and _is_ordered(one.doc) for one in (tools or {}).values()) if meant else False
    )


@lru_cache(maxsize=4096)
def _is_ordered(doc: str) -> bool:
    return ORDERED.search(doc) is not None


def untied(domain: Domain, task: Task, clean: Walk, seeds: Sequence[int] = (0,)) -> None:
    """No ties: the right end does not depend on the order in which tools happen to return rows."""
    if seeds == (0,) and not any(_may_tie(step.result.content) for step in clean.steps):
        return
    for seed in seeds:
        layer = ShuffledRows(seed=seed)
        memo = Memo(clean.session.clock, 0)
        memo.tools = clean.session.specs
        shuffled = [layer.encode_result(step.call, step.result, memo) for step in clean.steps]
        if remembered(clean, shuffled):
            continue  # the same calls, in whatever order, and the same end: most tasks, and no world is asked
        if not (why := _ends_elsewhere(domain, task, clean, ShuffledRows(seed=seed))):
            continue
        tools = dict.fromkeys(step.call.tool for step in clean.calls if _has_rows(step.result.content))
        one = [t for t in tools if _ends_elsewhere(domain, task, clean, ShuffledRows(seed=seed, only=t))]
        raise Unfair(
            "ties",
            f"with the rows of {' and '.join(one or tools)} in another order {why}; break the tie in the request, or "
            "promise the order in the tool's description",
        )


def untied_through(walks: Walks) -> None:
    """No ties: with the rows that layers show in another order, the end is still right, unless a tool promises one."""
    gold = walks.gold
    if isinstance(gold.end, Refusal) or not any(_may_tie(step.result.content) for step in gold.calls):
        return
    try:
        there = walks.under(ShuffledRows())
    except Unfair:
        return  # a layer that cannot read them: anyone who meets that notices
    if (there.end, there.changes) == (gold.end, gold.changes):
        return
    domain, task = walks.domain, walks.shifted
    if not domain.family(task).goal(task, domain.state(task), there.session.world.state, there.final):
        raise Unfair(
            "ties",
            f"with the rows that the layers show in another order, it ends with {there.final!r} instead of "
            f"{gold.final!r}; promise the order in a description, or show what decides",
        )


LABELLED = re.compile(
    r"\b(tie|equal|several|same|even|odd|digits?|alphabet"
    r"|(?:lowest|highest|smallest|largest|lower|higher|first|last) (?:\w+ ){0,3}(?:id|number|code|reference|name))",
    re.IGNORECASE,
)


def unlabelled(domain: Domain, task: Task) -> None:
    """No ties: of two rows that are equally good, none is preferred for its id, unless the request says so.

    Two rows that share the greatest or least value of a column change places, ids aside. A solver that chooses by what
    rows hold follows; one that stays with the id had no other reason. Solution and goal must agree there as well.
    """
    if task.refuse or LABELLED.search(f"{task.brief.query} {task.brief.policy}"):
        return
    seen: set[Key] = set()
    clean = walk(domain, task, seen=seen)
    tables = {id: table for table, id in seen}
    for n, step in enumerate(clean.calls):
        if promises_order(clean.session.specs.get(step.call.tool)) or not isinstance(step.result.content, list):
            continue
        later = [str(v) for s in clean.calls[n + 1 :] for v in s.call.args.values()]
        for a, b in _tied(step.result.content, later, tables):
            start = domain.state(task)
            rows = {f"{tables[a]}/{x}": dict(start.start(tables[y], y) or {}) for x, y in ((a, b), (b, a))}
            other = task.replace(edits={**task.edits, **rows})
            try:
                there = walk(domain, other)
            except Unfair:
                continue
            if isinstance(there.end, Refusal) or len(domain.family(task).ends(other, domain.state(other))) != 1:
                continue
            used = {str(v) for s in there.calls for v in s.call.args.values()}
            if a in used and b not in used and _holds(step.result.content, a, b) == _holds(_rows(there, step), b, a):
                raise Unfair(
                    "ties",
                    f"{a} and {b} of {step.call.tool} are equally good, and the first is taken for its id; break "
                    "the tie in the request, or propose no such task",
                )


def _rows(there: Walk, step: Step) -> Any:
    return next((s.result.content for s in there.calls if s.call == step.call), None)


def _holds(rows: Any, id: str, other: str) -> list[str]:
    """What a row holds besides its id, and besides that of another."""
    mine = [row for row in rows or () if isinstance(row, dict) and id in map(str, row.values())]
    return [f"{key}={value}" for row in mine for key, value in row.items() if str(value) not in (id, other)]


def _tied(rows: list[Any], later: Sequence[str], tables: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The row that the way goes on with, and each that shares its greatest or least value in a column."""
    found = [(str(v), row) for row in rows if isinstance(row, dict) for v in row.values() if str(v) in tables]
    chosen = [(id, row) for id, row in found if id in later]
    if len(chosen) != 1 or len(found) != len(rows):
        return
    ((id, mine),) = chosen
    for column, value in mine.items():
        held: list[Any] = [row.get(column) for _, row in found]
        if {*map(type, held)} - {int, float} or len({*held}) < 2 or value not in (max(held), min(held)):
            continue
        yield from ((id, other) for other, row in found if other != id and row.get(column) == value)


def _may_tie(content: Any) -> bool:
    """Do some rows hold the same value in a column in which others differ?"""
    if isinstance(content, dict):
        return _may_tie(list(content.values())) or any(map(_may_tie, content.values()))
    if not isinstance(content, (list, tuple)) or len(content) < 2 or not all(isinstance(row, dict) for row in content):
        return False
    for column in content[0]:
        held = [str(row.get(column)) for row in content]
        if 1 < len(set(held)) < len(held):
            return True
    return any(_may_tie(value) for row in content for value in row.values() if isinstance(value, (list, dict)))


def _has_rows(content: Any) -> bool:
    if isinstance(content, (list, tuple)):
        return len(content) > 1
    return isinstance(content, dict) and any(isinstance(value, (list, dict)) for value in content.values())


def _ends_elsewhere(domain: Domain, task: Task, clean: Walk, layer: ShuffledRows) -> str:
    """How a walk over shuffled rows ends, where that is not right; empty where it is."""
    try:
        there = walk(domain, task, (layer,))
    except Unfair as unfair:
        return f"the solution fails ({unfair.reason})"
    if (there.end, there.changes) == (clean.end, clean.changes):
        return ""
    if isinstance(there.end, Refusal) != isinstance(clean.end, Refusal):
        return f"it ends with {there.final!r} instead of {clean.final!r}"
    checks = domain.family(task).checks(task, domain.state(task), there.session.world.state, there.final)
    return "" if all(check.passed for check in checks) else f"it ends with {there.final!r} instead of {clean.final!r}"


# ---------------------------------------------------------------- a goal that asks for what the request asks


def decided(domain: Domain, task: Task, clean: Walk) -> None:
    """Goal: writing something else in the place of what is right does not pass, unless `ends` lists it.

    Each value that a writing call sends and that an end holds is replaced by another of its column, by a choice that
    the schema lists, or by the next number. If that is written and passes, `normalise` drops what decides.
    """
    family, start = domain.family(task), domain.state(task)
    ends = [] if task.refuse else family.ends(task, start)
    held = {str(v) for end in ends for (_, id), row in end.items() for v in (id, *(row or {}).values())}
    for step in clean.calls:
        spec = clean.session.specs[step.call.tool]
        for name, value in step.call.args.items() if spec.writes else ():
            for other in _instead(clean, spec, name, value) if str(value) in held else ():
                if str(other) in held:
                    continue
                try:
                    there = walk(domain, task, instead=swap(step.call, step.call.with_args(**{name: other})))
                except Unfair:
                    continue
                end = there.session.world.state
                written = {str(v) for row in end.changes().values() for v in (row or {}).values()}
                if str(other) in written and family.goal(task, start, end, there.final):
                    raise Unfair(
                        "goal",
                        f"{step.call.tool}({name}={other!r}) passes as well as {value!r}: the goal, or `normalise`, "
                        "drops what the request decides",
                    )


def _instead(clean: Walk, spec: ToolSpec, name: str, value: Any) -> list[Any]:
    """Up to two other values that an argument might have had."""
    if spec.params[name].enum:
        return [choice for choice in spec.params[name].enum if choice != value][:2]
    if isinstance(value, (int, float)):
        return [] if isinstance(value, bool) else [value + 1]
    rows = [row for step in clean.calls for row in dicts(step.result.content)]
    keys = {key for row in rows for key, one in row.items() if one == value}
    return list({row[k]: None for row in rows for k in keys & row.keys() if row[k] != value and _is_text(row[k])})[:2]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def dicts(content: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(content, Mapping):
        yield content
        content = list(content.values())
    for one in content if isinstance(content, (list, tuple)) else ():
        yield from dicts(one)


# ---------------------------------------------------------------- no leak


_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
Agent = tuple[str, str]  # what it does, and its final message


def earned(walks: Walks) -> None:
    """Idle, and no leak: an agent that calls nothing does not pass, whatever it echoes or quotes.

    Of what layers show, only what they changed is quoted. A value that any text might hold by chance, such as a small
    number, does not count here; the audit sees whether it is there at every draw (`quotable`).
    """
    domain, gold, clean = walks.domain, walks.gold, walks.clean
    session, task = gold.session, walks.shifted
    if gold is clean or task is not walks.tasks[0] or not clean.proof:
        family, start = domain.family(task), domain.state(task)
        if not family.reached(task, start, {}):
            return
        if domain.grounds and any(end for end in family.ends(task, start)):
            raise Unfair("idle", "nothing that the request asks to write counts: `normalise` drops it")
        gold.asked = [e.value for e in family.answer(task, start, start)]
        if not gold.asked:
            raise Unfair("idle", "an agent that does nothing and says anything passes")
        if not domain.grounds:
            return  # other people's requests say what they say
        query = session.query()
        if all(values.shown(v, query) for v in gold.asked) and _judge(domain, task)(query):
            raise Unfair("leak", f"an agent that only echoes the request passes: {query!r}")
    else:
        gold.asked = clean.asked
    rival = clean if clean.proof else None
    if any(map(_is_specific, gold.asked)) and (part := _quoted(domain, gold, rival, gold.asked)):
        raise Unfair("leak", f"an agent that only quotes what is shown passes: {part!r}")


def quotable(domain: Domain, gold: Walk, clean: Walk) -> bool | None:
    """Does something that the layers show give the answer away, perhaps by chance? None: nothing is asked for."""
    return bool(_quoted(domain, gold, clean, gold.asked)) if gold.asked else None


def _quoted(domain: Domain, gold: Walk, clean: Walk | None, expected: Sequence[Any]) -> str:
    """What an agent may quote to pass, out of all that is shown before a tool is called."""
    session = gold.session
    texts = [*_texts(session), *(part for part in _SENTENCE.split(session.query()) if "?" not in part)]
    if clean is not None:
        before = {*_texts(clean.session), *_SENTENCE.split(clean.session.query())}
        texts = [text for text in texts if text not in before]
    whole = "\n".join(texts)
    if not texts or not all(_may_hold(whole, v) for v in expected):
        return ""
    passes = _judge(domain, session.task)
    parts = (part for text in texts for part in dict.fromkeys((text, *_SENTENCE.split(text))))
    return next((part for part in parts if all(values.shown(v, part) for v in expected) and passes(part)), "")


def _may_hold(text: str, value: Any) -> bool:
    """Might a text state a value? Told in a moment, for texts that hold it as it is written in the records."""
    if isinstance(value, (int, float)):
        if f"{value:g}" in text.replace(",", ""):
            return True
        return _NUMBER_WORD.search(text) is not None and values.shown(value, text)
    return str(value).lower() in text.lower() or values.shown(value, text)


_NUMBER_WORD = re.compile(
    r"\b(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)\b", re.IGNORECASE
)


def _judge(domain: Domain, task: Task) -> Callable[[str], bool]:
    family, start = domain.family(task), domain.state(task)
    return lambda text: family.goal(task, start, domain.state(task), text)


def _texts(session: Session) -> Iterable[str]:
    """What is shown before a tool is called, besides the request."""
    yield session.policy()
    for spec in session.ever.values():
        for text in _words_of(spec):
            yield session.render(text)


@once_each()
def _words_of(spec: ToolSpec) -> tuple[str, ...]:
    docs = [p.doc for p in spec.params.values() if p.doc] + [
        p.enum[0] for p in spec.params.values() if len(p.enum) == 1
    ]
    return (spec.doc, *docs)


def _is_specific(value: Any) -> bool:
    """Would a text hit this value by chance hardly ever?"""
    text = str(value)
    return len(re.sub(r"\D", "", text)) >= 3 if isinstance(value, (int, float)) else len(text) >= 4


def trivial_agents(domain: Domain, task: Task, session: Session, first: str) -> list[Agent]:
    """Agents that call nothing: what each does, and what it says; `first` is the right answer to another task."""
    query = session.query()
    out = [("echoes the request", query.replace("?", ".")), ("says yes", "Yes."), ("says no", "No.")]
    out.append((f"always answers {first!r}", first))
    out += [(f"repeats the {key}", f"{value}.") for key, value in task.brief.stated.items()]
    start = domain.state(task)
    expected = [e.value for e in domain.family(task).answer(task, start, start)]
    if len(expected) == 1:
        out += _parts(task.brief.stated, expected[0])
    for text in _texts(session):
        out += [(f"quotes {part!r}", part) for part in {text, *_SENTENCE.split(text)} if part.strip()]
    return out


def _parts(stated: Mapping[str, Any], value: Any) -> Iterable[Agent]:
    """Agents that repeat certain characters of a detail, counted from its start or its end, where those are right."""
    for key, detail in stated.items():
        text = str(detail)
        for i, j in combinations(range(len(text) + 1), 2):
            part = text[i:j]
            right = part.lstrip("0") == f"{value:g}" if isinstance(value, (int, float)) else part == str(value)
            if right and j - i < len(text):
                yield f"repeats characters {i + 1} to {j} of the {key}", f"{part}."
                yield f"repeats characters {i - len(text)} to {j - len(text) - 1} of the {key}", f"{part}."


SHARE, MANY = 0.75, 40  # of so many tasks for which one answer may be right


def varied(domain: Domain, family: str, tasks: Sequence[Task], split: Split) -> str:
    """The answer that is right in three of four tasks of a family; empty: there is none."""

    def answer(task: Task) -> str:
        state = domain.state(task)
        if task.refuse or not domain.family(task).reached(task, state, {}):
            return ""
        return str([(e.kind, e.value) for e in domain.family(task).answer(task, state, state)])

    told = [answer(task) for task in tasks]
    (best, count), *_ = Counter(told).most_common(1) or [("", 0)]
    if not best or count < 0.6 * len(told):
        return ""
    with suppress(CannotDraw):
        told += [answer(domain.task(family, n, split=split)) for n in range(len(told), MANY)]
    count = told.count(best)
    if count < SHARE * len(told):
        return ""
    return f"an agent that always answers the same passes {count} of {len(told)} tasks: let them differ more"


def unguessable(domain: Domain, tasks: Iterable[Task], least: int = 12) -> str:
    """What an agent does that calls nothing and yet passes these tasks of one family; empty: none passes all but one.

    With tasks that ask which of two, one in two is a lucky guess: many tasks are needed, of which few are looked at.
    """
    failed: dict[str, int] | None = None
    asked, first = 0, ""
    for task in tasks:
        if task.refuse or not domain.family(task).reached(task, domain.state(task), {}):
            continue
        passes, asked = _judge(domain, task), asked + 1
        first = first or walk(domain, task).final
        agents = dict(trivial_agents(domain, task, Session.of(domain, task), first))
        if failed is None:
            failed = dict.fromkeys(agents, 0)
        wrong = {name: name not in agents or not passes(agents[name]) for name in failed}
        failed = {name: n for name in failed if (n := failed[name] + wrong[name]) < 2}
        if not failed:
            return ""
    if failed and asked >= least:
        best = min(failed, key=lambda name: failed[name])
        return f"an agent that only {best} passes {asked - failed[best]} of {asked} tasks"
    return ""
