"""The oracle's working: that it is right, in words the agent has seen, and that nothing else changes by it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from crosswind.agents._solver import Solver
from crosswind.base.errors import CannotPerturb
from crosswind.core.domain import Family
from crosswind.core.draw import Drawn, draw
from crosswind.core.oracle import Walk, walk
from crosswind.core.registry import domains
from crosswind.core.types import NOTE, Brief, Refusal, Solution, ToolCall
from crosswind.domains import notes
from crosswind.episodes.play import judge, play
from crosswind.episodes.schedule import tasks
from crosswind.models.parsing import parse
from crosswind.models.prompts import call_form, spoken, with_tools
from crosswind.train.data import _count
from crosswind.train.rows import demonstration
from crosswind.train.thoughts import Habits

OURS = ("poi", "medical", "retail", "workspace", "banking", "operations")
KINDS = ("", "entity_reskin", "paged_results", "format_switch")
REPLY = 256  # tokens that a local model may write in a turn
WITHOUT = {  # families in which nothing is compared, counted or added up
    "cancel_visit", "cancel_consultation", "cancel_purchase", "call_off_meeting", "recall_payment", "roll_back",
    "on_call_name", "page_on_duty", "lost_card", "dispute_payment",
}  # fmt: skip


def draws(name: str, kind: str, per_family: int, seed: int = 0) -> Iterator[Drawn]:
    """Draws of every family of a domain."""
    here = domains[name]
    for family in here.families:
        for n in range(per_family):
            try:
                yield draw(here, here.task(family, seed + n), [kind] if kind else (), n)
            except CannotPerturb:
                continue


def text_of(call: ToolCall) -> str:
    return str(call.args["text"])


class Checked:
    """The notes of a walk, read as a stranger would read them."""

    def __init__(self, gold: Walk, seen: dict[int, str]) -> None:
        self.gold, self.seen = gold, seen
        self.sorts: Counter[str] = Counter()
        for at, text in gold.notes.items():
            parts = text.split("; ")
            for n, part in enumerate(parts):
                self.check(part, seen[at], " ".join((*parts[n + 1 :], self.later(at))))

    def later(self, at: int) -> str:
        """All that the agent does and thinks from a step on."""
        after = [str(dict(step.call.args)) for step in self.gold.steps[at:]]
        thought = [note for place, note in self.gold.notes.items() if place > at]
        return " ".join((*after, *thought, self.gold.final))

    def check(self, text: str, seen: str, later: str) -> None:
        if found := re.fullmatch(r"(.+): (most|least|earliest) (\S+)", text):
            self.choice(*found.groups(), seen=seen, later=later)
        elif re.match(r"(earliest|latest), need ", text):
            self.fit(text, later)
        elif re.fullmatch(r"(?:[^:]+: )?(?:\S+ (?:yes \d+|no), )*\S+ (?:yes \d+|no): \d+|[^:]+: 0", text):
            self.count(text, later)
        elif found := re.fullmatch(r"((?:\S+(?: [a-z]\S*)? no, )*)(\S+) ([a-z]\S*) yes: (\S+) .*", text):
            self.sorts["pick"] += 1
            assert all(row.split()[0] in seen for row in found[1].split(", ") if row)
            assert found[3] not in ("cancelled", "refunded", "void")
            assert found[2] in seen and found[4] in later  # noqa: PT018
        elif found := re.fullmatch(r"(?:\S+(?: [a-z]\S*)? no(?:, )?)*: none", text):
            assert self.gold.final.startswith("I cannot")
        elif found := re.fullmatch(r"(\D+) ([A-Z]\S*\d), (\D+) ([A-Z]\S*\d)", text):
            self.sorts["found"] += 1
            assert all(part in seen for part in found.groups())
            assert found[2] in later
            assert found[4] in later
        elif found := re.fullmatch(r"without what is cancelled: (.+)", text):
            self.sorts["without"] += 1
            assert all(thing in seen and thing in later for thing in found[1].split())
        else:
            self.total(text, seen, later)

    def choice(self, listed: str, how: str, taken: str, *, seen: str, later: str) -> None:
        self.sorts[how] += 1
        value: Any = str if how == "earliest" else float
        (key, best), *others = (row.split(" ", 1) for row in listed.split(", "))
        values: dict[str, Any] = {key: value(best)}
        for key, rest in others:
            mine, sign, other, said = re.fullmatch(r"(\S+)([<>])(\S+) (yes|no)", rest).groups()  # type: ignore[union-attr]
            assert (other, sign) == (best, ">" if how == "most" else "<")
            ahead = value(mine) > value(best) if sign == ">" else value(mine) < value(best)
            assert ahead == (said == "yes"), listed
            values[key], best = value(mine), mine if ahead else best
        assert values[taken] == (max if how == "most" else min)(values.values())
        assert all(key in seen for key in values), (values, seen)
        assert re.search(rf"\b{taken}\b", later), (taken, later)

    def fit(self, text: str, later: str) -> None:
        need, *listed, last = re.split(r": ", text)
        self.sorts["fit"] += 1
        asked = [int(n) for n in re.findall(r"\d+", need)]
        assert asked[0] + asked[1] == asked[2]
        self.sorts["spare"] += asked[1] > 0
        rows = [row.split() for row in ", ".join(listed).split(", ") if row]
        assert all((int(room) >= asked[-1]) == (said == "yes") for _, room, said in rows), text
        fits = [time for time, _, said in rows if said == "yes"]
        if not fits:
            assert last == "none"
            assert self.gold.final.startswith("I cannot")
            return
        latest = need.startswith("latest")
        self.sorts["latest"] += latest
        time, *slot = last.split()
        assert time == (max if latest else min)(fits), text
        assert any(value in later for value in (time, *slot)), (text, later)

    def count(self, text: str, later: str) -> None:
        self.sorts["count"] += 1
        floor = re.match(r"(at least|more than) (\d+): ", text)
        found = 0
        for label, said, so_far in re.findall(r"(\S+) (yes|no)(?: (\d+))?[,:]", text):
            found += said == "yes"
            assert so_far == (str(found) if said == "yes" else "")
            if floor:
                reach = int(label) - int(floor[2]) - (floor[1] == "more than")
                assert (reach >= 0) == (said == "yes"), text
                self.sorts["strict"] += floor[1] == "more than"
        assert text.endswith(f": {found}")
        assert re.search(rf"\b{found}\b", later)

    def total(self, text: str, seen: str, later: str) -> None:
        self.sorts["total"] += 1
        rule, colon, said = text.rpartition(": ")
        assert not colon or re.fullmatch(r"plus \d+ each", rule), text
        for term in said.split(", "):
            of, _, chain = term.rpartition(" ")
            assert not of or of in seen, (of, seen)
            assert re.fullmatch(r"\d+([+-]\d+=\d+)*", chain), text
            one, *steps = re.split(r"([+-]\d+=\d+)", chain)
            for step in filter(None, steps):
                two, whole = step.split("=")
                assert int(one) + int(two) == int(whole), text
                one = whole
        last = re.findall(r"\d+", text)[-1]
        assert re.search(rf"\b{last}\b", later), (text, later)


def seen_of(drawn: Drawn) -> dict[int, str]:
    """What had been said to the agent before each step."""
    out, so_far, step = {}, "", 0
    for message in demonstration(drawn, reasons=False).chat:
        if message.role == "assistant":
            out[step] = so_far
            step += 1
        else:
            so_far += message.content
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OURS)
def test_what_is_written_down_is_right_and_leads_to_what_is_done(name: str, kind: str) -> None:
    noted: dict[str, bool] = {}
    sorts: Counter[str] = Counter()
    for drawn in draws(name, kind, 4):
        gold = drawn.certificate.gold
        sorts += Checked(gold, seen_of(drawn)).sorts
        noted[drawn.base.family] = noted.get(drawn.base.family, False) or bool(gold.notes)
    if not kind:
        assert {family for family, has in noted.items() if not has} <= WITHOUT
    assert len(noted) >= 12
    assert all(sorts[sort] for sort in ("most", "least", "fit", "count", "total"))


def test_rules_of_the_house_are_followed_in_it() -> None:
    sorts: Counter[str] = Counter()
    for name in OURS[:2]:
        for seed in (0, 10, 20):
            for drawn in draws(name, "rule_change", 2, seed):
                gold = drawn.certificate.gold
                sorts += Checked(gold, seen_of(drawn)).sorts
                more = drawn.certificate.task.brief.rules.get("surcharge")
                if more and not drawn.certificate.task.refuse:
                    assert f"+{more}=" in gold.notes[len(gold.steps)]
                    sorts["surcharge"] += 1
    assert all(sorts[sort] for sort in ("latest", "spare", "strict", "surcharge")), sorts


class Silent(Family):
    """A family that works as another does and writes nothing down."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def __getattribute__(self, name: str) -> Any:
        if name in ("solve", "family", "__class__"):
            return object.__getattribute__(self, name)
        return getattr(self.family, name)

    def solve(self, brief: Brief) -> Solution:
        flow, result = self.family.solve(brief), None
        while True:
            try:
                call = flow.send(result)  # type: ignore[arg-type]
            except StopIteration as stop:
                end: str | Refusal = stop.value
                return end
            result = None if call.tool == NOTE else (yield call)


