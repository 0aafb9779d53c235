"""Kinds that show in results: wrappers, formats, keys, fields, gaps, the writing of values."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from crosswind.core.types import ToolCall, ToolResult
from crosswind.perturbations.observation import format_switch
from crosswind.perturbations.observation._locales import FORMS
from crosswind.perturbations.observation._rows import is_date, is_time
from crosswind.watch.channels import format_of, leaves, results, type_of, words
from crosswind.watch.differences import Differences
from crosswind.watch.explanation import Explanation, layer_of, nearest
from crosswind.watch.naming_tools import null_share
from crosswind.watch.observed import loaded, records

PARTS = "status ok payload about inner item count columns cells name value".split()
FEW = 3  # results that a pattern must hold in
Pairs = list[tuple[str, list[Any], list[Any]]]  # tool as it was called, results before, results after


def named_by_results(found: Differences) -> Iterator[Explanation]:
    """Everything that the change of results would fit."""
    pairs = [
        (tool, contents, after)
        for tool, contents in found.before.contents.items()
        if (after := found.after.contents.get(found.tools.now(tool), []))
    ]
    if not pairs:
        return
    wrapped = list(_wrapped(found, pairs))
    yield from wrapped
    yield from _formats(found, pairs)
    if wrapped and wrapped[0].fit > 0.8:
        pairs = _opened(wrapped[0], pairs)
        keys = dict(_renamed_keys(pairs)) if pairs else {}
        if keys and len(found.tools.renamed) > 2:
            yield from _foreign_frame(found, keys, wrapped[0])
        return
    yield from _keys(found, pairs)
    yield from _values(found, pairs)
    yield from _gaps(found)
    yield from _pages(found, pairs)


# ---------------------------------------------------------------- wrappers


def _wrapped(found: Differences, pairs: Pairs) -> Iterator[Explanation]:
    """Results inside a frame, nested, as text, lists and records taken apart."""
    known = {key for _, before, _ in pairs for content in before for one in records(content) for key in one}
    after = [content for _, _, contents in pairs for content in contents]
    frames = Counter(tuple(sorted(c)) for c in after if isinstance(c, dict))
    if not frames:
        return
    frame, n = frames.most_common(1)[0]
    tools = [t for t, _, contents in pairs if any(isinstance(c, dict) and tuple(sorted(c)) == frame for c in contents)]
    if n < 0.7 * len(after) or len(frame) > 6 or len(known & set(frame)) == len(frame) or n < min(FEW, len(after)):
        return
    framed = [c for c in after if isinstance(c, dict) and tuple(sorted(c)) == frame]
    payload = _payload(framed, known)
    if payload is None or sum(len(c) == 2 and _page(c) for c in framed) > 0.7 * len(framed):
        return
    part = dict(zip(PARTS, PARTS, strict=True)) | {"payload": payload}
    others = [key for key in frame if key != payload]
    for key in others:
        values = [c[key] for c in framed]
        if all(isinstance(v, dict) for v in values):
            part["about"] = key
        else:
            part["status"], part["ok"] = key, str(values[0])
    wraps = ["frame"]
    inner = [c[payload] for c in framed]
    if not others:
        wraps, part["inner"] = ["nest"], payload
    inner = _peeled(inner, wraps, part, known)
    recovered = sum(_is_known(c, known) for c in inner) / max(1, len(inner))
    fit = 0.55 + 0.4 * recovered - 0.1 * (len(tools) == 1 and len(pairs) > 2)
    severity = 5 if "pairs" in wraps else 4 if "text" in wraps else 3 if {"numbered", "columns"} & set(wraps) else 2
    severity = 1 if wraps == ["frame"] else severity
    layer = layer_of("envelope", wraps=tuple(reversed(wraps)), parts=part)[0]
    yield Explanation("envelope", fit, severity, (), tuple(sorted(frame)), layer)


def _payload(framed: Sequence[dict[str, Any]], known: set[str]) -> str | None:
    """The key of a frame under which results are: the one whose values are largest."""
    sizes = {key: median(len(json.dumps(c[key], default=str)) for c in framed) for key in framed[0]}
    holding = [k for k in sizes if any(_is_known(_parsed(c[k]), known) for c in framed)]
    candidates = holding or [k for k in sizes if any(isinstance(_parsed(c[k]), (dict, list)) for c in framed)]
    return max(candidates, key=lambda key: sizes[key], default=None)


def _parsed(value: Any) -> Any:
    return loaded(value) if isinstance(value, str) and value[:1] in "{[" else value


def _is_known(content: Any, known: set[str]) -> bool:
    """Do records in some content have keys from before?"""
    keys = {key for one in records(content) for key in one}
    return bool(keys & known) or content == []


def _peeled(inner: list[Any], wraps: list[Any], part: dict[str, str], known: set[str]) -> list[Any]:
    """What is in a frame, layer by layer; the ways of wrapping are added from the outside in."""
    for _ in range(5):
        if inner and sum(isinstance(c, str) and c[:1] in "{[" for c in inner) > 0.7 * len(inner):
            wraps.append("text")
            inner = [_parsed(c) for c in inner]
            continue
        sole = Counter(next(iter(c)) for c in inner if isinstance(c, dict) and len(c) == 1)
        if sole and sole.most_common(1)[0][1] > 0.7 * len(inner) and sole.most_common(1)[0][0] not in known:
            key = sole.most_common(1)[0][0]
            wraps.append("nest")
            part["inner"] = key
            inner = [c[key] if isinstance(c, dict) and set(c) == {key} else c for c in inner]
            continue
        numbered = [c for c in inner if isinstance(c, dict) and _numbering(c)]
        if numbered:
            part["item"], part["count"] = _numbering(numbered[0]) or ("item", "count")
            wraps.append("numbered")
            inner = [[v for k, v in c.items() if k != part["count"]] if _is_numbered(c, part) else c for c in inner]
            continue
        tables = [c for c in inner if isinstance(c, dict) and _columns(c)]
        if tables:
            part["columns"], part["cells"] = _columns(tables[0]) or ("columns", "cells")
            wraps.append("columns")
            inner = [_rows(c, part) for c in inner]
            continue
        named = [pair for c in inner if (pair := _pairing(c))]
        if named:
            part["name"], part["value"] = named[0]
            wraps.append("pairs")
            inner = [_unpaired(c, part) for c in inner]
            continue
        break
    return inner


def _numbering(content: dict[str, Any]) -> tuple[str, str] | None:
    found = re.fullmatch(r"(.+)_1", next((k for k in content if k.endswith("_1")), ""))
    counts = [k for k, v in content.items() if type(v) is int and v == len(content) - 1]
    return (found[1], counts[0]) if found and counts else None


def _is_numbered(content: Any, part: Mapping[str, str]) -> bool:
    return isinstance(content, dict) and part["count"] in content and content[part["count"]] == len(content) - 1


def _columns(content: dict[str, Any]) -> tuple[str, str] | None:
    if len(content) != 2 or not all(isinstance(v, list) for v in content.values()):
        return None
    (a, head), (b, cells) = content.items()
    strings = bool(head) and all(isinstance(one, str) for one in head)
    return (a, b) if strings and all(isinstance(row, list) and len(row) == len(head) for row in cells) else None


def _rows(content: Any, part: Mapping[str, str]) -> Any:
    if not isinstance(content, dict) or set(content) != {part["columns"], part["cells"]}:
        return content
    head = content[part["columns"]]
    return [dict(zip(head, row, strict=False)) for row in content[part["cells"]]]


def _pairing(content: Any) -> tuple[str, str] | None:
    """The two keys of a record that is a list of names and values."""
    while isinstance(content, list) and content and isinstance(content[0], list):
        content = content[0]
    if not isinstance(content, list) or not content or not all(isinstance(p, dict) and len(p) == 2 for p in content):
        return None
    keys = list(content[0])
    same = all(list(p) == keys for p in content) and all(isinstance(p[keys[0]], str) for p in content)
    names = [p.get(keys[0]) for p in content]
    return (keys[0], keys[1]) if same and len(set(names)) == len(names) and len(names) > 1 else None


def _unpaired(content: Any, part: Mapping[str, str]) -> Any:
    pair = {part["name"], part["value"]}
    if isinstance(content, list) and content and all(isinstance(p, dict) and set(p) == pair for p in content):
        return {p[part["name"]]: p[part["value"]] for p in content}
    return [_unpaired(one, part) for one in content] if isinstance(content, list) else content


def _opened(wrap: Explanation, pairs: Pairs) -> Pairs:
    """Results taken out of a fitted wrapper, where it fits."""
    if wrap.layer is None:
        return []
    _, layer = layer_of("envelope", **{k: v for k, v in wrap.layer.items() if k != "kind"})
    out: Pairs = []
    for tool, before, after in pairs:
        opened = []
        for content in after:
            try:
                opened.append(layer.decode_result(ToolCall(tool), ToolResult(content), None).content)  # type: ignore[union-attr, arg-type]
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
        out.append((tool, before, opened))
    return out


def _foreign_frame(found: Differences, keys: dict[str, str], wrap: Explanation) -> Iterator[Explanation]:
    """Another vendor's tools, keys and frame at once."""
    if len(wrap.keys) <= 2:
        yield Explanation("foreign_interface", 0.96, 5, tuple(sorted(found.tools.renamed)), tuple(sorted(keys)))


