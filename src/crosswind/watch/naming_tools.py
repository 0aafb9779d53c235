"""Kinds that show in the list of tools: names, descriptions, parameters, tools that came or went."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from crosswind.mcp.schema import record
from crosswind.watch.channels import words
from crosswind.watch.differences import Differences, ListingChange, ToolChange, overlap, pieces
from crosswind.watch.explanation import Explanation, explains, layer_of, nearest, share_severity
from crosswind.watch.lexicon import PENDING, SHUT
from crosswind.watch.observed import TALKING, ListedTool, records

WAITING = re.compile(r"\b(wait|sleep|pause|idle|hold|until|later|elapse|pass(?:es)? the time)", re.I)


def named_by_tools(found: Differences) -> Iterator[Explanation]:
    """Everything that the change of the list would fit."""
    change = found.tools
    if not change.is_any:
        return
    yield from _renamings(found, change)
    yield from _fewer(found, change)
    yield from _more(found, change)
    yield from _parameters(found, change)
    yield from _descriptions(found, change)


def _proved(kind: str, change: ListingChange, fit: float, more: dict[str, Any], **fields: Any) -> Explanation:
    """A hypothesis whose layer is tried on the list before the change."""
    data, layer = layer_of(kind, **fields)
    proved = explains(layer, change.before, change.after, change.renamed)
    return Explanation(kind, min(1.0, fit + 0.05 * proved), layer=data, is_proved=proved, **more)


def _count(change: ListingChange) -> int:
    """Tools other than those that talk to the user."""
    return sum(tool.name not in TALKING for tool in change.before)


# ---------------------------------------------------------------- names


def _renamings(found: Differences, change: ListingChange) -> Iterator[Explanation]:
    names = change.renamed
    if not names:
        return
    count = _count(change)
    severity = share_severity(len(names), count, len(found.before.called))
    tools = tuple(sorted(names))
    other = any(c.renamed or c.doc for old, c in change.tools.items() if old in names)
    more = {"severity": severity, "tools": tools}
    added = 0.25 * bool(change.added or change.removed)
    noise = sum(_same_words(old, new) for old, new in names.items()) / len(names)
    erased = _erased(change)
    trapped = sum(_misleads(old, new, change) for old, new in names.items()) / len(names)
    brand = _brand(names)
    if len(names) >= 0.7 * count and count > 2 and brand:
        yield _foreign(found, change, 0.95 if brand else 0.6)
    plain = 0.35 * other + added + 0.5 * bool(brand and len(names) >= 0.7 * count)
    yield _proved("name_noise", change, 0.93 * noise - plain, more, names=names)
    yield _proved("identity_erasure", change, 0.9 * erased * (1 - noise) - plain, more, names=names)
    yield _proved("semantic_trap", change, 0.9 * trapped * (1 - noise) * (len(names) > 1) - plain, more, names=names)
    meaning = 0.88 * (1 - noise) * (1 - 0.8 * trapped) * (1 - 0.8 * erased)
    yield _proved("semantic_rename", change, meaning - plain, more, names=names)


def _same_words(old: str, new: str) -> bool:
    """Does a name keep its words, in order, with at most a few letters around them?"""
    a, b = "".join(pieces(old)), "".join(pieces(new))
    return a in b and a != "" and len(pieces(new)) <= len(pieces(old)) + 3


def _brand(names: dict[str, str]) -> str:
    """A first word that nearly all new names share and no old one has."""
    if len(names) < 3:
        return ""
    firsts = Counter(_first(new) for new in names.values())
    word, n = firsts.most_common(1)[0]
    numbered = sum(any(ch.isdigit() for ch in new) for new in names.values()) > len(names) / 2
    return (
        word if not numbered and n >= 0.8 * len(names) and not any(pieces(old)[:1] == [word] for old in names) else ""
    )


def _first(name: str) -> str:
    return (pieces(name) or [""])[0]


def _erased(change: ListingChange) -> float:
    """How surely new names mean nothing: numbered or coded, one pattern for all, words that stand nowhere else."""
    known = {word[:5] for tool in change.before for word in (*words(tool.doc), *pieces(tool.name))}
    patterns = Counter(re.sub(r"[0-9a-f]*[0-9][0-9a-f]*", "9", new.lower()) for new in change.renamed.values())
    same = patterns.most_common(1)[0][1] / len(change.renamed) if len(change.renamed) > 1 else 0.5
    scores = []
    for old, new in change.renamed.items():
        parts = [p for p in pieces(new) if len(p) > 2 and not p.isdigit()]
        meant = any(p[:5] in known for p in parts) or overlap(parts, pieces(old)) > 0
        digits = any(ch.isdigit() for ch in new) and not any(ch.isdigit() for ch in old)
        scores.append(0.0 if meant and not digits else 0.35 + 0.6 * digits if not meant else 0.5)
    score = sum(scores) / len(scores)
    return min(1.0, score + 0.15 * (same > 0.9 and score > 0.3))


def _misleads(old: str, new: str, change: ListingChange) -> float:
    """Does a new name say what another tool does, rather than its own?"""
    said = pieces(new)
    own = change.tools[old].old if old in change.tools else None
    if own is None:
        return 0.0

    def fits(tool: ListedTool) -> float:
        return 2 * overlap(said, pieces(tool.name)) + overlap(said, words(tool.doc))

    mine = fits(own)
    others = max((fits(t) for t in change.before if t.name != old and t.name in change.renamed), default=0.0)
    return 1.0 if others > mine + 0.1 else 0.4 if others > mine else 0.0


def _foreign(found: Differences, change: ListingChange, fit: float) -> Explanation:
    """Another vendor's interface: what is foreign says the severity."""
    params = {old: c.renamed for old, c in change.tools.items() if c.renamed}
    docs = {old: c.new.doc for old, c in change.tools.items() if c.doc}
    severity = 4 if docs else 2 if params else 1
    fields = {"names": change.renamed, "params": params, "keys": {}, "docs": docs, "frame": ""}
    more = {
        "severity": severity,
        "tools": tuple(sorted(change.renamed)),
        "keys": tuple({p for m in params.values() for p in m}),
    }
    return _proved("foreign_interface", change, fit, more, **fields)


