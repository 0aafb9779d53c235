"""Whether an answer in free text states the expected values; the rule is written out in docs/answers.md.

`request` finds what is asked for, `reading` holds a text and its claims, `finders` the claims of each kind, `moods`
whether the text stands by them and of which thing they are said, `judgement` what else it says of each, `cues` and
`decision` which one it commits to.
"""

from crosswind.text.answers.decision import contradicts, states
from crosswind.text.answers.reading import Expected, Kind

__all__ = ["Expected", "Kind", "contradicts", "states"]
