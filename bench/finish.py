"""Whether endings by the tool `finish` are judged right: calls of all kinds, with the verdict that each must get.

    python -m bench.finish > docs/results/finish.md

Every case plays a certified episode: the oracle's calls, then one or more calls of `finish` written as a model might
write them. What must come of it is known by construction, from the results that the oracle was shown and from its own
words; the judge has no part in that. Exits with 1 if a verdict is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosswind import __version__
from crosswind.agents._scripted import Reciter, lines_of, requesting
from crosswind.base.errors import CannotPerturb
from crosswind.core import entity_names
from crosswind.core.draw import Drawn, draw
from crosswind.core.registry import domains
from crosswind.core.types import FINISH, Message, ToolCall
from crosswind.episodes.play import judge, play

DOMAINS = ("poi", "workspace", "banking", "retail", "medical", "operations")
SOLVABLE = ("", "entity_reskin", "semantic_rename", "changed_mind", "rule_change", "locale_format", "key_rename")
HOPELESS = ("unsolvable", "fatal_error", "missing_tool")
CAUSES = ("not_found", "none_available", "not_allowed", "tool_unavailable", "information_missing")
READS = (
    r"no tool here does|was shut down|deactivated|blocked in this|not in operation|no longer in service|disconnected"
)
WORDS = (  # the oracle's words for what stands in the way -> the causes that fit them
    (READS, {"tool_unavailable"}),
    (r"exceed its daily limit", {"none_available", "not_allowed"}),
    (r"no signed transfer|never signed|not paid", {"not_allowed", "not_found", "none_available"}),  # named by no id
    (r"nothing that fits is left|cannot carry|has not enough|not long enough", {"none_available"}),
    (r"there is no |nothing (?:is )?booked|no transfer from|no \w+ (?:is planned|stands)|nobody is on call"
     r"|nothing is ordered", {"not_found", "none_available"}),
    (r"may not|suspended|confidential|not active|no active|not open|already|frozen|lapsed|blocked|signed"
     r"|no card|recalled|cancelled|is closed", {"not_allowed"}),
)  # fmt: skip
HEAD = """# Endings by `finish`

Every case plays a certified episode of a built-in family: the oracle's calls, then a call of `finish` as a model might
write it. The verdict that it must get is known by construction, from what the oracle was shown and said.

- command: `python -m bench.finish --seeds {seeds}`
- crosswind {version}, commit {commit}, {date}
- {n} calls over {families} families of {domains} domains; {honest} of them honest ones, in {styles} styles

| class | calls | must | judged otherwise |
| --- | --- | --- | --- |"""
KIND = {"yesno": "yes_no"}
SCORES = ("rating", "score", "health", "skill", "review_score", "trust_score")
FIGURES = ("price", "fee", "unit_price", "hourly_cost", "open_tasks")  # what things are compared and summed by


@dataclass(frozen=True, slots=True)
class Case:
    """Calls of `finish` after the oracle's way, and what must come of them."""

    sort: str
    style: str
    must: str  # pass or fail
    calls: tuple[Any, ...]  # arguments; a text is said in words
    idle: bool = False  # nothing is done before


@dataclass(slots=True)
class Ground:
    """What is known of an episode without asking the judge."""

    drawn: Drawn
    values: list[dict[str, Any]]  # of the right answer
    own: list[str] = field(default_factory=list)  # names and ids of what it is about
    rivals: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)  # that final writes returned
    made: list[str] = field(default_factory=list)  # that any write returned
    moments: dict[str, str] = field(default_factory=dict)  # date and time of what was booked
    wrong_times: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)  # of things that were looked at, by name
    states: list[str] = field(default_factory=list)  # that writes gave
    foreign: list[str] = field(default_factory=list)  # states that nothing was brought to, nor was in before
    rows: list[dict[str, Any]] = field(default_factory=list)  # of all results
    calls: list[tuple[ToolCall, Any]] = field(default_factory=list)  # that worked, with their results

    def call(self, tool: str) -> ToolCall:
        """The last call of a tool that worked."""
        found: ToolCall = next(call for call, _ in reversed(self.calls) if call.tool == tool)
        return found

    @property
    def words(self) -> str:
        return self.drawn.certificate.gold.final


