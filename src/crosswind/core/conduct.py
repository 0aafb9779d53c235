"""Laws about side effects of layers: writes, disclosures, orders, and steps that no text mentions.

What agents write is judged in `domain.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import cycle, islice, product
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core import secrets
from crosswind.core.footprints import collect, fitting
from crosswind.core.forms import replayed
from crosswind.core.legends import SENTENCE, WORD, stems
from crosswind.core.oracle import Told, Walk, Walks
from crosswind.core.perturbation import Perturbation
from crosswind.core.session import MENTION, Session
from crosswind.core.types import ASK, SAY, Refusal, Step, ToolCall
from crosswind.text import values

ORDERS = re.compile(
    r"\b(always|never|must|only|whatever|regardless|instead of|do not|don't|may not|should|has to|are to|is to"
    r"|ignore)\b",
    re.IGNORECASE,
)
CHOICES = re.compile(  # as an order: at the head of a clause, or after a word that leads to a verb
    r"(?:^|[,;:] *|\b(?:always|never|must|only|to|please|should|not|don't|and|then|we|you|who|will|shall) +)"
    r"(take|choose|pick|select|prefer|favou?r|book|reserve|order|buy|recommend|send|ignore|disregard)\b",
    re.IGNORECASE,
)
SUMS = re.compile(  # as an order, like the above: to make another figure of one
    r"(?:^|[,;:] *|\b(?:always|must|please|should|and|then|to|we|you|who|will|shall|so) +)"
    r"(?:please |kindly |just )?"
    r"(deduct|subtract|add|multiply|divide|round|convert|reduce|raise|increase|decrease|double|halve|count|include"
    r"|exclude|leave out|take off|knock off|put on top|discount|top up)\b",
    re.IGNORECASE,
)
EXTREMES = re.compile(r"\b(least|most|best|worst|top|minimum|maximum|\w{2,}est)\b", re.IGNORECASE)
OPPOSITES: Mapping[str, str] = {
    one: other
    for pair in (
        *("best worst", "highest lowest", "cheapest dearest", "cheapest priciest", "most least", "earliest latest"),
        *(
            "first last",
            "longest shortest",
            "newest oldest",
            "largest smallest",
            "biggest smallest",
            "nearest farthest",
        ),
        *("maximum minimum", "cheaper dearer", "higher lower", "fastest slowest"),
        *("greatest least", "busiest quietest", "warmest coldest", "driest wettest"),
    )
    for one, other in (pair.split(), pair.split()[::-1])
}


_DONE = r"(?:done|settled|met|arranged|carried out|taken care of|resolved|sorted out|dealt with|seen to)"
RETRACTED = re.compile(
    r"\b(?:(?:saw|see) to (?:it|that|this)|(?:never mind|forget) (?:it|that|this|about it)"
    r"|do not (?:need|want) (?:it|that|this)"
    r"|no longer (?:need\w*|want\w*|necessary|required)|i have what i (?:wanted|needed)"
    rf"|(?:has|have|was|were|is|are|already|since) (?:all |since |already |now |long |been )*{_DONE})\b",
    re.IGNORECASE,
)
REPORTED = re.compile(
    r"\b(?:tell|say|report|answer|confirm|claim|pretend|assure|inform)\b[^.;]*\b(?:(?:is|was|are|has been|have been"
    r"|been|as|all) (?:done|booked|settled|met|completed|arranged|successful\w*|carried out|in order)|success\w*)\b",
    re.IGNORECASE,
)
SPARE = 5  # look-ups, besides as many as the way has steps


def heeded(walks: Walks, *, ours: bool = False) -> None:
    """Kept: what a layer adds to policy, request or descriptions asks for nothing that the goal does not follow.

    No machine reads rules. Looked for are sentences that order something about a column of the records, while the rules
    of the task stay as they are, and that tell nothing which the way makes use of: no tool, no number, no value. At
    every draw this is asked of layers from outside; of `ours` the audit asks it.
    """
    if not ours and all(type(layer).__module__.startswith("crosswind.perturbations.") for layer in walks.layers):
        return
    _not_reversed(walks)
    keys: set[str] = set()
    sent: set[str] = set()
    for i, layer in enumerate(walks.layers):
        here, there = walks.tasks[i].brief, walks.tasks[i + 1].brief
        if layer.explains or here.rules != there.rules or layer.goal != "kept":
            continue
        texts = [(here.policy, there.policy), (here.query, there.query)]
        if layer.retools:
            before = {t.name: t.doc for t in walks.shown(i, 0)}
            texts += [(before[t.name], t.doc) for t in walks.shown(i + 1, 0) if t.name in before]
        for old, new in texts:
            if old is new or old == new or old not in new:
                continue
            for sentence in re.split(r"(?<=[.!?;])\s+|\n+", new.replace(old, " ", 1)):
                asked = old is here.query and RETRACTED.search(sentence)
                if asked or (walks.shifted.refuse and REPORTED.search(sentence)):
                    raise Unfair(
                        "kept",
                        f"{layer.kind!r} says {sentence.strip()!r}, and the goal is what it was: who believes "
                        "it is wrong",
                    )
                if layer.is_passthrough and SUMS.search(sentence):
                    raise Unfair("kept", f"{layer.kind!r} asks for what the goal does not follow: {sentence.strip()!r}")
                if (
                    not _orders(sentence, described=old is not here.policy and old is not here.query)
                    or MENTION.search(sentence)
                    or re.search(r"\d", sentence)
                ):
                    continue
                if not keys:
                    keys = _columns(walks.clean)
                    sent = {str(v).lower() for step in walks.gold.calls for _, v in secrets.scalars(step.call.args)}
                if stems(sentence) & keys and not any(v in sentence.lower() for v in sent if len(v) > 2):
                    raise Unfair("kept", f"{layer.kind!r} asks for what the goal does not follow: {sentence.strip()!r}")


def _orders(sentence: str, *, described: bool) -> bool:
    """Does a sentence say what to choose? In a description, a must alone says how things are."""
    orders, extreme = ORDERS.search(sentence), EXTREMES.search(sentence)
    return bool((CHOICES.search(sentence) and (orders or extreme)) or (orders and extreme and not described))


def _not_reversed(walks: Walks) -> None:
    """No word of the request was replaced by its opposite, while the request stays what it was."""
    for i, layer in enumerate(walks.layers):
        old, new = walks.tasks[i].brief.query, walks.tasks[i + 1].brief.query
        if old == new or layer.goal != "kept":
            continue
        before, after = set(WORD.findall(old.lower())), set(WORD.findall(new.lower()))
        for word in (after - before) & OPPOSITES.keys():
            if OPPOSITES[word] in before - after:
                raise Unfair("kept", f"{layer.kind!r} says {word!r} for {OPPOSITES[word]!r}, and the goal is the same")


def _columns(clean: Walk) -> set[str]:
    """The words by which numbers go in the results of a walk."""
    return {
        word
        for step in clean.steps
        for path, value in secrets.scalars(step.result.content)
        if isinstance(value, (int, float))
        for word in stems((path[-1] if path else "").replace("_", " "))
        if len(word) > 2
    }


def untold(walks: Walks) -> None:
    """Refusal: where nobody is able to look something up, the layers do not show it either."""
    domain, task, gold = walks.domain, walks.shifted, walks.gold
    open_task = task.unobstructed()
    start = domain.state(open_task)
    expected = [e.value for e in domain.family(task).answer(open_task, start, start)]
    if not expected:
        return
    own = secrets.own_texts(gold.session)
    said = [text for text in (gold.session.policy(), *secrets.docs(gold.session.ever.values())) if text not in own]
    for step in (*gold.steps, *attempted(gold)):
        inner = {str(value) for _, result in step.inner for _, value in secrets.scalars(result.content)}
        said += [text for text in secrets.said(step.result.content) if text not in inner]
    text = "\n".join(said)
    if all(values.shown(value, text) for value in expected):
        raise Unfair("refusal", f"what cannot be looked up is shown by the layers themselves: {expected[0]!r}")


def attempted(gold: Walk, *, opaque: bool = True) -> list[Step]:
    """Calls of every tool shown, or of those that layers add, with values from a walk, once the walk is done."""
    session = Session.of(gold.session.domain, gold.session.task, gold.session.layers)
    pool: dict[str, dict[Any, None]] = {}
    collect(pool, session.task, gold.steps)
    for step in gold.steps:
        if step.call.tool not in (ASK, SAY):
            session.call(step.call)
    done = len(session.steps) if opaque else 0
    for _ in range(1 if opaque else 2):  # once more with what the first calls showed
        for spec in session.tools():
            if spec.name == ASK or (opaque and not spec.opaque):
                continue
            choices = [fitting(name, param.type, param.enum, pool)[:2] for name, param in spec.params.items()]
            for args in islice(product(*choices), 4):
                session.call(ToolCall(spec.name, dict(zip(spec.params, args, strict=True))))
        collect(pool, session.task, session.steps[done:])
    return session.steps[done:]


def open_handed(gold: Walk) -> None:
    """Footprint: through the layers a tool writes what it is for, or what was called before and not yet done.

    A write that the world turns down counts as well: in another world it would be done.
    """
    session, entries = gold.session, gold.session.world.entries
    due = Counter[str]()  # calls of writing tools that have not written yet
    for step in attempted(gold, opaque=False):
        spec = session.ever.get(step.call.tool)
        if spec is None:
            continue
        tried = [c.tool for c, _ in step.inner if c.tool in entries and entries[c.tool].spec.writes]
        wrote = {c.tool for c, r in step.inner if c.tool in tried and r.error is None}
        due.update(spec.ids - wrote)
        for tool in tried if not spec.opaque else ():
            if tool not in spec.ids and not due[tool]:
                raise Unfair("footprint", f"calling {step.call.tool!r} makes {tool!r} write, which nobody called for")
            due[tool] -= tool not in spec.ids and tool in wrote
    _writes_what_is_sent(gold)


def _writes_what_is_sent(gold: Walk) -> None:
    """Footprint: a writing call with another id than the right one does not write what the right one would have."""
    entries = gold.session.world.entries
    for n, step in enumerate(gold.steps):
        made = [call for call, result in step.inner if call.tool in entries and entries[call.tool].effects]
        if step.result.error or not made or any(result.error for _, result in step.inner):
            continue
        for name, value in step.call.args.items():
            if not secrets.is_label(value) or not any(value in call.args.values() for call in made):
                continue
            other = value[:-1] + ("1" if value[-1] != "1" else "2") if value[-1].isdigit() else f"{value}1"
            session = replayed(gold, n)
            if session.call(step.call.with_args(**{name: other})).error is None:
                there = [call for call, result in session.steps[-1].inner if result.error is None]
                if all(call in there for call in made):
                    raise Unfair(
                        "footprint",
                        f"{step.call.tool} with {name}={other!r} writes what it would with {value!r}: what is written "
                        "does not come from the call",
                    )


AGAIN = re.compile(r"again|retr|repeat|later|once more|twice|second|wait|moment|busy", re.I)
CALLING = re.compile(  # without these, a description that says "again" may speak of anything
    r"\b(call\w*|tr(?:y|ies|ied)|retr\w+|repeat\w*|ask\w*|request\w*|send\w*|submit\w*|make|made|poll\w*|order\w*"
    r"|look\w*|look-ups?|quer\w+|answer\w*|repl\w+|result\w*|ready|come back|runs?|need\w*|work\w*|wait\w*|use)\b",
    re.I,
)


def announced(gold: Walk) -> None:
    """No secrets: a call that must come before another is spoken of, and so is a call that must be repeated."""
    session = gold.session
    own = secrets.own_texts(session)
    for told in gold.told:
        steps = gold.steps[told.first : told.after]
        if len(steps) < 2 or told.result.error is not None or steps[-1].result.error is not None:
            continue
        last = steps[-1]
        if not _tells_all(told, last):
            continue  # what came before is part of what the solution is told
        docs = [t for t in (session.policy(), *secrets.docs(session.ever.values())) if t not in own]
        answers = [s.result.error.text for s in gold.steps[: told.after] if s.result.error]
        answers += [t for s in gold.steps[: told.after - 1] for t in secrets.said(s.result.content)]
        text = session.render("\n".join([*docs, *answers]))
        for step in steps[:-1]:
            spec = session.ever.get(step.call.tool)
            error = step.result.error
            if spec is None or spec.opaque or (error and error.retryable):
                continue
            if step.call != last.call and (told.call.tool in spec.ids or _is_used(step, steps)):
                continue
            if step.call == last.call and all(s.call == last.call for s in steps) and not _says_again(docs, answers):
                raise Unfair("secrets", f"nothing shown says that {step.call.tool!r} must be called once more")
            if (
                step.call != last.call
                and not spec.opaque
                and step.call.tool != last.call.tool
                and step.call.tool not in text
            ):
                raise Unfair(
                    "secrets", f"nothing shown says that {step.call.tool!r} must be called before {last.call.tool!r}"
                )


def _says_again(docs: list[str], answers: list[str]) -> bool:
    """Does an answer say "again", or a sentence of a description that speaks of calls?"""
    sentences = (part for text in docs for part in SENTENCE.split(text))
    return any(AGAIN.search(text) for text in answers) or any(
        AGAIN.search(part) and CALLING.search(part) for part in sentences
    )


def _is_used(step: Step, steps: list[Step]) -> bool:
    """Does a later call hand on a value that this one showed?"""
    shown = {str(value) for _, value in secrets.scalars(step.result.content)}
    later = steps[steps.index(step) + 1 :]
    return any(str(value) in shown for s in later for _, value in secrets.scalars(s.call.args) if value is not None)


def _tells_all(told: Told, step: Step) -> bool:
    """Does a step alone show all that the solution is told?"""
    shown = "\n".join(secrets.said(step.result.content))
    return all(
        values.shown(v, shown) or str(v) in shown for _, v in secrets.scalars(told.result.content) if v is not None
    )


MORE = re.compile(
    rf"{AGAIN.pattern}|\b(more|next|page|part|rest|remain\w*|left|further|continue\w*|cursor|batch\w*|total|of \d+"
    r"|first \d+|up to \d+|at most|piece|stages?|incomplete|partial\w*)\b",
    re.I,
)


def whole(gold: Walk) -> None:
    """No secrets: where one call shows another part of a result each time it is made, something shown says so."""
    for told in gold.told:
        steps = gold.steps[told.first : told.after]
        for n, step in enumerate(steps[1:], 1):
            at = next((i for i, s in enumerate(steps[:n]) if s.call == step.call and not s.result.error), None)
            if at is None or step.result.error or steps[at].result == step.result or step.call.tool in (ASK, SAY):
                continue
            before = steps[at]
            held = secrets.flat(before.result.content)
            if None in held or all(isinstance(v, bool) for v in held) or any(_wrote(s, gold) for s in steps[at:n]):
                continue  # a null or a "not ready" says itself that something is not known yet
            inner = {str(v) for _, result in before.inner for _, v in secrets.scalars(result.content)}
            keys = {key for _, result in before.inner for path, _ in secrets.scalars(result.content) for key in path}
            texts = [t for t in secrets.said(before.result.content) if t not in inner | keys]
            if not MORE.search("\n".join([*_added(gold, told.after), *texts]).replace("_", " ")):
                raise Unfair(
                    "secrets",
                    f"{step.call.tool!r} answers the same call otherwise when it is made again, and nothing shown says "
                    "that there is more to come",
                )


def _added(gold: Walk, until: int) -> list[str]:
    """The sentences that layers add to policy and descriptions, the errors and the user's words up to a step."""
    session = gold.session
    own = {part for text in secrets.own_texts(session) for part in SENTENCE.split(text)}
    shown = [session.policy(), *secrets.docs(session.ever.values())]
    out = [part for text in shown for part in SENTENCE.split(text) if part not in own]
    for step in gold.steps[:until]:
        out += [*step.heard, *([step.result.error.text] if step.result.error else ())]
    return out


