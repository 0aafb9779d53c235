"""A live server seen through layers: a session without a world, and stacks drawn and tried out without a task.

There is no task, so nothing is known of the way: every tool may be wanted, and what they return is known from their
schemas alone. `draw` therefore takes every tool to be on the way, with made-up calls and results in the place of gold,
and a stack is kept when each of those calls gets through it and back unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, cast

from crosswind.base.errors import CannotPerturb, CrosswindError, Unfair
from crosswind.core.domain import Domain, Family
from crosswind.core.draw import ATTEMPTS
from crosswind.core.flow import chain, drive, rng_for
from crosswind.core.laws import stackable
from crosswind.core.oracle import RETRIES
from crosswind.core.perturbation import SEVERITIES, Clock, Layers, Memo, Perturbation, place
from crosswind.core.registry import perturbations
from crosswind.core.session import MENTION, NAME
from crosswind.core.skin import through
from crosswind.core.types import (
    Brief,
    Flow,
    Receipt,
    Step,
    Task,
    ToolCall,
    ToolError,
    ToolResult,
    Tools,
    ToolSpec,
    failed,
)
from crosswind.core.world import Entry, World, bad_arguments, brief_of
from crosswind.episodes.recipe import Choice, Recipe
from crosswind.mcp import tools as forms
from crosswind.mcp.tools import Tool

DOMAIN = "mcp"  # what records call a live server's domain
LIMIT = 40  # calls that one made-up call may turn into
REDRAWS = 100  # of a recipe, until something of it lies; a pick that comes again is not tried again
ORIGIN = "x-crosswind-origin"  # a mark on a parameter, by which it is found again under the name it is shown by
Send = Callable[[ToolCall], ToolResult]


# ---------------------------------------------------------------- the session


@dataclass(slots=True)
class Running:
    """A call under way. Several may be, so each keeps its own place on the clock they share."""

    call: ToolCall
    nth: int
    flow: Flow | None
    result: ToolResult | None = None  # once it is over
    asked: ToolCall | None = None  # of the server, while it is not
    inner: list[tuple[ToolCall, ToolResult]] = field(default_factory=list)
    fired: list[int] = field(default_factory=list)


class LiveSession:
    """One client's session with a server behind layers; both sides of every step on record."""

    def __init__(self, tools: Mapping[str, Tool], layers: Sequence[Perturbation] = ()) -> None:
        self.layers = tuple(layers)
        self.canonical = dict(tools)
        self.writes = 0  # calls that wrote, as far as tools say that they do
        self.clock = Clock(cast("World", self))
        self.memos = [Memo(self.clock, i) for i in range(len(self.layers))]
        self.steps: list[Step] = []
        self.first: dict[int, int] = {}
        self.dangling: list[str] = []
        self.moments = frozenset(n for layer in self.layers for n in layer.turns())
        self.handlers = [
            partial(layer.handle, memo=memo)
            for layer, memo in zip(self.layers, self.memos, strict=True)
            if not layer.quiet
        ][::-1]
        self.speaks = any(layer.speaks for layer in self.layers)
        self.specs: dict[str, ToolSpec] = {}
        self.ids: frozenset[str] = frozenset()
        self._names: dict[str, dict[str, str]] | None = None
        self._show(self.canonical, 0)
        for i, layer in enumerate(self.layers):
            if layer.meets == "query":
                self.first[i] = 0

    # -- what is shown

    def renew(self, tools: Mapping[str, Tool]) -> None:
        """The server has other tools now. Raises `Unfair`, and shows the old ones on, where layers do not take them."""
        self._show(dict(tools), max(0, self.clock.nth))

    def _show(self, canonical: dict[str, Tool], nth: int) -> None:
        """Show tools through the layers: all that hangs on them is changed together, or nothing is."""
        tools: Tools = forms.all_specs(canonical)
        inner: list[dict[str, ToolSpec]] = []
        met: list[int] = []
        for i, layer in enumerate(self.layers):
            inner.append({t.name: t for t in tools})
            if layer.retools:
                outer = layer.on_tools(tools, nth)
                if layer.meets == "tools" and outer != tools:
                    met.append(i)
                tools = outer
        specs = {t.name: t for t in tools}
        if len(specs) != len(tools):
            twice = sorted(t.name for t in tools if sum(o.name == t.name for o in tools) > 1)
            raise Unfair("names", f"two tools are called {twice[0]!r}")
        for name in specs.keys() - canonical.keys():
            if not NAME.fullmatch(name):
                raise Unfair("names", f"no provider takes {name!r} for a tool's name")
        self.canonical, self.specs, self._names, self._shown_at = canonical, specs, None, nth
        self.ids = self.ids.union(*(t.ids for t in tools))
        for memo, seen in zip(self.memos, inner, strict=True):
            memo.tools = seen
        for i in met:
            self.first.setdefault(i, len(self.steps) + bool(nth))

    def tools(self) -> Tools:
        """The tools as a client is shown them now; texts still speak of tools as {id}."""
        return tuple(t for t in self.specs.values() if t.listed)

    @property
    def names(self) -> Mapping[str, Mapping[str, str]]:
        """Of each shown tool: the server's own names of its parameters, with those shown now."""
        if self._names is None:
            self._names = traced(self.canonical, self.layers, self._shown_at)
        return self._names

    def render(self, text: str) -> str:
        """Put the names shown now in the place of {ids}; other braces are the server's own."""
        return MENTION.sub(self._name, text) if "{" in text else text

    def _name(self, mention: Any) -> str:
        if mention[1] not in self.ids:
            return str(mention[0])
        named = [t.name for t in self.specs.values() if t.listed and mention[1] in t.ids]
        if not named and not any(mention[1] in t.ids for t in self.specs.values()):
            self.dangling.append(mention[1])
        return " and ".join(named) or str(mention[1])

    # -- calls

    def begin(self, call: ToolCall) -> Running:
        """Take a call; what it asks of the server stands in `asked`, and `go_on` takes the answer."""
        clock = self.clock
        clock.nth += 1
        if clock.nth in self.moments:
            self._show(self.canonical, clock.nth)
        running = Running(call, clock.nth, None)
        spec = self.specs.get(call.tool)
        if spec is None and self.layers:
            self._over(running, failed("unknown_tool", f"There is no tool {brief_of(call.tool)}."))
        elif spec is not None and spec.listed and (bad := self._bad(spec, call)):
            self._over(running, failed("bad_arguments", bad))
        else:
            running.flow = chain(call, self.handlers)
            self._resume(running, None)
        return running

    def go_on(self, running: Running, answer: ToolResult) -> None:
        """Hand the server's answer to the layers."""
        assert running.asked is not None
        asked, running.asked = running.asked, None
        running.inner.append((asked, answer))
        tool = self.canonical.get(asked.tool)
        if answer.error is None and tool is not None and tool.spec.writes:
            self.writes += 1
        self._resume(running, answer)

    def _resume(self, running: Running, answer: ToolResult | None) -> None:
        """Let the layers work until they ask or are done; generators do not wait, so nobody else comes between."""
        assert running.flow is not None
        clock, before = self.clock, self.clock.nth
        clock.nth, clock.fired = running.nth, running.fired
        try:
            running.asked = next(running.flow) if answer is None else running.flow.send(answer)
        except StopIteration as stop:
            self._over(running, stop.value)
        finally:
            clock.nth, clock.fired = max(before, running.nth), []

    def _bad(self, spec: ToolSpec, call: ToolCall) -> str | None:
        """Why arguments are wrong; what an untouched tool is given, its server judges."""
        if (own := self.canonical.get(spec.name)) is not None and own.spec is spec:
            return None
        args: Mapping[str, Any] = call.args
        if any(self.canonical[id].open for id in spec.ids if id in self.canonical):
            args = {name: value for name, value in args.items() if name in spec.params}
        return bad_arguments(spec.params, args)

    def _over(self, running: Running, result: ToolResult) -> None:
        error = result.error
        if error is not None and "{" in error.text:
            result = replace(result, error=ToolError(error.code, self.render(error.text), error.retryable))
        elif self.speaks and error is None:
            spoken = through(result.content, self.render)
            result = result if spoken == result.content else ToolResult(spoken)
        running.result = result

    def record(self, running: Running, result: ToolResult) -> None:
        """Put a finished call on record, with the result as the client got it."""
        fired = tuple(sorted(set(running.fired)))
        self.steps.append(Step(running.call, result, tuple(running.inner), fired))
        for i in fired:
            self.first.setdefault(i, len(self.steps))

    def call(self, call: ToolCall, send: Send) -> ToolResult:
        """Make a call of a server that answers at once."""
        running = self.begin(call)
        while running.asked is not None:
            self.go_on(running, send(running.asked))
        assert running.result is not None
        self.record(running, running.result)
        return running.result

    def receipts(self) -> tuple[Receipt, ...]:
        """What became of each obstacle; one met at the very last step has been seen by nobody that we know of."""
        seen = len(self.steps) - 1
        return tuple(
            Receipt(
                kind=layer.kind, fired=i in self.first, step=self.first.get(i), seen=self.first.get(i, 9**9) <= seen
            )
            for i, layer in enumerate(self.layers)
        )