# ---------------------------------------------------------------- formats of whole results


def _formats(found: Differences, pairs: Pairs) -> Iterator[Explanation]:
    """Results that were objects are text now."""
    were = sum(isinstance(c, (dict, list)) for _, before, _ in pairs for c in before)
    texts = [c for _, before, after in pairs if any(isinstance(b, (dict, list)) for b in before) for c in after]
    now = [c for c in texts if isinstance(c, str)]
    if not were or len(now) < 0.3 * len(texts):
        return
    forms: list[format_switch.Format] = []
    for episode in found.after.episodes:
        for nth, call in enumerate(results(episode)):
            if nth < 5 and isinstance(call.result, str) and (form := format_switch.form_of(call.result)) not in forms:
                forms.append(form)
    layer = layer_of("format_switch", formats=tuple(forms))[0]
    yield Explanation("format_switch", 0.75 + 0.2 * len(now) / len(texts), min(5, len(forms)), (), (), layer)


# ---------------------------------------------------------------- keys


def _keyed(contents: Sequence[Any]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = defaultdict(list)
    for content in contents:
        for one in records(content):
            for key, value in one.items():
                if len(out[key]) < 200:
                    out[key].append(value)
    return out


def _renamed_keys(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Keys that are gone, with the ones that hold such values now, in the same place of the record."""
    votes: Counter[tuple[str, str]] = Counter()
    for _, before, after in pairs:
        was, now = _orders(before), _orders(after)
        olds, news = {k for order in was for k in order}, {k for order in now for k in order}
        gone, come = olds - news, news - olds
        values_was, values_now = _keyed(before), _keyed(after)
        for order in was:
            fits = [other for other in now if len(other) == len(order) and _aligned(order, other, gone, come)]
            for a, b in zip(order, fits[0], strict=True) if fits else ():
                if a in gone and b in come and _such(values_was[a], values_now[b]):
                    votes[a, b] += 1
    taken: set[str] = set()
    for (a, b), _ in votes.most_common():
        if a not in taken and b not in taken:
            taken |= {a, b}
            yield a, b


def _orders(contents: Sequence[Any]) -> set[tuple[str, ...]]:
    return {tuple(one) for content in contents for one in records(content)}


def _aligned(one: tuple[str, ...], other: tuple[str, ...], gone: set[str], come: set[str]) -> bool:
    return all(a == b or (a in gone and b in come) for a, b in zip(one, other, strict=True))


def _such(was: Sequence[Any], now: Sequence[Any]) -> bool:
    """Are values of the same types?"""
    a, b = {type_of(v) for v in was} - {"null"}, {type_of(v) for v in now} - {"null"}
    return not a or not b or bool(a & b)


def _keys(found: Differences, pairs: Pairs) -> Iterator[Explanation]:
    """Keys renamed, keys that came, texts in them."""
    renamed = dict(_renamed_keys(pairs))
    olds = {k for _, before, _ in pairs for k in _keyed(before)}
    kept: dict[str, list[Any]] = defaultdict(list)
    come: dict[str, list[Any]] = defaultdict(list)
    places: dict[str, set[str]] = defaultdict(set)
    lacking = 0
    for tool, before, after in pairs:
        was, now = _keyed(before), _keyed(after)
        lacking += sum(k not in now and k not in renamed for k in was)
        for key, values in now.items():
            target = kept if key in was or key in renamed.values() else come
            target[key] += values
            places[key].add(tool)
    if renamed:
        share = len(renamed) / max(1, len([k for k in olds if k.isidentifier()]))
        layer = layer_of("key_rename", keys=renamed)[0]
        severity = nearest(share, {1: 0.2, 2: 0.4, 3: 0.6, 4: 0.8, 5: 1.0})
        fit = 0.92 - 0.5 * (len(found.tools.renamed) > 2)
        yield Explanation("key_rename", fit, severity, (), tuple(sorted(renamed)), layer)
        if len(found.tools.renamed) > 2:
            yield Explanation("foreign_interface", 0.93, 3, tuple(sorted(found.tools.renamed)), tuple(sorted(renamed)))
    if come:
        yield from _more_keys(found, come, places, len(pairs), bool(renamed) or lacking > len(come))


def _more_keys(
    found: Differences, come: Mapping[str, list[Any]], places: Mapping[str, set[str]], tools: int, other: bool
) -> Iterator[Explanation]:
    """Fields that came: idle ones in every record, or texts that order something."""
    names = {t.name for t in found.after.listing or ()}
    orders = {key: values for key, values in come.items() if any(_orders_something(v, names) for v in values)}
    keys = tuple(sorted(come))
    added = {p for c in found.tools.tools.values() for p in c.added}
    if orders:
        n = len(orders)
        yield Explanation("injected_instruction", 0.93, 5 if n > 1 else 3, (), tuple(sorted(orders)))
    wide = sum(len(places[key]) for key in come) / (len(come) * tools)
    nest = [key for key, values in come.items() if values and all(isinstance(v, dict) for v in values)]
    flat = len([key for key in come if key not in nest])
    fit = 0.55 + 0.35 * wide - 0.5 * bool(orders) - 0.4 * other - 0.5 * bool(added) - 0.3 * bool(found.tools.added)
    yield Explanation("extra_fields", fit, nearest(flat, {1: 1, 2: 2, 3: 4, 4: 6, 5: 9}), (), keys)


def _orders_something(value: Any, names: set[str]) -> bool:
    """Is it a text that speaks of a tool, or of arguments?"""
    if not isinstance(value, str) or len(words(value)) < 4:
        return False
    return any(name in value for name in names) or bool(re.search(r"\w+\s*[=:]\s*\S", value))


# ---------------------------------------------------------------- values


def _values(found: Differences, pairs: Pairs) -> Iterator[Explanation]:
    """Dates, times and numbers in other forms; words of another field."""
    forms: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for tool, before, after in pairs:
        was, now = _at_paths(before), _at_paths(after)
        for path, values in was.items():
            sort = _sort(values)
            texts = [v for v in now.get(path, ()) if isinstance(v, str)]
            odd = [v for v in texts if not _is_plain(v, sort)]
            if sort and len(odd) >= max(1, 0.3 * len(texts)):
                names = [n for n, form in FORMS[sort].items() if any(form.read(v) is not None for v in odd)]
                names.sort(key=lambda n: -sum(FORMS[sort][n].read(v) is not None for v in odd))
                exact = [n for n in names if any(_writes(FORMS[sort][n], v) for v in odd)]
                forms[tool].setdefault(sort, (exact or names)[: 2 if len(_styles(odd)) > 1 else 1])
    if forms:
        told = {old: c.added_doc for old in forms if (c := found.tools.tools.get(old)) is not None and c.added_doc}
        sorts = {sort for one in forms.values() for sort in one}
        turns = any(len(names) > 1 for one in forms.values() for names in one.values())
        severity = (4 if told else 5) if turns else 3 if len(forms) > 2 else len(sorts)
        layer = layer_of("locale_format", forms={t: dict(one) for t, one in forms.items()}, docs=told)[0]
        named = all(names for one in forms.values() for names in one.values())
        yield Explanation(
            "locale_format",
            0.93,
            min(5, severity),
            tuple(sorted(forms)),
            tuple(sorted(sorts)),
            layer if named else None,
        )
    share = _new_words(found, pairs)
    if share > 0.25 and not forms:
        yield Explanation("entity_reskin", 0.4 + 0.5 * min(1.0, share), 1 if share < 0.4 else 3)


def _writes(form: Any, text: str) -> bool:
    value = form.read(text)
    return value is not None and form.write(value) == text


def _styles(texts: Sequence[str]) -> set[str]:
    return {re.sub(r"9+", "9", format_of(text)) for text in texts}


def _at_paths(contents: Sequence[Any]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = defaultdict(list)
    for content in contents:
        for leaf in leaves(content):
            if not isinstance(leaf.value, (dict, list)) and leaf.value is not None and len(out[leaf.path]) < 200:
                out[leaf.path].append(leaf.value)
    return out


def _sort(values: Sequence[Any]) -> str:
    """Dates, times or numbers; empty for anything else."""
    if values and all(is_date(v) for v in values):
        return "date"
    if values and all(is_time(v) for v in values):
        return "time"
    return "number" if values and all(type_of(v) == "num" for v in values) else ""


def _is_plain(text: str, sort: str) -> bool:
    return (sort == "date" and is_date(text)) or (sort == "time" and is_time(text))


def _new_words(found: Differences, pairs: Pairs) -> float:
    """The share of values out of small sets that are words never seen at their path before."""
    total = new = 0
    for _, before, after in pairs:
        was, now = _at_paths(before), _at_paths(after)
        for path, values in was.items():
            known = {v for v in values if isinstance(v, str) and len(v) < 30}
            if len(known) > max(3, len(values) / 4) or not known:
                continue
            for value in now.get(path, ()):
                if isinstance(value, str) and not any(ch.isdigit() for ch in value):
                    total, new = total + 1, new + (value not in known)
    return new / total if total >= FEW else 0.0


def scaled(found: Differences) -> dict[str, float]:
    """Numbers that are a constant times what they were: by tool and path, the factor. No kind of ours does this."""
    out = {}
    for tool, before in found.before.contents.items():
        was, now = _at_paths(before), _at_paths(found.after.contents.get(found.tools.now(tool), []))
        for path, values in was.items():
            old = [float(v) for v in values if type_of(v) == "num" and v]
            new = [float(v) for v in now.get(path, ()) if type_of(v) == "num" and v]
            if len(old) >= 10 and len(new) >= FEW and (max(new) < min(old) or min(new) > max(old)):
                out[f"{tool}{path}"] = round(median(new) / median(old), 4)
    return out


# ---------------------------------------------------------------- gaps and pages


def _gaps(found: Differences) -> Iterator[Explanation]:
    now, was = null_share(found, after=True), null_share(found, after=False)
    if now > was + 0.01 and not found.tools.added:
        yield Explanation("missing_values", 0.55, nearest(now - was, {1: 0.02, 3: 0.1, 5: 0.25}))


def _pages(found: Differences, pairs: Pairs) -> Iterator[Explanation]:
    """Lists that are now a record with the rows, and where the next page begins."""
    tools, keys, size, counts = [], set[str](), 0, list[int]()
    for tool, before, after in pairs:
        lists = [c for c in before if isinstance(c, list)]
        paged = [c for c in after if isinstance(c, dict) and len(c) == 2 and _page(c)]
        if lists and len(paged) > 0.5 * len(after):
            tools.append(tool)
            keys |= set(paged[0])
            size = max([size, *(len(v) for c in paged for v in c.values() if isinstance(v, list))])
            counts += [-(-len(c) // max(1, size)) - 1 for c in lists]
    if tools:
        pages = max(counts, default=1)
        change = [c for c in found.tools.tools.values() if c.added]
        fit = 0.9 if not change else 0.96
        yield Explanation("paged_results", fit, max(1, min(5, pages)), tuple(sorted(tools)), tuple(sorted(keys)))


def _page(content: dict[str, Any]) -> bool:
    kinds = sorted(type_of(v) for v in content.values())
    return kinds in (["list", "num"], ["list", "null"], ["list", "str"])
