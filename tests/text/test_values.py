"""The recognisers of typed values: dates, times, numbers, amounts, ids and names as people write them."""

from __future__ import annotations

import gc
import math
import re
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.text.values import dates, ids, mentions, moneys, numbers, shown, times

# --- dates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "2031-05-03",
        "2031/05/03",
        "2031-5-3",
        "3 May 2031",
        "3rd of May 2031",
        "3. May 2031",
        "3-May-2031",
        "May 3, 2031",
        "May 3rd, 2031",
        "May the 3rd, 2031",
        "Sat 3 May 2031",
        "Saturday, May 3, 2031",
        "03.05.2031",
        "3.5.2031",
        "03.05.31",
        "2031-05-03T14:30",
        "2031-05-03T14:30:00+02:00",
        "２０３１-05-03",
        "3\u00a0May\u202f2031",
    ],
)
def test_date_forms(text: str) -> None:
    assert dates(text) == ["2031-05-03"]
    assert dates(f"({text})") == ["2031-05-03"]
    assert dates(f"It is on {text}, I think.") == ["2031-05-03"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("13/05/2031", ["2031-05-13"]),
        ("05/13/2031", ["2031-05-13"]),
        ("05/05/2031", ["2031-05-05"]),
        ("03/05/2031", []),  # the order is unknown
        ("3 to 5 May 2031", ["2031-05-03", "2031-05-05"]),
        ("May 3-5, 2031", ["2031-05-03", "2031-05-05"]),
        ("from May 3 to May 5, 2031", ["2031-05-03", "2031-05-05"]),
        ("3 May 2031 or 5 June", ["2031-05-03", "2031-06-05"]),
        ("1 May, 3 May and 5 May 2031", ["2031-05-01", "2031-05-03", "2031-05-05"]),
        ("2031-05-03/2031-05-05", ["2031-05-03", "2031-05-05"]),
        ("2031-05-05, then 3 May 2031", ["2031-05-05", "2031-05-03"]),
        ("29 Feb 2028", ["2028-02-29"]),
        ("29 Feb 2031", []),
        ("2031-02-30", []),
        ("31 June 2031", []),
        ("May 2031", []),
        ("the 3rd", []),
        ("1.2.3", []),
        ("192.168.10.12", []),
        ("P2031-05-03", []),
        ("ORD-2031-05-03-7", []),
        ("20310503", []),
        ("", []),
    ],
)
def test_dates(text: str, found: list[str]) -> None:
    assert dates(text) == found


@pytest.mark.parametrize("text", ["May 3rd", "3 May", "Sat 3 May", "the 3rd of May", "on 3 may at noon", "MAY 3"])
def test_date_without_a_year(text: str) -> None:
    assert dates(text) == []
    assert dates(text, year=2031) == ["2031-05-03"]


@pytest.mark.parametrize("text", ["3 may be enough", "you may 3 times", "Maybe 3", "3 mayors", "3 people in May"])
def test_may_is_not_always_a_month(text: str) -> None:
    assert dates(text, year=2031) == []


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2999, 12, 31)))
def test_every_date_is_read_back(day: date) -> None:
    forms = ("%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y", "%a %d %b %Y", "%d.%m.%Y", "%Y-%m-%dT14:30")
    for form in forms:
        assert dates(f"See you on {day.strftime(form)}.") == [day.isoformat()], form
    assert dates(day.strftime("%d %B"), year=day.year) == [day.isoformat()]
    assert numbers(f"on {day.strftime('%d %B %Y')}") == []