@pytest.mark.parametrize("name", OURS)
def test_walks_are_the_same_without_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = domains[name]
    layers = [d for kind in ("", "tool_merge", "changed_mind") for d in draws(name, kind, 1)]
    layers = [d for d in layers if not d.certificate.task.refuse and not any(x.plans for x in d.layers)]
    loud = [walk(here, d.certificate.task, d.layers) for d in layers]
    family = here.family
    monkeypatch.setattr(type(here), "family", lambda self, task: Silent(family(task)))
    quiet = [walk(here, d.certificate.task, d.layers) for d in layers]
    assert any(one.notes for one in loud)
    assert not any(one.notes for one in quiet)
    for one, two in zip(loud, quiet, strict=True):
        assert (one.steps, one.end, one.changes) == (two.steps, two.end, two.changes)


@pytest.mark.parametrize("kind", ["", "changed_mind", "underspecified", "unsolvable", "tool_merge"])
def test_nobody_but_the_agent_sees_it(kind: str) -> None:
    thought = 0
    for drawn in draws("poi", kind, 2):
        with_it, bare = demonstration(drawn), demonstration(drawn, reasons=False)
        assert not any("<think>" in message.content for message in bare.chat)
        assert (with_it.menus, with_it.meta) == (bare.menus, bare.meta)
        for one, two in zip(with_it.chat, bare.chat, strict=True):
            if one.role != "assistant":
                assert one == two
                continue
            thought += one != two
            assert parse(spoken(one)) == parse(spoken(two))
            assert parse(spoken(one))[0] == two.content
    assert thought > 5


