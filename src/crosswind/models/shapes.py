"""Results of today in the shape that an agent knows: taken out of what they are wrapped in, keys by their old names."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crosswind.models.interface import ResultShape, look_of, words_of

LOOKED = 300  # parts of a result that are looked at
DEEP = 8  # levels
HELD = 0.8  # of a record inside another one, to be taken for what was asked
GOOD = 0.6  # share of the known keys that a part must have
NUMBERED = re.compile(r"(.*?)[_\s-]?(?<!\d)(\d{1,9})")


def in_shape(data: Any, shape: ResultShape, *, keys: bool = True) -> Any:
    """A result in a known shape, or the result itself where no part of it fits better. `keys`: with the known names."""
    best, chosen = _fit(data, shape) + 1e-9, data
    for part in _parts(data):
        if (fit := _fit(part, shape)) > best:
            best, chosen = fit, part
    if best < GOOD:
        return data
    if shape.many and isinstance(chosen, Mapping):
        chosen = [chosen]
    elif not shape.many and isinstance(chosen, list) and len(chosen) == 1:
        chosen = chosen[0]
    return with_known_keys(chosen, shape) if keys else chosen


def found_in(results: Iterable[Any], value: Any, shape: ResultShape) -> Any:
    """A record in the known shape that earlier results hold inside a record with a value; None where there is none."""
    for result in results:
        rows = result if isinstance(result, list) else [result]
        for part in (inner for row in rows for inner in (row, *_parts(row))):
            if not isinstance(part, Mapping) or value not in part.values():
                continue
            for inner in part.values():
                if isinstance(inner, Mapping | list) and _fit(inner, shape) > HELD:
                    return in_shape(inner, shape)
    return None


def lacks(data: Any, shape: ResultShape) -> bool:
    """Do the records of a result lack keys that the agent knows?"""
    rows = data if isinstance(data, list) else [data]
    return bool(rows) and all(isinstance(row, Mapping) and shape.keys.keys() - row.keys() for row in rows)


def joined(one: Any, other: Any) -> Any:
    """Two results about the same as one: records together, lists by a key that both have; None where neither goes."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {**other, **one}
    if not (isinstance(one, list) and isinstance(other, list) and one and len(one) == len(other)):
        return None
    if not all(isinstance(row, Mapping) for row in (*one, *other)):
        return None
    for key in one[0]:
        rows = {json.dumps(row.get(key)): row for row in other if key in row}
        if len(rows) == len(one) and all(json.dumps(row.get(key)) in rows for row in one):
            return [{**rows[json.dumps(row.get(key))], **row} for row in one]
    return None


def with_known_keys(data: Any, shape: ResultShape) -> Any:
    """Records with the keys that the agent knows, where it is clear which is which."""
    rows = data if isinstance(data, list) else [data]
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        return data
    names = renamed(shape, rows)
    out = [
        {names.get(key, key): _typed(value, names.get(key, key), shape) for key, value in row.items()} for row in rows
    ]
    return out if isinstance(data, list) else out[0]


def _typed(value: Any, key: str, shape: ResultShape) -> Any:
    """A number as text, where the agent knows text."""
    if isinstance(value, int) and not isinstance(value, bool) and key in shape.texts:
        return str(value)
    return value


def renamed(shape: ResultShape, rows: list[Any]) -> dict[str, str]:
    """Keys of today -> keys that are known; those that are not clear are left out."""
    here: dict[str, set[str]] = {}
    for row in rows[:20]:
        for key, value in row.items():
            here.setdefault(key, set()).update([] if value is None else [look_of(value)])
    strange = [key for key in here if key not in shape.keys]
    lacking = [key for key in shape.keys if key not in here]
    if not strange or not lacking:
        return {}
    if len(strange) == len(lacking) and all(
        _compatible(here[new], shape.keys[old]) for new, old in zip(strange, lacking, strict=True)
    ):
        return dict(zip(strange, lacking, strict=True))  # the order is kept
    scores = sorted(
        (
            (-len(words_of(new) & words_of(old)) - 0.5 * bool(here[new] & set(shape.keys[old])), new, old)
            for new in strange
            for old in lacking
            if _compatible(here[new], shape.keys[old])
        ),
    )
    found: dict[str, str] = {}
    for score, new, old in scores:
        rivals = [s for s, n, o in scores if (n == new) != (o == old) and n not in found and o not in found.values()]
        if new not in found and old not in found.values() and (not rivals or min(rivals) > score):
            found[new] = old
    return found


