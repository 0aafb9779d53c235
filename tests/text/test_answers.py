"""The rule that tells whether an answer states the expected values."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.text.answers import Expected, Kind, states
from tests.text.phrasings_answers import KNOWN_MISSES, PHRASINGS, Row
from tests.text.test_values import MEGABYTES, anything


def expected_of(row: Row) -> list[Expected]:
    triples: Any = row[1] if row[0] == "list" else (row[:3],)
    return [Expected(kind, value, others) for kind, value, others in triples]


def right(row: Row) -> bool:
    return states(row[4], expected_of(row), given=row[3]) is row[5]


# --- phrasings ------------------------------------------------------------------------------


def test_phrasings() -> None:
    """In one test: thousands of rows take a second, a test for each of them many."""
    assert not [row for row in PHRASINGS if not right(row)]


def test_known_misses() -> None:
    """The rule reads surface forms only; what it gets right by now belongs to the phrasings."""
    assert not [row for row in KNOWN_MISSES if right(row)]


def test_phrasings_are_many_and_balanced() -> None:
    assert len(PHRASINGS) >= 240
    assert 0.4 < sum(row[5] for row in PHRASINGS) / len(PHRASINGS) < 0.6
    assert {row[0] for row in PHRASINGS} == {*get_args(Kind), "list"}
    assert len({(row[0], str(row[1]), row[3], row[4]) for row in PHRASINGS}) == len(PHRASINGS)


# --- states ---------------------------------------------------------------------------------


def test_nothing_expected_is_stated_by_anything() -> None:
    assert states("", ())
    assert states("whatever", [])


def test_tolerance() -> None:
    assert not states("4.33", [Expected("number", 13 / 3)])
    assert states("4.33", [Expected("number", 13 / 3, tolerance=0.01)])
    assert not states("about 12", [Expected("number", 12)])
    assert states("about 12", [Expected("number", 12, tolerance=0.5)])
    assert not states("about 13", [Expected("number", 12, tolerance=0.5)])
    assert states("4.30", [Expected("number", 4.3)])


def test_currency() -> None:
    assert states("12 euros", [Expected("money", 12)])
    assert not states("12 dollars", [Expected("money", 12)])
    assert states("12 dollars", [Expected("money", "12 USD")])
    assert not states("12 euros", [Expected("money", "12 USD")])
    assert states("12 dollars", [Expected("money", 12)], given="How many dollars is that?")
    assert states("It costs 12", [Expected("money", 12)])


def test_request_is_no_rival() -> None:
    text = "For 2 adults and 3 children on 3 May 2031 you need 5 seats."
    assert not states(text, [Expected("number", 5)])
    assert states(text, [Expected("number", 5)], given="2 adults and 3 children: how many seats?")


def test_values_of_other_kinds_are_no_rivals() -> None:
    text = "Alda (P000123) is rated 4.6, costs 12 euros and opens at 09:00 on 3 May 2031."
    for expected in (
        Expected("name", "Alda", ("Brisa",)),
        Expected("id", "P000123"),
        Expected("number", 4.6),
        Expected("money", 12),
        Expected("time", "09:00"),
        Expected("date", "2031-05-03"),
    ):
        assert states(text, [expected]), expected


def test_ids_of_one_series_are_rivals() -> None:
    assert not states("P000122 P000123 P000124", [Expected("id", "P000123")])
    assert states("P000123, slot S000001-2", [Expected("id", "P000123")])


def test_thoughts_are_no_answer() -> None:
    assert states("<think>12? No, 13.</think>It is 14.", [Expected("number", 14)])
    assert not states("<think>It is 14.</think>It is 13.", [Expected("number", 14)])


def test_a_value_of_the_wrong_type_is_not_stated() -> None:
    odd: tuple[Any, ...] = (None, "", "abc", [], {}, float("nan"), float("inf"), 10**400, object)
    kinds: tuple[Kind, ...] = ("number", "money", "date", "time")
    for value in odd:
        for kind in kinds:
            assert not states("12 euros at 14:30 on 2031-05-03", [Expected(kind, value)])


@given(st.integers(min_value=2, max_value=10**6), st.integers(min_value=2, max_value=10**6))
def test_one_number_is_stated_and_another_is_not(number: int, other: int) -> None:
    expected = [Expected("number", number)]
    for text in (f"{number}", f"The answer is {number:,}.", f"It is {number}, not {number + 1}.", f"So **{number}**!"):
        assert states(text, expected), text
    for text in (f"{number + 1}", f"It is not {number}.", f"about {number}", f"P{number:07d}", f"{number}?"):
        assert not states(text, expected), text
    if number != other:
        assert not states(f"{number} or {other}", expected)
        assert not states(f"{number}, {other}", expected)
        assert states(f"{other} + {number - other} = {number}", expected) or number < other


@given(st.dates(min_value=date(2000, 1, 1), max_value=date(2099, 1, 1)), st.dates(min_value=date(2000, 1, 1)))
def test_one_date_is_stated_and_another_is_not(day: date, other: date) -> None:
    expected = [Expected("date", day.isoformat())]
    assert states(f"It is on {day:%d %B %Y}.", expected)
    assert states(f"It is on {day:%B %d}.", expected)
    assert states(f"It is on {day:%B %d, %Y}.", expected, given=f"Rather than on {other}?")
    if day != other:
        assert not states(f"It is on {other.isoformat()}.", expected)
        assert not states(f"On {day} or {other}.", expected)


# --- any text at all ------------------------------------------------------------------------

EXPECTED: tuple[Expected, ...] = (
    Expected("number", 12),
    Expected("number", 0),
    Expected("money", 12.5),
    Expected("date", "2031-05-03"),
    Expected("time", "14:30"),
    Expected("name", "Alda", ("Brisa", "Alda Nord")),
    Expected("id", "P000123", ("P000124",)),
    Expected("choice", "B", ("A", "C")),
    Expected("yesno", True),
)


@settings(max_examples=300)
@given(anything, anything)
def test_states_takes_any_text(text: str, request: str) -> None:
    for item in EXPECTED:
        assert states(text, [item], given=request) in (True, False)
        assert not states("", [item], given=request)
    states(text, EXPECTED, given=request)


@settings(max_examples=200)
@given(anything, anything)
def test_any_string_may_be_expected(value: str, text: str) -> None:
    for kind in get_args(Kind):
        states(text, [Expected(kind, value, (text, value))], given=text)


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "states": lambda text: states(text, [Expected("number", 12)], given=text),
    "states a name": lambda text: states(text, [Expected("name", "Alda", ("a", "Brisa"))], given=text),
    "states it": lambda text: states("Alda", [Expected("name", text, (text,))]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("text", MEGABYTES)
def test_a_megabyte_takes_no_two_seconds(text: str, name: str) -> None:
    started = time.thread_time()  # of this thread alone: others may keep the machine busy
    FUNCTIONS[name](MEGABYTES[text])
    assert time.thread_time() - started < 2.0