def traced(tools: Mapping[str, Tool], layers: Sequence[Perturbation], nth: int) -> dict[str, dict[str, str]]:
    """Which parameter is which: each gets a mark, layers carry it along, and it is looked for in what they show."""
    marked: Tools = tuple(
        spec.but(params={p: replace(part, extra={**part.extra, ORIGIN: p}) for p, part in spec.params.items()})
        for spec in forms.all_specs(tools)
    )
    for layer in layers:
        if layer.retools:
            marked = layer.on_tools(marked, nth)
    return {
        spec.name: {part.extra[ORIGIN]: shown for shown, part in spec.params.items() if ORIGIN in part.extra}
        for spec in marked
    }


# ---------------------------------------------------------------- the way round


class Way:
    """The way round a stack: takes the server's own calls, makes those that a client has to make."""

    def __init__(self, tools: Mapping[str, Tool], layers: Sequence[Perturbation]) -> None:
        self.session = LiveSession(tools, layers)  # only for what each layer sees further in
        self.ways = [
            partial(layer.perform, memo=self._memo(i)) for i, layer in enumerate(self.session.layers) if not layer.quiet
        ]

    def _memo(self, i: int) -> Memo:
        memo = Memo(self.session.clock, i)
        memo.tools = self.session.memos[i].tools
        return memo

    def flow(self, call: ToolCall) -> Flow:
        """A generator that asks for the client's calls and returns what the server's own call would have given."""
        return chain(call, self.ways)


