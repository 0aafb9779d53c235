"""The laws of a fair perturbation, each a function that raises `Unfair` with the law's name and the reason in words.

`certify` runs those that depend on the draw at every draw; `audit` runs the rest once for each kind. See docs/laws.md.
Laws about the task itself are in task_laws.py, those about what layers keep to themselves in secrets.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from crosswind.base.errors import Unfair, UnfairTask
from crosswind.core import legends, secrets
from crosswind.core.domain import Domain, Family, gives_away, recover, words_for
from crosswind.core.oracle import Walk, Walks, walk
from crosswind.core.perturbation import RANKS, Layers, Memo, Perturbation, dump_layers, place
from crosswind.core.session import MENTION, Session
from crosswind.core.types import ASK, SAY, Key, Param, Refusal, Step, Task, ToolCall, ToolSpec
from crosswind.text import values

TWINS = 3
SLACK = 1.5  # times the simulated time that the certified way takes

# ---------------------------------------------------------------- at every draw


def stackable(layers: Layers) -> None:
    """Order: ranks run from the world outwards, and no kind or group comes twice."""
    seen: set[str] = set()
    for layer in layers:
        for tag in filter(None, {layer.kind, layer.group}):
            if tag in seen:
                raise Unfair("order", f"{layer.kind!r} does not stack with another {tag!r}")
            seen.add(tag)
    places = [place(layer) for layer in layers]
    if places != sorted(places):
        kinds = ", ".join(layer.kind for layer in layers)
        raise Unfair("order", f"{kinds} do not stand in the order {', '.join(RANKS)}")


def alive(walks: Walks) -> None:
    """Bites: a layer that has no part in calls and shows nothing must at least change the task."""
    for i, layer in enumerate(walks.layers):
        if layer.is_passthrough and not layer.retools and walks.tasks[i] == walks.tasks[i + 1]:
            raise Unfair("bites", f"{layer.kind!r} changes nothing")


def stated(family: Family, task: Task) -> None:
    """Stated: every stated value is recovered from the query's words alone, and no withheld one."""
    query = task.brief.query
    found = recover(query, family.details, task.brief.stated)
    for key, value in task.brief.stated.items():
        if key not in found or found[key] != value:
            got = f"gives {found[key]!r}" if key in found else "does not give exactly one value of its kind"
            raise Unfair("stated", f"{key} is {value!r}, but the query {got}: {query!r}")
    if given := gives_away(query, family.details, task):
        raise Unfair("stated", f"{given} is withheld, but the query gives it: {query!r}")
    for change in task.changes:
        if recover(change.words, family.details, change.stated) != change.stated:
            raise Unfair("stated", f"the words {change.words!r} do not give {change.stated}")


def kept(clean: Walk, reference: Walk) -> None:
    """Kept: a layer that keeps the goal leaves the canonical run as it was."""
    if (clean.changes, clean.end) != (reference.changes, reference.end):
        raise Unfair("kept", f"the request changed its meaning: {reference.final!r} instead of {clean.final!r}")


def replayed(gold: Walk, reference: Walk) -> None:
    """Replay: through the layers the oracle comes to the end of the reference run."""
    if isinstance(reference.end, Refusal):
        last = reference.told[-1] if reference.told else None
        hint = (
            f" (an error of {last.call.tool!r} ended it; a solution that knows a way on catches `ToolFailed`)"
            if last and last.result.error and reference.end.reason in last.result.error.text
            else ""
        )
        raise Unfair("replay", f"the request cannot be met, and no layer claims so: {reference.end.reason}{hint}")
    if isinstance(gold.end, Refusal):
        raise Unfair("replay", f"the oracle gave up: {gold.end.reason}")
    if gold.end != reference.end:
        raise Unfair("replay", f"the oracle answers {gold.end!r} instead of {reference.end!r}")
    if gold.changes != reference.changes:
        raise Unfair("replay", f"the oracle leaves {words_for(gold.changes)}, not {words_for(reference.changes)}")


