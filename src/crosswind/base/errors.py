"""The failures that are exceptions: ours, never an agent's. An agent's mistake is a `ToolResult` with an error."""

from __future__ import annotations


class CrosswindError(Exception):
    """Anything a user of crosswind can cause and mend; its text says what came, what was expected and what to do."""


class UnknownName(CrosswindError):
    """A name that is in no registry."""


class BadFile(CrosswindError):
    """A file that does not hold what it should; the text names the place."""


class Unfair(CrosswindError):
    """A stack of layers broke a law; `law` says which, the text why."""

    def __init__(self, law: str, reason: str) -> None:
        super().__init__(f"{law}: {reason}")
        self.law, self.reason = law, reason


class CannotPerturb(CrosswindError):
    """No fair draw was found. `applies` is False where the kind finds nothing to bite on in this task."""

    def __init__(self, message: str, *, applies: bool = True, law: str = "") -> None:
        super().__init__(message)
        self.applies, self.law = applies, law


class CannotDraw(CrosswindError):
    """A family found no task in a world."""


class InfrastructureError(Exception):
    """A provider, a server or a machine failed: ends an episode as an error, never as a failure of the agent."""


class ToolFailure(Exception):
    """Raised inside a tool: the caller's mistake, or the world's no. Becomes a result with an error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class ToolFailed(Exception):
    """Raised into a solution whose call came back with an error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text or code)
        self.code, self.text = code, text


class NotForTraining(CrosswindError):
    """A held-out kind or a word of another split was about to enter training data."""
