"""Tools that were called one after the other become one tool."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, in_hand, perturbation
from crosswind.core.types import Flow, Model, Step, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations._added_names import new_set, new_word
from crosswind.perturbations.action._links import links
from crosswind.words import banks

MERGES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}
UNTOLD = {1: 0, 2: 1, 3: 1, 4: 2, 5: 2}
MOST_ROWS = 12  # of a list whose rows are filled up
UNDER = banks.own("tool_merge", "under")
PARTS = banks.own("tool_merge", "parts")
_CLAUSE = re.compile(r"[;.]?\s*[^;.]*\{([\w-]+)\}[^;.]*")


class Joined(Model):
    """A list whose rows hold what a second reading tool told about each of them."""

    name: str
    first: str
    second: str
    key: str  # of a row; what the second tool was given as
    param: str
    asks: tuple[str, ...]  # further parameters, of the second tool only
    under: str  # where the second tool's answer is in a row

    @property
    def tools(self) -> tuple[str, ...]:
        return self.first, self.second

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        return ((self.key, self.param),)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        first, second = memo.tools[self.first], memo.tools[self.second]
        rows = yield ToolCall(self.first, {k: v for k, v in call.args.items() if k in first.params})
        if rows.error or not isinstance(rows.content, list):
            return rows
        args = {k: v for k, v in call.args.items() if k in second.params}
        out, known = [], False
        facts = ToolResult()
        for row in rows.content:
            if not _has(row, self.key):
                out.append(row)
                continue
            facts = yield ToolCall(self.second, {**args, self.param: row[self.key]})
            known = known or facts.error is None
            out.append({**row, self.under: facts.content})
        return facts if facts.error and not known else ToolResult(out)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.first:
            args = dict(call.args)
            if self.asks:
                then = memo.ahead(self.second, call)
                args = {**{k: v for k, v in (then.args if then else {}).items() if k in self.asks}, **args}
            rows = yield from self._read(args, memo)
            if rows.error or not isinstance(rows.content, list):
                return rows
            return ToolResult([_without(row, self.under) for row in rows.content])
        value = call.args.get(self.param)
        for asked, writes, rows in reversed(memo.notes.get(self.name, [])):
            if any(asked.get(k) != v for k, v in call.args.items() if k != self.param) or value not in rows:
                continue
            if writes != memo.writes:  # what was read before something was written may no longer be so
                again = yield from self._read(asked, memo)
                if again.error:
                    return again
                rows = memo.notes[self.name][-1][2]
            if rows.get(value) is not None:
                return ToolResult(rows[value])
        return failed("unavailable", f"{{{self.name}}} does not tell this")

    def _read(self, args: dict[str, Any], memo: Memo) -> Flow:
        rows = yield ToolCall(self.name, args)
        if not rows.error and isinstance(rows.content, list):
            facts = {row[self.key]: row.get(self.under) for row in rows.content if _has(row, self.key)}
            memo.notes.setdefault(self.name, []).append([args, memo.writes, facts])
        return rows


class Chained(Model):
    """Writes of which each needed something that the one before it made, done by one call."""

    name: str
    tools: tuple[str, ...]
    links: tuple[tuple[str, str], ...]  # (key of a result, parameter of the next tool)
    parts: tuple[str, ...]  # where the answers are in the one result

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        done: list[tuple[ToolSpec, Any]] = []
        made: dict[str, Any] = {}  # what the next one needs of the one before
        for i, tool in enumerate(self.tools):
            spec = memo.tools[tool]
            args = {k: v for k, v in call.args.items() if k in spec.params}
            result = yield ToolCall(tool, args | made)
            if result.error is None and i < len(self.links):
                key, param = self.links[i]
                made = {param: result.content[key]} if _has(result.content, key) else {}
                if not made:
                    result = failed("unavailable", f"{{{self.name}}} stopped halfway")
            if result.error:
                yield from _taken_back(done, memo.tools)
                return result
            done.append((spec, result.content))
        return ToolResult({part: content for part, (_, content) in zip(self.parts, done, strict=True)})

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool != self.tools[0]:
            _, param = self.links[self.tools.index(call.tool) - 1]
            seen = memo.notes.pop(f"{call.tool} {call.args.get(param)}", None)
            return ToolResult(seen) if seen is not None else failed("unavailable", f"{{{self.name}}} did not do this")
        args = dict(call.args)
        for tool, (_, param) in zip(self.tools[1:], self.links, strict=True):
            then = memo.ahead(tool, call)
            if then is None:
                return failed("unavailable", f"{{{self.name}}} does more than is wanted")
            args = {**then.without(param).args, **args}
        whole = yield ToolCall(self.name, args)
        if whole.error:
            return whole
        made = [whole.content[part] for part in self.parts]
        for i, (key, _) in enumerate(self.links):
            memo.notes[f"{self.tools[i + 1]} {made[i][key]}"] = made[i + 1]
        return ToolResult(made[0])


@perturbation
class ToolMerge(Perturbation):
    """Tools that used to be called in sequence are merged into one, and the originals are gone."""

    kind: Literal["tool_merge"] = "tool_merge"
    axis, tier, rank, plans = "action", "reasoning", "structure", True
    severities = (
        "Calls that are merged into others: 1, 1, 2, 2, 3; from 2 on the description does not say that it is one "
        "call, from 4 on it does not mention what else is read, or done first."
    )
    needs = "related calls in the solution: a list and a look-up of its rows, or consecutive writes"
    way = "make one call instead of several, and find their answers in its result"
    joined: tuple[Joined, ...]
    chained: tuple[Chained, ...]
    says: dict[str, str]  # merged tool -> the sentence that it does both, where it is told
    half: bool  # descriptions leave out the further readings and the first of two writes

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        found, most = [*_joins(scene), *_chains(scene)], MERGES[severity]
        sets = [some for n in range(1, 1 + most) for some in combinations(found, n) if _fits(some, most)]
        if not sets:
            return None
        fullest = max(map(_saved, sets))
        split, taken = scene.task.split, scene.names
        joined, chained, says = [], [], {}
        for tools, hang, asks in rng.choice([some for some in sets if _saved(some) == fullest]):
            specs = [scene.tools[name] for name in tools]
            both = specs[0].made(tools[0], *specs[1:])
            name = banks.tool_name(scene.domain.name, both, split, rng, taken) or f"{tools[0]}_and_more"
            if name in taken:
                return None
            taken.add(name)
            if UNTOLD[severity] == 0:
                says[name] = banks.phrase("merged_doc", split, rng)
            if specs[0].writes:
                parts = new_set(PARTS, split, rng)[: len(tools)]
                chained.append(Chained(name=name, tools=tools, links=hang, parts=parts))
            else:
                (first, second), ((key, param),), under = tools, hang, new_word(UNDER, split, rng) or UNDER[split][0]
                joined.append(
                    Joined(name=name, first=first, second=second, key=key, param=param, asks=asks, under=under)
                )
        return cls(joined=tuple(joined), chained=tuple(chained), says=says, half=UNTOLD[severity] == 2)

    @property
    def merges(self) -> tuple[Joined | Chained, ...]:
        return (*self.joined, *self.chained)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each merged call, and once more for each thing that its description leaves out."""
        saved = sum(len(merge.tools) - 1 for merge in self.merges)
        return saved * (1 + (not self.says) + self.half)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        shown = {t.name: t for t in tools}
        for merge in self.merges:
            specs = [shown[name] for name in merge.tools if name in shown]
            if len(specs) == len(merge.tools):
                whole = self._whole(merge, specs)
                shown = {n: whole if n == merge.tools[0] else t for n, t in shown.items() if n not in merge.tools[1:]}
        return tuple(shown.values())

    def _whole(self, merge: Joined | Chained, specs: Sequence[ToolSpec]) -> ToolSpec:
        ids = frozenset().union(*(s.ids for s in specs))
        told = specs if not self.half else specs[1:] if isinstance(merge, Chained) else specs[:1]
        docs = [_apart(s.doc, ids) for s in told]
        params = dict(specs[0].params)
        for spec, (_, made) in zip(specs[1:], merge.links, strict=True):
            params |= {k: p for k, p in spec.params.items() if k != made and k not in params}
        return specs[0].made(
            merge.name,
            *specs[1:],
            doc=" ".join(filter(None, (*docs, self.says.get(merge.name)))),
            params=params,
            undo=None,
            lasting=any(s.lasting for s in specs),
            opaque=self.half or any(s.opaque for s in specs),  # half a description is no canonical tool's
        )

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        for merge in self.merges:
            if call.tool == merge.name:
                memo.fire()
                return (yield from merge.handle(call, memo))
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        for merge in self.merges:
            if call.tool in merge.tools:
                return (yield from merge.perform(call, memo))
        return (yield call)


