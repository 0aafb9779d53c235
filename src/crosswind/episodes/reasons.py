"""Why no fair draw was found, or why a kind does not apply, in words without the task that it came up in."""

from __future__ import annotations

import re
from collections.abc import Iterable

from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core.types import Task


def reason_of(error: Unfair | CannotPerturb, task: Task) -> str:
    """A reason without its task, so that the same ones are counted together."""
    text = f"{error.law}: {error.reason}" if isinstance(error, Unfair) else bare_reason(str(error))
    text = re.sub(r" \(drawn for [^ )]+\)", "", text)  # the task of an audit, which is not this one
    return re.sub(rf" (?:in|for|to) {re.escape(task.id)}", "", text)


def bare_reason(text: str) -> str:
    """The law that was broken last and why, without the draw that was given up for it and what to do about it."""
    found = re.fullmatch(r".*?no fair draw of .*? attempts \(last: (.*)\); lower the severity.*", text, re.DOTALL)
    return found[1] if found else text


def why_not(reasons: Iterable[str]) -> str:
    """Why a kind was drawn over none of the tasks that were looked at, without its name in each reason."""
    said = [text.split(": ", 1)[-1] if "does not apply" in text else text for text in reasons]
    return "; ".join(dict.fromkeys(said)) or "there was no task to look at"
