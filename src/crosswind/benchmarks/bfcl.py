"""The multi-turn part of the Berkeley Function Calling Leaderboard (package `bfcl-eval`) as a domain.

Its executable API classes are the world, its recorded ground truths the gold, and its multi-turn checker the judge: it
makes the world-side calls of each turn again, and compares states and answers with those of the ground truth.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Self

from crosswind.base.errors import ToolFailure
from crosswind.benchmarks import borrowed, needed
from crosswind.benchmarks.borrowed import BorrowedWorld, RecordedGold
from crosswind.core.types import Change, Refusal, Task, ToolCall, Tools, ToolSpec
from crosswind.core.world import World

INSTALL = "pip install --no-deps bfcl-eval && pip install filelock mpmath"
CHECKER = "bfcl_eval.eval_checker.multi_turn_eval"
BASE = "multi_turn_base"
CATEGORIES = {
    BASE: "Every request can be met with what it gives.",
    "multi_turn_miss_func": "A function is missing until the user says that there are more.",
    "multi_turn_miss_param": "A detail is missing until the user gives it.",
    "multi_turn_long_context": "The same requests in worlds that hold much that nobody needs.",
}
DONE = "Done."
NO_TOOL = Refusal("none of the tools here does what is needed").text
WHICH = "Could you give me the detail that is missing?"
_runs = count()


@dataclass(frozen=True, slots=True)
class BfclTask:
    """A task as the data files have it."""

    given: Mapping[str, Any]
    truth: list[list[str]]
    tools: tuple[str, ...]  # that are there from the start,
    later: Mapping[int, tuple[str, ...]]  # and those that come with a turn

    @property
    def long(self) -> bool:
        return "long_context" in self.given["id"]


class Library:
    """What the package brings, as far as it is used: classes, documents and data."""

    def __init__(self) -> None:
        self.backend = needed("bfcl_eval.constants.executable_backend_config", "bfcl-eval", INSTALL)
        self.checker = needed(f"{CHECKER}.multi_turn_checker", "bfcl-eval", INSTALL)
        self.utils = needed(f"{CHECKER}.multi_turn_utils", "bfcl-eval", INSTALL)
        self.prompts = needed("bfcl_eval.constants.default_prompts", "bfcl-eval", INSTALL)
        self.data = Path(str(needed("bfcl_eval", "bfcl-eval", INSTALL).__file__)).parent / "data"
        self.docs: dict[str, tuple[ToolSpec, ...]] = {}

    def type_of(self, name: str) -> type[Any]:
        found: type[Any] = getattr(importlib.import_module(self.backend.CLASS_FILE_PATH_MAPPING[name]), name)
        return found

    def instance(self, name: str, given: Mapping[str, Any], *, long: bool) -> Any:
        """An API as a task finds it."""
        made = self.type_of(name)()
        if name not in self.backend.STATELESS_CLASSES:
            made._load_scenario(deepcopy(given["initial_config"].get(name, {})), long_context=long)
        return made

    def specs(self, name: str) -> tuple[ToolSpec, ...]:
        """The tools of an API as its documents show them."""
        if name not in self.docs:
            path = self.data / "multi_turn_func_doc" / self.backend.MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]
            self.docs[name] = tuple(_spec(doc) for doc in _lines(path))
        return self.docs[name]

    def category(self, name: str) -> list[BfclTask]:
        file = f"BFCL_v4_{name}.json"
        truths = {line["id"]: line["ground_truth"] for line in _lines(self.data / "possible_answer" / file)}
        return [self._entry(line, truths[line["id"]]) for line in _lines(self.data / file)]

    def _entry(self, given: dict[str, Any], truth: list[list[str]]) -> BfclTask:
        called = [{text.partition("(")[0].strip() for text in turn} for turn in truth]
        later = {
            # in one task the ground truth calls such a function before it comes: there it is never missing
            int(turn): tuple(name for name in names if not any(name in made for made in called[: int(turn)]))
            for turn, names in given.get("missed_function", {}).items()
        }
        left_out = {*given.get("excluded_function", ()), *(name for names in later.values() for name in names)}
        names = [spec.name for api in given["involved_classes"] for spec in self.specs(api)]
        return BfclTask(given, truth, tuple(name for name in names if name not in left_out), later)

    @cached_property
    def orders(self) -> dict[str, list[str]]:
        """The parameters of every method, in their order."""
        apis = (self.type_of(name) for name in self.backend.CLASS_FILE_PATH_MAPPING if name in APIS)
        methods = (pair for api in apis for pair in inspect.getmembers(api, inspect.isfunction))
        return {name: [p for p in inspect.signature(method).parameters if p != "self"] for name, method in methods}

    def gold(self, one: BfclTask, base: BfclTask) -> RecordedGold:
        """A task as `solve` plays it and the user speaks it; `base` is the same task with nothing missing."""
        more = str(self.prompts.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC)
        turns = tuple("\n".join(m["content"] for m in turn) or more for turn in one.given["question"])
        hold = holding(one, base)
        no = NO_TOOL if one.later else WHICH
        says = tuple(no if n in hold else DONE for n in range(len(turns)))
        calls = tuple(tuple(self.call(text) for text in turn) for turn in one.truth)
        return RecordedGold(one.given["id"], turns, calls, says, hold)

    def call(self, text: str) -> ToolCall:
        """A call of the ground truth, out of the line of Python that it is."""
        node = ast.parse(text.strip(), mode="eval").body
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        named = zip(self.orders[node.func.id], node.args, strict=False)
        args = {name: _data(value) for name, value in named}
        args |= {str(word.arg): _data(word.value) for word in node.keywords}
        return ToolCall(node.func.id, args)


APIS = (
    *("GorillaFileSystem", "MathAPI", "MessageAPI", "TicketAPI"),
    *("TradingBot", "TravelAPI", "TwitterAPI", "VehicleControlAPI"),
)


def holding(one: BfclTask, base: BfclTask) -> frozenset[int]:
    """Turns to be refused or asked about: before the one that brings a function, or the one that gives a detail.

    Their ground truth is empty. So is that of a few turns in which nothing is to be done, so a turn that asks for a
    detail comes from `base`, which lacks it.
    """
    if one.later:
        return frozenset(turn - 1 for turn in one.later)
    idle, known = _empty(one), _empty(base)
    return frozenset(turn for turn in idle - {len(one.truth) - 1} if {n - (n > turn) for n in idle - {turn}} == known)


def _empty(one: BfclTask) -> set[int]:
    return {n for n, calls in enumerate(one.truth) if not calls}


def _data(node: ast.expr) -> Any:
    value = ast.literal_eval(node)
    return list(value) if isinstance(value, tuple) else value


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _spec(doc: Mapping[str, Any]) -> ToolSpec:
    schema = doc["parameters"]
    required = schema.get("required", ())
    params = {name: borrowed.param(one, required=name in required) for name, one in schema["properties"].items()}
    return ToolSpec(doc["name"], doc["description"], params, ids=frozenset({doc["name"]}))


# ---------------------------------------------------------------- the domain


class BfclWorld(BorrowedWorld):
    """The APIs of one task."""

    def __init__(self, library: Library, one: BfclTask, specs: Tools, blocked: Mapping[str, str]) -> None:
        super().__init__(specs, blocked)
        self.library, self.one = library, one

    @cached_property
    def apis(self) -> dict[str, Any]:
        given = self.one.given
        return {name: self.library.instance(name, given, long=self.one.long) for name in given["involved_classes"]}

    def hear(self, change: Change, said: str) -> None:
        super().hear(change, said)
        if new := self.one.later.get(len(self.turns) - 1):
            self.specs = tuple(spec.replace(listed=True) if spec.name in new else spec for spec in self.specs)

    def run(self, call: ToolCall) -> Any:
        method = next(getattr(api, call.tool) for api in self.apis.values() if hasattr(api, call.tool))
        try:
            result = method(**deepcopy(dict(call.args)))
        except Exception as error:  # whatever an API raises is its answer, as it is in the benchmark
            raise ToolFailure("failed", f"Error during execution: {error}") from None
        try:
            return json.loads(json.dumps(result))
        except (TypeError, ValueError):
            return str(result)

    def mark(self) -> bytes:
        return borrowed.marked([vars(api) for api in self.apis.values()])  # where one is in the files is private

    def twin(self) -> Self:
        other = type(self)(self.library, self.one, self.specs, self.blocked)
        other.apis = deepcopy(self.apis)
        return other

    def kept(self) -> dict[str, bytes]:
        """What the checker compares: attributes of the APIs that are not private."""
        start = BfclWorld(self.library, self.one, self.specs, {}).apis
        now = {name: borrowed.marked(borrowed.public(api)) for name, api in self.apis.items()}
        return {name: mark for name, mark in now.items() if mark != borrowed.marked(borrowed.public(start[name]))}


class Category(borrowed.BorrowedFamily):
    """One of the multi-turn categories."""

    domain: Bfcl

    def judged(self, world: BorrowedWorld, final: str) -> str:
        """What the benchmark's checker says to the calls that reached its APIs, turn by turn."""
        assert isinstance(world, BfclWorld)
        truth, library = world.one.truth, world.library
        made = [[[_text(call) for call in calls]] if calls else [] for calls in world.turns]
        made += [[]] * (len(truth) - len(made))
        run = f"crosswind_{next(_runs)}"
        try:
            found = library.checker.multi_turn_checker(made, truth, world.one.given, self.name, run)
        finally:
            kept = vars(library.utils)  # the package keeps instances as globals of its module
            for name in [name for name in kept if name.startswith(run)]:
                del kept[name]
        return "" if found["valid"] else f"{found['error_type']}: {found['error_message']}"