def _has(content: Any, key: str) -> bool:
    return isinstance(content, dict) and key in content


def _without(row: Any, key: str) -> Any:
    return {k: v for k, v in row.items() if k != key} if isinstance(row, dict) else row


def _apart(doc: str, ids: frozenset[str]) -> str:
    """A description without the clauses that send to a tool which is now the same one."""
    kept = _CLAUSE.sub(lambda m: "" if m[1] in ids else m[0], doc).strip(" ;") if "{" in doc else doc
    return kept if not kept or kept.endswith(".") else f"{kept}."


def _taken_back(
    done: Sequence[tuple[ToolSpec, Any]], tools: Mapping[str, ToolSpec]
) -> Generator[ToolCall, ToolResult, None]:
    """The calls that undo what a merged call has done so far, the last first."""
    made: list[ToolCall] = []
    for spec, content in reversed(done):
        back = _undoing(spec, tools)
        if back and spec.undo and _has(content, spec.undo[1]):
            call = ToolCall(back, {spec.undo[1]: content[spec.undo[1]]})
            if call not in made:
                made.append(call)
                yield call


def _undoing(spec: ToolSpec, tools: Mapping[str, ToolSpec]) -> str | None:
    """The tool that takes a write back, given one key of its result."""
    if spec.undo is None:
        return None
    tool, key = spec.undo
    return next((t.name for t in tools.values() if tool in t.ids and t.writes and set(t.params) == {key}), None)