def reached(domain: Domain, task: Task, gold: Walk) -> None:
    """Goal: the end that the oracle comes to meets the family's goal, which knows nothing of the oracle."""
    for check in domain.family(task).checks(task, domain.state(task), gold.session.world.state, gold.final):
        if not check.passed:
            raise Unfair(
                "goal", f"the oracle's end fails the check {check.name!r}: {check.why}; it said {gold.final!r}"
            )
    if domain.grounds and domain.family(task).understood(task, gold.final) == "question":
        raise Unfair("goal", f"the user takes the oracle's last words for a question and goes on: {gold.final!r}")


def refused(gold: Walk) -> None:
    """Refusal: where refusing is right the oracle refuses, and leaves nothing behind."""
    if not isinstance(gold.end, Refusal):
        raise Unfair("refusal", f"it should be refused, but the oracle ended with {gold.end!r}")
    if gold.changes:
        raise Unfair("refusal", f"the oracle refused and left something behind: {words_for(gold.changes)}")


def found_out(task: Task, gold: Walk, reference: Walk) -> None:
    """Refusal: through the layers the oracle comes as far as without them before it refuses."""

    def made(walked: Walk) -> list[ToolCall]:
        return [call for step in walked.steps for call, _ in step.inner if call.tool not in task.blocked]

    if not isinstance(reference.end, Refusal):
        raise Unfair("refusal", f"on the canonical interface the request is met: {reference.final!r}")
    there = made(gold)
    if short := [call for call in made(reference) if call not in there]:
        raise Unfair("refusal", f"the oracle gave up before it could know: {short[0].tool!r} was not reached")


def grounded(walks: Walks, *, own: bool = False) -> None:
    """Grounded: every value in a gold call was shown before: in the query, the docs, a result, the user's words.

    A value that a schema merely lists among others counts only where the choice makes no difference. With `own`, what
    the clean walk already uses without having been shown it is the solution's own, and no layer's doing; so is a value
    that reaches the world in the form that was shown, whatever form the layers ask for. The same holds where a legend
    says how values are written.
    """
    task, gold = walks.shifted, walks.gold
    explained = any(layer.explains for layer in walks.layers)
    for call, name, value, behind, listed in _unshown(task, gold):
        if explained and any(shown for _, shown in behind):
            continue
        if own:
            used = [one for _, _, one, _, _ in _unshown(walks.clean.session.task, walks.clean)]
            if value in used or any(shown or v in used for v, shown in behind):
                continue
        if not listed:
            if secrets.is_encoded(gold, value):
                continue
            raise Unfair("grounded", f"{call.tool}({name}={value!r}) uses a value that was never shown")
        if any(shown for _, shown in behind):
            continue  # a code for what was stated, which `secrets` looks at
        if (other := _matters(walks, call, name, value, listed)) is not None:
            raise Unfair(
                "grounded",
                f"{call.tool}({name}={value!r}) chooses a value that nobody stated: the schema lists it, and "
                f"{other!r} as well, which leads to another end",
            )


def _matters(walks: Walks, call: ToolCall, name: str, value: Any, listed: Sequence[Any]) -> Any:
    """Another listed value that leads to another end; None: whichever is chosen, the end is the same.

    One that leaves undone what was asked for, where the note of the parameter says what each choice does, is no choice.
    """
    gold = walks.gold
    spec = gold.session.ever.get(call.tool)
    note = spec.params[name].doc if spec and name in spec.params else ""
    told = all(values.shown(one, note) for one in listed if isinstance(one, str)) and len(_stems(note)) > 2 * len(
        listed
    )
    for other in listed:
        if other == value:
            continue
        try:
            there = walks.instead(call, call.with_args(**{name: other}))
        except Unfair:
            continue  # anyone who tries it notices
        if told and there.changes != gold.changes and there.changes.items() <= gold.changes.items():
            continue
        if (there.end, there.changes) != (gold.end, gold.changes):
            return other
    return None


Unshown = tuple[ToolCall, str, Any, list[tuple[Any, bool]], Sequence[Any]]