def _compatible(looks: set[str], known: list[str]) -> bool:
    return not looks or not known or bool(looks & set(known))


def _fit(part: Any, shape: ResultShape) -> float:
    """From 0 to 1: how well a part of a result is what the agent knows."""
    if isinstance(part, list):
        if not part:
            return GOOD if shape.many else 0.0
        if not all(isinstance(row, Mapping) for row in part):
            return 0.0
        return (1.0 if shape.many else 0.9 if len(part) == 1 else 0.0) * _record_fit(part[0], shape)
    if isinstance(part, Mapping):
        return (0.9 if shape.many else 1.0) * _record_fit(part, shape)
    return 0.0


def _record_fit(row: Mapping[str, Any], shape: ResultShape) -> float:
    if not shape.keys:
        return 0.0
    same = sum(key in row for key in shape.keys)
    names = renamed(shape, [row])
    by_word = sum(bool(words_of(new) & words_of(old)) for new, old in names.items())
    certain = same + 0.9 * by_word + 0.75 * (len(names) - by_word)
    return certain / max(len(shape.keys), len(row) * 0.75)


def _parts(data: Any) -> Iterator[Any]:
    """What is inside a result, and other readings of it, the outermost first."""
    queue: deque[tuple[Any, int]] = deque([(data, 0)])
    for _ in range(LOOKED):
        if not queue:
            return
        part, depth = queue.popleft()
        if depth:
            yield part
        if depth < DEEP:
            queue += ((inner, depth + 1) for inner in _inside(part))


def _inside(part: Any) -> Iterator[Any]:
    if isinstance(part, str) and part.lstrip()[:1] in ("{", "["):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            return
    elif isinstance(part, Mapping):
        if (rows := _numbered(part)) is not None:
            yield rows
        if (rows := _columns(part)) is not None:
            yield rows
        yield from (value for value in part.values() if isinstance(value, Mapping | list | str))
    elif isinstance(part, list) and part:
        if (record := _pairs(part)) is not None:
            yield record
        records = [_pairs(row) if isinstance(row, list) else row for row in part]
        if any(isinstance(row, list) for row in part) and all(isinstance(row, Mapping) for row in records):
            yield records


def _numbered(part: Mapping[str, Any]) -> list[Any] | None:
    """`{"item_1": ..., "item_2": ...}` as a list; one other value may say how many there are."""
    found: dict[int, Any] = {}
    stems = set()
    others = 0
    for key, value in part.items():
        if (match := NUMBERED.fullmatch(key)) and not isinstance(value, int | float):
            found[int(match[2])] = value
            stems.add(match[1])
        else:
            others += 1
    if (
        not found
        or len(stems) != 1
        or others > 1
        or sorted(found) not in ([*range(1, len(found) + 1)], [*range(len(found))])
    ):
        return None
    return [found[n] for n in sorted(found)]


def _columns(part: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """A list of names beside a list of equally long rows, as records."""
    lists = [value for value in part.values() if isinstance(value, list)]
    if len(lists) != 2 or len(part) != 2:
        return None
    head, cells = lists
    if not head or not all(isinstance(name, str) for name in head) or len(set(head)) != len(head):
        return None
    if not all(isinstance(row, list) and len(row) == len(head) for row in cells):
        return None
    return [dict(zip(head, row, strict=True)) for row in cells]


def _pairs(part: list[Any]) -> dict[str, Any] | None:
    """A list of names with values, as a record."""
    if not all(isinstance(pair, Mapping) and len(pair) == 2 for pair in part):
        return None
    if len({tuple(pair) for pair in part}) != 1:
        return None
    name, value = part[0]
    names = [pair[name] for pair in part]
    if not all(isinstance(one, str) for one in names) or len(set(names)) != len(names):
        return None
    return {pair[name]: pair[value] for pair in part}
