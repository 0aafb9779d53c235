"""Entities under other names: a two-way table between what the records say and what everybody in an episode says.

Names that are made up (`names.py`) change their endings, words for kinds change as a whole. The request, the user's
answers, results and arguments all go through the same table, and what an agent says in the end is read back by it, so
the solution and the verifier keep to the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from crosswind.core.names import MIDDLES, STARTS
from crosswind.core.types import EntityNames, Task

Table = tuple[tuple[str, str], ...]


def shown(task: Task, text: str) -> str:
    """A text of the records as it is said in the episode."""
    return text if task.entity_names is None else translator(task.entity_names)(text)


def plain(task: Task, text: str) -> str:
    """A text of the episode in the words of the records."""
    return text if task.entity_names is None else translator(task.entity_names, back=True)(text)


def translator(names: EntityNames, *, back: bool = False) -> Callable[[str], str]:
    return _translator(tuple(names.words.items()), tuple(names.endings.items()), back)


def through(value: Any, translate: Callable[[str], str]) -> Any:
    """All texts in some content translated; the same object where nothing changes."""
    if isinstance(value, str):
        return translate(value)
    if isinstance(value, dict):
        return {k: through(v, translate) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [through(v, translate) for v in value]
    return value


@lru_cache(maxsize=256)
def _translator(words: Table, endings: Table, back: bool) -> Callable[[str], str]:
    word_of = {(b if back else a).lower(): (a if back else b) for a, b in words}
    ending_of = {(b if back else a): (a if back else b) for a, b in endings}
    kinds = "|".join(sorted(map(re.escape, word_of), key=len, reverse=True)) or "(?!)"
    ends = "|".join(sorted(map(re.escape, ending_of), key=len, reverse=True)) or "(?!)"
    pattern = re.compile(
        rf"\b(?:(?P<kind>{kinds})(?P<plural>e?s)?|(?P<stem>(?:{'|'.join(STARTS)})(?:{'|'.join(MIDDLES)}))(?P<end>{ends}))\b",
        re.IGNORECASE,
    )

    def swap(found: re.Match[str]) -> str:
        if found["kind"] is None:
            return found["stem"] + ending_of.get(found["end"], found["end"])
        said = found["kind"]
        new = word_of[said.lower()]
        if said[0].isupper() and new[0].islower():
            new = new[0].upper() + new[1:]
        return new + ("s" if found["plural"] else "")

    return lambda text: pattern.sub(swap, text)