# ---------------------------------------------------------------- tools that went


def _fewer(found: Differences, change: ListingChange) -> Iterator[Explanation]:
    gone = change.removed
    if splits := _halves(change):
        yield Explanation("tool_split", 0.94, min(5, len(splits)), tuple(sorted(splits)))
    if not gone:
        return
    names = tuple(sorted(tool.name for tool in gone))
    merges = _merged(change) or _holds_more(found, change)
    if merges and len(gone) > len(change.added):
        yield Explanation("tool_merge", 0.88, nearest(len(change.added), {1: 1, 3: 2, 5: 3}), names)
    if len(change.after) <= max(3, len(change.before) // 2) and change.added:
        fit = 0.93 if len(gone) >= 0.6 * len(change.before) else 0.5
        yield Explanation("tool_catalogue", fit, 1, tuple(tool.name for tool in change.added))
    returns = any(_called_unlisted(found, tool.name) or _listed_later(found, tool.name) for tool in gone)
    told = bool(found.added_policy)
    if returns or told:
        fit = 0.45 + 0.25 * returns + 0.22 * told - 0.4 * bool(change.added)
        yield Explanation("tool_added", fit, nearest(len(gone), {1: 1, 3: 2, 5: 3}), names)
    if not change.added:
        fit = 0.85 - 0.3 * told - 0.3 * returns - 0.1 * (len(gone) > 1)
        layer = layer_of("missing_tool", tool=names[0])[0] if len(names) == 1 else None
        yield Explanation("missing_tool", fit, 3, names, layer=layer)


def _called_unlisted(found: Differences, name: str) -> bool:
    """Does a tool answer in an episode whose first list did not have it?"""
    return any(
        call.tool == name and call.error is None
        for episode in found.after.episodes
        if episode.listing is not None and all(tool.name != name for tool in episode.listing)
        for call in episode.work
    )


def _listed_later(found: Differences, name: str) -> bool:
    return any(name == tool.name for change in found.later for tool in change.added)


def _halves(change: ListingChange) -> list[str]:
    """Tools that are gone and of which two others have the description and the parameters."""
    known = {tool.name for tool in change.before}
    new = [tool for tool in change.after if tool.name not in known]
    out = []
    for tool in change.before:
        if any(tool.name == t.name for t in change.after):
            continue
        near = [t for t in new if _kin(tool, t)]
        if len(near) >= 2 and any(t.name in other.doc for t in near for other in near if other is not t):
            out.append(tool.name)
    return out


def _kin(tool: ListedTool, other: ListedTool) -> bool:
    return bool(tool.doc) and (other.doc.startswith(tool.doc[:40]) or overlap(words(tool.doc), words(other.doc)) > 0.4)


def _merged(change: ListingChange) -> bool:
    """Does a tool that came have the parameters of two that are gone?"""
    for tool in change.added:
        parts = [
            t
            for t in change.removed
            if overlap(words(t.doc), words(tool.doc)) > 0.15 or set(t.params) & set(tool.params)
        ]
        if len(parts) >= 2:
            return True
    return any(
        c.doc and any(overlap(words(t.doc), words(c.new.doc)) > 0.2 for t in change.removed)
        for old, c in change.tools.items()
        if old in change.renamed
    )


def _holds_more(found: Differences, change: ListingChange) -> bool:
    """Do records of a tool under a new name hold whole records or lists that they did not hold before?"""
    for old, new in change.renamed.items():
        was = {key for content in found.before.contents.get(old, ()) for one in records(content) for key in one}
        for content in found.after.contents.get(new, ()):
            for one in records(content):
                if was and any(key not in was and isinstance(value, (dict, list)) for key, value in one.items()):
                    return True
    return False


# ---------------------------------------------------------------- tools that came


def _more(found: Differences, change: ListingChange) -> Iterator[Explanation]:
    came = change.added
    if not came or change.removed:
        return
    names = tuple(tool.name for tool in came)
    told = [old for old, c in change.tools.items() if any(n in c.added_doc for n in names)]
    grown = [old for old, c in change.tools.items() if c.added_doc]
    params = {p for c in change.tools.values() for p in c.added}
    errors = found.new_errors
    texts = " ".join(text for code in errors for text in found.after.texts[code])
    twins = [(tool, like) for tool in came if (like := _like(tool, change)) is not None]
    moved = [tool for tool in came if tool.name in texts and tool.params]
    heirs = [(old, t) for old, c in change.tools.items() if c.doc for t in came if t.doc and t.doc == c.old.doc]
    if heirs and len(heirs) >= 0.4 * len(came):
        yield Explanation("redirection", 0.94, min(5, len(heirs)), tuple(old for old, _ in heirs))
    if moved or _successors(found, change):
        pairs = [(old.name, new.name) for new, old in twins]
        yield Explanation("redirection", 0.95 if moved else 0.7, min(5, len(came)), tuple(a for a, _ in pairs))
    lookalike = [tool for tool, like in twins if set(pieces(like.name)) <= set(pieces(tool.name))]
    if lookalike and not moved:
        n = len(lookalike)
        fit = 0.92 * n / len(came)
        yield Explanation("lookalike_tools", fit, min(4, n) if n <= 3 else 4, tuple(t.name for t in lookalike))
    ranked = [t for t in came if any(t.name in one for one in found.added_policy)]
    if ranked:
        of = tuple(old.name for old in change.before if any(old.name in t.doc for t in ranked))
        yield Explanation("conflicting_sources", 0.6 + 0.35 * bool(of), min(3, max(1, len(of))), of)
    if twins and not moved and len(lookalike) < len(twins):
        n = len(twins)
        fit = (0.72 + 0.2 * bool(found.added_policy)) * n / len(came)
        yield Explanation("conflicting_sources", fit, min(3, n), tuple(old.name for _, old in twins))
    idle = [tool for tool, _ in ((tool, None) for tool in came) if tool not in [t for t, _ in twins]]
    if idle and not told:
        fit = 0.55 + 0.08 * min(4, len(idle)) - 0.35 * bool(errors) - 0.3 * bool(found.added_policy) - 0.3 * bool(moved)
        fit -= 0.2 * bool(change.tools)  # something else changed with them
        severity = nearest(len(idle), {1: 2, 2: 4, 3: 8, 4: 14, 5: 24})
        fields = [_idle(tool, change) for tool in idle]
        more = {"severity": severity, "tools": tuple(t.name for t in idle)}
        yield _proved("distractor_tools", change, fit, more, tools=fields)
    if len(came) == 1:
        yield from _helpers(found, change, came[0], told, grown, params)


def _idle(tool: ListedTool, change: ListingChange) -> dict[str, Any]:
    place = [t.name for t in change.after].index(tool.name)
    params = {p: str(record(s).get("type", "string")) for p, s in tool.params.items()}
    return {"name": tool.name, "doc": tool.doc, "params": params, "at": round(place / max(1, len(change.after)), 3)}


def _like(tool: ListedTool, change: ListingChange) -> ListedTool | None:
    """The tool from before whose parameters a new one has."""
    listed = {t.name for t in change.after}
    same = [
        t
        for t in change.before
        if t.name in listed and t.params and set(t.params) == set(tool.params) and t.required == tool.required
    ]
    scored = [(overlap(words(t.doc), words(tool.doc)) + overlap(pieces(t.name), pieces(tool.name)), t) for t in same]
    top = max(scored, key=lambda one: one[0], default=None)
    return top[1] if top is not None and top[0] > 0.15 else None


def _successors(found: Differences, change: ListingChange) -> bool:
    """Do tools that are still listed fail every time, while new ones with their parameters work?"""
    failing = set(found.failing)
    return any(
        like.name in failing and tool.name in found.after.called and tool.name not in failing
        for tool in change.added
        if (like := _like(tool, change)) is not None
    )


def _helpers(
    found: Differences, change: ListingChange, tool: ListedTool, told: list[str], grown: list[str], params: set[str]
) -> Iterator[Explanation]:
    """One tool came that others need: to wait, to look something up, to have a code issued, to read a log."""
    errors, failing = found.new_errors, tuple(found.failing)
    named = any(tool.name in text for code in errors for text in found.after.texts[code])
    waits = bool(WAITING.search(f"{tool.doc} {' '.join(pieces(tool.name))}"))
    keys = tuple(sorted(params))
    if params and told:
        yield Explanation("verification_code", 0.93, min(4, len(told)), tuple(told), keys)
    elif params:
        yield Explanation("verification_code", 0.75, min(4, len(change.tools)), tuple(change.tools), keys)
    if not params and not tool.params:
        if waits:
            yield Explanation("rate_limit", 0.75 + 0.1 * bool(errors) + 0.1 * named, 2, failing)
        quiet = 0.2 * waits
        slow = any(_is_timeout(code, texts) for code, texts in found.after.texts.items() if code in errors)
        fit = 0.5 + 0.25 * slow + 0.15 * named - quiet
        yield Explanation("lost_acknowledgement", fit, min(3, max(1, len(failing))), failing)
        yield Explanation("rate_limit", 0.35 + 0.2 * bool(errors) - 0.2 * slow + 0.1 * named, 2, failing)
    if not params and len(tool.params) == 1:
        nulls = found.after.has_content and null_share(found, after=True) > null_share(found, after=False) + 0.002
        if waits:
            yield Explanation(
                "service_hours",
                0.6 + 0.3 * bool(grown),
                1 if len(grown) < 2 else 3,
                tuple(grown) or failing,
            )
            said = " ".join(f"{code} {' '.join(found.after.texts[code])}" for code in errors)
            shut = len(SHUT.findall(said)) - len(PENDING.findall(said))
            late = 0.7 + 0.15 * bool(errors) - 0.4 * bool(grown) - 0.3 * (shut > 0)
            yield Explanation("late_approval", late, min(5, max(1, len(failing))), failing)
        else:
            fit = 0.45 + 0.3 * bool(told) + 0.2 * nulls
            yield Explanation("missing_values", fit, min(5, max(1, len(told))), tuple(told))


def _is_timeout(code: str, texts: set[str]) -> bool:
    return bool(re.search(r"time.?out|deadline|504|408", f"{code} {' '.join(texts)}", re.I))


def null_share(found: Differences, *, after: bool) -> float:
    """The share of null values in results."""
    from crosswind.watch.channels import leaves

    side = found.after if after else found.before
    n = empty = 0
    for contents in side.contents.values():
        for content in contents:
            for leaf in leaves(content):
                if not isinstance(leaf.value, (dict, list)):
                    n, empty = n + 1, empty + (leaf.value is None)
    return empty / n if n else 0.0


# ---------------------------------------------------------------- parameters and descriptions


def _parameters(found: Differences, change: ListingChange) -> Iterator[Explanation]:
    if change.renamed and len(change.renamed) >= 0.7 * len(change.before):
        return  # another vendor's interface, or names with it
    renamed = {old: c.renamed for old, c in change.tools.items() if c.renamed}
    added = {old: c.added for old, c in change.tools.items() if c.added}
    retyped = {old: c.retyped for old, c in change.tools.items() if c.retyped}
    count, called = _count(change), len(found.before.called)
    if renamed and not added:
        more = {
            "severity": share_severity(len(renamed), count, called),
            "tools": tuple(sorted(renamed)),
            "keys": tuple(sorted({p for m in renamed.values() for p in m})),
        }
        yield _proved("parameter_rename", change, 0.93 - 0.2 * bool(change.renamed), more, params=renamed)
    swapped = {a: b for c in retyped.values() for was, now in c.values() for a, b in _swapped(was, now)}
    asked = " ".join(found.after.queries).lower()
    if swapped and sum(new.lower() in asked for new in swapped.values()) > sum(o.lower() in asked for o in swapped):
        yield Explanation("entity_reskin", 0.96, 2, tuple(sorted(retyped)), tuple(sorted(swapped)))
    if retyped and not added:
        n = sum(len(c) for c in retyped.values())
        fit = 0.6 + 0.3 * any(c.reworded or _retyped_hard(c) for c in change.tools.values())
        keys = tuple(sorted({p for c in retyped.values() for p in c}))
        yield Explanation("parameter_format", fit, nearest(n, {1: 1, 2: 3, 4: 6}), tuple(sorted(retyped)), keys)
    yield from _reworded(found, change)
    if added and not change.added:
        yield from _added_parameters(found, change, added)


def _swapped(was: Any, now: Any) -> list[tuple[str, str]]:
    """Choices of a parameter that have other words in their places."""
    old, new = record(was).get("enum"), record(now).get("enum")
    if not isinstance(old, list) or not isinstance(new, list) or len(old) != len(new):
        return []
    return [(str(a), str(b)) for a, b in zip(old, new, strict=True) if a != b and isinstance(b, str)]


def _retyped_hard(change: ToolChange) -> bool:
    return any(
        record(a).get("type") != record(b).get("type") or record(a).get("enum") != record(b).get("enum")
        for a, b in change.retyped.values()
    )


def _reworded(found: Differences, change: ListingChange) -> Iterator[Explanation]:
    """Only what is said of parameters changed: their form, most likely."""
    said = {old: c.reworded for old, c in change.tools.items() if c.reworded}
    if said and not any(c.added or c.renamed for c in change.tools.values()):
        keys = tuple(sorted({p for c in said.values() for p in c}))
        yield Explanation("parameter_format", 0.82, nearest(len(keys), {1: 1, 2: 2, 4: 4}), tuple(sorted(said)), keys)


def _added_parameters(
    found: Differences, change: ListingChange, added: dict[str, dict[str, Any]]
) -> Iterator[Explanation]:
    tools = tuple(sorted(added))
    kinds = Counter(str(record(s).get("type")) for schemas in added.values() for s in schemas.values())
    names = Counter(p for schemas in added.values() for p in schemas)
    one = len(names) == 1
    keys, n = tuple(sorted(names)), len(added)
    untold = all(not record(s).get("description") for schemas in added.values() for s in schemas.values())
    grown = any(c.doc for c in change.tools.values())
    required = any(set(schemas) & change.tools[old].new.required for old, schemas in added.items())
    kind = kinds.most_common(1)[0][0]
    if kind == "string" and untold and not grown and not required:
        idle = {old: tuple(schemas) for old, schemas in added.items()}
        marks = _marks(change)
        fit = 0.62 + 0.25 * bool(marks) + 0.1 * (not one)
        most = max(len(schemas) for schemas in added.values())
        severity = {1: 1, 2: 2 if n < 0.7 * len(change.before) else 3, 3: 4, 4: 5}.get(most, 5)
        more = {"severity": severity, "tools": tools, "keys": keys}
        yield _proved("schema_noise", change, fit, more, idle=idle, marks=marks)
    if kind == "boolean" and one:
        yield Explanation("stale_read", 0.92, (1 if n == 1 else 2 if n == 2 else 3) if grown else 5, tools, keys)
    if kind == "integer" and one:
        yield Explanation("paged_results", 0.92, 2, tools, keys)
    if kind == "string" and one:
        shown = _in_results(found, change, keys[0], tools)
        linked = any(
            other in c.added_doc
            for c in change.tools.values()
            for other in (t.name for t in change.after)
            if other != c.new.name
        )
        removed = any(c.removed or c.retyped for c in change.tools.values())
        yield Explanation(
            "confirm_before_write",
            0.62 + 0.25 * shown - 0.2 * (linked or removed) - 0.1 * (untold and not grown),
            min(5, n) if grown else 5,
            tools,
            keys,
        )
        yield Explanation(
            "dependency_inversion",
            0.35 + 0.35 * (n == 1) * (len(change.tools) > 1) + 0.25 * (linked or removed) - 0.2 * shown,
            3,
            tools,
            keys,
        )


def _marks(change: ListingChange) -> dict[str, Any]:
    """Keywords that every parameter of a changed tool has now and had not before."""
    out: dict[str, Any] | None = None
    for c in change.tools.values():
        for old, new in c.retyped.values():
            more = {k: v for k, v in record(new).items() if k not in record(old)}
            out = more if out is None else {k: v for k, v in out.items() if more.get(k) == v}
    return out or {}


def _in_results(found: Differences, change: ListingChange, key: str, tools: tuple[str, ...]) -> bool:
    """Do results of the tools hold a key of a parameter's name, which they did not before?"""
    contents = (c for tool in tools for c in found.after.contents.get(change.now(tool), ()))
    return any(isinstance(c, dict) and key in c for c in contents)


def _descriptions(found: Differences, change: ListingChange) -> Iterator[Explanation]:
    docs = {old: c.new.doc for old, c in change.tools.items() if c.doc}
    if not docs or change.renamed or change.added or change.removed:
        return
    plain = not any(c.added or c.renamed or c.removed or c.retyped or c.reworded for c in change.tools.values())
    grown = [old for old, c in change.tools.items() if c.added_doc]
    severity = share_severity(len(docs), _count(change), len(found.before.called))
    more = {"severity": severity, "tools": tuple(sorted(docs))}
    if plain:
        yield _proved("description_rewrite", change, 0.88 if not grown else 0.4, more, docs=docs)
    if grown and plain:
        yield Explanation("locale_format", 0.6, min(3, len(grown)), tuple(grown))
        yield Explanation("parameter_format", 0.55, min(3, len(grown)), tuple(grown))


def is_same_meaning(was: str, now: str) -> bool:
    """Does a description keep its facts: its numbers, its capitals and signs, its negations?"""

    def facts(text: str) -> set[str]:
        return {w.lower() for w in re.findall(r"\d[\w.:%-]*|\b(?:not|never|only|must|no)\b|`[^`]+`|\w+_\w+", text)}

    return facts(was) == facts(now)