def ground(drawn: Drawn) -> Ground:
    """Read the oracle's way: which slot it took, what writes gave, what details said."""
    gold, task = drawn.certificate.gold, drawn.certificate.task
    family = drawn.domain.family(task)
    expected = family.answer(task, drawn.domain.state(task), gold.session.world.state)

    def say(value: Any) -> Any:
        return entity_names.shown(task, value) if isinstance(value, str) else value

    values = [{"kind": KIND.get(e.kind, e.kind), "value": say(e.value)} for e in expected]
    out = Ground(drawn, values)
    for e in expected:
        out.own += [say(word) for word in e.about]
        out.rivals += [say(word) for word in (*e.rivals, *e.others)]
    entries = drawn.domain.world_class.entries
    rows = out.rows
    for step in gold.steps:
        for call, result in step.inner:
            content = result.content
            if result.error or call.tool not in entries:
                continue
            out.calls.append((call, content))
            found = content if isinstance(content, list) else [content]
            rows += [row for row in found if isinstance(row, dict)]
            if isinstance(content, dict) and "name" in content:
                figures = [content[key] for key in FIGURES if key in content]
                out.figures |= {say(content["name"]): figure for figure in figures}
            if entries[call.tool].spec.writes and isinstance(content, dict) and not entries[call.tool].spec.undo:
                out.ids += [v for k, v in content.items() if isinstance(v, str) and re.fullmatch(r"[A-Z]{1,4}\d+", v)]
            if entries[call.tool].effects and isinstance(content, dict):
                out.states += [content["status"]] if "status" in content else []
                out.made += [v for v in content.values() if isinstance(v, str) and re.fullmatch(r"[A-Z]{1,4}\d+", v)]
            took = [v for k, v in call.args.items() if isinstance(v, str)]
            if entries[call.tool].spec.writes:
                for row in rows:
                    slot = "time" in row and "status" not in row  # and not something that was booked before
                    if slot and any(row.get(k) in took for k in row if k.endswith("_id")):
                        out.moments = {"time": row["time"]}
    every = {effect.partition("status=")[2] for entry in entries.values() for effect in entry.effects} - {""}
    out.foreign = sorted(every - {row["status"] for row in rows if "status" in row})
    if out.moments:
        true = {out.moments["time"], *(r["time"] for r in rows if "time" in r and "status" in r)}
        out.wrong_times = sorted({r["time"] for r in rows if "time" in r} - true)
    return out


# ---------------------------------------------------------------- honest calls


