"""What a message of the agent is: an answer, a question or a refusal; the rule is written out in docs/answers.md.

`classify` and `offers` go by the message alone; `refuses` and `completes` read it where it is known that nothing could
be done, or that all was. `request` finds what is asked of the user, `inability` what cannot be done, `success` what
was, `deeds` both by clause, with the moods that answers have. `sentences` leaves out courtesies and what is quoted,
`words` has the parts of patterns, and `decision` puts all of it together.
"""

from crosswind.text.speech.decision import Speech, classify, completes, offers, refuses

__all__ = ["Speech", "classify", "completes", "offers", "refuses"]