# --- times ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("14:30", ["14:30"]),
        ("2:30 pm", ["14:30"]),
        ("2:30 p.m.", ["14:30"]),
        ("2.30 pm", ["14:30"]),
        ("2pm", ["14:00"]),
        ("14h30", ["14:30"]),
        ("09:00:00", ["09:00"]),
        ("9:00", ["09:00"]),
        ("2:30", ["02:30"]),
        ("12 am", ["00:00"]),
        ("12 pm", ["12:00"]),
        ("noon", ["12:00"]),
        ("12 noon", ["12:00"]),
        ("midnight", ["00:00"]),
        ("24:00", ["00:00"]),
        ("9 o'clock in the evening", ["21:00"]),
        ("11 at night", ["23:00"]),
        ("14:30 Uhr", ["14:30"]),
        ("2031-05-03T14:30", ["14:30"]),
        ("2031-05-03T14:30:00-05:00", ["14:30"]),
        ("2031-05-03 14:30", ["14:30"]),
        ("09:00-17:00", ["09:00", "17:00"]),
        ("9-11 am", ["09:00", "11:00"]),
        ("11-2pm", ["11:00", "14:00"]),
        ("from 9 to 11 am", ["09:00", "11:00"]),
        ("noon and 9:15", ["12:00", "09:15"]),
        ("25:00", []),
        ("12:60", []),
        ("3:1", []),
        ("1:2:3", []),
        ("2h30m", []),
        ("UTC+02:00", []),
        ("14.30", []),
        ("afternoon", []),
        ("I am 9", []),
    ],
)
def test_times(text: str, found: list[str]) -> None:
    assert times(text) == found


@given(st.times())
def test_every_time_is_read_back(moment: Any) -> None:
    canonical = moment.strftime("%H:%M")
    for form in ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I.%M %p", "%Hh%M"):
        assert times(f"It starts at {moment.strftime(form)}.") == [canonical], form
    assert numbers(f"at {canonical}") == []


# --- numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3", [3]),
        ("3.5", [3.5]),
        (".5", [0.5]),
        ("1,234.5", [1234.5]),
        ("1.234,5", [1234.5]),
        ("1.234.567", [1234567]),
        ("1.200", [1.2]),
        ("1 234", [1234]),
        ("1'234", [1234]),
        ("12,5", [12.5]),
        ("12,50", [12.5]),
        ("1,2,3", [1, 2, 3]),
        ("[12,15]", [12, 15]),
        ("-2", [-2]),
        ("−2 °C", [-2]),
        ("minus two", [-2]),
        ("3-4", [3, 4]),
        ("12 + 15", [12, 15]),
        ("3x4", [3, 4]),
        ("12%", [12]),
        ("35min", [35]),
        ("35 minutes", [35]),
        ("1.2k", [1200]),
        ("2 million", [2e6]),
        ("2½", [2.5]),
        ("two and a half", [2.5]),
        ("three", [3]),
        ("twelve", [12]),
        ("Twenty-one", [21]),
        ("ninety nine", [99]),
        ("a hundred and five", [105]),
        ("a dozen", [12]),
        ("two dozen", [24]),
        ("half a dozen", [6]),
        ("€12", [12]),
        ("٣", [3]),
        ("only one", [1]),
        ("one museum", [1]),
        ("the best one", []),
        ("no one", []),
        ("one of the best", []),
        ("often, tone, eighth, tenth", []),
        ("3rd", []),
        ("1.2.3", []),
        ("v2.3", []),
        ("P000123 and RX3fa9c1", []),
        ("3 May 2031 at 14:30", []),
        ("May 2031", []),
        ("03/05/2031", []),
        ("https://a.example/12?x=3", []),
        ("open 24/7", []),
        ("", []),
    ],
)
def test_numbers(text: str, found: list[float]) -> None:
    assert numbers(text) == pytest.approx(found)


@given(st.integers(min_value=0, max_value=10**9))
def test_every_whole_number_is_read_back(number: int) -> None:
    for text in (
        f"{number}",
        f"{number:,}",
        f"There are {number}.",
        f"**{number}**",
        f"{number} minutes",
        f"= {number}",
    ):
        assert numbers(text) == [number], text