def _wrote(step: Step, gold: Walk) -> bool:
    entries = gold.session.world.entries
    return any(c.tool in entries and entries[c.tool].effects and r.error is None for c, r in step.inner)


DENIALS = re.compile(
    r"\b(nothing (?:was|has been|is) \w+|rejected|refused|declined|denied|turned down|not accepted|cancelled"
    r"|no \w+ (?:was|were|has been|have been) \w+"
    r"|(?:was|were|has|have|is|could|did|been) ?(?:not|n't)(?: been| be)? (?:made|done|changed|written|booked"
    r"|carried out|saved|stored|created|sent|placed|completed|executed|performed|take effect))\b",
    re.IGNORECASE,
)


def truthful(gold: Walk) -> None:
    """No secrets: no error says that nothing was done where something was."""
    entries = gold.session.world.entries
    for step in gold.steps:
        if step.result.error is None:
            continue
        done = [c.tool for c, r in step.inner if r.error is None and c.tool in entries and entries[c.tool].effects]
        if done and (found := DENIALS.search(step.result.error.text)):
            raise Unfair(
                "secrets",
                f"an error of {step.call.tool!r} says {found[0]!r}, and {done[0]!r} was done: who believes it does it "
                "twice; say that nobody knows what became of it, or undo it",
            )


