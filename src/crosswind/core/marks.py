"""Law "no leak", of how rows are shown: nothing that a kind adds or rearranges marks the row that is right.

A mark in a single draw may be chance. Over the draws of an audit it is not: then an agent that follows the mark passes
without having read what decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosswind.core.oracle import Walk
from crosswind.core.secrets import SINGLE, scalars
from crosswind.core.types import Step

CHANCE = 1e-4  # with which a mark might be on so many right rows by itself
HITS = 0.6  # of the lists in which one row alone has it

Mark = tuple[str, ...]
Case = tuple[int, set[Mark], set[Mark]]  # how many rows a list has; marks of the right one alone, and of another alone


def cases(gold: Walk) -> Iterator[Case]:
    """The lists of a walk of which the solution goes on with one row, with the marks that one row has alone."""
    for told in gold.told:
        rows = _rows(told.result.content) if told.result.error is None else {}
        later = {str(v) for s in gold.steps[told.after :] for _, v in scalars(dict(s.call.args))}
        chosen = [id for id in rows if id in later]
        if len(rows) < 2 or len(chosen) != 1:
            continue
        held = _marks(gold.steps[told.first : told.after], rows)
        if len(held) == len(rows):
            count = Counter(mark for marks in held.values() for mark in marks)
            alone = {id: {mark for mark in marks if count[mark] == 1} for id, marks in held.items()}
            yield len(rows), alone[chosen[0]], set().union(*(alone[id] for id in held if id != chosen[0]))


def tell(found: Sequence[Case]) -> str:
    """The mark that right rows have over many draws, in words; empty: there is none."""
    for mark in sorted(set().union(*(marks for _, marks, _ in found))):
        chances = [1 / rows for rows, right, wrong in found if mark in right | wrong]
        hits = sum(mark in right for _, right, _ in found)
        if hits >= HITS * len(chances) and _at_least(hits, chances) < CHANCE:
            return f"in {hits} of {len(chances)} lists the right row, and no other, {' '.join(mark)}"
    return ""


def _at_least(hits: int, chances: Sequence[float]) -> float:
    """How likely so many hits are, or more, where each list has a chance of its own."""
    held = [1.0]
    for chance in chances:
        held = [a * (1 - chance) + b * chance for a, b in zip([*held, 0.0], [0.0, *held], strict=True)]
    return sum(held[hits:])


def _rows(content: Any) -> dict[str, Mapping[str, Any]]:
    """The rows of the one list in some content, each by a label that it alone has."""
    if not isinstance(content, (list, tuple)) or len(content) < 2 or not all(isinstance(r, Mapping) for r in content):
        return {}
    for key in content[0]:
        ids = [row.get(key) for row in content]
        if all(isinstance(id, str) and id for id in ids) and len({*ids}) == len(ids):
            return dict(zip(ids, content, strict=True))
    return {}


def _marks(steps: Sequence[Step], rows: Mapping[str, Mapping[str, Any]]) -> dict[str, set[Mark]]:
    """What sets apart each row as it is shown, besides what it holds: where it stands, and what was added."""
    out: dict[str, set[Mark]] = {}
    places = {id: n for n, id in enumerate(rows)}
    for step in steps:
        at: dict[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {}
        for path, record in _records(step.result.content):
            ids = [v for v in record.values() if isinstance(v, str) and v in rows]
            if len(ids) == 1:
                at.setdefault(ids[0], (path, record))
        if len(at) < 2:
            continue
        order = [*at]
        for id, (path, record) in at.items():
            found: set[Mark] = {("stands under", next((part for part in reversed(path) if not part.isdigit()), ""))}
            for place, words in ((0, "first"), (-1, "last")):
                if order[place] == id and [*places][place] != id:
                    found.add(("was moved to stand", words))
            held = rows[id]
            found |= {
                ("has", f"{key} {value!r}")
                for key, value in record.items()
                if key not in held and type(value) in SINGLE
            }
            found |= {("lacks", key) for _, other in at.values() for key in other.keys() - record.keys()}
            out.setdefault(id, set()).update(found)
    return out


def _records(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if isinstance(content, Mapping):
        yield path, content
        for key, value in content.items():
            yield from _records(value, (*path, str(key)))
    elif isinstance(content, (list, tuple)):
        for n, value in enumerate(content):
            yield from _records(value, (*path, str(n)))
