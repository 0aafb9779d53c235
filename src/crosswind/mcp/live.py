"""Draw stacks for a live server, which has no task.

Any tool may be wanted, and only schemas say what tools return. So gold is replaced by made-up calls of every tool with
made-up results, and a stack is kept if each of these calls gets through it and back unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from crosswind.base.errors import CannotPerturb, CrosswindError, Unfair
from crosswind.benchmarks.given import OutsideState
from crosswind.core import laws
from crosswind.core.certify import Certificate
from crosswind.core.domain import NO_BRIEF, Domain, Family
from crosswind.core.draw import ATTEMPTS, Drawn, extend, outwards
from crosswind.core.flow import rng_for
from crosswind.core.oracle import Walks
from crosswind.core.perturbation import Layers, Perturbation
from crosswind.core.registry import perturbations
from crosswind.core.state import State
from crosswind.core.types import (
    ASK,
    NOTE,
    SAY,
    Brief,
    Changes,
    Refusal,
    Solution,
    Task,
    ToolCall,
    ToolResult,
    Tools,
    ToolSpec,
)
from crosswind.episodes.recipe import Choice, Recipe
from crosswind.mcp import toolbox
from crosswind.mcp.tools import Tool, examples, tools_of
from crosswind.mcp.worlds import RehearsedWorld, entries_class, rehearse

DOMAIN = "mcp"  # what records call a live server's domain
LIMIT = 40  # calls that one made-up call may turn into
REDRAWS = 100  # of a recipe, until something of it lies; a pick that comes again is not tried again
RESERVED = (ASK, SAY, NOTE)  # names of calls that the oracle keeps for itself
TASK = Task(id=DOMAIN, domain=DOMAIN, family="live", brief=NO_BRIEF, seed=0, size=0)


# ---------------------------------------------------------------- a server as a domain


class LiveServer(Domain):
    """A server's tools as a domain with one task. Answers are made up; it has no families to draw from."""

    name, summary, policy = DOMAIN, "The tools of a live server.", ""
    families: dict[str, Family]

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.listed = tools
        self.examples = [one for one in examples(tools) if one[0] not in RESERVED]
        self.specs = {name: tool.spec for name, tool in tools.items()}
        self.world_class = entries_class(self.specs)  # type: ignore[misc]
        self.families = {}

    def family(self, task: Task) -> Family:
        return EveryTool(self)

    def tools(self, task: Task) -> Tools:
        return self.world_class.specs

    def world(self, task: Task, *, fenced: bool = False) -> MadeUpServer:
        return MadeUpServer(self.listed, self.specs, {}, self.examples)

    def state(self, task: Task, *, fenced: bool = False) -> State:
        return self.world(task).state

    def normalise(self, state: State) -> Changes:
        """The calls that reached the server, each once."""
        assert isinstance(state, OutsideState)
        calls = (made.call for made in state.world.ledger)
        return {(call.tool, json.dumps(dict(call.args), sort_keys=True)): {} for call in calls}


