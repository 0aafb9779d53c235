"""`ValueMap`: a base for perturbations that only write values in another way, with a legend that is always shown.

The author says which values are meant, how they are written and read, and completes the sentence "KEY is ...". The base
does the rest: it shows the legend wherever such a value occurs, and refuses a map that cannot be undone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, ClassVar, Self

from crosswind.base.errors import Unfair
from crosswind.core.legends import Legend
from crosswind.core.perturbation import Memo, Perturbation, Rank, Scene
from crosswind.core.types import Axis, Flow, Param, Step, Task, Tier, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.core.world import brief_of, kind_of
from crosswind.text.values import numbers

Scalar = str | int | float
Place = tuple[str, str, str]  # "argument" or "result", tool, key
ROWS = 2000  # rows of the world that a map is tried on
TRIED = 8  # values that a rule with numbers is tried on


class ValueMap(Perturbation):
    """Values of some keys are written in another way, which a legend explains.

    A subclass has `maps`, and either `table` or all of `write`, `read` and `legend`. Fields of its own are drawn by
    `drawn`.
    """

    axis: ClassVar[Axis] = "observation"
    tier: ClassVar[Tier] = "interaction"
    rank: ClassVar[Rank] = "vocabulary"
    severities = (
        "Places on the way where values are written otherwise: 1 one, 2 a third, 3 two thirds, 4 all; at 5 all, and "
        "the policy has the legend instead of the tools."
    )
    needs = "a value that it maps among the arguments or results on the way"
    way = "write and read values by the legend"
    explains = True
    outdated: ClassVar[tuple[str, ...]] = ("YYYY-MM-DD",)  # words of descriptions that hold no longer; taken out
    arguments: dict[str, tuple[str, ...]]  # tool -> parameters whose values are written otherwise
    results: dict[str, tuple[str, ...]]  # tool -> keys of its results, likewise
    samples: dict[str, Scalar]  # key -> a value that the legend gives as an example; none of the episode
    whole: tuple[str, ...]  # keys that hold whole numbers, which `read` may give as 12.0
    rules: str  # the legend as the policy says it; empty where the tools say it

    # -- to be written

    @classmethod
    def maps(cls, key: str, value: Any) -> bool:
        """Is a value under this key written otherwise?"""
        raise NotImplementedError

    def table(self, key: str) -> Mapping[Any, Any]:
        """Value -> how it is written, where there are few; `write`, `read` and `legend` follow from it."""
        return {}

    def write(self, key: str, value: Any) -> Any:
        """How a value is shown, and wanted in arguments."""
        return self.table(key).get(value, value)

    def read(self, key: str, shown: Any) -> Any:
        """The value that stands behind what is shown. Raise `ValueError` for what is written in no such way."""
        table = self.table(key)
        for value, written in table.items():
            if written == shown:
                return value
        if shown in table:
            raise ValueError("it is written otherwise here")
        return shown

    def legend(self, key: str) -> str:
        """Completes the sentence "KEY is ..."."""
        return "a code: " + ", ".join(f"{shown} is {value}" for value, shown in self.table(key).items())

    @classmethod
    def drawn(cls, scene: Scene, rng: Random, severity: int) -> dict[str, Any] | None:
        """The fields of a subclass; None where it does not apply."""
        return {}

    # -- given

    @classmethod
    def values(cls, scene: Scene) -> list[Any]:
        """Every different value to be mapped that the way or the rest of the world holds, for `drawn` to code."""
        held = _held(scene, cls.maps)
        keys = {key for tool in scene.tools.values() for key in tool.params} | {key for _, _, key in held}
        found = [v for key in sorted(keys) for v in (*_values(held, key), *_elsewhere(scene, key, cls.maps))]
        return sorted(dict.fromkeys(found), key=lambda v: (str(type(v)), v))

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        own = {hook for hook in ("write", "read", "legend") if getattr(cls, hook) is not getattr(ValueMap, hook)}
        tabled = cls.table is not ValueMap.table
        if cls.maps.__func__ is ValueMap.maps.__func__:  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} needs maps(key, value): which values are written otherwise")
        if own and not tabled and (missing := sorted({"write", "read", "legend"} - own)):
            raise TypeError(f"{cls.__name__} has {' and '.join(sorted(own))} without {' and '.join(missing)}")
        if not own and not tabled:
            raise TypeError(f"{cls.__name__} maps nothing; write table(key), or write, read and legend")

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        more = cls.drawn(scene, rng, severity)
        if more is None:
            return None
        bare = cls(arguments={}, results={}, samples={}, whole=(), rules="", **more)
        held = _held(scene, cls.maps)
        for key in sorted({key for _, _, key in held}):
            bare._check(key, [*_values(held, key), *_elsewhere(scene, key, cls.maps)])
        units = _units({place: held[place] for place in held if bare._bites(place[2], held[place])})
        if not units:
            return None
        rng.shuffle(units)
        share = {1: 1, 2: max(1, round(len(units) / 3)), 3: max(1, round(2 * len(units) / 3))}
        chosen = sorted(place for unit in units[: share.get(severity, len(units))] for place in unit)
        keys = {key for _, _, key in chosen}
        layer = bare.model_copy(
            update={
                "arguments": _by_tool(chosen, "argument"),
                "results": _by_tool(chosen, "result"),
                "samples": {key: _sample(scene, key, _values(held, key), cls.maps) for key in sorted(keys)},
                "whole": tuple(sorted(k for k in keys if all(type(v) is int for v in _values(held, k)))),
            }
        )
        if severity == 5:
            layer = layer.model_copy(update={"rules": layer._rules(scene)})
        return layer

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each place, and the legend that is elsewhere."""
        places = sum(len(keys) for side in (self.arguments, self.results) for keys in side.values())
        return places + 2 * bool(self.rules)

    def on_task(self, task: Task) -> Task:
        return task.briefed(policy=f"{task.brief.policy} {self.rules}".strip()) if self.rules else task

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(self._explained(tool) for tool in tools)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        wrong = [why for key in self.arguments.get(call.tool, ()) if (why := self._wrong(key, call.args))]
        if wrong:
            memo.fire()
            return failed("bad_arguments", "; ".join(wrong))
        inner = self.decode_call(call)
        result = yield inner
        shown = self.encode_result(inner, result, memo)
        if inner is not call or shown is not result:
            memo.fire()
        return shown

    def encode_call(self, call: ToolCall) -> ToolCall:
        return self._called(call, self.write)

    def decode_call(self, call: ToolCall) -> ToolCall:
        return self._called(call, self._read)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return self._answered(call, result, lambda key, v: self.write(key, v) if self.maps(key, v) else v)

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return self._answered(call, result, self._understood)

    # -- parts

    def _read(self, key: str, shown: Any) -> Any:
        value = self.read(key, shown)
        return int(value) if key in self.whole and isinstance(value, float) and value.is_integer() else value

    def _understood(self, key: str, shown: Any) -> Any:
        """What stands behind a value in a result; the same where it is none that is mapped."""
        try:
            value = self._read(key, shown)
        except (ValueError, TypeError, KeyError, ArithmeticError):
            return shown
        return value if self.maps(key, value) else shown

    def _called(self, call: ToolCall, way: Callable[[str, Any], Any]) -> ToolCall:
        keys = [key for key in self.arguments.get(call.tool, ()) if key in call.args]
        return call.with_args(**{key: way(key, call.args[key]) for key in keys}) if keys else call

    def _answered(self, call: ToolCall, result: ToolResult, way: Callable[[str, Any], Any]) -> ToolResult:
        keys = self.results.get(call.tool)
        if not keys or result.error:
            return result
        content = _mapped(result.content, keys, way)
        return result if content == result.content else ToolResult(content)

    def _wrong(self, key: str, args: Mapping[str, Any]) -> str:
        """Why an argument is not written as the legend says; empty where it is, or is not there."""
        try:
            return "" if key not in args or self._read(key, args[key]) is not None else self._wanted(key, args[key])
        except (ValueError, TypeError, KeyError, ArithmeticError):
            return self._wanted(key, args[key])

    def _wanted(self, key: str, shown: Any) -> str:
        return f"{key!r} is {self.legend(key)}; got {brief_of(shown)}"

    def _said(self, key: str) -> str:
        """The legend with an example."""
        legend = self.legend(key).rstrip(".")
        sample = self.samples.get(key)
        if sample is None or sample in self.table(key):
            return legend
        return f"{legend} ({self.write(key, sample)} stands for {sample})"

    def _explained(self, tool: ToolSpec) -> ToolSpec:
        params = dict(tool.params)
        for key in self.arguments.get(tool.name, ()):
            if (param := params.get(key)) is not None:
                shown = self.write(key, self.samples[key])
                doc = self._current(param.doc)
                if not self.rules:
                    doc = f"{doc.rstrip('.')}; {self._said(key)}".removeprefix("; ")
                enum = tuple(str(self.write(key, choice)) for choice in param.enum)
                type_ = param.type if type(shown) is type(self.samples[key]) else kind_of(shown)
                params[key] = Param(type_, doc, param.required, enum, param.extra)
        keys = self.results.get(tool.name, ())
        if not keys and params == tool.params:
            return tool
        says = "".join(f" In its results, {key} is {self._said(key)}." for key in keys if not self.rules)
        return tool.replace(params=params, doc=self._current(tool.doc) + says)

    def _current(self, doc: str) -> str:
        """A description without what holds no longer."""
        for words in self.outdated:
            doc = re.sub(rf"[ ,;(]*\b{re.escape(words)}\b\)?", "", doc)
        return doc.strip(" ,;")

    def _rules(self, scene: Scene) -> str:
        """The legend for the policy: each key with the tools that have it."""
        tools: dict[str, dict[str, None]] = {}
        for side in (self.arguments, self.results):
            for name, keys in side.items():
                ids = scene.tools[name].ids
                for key in keys:
                    tools.setdefault(key, {})[f"{{{name if name in ids else min(ids)}}}"] = None
        said = "For {}, {} is {}, whatever is said elsewhere."
        return " ".join(said.format(" and ".join(names), key, self._said(key)) for key, names in tools.items())

    def _bites(self, key: str, held: Iterable[Any]) -> bool:
        return any(self.write(key, value) != value for value in held)

    def _check(self, key: str, values: Iterable[Any]) -> None:
        """Refuse a map that cannot be undone on the values there are, or whose legend does not explain it."""
        who = f"{self.kind!r}"
        seen: dict[Any, Any] = {}
        for value in values:
            shown = self.write(key, value)
            try:
                back = self.read(key, shown)
            except ValueError as error:
                what = f"which it cannot read: {error}"
                raise Unfair("legend", f"{who} writes {key} = {value!r} as {shown!r}, {what}") from None
            if not isinstance(shown, (str, int, float)):
                raise Unfair("legend", f"{who} writes {key} = {value!r} as {shown!r}; expected text or a number")
            if shown in seen and seen[shown] != value:
                raise Unfair("legend", f"{who} writes {key} = {seen[shown]!r} and {value!r} both as {shown!r}")
            if back != value:
                raise Unfair("legend", f"{who} writes {key} = {value!r} as {shown!r}, which it reads as {back!r}")
            seen[shown] = value
        said = self.legend(key)
        if not isinstance(said, str) or not any(c.isalpha() for c in said):
            raise Unfair("legend", f"{who} has no legend for {key}: got {said!r}; complete the sentence '{key} is ...'")
        tried = list(islice(seen.items(), TRIED))
        wrong = [(v, shown) for shown, v in tried if not _follows(said, key, shown, v)]
        if len(wrong) > len(tried) // 2:
            value, shown = wrong[0]
            raise Unfair(
                "legend",
                f"{who} writes {key} = {value!r} as {shown!r}, and the numbers of its legend do not lead there: "
                f"{said!r}; let the legend say by what number it is written",
            )
        table = self.table(key)
        if missing := [shown for shown in table.values() if str(shown) not in said]:
            raise Unfair("legend", f"{who} writes {key} as {missing[0]!r}, which its legend does not mention: {said!r}")


