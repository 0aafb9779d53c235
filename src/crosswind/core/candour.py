"""Law "no secrets", of what is shown beside the certified way: no false rows, no false look-ups, no wrong advice.

An agent may look at more than the oracle does. What it finds there must be as true as what the oracle was told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosswind.base.errors import CrosswindError, Unfair
from crosswind.core.footprints import look_ups
from crosswind.core.legends import SENTENCE
from crosswind.core.oracle import Walk, Walks, through
from crosswind.core.secrets import SINGLE, docs, is_label, is_same, own_texts, said, scalars
from crosswind.core.session import Session
from crosswind.core.task_laws import dicts
from crosswind.core.types import ASK, SAY, Row, Step, ToolSpec

LOOKS = 24  # look-ups off the way that are compared


def true_elsewhere(walks: Walks) -> None:
    """No secrets: a look-up that the way does not need, made by the workaround, gives what the records hold."""
    domain, task = walks.domain, walks.shifted
    if task.events or walks.gold.session.world.made_up:
        return
    plans = walks.plans(len(walks.layers))
    made = {repr(told.call) for told in walks.gold.told}
    calls = [call for call in look_ups(domain, task, walks.clean.calls) if repr(call) not in made]
    for call in calls[:LOOKS]:
        true = domain.world(task).call(call)
        if true.error is not None or call.tool in task.blocked:
            continue
        try:
            there = through(Session.of(domain, task, walks.layers), plans)(call)
        except (CrosswindError, LookupError, TypeError, ValueError, AttributeError):
            return  # a workaround for the way alone; what it does elsewhere is not known
        specs = [spec for spec in walks.gold.session.ever.values() if call.tool in (spec.name, *spec.ids)]
        if there.error is None and not _holds(there.content, true.content) and not _are_described(walks.gold, specs):
            raise Unfair(
                "secrets",
                f"off the way, {call.tool} gives {there.content!r:.80} where the records hold {true.content!r:.80}: an "
                "agent that looks there is misled; show what is so, or say how to read it",
            )


def _holds(content: Any, true: Any) -> bool:
    """Does some content hold all that is true, perhaps with more keys, or in another order?"""
    if isinstance(true, Mapping):
        return isinstance(content, Mapping) and all(key in content and _holds(content[key], true[key]) for key in true)
    if isinstance(true, (list, tuple)):
        same = isinstance(content, (list, tuple)) and len(content) == len(true)
        return same and all(any(_holds(one, part) for one in content) for part in true)
    return is_same(content, true)


def no_false_rows(gold: Walk) -> None:
    """No secrets: rows that the solution passes over as no rows of the world can be told from the others."""
    for told in gold.told:
        steps = [s for s in gold.steps[told.first : told.after] if s.call.tool not in (ASK, SAY)]
        if told.result.error or len(steps) != 1 or steps[0].result.error:
            continue
        real, shown = list(_tables(told.result.content)), list(_tables(steps[0].result.content))
        if len(real) != 1 or len(shown) != 1 or len(shown[0]) <= len(real[0]):
            continue
        spec = gold.session.ever.get(steps[0].call.tool)
        if (row := _unmarked(real[0], shown[0])) is not None and not _are_described(gold, [spec] if spec else []):
            raise Unfair(
                "secrets",
                f"{told.call.tool} shows {len(shown[0])} rows, and the solution is told {len(real[0])} of them: "
                f"nothing tells that {row!r:.100} is none; mark such rows, or say which they are",
            )


def _tables(content: Any) -> Iterator[Sequence[Row]]:
    """The lists of rows in some content."""
    if isinstance(content, Mapping):
        for one in content.values():
            yield from _tables(one)
    elif isinstance(content, (list, tuple)) and content and all(isinstance(row, Mapping) for row in content):
        yield content


def _unmarked(real: Sequence[Row], shown: Sequence[Row]) -> Row | None:
    """A row more than there are, with the keys of the others and no word of its own."""
    keys = [set(row) for row in shown]
    words = [{(k, v) for k, v in row.items() if isinstance(v, (str, bool)) and str(v).isalpha()} for row in shown]
    for n, row in enumerate(shown):
        if any(row == one for one in real):
            continue
        rest = [m for m in range(len(shown)) if m != n]
        if all(keys[n] == keys[m] for m in rest) and words[n] <= set().union(*(words[m] for m in rest)):
            return row
    return None


def _are_described(gold: Walk, specs: Sequence[ToolSpec]) -> bool:
    """Does a text that layers show for some tools, or in the policy, say anything?"""
    own = own_texts(gold.session)
    return any(text not in own for text in (gold.session.policy(), *docs(specs)) if " " in text.strip())


NOW = re.compile(
    r"\b(live|current(?:ly)?|present|up[- ]to[- ](?:date|the)|latest|newest|real|actual|official|direct\w*|original"
    r"|authoritative|today|right now|fresh\w*)\b",
    re.IGNORECASE,
)
DENIED = re.compile(
    r"\b(no|not|none|never|nothing|instead|rather|without|leaves? out|apart|missing|former\w*|old|outside|long-term|may"
    r"|planned|false|wrong|unlike)\b",
    re.IGNORECASE,
)


def no_rival_figures(gold: Walk, attempted: Sequence[Step]) -> None:
    """No secrets: where a look-up that a layer adds shows other figures than the records, something says which count.

    The policy may say it, or the description of what is added may say what its figures are; then it claims nothing of
    the present, and the tools that were there are described as before unless it denies something of itself.
    """
    session = gold.session
    own = own_texts(session)
    if session.policy() not in own:
        return
    plain = {spec.name: spec.doc for spec in session.domain.tools(session.task)}
    for step in attempted:
        spec = session.ever.get(step.call.tool)
        if spec is None or not spec.opaque or spec.writes or step.result.error:
            continue
        true = dict[str, set[Any]]()
        twins = set[str]()
        for call, result in step.inner:
            for path, value in scalars(result.content) if result.error is None else ():
                if path and type(value) in (int, float):
                    true.setdefault(path[-1], set()).add(value)
                    twins.add(call.tool)
        false = [
            (path[-1], value)
            for path, value in scalars(step.result.content)
            if path and type(value) in (int, float) and path[-1] in true and value not in true[path[-1]]
        ]
        beside = [
            (part, session.render(plain.get(name, "")))
            for name in twins
            for other in session.ever.values()
            if name in other.ids
            for part in SENTENCE.split(session.render(other.doc))
        ]
        said_so = [part for part in SENTENCE.split(session.render(spec.doc)) if part not in dict(beside)]
        moved = any(part not in before for part, before in beside)
        claims = [part for part in said_so if NOW.search(part) and not DENIED.search(part)]
        denies = any(DENIED.search(part) for part in said_so)
        if false and (not said_so or claims or (moved and not denies)):
            key, value = false[0]
            raise Unfair(
                "secrets",
                f"{step.call.tool}, which is added, shows {key}={value!r} where the records hold {min(true[key])!r}, "
                "and nothing says which counts; say what its figures are, or let the policy say which to trust",
            )


FINAL = re.compile(
    r"\b(?:do not|don't|never|no (?:use|need|point)(?: in| to)?|stop|cannot be|must not|may not|will not)"
    r" (?:\w+ )?(?:try(?:ing)?|retry(?:ing)?|retried|repeat(?:ed|ing)?|call(?:ed|ing)?|attempt\w*|work)(?: \w+){0,2}"
    r" ?(?:again|any ?more|later|\W|$)"
    r"|\b(?:permanent(?:ly)?|for good|for ever|forever|no longer (?:exists?|available))\b",
    re.IGNORECASE,
)


def no_wrong_advice(gold: Walk) -> None:
    """No secrets: where an error says that it is final, the way does not go on by the same call."""
    for n, step in enumerate(gold.steps):
        if step.result.error is None or not (found := FINAL.search(step.result.error.text)):
            continue
        if any(later.call == step.call and later.result.error is None for later in gold.steps[n + 1 :]):
            raise Unfair(
                "secrets",
                f"an error of {step.call.tool!r} says {found[0].strip()!r}, and the same call works later: who "
                "believes it gives up; say that it may be tried again",
            )


GONE = re.compile(
    r"\b(?:no longer (?:\w+ ){0,2}?(?:in|on|a|exists?|available|open|operat\w+|offered|valid|used?|sold|served|there)"
    r"|out of (?:service|order|use|operation)|discontinued|withdrawn|(?:permanently|now) closed"
    r"|closed (?:down|permanently)|does not exist|do not use|must not be used|not (?:in use|valid|available)|invalid"
    r"|expired|obsolete|deleted|revoked)\b",
    re.IGNORECASE,
)


def no_false_remarks(gold: Walk) -> None:
    """No secrets: no remark that layers add calls dead what the way goes on with, or repeats what was not sent."""
    for n, step in enumerate(gold.steps):
        if step.result.error or step.call.tool in (ASK, SAY) or not step.inner:
            continue
        pairs = [pair for _, result in step.inner for pair in scalars(result.content)]
        real, keys = [value for _, value in pairs], {key for path, _ in pairs for key in path}
        held = {(path[-1], value) for path, value in pairs if path and type(value) in SINGLE}
        sent = [call.args for call, _ in step.inner]
        later = {str(v) for s in gold.steps[n + 1 :] for _, v in scalars(dict(s.call.args))}
        for record in dicts(step.result.content):
            own = {key: value for key, value in record.items() if type(value) in SINGLE}
            for value in own.values():
                if not isinstance(value, str) or value in real or not (found := GONE.search(value)):
                    continue
                if used := next((str(v) for v in own.values() if is_label(v) and v in real and str(v) in later), ""):
                    raise Unfair(
                        "secrets",
                        f"{step.call.tool} shows {used} with {found[0]!r}, and the way goes on with it: who believes "
                        "the remark takes another; leave it out",
                    )
            for key, value in own.items():
                if key not in keys and isinstance(value, str) and (wrong := _misread(key, value, own, held)):
                    raise Unfair(
                        "secrets",
                        f"{step.call.tool} shows {wrong}={own[wrong]!r} in {value!r}, and the figure is as the records "
                        "have it: who converts it is wrong; leave the unit out, or give the figure in it",
                    )
            for key in own.keys() & step.call.args.keys() - keys:
                given = step.call.args[key]
                if type(given) not in SINGLE or not any(key in args and is_same(args[key], given) for args in sent):
                    continue
                if own[key] is not None and not is_same(own[key], given):
                    raise Unfair(
                        "secrets",
                        f"{step.call.tool} was sent {key}={given!r} and shows {key}={own[key]!r}: who believes it does "
                        "it again; show what was sent",
                    )


SCALE = re.compile(
    r"(?:hundred|thousand|million|ten|dozen|cent|tenth|hundredth|thousandth|doubl|half|halve|score)", re.IGNORECASE
)


def _misread(key: str, value: str, own: Mapping[str, Any], held: set[tuple[str, Any]]) -> str:
    """The figure beside an added scale, such as "hundredths", that stands there as the records have it."""
    if not SCALE.match(value) or len(value.split()) > 2:
        return ""
    words = {*key.lower().split("_")} - {"unit", "units", "scale", "in"}
    near = (name for name, one in own.items() if type(one) in (int, float) and one and (name, one) in held)
    return next((name for name in near if not words or {*name.lower().split("_")} & words), "")


OPEN = re.compile(
    r"\b(no|not|nothing|none|never|fail\w*|error\w*|refus\w+|reject\w+|den(?:y|ied)|cannot|can't|unable|unsuccessful"
    r"|wrong|invalid|missing|conflict\w*|pending|queued|wait\w*|later|in progress|under way|proposal|order(?:ed)?"
    r"|question|again|yet)\b",
    re.IGNORECASE,
)


def no_false_success(gold: Walk) -> None:
    """No secrets: where the world refused a write, what is shown without an error says so, or leaves it open."""
    entries = gold.session.world.entries
    for step in gold.steps:
        made = [(call, result) for call, result in step.inner if call.tool in entries and entries[call.tool].effects]
        if step.result.error or not made or any(result.error is None for _, result in made):
            continue
        whole = "\n".join(said(step.result.content)).replace("_", " ")
        told = any(result.error and result.error.text and result.error.text in whole for _, result in made)
        if not told and not OPEN.search(whole):
            raise Unfair(
                "secrets",
                f"the world refused {made[0][0].tool!r}, and {step.call.tool!r} shows {step.result.content!r:.80} "
                "without an error: who believes it is done; show the error, or say that it is not done yet",
            )
