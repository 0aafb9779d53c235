"""What the patterns are made of: gaps, alternatives and groups of words."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
    """A pattern that is compiled when it is first used.

    Together they take a tenth of the time in which a command starts, and most commands judge no text.
    """

    def __init__(self, text: str) -> None:
        self.pattern = text

    def __getattr__(self, name: str) -> Any:
        made = re.compile(self.pattern)
        self.search, self.match, self.finditer, self.sub = made.search, made.match, made.finditer, made.sub
        return getattr(made, name)  # the next time it is found at once


def any_of(*patterns: str) -> re.Pattern[str]:
    return cast("re.Pattern[str]", _Late("|".join(patterns)))


def word_set(text: str) -> frozenset[str]:
    """Words of which a sentence must have one before a costly pattern is tried on it."""
    return frozenset(text.split())


def gap(most: int) -> str:
    """Up to so many words of one sentence; each is taken whole (++), so that there is little to try again."""
    return rf"(?:[^ |]++ ){{0,{most}}}"


def either(alternatives: str) -> str:
    """One of the words; sorted by first letter, which spares `re` most of them.  A bar in (...) splits nothing."""
    groups: dict[str, list[str]] = {}
    for word in re.split(r"\|(?![^()]*\))", alternatives):
        groups.setdefault(word[0], []).append(word[1:])
    return "(?:" + "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in groups.items()) + ") "


START = r" \| (?:\* )?"
ID = r"[a-z]{1,3}-?\d{2,12} "  # T5967113
NUMBER = r"[a-z]{1,4}-?\d{1,12} "  # DEP1, where the words before it say that it is one
TOOL = r"(?:tools?|functions?|[a-z]{2,20}(?:_[a-z]{2,20}){1,4}) "  # share_file
ANY_LY = r"\w{3,24}+(?<=ly)"
LY = rf"(?:{ANY_LY} )?"
# Words that may stand between "I" and its verb.
ADVERB = rf"(?:(?:{ANY_LY}|therefore|thus|hence|just|still|also|now|then|again|however|sadly|too|so|,) ){{0,3}}"
# Words that may stand before a headline such as "Not possible".
OPENING = START + (
    r"(?:(?:i am|we are|my|very|so|sorry|apologies|unfortunately|sadly|regrettably|afraid|but|final|answer|result"
    r"|outcome|verdict|conclusion|error|ok|okay|well|hi|however|,|:) ){0,6}"
)
UNABLE = (
    r"(?:cannot|can no longer|could not|could no longer|will not be able|would not be able"
    rf"|(?:am|was|is|are|were|been|remain) {LY}(?:still )?(?:unable|not {LY}able))"
)
# Verbs of finding and knowing: to fail at these is not yet to fail at the task.
KNOWING = (
    rf"(?:to )?{LY}(?:find|locate|see|tell|determine|identify|know|figure|guarantee|promise|predict|say|be sure"
    r"|be certain|rule out|make out|understand|work out|match|recogni[sz]e|verify|confirm|quite|think"
    r"|reproduce|detect|spot|observe) "
)
# "I cannot wait": no inability at all.
FIGURATIVE = r"(?:to )?(?:wait|recommend|stress|overstate|thank|emphasi[sz]e|help but|agree more|be happier|imagine) "
_DONE_WORDS = (
    "booked rebooked reserved scheduled rescheduled cancelled canceled refunded sent resent placed made created updated"
    " changed moved transferred issued registered submitted completed processed confirmed restarted resolved assigned"
    " forwarded added removed deleted ordered purchased arranged filed fixed secured stored saved reopened performed"
    " executed finalized finalised granted fulfilled recorded applied upgraded extended renewed charged credited"
    " swapped exchanged replaced held redirected attached enrolled unlocked enabled disabled archived shared posted"
    " published redeemed mailed emailed rerouted initiated activated reset modified adjusted corrected"
).split()
_BY_ME_WORDS = "bought paid closed invited replied returned switched put marked picked chosen chose".split()
# Steps that are done to a thing, but also tell how it stands ("the transfer was recalled in May"): they count as a
# success if the agent says that it took them, or gives the number that came of them.
_STEP_WORDS = "prepared signed recalled disputed staged launched deployed paged invited froze".split()
STEPS = "|".join(_STEP_WORDS) + "|passed on|rolled out|called off|opened (?:an?|the|your|one) (?:return|dispute)"
_DONE_PHRASES = "|set up|rolled back|topped up|signed up|checked in|handed over|carried out"
DONE = either("|".join(_DONE_WORDS) + _DONE_PHRASES)
DONE_BY_ME = either(
    "|".join(_BY_ME_WORDS + _DONE_WORDS)
    + f"|took care of|taken care of|called (?:it |them )?off|{STEPS}"
    + _DONE_PHRASES
)
SETTLED = r"(?:paid|shipped|delivered|opened) "
NOT_BEEN = rf"(?:was|were|has|have) {LY}not (?:been )?"
# What can be said not to have been done.
UNMET = either(
    "|".join(_DONE_WORDS)
    + "|".join(["", *_STEP_WORDS])
    + "|returned|bought|frozen|entered|undertaken|obtained|passed on|rolled out|called off"
    + _DONE_PHRASES
)
DOING = frozenset(_DONE_WORDS + _BY_ME_WORDS + _STEP_WORDS) | word_set(
    "set rolled topped signed checked handed carried took taken called passed opened open out live frozen entered"
)
DO = either(
    r"book|reserve|schedule|cancel|refund|send|place|make|create|change|move|transfer|issue|submit|complete|process"
    r"|order|do|take|touch|charge|proceed|go ahead|close|update|delete|add|return|pay|confirm|reschedule|restart|apply"
    r"|grant|forward|reply|remove|modify|approve|execute|perform|start|open|reopen|assign|edit|register|file|exchange"
    r"|replace|extend|renew|share|fix|give|prepare|sign|recall|dispute|freeze|stage|launch|deploy|page|ship|invite|buy"
    r"|roll(?: it)? (?:back|out)|pass on|call off|deliver|organi[sz]e|enter"
)
TASK = either(
    r"task|request|booking|reservation|order|transfer|payment|transaction|cancell?ation|return|refund|appointment"
    r"|operation|action|purchase|change|update|exchange|rebooking|delivery|visit|meeting|upgrade|withdrawal|deposit"
    r"|message|mail|email|event|incident|item|modification|extension|claim|swap|move|hold|deployment|launch|rollout"
    r"|rollback|build|invitation|page|file|dispute|recall"
)
PLACE = either(
    r"slots?|seats?|tables?|tickets?|rooms?|appointments?|openings?|flights?|trains?|places?|spots?|vacanc(?:y|ies)"
    r"|beds?|times?|availability|capacity|reservations?|bookings?|dates?|units?|cars?|copies|bus|buses|connections?"
    r"|windows?|lots?|replicas?|stock"
)
MEANS = (
    r"(?:tools?|functions?|functionality|way|means|permissions?|access|authority|ability|capability|endpoint|method"
    r"|possibility|rights?|privileges|clearance|credentials|option to|authori[sz]ation) "
)
# What a rule may forbid, or somebody reject.
CHANGES = (
    r"(?:changes|cancell?ations|refunds|returns|transfers|bookings|reservations|orders|exchanges|modifications|payments"
    r"|requests?|rebooking|it|this|that|me|us) "
)
REJECTED = r"(?:refused|denied|declined|rejected|blocked|turned down) "
RULER = (
    r"(?:policy|policies|system|tools?|fare|rules?|terms|service|bank|api|law|regulations?|settings|permissions"
    r"|contract|conditions) "
)
GIVE = (
    r"(?:tell|give|provide|specify|clarify|choose|select|pick|indicate|enter|state|supply|double-check|double check"
    r"|recheck|resend|reply|respond|answer|advise|say|name|decide|approve|authori[sz]e|type|describe|explain|elaborate"
    r"|correct|upload|attach|fill (?:me )?in|send (?:me|us|it and|it again|over|the|your|along)"
    r"|(?:confirm|verify|share)(?! with)"
    r"|check (?:it|again|whether|if|that|and|the (?:spelling|number|id|name|address|code|date|reference|details))) "
)
# What a task may lack: the details that a user gives.
ASKED_FOR_WORDS = (
    "city town date day time length duration minutes number name id hospital department address seats people guests"
    " patient customer card amount reason thing things detail details information clarification confirmation input"
    " piece party size period month year place kind destination recipient reference"
    " store product quantity units wallet buyer branch payee team role colleague mailbox region engineer replicas"
).split()
ASKED_FOR = either("|".join(ASKED_FOR_WORDS))
# What a report may say there is none of: it is the answer itself.
_REPORTED = either(
    r"reviews?|prescriptions?|stars?|ratings?|incidents?|mails?|emails?|messages?|meetings?|events?|allerg(?:y|ies)"
    r"|conflicts?|fees?|charges?|costs?|need|problems?|doubt|changes?|errors?|issues?|rain|snow|wind|penalt(?:y|ies)"
    r"|differences?|limits?|discounts?|tax|deposit|hurry|rush|breakfast|longer|surcharge|other|one|wonder|sign|signs"
    r"|question|cap|dress|restrictions?|requirements?|side|symptoms?|alerts?|outages?|tasks?|entries|notes?|more than"
    r"|risk|extra|sales?|shipments?|returns?|disputes?|files?(?<!on file)|pages|downtime"
)
UNREPORTED = rf"(?!{gap(3)}{_REPORTED})"
NO = r"(?:no|not any|not an?|not a single|not one|zero) "
MAY_LEAD = r"(?:(?:and|so|sorry|ok|okay|sure|,) ){0,2}"