# --- amounts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12 euros", [12]),
        ("EUR 12.50", [12.5]),
        ("EUR12.50", [12.5]),
        ("€12.50", [12.5]),
        ("€ 12,50", [12.5]),
        ("12,50 €", [12.5]),
        ("12.50 EUR", [12.5]),
        ("12€50", [12.5]),
        ("$12", [12]),
        ("12 dollars", [12]),
        ("12 euros and 50 cents", [12.5]),
        ("twelve euros and fifty cents", [12.5]),
        ("50 cents", [0.5]),
        ("€1.200", [1200]),
        ("€1,200.50", [1200.5]),
        ("1.200,50 €", [1200.5]),
        ("1 200 euros", [1200]),
        ("-€5", [-5]),
        ("12-15 euros", [12, 15]),
        ("€12–15", [12, 15]),
        ("12 and 15 euros", [12, 15]),
        ("May 3 and 15 euros", [15]),
        ("€12, €15", [12, 15]),
        ("12", []),
        ("P12 euros", []),
        ("12 centers", []),
        ("12 people, recently", []),
        ("", []),
    ],
)
def test_moneys(text: str, found: list[float]) -> None:
    assert moneys(text) == pytest.approx(found)


# --- ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("P000123", ["P000123"]),
        ("S000012-1-3", ["S000012-1-3"]),
        ("RX3fa9c1, tk88ad02", ["RX3fa9c1", "tk88ad02"]),
        ("(`P000123`), _P000124_.", ["P000123", "P000124"]),
        ("P000123's", ["P000123"]),
        ("C000042/K000007", ["C000042", "K000007"]),
        ("https://a.example/p/P000123", ["P000123"]),
        ("550e8400-e29b-41d4-a716-446655440000", ["550e8400-e29b-41d4-a716-446655440000"]),
        ("ORD-2031-05-03-7", ["ORD-2031-05-03-7"]),
        ("B-1042", ["B-1042"]),
        ("A--0", []),
        ("12 abc 3rd 35min 14h30 2pm 12-minute top-10 3x4 2031-05-03T14:30", []),
        ("", []),
    ],
)
def test_ids(text: str, found: list[str]) -> None:
    assert ids(text) == found


def test_ids_of_a_pattern() -> None:
    assert ids("P000123, P0001234, p000123, XP000123, P000123-1", r"P\d{6}") == ["P000123"]
    assert ids("number 123456, not 1234567", r"\d{6}") == ["123456"]
    with pytest.raises(re.error):
        ids("x", "(")


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("Alda and ALDA, but Aldana's and Geralda; Alda's too", "Alda", 3),
        ("“Alda”, **Alda**, `Alda`, _Alda_", "Alda", 4),
        ("Cafe  Lumiere", "Café Lumière", 1),
        ("CAFE\u0301 LUMIE\u0300RE", "Café Lumière", 1),
        ("Saint Marc", "Saint-Marc", 1),
        ("Joe’s Diner, Joes Diner", "Joe's Diner", 2),
        ("Salt and Stone", "Salt & Stone", 1),
        ("Blue Door", "The Blue Door", 1),
        ("Dr Ida Lind, Ida Lind", "Dr. Ida Lind", 2),
        ("St Mark", "St. Mark", 1),
        ("Straße", "Strasse", 1),
        ("**Porto** _Lume_", "Porto Lume", 1),
        ("Porto\nLume", "Porto Lume", 1),
        ("Museum 12", "Museum 1", 0),
        ("Porto", "Porto Lume", 0),
        ("東京タワー", "東京タワー", 1),
        ("anything", "", 0),
        ("anything", "***", 0),
    ],
)
def test_mentions(text: str, name: str, count: int) -> None:
    assert mentions(text, name) == count


@given(st.from_regex(r"[A-Z][a-z]{2,8}( [A-Z][a-z]{2,8})?", fullmatch=True))
def test_a_name_is_bounded(name: str) -> None:
    assert mentions(f"It is {name}.", name) >= 1
    assert mentions(f"x{name}", name) == 0
    assert mentions(f"{name}x", name) == 0


