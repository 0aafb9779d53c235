"""The rule that tells answers, questions and refusals apart, on many phrasings, and that it takes any text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.text.speech import Speech, classify, offers
from crosswind.text.speech.words import any_of
from tests.text import phrasings_speech as said

CLASSES: dict[Speech, tuple[tuple[str, ...], ...]] = {
    "answer": (
        said.ANSWERS,
        said.HELD_OUT_ANSWERS,
        said.HELD_OUT_2_ANSWERS,
        said.HELD_OUT_3_ANSWERS,
        said.PROBES_ANSWERS,
        said.INDEPENDENT_ANSWERS,
        said.PROBES_2_ANSWERS,
        said.HELD_OUT_4_ANSWERS,
        said.HELD_OUT_5_ANSWERS,
        said.RETAIL_ANSWERS,
        said.WORKSPACE_ANSWERS,
        said.BANKING_ANSWERS,
        said.OPERATIONS_ANSWERS,
        said.DESKS_ANSWERS,
        said.DESKS_2_ANSWERS,
    ),
    "question": (
        said.QUESTIONS,
        said.HELD_OUT_QUESTIONS,
        said.HELD_OUT_2_QUESTIONS,
        said.HELD_OUT_3_QUESTIONS,
        said.PROBES_QUESTIONS,
        said.INDEPENDENT_QUESTIONS,
        said.PROBES_2_QUESTIONS,
        said.HELD_OUT_4_QUESTIONS,
        said.HELD_OUT_5_QUESTIONS,
        said.RETAIL_QUESTIONS,
        said.WORKSPACE_QUESTIONS,
        said.BANKING_QUESTIONS,
        said.OPERATIONS_QUESTIONS,
        said.DESKS_QUESTIONS,
        said.OFFERS,
        said.HELD_OUT_4_OFFERS,
        said.HELD_OUT_5_OFFERS,
    ),
    "refusal": (
        said.REFUSALS,
        said.HELD_OUT_REFUSALS,
        said.HELD_OUT_2_REFUSALS,
        said.HELD_OUT_3_REFUSALS,
        said.PROBES_REFUSALS,
        said.INDEPENDENT_REFUSALS,
        said.PROBES_2_REFUSALS,
        said.HELD_OUT_4_REFUSALS,
        said.HELD_OUT_5_REFUSALS,
        said.RETAIL_REFUSALS,
        said.WORKSPACE_REFUSALS,
        said.BANKING_REFUSALS,
        said.OPERATIONS_REFUSALS,
        said.DESKS_REFUSALS,
        said.DESKS_2_REFUSALS,
    ),
}
PHRASINGS: list[tuple[str, Speech]] = [
    (text, kind) for kind, groups in CLASSES.items() for texts in groups for text in texts
]

# What step 6 of the rule says about messages that pull both ways: (text, verdict).
BOTH_WAYS: tuple[tuple[str, Speech], ...] = (
    ("There is no slot left that day. Would you like another date?", "refusal"),
    ("I can't book without the date; which date?", "question"),
    ("I can't open the order. Could you check the number?", "question"),
    ("I can't open the order. Could you give me a different number?", "refusal"),
    ("I couldn't find the order. Could you check the number?", "question"),
    ("I couldn't find the order. Would you like me to create a new one?", "refusal"),
    ("I couldn't find the order.", "refusal"),
    ("I couldn't find order 3, but order 4 costs 12 euros.", "answer"),
    ("Dr. Lind is not available on Fridays.", "answer"),
    ("Unfortunately Dr. Lind is not available on that Friday.", "refusal"),
    ("Dr. Lind is not available on Friday. Shall I try Dr. Moreau?", "refusal"),
    ("The table is booked. Would you like me to add it to your calendar?", "answer"),
    ("The table is booked. Would you like me to go ahead with the taxi?", "question"),
    ("The visit is scheduled for May. Would you like me to cancel it?", "question"),
    ("The booking was made. It can't be changed.", "answer"),
    ("The booking was made in May and can't be changed.", "refusal"),
    ("No, it can't be returned.", "answer"),
    ("No, I can't return it.", "refusal"),
    ("I cannot do this: the date is missing. Please tell me the date.", "question"),
    ("I can't search yet. Which city?", "question"),
    ("I can't search yet. Which other city?", "refusal"),
    ("The fee is 76 euros. I couldn't find the score.", "answer"),
    ("I couldn't find the score.", "refusal"),
    ("The 09:00 slot can't be booked. Receipt for 09:45: T6610923.", "answer"),
    ("I held the seats and cancelled them again.", "refusal"),
    ("I cancelled the first hold again. I booked 09:45.", "answer"),
    ("I cancelled the hold.", "answer"),
    ("The payment failed. I cancelled the hold.", "refusal"),
)

# What the sandbox's own reference agents say.
REPORTS = (
    "Halsovane costs 12 euros.",
    "Held for 08:45: R0124304.",
    "Done for 08:45: T5967113.",
    "R0124304 is cancelled.",
    "Moved to 2031-04-17 at 08:45.",
    "Halsovane is cheaper.",
    "Halsovane is the closest.",
    "The total is 82 euros.",
    "Done; 3 are booked now.",
    "Halsovane has 0.",
    "Done.",
)
REASONS = (
    "Halsovane is sold out on 2031-04-17",
    "customer C578702 is barred",
    "the cover of N947600 has lapsed",
    "there is no castle in Dormomere",
    "C264281 has no booking on 2031-02-05",
    "the booking was made and paid, and it is done already",
    "the date is missing",
    "you did not say which one, so nothing was booked",
    "at first it worked; then the first attempt was successfully cancelled",
    "please note that it can't be undone",
    "the date is in the wrong form; choose one of the following: 1, 2",
    "Service temporarily unavailable; nothing was done. Please try again",
)


def wrong(phrasings: Iterable[tuple[str, Speech]]) -> list[tuple[str, Speech]]:
    """Those that are taken for something else, with what they are. One test for thousands costs no set-up for each."""
    return [(text, kind) for text, kind in phrasings if classify(text) != kind]


@pytest.mark.parametrize("kind", get_args(Speech))
def test_phrasings(kind: Speech) -> None:
    assert not wrong((text, kind) for texts in CLASSES[kind] for text in texts)


def test_the_rule_decides_what_pulls_both_ways() -> None:
    assert not wrong(BOTH_WAYS)


def test_reports_of_the_sandbox_are_answers() -> None:
    assert not wrong((text, "answer") for text in REPORTS)


@pytest.mark.parametrize("reason", REASONS)
def test_whatever_the_reason_a_flat_refusal_is_one(reason: str) -> None:
    assert classify(f"I cannot do this: {reason}.") == "refusal"
    assert classify(f"I am sorry, but I cannot do this: {reason}.") == "refusal"


@given(st.text(st.characters(categories=("Ll", "Nd"), max_codepoint=127), min_size=1))
def test_any_word_may_be_the_reason(reason: str) -> None:
    assert classify(f"I cannot do this: {reason}.") == "refusal"


def test_offers() -> None:
    texts = said.OFFERS + said.HELD_OUT_4_OFFERS + said.HELD_OUT_5_OFFERS
    assert not [text for text in texts if not (offers(text) and offers(text.upper()))]


def test_no_mere_offers() -> None:
    assert not [text for text in said.NOT_OFFERS if offers(text)]


def test_whoever_offers_asks() -> None:
    """An answer may close with an offer of more, a refusal with one of something else; nothing else offers."""
    assert not [text for text, kind in PHRASINGS if offers(text) and "?" not in text and kind != "question"]


def test_there_are_enough_phrasings_and_none_twice() -> None:
    texts = [text for text, _ in PHRASINGS]
    assert len(texts) == len(set(texts))
    assert all(len(groups[0]) >= 130 for groups in CLASSES.values())
    assert all(len(held_out) == 20 for groups in CLASSES.values() for held_out in groups[1:4])
    assert all(len(groups[5]) >= 57 and len(groups[7]) == 15 for groups in CLASSES.values())
    assert all(len(own) >= 20 for groups in CLASSES.values() for own in groups[9:14])
    assert len(said.OFFERS) >= 28
    assert len(said.NOT_OFFERS) >= 25


def test_dress_does_not_matter() -> None:
    """Typographic apostrophes, blanks around and letter case change nothing."""
    assert not wrong((re.sub(r"(?<=\w)'(?=\w)", "\u2019", text), kind) for text, kind in PHRASINGS)
    assert not wrong((f"\n\n  {text}\n", kind) for text, kind in PHRASINGS)
    assert not wrong((text.upper(), kind) for text, kind in PHRASINGS)


@pytest.mark.parametrize("kind", get_args(Speech))
@pytest.mark.parametrize(
    "dress", ["**{}**", "\U0001f642 {} \U0001f642", "# {}", "_{}_", '"{}"', "`{}`", "Final answer: {}"]
)
def test_markup_around_one_sentence_does_not_matter(kind: Speech, dress: str) -> None:
    plain: dict[Speech, str] = {
        "answer": "The museum is closed on Mondays.",
        "question": "Which date would you like?",
        "refusal": "I can't book it.",
    }
    assert classify(dress.format(plain[kind])) == kind


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_gets_a_verdict_and_always_the_same(text: str) -> None:
    verdict = classify(text)
    assert verdict in get_args(Speech)
    assert classify(text) == verdict


@given(st.lists(st.sampled_from([*"?.!,;:'\"`>-*|_ \n\t\x00\ud800", "I", "can't", "you", "no", "left", "please"])))
def test_any_jumble_of_words_and_marks_gets_a_verdict(words: list[str]) -> None:
    assert classify(" ".join(words)) in get_args(Speech)
    assert classify("".join(words)) in get_args(Speech)


@pytest.mark.parametrize(
    "filler", [" and so on", "x", "'", '"', "`", "> ", "? ", "\n", "\n- ", "i ", "no ", "\ud800", "é"]
)
def test_long_texts_are_quick_and_only_their_ends_count(filler: str) -> None:
    long = filler * (1_000_000 // len(filler))
    start = time.perf_counter()
    assert classify(long) in get_args(Speech)
    assert classify(f"{long}\n\nWhich date would you like?") == "question"
    assert time.perf_counter() - start < 2.0  # It takes milliseconds; the rest is for a busy machine.


def test_a_pattern_costs_nothing_before_it_is_used() -> None:
    """Most commands judge no text, and would compile all that a message is read by."""
    odd = any_of("a", "(b")
    assert odd.pattern == "a|(b"
    with pytest.raises(re.error, match="unterminated subpattern"):
        odd.search("a")
    fine = any_of("b", "c+")
    assert [fine.sub("-", "abcc"), *(found[0] for found in fine.finditer("abcc"))] == ["a--", "b", "cc"]
    assert fine.search("abcc", 2) is not None
    assert fine.match("abcc") is fine.fullmatch("bc") is None


def test_short_texts_are_quick() -> None:
    texts = [text for text, _ in PHRASINGS]
    start = time.perf_counter()
    for text in texts:
        classify(text)
    assert (time.perf_counter() - start) / len(texts) < 0.001  # About 25 microseconds, on an idle machine.


@pytest.mark.parametrize(
    "text",
    ["Done looking: tracks = 1; minutes needed = 120.", "Minutes needed: 120", "The nights required are 3."],
)
def test_a_detail_whose_value_is_given_is_not_asked_for(text: str) -> None:
    assert classify(text) == "answer"
    assert classify("Minutes needed.") == "question"