def _unshown(task: Task, gold: Walk) -> Iterable[Unshown]:
    """Values in the calls of a walk that were not shown before, and those they stand for in the world: were they?

    The last part is what the schema lists for the parameter, if it lists the value.
    """
    later = sorted(gold.session.since.items(), key=lambda pair: -pair[1])  # tools that were listed only then
    shown = _Shown(())
    shown.read(gold.session.query())
    shown.read(task.brief.policy)
    for n, step in enumerate(gold.steps):
        new = list[ToolSpec]()
        while later and later[-1][1] <= n:
            new.append(gold.session.ever[later.pop()[0]])
        if new:
            shown.tools = (*shown.tools, *new)
        if step.call.tool not in (ASK, SAY):
            spec = gold.session.ever.get(step.call.tool)
            for name, value in _scalars(step.call.args):
                param = spec.params.get(name) if spec else None
                listed = param.enum if param and value in param.enum and name in step.call.args else ()
                if isinstance(value, bool) and param is not None and not _says_which(shown, name, param, spec):
                    yield step.call, name, value, [], (True, False)
                elif not (shown.tells(value) if len(listed) > 1 else shown.holds(value)):
                    if param and spec and _is_described(name, param, spec):
                        beside = [v for key, v in _scalars(step.call.args) if key != name and shown.holds(v)]
                        if _is_count(value, gold.steps[:n], spec) or _is_made(value, name, param, spec, beside):
                            continue
                    # a call that failed on its way reached the world when it was repeated
                    inner = step.inner or next((s.inner for s in gold.steps if s.call == step.call and s.inner), ())
                    behind = [v for call, _ in inner for n, v in _scalars(call.args) if n == name]
                    yield step.call, name, value, [(v, shown.holds(v)) for v in behind if v != value], listed
        shown.take(step.result.content)
        if step.result.error:
            shown.read(step.result.error.text)
        for words in step.heard:
            shown.read(words)


def _is_described(name: str, param: Param, spec: ToolSpec) -> bool:
    """Does a description say anything of a parameter?"""
    return bool(param.doc) or bool({*name.lower().split("_")} & legends.stems(spec.doc))


def _is_made(value: Any, name: str, param: Param, spec: ToolSpec, beside: Sequence[Any]) -> bool:
    """Does a description say how to make it of the other arguments, which were shown?"""
    about = [part for part in legends.SENTENCE.split(spec.doc) if {*name.lower().split("_")} & legends.stems(part)]
    return str(value) in legends.made_of(" ".join([param.doc, *about]), beside)


def _is_count(value: Any, steps: Sequence[Step], spec: ToolSpec) -> bool:
    """Is it the number of the last calls of a tool, or of the rows that they showed?"""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    rows = calls = 0
    for step in reversed([step for step in steps if step.call.tool == spec.name]):
        rows, calls = rows + _rows_in(step.result.content), calls + 1
        if value in (rows, rows + 1, calls, calls + 1):
            return True
    return False


def _rows_in(content: Any) -> int:
    if isinstance(content, dict):
        return sum(map(_rows_in, content.values()))
    return len(content) if isinstance(content, (list, tuple)) else 0


def _says_which(shown: _Shown, name: str, param: Param, spec: ToolSpec | None) -> bool:
    """Does something say whether a yes or a no is wanted: the request, a result, or a rule in a description?"""
    text = f"{param.doc} {spec.doc if spec else ''}".lower()
    if re.search(r"\b(true|false|yes|no|whether)\b", text):
        return True
    return any(shown.tells(word) for word in name.split("_") if len(word) > 2)