def test_a_thought_and_a_call_fit_into_a_reply() -> None:
    longest = max(
        (_count(spoken(message)), spoken(message))
        for name in OURS
        for drawn in draws(name, "", 12)
        for message in demonstration(drawn).chat
        if message.role == "assistant"
    )
    assert longest[0] < REPLY, longest


def test_an_agent_that_solves_the_task_itself_keeps_it_to_itself() -> None:
    for drawn in draws("poi", "", 1):
        record = asyncio.run(play(drawn, Solver(drawn), "solver"))
        assert judge(record).outcome == "pass"
        assert NOTE not in {step["call"]["tool"] for step in record.steps}


def test_long_lists_name_only_what_matters() -> None:
    rng = Random(3)
    values = {f"P{n}": rng.randrange(1000) for n in range(40)}
    taken = max(values, key=lambda key: values[key])
    said = text_of(notes.choice(values, taken, "most"))
    assert re.search(rf"{taken} {values[taken]}>\d+ yes: most {taken}$", said)
    assert said.count(",") < notes.MOST
    rows = [(f"{n:02}:00", n % 3) for n in range(20)]
    assert text_of(notes.first_fit(rows, 2, latest=True, last="17:00 S1")).count(" no") == 0
    assert text_of(notes.count([(n, n % 7 == 0) for n in range(20)])) == "0 yes 1, 7 yes 2, 14 yes 3: 3"


