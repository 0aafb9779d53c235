"""Typed values in free text: dates, times, numbers, amounts, ids and names as people write them.

Values are recognised by type, one module each: `moments` (dates and times), `numbers` (amounts too), `names` (ids too);
`reading` asks them all.
This is not a language model: it reads surface forms in English (with the number and date formats of other languages).
`crosswind.text.answers` decides whether an answer states a value.

Patterns start with a plain character class and look behind only after it: the regex engine can then skip to the few
characters of that class, which halves the time.
"""

from crosswind.text.values.reading import dates, ids, mentions, moneys, numbers, shown, times

__all__ = ["dates", "ids", "mentions", "moneys", "numbers", "shown", "times"]