LIMITED = re.compile(
    r"\b(limit\w*|at most|no more than|only|deadline|until|before|by then|minutes?|hours?|seconds?|time|times|budget"
    r"|clos\w+|open\w*|left|remain\w*|quota|allow\w*|per|once|expire\w*|valid|longer|soon|change\w*|number of)\b",
    re.IGNORECASE,
)


def unhurried(walks: Walks) -> None:
    """Slack: who looks something up that is not needed still gets there, unless a text that is shown sets a limit."""
    gold = walks.gold
    if isinstance(gold.end, Refusal) or all(layer.is_passthrough for layer in walks.layers):
        return
    session = gold.session
    harmless = [
        step.call
        for step in gold.calls
        if (spec := session.ever.get(step.call.tool)) is not None
        and not spec.writes
        and not spec.opaque
        and step.result.error is None
        and not session.since.get(step.call.tool)
    ]
    if not harmless:
        return
    spare = islice(cycle(harmless[:3]), len(gold.steps) + SPARE)
    try:
        there = walks.aside([*spare])
    except Unfair as unfair:
        why = unfair.reason
    else:
        if not isinstance(there.end, Refusal):
            return  # another answer: the way round counts calls, and knows nothing of these
        why = f"it ends with {there.final!r}"
    if not LIMITED.search("\n".join(_added(gold, len(gold.steps)))):
        raise Unfair(
            "slack",
            f"after {len(gold.steps) + SPARE} look-ups that do no harm the way no longer leads to the end ({why}), and "
            "nothing shown sets a limit; announce it, or leave room",
        )