def test_how_each_sort_of_working_reads() -> None:
    ratings = {"P1": 3.1, "P2": 4.5, "P3": 4.12}
    assert text_of(notes.choice(ratings, "P2", "most")) == "P1 3.1, P2 4.5>3.1 yes, P3 4.12>4.5 no: most P2"
    assert text_of(notes.choice({"a": 9, "b": 18}, "a", "least")) == "a 9, b 18<9 no: least a"
    slots = [("08:30", 2), ("11:15", 6), ("12:00", 9)]
    assert text_of(notes.first_fit(slots, 4, last="11:15 S7")) == (
        "earliest, need 4+0=4: 08:30 2 no, 11:15 6 yes: 11:15 S7"
    )
    assert text_of(notes.first_fit(slots, 4, 3, last="12:00 S8")) == (
        "earliest, need 4+3=7: 08:30 2 no, 11:15 6 no, 12:00 9 yes: 12:00 S8"
    )
    assert text_of(notes.first_fit(slots[::-1], 4, last="11:15 S7")) == (  # in no order: all of them count
        "earliest, need 4+0=4: 12:00 9 yes, 11:15 6 yes, 08:30 2 no: 11:15 S7"
    )
    assert text_of(notes.first_fit(slots[:1], 4, last=None)) == "earliest, need 4+0=4: 08:30 2 no: none"
    marks = [(5, True), (3, False), (4, True)]
    assert text_of(notes.count(marks, "at least 4")) == "at least 4: 5 yes 1, 3 no, 4 yes 2: 2"
    dates = [("2031-05-27", False), ("2031-05-23 paid", True), ("2031-05-25", False)]
    assert text_of(notes.pick(dates, "R7 P2")) == "2031-05-27 no, 2031-05-23 paid yes: R7 P2"
    assert text_of(notes.pick(dates[:1], None)) == "2031-05-27 no: none"
    assert text_of(notes.total([4, 23, 13])) == "4, 4+20=24+3=27, 27+10=37+3=40"
    assert text_of(notes.total([4, 120], 2)) == "plus 2 each: 4+2=6, 6+100=106+20=126+2=128"
    assert text_of(notes.total([4, 12], 0, ["P1", "P2"])) == "plus 0 each: P1 4, P2 4+10=14+2=16"
    assert text_of(notes.total([7], 0)) == "plus 0 each: 7"
    assert text_of(notes.total([3, 0])) == "3, 3+0=3"
    assert text_of(notes.total([])) == "0"


def thoughts(drawn: Drawn) -> list[tuple[list[str], ToolCall | None]]:
    """What was thought before each turn of a demonstration, in its parts, and the call that followed."""
    out = []
    for message in demonstration(drawn).chat:
        if message.role == "assistant":
            said = (
                message.content.partition("</think>")[0].removeprefix("<think>") if "<think>" in message.content else ""
            )
            calls = [ToolCall(request.tool, request.args) for request in message.requests]
            out.append(([part for part in said.split("; ") if part], calls[0] if calls else None))
    return out


