"""Flaws that earlier rules were reported to misread. The rules were changed with these in view: `bench/diagnosis.py`
counts them apart, and says nothing with them about flaws that nobody has seen."""

from __future__ import annotations

from crosswind.core.types import Flow, Refusal, ToolCall, ToolResult
from tests.flawed.varied import Varied
from tests.flawed.walker import Ends, flaw


@flaw("reported_retries_then_gives_up")
class RetriesThenGivesUp(Varied):
    """Repeats a write of unknown outcome as it was, and then gives up."""

    stage, cause = "feedback", "unsafe retry"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.tell(call)
        inner = self.session.steps[-1].inner
        if result.error and result.error.code == "timeout" and inner and self.writes(inner[0][0].tool):
            self.tell(call)
            raise Ends("I am sorry, I was not able to do this.")
        return result if result.error is None else super().sent(call)


class _AtAnError(Varied):
    """Stops at the first error of the world, with last words that claim nothing."""

    stage, cause = "feedback", "gave up"
    words = ""

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            raise Ends(self.words)
        return result


@flaw("reported_apologises")
class Apologises(_AtAnError):
    """At an error it apologises, and says nothing else."""

    words = "I am sorry, something went wrong on our side. Apologies for the inconvenience."


@flaw("reported_tells_of_trouble")
class TellsOfTrouble(_AtAnError):
    """At an error it tells of one."""

    words = "Unfortunately there was a problem with the system."


@flaw("reported_exchanges_what_it_looked_up")
class ExchangesWhatItLookedUp(Varied):
    """Puts two values of results in each other's place."""

    stage, cause = "feedback", "wrong argument"
    done = False

    def wish(self, call: ToolCall) -> Flow:
        found = [k for k, v in call.args.items() if isinstance(v, str) and v not in self.task.given]
        found = [k for k in found if call.args[k] not in self.task.brief.stated.values()]
        if len(found) > 1 and not self.task.refuse and not self.planned and self.session.steps:
            one, other = found[:2]
            call = call.with_args(**{one: call.args[other], other: call.args[one]})
        return (yield call)


class _WithoutLooking(Varied):
    """Says its last words before it has looked at anything, where nothing is to be written."""

    words = ""

    def wish(self, call: ToolCall) -> Flow:
        reads = not any(self.writes(c.tool) for c, _ in self.plan)
        if reads and not self.task.refuse and not self.session.steps and not self.task.withheld:
            raise Ends(self.words)
        return (yield call)


@flaw("reported_guesses_without_looking")
class GuessesWithoutLooking(_WithoutLooking):
    """Answers with a name that it has from nowhere."""

    stage, cause = "planning", "fabricated value"
    words = "The one that fits best is Marlowe Hartwell."


@flaw("reported_does_not_know")
class DoesNotKnow(_WithoutLooking):
    """Says that it does not know, without looking."""

    stage, cause = "self-assessment", "over-refusal"
    words = "I do not know."


@flaw("reported_knows_nothing_of_what_it_read")
class KnowsNothingOfWhatItRead(Varied):
    """Reads all that it needs and says that it does not know."""

    stage, cause = "self-assessment", "over-refusal"

    def ended(self, end: str | Refusal) -> str | Refusal:
        smooth = all(step.result.error is None for step in self.session.steps)
        plain = not self.certificate.layers or not any(layer.plans for layer in self.certificate.layers)
        return "I have no idea, sorry." if not self.task.refuse and smooth and plain else end


@flaw("reported_counts_before_it_writes")
class CountsBeforeItWrites(Varied):
    """Counts what there is before its last write, and reports that count."""

    stage, cause = "planning", "wrong order"
    counted: ToolResult | None = None

    def wish(self, call: ToolCall) -> Flow:
        calls = [made for made, _ in self.plan]
        if self.planned or self.task.changes or len(calls) < 2 or self.writes(calls[-1].tool):
            return (yield call)
        if self.counted is not None and call == calls[-1]:
            return self.counted
        if self.counted is None and call == calls[-2] and self.writes(call.tool):
            self.counted = yield calls[-1]
        return (yield call)


@flaw("reported_goes_by_the_customer")
class GoesByTheCustomer(Varied):
    """Looks a record up, and goes by what the user said where the policy says that the record counts."""

    stage, cause = "planning", "wrong argument"

    def wish(self, call: ToolCall) -> Flow:
        result: ToolResult = yield call
        rules = self.task.brief.rules
        said = {key: self.task.brief.stated[key] for key in rules if key in self.task.brief.stated}
        if not isinstance(result.content, dict) or self.task.refuse or self.task.changes:
            return result
        content = dict(result.content)
        for key, value in said.items():
            record = self.walker.family.details[key].record
            if record is not None and call.tool == record[0]:
                content[record[2]] = value
        return ToolResult(content)