@dataclass(slots=True)
class Trial:
    """Every tool called once through a stack, with made-up values."""

    session: LiveSession
    shapes: dict[str, list[Any]]  # what each shown tool returned,
    shapes_of: dict[str, list[Any]]  # and by the server's tool that was wanted


def attempt(tools: Mapping[str, Tool], layers: Sequence[Perturbation]) -> Trial:
    """Try a stack out. Raises `Unfair` where a call does not get through, or its result not back, unchanged."""
    session, way = LiveSession(tools, layers), Way(tools, layers)
    way.session.clock = session.clock
    for one in way.ways:
        one.keywords["memo"].clock = session.clock
    trial = Trial(session, {}, {})
    reached: list[ToolCall] = []
    contents: dict[str, Any] = {}

    def server(call: ToolCall) -> ToolResult:
        reached.append(call)
        return ToolResult(contents.get(call.tool))

    def send(call: ToolCall) -> ToolResult:
        for _ in range(RETRIES + 1):
            if len(session.steps) > LIMIT * (len(tools) + 1):
                raise Unfair("budget", f"the way round takes more than {LIMIT} calls for each")
            result = session.call(call, server)
            if not (result.error and result.error.retryable):
                break
        return result

    for name, args, content in forms.examples(tools):
        contents[name] = content
        reached.clear()
        start = len(session.steps)
        try:
            back = drive(way.flow(ToolCall(name, args)), send)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise Unfair("replay", f"{name!r}: the way round fails with {type(error).__name__}: {error}") from error
        if back.error or back.content != content:
            raise Unfair("replay", f"{name!r}: its result does not come back as it was ({back.error or 'changed'})")
        if not reached or any(call != ToolCall(name, args) for call in reached):
            raise Unfair("replay", f"{name!r}: its arguments do not arrive as they were")
        for step in session.steps[start:]:
            if step.result.error is None:
                trial.shapes.setdefault(step.call.tool, []).append(step.result.content)
                if step.inner:
                    trial.shapes_of.setdefault(name, []).append(step.result.content)
    _laws(session)
    return trial


def _laws(session: LiveSession) -> None:
    """Cues and mentions, as far as they go without a task."""
    shown = session.tools()
    for spec in shown:
        session.render(spec.doc)
        if "name" in spec.cues:
            continue
        if "doc" in spec.cues and spec.doc and sum(other.doc == spec.doc for other in shown) == 1:
            continue
        if "params" in spec.cues and sum(set(other.params) == set(spec.params) for other in shown) == 1:
            continue
        raise Unfair("cues", f"nothing true tells {spec.name!r} from the others")
    if session.dangling:
        raise Unfair("mentions", f"a text speaks of {session.dangling[0]!r}, which is not shown")


# ---------------------------------------------------------------- drawing