# ---------------------------------------------------------------- what can be merged

Links = tuple[tuple[str, str], ...]
Option = tuple[tuple[str, ...], Links, tuple[str, ...]]  # tools, how they hang together, further arguments


def _saved(merges: Iterable[Option]) -> int:
    """How many calls some merges take the place of, less those that they need themselves."""
    return sum(len(tools) - 1 for tools, _, _ in merges)


def _fits(merges: Sequence[Option], most: int) -> bool:
    """Do some merges stay within a number of calls, with no tool in two of them?"""
    names = [name for tools, _, _ in merges for name in tools]
    return _saved(merges) <= most and len(names) == len(set(names))


def _joins(scene: Scene) -> list[Option]:
    """Lists on the way with a reading tool that is called for rows of theirs, and for nothing else."""
    gold, tools = scene.gold, scene.tools
    reads = [n for n in dict.fromkeys(s.call.tool for s in gold) if n in tools and not tools[n].writes]
    lists = [name for name in reads if all(_is_table(s.result.content) for s in gold if s.call.tool == name)]
    out: list[Option] = []
    for first in lists:
        for second in reads:
            if first != second and (link := _row_link(scene, first, second)):
                asks = tuple(k for k in tools[second].params if k != link[1] and k not in tools[first].params)
                out.append(((first, second), (link,), asks))
    return out


def _is_table(content: Any) -> bool:
    return isinstance(content, list) and len(content) <= MOST_ROWS and all(isinstance(row, dict) for row in content)


def _row_link(scene: Scene, first: str, second: str) -> tuple[str, str] | None:
    """The key of the rows and the parameter that takes it, if every call of the second tool comes out of them."""
    given, gold = scene.task.given, scene.gold
    link: tuple[str, str] | None = None
    latest: Step | None = None
    before: dict[str, Any] | None = None  # further arguments of the second tool, since the latest list
    needs = [k for k, p in scene.tools[second].params.items() if p.required]
    for step in gold:
        call = step.call
        if call.tool == first:
            if latest and before is None and len(needs) > 1:
                return None  # a list for which nothing would tell the further arguments
            latest, before = step, None
        elif call.tool == second:
            if latest is None or step.result.error:
                return None
            if link is None:
                link = next(
                    (
                        (key, param)
                        for param, value in call.args.items()
                        if isinstance(value, str) and value not in given
                        for row in latest.result.content
                        for key, held in row.items()
                        if held == value
                    ),
                    None,
                )
            if link is None or all(row.get(link[0]) != call.args.get(link[1]) for row in latest.result.content):
                return None
            besides = {k: v for k, v in call.args.items() if k != link[1]}
            if (before is not None and besides != before) or (besides and scene.task.changes):
                return None
            if not _known(besides, latest.call, scene.tools[first], given):
                return None
            before = besides
    return link if before is not None or len(needs) < 2 else None


def _known(args: Mapping[str, Any], now: ToolCall, spec: ToolSpec, given: frozenset[str]) -> bool:
    """Can arguments of a later call be given along with those of `now`?"""
    return all(now.args.get(k) == v if k in spec.params else in_hand(v, now, given) for k, v in args.items())


def _chains(scene: Scene) -> list[Option]:
    """Runs of two or three writes on the way, each made possible by the one before."""
    if scene.task.changes or scene.task.events:
        return []  # a change between two of them would be known too early
    gold, tools = scene.gold, scene.tools
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for link, _, _ in links(gold, tools):
        pairs.setdefault((link.first, link.second), []).append((link.key, link.param))
    runs: list[tuple[tuple[str, ...], Links]] = [((a, b), (keys[0],)) for (a, b), keys in pairs.items()]
    runs += [((*run, b), (*hang, keys[0])) for run, hang in runs for (a, b), keys in pairs.items() if a == run[-1]]
    return [(run, hang, ()) for run, hang in runs if _run_holds(scene, run, hang)]


def _run_holds(scene: Scene, run: tuple[str, ...], hang: Links) -> bool:
    """Is each of these tools called in this order only, with arguments that are known before the first?"""
    tools, given = scene.tools, scene.task.given
    if len(set(run)) < len(run):
        return False
    if any(tools[name].lasting and not _undoing(tools[name], tools) for name in run[:-1]):
        return False  # a failure halfway could not be taken back
    at, start = 0, ToolCall("")
    made: Any = None
    for step in scene.gold:
        call = step.call
        if call.tool not in run:
            continue
        if call.tool != run[at]:
            return False
        if at == 0:
            start = call
        else:
            key, param = hang[at - 1]
            if call.args.get(param) != made[key]:
                return False
            if not _known(call.without(param).args, start, tools[run[0]], given):
                return False
        made = step.result.content
        last = at == len(run) - 1
        if not last and not _has(made, hang[at][0]):
            return False
        at = 0 if last else at + 1
    return at == 0
