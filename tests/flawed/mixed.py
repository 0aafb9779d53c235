"""Two flaws in one agent, and flaws behind harmless detours and talk."""

from __future__ import annotations

from crosswind.core.types import ToolCall, ToolResult
from tests.flawed.feedback import GivesUp, MisreadResult, UnsafeRetry
from tests.flawed.interface import MemorisedInterface, WrongArgument
from tests.flawed.limits import FalseSuccess, MissedRefusal, OverRefusal
from tests.flawed.planning import WrongOrder
from tests.flawed.walker import Flawed, flaw


class Noisy(Flawed):
    """Reads this and that besides, and has more to say in the end."""

    asides = 0

    def sent(self, call: ToolCall) -> ToolResult:
        if not self.planned and self.asides < 2 and self.rng.random() < 0.4:
            self.asides += 1
            aside = next((c for i, c in enumerate(self.other_reads()) if i == self.asides), None)
            if aside is not None:
                self.through(aside)
        return super().sent(call)

    def worded(self, final: str) -> str:
        return f"Thank you for your patience. {final}"


@flaw("flaw_noisy_misread_result")
class NoisyMisreadResult(Noisy, MisreadResult):
    """Reads a result askew, amid asides."""


@flaw("flaw_noisy_gives_up")
class NoisyGivesUp(Noisy, GivesUp):
    """Gives up at an error, amid asides."""


@flaw("flaw_noisy_false_success")
class NoisyFalseSuccess(Noisy, FalseSuccess):
    """Reports what it has not done, amid asides."""


@flaw("flaw_noisy_wrong_argument")
class NoisyWrongArgument(Noisy, WrongArgument):
    """Passes a wrong value, amid asides."""


@flaw("flaw_noisy_memorised_interface")
class NoisyMemorisedInterface(Noisy, MemorisedInterface):
    """Keeps to the names it knows, amid asides."""


@flaw("flaw_noisy_missed_refusal")
class NoisyMissedRefusal(Noisy, MissedRefusal):
    """Says that it is done where it cannot be, amid asides."""


@flaw("flaw_two_memorised_and_misread")
class MemorisedAndMisread(MemorisedInterface, MisreadResult):
    """Keeps to the names it knows; where these work, it reads a result askew."""


@flaw("flaw_two_order_and_refusal")
class OrderAndRefusal(OverRefusal, WrongOrder):
    """Turns calls round, or refuses before it comes to that."""


@flaw("flaw_two_retry_and_success")
class RetryAndSuccess(UnsafeRetry, FalseSuccess):
    """Repeats writes without need, and leaves out the last one."""