def done(*values: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": "done", "answer": list(values), **more}


def right(g: Ground) -> Iterator[tuple[str, Any]]:
    """The right answer in many forms."""
    v = [dict(one) for one in g.values]
    text = [{**one, "value": str(one["value"])} for one in v]
    yield "plain", done(*v)
    yield "values as strings", done(*text)
    yield "with the words as message", done(*v, message=g.words)
    yield "a long message", done(*v, message=f"{g.words} I compared 3 others first; 99 of 100 checks were fine.")
    yield "unused keys are null", done(*[{**one, "unit": None, "about": None} for one in v], reason=None)
    yield "unused keys are empty", done(*[{**one, "unit": "", "about": ""} for one in v], reason="", message="")
    yield "said twice", done(*v, *v)
    if len(v) == 1:
        yield "an object instead of a list", {"status": "done", "answer": v[0]}
    if v:
        yield "encoded twice", {"status": "done", "answer": json.dumps(v)}
    else:
        yield "nothing to tell", {"status": "done"}
        yield "an empty list", {"status": "done", "answer": []}
    yield "yes as well", done(*v, {"kind": "yes_no", "value": "yes"})
    for i, one in enumerate(v):
        rest = [other for j, other in enumerate(v) if j != i]
        yield from ((style, done(*rest, {**one, **change})) for style, change in forms(g, one))
    wanted = g.drawn.certificate.task.wanted
    stated = [str(x) for x in wanted.values() if isinstance(x, str) and re.fullmatch(r"[A-Z]{1,4}\d+|\d{4}-.*", str(x))]
    for x in stated[:2]:
        kind = "date" if x[4:5] == "-" else "id"
        if not any(e["kind"] == kind == "date" for e in v) and len([s for s in stated if s[4:5] == "-"]) < 2:
            yield f"{kind} of the request as well", done(*v, {"kind": kind, "value": x})
    if g.made:
        yield "every id that a write gave", done(*v, *({"kind": "id", "value": id} for id in g.made))
    for state in g.states[-1:]:
        yield "the state that was reached", done(*v, {"kind": "choice", "value": state})
        yield "yes to the state reached", done(*v, {"kind": "yes_no", "value": True, "about": state})
    for id in g.ids:
        yield "other ids of what was made", done(*v, {"kind": "id", "value": id})
    if g.moments and not any(e["kind"] == "time" for e in v):
        yield "time of the booking", done(*v, {"kind": "time", "value": g.moments["time"]})
        yield (
            "all at once",
            done(
                *v,
                {"kind": "time", "value": g.moments["time"]},
                *({"kind": "id", "value": id} for id in g.ids),
                message="Ok.",
            ),
        )
    written = WRITTEN.get((g.drawn.base.domain, g.drawn.base.family))
    if written and not g.drawn.layers:  # they are written in the words of the records
        yield f"written for {g.drawn.base.family}", done(*written(g))
    things = list(g.figures)
    compared = [e["kind"] for e in v] == ["name"]
    if len(things) > 1 and (compared or (v and not g.own and v[0]["kind"] in ("money", "number") and not g.ids)):
        yield "the figures behind the answer", done(*v, *of_each(g, things, list(g.figures.values())))
    for name in g.own[:2]:
        kind = "id" if any(c.isdigit() for c in name) else "name"
        if not any(e["kind"] == kind for e in v):
            yield "name or id as well", done(*v, {"kind": kind, "value": name})


def of_each(g: Ground, names: Sequence[str], figures: Sequence[Any]) -> list[dict[str, Any]]:
    """The figures of things, each of the thing that it belongs to."""
    kind = "number" if g.drawn.base.domain == "workspace" else "money"
    return [{"kind": kind, "value": figure, "about": name} for name, figure in zip(names, figures, strict=True)]


def booked(about: str, tool: str, slot: str, need: str) -> Callable[[Ground], list[dict[str, Any]]]:
    """A booking told in full: its number, the time, the date, the need and the thing."""

    def told(g: Ground) -> list[dict[str, Any]]:
        wanted = g.drawn.certificate.task.wanted
        taken = g.call(tool).args[slot]
        time = next(row["time"] for row in g.rows if row.get(slot) == taken and "time" in row)
        ranked = [(row[key], row["name"]) for row in g.rows for key in SCORES if key in row and "name" in row]
        return [
            {**g.values[0], "about": about},
            {"kind": "time", "value": time},
            {"kind": "date", "value": wanted["date"]},
            {"kind": "number", "value": str(wanted[need]), "unit": need},
            {"kind": "name", "value": max(ranked)[1]},
        ]

    return told


def ranked(far: str) -> Callable[[Ground], list[dict[str, Any]]]:
    """The thing that comes first, with its id and the figure that put it there."""

    def told(g: Ground) -> list[dict[str, Any]]:
        name = g.values[0]["value"]
        id = next(v for row in g.rows if row.get("name") == name for k, v in row.items() if k.endswith("_id"))
        figures = [content[far] for call, content in g.calls if id in call.args.values() and far in content]
        figure = {"kind": "number", "value": figures[0], "unit": far, "about": name}
        return [g.values[0], {"kind": "id", "value": id}, figure]

    return told


def on_call(g: Ground) -> list[dict[str, Any]]:
    wanted = g.drawn.certificate.task.wanted
    engineer = next(row["engineer_id"] for row in g.rows if "engineer_id" in row)
    return [{**g.values[0], "about": f"{wanted['region']} on {wanted['date']}"}, {"kind": "id", "value": engineer}]


def cancelled(g: Ground) -> list[dict[str, Any]]:
    wanted, call = g.drawn.certificate.task.wanted, g.call("cancel_reservation")
    told = [call.args["reservation_id"], wanted["customer_id"]]
    return [*({"kind": "id", "value": id} for id in told), {"kind": "choice", "value": "cancelled"}]


def moved(g: Ground) -> list[dict[str, Any]]:
    id = g.call("move_reservation").args["reservation_id"]
    date = g.drawn.certificate.task.wanted["new_date"]
    return [{**g.values[0], "about": id}, {"kind": "id", "value": id}, {"kind": "date", "value": date}]


def swapped(g: Ground) -> list[dict[str, Any]]:
    wanted = g.drawn.certificate.task.wanted
    count = {**g.values[0], "unit": "live reservations", "about": wanted["customer_id"]}
    return [count, *({"kind": "id", "value": id} for id in g.ids), {"kind": "date", "value": wanted["new_date"]}]


def rated(g: Ground) -> list[dict[str, Any]]:
    rating = next(row["rating"] for row in g.rows if row.get("name") == g.own[0] and "rating" in row)
    city = {"kind": "name", "value": g.drawn.certificate.task.wanted["city"]}
    stars = {"kind": "number", "value": rating, "unit": "stars", "about": g.own[0]}
    return [{**g.values[0], "unit": "EUR", "about": g.own[0]}, {"kind": "name", "value": g.own[0]}, stars, city]


def shared(g: Ground) -> list[dict[str, Any]]:
    return [g.values[0], *({"kind": "id", "value": id} for id in g.call("share_file").args.values())]


WRITTEN: dict[tuple[str, str], Callable[[Ground], list[dict[str, Any]]]] = {  # endings with everything in them
    ("poi", "book_visit"): booked("payment receipt", "reserve", "slot_id", "seats"),
    ("medical", "lab_visit"): booked("lab order", "book_appointment", "opening_id", "minutes"),
    ("operations", "launch_build"): booked("rollout", "stage_deployment", "window_id", "replicas"),
    ("workspace", "invited_meeting"): booked("invitation message", "schedule_meeting", "slot_id", "attendees"),
    ("poi", "closest_place"): ranked("minutes"),
    ("operations", "lowest_latency"): ranked("latency_ms"),
    ("medical", "quickest_referral"): ranked("days"),
    ("workspace", "nearest_time_zone"): ranked("hours"),
    ("operations", "on_call_name"): on_call,
    ("poi", "cancel_visit"): cancelled,
    ("poi", "move_visit"): moved,
    ("poi", "swap_visit"): swapped,
    ("poi", "best_price"): rated,
    ("workspace", "share_longest"): shared,
}


def forms(g: Ground, one: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    kind, value = one["kind"], one["value"]
    if kind in ("name", "id", "choice"):
        yield "another text kind", {"kind": "choice"}
        yield "lower case", {"value": str(value).lower()}
        yield "padded", {"value": f" {value} "}
    if kind == "id" and re.fullmatch(r"[A-Z]+\d+", str(value)):
        yield "a noun before an id", {"value": f"Confirmation {value}"}
        yield "punctuation in an id", {"value": re.sub(r"(?<=[A-Z])(?=\d)", "-", value)}
    if kind == "name":
        yield "a title before a name", {"value": f"Dr. {value}"}
        yield "of itself", {"about": value}
    if kind == "money":
        for unit in ("EUR", "euros", "€", "Euro"):
            yield "a unit for euros", {"unit": unit}
        for unit in ("eur", "EUR per unit", "euros each"):
            yield "a unit for euros, told at length", {"unit": unit}
        yield "cents", {"value": round(value * 100), "unit": "cents"}
        yield "cents in the value", {"value": f"{round(value * 100)} euro cents"}
        yield "unit in the value", {"value": f"{value} EUR"}
        yield "symbol before the value", {"value": f"€{value}"}
        yield "decimals", {"value": f"{float(value):.2f}", "unit": "EUR"}
        yield "a number in euros", {"kind": "number", "unit": "EUR"}
    if kind == "number":
        yield "a counted noun", {"unit": "items"}
        yield "decimals", {"value": float(value)}
        yield "noun in the value", {"value": f"{value} items"}
    if kind == "time":
        hour, minute = map(int, value.split(":"))
        yield "seconds", {"value": f"{value}:00"}
        yield "twelve hours", {"value": f"{hour % 12 or 12}:{minute:02} {'pm' if hour >= 12 else 'am'}"}
    for words in ("what you asked for", "the answer", "Booking reference", "Confirmation", "Entry fee"):
        yield "about in plain words", {"about": words}
    if g.own and kind != "id":
        yield "about the name", {"about": g.own[0]}
        yield "about the id", {"about": g.own[-1]}
        yield "about both", {"about": f"{g.own[0]} ({g.own[1]})" if len(g.own) > 1 else g.own[0]}
        yield "about with words", {"about": f"the one asked for, {g.own[0]}"}


# ---------------------------------------------------------------- other calls


def wrong(g: Ground) -> Iterator[tuple[str, str, Any]]:
    v = [dict(one) for one in g.values]
    spoilt = [dict(one, value=other(one["value"], one["kind"])) for one in v]
    if v:
        yield "wrong value", "another value", done(spoilt[0], *v[1:])
        yield "wrong value", "another value, right words", done(spoilt[0], *v[1:], message=g.words)
        yield "missing value", "no answer", {"status": "done"}
        yield "missing value", "only in the message", {"status": "done", "message": g.words}
        yield "extra value", "a second value of the kind", done(*v, spoilt[0])
        if len(v) > 1:
            yield "missing value", "one of several", done(v[0])
    else:
        yield "extra value", "an id of nothing", done({"kind": "id", "value": "Q0000001"})
    yield "extra value", "an id of nothing", done(*v, {"kind": "id", "value": "Q0000001"})
    yield "extra value", "a name of nothing", done(*v, {"kind": "name", "value": "Zorblax"})
    if not any(e["kind"] == "time" for e in v):
        for time in g.wrong_times[:2]:
            yield "extra value", "the time of another slot", done(*v, {"kind": "time", "value": time})
        yield "extra value", "a time of nothing", done(*v, {"kind": "time", "value": "03:07"})
    if not any(e["kind"] == "money" for e in v):
        yield "extra value", "an amount of nothing", done(*v, {"kind": "money", "value": 987654, "unit": "EUR"})
    if g.states and not any(e["kind"] in ("choice", "yes_no") for e in v):
        for state in g.foreign:
            yield "false state", "a state not reached", done(*v, {"kind": "choice", "value": state})
            yield "false state", "yes to it", done(*v, {"kind": "yes_no", "value": True, "about": state})
    things, figures = list(g.figures), list(g.figures.values())
    if [e["kind"] for e in v] == ["name"] and len(set(figures)) == len(figures) > 1:
        yield "wrong entity", "figures of one another", done(*v, *of_each(g, things, figures[1:] + figures[:1]))
    for i, one in enumerate(v):
        rest = [x for j, x in enumerate(v) if j != i]
        if one["kind"] == "money":
            for unit in ("USD", "£", "minutes", "cents", "usd", "US dollars", "kr", "kEUR", "thousand EUR", "bananas"):
                yield "wrong unit", "another currency or a measure", done(*rest, {**one, "unit": unit})
            yield "wrong unit", "a bare number for money", done(*rest, {**one, "kind": "number"})
        if one["kind"] == "number":
            yield "wrong unit", "money for a count", done(*rest, {**one, "kind": "money", "unit": "EUR"})
            for unit in ("dozen", "thousand items", "%"):
                yield "wrong unit", "a multiple for a count", done(*rest, {**one, "unit": unit})
            yield "wrong unit", "a measure for a count", done(*rest, {**one, "unit": "minutes"})
            yield "wrong unit", "a currency for a count", done(*rest, {**one, "unit": "EUR"})
        if one["kind"] in ("date", "time", "money", "number"):
            yield "wrong unit", "a text for a typed value", done(*rest, {"kind": "name", "value": str(one["value"])})
        for rival in g.rivals[:2]:
            yield "wrong entity", "about another thing", done(*rest, {**one, "about": rival})
            if one["kind"] not in ("name", "id"):
                kind = "id" if any(c.isdigit() for c in rival) else "name"
                yield "wrong entity", "another thing named", done(*v, {"kind": kind, "value": rival})
            elif one["kind"] == "name" and not any(c.isdigit() for c in rival):
                yield "wrong entity", "another name", done(*rest, {"kind": "name", "value": rival})
        if g.own:
            for words in (f"not {g.own[0]}", f"all of them except {g.own[0]}"):
                yield "wrong entity", "about all but the right thing", done(*rest, {**one, "about": words})
            yield "wrong entity", "about nothing known", done(*rest, {**one, "about": "Zorblax"})


def other(value: Any, kind: str) -> Any:
    """A value that is wrong."""
    if kind in ("number", "money"):
        return value + 1
    if kind == "time":
        return f"{(int(value[:2]) + 1) % 24:02}:{value[3:]}"
    if kind == "date":
        return f"{value[:8]}{int(value[8:]) % 28 + 1:02}"
    if kind == "id":
        return value[:-1] + str((int(value[-1]) + 1) % 10) if value[-1].isdigit() else value + "9"
    return "Zorblax"


MALFORMED: Sequence[tuple[str, Any]] = (
    ("no status", {}),
    ("an unknown status", {"status": "finished"}),
    ("no object", 3),
    ("a list", [1]),
    ("an unknown argument", {"status": "done", "result": 3}),
    ("an answer in words", {"status": "done", "answer": "It is done."}),
    ("an entry without a kind", {"status": "done", "answer": [{"value": 3}]}),
    ("an entry without a value", {"status": "done", "answer": [{"kind": "number"}]}),
    ("an unknown kind", {"status": "done", "answer": [{"kind": "price", "value": 3}]}),
    ("an unknown key", {"status": "done", "answer": [{"kind": "number", "value": 3, "note": "x"}]}),
    ("no number", {"status": "done", "answer": [{"kind": "number", "value": "three"}]}),
    ("less than a number", {"status": "done", "answer": [{"kind": "number", "value": "<3"}]}),
    ("a number denied", {"status": "done", "answer": [{"kind": "money", "value": "not 3", "unit": "EUR"}]}),
    ("a number or more", {"status": "done", "answer": [{"kind": "number", "value": "3 or more"}]}),
    ("a number in doubt", {"status": "done", "answer": [{"kind": "money", "value": "3?"}]}),
    ("a unit that hedges", {"status": "done", "answer": [{"kind": "money", "value": 3, "unit": "EUR or more"}]}),
    ("a decimal comma", {"status": "done", "answer": [{"kind": "money", "value": "44,50", "unit": "EUR"}]}),
    ("no date", {"status": "done", "answer": [{"kind": "date", "value": "17.02.2031"}]}),
    ("no such day", {"status": "done", "answer": [{"kind": "date", "value": "2031-02-30"}]}),
    ("no time", {"status": "done", "answer": [{"kind": "time", "value": "noon"}]}),
    ("neither yes nor no", {"status": "done", "answer": [{"kind": "yes_no", "value": "maybe"}]}),
    ("a sentence as a name", {"status": "done", "answer": [{"kind": "name", "value": "I booked it. " * 30}]}),
    ("two units", {"status": "done", "answer": [{"kind": "money", "value": "44 EUR", "unit": "USD"}]}),
    ("no reason", {"status": "cannot"}),
    ("an unknown reason", {"status": "cannot", "reason": "tired"}),
    ("a reason for done", {"status": "done", "reason": "not_found"}),
)  # fmt: skip


def fitting(drawn: Drawn) -> set[str]:
    """The causes that fit the oracle's own words."""
    words = drawn.certificate.gold.final.lower()
    for pattern, causes in WORDS:
        if re.search(pattern, words):
            if pattern == READS and not any(
                drawn.domain.world_class.entries[tool].spec.writes for tool in drawn.certificate.task.blocked
            ):
                return causes | {"information_missing"}
            return causes
    raise SystemExit(f"no cause is known for the words {words!r}")


def cases(drawn: Drawn, nth: int) -> Iterator[Case]:
    """Every sort of call for one episode; of malformed ones two, which differ from episode to episode."""
    task = drawn.certificate.task
    if task.refuse:
        fit = fitting(drawn)
        unsaid = {"not_allowed"} if "no signed transfer" in drawn.certificate.gold.final else set()  # or they are gone
        for cause in (cause for cause in CAUSES if cause not in unsaid):
            sort, must = ("right cannot", "pass") if cause in fit else ("absurd reason", "fail")
            yield Case(sort, cause, must, ({"status": "cannot", "reason": cause, "message": "I cannot do this."},))
        yield Case("refusal in words", "no cause", "fail", (drawn.certificate.gold.final,))
        yield Case("false done", "no answer", "fail", ({"status": "done"},))
        made_up = done({"kind": "id", "value": "T0000001"}, message="Done.")
        yield Case("false done", "a made-up id", "fail", (made_up,))
        return
    g = ground(drawn)
    for style, args in right(g):
        yield Case("right", style, "pass", (args,))
    for sort, style, args in wrong(g):
        yield Case(sort, style, "fail", (args,))
    for cause in CAUSES[nth % 5 :: 3]:
        yield Case("cannot where solvable", cause, "fail", ({"status": "cannot", "reason": cause},))
    if drawn.certificate.gold.changes:
        yield Case("false done", "nothing was done", "fail", (done(*g.values),), idle=True)
    for i in (0, 7):
        style, args = MALFORMED[(nth + i) % len(MALFORMED)]
        yield Case("malformed, then right", style, "pass", (args, done(*g.values)))
        yield Case("malformed only", style, "fail", (args,) * 40)


# ---------------------------------------------------------------- playing


class Ender(Reciter):
    """The oracle's way, then the calls of a case."""

    def __init__(self, drawn: Drawn, case: Case) -> None:
        way = [] if case.idle else list(lines_of(drawn.certificate.gold))[:-1]
        super().__init__([*(m if m.requests else self._early(m) for m in way), *self._calls(case.calls)])

    @staticmethod
    def _early(message: Message) -> Message:
        return requesting(ToolCall(FINISH, {"status": "done", "message": message.content}), 0)

    @staticmethod
    def _calls(calls: Sequence[Any]) -> Iterator[Message]:
        for n, args in enumerate(calls):
            if isinstance(args, str):
                yield Message(role="assistant", content=args)
                continue
            message = requesting(ToolCall(FINISH, {}), 1000 + n)
            yield message.model_copy(update={"requests": (message.requests[0].model_copy(update={"args": args}),)})


def outcome(drawn: Drawn, case: Case) -> tuple[str, str]:
    """What the judge says of a case, and why."""
    trajectory = asyncio.run(play(drawn, Ender(drawn, case), "ender", ending="finish"))
    verdict = judge(trajectory, drawn.domain)
    broken = [step for step in trajectory.steps if step["call"]["tool"] == FINISH and "error" in step["result"]]
    if case.sort.startswith("malformed") and not broken:
        return "accepted", "the call was taken"
    return verdict.outcome, "; ".join(f"{c.name}: {c.why}" for c in verdict.checks if not c.passed)


def draws(seeds: int) -> Iterator[Drawn]:
    nth = 0
    for name in DOMAINS:
        domain = domains[name]
        for family in domain.families:
            for seed in range(seeds):
                task = domain.task(family, 40 + seed)
                nth += 1
                kinds = ("",) if task.refuse else ("", SOLVABLE[1 + nth % (len(SOLVABLE) - 1)], HOPELESS[nth % 3])
                for kind in kinds:
                    try:
                        yield draw(domain, task, [kind] if kind else [], seed)
                    except CannotPerturb:
                        continue


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="tasks of each family")
    options = parser.parse_args()
    calls, bad, musts = Counter[str](), Counter[str](), {}
    styles, families, honest = set[str](), set[str](), 0
    for nth, drawn in enumerate(draws(options.seeds)):
        families.add(f"{drawn.base.domain}/{drawn.base.family}")
        for case in cases(drawn, nth):
            calls[case.sort] += 1
            musts[case.sort] = case.must
            if case.must == "pass":
                honest += 1
                styles.add(f"{case.sort}: {case.style}")
            found, why = outcome(drawn, case)
            if found != case.must:
                bad[case.sort] += 1
                kinds = ", ".join(layer.kind for layer in drawn.layers) or "clean"
                told = f"{case.sort} / {case.style}: {found}; {drawn.base.id} ({kinds}) {case.calls[-1]} {why}"
                print(told, file=sys.stderr)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    print(
        HEAD.format(
            seeds=options.seeds, version=__version__, commit=commit, date=date, n=calls.total(), honest=honest,
            families=len(families), domains=len(DOMAINS), styles=len(styles),
        )
    )  # fmt: skip
    for sort, n in calls.items():
        print(f"| {sort} | {n} | {musts[sort]} | {bad[sort]} |")
    print(f"| **all** | {calls.total()} | | {bad.total()} |")
    return 1 if bad.total() else 0


if __name__ == "__main__":
    sys.exit(main())
