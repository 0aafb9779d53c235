"""Exceptions. An agent's mistake is never one of them: it is a `ToolResult` with an error."""

from __future__ import annotations

from typing import Literal


def words_of_any(error: BaseException) -> str:
    """What an exception says, whoever wrote it: its own `__str__` may raise."""
    try:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        return f"(its text cannot be had: {type(raised).__name__} was raised instead)"


class CrosswindError(Exception):
    """An error that the user can fix. Its text says what happened, what was expected and what to do."""


class UnknownName(CrosswindError):
    """A name that no registry knows."""


class BadFile(CrosswindError):
    """A file with invalid content. The text names the file and the line."""


class Unfair(CrosswindError):
    """A stack of layers breaks a law: `law` names it, `reason` explains it."""

    def __init__(self, law: str, reason: str) -> None:
        super().__init__(f"{law}: {reason}")
        self.law, self.reason = law, reason


class UnfairTask(Unfair):
    """A task breaks a law before any layer is added."""

    def __init__(self, task: str, law: str, reason: str) -> None:
        super().__init__(law, reason)
        self.args = (f"{task}: the task itself is unfair, without any perturbation: {law}: {reason}",)


class CannotPerturb(CrosswindError):
    """No fair draw was found. `applies` is False if the perturbation has nothing to act on in this task.

    `at_fault` says what broke a law: this draw, the task before any layer, or a kind or domain as a whole.
    """

    def __init__(
        self,
        message: str,
        *,
        applies: bool = True,
        law: str = "",
        at_fault: Literal["draw", "task", "code"] = "draw",
    ) -> None:
        super().__init__(message)
        self.applies, self.law, self.at_fault = applies, law, at_fault


class CannotDraw(CrosswindError):
    """A family found no task in a world."""


class InfrastructureError(Exception):
    """A provider, server or machine failed. The episode ends as an error, never as a failure of the agent."""


class AgentException(Exception):
    """An agent's own code broke. The episode ends as an exception: a failure of the agent, kept with its traceback."""

    def __init__(self, summary: str, trace: str = "") -> None:
        super().__init__(summary)
        self.why = f"{summary}\n{trace}".strip()


class ToolFailure(Exception):
    """Raised inside a tool by a wrong call, or one that the world rejects. Becomes a result with an error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class ToolFailed(Exception):
    """Raised inside a family's `solve` at a call that returned an error: its `code` and its `text`.

    A solution that does not catch it ends in a refusal with that text.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text or code)
        self.code, self.text = code, text


class NotForTraining(CrosswindError):
    """A held-out perturbation or a word of another split would enter training data."""