class _Shown:
    """What an agent has been shown so far. Texts are taken apart when a value is nowhere by itself."""

    def __init__(self, tools: Collection[ToolSpec]) -> None:
        self.tools = tools  # whose descriptions the agent has now, and which were not read yet
        self.known: set[Any] = set()  # keys and values of results, and the words of texts as they are
        self.texts: list[str] = []
        self.apart = 0  # texts whose words are known

    def read(self, text: str) -> None:
        if text:
            self.texts.append(text)

    def take(self, content: Any) -> None:
        if isinstance(content, str):
            self.known.add(content)
            self.read(content)
        elif isinstance(content, dict):
            self.known.update(content)
            for value in content.values():
                self.take(value)
        elif isinstance(content, (list, tuple)):
            for value in content:
                self.take(value)
        else:
            self.known.add(content)

    def holds(self, value: Any) -> bool:
        """Was it shown, as it is or in another form of its kind?"""
        if value is None or isinstance(value, bool) or self._knows(value):
            return True
        for text in self.texts[self.apart :]:
            self.known.update(_tokens(text))
        self.apart = len(self.texts)
        if self._knows(value):
            return True
        if self.tools:
            self._read_docs()
            return self.holds(value)
        return any(values.shown(value, text) for text in self.texts) or (
            isinstance(value, str) and any(value in legends.counted(text, self.dates) for text in self.texts)
        )

    @property
    def dates(self) -> set[str]:
        return {one for text in self.texts for one in values.dates(text)}

    def tells(self, value: str) -> bool:
        """Does a text other than the tools' descriptions speak of a listed value, in these or related words?"""
        if value in self.known:
            return True
        said = {w[:4] for text in (*self.texts, *filter(_is_text, self.known)) for w in _stems(text)}
        return all(w[:4] in said for w in _stems(value.replace("_", " ")))

    def _knows(self, value: Any) -> bool:
        return value in self.known or str(value) in self.known

    def _read_docs(self) -> None:
        for spec in self.tools:
            self.read(spec.doc)
            for param in spec.params.values():
                self.known.update(param.enum)
                self.read(param.doc)
        self.tools = ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_TOKEN = re.compile(r"\w+(?:[-.:]\w+)*")


@lru_cache(maxsize=4096)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(text))


