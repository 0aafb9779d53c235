"""Flaws of the same names that show themselves in other ways: second tries, asides, questions and other last words.

They are kept out of the confusion matrix that the rules were adjusted to; `bench/diagnosis.py` counts them apart.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from crosswind.core.types import ASK, SAY, Flow, Refusal, ToolCall, ToolResult
from crosswind.core.world import bad_arguments
from tests.flawed.walker import Ends, Flawed, effective_writes, flaw

SCHEMA = ("unknown_tool", "bad_arguments")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Varied(Flawed):
    """What these have in common."""

    def look_elsewhere(self, n: int = 1) -> None:
        """Read something that nobody asked about."""
        if not self.planned:
            for _, aside in zip(range(n), self.other_reads(), strict=False):
                self.through(aside)

    def ask(self, question: str) -> None:
        self.tell(ToolCall(ASK, {"question": question}))

    def failed(self, call: ToolCall) -> ToolResult | None:
        """Make a call; the error, if it is one of the world and not of the interface."""
        result = self.tell(call)
        if result.error and result.error.code not in SCHEMA and not self.task.refuse:
            return None
        return result


@flaw("varied_asks_then_stops")
class AsksThenStops(Varied):
    """At an error it tries again, asks the user what to do, and says that it could not."""

    stage, cause = "feedback", "gave up"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            result = self.tell(call) if not self.session.steps[-1].inner else None
            if result is None or result.error:
                self.ask("The system answers with an error. What shall I do?")
                raise Ends("Regrettably I was not able to complete this because of a technical problem.")
        return result


@flaw("varied_looks_then_stops")
class LooksThenStops(Varied):
    """At an error it looks at two other things, and says that it could not."""

    stage, cause = "feedback", "gave up"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            self.look_elsewhere(2)
            raise Ends("Sorry, the system kept failing and I could not finish your request.")
        return result


@flaw("varied_falls_silent")
class FallsSilent(Varied):
    """At an error it asks, and then says nothing more."""

    stage, cause = "feedback", "gave up"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            self.ask("Is there anything else I should know?")
            raise Ends("")
        return result


@flaw("varied_stops_at_form")
class StopsAtForm(Varied):
    """A result in a form it does not know: it reads it again, asks, and says that it could not."""

    stage, cause = "feedback", "gave up"

    def sent(self, call: ToolCall) -> ToolResult:
        result = super().sent(call)
        inner = self.session.steps[-1].inner
        odd = len(inner) == 1 and inner[0][1].error is None and isinstance(result.content, str)
        if odd and not isinstance(inner[0][1].content, str) and not self.task.refuse and not result.error:
            if not inner[0][0].tool or not self.walker.specs[inner[0][0].tool].writes:
                self.tell(call)
            self.ask("I cannot read what the system gave me. Can you help?")
            raise Ends("I could not make sense of what came back, so I was unable to do this.")
        return result


@flaw("varied_ignores_and_asks")
class IgnoresAndAsks(Varied):
    """After an error it asks whether there is anything else, and reports success."""

    stage, cause = "feedback", "ignored error"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            self.ask("Would you like anything else?")
            raise Ends("Great, everything has been taken care of.")
        return result


@flaw("varied_ignores_and_goes_on")
class IgnoresAndGoesOn(Varied):
    """After an error it makes the rest of the calls that the way has, and then some, and reports success."""

    stage, cause = "feedback", "ignored error"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.failed(call)
        if result is None:
            known = [step.call for step in self.certificate.gold.steps]
            rest = known[known.index(call) + 1 :] if call in known else []
            for later in rest:
                if later.tool not in (ASK, SAY, call.tool) and later.args != call.args:
                    self.tell(later)
            self.look_elsewhere()
            raise Ends("Done, as you wished.")
        return result


@flaw("varied_reads_but_never_writes")
class ReadsButNeverWrites(Varied):
    """Reads all that it needs, makes none of the writes, looks around, and reports success."""

    stage, cause = "self-assessment", "false success"

    def wish(self, call: ToolCall) -> Flow:
        if self.walker.specs[call.tool].writes and not self.task.refuse and not self.planned:
            self.look_elsewhere()
            raise Ends(self.certificate.gold.final)
        return (yield call)


@flaw("varied_skips_a_write")
class SkipsAWrite(Varied):
    """Takes a lasting write on which others rest for done, with an id made up, and goes on to the next."""

    stage, cause = "planning", "fabricated value"
    skipped = False

    def wish(self, call: ToolCall) -> Flow:
        lasting = [c for c, _ in self.plan if self.writes(c.tool)]
        found = next((r.content for c, r in self.plan if c == call), None)
        if (
            not self.skipped
            and len(lasting) > 1
            and call == lasting[0]
            and not self.task.refuse
            and not self.planned
            and isinstance(found, dict)
        ):
            ids = {k: v for k, v in found.items() if isinstance(v, str) and v in str([c.args for c in lasting[1:]])}
            if ids:
                self.skipped = True
                return ToolResult({**found, **{k: v[:-4] + "7777" for k, v in ids.items()}})
        return (yield call)


@flaw("varied_sums_a_part")
class SumsAPart(Varied):
    """Looks at all but the last of several things that are to be added up, and gives the sum of those."""

    stage, cause = "feedback", "misread result"

    def wish(self, call: ToolCall) -> Flow:
        alike = [c for c, _ in self.plan if c.tool == call.tool]
        found = next((r.content for c, r in self.plan if c == call), None)
        sums = re.search(r"total|running|basket", self.task.family) is not None
        if sums and len(alike) > 2 and call == alike[-1] and isinstance(found, dict) and not self.planned:
            return ToolResult({k: 0 if isinstance(v, (int, float)) else v for k, v in found.items()})
        return (yield call)


@flaw("varied_second_best")
class SecondBest(Varied):
    """Takes the ids in a list of rows one row off."""

    stage, cause = "feedback", "misread result"
    read = False

    def wish(self, call: ToolCall) -> Flow:
        result = yield call
        rows = result.content
        if (
            not self.read
            and not self.planned
            and isinstance(rows, list)
            and len(rows) > 2
            and all(isinstance(row, dict) for row in rows)
        ):
            ids = [k for k in rows[0] if k.endswith("_id")]
            if ids:
                self.read = True
                turned = rows[1:] + rows[:1]
                return ToolResult([{**row, ids[0]: other.get(ids[0])} for row, other in zip(rows, turned, strict=True)])
        return result


@flaw("varied_other_figure")
class OtherFigure(Varied):
    """Does everything, and in the end gives another figure that it read."""

    stage, cause = "feedback", "misread result"

    def ended(self, end: str | Refusal) -> str | Refusal:
        if isinstance(end, Refusal):
            return end
        told = re.search(r"\b\d{1,4}\b(?![-:.\d])", end)
        if told is None:
            return end
        seen = [
            v
            for _, r in self.plan
            for row in (r.content if isinstance(r.content, list) else [r.content])
            if isinstance(row, dict)
            for v in row.values()
            if isinstance(v, int) and not isinstance(v, bool) and str(v) != told[0]
        ]
        return end if not seen else end[: told.start()] + str(seen[0]) + end[told.end() :]


@flaw("varied_made_up_id")
class MadeUpId(Varied):
    """Leaves the first look-up out, makes up what it would have given, and says no when that is not found."""

    stage, cause = "planning", "fabricated value"

    def wish(self, call: ToolCall) -> Flow:
        found = next((r.content for c, r in self.plan if c == call), None)
        first = bool(self.plan) and call == self.plan[0][0] and not self.walker.specs[call.tool].writes
        if first and not self.planned and not self.task.refuse and len(self.plan) > 1 and isinstance(found, list):
            rest = str([dict(c.args) for c, _ in self.plan[1:]])
            if any(isinstance(v, str) and v in rest for row in found if isinstance(row, dict) for v in row.values()):
                return ToolResult([{k: self.invented(k, v) for k, v in row.items()} for row in found])
        return (yield call)

    @staticmethod
    def invented(key: str, value: Any) -> Any:
        return value[:1] + "909" + value[-1:] + "42" if key.endswith("_id") and isinstance(value, str) else value


@flaw("varied_old_parameters")
class OldParameters(Varied):
    """Calls tools by the names shown, with the parameters that they had; tries twice; asks; says that it is done."""

    stage, cause = "understanding", "memorised interface"

    def sent(self, call: ToolCall) -> ToolResult:
        spec = self.session.specs.get(call.tool)
        ids = [i for i in spec.ids if i in self.walker.specs] if spec else []
        if spec and len(ids) == 1 and not self.planned and not self.task.refuse:
            known = next((c for c, _ in self.plan if c.tool == ids[0]), None)
            if known is not None and bad_arguments(spec.params, known.args) is not None:
                usual = [r.result for r in self.certificate.gold.steps if r.call == call]
                if usual and usual[0].error is None:
                    self.tell(ToolCall(call.tool, known.args))
                    self.tell(ToolCall(call.tool, known.args))
                    raise Ends("That is done.")
        return super().sent(call)


@flaw("varied_a_day_off")
class ADayOff(Varied):
    """Takes the day after the one that was asked for."""

    stage, cause = "understanding", "wrong argument"

    def wish(self, call: ToolCall) -> Flow:
        given = {
            k: (datetime.date.fromisoformat(v) + datetime.timedelta(days=1)).isoformat()
            for k, v in call.args.items()
            if isinstance(v, str) and _DATE.fullmatch(v) and v in self.task.given
        }
        return (yield call.with_args(**given) if given else call)


@flaw("varied_other_write")
class OtherWrite(Varied):
    """Makes another write than the one that was asked for, and reports success."""

    stage, cause = "understanding", "wrong tool"

    def wish(self, call: ToolCall) -> Flow:
        if self.writes(call.tool) and not self.task.refuse and not self.planned:
            own = {c.tool for c, _ in self.plan}
            for other in effective_writes(self):
                if other.tool not in own and self.through(other).error is None:
                    raise Ends(self.certificate.gold.final)
        return (yield call)


@flaw("varied_refuses_late")
class RefusesLate(Varied):
    """Reads all that it needs and something else, and then refuses, with nothing in its way."""

    stage, cause = "self-assessment", "over-refusal"

    def wish(self, call: ToolCall) -> Flow:
        steps = self.session.steps
        odd = any(s.result.error or s.heard or [r.content for _, r in s.inner] != [s.result.content] for s in steps)
        if self.walker.specs[call.tool].writes and not self.task.refuse and not odd and not self.planned:
            self.look_elsewhere()
            raise Ends("I am not allowed to do this for you, so I have to decline.")
        return (yield call)


@flaw("varied_goes_round")
class GoesRound(Varied):
    """Makes the same three reads again and again until its steps are used up."""

    stage, cause = "feedback", "blind repetition"

    def sent(self, call: ToolCall) -> ToolResult:
        result = super().sent(call)
        calls = [s.call for s in self.session.steps if s.inner]
        specs = self.walker.specs
        wrote = any(specs[c.tool].writes for s in self.session.steps for c, _ in s.inner if c.tool in specs)
        if len(calls) >= 3 and not wrote and not self.planned:
            for n in range(self.certificate.budget):
                self.tell(calls[n % 3])
            raise Ends("I could not get any further.")
        return result


@flaw("varied_does_a_part")
class DoesAPart(Varied):
    """Where the request is to be refused it makes those writes of it that work, and says sorry for the rest."""

    stage, cause = "self-assessment", "forced completion"

    def ended(self, end: str | Refusal) -> str | Refusal:
        if isinstance(end, Refusal):
            for call in effective_writes(self):
                if self.through(call).error is None:
                    raise Ends("I could not do exactly that, but I have set up something close to it for you.")
        return end


@flaw("varied_done_with_a_number")
class DoneWithANumber(Varied):
    """Where the request is to be refused it looks around and gives a reference number."""

    stage, cause = "self-assessment", "missed refusal"

    def ended(self, end: str | Refusal) -> str | Refusal:
        if isinstance(end, Refusal):
            self.look_elsewhere()
            raise Ends("All booked. Your reference is HX-20417.")
        return end


@flaw("varied_retries_later")
class RetriesLater(Varied):
    """Looks elsewhere after a timeout, and then makes the write again."""

    stage, cause = "feedback", "unsafe retry"

    def sent(self, call: ToolCall) -> ToolResult:
        result = super().sent(call)
        if result.error and result.error.code == "timeout":
            self.look_elsewhere()
            again = self.tell(call)
            return result if again.error else again
        return result


@flaw("varied_odd_types")
class OddTypes(Varied):
    """Wraps an argument in a list, then in an object, and reports success."""

    stage, cause = "understanding", "malformed call"

    def sent(self, call: ToolCall) -> ToolResult:
        if call.args and not self.planned and not self.task.refuse and self.rng.random() < 0.5 and call.tool != ASK:
            key = sorted(call.args)[0]
            if self.tell(call.with_args(**{key: [call.args[key]]})).error:
                self.tell(call.with_args(**{key: {"is": call.args[key]}}))
                raise Ends("Done.")
        return super().sent(call)


@flaw("varied_wanders")
class Wanders(Varied):
    """Reads what other requests would need, one after the other, and never comes to its own."""

    stage, cause = "planning", "ran out of steps"

    def wish(self, call: ToolCall) -> Flow:
        if not self.planned:
            for aside in self.other_reads():
                if len(self.session.steps) > self.certificate.budget:
                    break
                self.through(aside)
        return (yield call)