@pytest.mark.parametrize("kind", ["", "semantic_rename", "parameter_rename", "verification_code"])
def test_how_a_tool_is_called_is_written_once_and_by_its_first_call(kind: str) -> None:
    for drawn in draws("poi", kind, 1):
        menu = demonstration(drawn).menus[0][1]
        forms = {tool.name: call_form(tool) for tool in menu}
        listed, written = with_tools("", menu), ""
        for parts, call in thoughts(drawn):
            written += "; ".join(["", *parts, ""])
            if call is not None:
                form = forms[call.tool]
                marked = re.sub(r" (?:yes|no)(?=[,)])", "", written)
                assert len(re.findall(rf"(?<![\w-]){re.escape(form)}", marked)) == 1
                assert f"- {form}: " in listed


def test_a_code_to_fetch_is_seen_where_it_is_needed() -> None:
    """What the code is for is said before it is fetched, and that it was not there."""
    found = 0
    for drawn in draws("poi", "verification_code", 2):
        walked, forms = thoughts(drawn), dict[str, str]()
        for n, (parts, call) in enumerate(walked):
            forms |= re.findall(r"([\w-]+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)", " ".join(parts))
            if call is not None and not call.args:  # the code's own tool takes nothing
                *outer, last, mine = parts[-1].split(" needs ")
                user = re.match(r"[\w-]+", last.partition(": ")[2] if outer else last)[0]  # type: ignore[index]
                key, _, issuer = mine.removesuffix("()").partition(": ")
                following = walked[n + 1][1]
                assert following is not None
                assert (user, issuer) == (following.tool, call.tool)
                assert key in following.args
                assert f"{key} no" in forms[user].split(", ")
                found += 1
    assert found > 10


def test_what_is_known_of_a_call_is_gone_through() -> None:
    """An argument is known if its value was shown before, and not if it is still to be told."""
    found: Counter[str] = Counter()
    for kind in ("", "dependency_inversion", "confirm_before_write"):
        for drawn in draws("poi", kind, 2):
            shown, seen = demonstration(drawn), ""
            later = [request for message in shown.chat for request in message.requests]
            for message in shown.chat:
                if message.role != "assistant":
                    seen += message.content
                    continue
                later = later[len(message.requests) :] if message.requests else later
                thought = message.content.partition("</think>")[0]
                for tool, said in re.findall(r"([\w-]+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)", thought):
                    made = next((r for r in [*message.requests, *later] if r.tool == tool), None)
                    assert made is not None
                    assert isinstance(made.args, dict)
                    for part in said.split(", ") if tool != "ask_user" else ():
                        key, known = re.match(r"[\w-]+", part)[0], part.endswith(" yes")  # type: ignore[index]
                        value = made.args.get(key)
                        assert known == (value is not None and (len(str(value)) < 4 or str(value) in seen)), (
                            part,
                            value,
                        )
                        found[f"{kind} {known}"] += 1
    assert all(found[f"{kind} {known}"] for kind in ("", "dependency_inversion") for known in (True, False)), found


@pytest.mark.parametrize("kind", ["paged_results", "confirm_before_write"])
def test_a_call_made_again_with_what_it_was_answered_with_says_so(kind: str) -> None:
    found = 0
    for drawn in draws("poi", kind, 2):
        walked = thoughts(drawn)
        for (_, before), (parts, call) in pairwise(walked):
            if before is None or call is None or before.tool != call.tool:
                continue
            more = [(key, value) for key, value in call.args.items() if before.args.get(key) != value]
            if len(more) == 1 and more[0][0] not in ("place_id", "date", "to_place"):
                assert parts[-1] == f"again, {more[0][0]} {more[0][1]}"
                found += 1
    assert found > 10


