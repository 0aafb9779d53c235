"""Requests that turn into others: the user drops one for another, or adds another to it.

A task has one family, whose request the agent hears first. Where a change of mind names a family (`Change.family`), the
request gives way to one of that family; where it adds (`Change.adds`), what was asked before still counts.
`Domain.family` gives a `Turned` for such a task: what is right then is what is right for the requests that still count.
"""

from __future__ import annotations

from crosswind.core.types import Task


def is_turned(task: Task) -> bool:
    """Does another request come up in a task?"""
    return any(change.family or change.adds for change in task.changes)


def requests(task: Task) -> list[Task]:
    """The requests that count in the end, in the order in which they were made, each as a task of its own."""
    out = [task.replace(changes=())]
    for change in task.changes:
        last = out[-1]
        if change.family:
            brief = last.brief.model_copy(update={"query": change.words, "stated": change.stated, "vague": {}})
            out = [last.replace(family=change.family, brief=brief, withheld={})]
            continue
        withheld = {key: value for key, value in last.withheld.items() if key not in change.stated}
        stated = {**last.brief.stated, **change.stated}
        query = f"{last.brief.query} {change.words}"
        now = last.briefed(stated=stated, query=query).replace(withheld=withheld)
        out = [*out, now] if change.adds else [*out[:-1], now]
    return out