def _text(call: ToolCall) -> str:
    return f"{call.tool}({', '.join(f'{name}={value!r}' for name, value in call.args.items())})"


class Bfcl(borrowed.BorrowedDomain):
    """Multi-turn function calling over eight executable APIs."""

    name: ClassVar[str] = "bfcl"
    summary: ClassVar[str] = "BFCL v4 multi-turn: files, mathematics, messages, tickets, trading, travel, posts, a car"
    policy: ClassVar[str] = (
        "Do what the user asks with the tools you are given. When a request is met, say so without calling a tool: the "
        "user then goes on. If a tool or a detail that is needed is missing, call nothing and say what is missing."
    )
    world_class: type[World]  # type: ignore[misc]

    def __init__(self) -> None:
        self.library, self.families = Library(), {}
        self.entries = {name: self.library.category(name) for name in CATEGORIES}
        base = self.entries[BASE]
        for name, about in CATEGORIES.items():
            golds = [self.library.gold(*two) for two in zip(self.entries[name], base, strict=True)]
            self.families[name] = Category.called(name, about)(self, golds)
        specs = borrowed.widened([s for name in APIS for s in self.library.specs(name)], self.families.values())
        worlds = [BfclWorld(self.library, one, (), {}) for one in base]
        self.world_class = borrowed.catalogue(
            specs, borrowed.footprints(zip(worlds, self.families[BASE].golds, strict=True))
        )

    def tools(self, task: Task) -> Tools:
        one = self.entries[task.family][task.seed]
        late = [name for names in one.later.values() for name in names]
        return tuple(self.world_class.entries[name].spec for name in (*one.tools, *late))

    def world(self, task: Task, *, fenced: bool = False) -> BfclWorld:
        one = self.entries[task.family][task.seed]
        late = {name for names in one.later.values() for name in names}
        specs = tuple(spec.replace(listed=False) if spec.name in late else spec for spec in self.tools(task))
        return BfclWorld(self.library, one, specs, task.blocked)


@lru_cache(maxsize=1)
def load() -> Bfcl:
    """The domain, made when it is first asked for."""
    return Bfcl()