def _scalars(args: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(args, dict):
        for key, value in args.items():
            if isinstance(value, (dict, list, tuple)):
                yield from _scalars(value, key)
            else:
                yield key, value
    elif isinstance(args, (list, tuple)):
        for value in args:
            yield from _scalars(value, name)
    else:
        yield name, args


def cues(domain: Domain, gold: Walk) -> None:
    """Cues: each gold tool can be told from the others by something true: its name, its description, its parameters.

    Where a description is all that is left, a matcher that reads descriptions alone must pick the tool among those of
    the domain; what layers add besides says itself that it is something else. In a foreign toolbox any tool may be
    wanted, and descriptions need only differ.
    """
    session = gold.session
    foreign = session.toolbox.foreign
    shown = [t for t in session.tools() if t.name != ASK]
    used = {t.name for t in shown} if foreign else {step.call.tool for step in gold.calls}
    for spec in shown:
        if spec.name not in used or ("name" in spec.cues and (foreign or _name_tells(domain, spec, shown))):
            continue
        if "doc" in spec.cues and spec.doc and sum(o.doc == spec.doc for o in shown) == 1:
            meanings = [domain.world_class.entries[i].spec for i in sorted(spec.ids) if i in domain.world_class.entries]
            if spec.opaque or foreign or not meanings:
                continue
            picks = [match(meaning, [t for t in shown if t is spec or not t.opaque]) for meaning in meanings]
            if spec.name in picks:
                continue
            raise Unfair("cues", f"by its description {spec.doc!r} alone, {spec.name!r} is taken for {picks[0]!r}")
        if "params" in spec.cues and sum(set(o.params) == set(spec.params) for o in shown) == 1:
            continue
        raise Unfair(
            "cues", f"nothing true tells {spec.name!r} from the others (left: {sorted(spec.cues) or 'nothing'})"
        )


def _name_tells(domain: Domain, spec: ToolSpec, shown: Sequence[ToolSpec]) -> bool:
    """Can a name be relied on? Where all else is the same, it must have to do with its own tool, not with the other."""
    alike = [o for o in shown if o.doc == spec.doc and o is not spec and not o.opaque]
    alike = [other for other in alike if set(other.params) == set(spec.params)]
    if not alike or spec.opaque:
        return True  # names are unique

    def words(name: str) -> frozenset[str]:
        return _stems(name.replace("_", " "))

    own = _meaning(domain, spec)
    return all((words(spec.name) - words(o.name)) & (own - _meaning(domain, o)) for o in alike)


def _meaning(domain: Domain, spec: ToolSpec) -> set[str]:
    entries = domain.world_class.entries
    texts = [t for i in spec.ids if i in entries for t in (i.replace("_", " "), MENTION.sub("", entries[i].spec.doc))]
    return set().union(*map(_stems, texts))


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    return frozenset(w[:-1] if len(w) > 3 and w.endswith("s") else w for w in re.findall(r"[a-z]+", text.lower()))


def match(wanted: ToolSpec, shown: Sequence[ToolSpec]) -> str:
    """The shown tool whose description is nearest to that of the tool wanted; names play no part."""
    docs = {t.name: _stems(t.doc) for t in shown}
    count: dict[str, int] = {}
    for words in docs.values():
        for word in words:
            count[word] = count.get(word, 0) + 1
    want = _stems(MENTION.sub("", wanted.doc))

    def score(name: str) -> float:
        words = docs[name]
        common: float = math.fsum(1 + math.log(len(docs) / count[w]) for w in want & words)
        return float(common / (1 + len(words)) ** 0.25)  # more words besides are hardly a fault

    return max(docs, key=lambda name: (score(name), name))


def mentions(domain: Domain, gold: Walk) -> None:
    """Mentions: a tool that a shown text speaks of is shown, and no text gives away a name that is not.

    Names in a foreign toolbox's own texts do not count: the proxy replaces them.
    """
    session = gold.session
    shown = session.tools()
    texts = [session.policy(), *(t.doc for t in shown), *(s.result.error.text for s in gold.steps if s.result.error)]
    if session.dangling:
        raise Unfair("mentions", f"a shown text speaks of {session.dangling[0]!r}, which is not shown")
    names = {t.name for t in domain.tools(session.task) if "_" in t.name}  # a single word may mean what it says
    hidden = names - set(session.specs)
    if hidden and not session.toolbox.foreign:
        text = " ".join(texts)
        if any(name in text for name in hidden) and (leaked := hidden & set(re.findall(r"\w+", text))):
            raise Unfair("mentions", f"a shown text gives away {sorted(leaked)[0]!r}, a name that is no longer shown")


def bites(clean: Walk, gold: Walk) -> None:
    """Bites: the certified way meets every obstacle, and what it shows differs from the clean run."""
    session = gold.session
    for i, layer in enumerate(session.layers):
        if i not in session.first:
            raise Unfair("bites", f"the way never meets {layer.kind!r}")
    if session.layers and not any(one != other for one, other in zip_longest(_view(clean), _view(gold))):
        raise Unfair("bites", "the agent sees nothing that differs from the clean run")


def _view(walked: Walk) -> Iterator[Any]:
    """What an agent sees of a walk, piece by piece: two of them mostly differ early."""
    session = walked.session
    yield session.query()
    yield from ((s.call, s.result, s.heard) for s in walked.steps)
    yield session.policy()
    yield from session.tools()


def leisurely(gold: Walk) -> None:
    """Slack: where time is limited there is half as much again as the certified way takes, with all its detours."""
    session = gold.session
    for layer, memo in zip(session.layers, session.memos, strict=True):
        slack = layer.slack(memo)
        if slack is not None and slack < SLACK:
            raise Unfair("slack", f"{layer.kind!r} leaves {slack:.2f} times the time that the way takes, not {SLACK:g}")


# ---------------------------------------------------------------- once for each kind


def value(domain: Domain, walks: Walks, first: Walk) -> None:
    """Value: a layer is its JSON, changes nothing it is handed, and remembers in its notes alone, as JSON.

    `first` is the walk that the layers were drawn with: it must come out the same once more.
    """
    layers, gold = walks.layers, walks.gold
    repeatable(first, gold, "a layer remembers outside its notes")
    before = dump_layers(layers)
    if (
        tuple(type(one).model_validate_json(json.dumps(data)) for one, data in zip(layers, before, strict=True))
        != layers
    ):
        raise Unfair("value", "a layer differs from what its JSON loads as")
    for layer, memo in zip(layers, gold.session.memos, strict=True):
        try:
            same = json.loads(json.dumps(memo.notes)) == memo.notes
        except (TypeError, ValueError):
            same = False
        if not same:
            raise Unfair("value", f"{layer.kind!r} keeps notes that are not JSON")
        tools = domain.tools(walks.shifted)
        shown = repr(tools)
        layer.on_tools(tools, 0)
        if repr(tools) != shown:
            raise Unfair("value", f"{layer.kind!r} changes the tools it is handed")


def repeatable(gold: Walk, again: Walk, why: str) -> None:
    """Value: nothing but the draw decides how a walk goes."""
    if _steps(again) != _steps(gold) or again.end != gold.end:
        raise Unfair("value", f"the same task walked twice gives two walks: {why}")


def _steps(walked: Walk) -> list[Any]:
    return [(s.call, s.result, s.inner) for s in walked.steps]


def seeded(layers: Layers, again: Layers) -> None:
    """Seeded: the same seed gives the same draw."""
    for layer, other in zip_longest(layers, again):
        if layer != other:
            raise Unfair("seeded", f"{(layer or other).kind!r} drawn twice with one seed gives two draws")


def round_trip(gold: Walk) -> None:
    """Round trip: where plain maps are used, decoding gives back what was encoded, for every tool."""
    session = gold.session
    for layer, memo in zip(session.layers, session.memos, strict=True):
        if (
            layer.is_passthrough
            or type(layer).handle is not Perturbation.handle
            or type(layer).perform is not Perturbation.perform
        ):
            continue
        for spec in memo.tools.values():
            call = ToolCall(spec.name, {name: _sample(param) for name, param in spec.params.items()})
            if layer.decode_call(layer.encode_call(call)) != call:
                raise Unfair("round trip", f"{layer.kind!r} does not give back a call of {spec.name!r}")
        for step in gold.steps:
            for call, result in step.inner:
                scratch = Memo(session.clock, memo.place)
                shown = layer.encode_result(call, result, scratch)
                if layer.decode_result(call, shown, scratch) != result:
                    raise Unfair("round trip", f"{layer.kind!r} does not give back a result of {call.tool!r}")


def _sample(param: Param) -> Any:
    if param.enum:
        return param.enum[0]
    return {"string": "text", "integer": 7, "number": 2.5, "boolean": True, "array": ["a"]}.get(param.type, {"a": 1})


def closed(domain: Domain, task: Task, layers: Layers) -> None:
    """Closed: a name that is not shown does not work."""
    moments = sorted({0, *(n for layer in layers for n in layer.turns())})
    args: dict[str, list[ToolCall]] = {}
    for step in walk(domain, task.unobstructed()).calls:
        args.setdefault(step.call.tool, []).append(step.call)
    for nth in moments:
        session = Session.of(domain, task, layers)
        session.show(nth)
        names = {t.name for t in domain.tools(task)} | set(session.specs)
        for name in sorted(names - {t.name for t in session.tools()}):
            for call in args.get(name, [ToolCall(name)]):
                session.clock.nth = nth - 1  # each is tried at this moment: the name may be back at the next
                session.show(nth)
                if session.call(call).error is None:
                    raise Unfair("closed", f"{name!r} is not shown at call {nth} and still works")


def twin(domain: Domain, task: Task, layers: Layers, certify: Callable[[Domain, Task, Layers], object]) -> None:
    """Twin: the same layers carry the oracle through a world whose values on the path differ."""
    if task.refuse or any(layer.goal == "refuse" for layer in layers):
        return
    for other in twins(domain, task, TWINS):
        shifted = other
        for layer in layers:
            shifted = layer.on_task(shifted)
        if isinstance(walk(domain, shifted).end, Refusal):
            continue  # what the layers ask for cannot be had there, no matter who tries
        try:
            certify(domain, other, layers)
        except UnfairTask:
            continue  # a tie there, say: no layer is to blame
        except Unfair as unfair:
            if unfair.law in ("replay", "grounded", "kept", "goal"):
                raise Unfair(
                    "twin", f"in a twin world the way round fails ({unfair}): the draw holds the answer"
                ) from None


def twins(domain: Domain, task: Task, count: int) -> list[Task]:
    """Worlds in which the same request leads another way, as far as there are any."""
    seen: set[Key] = set()
    here = walk(domain, task, seen=seen)
    out = []
    for salt in range(4 * count):
        other = domain.varied(task, seen, lambda table, id, column: f"{table}.{column}" not in domain.named, salt)
        there = walk(domain, other)
        moved = there.end != here.end or [s.call for s in there.steps] != [s.call for s in here.steps]
        if moved and not isinstance(there.end, Refusal) and domain.family(task).ends(other, domain.state(other)):
            out.append(other)
        if len(out) == count:
            break
    return out