def test_what_an_error_comes_to_begins_with_its_code() -> None:
    found: Counter[str] = Counter()
    for kind in ("transient_error", "redirection", "lost_acknowledgement", "unsolvable"):
        for drawn in draws("poi", kind, 2):
            gold, walked = drawn.certificate.gold, thoughts(drawn)
            for n, step in enumerate(gold.steps):
                if step.result.error and (walked[n + 1][1] or isinstance(gold.end, Refusal)):
                    code, colon, what = walked[n + 1][0][-1].partition(": ")
                    call = walked[n + 1][1]
                    assert (code, colon) == (step.result.error.code, ": ")
                    again = call is not None and (call.tool, call.args) == (step.call.tool, step.call.args)
                    assert what.startswith("stop" if call is None else "again" if again else call.tool), what
                    found[code] += 1
    assert all(found[code] for code in ("unavailable", "moved", "timeout", "refused")), found


@pytest.mark.parametrize("name", OURS)
def test_a_request_is_read_before_anything_is_done(name: str) -> None:
    planned = 0
    for drawn in draws(name, "", 3):
        task, family = drawn.certificate.task, drawn.domain.family(drawn.certificate.task)
        (values, rules, *more), _ = thoughts(drawn)[0]
        gaps = {key: f"{detail.label} ?" for key, detail in family.details.items()}
        assert values.split(", ") == [str(task.brief.stated.get(key, gap)) for key, gap in gaps.items()]
        assert all(value in gaps.values() or value in task.brief.query for value in values.split(", "))
        assert rules == "rules none"
        called = list(dict.fromkeys(step.call.tool for step in drawn.certificate.gold.calls))
        if family.takes():
            planned += 1
            assert more[0] == f"plan {', '.join(f'{part} {tool}' for part, tool in family.takes().items())}"
            assert list(family.takes().values())[: len(called)] == called
            assert family.refusal or len(called) == len(family.takes())
    assert planned >= 3 * 18


def test_rules_and_missing_details_and_tools_are_read_off() -> None:
    found: Counter[str] = Counter()
    for kind in ("rule_change", "conflicting_information", "underspecified", "missing_tool"):
        for drawn in draws("poi", kind, 2):
            task = drawn.certificate.task
            values, rules, plan, *_ = thoughts(drawn)[0][0]
            assert values.count(" ?") == len(task.withheld)
            asked = [parts[-1] for parts, call in thoughts(drawn) if call and call.tool == "ask_user"]
            gaps = re.findall(r"[^,]+ \?", values.replace(", ", ",")) if kind != "missing_tool" else []
            assert [said.partition(": ")[0] for said in asked] == gaps
            found["?"] += "?" in values and kind == "underspecified"
            for rule, value in task.brief.rules.items():
                written = {"spare": f"spare {value}", "surcharge": f"plus {value}"}.get(rule, rule)
                assert written in rules
                found[rule] += 1
            missing = any(part.endswith(" none") for part in plan.split(", "))
            assert missing == (kind == "missing_tool")
            found[kind] += missing
    assert all(found[x] for x in ("?", "latest", "spare", "surcharge", "strict", "city", "missing_tool")), found


def test_who_lacks_a_tool_stops_at_once_and_is_right_to() -> None:
    stopped = 0
    for domain in ("poi", "medical"):
        for drawn in draws(domain, "missing_tool", 2):
            task, shown = drawn.certificate.task, demonstration(drawn)
            *_, plan, end = thoughts(drawn)[0][0]
            assert len(thoughts(drawn)) == 1
            assert plan.startswith("plan ")
            assert end.endswith(" none: stop")
            assert end.removesuffix(": stop") in plan.removeprefix("plan ").split(", ")
            assert drawn.domain.judge(task, drawn.domain.state(task), shown.chat[-1].content).outcome == "pass"
            assert shown.meta["steps"] == 0
            stopped += bool(drawn.certificate.gold.steps)
            plain = demonstration(drawn, reasons=False)
            assert plain.meta["steps"] == len(drawn.certificate.gold.steps)
    assert stopped > 10


def test_who_is_sent_on_had_the_old_tool_in_mind() -> None:
    moved = 0
    for drawn in draws("poi", "redirection", 2):
        first, call = thoughts(drawn)[0]
        assert call is not None
        plan = [part.split()[-1] for part in first[2].split(", ")]
        refused = [
            s.call.tool for s in drawn.certificate.gold.steps if s.result.error and s.result.error.code == "moved"
        ]
        moved += len(refused)
        assert call.tool == "ask_user" or call.tool in plan
        assert refused[0] in plan
    assert moved > 10


