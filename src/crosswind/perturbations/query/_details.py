"""Details of a request that can be taken out of its words; not a perturbation itself."""

from __future__ import annotations

from collections.abc import Mapping

from crosswind.core.perturbation import Scene
from crosswind.core.types import Task
from crosswind.words import wording


def removable_details(scene: Scene) -> list[str]:
    """Stated details that are in the query once, literally, and are the only ones of their kind.

    Of two details of one kind neither can be left out: the other could be taken for it.
    """
    brief, details = scene.task.brief, scene.family.details
    stated = [k for k in brief.stated if k not in brief.rules]
    literal = [k for k in stated if len(wording.places(str(brief.stated[k]), brief.query)) == 1]
    return [k for k in literal if sum(details[k].read is d.read for d in details.values()) == 1]


def replaced(task: Task, gaps: Mapping[str, str]) -> Task:
    """The request with words in the place of details, which the user now keeps to themselves; "": nothing at all."""
    query, stated, withheld = task.brief.query, dict(task.brief.stated), dict(task.withheld)
    for key, words in gaps.items():
        withheld[key] = stated.pop(key)
        value = str(withheld[key])
        query = wording.put(words, value, query) if words else dropped(value, query)
    said = {"query": query[:1].upper() + query[1:], "stated": stated, "vague": {**task.brief.vague, **gaps}}
    return task.replace(withheld=withheld, brief=task.brief.model_copy(update=said))


def dropped(value: str, query: str) -> str:
    """A query without a value and the preposition before it; the same where the sentence cannot do without."""
    for at in wording.places(value, query):
        before, after = query[:at], query[at + len(value) :]
        if after.startswith((" or", " and")):
            continue
        for word in (" in ", " on ", " at ", " by ", " with "):
            if before.endswith(word):
                return before.removesuffix(word) + after
    return query