# --- shown ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12, "twelve tickets"),
        (12, "12.0"),
        (1234, "1,234"),
        (12.5, "12,50 €"),
        (1200, "€1.200"),
        ("12", "a dozen"),
        ("2031-05-03", "on May 3rd"),
        ("2031-05-03", "Sat 3 May 2031"),
        ("2031-05-03", "03/05/2031"),  # one of its two readings
        ("2031-03-05", "03/05/2031"),
        ("2031-05-03T14:30", "3 May 2031, 2:30 pm"),
        ("14:30", "2.30 pm"),
        ("9:00", "9 am"),
        ("P000123", "see p000123."),
        ("S000012-1", "S000012-1, S000012-1-3"),
        ("Café Lumière", "the cafe lumiere"),
        ("window", "a window seat"),
        (True, "true"),
        (False, "no"),
    ],
)
def test_shown(value: Any, text: str) -> None:
    assert shown(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12, "P12, 12:30, 12 May 2031, 112"),
        (12, ""),
        ("2031-05-03", "3 June 2031"),
        ("2031-05-03", "3 May 2030"),
        ("2031-05-03T14:30", "3 May 2031"),
        ("14:30", "2:30 am"),
        ("P0001", "P00012"),
        ("S000012-1", "S000012-1-3"),
        ("Alda", "Aldana"),
        ("", "anything"),
        ("  ", "anything"),
        (None, "None"),
        (True, "untrue"),
    ],
)
def test_not_shown(value: Any, text: str) -> None:
    assert not shown(value, text)


# --- any text at all ------------------------------------------------------------------------

FRAGMENTS = (
    "12 1.234,5 -2 3rd €12 12,50 € 12 euros and 50 cents P000123 S000012-1-3 2031-05-03 03/05/2031 3 May 2031 May 3 "
    "14:30 2pm noon T14:30 one twenty- hundred a dozen ½ % k or and not n't than either between about at least + = × - "
    "– / ( ) [ ] { } ** ` \" ' _ # > | . , ; : ? ! answer: so total cheapest is the best none no yes free now Alda "
    "Brisa A B <think> </think> <answer> \\boxed{ how many \n\n \n- \n1. \u0301 \ud800 \u200b \u00a0 ª İ ß 東 𝟛 ٣ １"
).split(" ")
anything = st.one_of(
    st.text(),
    st.text(st.characters()),  # surrogates too
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(" ".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join),
)


@settings(max_examples=300)
@given(anything)
def test_recognisers_take_any_text(text: str) -> None:
    for day in dates(text) + dates(text, year=2031):
        assert date.fromisoformat(day).isoformat() == day
    assert all(re.fullmatch(r"[01][0-9]:[0-5][0-9]|2[0-3]:[0-5][0-9]", moment) for moment in times(text))
    assert all(math.isfinite(number) for number in numbers(text) + moneys(text))
    assert all(ids(token) == [token] or "_" in token or "-" in token for token in ids(text))
    ids(text, r"[A-Z]\d+")
    assert mentions(text, "Alda") >= 0
    assert mentions("Alda", text) >= 0


@settings(max_examples=200)
@given(anything, anything)
def test_any_string_may_be_shown(value: str, text: str) -> None:
    shown(value, text)


@given(anything)
def test_shown_agrees_with_what_is_read(text: str) -> None:
    assert all(shown(day, text) for day in dates(text))
    assert all(shown(moment, text) for moment in times(text))
    assert all(shown(number, text) for number in numbers(text))


MEGABYTES = {
    "digits": "1" * 10**6,
    "letters": "a" * 10**6,
    "spaces": " " * 10**6,
    "numbers": "12 " * 333_333,
    "tokens": "a1-" * 333_333,
    "dates": "3 may " * 166_666,
    "accents": "e\u0301" * 500_000,
    "breaks": "\n" * 10**6,
}
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "dates": lambda text: dates(text, year=2031),
    "times": times,
    "numbers": numbers,
    "moneys": moneys,
    "ids": ids,
    "ids of a pattern": lambda text: ids(text, r"[A-Z]\d+"),
    "mentions": lambda text: mentions(text, "Porto Lume"),
    "mentions of it": lambda text: mentions("Porto Lume", text),
    "shown": lambda text: shown("2031-05-03", text),
    "shown number": lambda text: shown(13, text),
    "it is shown": lambda text: shown(text, "Alda 12"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("text", MEGABYTES)
def test_a_megabyte_takes_no_two_seconds(text: str, name: str) -> None:
    gc.collect()  # not in the middle: other tests leave large heaps behind
    started = time.thread_time()  # of this thread alone: others may keep the machine busy
    FUNCTIONS[name](MEGABYTES[text])
    assert time.thread_time() - started < 2.0