def live_domain(tools: Mapping[str, Tool]) -> Domain:
    """A server's tools in the place of a domain: no world behind them, no families, no words of its own."""

    class LiveWorld(World):
        pass

    class LiveDomain(Domain):
        name, summary, policy, world_class = DOMAIN, "The tools of a live server.", "", LiveWorld

    # a write that is not said to be safe to repeat makes something each time, for all that is known
    effects = {name: frozenset({f"{name}+"} if t.spec.writes and t.spec.lasting else ()) for name, t in tools.items()}
    LiveWorld.entries = {name: Entry(t.spec, _nothing, frozenset(), effects[name]) for name, t in tools.items()}
    LiveWorld.specs = forms.all_specs(tools)
    domain = LiveDomain()
    domain.families = {}
    return domain


def _nothing(*_: object) -> None:
    raise CrosswindError("a live server's tools are not called here")


NO_TASK = Task(id=DOMAIN, domain=DOMAIN, family="live", brief=Brief(query="", stated={}), seed=0, size=0)


class LiveScene:
    """What a layer may look at when it is drawn for a live server (see `perturbation.Scene`)."""

    def __init__(self, tools: Mapping[str, Tool], domain: Domain, layers: Layers) -> None:
        self._tools, self.domain, self.layers = tools, domain, layers
        self.task = NO_TASK

    @property
    def family(self) -> Family:
        raise CannotPerturb("a live server has no task", applies=False)

    @cached_property
    def _every(self) -> dict[str, ToolSpec]:
        out: dict[str, ToolSpec] = {}
        for nth in sorted({0, *(n for layer in self.layers for n in layer.turns())}):
            tools = forms.all_specs(self._tools)
            for layer in self.layers:
                tools = layer.on_tools(tools, nth)
            for tool in tools:
                out.setdefault(tool.name, tool)
        return out

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return {name: tool for name, tool in self._every.items() if tool.listed}

    @property
    def names(self) -> set[str]:
        return set(self._every)

    @cached_property
    def gold(self) -> list[Step]:
        """Made-up calls of every tool, as a client makes them through the layers so far."""
        return attempt(self._tools, self.layers).session.steps

    @property
    def answers(self) -> bool:
        return bool(self.path)

    @property
    def path(self) -> list[str]:
        shown = self.tools
        return [name for name in dict.fromkeys(step.call.tool for step in self.gold) if name in shown]

    def lasts(self, task: Task) -> int:
        raise CannotPerturb("a live server has no task", applies=False)

    def provable(self, task: Task) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Live:
    """A stack for a live server, tried out."""

    layers: Layers
    trial: Trial
    left_out: tuple[str, ...] = ()  # kinds that found nothing to bite on, with the reason


def draw(tools: Mapping[str, Tool], kinds: Iterable[tuple[str, int]], seed: int) -> Live:
    """One stack of some kinds over a server's tools; those that do not apply to them are left out, and said so."""
    wanted = sorted(kinds, key=lambda pair: place(perturbations[pair[0]]))
    domain, layers, left_out = live_domain(tools), Layers(), list[str]()
    for kind, severity in wanted:
        cls = perturbations[kind]
        if severity not in SEVERITIES:
            raise CannotPerturb(f"severity of {kind} is {severity}; expected 1 to 5", applies=False)
        if cls.group and any(layer.group == cls.group for layer in layers):
            left_out.append(f"{kind} does not stack with another of the group {cls.group!r}")
            continue
        why = f"{kind} finds nothing to bite on" + (f": it needs {cls.needs}" if cls.needs else "")
        for n in range(ATTEMPTS):
            try:
                layer = cls.sample(LiveScene(tools, domain, layers), rng_for("draw", seed, DOMAIN, kind, n), severity)
                if layer is None:
                    continue
                trial = attempt(tools, (*layers, layer))
                if trial.session.layers and not _bites(trial, len(layers)):
                    why = f"{kind} changes nothing here"
                    continue
            except Unfair as unfair:
                why = f"{kind} is not fair here: {unfair}"
                continue
            layers = (*layers, layer)
            break
        else:
            left_out.append(why)
    stackable(layers)
    return Live(layers, attempt(tools, layers), tuple(left_out))


def _bites(trial: Trial, at: int) -> bool:
    return at in trial.session.first or trial.session.layers[at].meets == "tools"


# ---------------------------------------------------------------- which kinds apply