def part_late(one: Drawn, two: Drawn) -> bool:
    """Do two walks part only after something else was shown? Anyone who was shown the same thinks and does the same."""
    mine, other = demonstration(one), demonstration(two)
    if mine.menus != other.menus:
        return False
    for a, b in zip(mine.chat, other.chat, strict=False):
        if a.role != "assistant" and a.content != b.content:
            return True
        assert a == b, (one.base.id, [layer.kind for layer in (*one.layers, *two.layers)])
    return False


@pytest.mark.parametrize("kind", ["unsolvable", "transient_error"])
@pytest.mark.parametrize("name", OURS)
def test_no_thought_knows_how_it_goes_on(name: str, kind: str) -> None:
    found = [part_late(drawn, draw(drawn.domain, drawn.base, (), 0)) for drawn in draws(name, kind, 2)]
    assert sum(found) > 12


@pytest.mark.parametrize("kind", ["verification_code", "dependency_inversion", "confirm_before_write"])
@pytest.mark.parametrize("form", ["format_switch", "injected_instruction"])
def test_no_thought_knows_in_what_form_an_answer_comes(kind: str, form: str) -> None:
    apart = 0
    for name in ("poi", "banking"):
        for plain in draws(name, kind, 2):
            for severity in (1, 4):
                try:
                    formed = draw(plain.domain, plain.base, [(kind, 3), (form, severity)], plain.base.seed % 7)
                except CannotPerturb:
                    continue
                if formed.layers[: len(plain.layers)] == plain.layers:
                    apart += part_late(plain, formed)
    assert apart > 3


def test_tasks_of_a_suite_have_it_too() -> None:
    found = [walk(domains["poi"], task).notes for _, task in zip(range(20), tasks(domains["poi"], 0), strict=False)]
    assert sum(map(bool, found)) > 12


def test_declared_families_show_their_working_and_their_plan() -> None:
    """In generated worlds too it is written down what is compared and counted, in words that were shown."""
    said = []
    for drawn in draws("generated:train-0", "", 3):
        notes_of = demonstration(drawn)
        said += [notes_of.chat[at].content for at in notes_of.turns]
    assert any("plan " in text for text in said)
    assert any(re.search(r"[<>]\S+ (yes|no)\S*.*: (most|least) ", text) for text in said)
    assert any(re.search(r" yes \d+.*: \d+", text) for text in said)


@pytest.mark.parametrize("domain", ["poi", "generated:train-8"])
def test_habits_change_how_and_not_what(domain: str) -> None:
    habits = Habits(refusals="looked", errors="quoted", names="quoted")
    quoted = 0
    for drawn in draws(domain, "transient_error", 1):
        plain, other = demonstration(drawn), demonstration(drawn, habits=habits)
        assert [m.requests for m in plain.chat] == [m.requests for m in other.chat]
        assert plain.chat[-1].content.rpartition("</think>")[2] == other.chat[-1].content.rpartition("</think>")[2]
        thoughts = " ".join(other.chat[at].content for at in other.turns)
        quoted += " (" in thoughts and bool(re.search(r"unavailable \(", thoughts))
        assert re.search(r'"[a-z_]+"\(', thoughts)
    assert quoted


def test_a_missing_tool_is_refused_after_having_looked() -> None:
    looked = 0
    for drawn in draws("poi", "missing_tool", 2):
        if not isinstance(drawn.certificate.gold.end, Refusal):
            continue
        made = demonstration(drawn, habits=Habits(refusals="looked"))
        assert made.meta["steps"] == len(drawn.certificate.gold.steps)
        looked += made.meta["steps"] > 0 == demonstration(drawn).meta["steps"]
    assert looked
