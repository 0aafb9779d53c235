"""What a message commits to: moods, entities, facts and deeds, as docs/answers.md says."""

from __future__ import annotations

from crosswind.text import speech
from crosswind.text.answers import Expected, contradicts, states

FEE = Expected("money", 44, about=("Norfiolli", "D0000001"), rivals=("Perniolli", "D0000002"))

# (text, whether it states a fee of 44 euros for Norfiolli)
FEES = (
    ("Norfiolli costs 44 euros. I could not check the opening hours.", True),
    ("44 euros, although I wasn't able to confirm whether discounts apply.", True),
    ("I think it is 44 euros.", True),
    ("Perniolli takes 49 euros, but Norfiolli, which ranks first, takes 44 euros.", True),
    ("I compared Norfiolli and Perniolli. The fee is 44 euros.", True),
    ("The old list claims 49 euros, but that is outdated; I go by 44 euros.", True),
    ("49 euros. Sorry, 44 euros.", True),
    ("~~49 euros~~ 44 euros", True),
    ("The flyer says 49 euros. The flyer is years out of date. It is 44 euros.", True),
    ("The old list claims 44 euros, but that is outdated; I go by 49 euros.", False),
    ("44 euros was the price last year; today it is 49 euros.", False),
    ("I said 44 euros earlier. Please disregard that, it is 49 euros.", False),
    ("The website still shows 44 euros, which I don't believe; our own figure is 49 euros.", False),
    ("If the old list still holds, it is 44 euros; I have not looked.", False),
    ("44 euros, provided that nothing has changed.", False),
    ("Should the catalogue be up to date, Norfiolli charges 44 euros.", False),
    ("Normally 44 euros; I did not check.", False),
    ("44 euros, I'd imagine.", False),
    ("fee: 44 euros\nconfidence: low", False),
    ("Perniolli charges 44 euros.", False),
    ("The best one is Perniolli, and it costs 44 euros.", False),
    ("Quick answer: 44 euros. Longer answer: 44 euros, at Perniolli.", False),
    ("Perniolli ranks first, ahead of Norfiolli. The fee is 44 euros.", False),
    ("best: D0000002\nfee: 44 EUR", False),
    ("Nobody pays 44 euros there.", False),
)
TIME, ID = Expected("time", "13:45"), Expected("id", "R4563527", ("R3968912",))

# (text, whether it contradicts a booking at 13:45 with the id R4563527)
FACTS = (
    ("Done: T7872972.", False),
    ("Done for 13:45: T7872972.", False),
    ("T7872972, for 14:45.", True),
    ("R4563527 is cancelled.", False),
    ("R3968912 is cancelled.", True),
)

# (text, whether it refuses where nothing was done and nothing could be)
REFUSED = (
    ("Nothing was done, because the account is suspended.", True),
    ("tried, system says no (the account is suspended)", True),
    ("No appointment this time, I'm afraid.", True),
    ("I thought it had worked, but it had not: nothing was made.", True),
    ("Kairo can't take it that day. Want me to look at the day after instead?", True),
    ("The slot is yours.", False),
    ("Even though the account is suspended, the meeting was accepted without problems.", False),
    ("No other slot was free, but this one was, and I booked it.", False),
    ("If there is still room, the order is placed.", False),
    ("Which date would you like?", False),
)

# (text, whether it stands by a cancellation that was made)
COMPLETED = (
    ("R4563527 is cancelled. I could not find out whether a fee applies.", True),
    ("Your visit will not take place; its record shows as withdrawn.", True),
    ("Taken care of.", True),
    ("R4563527 is cancelled, which cannot be undone.", True),
    ("I cancelled R4563527, then undid it, so it stands again.", False),
    ("R4563527 should be cancelled, assuming the call went through.", False),
    ("I will cancel R4563527 later.", False),
    ("Nothing was cancelled.", False),
    ("R4563527 is still active.", False),
)


def test_a_value_counts_if_the_text_stands_by_it_and_says_it_of_the_right_thing() -> None:
    assert not [(text, right) for text, right in FEES if states(text, [FEE]) is not right]


def test_facts_may_be_left_out_but_not_stated_otherwise() -> None:
    assert not [(text, wrong) for text, wrong in FACTS if bool(contradicts(text, [TIME, ID])) is not wrong]


def test_a_refusal_says_that_nothing_was_done_and_claims_no_success() -> None:
    assert not [(text, right) for text, right in REFUSED if speech.refuses(text) is not right]


def test_an_ending_must_be_told_and_not_be_taken_back() -> None:
    assert not [(text, right) for text, right in COMPLETED if speech.completes(text) is not right]


def test_offers_ask_for_no_detail() -> None:
    assert speech.offers("Shall I try again?")
    assert speech.offers("Should I try once more?")
    assert not speech.offers("Shall I try another date? Which one?")