# a server with every sort of tool that a kind may look for
SHOWROOM: tuple[dict[str, Any], ...] = (
    {
        "name": "search_orders",
        "description": "Search orders by customer and date.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "customer_name": {"type": "string"},
                "date": {"type": "string", "format": "date"},
                "status": {"type": "string", "enum": ["open", "paid", "cancelled"]},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["customer_name"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "result": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "order_id": {"type": "string"},
                            "total": {"type": "number"},
                            "date": {"type": "string", "format": "date"},
                            "status": {"type": "string"},
                        },
                    },
                }
            },
            "required": ["result"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "get_customer",
        "description": "Get the record of a customer.",
        "inputSchema": {
            "type": "object",
            "properties": {"customer_id": {"type": "string"}},
            "required": ["customer_id"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "city": {"type": "string"}, "balance": {"type": "number"}},
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "create_order",
        "description": "Create an order for a customer.",
        "inputSchema": {
            "type": "object",
            "properties": {"customer_id": {"type": "string"}, "item": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["customer_id", "item"],
        },
        "outputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}, "total": {"type": "number"}}},
    },
)


def needs_task(kind: str) -> str:
    """Why a kind cannot be laid over a live server; empty where it can."""
    cls = perturbations[kind]
    if cls.on_task is not Perturbation.on_task:
        return "it changes the request or the world"
    if cls.goal != "kept":
        return "it moves the goal of a task"
    if cls.plans:
        return "its way round looks ahead in the solution of a task"
    return "" if _drawable(kind) else "it needs what only a domain knows of its tools"


@lru_cache(maxsize=256)
def _drawable(kind: str) -> bool:
    """Can it be drawn for a server with every sort of tool?"""
    tools = forms.tools_of(SHOWROOM)
    return any(draw(tools, [(kind, severity)], seed).layers for severity in (3, 5, 1) for seed in (0, 1))


def applicable() -> list[str]:
    """The kinds that can be laid over a live server."""
    return [kind for kind in perturbations.names() if not needs_task(kind)]


def without_tasks(recipe: Recipe) -> Recipe:
    """A recipe for a live server. A kind that it names and that needs a task is refused; a group is narrowed."""
    bad = [k for choice in recipe.stack if choice.group is None for k in choice.weights() if needs_task(k)]
    if bad:
        reasons = "; ".join(f"{kind}: {needs_task(kind)}" for kind in dict.fromkeys(bad))
        raise CrosswindError(f"a live server has no task ({reasons}); these kinds apply: {', '.join(applicable())}")
    stack = []
    for choice in recipe.stack:
        if choice.group is None:
            stack.append(choice)
            continue
        kept = [kind for kind in choice.weights() if not needs_task(kind)]
        if not kept:
            raise CrosswindError(
                f"no kind of the group {choice.group!r} applies to a live server, which has no task; these kinds "
                f"apply: {', '.join(applicable())}"
            )
        stack.append(
            Choice(one_of=dict.fromkeys(kept, 1.0), count=choice.count, chance=choice.chance, severity=choice.severity)
        )
    return recipe.model_copy(update={"stack": tuple(stack)})


def follow(tools: Mapping[str, Tool], recipe: Recipe | None, seed: int) -> Live:
    """The stack that a recipe gives for a server and a seed: the same ones always give the same.

    Where nothing of a pick can be laid over the tools, the next one is taken, up to a bound. Raises `CannotPerturb`
    where nothing ever can, since a session under a recipe is not to be one without layers.
    """
    if recipe is None:
        return Live((), attempt(tools, ()))
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
    raise CannotPerturb(f"nothing can be laid over the {len(tools)} tools of this server: {reasons}", applies=False)


def fitted(tools: Mapping[str, Tool], layers: Layers) -> Live:
    """A stack that was drawn before, over a server's tools. Raises `CannotPerturb` where it does not go with them."""
    try:
        trial = attempt(tools, layers)
    except Unfair as unfair:
        raise CannotPerturb(f"the stack does not go with this server's tools: {unfair}", applies=False) from None
    idle = [layer.kind for i, layer in enumerate(layers) if i not in trial.session.first]
    if layers and len(idle) == len(layers):
        raise CannotPerturb(f"the stack changes nothing of this server's tools: {', '.join(idle)}", applies=False)
    return Live(layers, trial, tuple(f"{kind} changes nothing here" for kind in idle))


def condition(recipe: Recipe, layers: Layers) -> str:
    """What a session under a recipe is called; where kinds were asked for one by one, by those of them that lie."""
    parts = [(part, part.partition(":")[0]) for part in recipe.name.split("+")]
    if any(kind not in perturbations for _, kind in parts):
        return recipe.name
    laid = {layer.kind for layer in layers}
    return "+".join(part for part, kind in parts if kind in laid)