ORDERLY = re.compile(
    rf"{LIMITED.pattern}|\b(last|latest|next|right|directly|immediately|straight|between|in between|in a row|order"
    r"|first|after|following|without|other|another|meanwhile|interrupt\w*|together|start\w*|again)\b",
    re.IGNORECASE,
)
PLACES = 8  # on the way, before which something is looked up


def undisturbed(walks: Walks) -> None:
    """Slack: who looks something up once more on the way still gets there, unless a text says otherwise."""
    gold = walks.gold
    plain = all(type(layer).handle is Perturbation.handle for layer in walks.layers)
    if plain or isinstance(gold.end, Refusal) or walks.shifted.events:
        return  # where records move, a look-up shows that, and who made it knows
    session = gold.session
    known: ToolCall | None = None
    for n, step in enumerate(gold.steps[:PLACES]):
        if known is not None:
            why = ""
            try:
                there = walks.aside([known], n)
            except Unfair as unfair:
                why = unfair.reason
            else:
                why = f"it ends with {there.final!r}" if isinstance(there.end, Refusal) else ""
            if why and not ORDERLY.search("\n".join(_added(gold, len(gold.steps)))):
                raise Unfair(
                    "slack",
                    f"with one more {known.tool!r} before {step.call.tool!r}, which does no harm, the way no longer "
                    f"leads to the end ({why}), and nothing shown says so; say what must follow at once, or leave room",
                )
        spec = session.ever.get(step.call.tool)
        if spec and not spec.writes and not spec.opaque and not step.result.error and not session.since.get(spec.name):
            known = known or step.call
