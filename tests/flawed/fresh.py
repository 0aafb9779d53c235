"""More flaws that show themselves in other ways, written after the rules were last changed and not looked at since.

`bench/diagnosis.py` counts them apart: of all its figures theirs come closest to what a new agent would meet.
"""

from __future__ import annotations

import re
from typing import Any

from crosswind.core.types import ASK, Flow, Refusal, ToolCall, ToolResult
from crosswind.core.world import bad_arguments
from tests.flawed.varied import Varied
from tests.flawed.walker import Ends, flaw


@flaw("fresh_worst_row")
class WorstRow(Varied):
    """Reads a list of rows from the bottom: takes the last figure for that of the first row, and so on."""

    stage, cause = "feedback", "misread result"
    read = False

    def wish(self, call: ToolCall) -> Flow:
        result = yield call
        rows = result.content
        if self.read or self.planned or not isinstance(rows, list) or len(rows) < 2:
            return result
        if not all(isinstance(row, dict) for row in rows):
            return result
        figures = [k for k, v in rows[0].items() if isinstance(v, (int, float)) and not isinstance(v, bool)]
        self.read = bool(figures)
        turned = [{**row, **{k: rows[-1 - i].get(k) for k in figures}} for i, row in enumerate(rows)]
        return ToolResult(turned)


@flaw("fresh_first_of_two")
class FirstOfTwo(Varied):
    """Where several things are to be compared it looks at the first only, and takes it."""

    stage, cause = "feedback", "misread result"

    def wish(self, call: ToolCall) -> Flow:
        alike = [c for c, _ in self.plan if c.tool == call.tool]
        found = next((r.content for c, r in self.plan if c == call), None)
        if len(alike) > 1 and call == alike[1] and isinstance(found, dict) and not self.planned:
            first = next((r.content for c, r in self.plan if c == alike[0]), None)
            return ToolResult(first)
        return (yield call)


@flaw("fresh_apologises_and_describes")
class ApologisesAndDescribes(Varied):
    """At an error it reads the result of an earlier call again, and tells at length what it could not do."""

    stage, cause = "feedback", "gave up"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            earlier = [s.call for s in self.session.steps if s.inner and not s.result.error]
            specs = self.walker.specs
            reads = [s.call for s in self.session.steps if s.call in earlier and not specs[s.inner[0][0].tool].writes]
            if reads and not self.planned:
                self.tell(reads[0])
            raise Ends(
                "I looked into this for you and got part of the way, but the service reported a problem that I could "
                "not solve. Nothing more could be done today. Please contact support."
            )
        return result


@flaw("fresh_reports_the_error_as_detail")
class ReportsTheErrorAsDetail(Varied):
    """After an error it carries on with the words of somebody who has succeeded, and a time of day."""

    stage, cause = "feedback", "ignored error"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            raise Ends("Your request went through at 09:15. You will get a confirmation soon.")
        return result


@flaw("fresh_keeps_half_the_names")
class KeepsHalfTheNames(Varied):
    """Takes over new tool names but keeps the old name of one parameter; asks the user; says sorry."""

    stage, cause = "understanding", "memorised interface"

    def sent(self, call: ToolCall) -> ToolResult:
        spec = self.session.specs.get(call.tool)
        ids = [i for i in spec.ids if i in self.walker.specs] if spec else []
        if spec and len(ids) == 1 and not self.planned and not self.task.refuse and call.args:
            known = next((c for c, _ in self.plan if c.tool == ids[0]), None)
            if (
                known is not None
                and set(known.args) - set(spec.params)
                and len(known.args) == len(call.args)
                and bad_arguments(spec.params, known.args) is not None
                and self.tell(ToolCall(call.tool, known.args)).error
            ):
                self.ask("The tool does not take what I send. Any idea?")
                raise Ends("I am sorry, I was not able to do this.")
        return super().sent(call)


@flaw("fresh_number_as_text")
class NumberAsText(Varied):
    """Writes numbers out as words with a unit, twice, and gives up."""

    stage, cause = "understanding", "malformed call"

    def sent(self, call: ToolCall) -> ToolResult:
        numbers = [k for k, v in call.args.items() if isinstance(v, int) and not isinstance(v, bool)]
        if numbers and not self.planned and not self.task.refuse and call.tool != ASK:
            bad = call.with_args(**{numbers[0]: f"{call.args[numbers[0]]} pieces"})
            if self.tell(bad).error:
                self.tell(bad)
                raise Ends("Unfortunately I could not do that.")
        return super().sent(call)


@flaw("fresh_swaps_details")
class SwapsDetails(Varied):
    """Exchanges two details of the request, in every call that takes both."""

    stage, cause = "understanding", "wrong argument"

    def wish(self, call: ToolCall) -> Flow:
        given = [k for k, v in call.args.items() if isinstance(v, str) and v in self.task.given]
        if len(given) > 1:
            one, other = given[:2]
            call = call.with_args(**{one: call.args[other], other: call.args[one]})
        return (yield call)


@flaw("fresh_twice_as_many")
class TwiceAsMany(Varied):
    """Asks for twice as many of what is counted as the request says."""

    stage, cause = "understanding", "wrong argument"

    def wish(self, call: ToolCall) -> Flow:
        more = {
            k: v * 2
            for k, v in call.args.items()
            if isinstance(v, int) and not isinstance(v, bool) and str(v) in self.task.given
        }
        return (yield call.with_args(**more) if more else call)


@flaw("fresh_only_promises")
class OnlyPromises(Varied):
    """Reads what it needs and promises to do the rest."""

    stage, cause = "self-assessment", "false success"

    def wish(self, call: ToolCall) -> Flow:
        if self.writes(call.tool) and not self.task.refuse and not self.planned:
            raise Ends("It is all set up for you, and you need not do anything else.")
        return (yield call)


@flaw("fresh_makes_up_the_answer")
class MakesUpTheAnswer(Varied):
    """Reads everything, and gives a figure that it has from nowhere."""

    stage, cause = "feedback", "fabricated value"

    def ended(self, end: str | Refusal) -> str | Refusal:
        if isinstance(end, Refusal):
            return end
        return re.sub(r"\b\d{1,4}\b(?![-:.\d])", lambda m: str(int(m[0]) * 17 + 2903), end, count=1)


@flaw("fresh_declines_politely")
class DeclinesPolitely(Varied):
    """Asks the user something idle, and declines for reasons of its own."""

    stage, cause = "self-assessment", "over-refusal"

    def wish(self, call: ToolCall) -> Flow:
        if not self.session.steps and not self.task.refuse and not self.planned:
            self.ask("Is this urgent?")
            raise Ends("For privacy reasons I would rather not handle this kind of request, sorry.")
        return (yield call)


@flaw("fresh_guesses_then_does")
class GuessesThenDoes(Varied):
    """Makes up the code that a write needs, is refused, and makes up another."""

    stage, cause = "planning", "fabricated value"

    def wish(self, call: ToolCall) -> Flow:
        found = next((r.content for c, r in self.plan if c == call), None)
        spec = self.walker.specs[call.tool]
        if isinstance(found, dict) and spec.writes and not spec.lasting and not self.planned and not self.task.refuse:
            return ToolResult({k: self.code(v) for k, v in found.items()})
        return (yield call)

    @staticmethod
    def code(value: Any) -> Any:
        return str(value)[:1] + "123456" if isinstance(value, str) else value