class MadeUpServer(RehearsedWorld):
    """A made-up server that accepts every call, because only a live one can judge its arguments."""

    foreign: ClassVar[bool] = True

    def check(self, call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
        return toolbox.check(self.listed, call, spec)

    def refused(self, call: ToolCall) -> ToolResult | None:
        return None


class EveryTool(Family):
    """The task of a live server: call every tool once."""

    name, level = "live", 1

    def __init__(self, server: LiveServer) -> None:
        self.domain, self.server, self.details = server, server, {}
        self.longest_walk = LIMIT * (len(server.listed) + 1)

    def solve(self, brief: Brief) -> Solution:
        return rehearse(self.server.examples)


# ---------------------------------------------------------------- drawing


def draw(tools: Mapping[str, Tool], kinds: Iterable[tuple[str, int]], seed: int) -> Drawn:
    """Draw a stack of some kinds over a server's tools. Kinds that do not apply are left out, with the reason."""
    walks, left_out = Walks(LiveServer(tools), TASK), list[str]()
    for kind, severity in outwards(kinds):
        for attempt in range(ATTEMPTS):
            tried = walks.fork()
            try:
                why = extend(tried, kind, severity, (seed, attempt))
                if not why:
                    if proved(tried):
                        walks = tried
                        break
                    why = f"{kind} changes nothing here"
            except Unfair as unfair:
                why = f"{kind} is not fair here: {unfair}"
        else:
            left_out.append(why)
    return _drawn(walks, left_out)


def _prove(walks: Walks) -> None:
    """Raise `Unfair` if a made-up call does not get through a stack, or if its tools cannot be told apart."""
    laws.stackable(walks.layers)
    gold = walks.gold
    if isinstance(gold.end, Refusal):
        raise Unfair("replay", f"a made-up call does not get through: {gold.end.reason}")
    if moved := sorted(walks.clean.changes.keys() ^ gold.changes.keys()):
        raise Unfair("replay", f"{moved[0][0]!r}: its arguments do not arrive as they were")
    laws.cues(walks.domain, gold)
    laws.mentions(walks.domain, gold)


def proved(walks: Walks) -> bool:
    """Does the outermost layer change something of the server? Raises `Unfair` where a stack is not fair to it."""
    _prove(walks)
    return _bites(walks)


def _bites(walks: Walks) -> bool:
    """Is the outermost layer met?"""
    return len(walks.layers) - 1 in walks.gold.session.first or walks.layers[-1].receipt_source == "tools"


def _drawn(walks: Walks, left_out: Iterable[str]) -> Drawn:
    certificate = Certificate(TASK, walks.layers, walks.gold, walks.clean, "made-up calls", 0)
    return Drawn(walks.domain, TASK, walks.layers, certificate, tuple(left_out))


def follow(tools: Mapping[str, Tool], recipe: Recipe | None, seed: int) -> Drawn:
    """The stack that a recipe gives for a server and a seed: the same ones always give the same.

    Where nothing of a pick can be applied to the tools, the next one is taken, up to a bound. Raises `CannotPerturb`
    where nothing ever can, since a session under a recipe is not to be one without layers.
    """
    if recipe is None:
        return draw(tools, (), seed)
    tried: set[tuple[tuple[str, int], ...]] = set()
    why: dict[str, None] = {}
    for n in range(REDRAWS):
        kinds = recipe.pick(rng_for("recipe", seed, DOMAIN, *([n] if n else [])))
        if tuple(kinds) in tried:
            continue
        tried.add(tuple(kinds))
        drawn = draw(tools, kinds, seed)
        if drawn.layers:
            return drawn
        why |= dict.fromkeys(drawn.left_out)
    reasons = "; ".join(why) or "it picks no kind"
    raise CannotPerturb(f"nothing can be applied to the {len(tools)} tools of this server: {reasons}", applies=False)


def fitted(tools: Mapping[str, Tool], layers: Layers) -> Drawn:
    """A stack that was drawn before, over a server's tools. Raises `CannotPerturb` where it does not go with them."""
    walks = Walks(LiveServer(tools), TASK)
    try:
        for layer in layers:
            walks.add(layer)
        _prove(walks)
    except Unfair as unfair:
        raise CannotPerturb(f"the stack does not go with this server's tools: {unfair}", applies=False) from None
    idle = [layer.kind for i, layer in enumerate(layers) if i not in walks.gold.session.first]
    if layers and len(idle) == len(layers):
        raise CannotPerturb(f"the stack changes nothing of this server's tools: {', '.join(idle)}", applies=False)
    return _drawn(walks, (f"{kind} changes nothing here" for kind in idle))


# ---------------------------------------------------------------- which kinds apply

# a server with every sort of tool that a kind may look for
_TEXT, _DATE, _NUMBER = {"type": "string"}, {"type": "string", "format": "date"}, {"type": "number"}
_ORDER = {"order_id": _TEXT, "total": _NUMBER, "date": _DATE, "status": _TEXT}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


SHOWROOM: tuple[dict[str, Any], ...] = (
    {
        "name": "search_orders",
        "description": "Search orders by customer and date.",
        "inputSchema": _object(
            ("customer_name",),
            customer_name=_TEXT,
            date=_DATE,
            status={"type": "string", "enum": ["open", "paid", "cancelled"]},
            limit={"type": "integer", "minimum": 1},
        ),
        "outputSchema": _object(("result",), result={"type": "array", "items": _object((), **_ORDER)}),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "get_customer",
        "description": "Get the record of a customer.",
        "inputSchema": _object(("customer_id",), customer_id=_TEXT),
        "outputSchema": _object(name=_TEXT, city=_TEXT, balance=_NUMBER),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "create_order",
        "description": "Create an order for a customer.",
        "inputSchema": _object(("customer_id", "item"), customer_id=_TEXT, item=_TEXT, count={"type": "integer"}),
        "outputSchema": _object(order_id=_TEXT, total=_NUMBER),
    },
)


def needs_task(kind: str) -> str:
    """Why a kind cannot be applied to a live server; empty where it can."""
    cls = perturbations[kind]
    if cls.on_task is not Perturbation.on_task:
        return "it changes the request or the world"
    if cls.goal != "kept":
        return "it changes the goal of a task"
    if cls.plans:
        return "its workaround needs to know the later steps of a task"
    return "" if _drawable(kind) else "it needs knowledge about the tools that only a simulated domain has"


@lru_cache(maxsize=256)
def _drawable(kind: str) -> bool:
    """Can it be drawn for a server with every sort of tool?"""
    tools = tools_of(SHOWROOM)
    return any(draw(tools, [(kind, severity)], seed).layers for severity in (3, 5, 1) for seed in (0, 1))


def applicable() -> list[str]:
    """The kinds that can be applied to a live server."""
    return [kind for kind in perturbations.names() if not needs_task(kind)]


def without_tasks(recipe: Recipe) -> Recipe:
    """A recipe for a live server. A kind that it names and that needs a task is refused; a group is narrowed."""
    bad = [k for choice in recipe.stack if choice.group is None for k in choice.weights() if needs_task(k)]
    if bad:
        reasons = "; ".join(f"{kind}: {needs_task(kind)}" for kind in dict.fromkeys(bad))
        raise CrosswindError(
            f"some kinds cannot be used on a live server, which has no task ({reasons}). These can: "
            f"{', '.join(applicable())}"
        )
    stack = []
    for choice in recipe.stack:
        if choice.group is None:
            stack.append(choice)
            continue
        kept = [kind for kind in choice.weights() if not needs_task(kind)]
        if not kept:
            raise CrosswindError(
                f"no kind of the group {choice.group!r} can be used on a live server, which has no task. These kinds "
                f"can: {', '.join(applicable())}"
            )
        stack.append(
            Choice(one_of=dict.fromkeys(kept, 1.0), count=choice.count, chance=choice.chance, severity=choice.severity)
        )
    return recipe.model_copy(update={"stack": tuple(stack)})


def condition(recipe: Recipe, layers: Layers) -> str:
    """What a session under a recipe is called; where kinds were asked for one by one, by those of them that lie."""
    parts = [(part, part.partition(":")[0]) for part in recipe.name.split("+")]
    if any(kind not in perturbations for _, kind in parts):
        return recipe.name
    laid = {layer.kind for layer in layers}
    return "+".join(part for part, kind in parts if kind in laid)
