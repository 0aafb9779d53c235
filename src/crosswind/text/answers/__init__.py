"""Whether an answer in free text states the expected values.

This is not a language model and does not understand a text: it finds the values that `text.values` reads,
applies the fixed rule below, and where the text leaves two readings open it prefers to say "not stated".  It does not
know what a number counts, whether a claim is true, or who "she" is beyond the name just before.

The rule of `states`
--------------------
A text states the expected values if it commits to each of them:

1.  *Presence.*  The value occurs in a form of its kind.  Names match regardless of case,
    accents, quotes, markup, hyphens and a leading "the" or title; ids regardless of case; both
    only as whole words, and the longest candidate wins ("Alda Nord" is no mention of "Alda" when
    both are candidates).  An amount is in euros, unless the value is a string with a currency or
    the request (`given`) names one other currency; where the text holds no amount at all a bare number
    serves, one labelled as a price ("price: 4", a column of prices) first, never one that measures
    something else ("4 stars", "rating 4", "4 theatres"); an amount in another currency never serves.
    A date without a year is read in the year of the expected one.  Numbers are equal up to rounding
    (1e-6) or `tolerance`; a percentage is its number (40% states 40, not 0.4); "1 hour 35 minutes" is
    95 (minutes) or 1.5833 (hours), never 35; no other units are converted or compared.
2.  *Claim.*  An occurrence counts only if it is claimed.  Not claimed are: what stands in a
    question or an if-clause; what is negated ("not 12", "isn't Alda", "12 is wrong", "rather
    than"); what is compared with ("than Brisa", "over Brisa", "followed by") or comes second
    ("then Brisa", "Brisa second"); what comes out worse in the sense that `given` asks for ("Brisa is
    dearer" if it asks for the cheaper; of two candidates the other one is then claimed); moments that
    held before ("Old: 11:00", "11:00 -> 11:45"); what was only looked at ("I compared Brisa and
    Cosmo"); operands and intermediate results ("12 + 15 = 27"); list numbers; the whole of a part
    ("3 of the 7", "4.3/5").
3.  *Soft claims* serve only if nothing firmer of the kind is claimed: for a number amounts and
    percentages (never if `given` asks for a count), numbers with the unit of a condition of `given`
    ("4 stars"), differences ("2 less than"), labels ("room 12") and years; for an amount differences
    and, unless asked for, prices per head; for dates and times bounds ("by 14:00").
4.  *Hedges.*  "about", "at least", "up to", "from", "12+", "after 14:00", ranges, "or", "either",
    "between", "maybe", "probably", "might be", "not sure whether" leave the value uncommitted.  "About 12"
    states 12 only if the expected value has a tolerance.  "I think it is 12" is a statement.
    For times and dates "from X to Y" is a statement of both ends, "between" only if both
    ends are expected.
5.  *Rivals.*  Other claimed values of the same kind are rivals: other numbers, amounts of the
    same currency, dates, times; for names, ids and choices the `others`; for ids also tokens of
    the same shape.  No rivals are: values that another expected value asks for; values that
    echo `given` (for names and ids only if `given` does not hold the expected one too, for
    choices never); approximations; names and times that the text dismisses ("Brisa is fully
    booked"); opening hours, unless asked for.
6.  *Commitment.*  Without rivals the value is committed.  With rivals the first of these cues
    that singles out one value decides:
    (a) the last "answer is / answer: / \\boxed", or a correction ("no wait, it's 13");
    (b) what is so "now"; what is "left", "remaining" or "still available", if `given` asks for that;
    (c) the words of `given`: "how many museums" - "3 museums"; "of which 4 have ..."; "how many
        unread mails" - "2 are unread"; "when does
        it close" - "closes at 17:00"; "moved from X to Y" is Y;
        of a price per head and a total the former if `given` asks what a ticket costs;
    (d) the last "so / therefore / total / that makes / which is / in total";
    (e) "=";
    (f) a comparison in the sense of `given` ("Alda costs less"), then a superlative or a choice ("the
        cheapest is", "I recommend"), that of `given` first; two superlatives for two values commit to
        neither;
    (g) emphasis (bold, code, quotes) if only one value has it;
    (h) the first sentence that holds a value, if it holds just one; else the last such sentence.
        What stands in parentheses or breaks a number down after a colon does not count here.
    Bullets, table rows and sentences of one pattern ("Alda costs 12. Brisa costs 15.") are a
    listing and commit to nothing.  Values coordinated by "and" or commas are singled out
    together or not at all.  A "maybe 15" beside the value can be overruled by (a) only.
7.  *Zero.*  "none", "no reviews", "not any", "nothing" are soft claims of the number 0, "free" of
    the amount 0; "but none ...", "none of which ..." and, if `given` asks what is left, "nothing is left"
    are firm ones.
8.  *Yes and no.*  The first of yes, yep, true, correct / no, nope, false, incorrect outside
    questions decides, an explicit "answer: no" before it; "not correct" is no; "yes and no",
    "maybe", "not sure" are neither.  A "no" before a noun ("no seats") is no answer.
9.  *Lists.*  All expected values must be stated, in any order.  But if names alternate with values
    (Alda, 12, Brisa, 15), the text must first mention names and values in matching order, so a
    swapped pair fails; if `given` asks for a start and an end, the text must not assign them the
    other way round.

An answer of more than `LONGEST` characters is judged by its beginning and its end; of more than `MOST_CLAIMS` values of
one kind the first and the last are weighed.  Thoughts before "</think>" are not part of an answer.
"""

from crosswind.text.answers.decision import states
from crosswind.text.answers.reading import Expected, Kind

__all__ = ["Expected", "Kind", "states"]
