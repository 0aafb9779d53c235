"""The typed end of an episode: the tool `finish`, declared once for every task, and what an agent passes to it.

The schema is one and the same in every domain, family and condition, whether or not a task can be done, so it gives
nothing away and undoes no perturbation. `read` reads what an agent sent; `endings.py` judges it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date as Date
from typing import Any

from crosswind.core.types import CAUSES, FINISH, Cause, Finish, FinishValue, Param, ToolSpec, ValueKind
from crosswind.core.world import bad_arguments, brief_of, kind_of

OVER = "The task is over. Thank you."
MOST, LONGEST = 50, 200  # values in an answer, and characters of one
KINDS: Mapping[ValueKind, str] = {
    "name": "what a thing or a person is called",
    "id": "a code or number that identifies something",
    "choice": "one of a few given options",
    "yes_no": "yes or no",
    "number": "a count or a measurement",
    "money": "an amount of money",
    "date": "a day, as YYYY-MM-DD",
    "time": "a time of day, as HH:MM on the 24-hour clock",
}
_ENTRY = {
    "type": "object",
    "properties": {
        "kind": {
            "type": "string",
            "enum": list(KINDS),
            "description": "; ".join(f"{k}: {v}" for k, v in KINDS.items()),
        },
        "value": {"type": "string", "description": "The value alone, such as 12.5 or 14:30, without a sentence."},
        "unit": {"type": "string", "description": "Unit or currency of a number, such as EUR or minutes."},
        "about": {"type": "string", "description": "Name or id of what the value belongs to, as the tools give it."},
    },
    "required": ["kind", "value"],
}
FINISH_SPEC = ToolSpec(
    FINISH,
    "End the task with this tool, not with words. Call it last: when everything is done, or when it turns out that "
    "the request cannot be met.",
    {
        "status": Param("string", "done: the request is met. cannot: it cannot be met.", enum=("done", "cannot")),
        "answer": Param(
            "array",
            f"For done: each value that the user is to be told, as one entry with kind ({', '.join(KINDS)}), value, "
            "and where they apply unit and about. Empty if there is nothing to tell. A value that is only in the "
            "message does not count.",
            required=False,
            extra={"items": _ENTRY},
        ),
        "reason": Param(
            "string",
            "For cannot: the cause. " + "; ".join(f"{cause}: {what}" for cause, what in CAUSES.items()) + ".",
            required=False,
            enum=tuple(CAUSES),
        ),
        "message": Param("string", "A sentence for the user. Optional.", required=False),
    },
    opaque=True,
)


def read(args: object) -> Finish:
    """What an agent passed to the tool. Raises `ValueError` with the words of a tool error."""
    if isinstance(args, Mapping):
        args = {name: value for name, value in args.items() if value not in (None, "")}
        if isinstance(given := args.get("answer"), str) and given.lstrip()[:1] in ("[", "{"):
            args["answer"] = _decoded(given)  # some clients encode nested arguments twice
        if isinstance(args.get("answer"), Mapping):
            args["answer"] = [args["answer"]]
    if bad := bad_arguments(FINISH_SPEC.params, args):
        raise ValueError(bad)
    assert isinstance(args, dict)
    entries = args.get("answer", [])
    if len(entries) > MOST:
        raise ValueError(f"'answer' has {len(entries)} entries; give only what the user is to be told")
    answer = tuple(_entry(entry, f"answer[{i}]") for i, entry in enumerate(entries))
    reason = args.get("reason")
    if args["status"] == "cannot" and reason is None:
        raise ValueError(f"missing argument 'reason': with cannot, give one of {', '.join(CAUSES)}")
    if args["status"] == "done" and reason is not None:
        raise ValueError("'reason' goes with the status cannot; leave it out for done")
    return Finish(status=args["status"], answer=answer, reason=reason, message=args.get("message", ""))


def done(*values: FinishValue | Mapping[str, Any], message: str = "", **named: Any) -> Finish:
    """The end of a task that is done, with the values that the user is to be told.

    >>> import crosswind as cw
    >>> cw.done(money=44, unit="EUR", about="Norfiolli").text
    'Norfiolli: 44 EUR.'
    >>> cw.done(id=["R0982146", "T7872972"], time="13:45").text
    'R0982146; T7872972; 13:45.'

    A keyword is a kind (name, id, choice, yes_no, number, money, date, time) with one value or a list of them; `unit`
    and `about` hold for all of them. For values of several things pass one dict each, with the keys kind, value, unit
    and about. Raises `ValueError` for a value that is not of its kind.
    """
    shared: dict[str, Any] = {key: named.pop(key) for key in ("unit", "about") if key in named}
    keywords = [""] * len(values)  # of each entry
    entries = [one.model_dump() if isinstance(one, FinishValue) else dict(one) for one in values]
    for kind, given in named.items():
        if kind not in KINDS:
            raise ValueError(f"done() has no keyword {kind!r}; there are: {', '.join(KINDS)}, unit, about and message")
        several = given if isinstance(given, (list, tuple)) else [given]
        measured = shared if kind in ("number", "money") else {k: v for k, v in shared.items() if k == "about"}
        entries += [{"kind": kind, "value": value, **measured} for value in several]
        keywords += [kind] * len(several)
    try:
        return read({"status": "done", "answer": entries, "message": message})
    except ValueError as error:  # it names the entry of a call; here a keyword was given
        named_so = re.sub(r"'answer\[(\d+)\]\.value'", lambda found: keywords[int(found[1])] or found[0], str(error))
        raise ValueError(named_so) from None


def cannot(reason: Cause, message: str = "") -> Finish:
    """The end of a task that cannot be done.

    >>> import crosswind as cw
    >>> cw.cannot("none_available", "All slots of that day are full.").status
    'cannot'

    `reason` is one of not_found, none_available, not_allowed, tool_unavailable and information_missing.
    """
    return read({"status": "cannot", "reason": reason, "message": message})


# ---------------------------------------------------------------- reading values

_NUMERAL = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_QUANTITY = re.compile(rf"(?P<before>[^\d\s.,+-]{{0,12}})\s*(?P<number>{_NUMERAL})\s*(?P<after>[^\d,+-]{{0,40}})")
_UNIT = re.compile(r"(?:[^\W\d]|[%€$£¥°.()/ -])*")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::00)?\s*(?:([ap])\.?m\.?)?", re.IGNORECASE)
HEDGES = frozenset(
    "or and more less than not under over at least most about around approximately approx roughly maybe up to below "
    "above between max min maximum minimum almost nearly plus circa ca only".split()
)
CODES = frozenset("EUR USD GBP JPY CHF SEK NOK DKK CAD AUD NZD CNY INR PLN CZK HUF BRL MXN SGD HKD KRW ZAR".split())
CURRENCIES = {
    "€": "EUR", "euro": "EUR", "euros": "EUR", "$": "USD", "us$": "USD", "dollar": "USD", "dollars": "USD",
    "us dollar": "USD", "us dollars": "USD", "ca$": "CAD", "a$": "AUD", "£": "GBP", "pound": "GBP", "pounds": "GBP",
    "¥": "JPY", "yen": "JPY", "kr": "SEK", "franc": "CHF", "francs": "CHF",
}  # fmt: skip
CENTS = re.compile(r"(?P<euro>euro?[ -]?)?(?:cents?|cts?)(?P<of> of an? euro)?")
_EACH = re.compile(r"\s*(?:/|\b(?:per|each|an?|in total|total|for (?:an?|one|each))\b)\s*")
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _entry(entry: object, place: str) -> FinishValue:
    properties: dict[str, Any] = _ENTRY["properties"]  # type: ignore[assignment]
    if not isinstance(entry, Mapping):
        raise ValueError(f"'{place}' must be an object with the keys {', '.join(properties)}, got {kind_of(entry)}")
    given = {key: value for key, value in entry.items() if value not in (None, "")}
    for key in given:
        if key not in properties:
            raise ValueError(f"unexpected key {brief_of(key)} in '{place}'; an entry has: {', '.join(properties)}")
    for key in _ENTRY["required"]:
        if key not in given:
            raise ValueError(f"missing key '{key}' in '{place}'")
    if given["kind"] not in KINDS:
        raise ValueError(f"'{place}.kind' must be one of {', '.join(KINDS)}; got {brief_of(given['kind'])}")
    for key in ("unit", "about"):
        if not isinstance(given.get(key, ""), str) or len(given.get(key, "")) > LONGEST:
            raise ValueError(f"'{place}.{key}' must be a string of at most {LONGEST} characters")
    value, unit = _value(given["kind"], given["value"], f"{place}.value")
    stated = given.get("unit", "").strip()
    if not _is_unit(stated):
        raise ValueError(f"'{place}.unit' must be a unit or a currency such as EUR or minutes, got {brief_of(stated)}")
    if unit and stated and (currency_of(unit) or unit.casefold()) != (currency_of(stated) or stated.casefold()):
        raise ValueError(f"'{place}' has two units, {brief_of(unit)} and {brief_of(stated)}")
    return FinishValue(kind=given["kind"], value=value, unit=stated or unit, about=given.get("about", "").strip())


def _value(kind: ValueKind, value: object, place: str) -> tuple[str | int | float | bool, str]:
    """A value of its kind, and the unit that was written with it."""
    text = value.strip() if isinstance(value, str) else ""
    if kind in ("number", "money"):
        return _quantity(value, place)
    if kind == "date":
        try:
            if Date.fromisoformat(text).isoformat() == text:
                return text, ""
        except ValueError:
            pass
        raise ValueError(f"'{place}' must be a date such as 2031-05-03, got {brief_of(value)}")
    if kind == "time":
        found = _CLOCK.fullmatch(text)
        hour = int(found[1]) % 12 + 12 * (found[3] in "pP") if found and found[3] else int(found[1]) if found else 99
        if found is None or hour > 23 or int(found[2]) > 59 or (found[3] and not 1 <= int(found[1]) <= 12):
            raise ValueError(f"'{place}' must be a time such as 14:30, got {brief_of(value)}")
        return f"{hour:02}:{found[2]}", ""
    if kind == "yes_no":
        answer = value if isinstance(value, bool) else _YES_NO.get(text.lower())
        if answer is None:
            raise ValueError(f"'{place}' must be yes or no, got {brief_of(value)}")
        return answer, ""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        text = str(value)
    if not text or len(text) > LONGEST:
        raise ValueError(f"'{place}' must be a {kind} of at most {LONGEST} characters, got {brief_of(value)}")
    return text, ""


def _quantity(value: object, place: str) -> tuple[int | float, str]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if abs(value) < 2**63:  # no infinity and no NaN is; integers may be too large for a float
            return value, ""
    elif isinstance(value, str) and len(value) <= LONGEST and (found := _QUANTITY.fullmatch(value.strip())):
        before, after = found["before"], found["after"].strip(" .")
        if not (before and after) and (currency_of(before) if before else _is_unit(after)):
            number = float(found["number"].replace(",", ""))
            return int(number) if number.is_integer() and abs(number) < 2**53 else number, before or after
    raise ValueError(
        f"'{place}' must be a number such as 12 or 12.5, with nothing but its unit or currency, got {brief_of(value)}"
    )


def _is_unit(text: str) -> bool:
    """Can a text be a unit? Words such as "or more" say something else of the number."""
    return bool(_UNIT.fullmatch(text)) and HEDGES.isdisjoint(re.findall(r"\w+", text.casefold()))


def split_unit(unit: str) -> tuple[str, str]:
    """A unit, and what one of it is for: "EUR per ticket" is "EUR", "ticket"."""
    if CENTS.fullmatch(unit.casefold()):
        return unit, ""
    head, *tail = _EACH.split(re.sub(r"[()]", " ", unit).strip(), maxsplit=1)
    return (head, tail[0].strip()) if head and tail else (unit.strip(), "")


def currency_of(unit: str) -> tuple[str, float] | None:
    """The currency that a unit names, and what the unit is worth in it; None if it names no currency.

    Cents are of whatever currency the amount is in, unless they say so.
    """
    for text in (unit, split_unit(unit)[0]):
        word = " ".join(text.casefold().split()).rstrip(".")
        if cents := CENTS.fullmatch(word):
            return "EUR" if cents["euro"] or cents["of"] else "", 0.01
        if code := CURRENCIES.get(word) or (word.upper() if word.upper() in CODES else ""):
            return code, 1.0
    return None