def _follows(said: str, key: str, shown: Any, value: Any) -> bool:
    """Does a rule that has numbers lead from what is shown to what is meant? A rule without any is not judged here."""
    if isinstance(shown, str) or isinstance(value, str) or not numbers(said):
        return True
    return Legend([said], ()).number(key, [shown], value, ())


def _mapped(content: Any, keys: Sequence[str], way: Callable[[str, Any], Any], key: str = "") -> Any:
    """Content with the values under some keys put another way."""
    if isinstance(content, Mapping):
        return {k: _mapped(v, keys, way, k) for k, v in content.items()}
    if isinstance(content, (list, tuple)):
        return [_mapped(v, keys, way, key) for v in content]
    return way(key, content) if key in keys and _plain(content) else content


def _plain(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _scalars(content: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(content, Mapping):
        for k, v in content.items():
            yield from _scalars(v, str(k))
    elif isinstance(content, (list, tuple)):
        for v in content:
            yield from _scalars(v, key)
    elif key and _plain(content):
        yield key, content


def _held(scene: Scene, maps: Callable[[str, Any], bool]) -> dict[Place, list[Any]]:
    """The values on the way that are to be mapped, by the place where they occur."""
    out: dict[Place, list[Any]] = {}
    for step in scene.gold:
        tool = step.call.tool
        if tool not in scene.tools:
            continue
        for key, value in step.call.args.items():
            if key in scene.tools[tool].params and _plain(value) and maps(key, value):
                out.setdefault(("argument", tool, key), []).append(value)
        for key, value in _scalars(step.result.content):
            if maps(key, value):
                out.setdefault(("result", tool, key), []).append(value)
    return out


def _values(held: Mapping[Place, list[Any]], key: str) -> list[Any]:
    return [value for place, values in held.items() if place[2] == key for value in values]


def _elsewhere(scene: Scene, key: str, maps: Callable[[str, Any], bool]) -> list[Any]:
    """Values of a key in the rest of the world: choices of parameters, and columns of that name."""
    choices = [c for tool in scene.tools.values() if key in tool.params for c in tool.params[key].enum]
    rows = islice(list(scene.domain.state(scene.task).cache.values()), ROWS)
    columns = [row[key] for row in rows if row is not None and key in row]
    return [value for value in (*choices, *columns) if _plain(value) and maps(key, value)]


def _units(held: Mapping[Place, list[Any]]) -> list[list[Place]]:
    """Places that are mapped together: where the same texts come out and go in. Numbers stand alone."""
    units: list[tuple[set[str], list[Place]]] = []
    for place, values in sorted(held.items()):
        texts, places = {v for v in values if isinstance(v, str)}, [place]
        for unit in [u for u in units if u[0] & texts]:
            units.remove(unit)
            texts, places = texts | unit[0], unit[1] + places
        units.append((texts, places))
    return [places for _, places in units]


def _by_tool(places: Sequence[Place], side: str) -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for of, tool, key in places:
        if of == side:
            out[tool] = (*out.get(tool, ()), key)
    return out


def _sample(scene: Scene, key: str, held: Sequence[Any], maps: Callable[[str, Any], bool]) -> Any:
    """A value for the example of a legend: not one of the episode, as long as there is another."""
    if not isinstance(held[0], str):
        numbers = (12, 17, 23) if all(isinstance(v, int) for v in held) else (12.5, 17.5, 23.5)
        return next((n for n in numbers if n not in held and maps(key, n)), held[0])
    if held[0][:2].isdigit() and maps(key, "2030-11-24"):
        return "2030-11-24"
    others = sorted({v for v in _elsewhere(scene, key, maps) if v not in held and v not in scene.task.given})
    return others[0] if others else held[0]
