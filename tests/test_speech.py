"""The rule that tells answers, questions and refusals apart, on many phrasings, and that it takes any text."""

from __future__ import annotations

import re
import time
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.speech import Speech, classify
from tests import phrasings_speech as said

CLASSES: dict[Speech, tuple[tuple[str, ...], ...]] = {
    "answer": (
        said.ANSWERS,
        said.HELD_OUT_ANSWERS,
        said.HELD_OUT_2_ANSWERS,
        said.HELD_OUT_3_ANSWERS,
        said.PROBES_ANSWERS,
    ),
    "question": (
        said.QUESTIONS,
        said.HELD_OUT_QUESTIONS,
        said.HELD_OUT_2_QUESTIONS,
        said.HELD_OUT_3_QUESTIONS,
        said.PROBES_QUESTIONS,
    ),
    "refusal": (
        said.REFUSALS,
        said.HELD_OUT_REFUSALS,
        said.HELD_OUT_2_REFUSALS,
        said.HELD_OUT_3_REFUSALS,
        said.PROBES_REFUSALS,
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
)


@pytest.mark.parametrize(("text", "kind"), PHRASINGS)
def test_phrasing(text: str, kind: Speech) -> None:
    assert classify(text) == kind


@pytest.mark.parametrize(("text", "kind"), BOTH_WAYS)
def test_the_rule_decides_what_pulls_both_ways(text: str, kind: Speech) -> None:
    assert classify(text) == kind


def test_there_are_enough_phrasings_and_none_twice() -> None:
    texts = [text for text, _ in PHRASINGS]
    assert len(texts) == len(set(texts))
    assert all(len(groups[0]) >= 130 for groups in CLASSES.values())
    assert all(len(held_out) == 20 for groups in CLASSES.values() for held_out in groups[1:4])


@pytest.mark.parametrize(("text", "kind"), PHRASINGS)
def test_dress_does_not_matter(text: str, kind: Speech) -> None:
    """Typographic apostrophes, blanks around and letter case change nothing."""
    assert classify(re.sub(r"(?<=\w)'(?=\w)", "\u2019", text)) == kind
    assert classify(f"\n\n  {text}\n") == kind
    assert classify(text.upper()) == kind


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


def test_short_texts_are_quick() -> None:
    texts = [text for text, _ in PHRASINGS]
    start = time.perf_counter()
    for text in texts:
        classify(text)
    assert (time.perf_counter() - start) / len(texts) < 0.001  # About 25 microseconds, on an idle machine.
