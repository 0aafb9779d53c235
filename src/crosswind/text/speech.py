"""What a message of the agent is: an answer, a question or a refusal.

A message without a tool call either ends the episode (answer, refusal) or lets the scripted user reply (question).
`classify` decides by wording alone, always in the same way.  The rule, step by step:

1. READ.  Letter case, markdown, emoji and the kind of apostrophe do not matter.  Quoted text ("...", '...', `...`,
   fenced blocks and lines that start with ">") is somebody else's speech and is left out, unless the message is
   nothing but a quotation.  Of a long text only the first and the last 2000 characters count.  What is left is cut
   into sentences.
2. DROP COURTESIES.  "Anything else?", "Let me know if you need more", "Thanks!", "Does that help?", "Would you like
   more details?" count for nothing.
3. LOOK FOR REQUESTS to the user: a sentence with a question mark; one that asks without it ("please provide the id",
   "I need the date", "let me know which one", "awaiting your confirmation"); or one that says which detail is lacking
   ("the city is missing", "no date was given", "you haven't told me the name").  No request is
   - a rhetorical question: one that does not speak to the user (no "you", "I", "we") and is followed by its answer
     ("The cheapest? That is Alda."; but not "Which city? I will then look it up." or "How many? It must be a
     number."), one that "Yes" or "No" follows, or "You asked ...?";
   - something to do elsewhere ("please confirm at the desk", "please contact the shop").
4. LOOK FOR INABILITIES.
   - Plain: the task cannot, may not or will not be done, or was not done ("I can't book it", "cannot be cancelled",
     "booking not possible", "no tool can", "nothing is booked", "the policy forbids it", "I must decline", "REFUSED:
     ..."), a tool is gone that was needed ("share_file is out of service", unless "so I ..." leads on), or there is a
     cause that leaves nothing to be done ("the customer is barred", "the cover has lapsed").  That something was not
     paid or shipped tells how it stands, unless it follows from something or has a reason ("so it was not paid").
   - Full: no place is left ("no slots on 2031-01-26", "none of the slots has 5 seats", "nothing is free", "no table
     that day", "fully booked", "sold out"), except where it is only the reason for something else ("Alda, since Kairo
     is sold out") or a count ("two of the shows").
   - Not found: something could not be found, seen or told ("I couldn't find the order"), or there is none at all
     ("there is no castle in Dormomere", "the search returned nothing"), unless it is of a kind that one reports on
     ("there are no reviews with 5 stars", "no fee", "no conflicts").
   - Mild: something is unavailable, taken, expired or too little, together with regret ("sorry", "unfortunately") or
     with an offer of something else.  Without these it is a plain fact ("Dr. Lind is not available on Fridays").
     A message that says only that an account is blocked, access suspended or a file confidential is mild as well.
   An inability does not count when it was overcome ("at first", "the first attempt"), when it is a remark added to
   something else ("note that ...", "cannot be undone"), when it answers yes or no about a thing ("No, it can't be
   returned"; but "No, I can't" counts), when it is a value that is reported ("the status is: cannot be delivered"),
   when a step was to wait ("is staged, but was not launched", "not signed, as you asked"), or when it says what a
   result is the best of or goes over ("no earlier slot is free, so ...", "no order was cancelled, so the total ...").
5. LOOK FOR SUCCESS.
   - Told: the agent did it, or it worked ("I booked", "Held: R5561209", "Booking confirmed", "is now sent", "went
     through", "all set"), or there is a receipt ("Receipt: T6610923") or the number of what was done ("is prepared as
     TF1234567").
   - Stated: a thing is done, whoever did it ("the table is booked").
   A success that is denied ("nothing was booked"), conditional ("once it is confirmed") or a reason ("because it was
   sent") is none.
6. DECIDE, the first that fits:
   a. "I cannot do this: ..." is a REFUSAL whatever comes after the colon, if nothing is asked.
   b. What the agent did and then took back ("I cancelled it again", "everything is as it was before", "I couldn't sign
      it, so I recalled it"; "I rolled it back" and the like if something went wrong) makes a REFUSAL, unless a success
      is told after it; a QUESTION if a detail is asked for.
   c. An inability that a word of the user would lift ("I can't book without the date", "not until you confirm", "the
      address is missing") makes a QUESTION.
   d. Success outweighs an inability: go on with h.  Told success always does; stated success unless it tells how
      things stood before: in the same sentence as the inability without a "but" or "so" before it, with a word of the
      past ("ago", "already", "in May"), or with an inability that follows from it ("so I can't").
   e. Full, with no regret, no request and no word of the agent itself, and with the next free place named, is an
      ANSWER ("She has no free slots this week; the first free slot is on 12 June").
   f. Plain, full and mild make a REFUSAL, also when an offer or a wish for another choice comes with them ("No slot
      is left that day. Would you like another date?"): they say that what was asked for cannot be had.  Only a
      request to give, check or confirm a detail ("which", "when", "how many"), and not another one, makes a QUESTION,
      and not if it is full ("I can't open the order. Could you check the number?").
   g. Not found makes a QUESTION if anything is asked of the user but whether to do something else; an ANSWER if a
      "but" leads on to what was found, or a result was given before it ("The fee is 76 euros. I couldn't find the
      score."); else a REFUSAL.
   h. A request makes a QUESTION.  An offer of more after a success ("Would you like me to add it to your calendar?")
      is no request, unless it is about going ahead, or about the very thing of which success is only stated ("The
      visit is scheduled for May. Would you like me to cancel it?").
   i. Everything else, also the empty text, is an ANSWER.

`offers` tells whether all that a message asks (step 3) is whether to go ahead or to do something ("Shall I reserve
it?", "Do you want a breakdown?", "Please confirm."), with no detail and no choice asked for.  `classify` calls such a
message a question, also after information ("The earliest slot is at 09:00. Would you like me to book it?"), as it
cannot know whether the task ends there.  Its caller can: the session takes an offer for an answer if the request wants
nothing written, and otherwise has the user say yes.

English only.  It goes by words, so a refusal in unheard-of words is taken for an answer.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Speech = Literal["answer", "question", "refusal"]

# --- Reading -------------------------------------------------------------------------------------------------------
#
# A text becomes one line of lower-case words, with one space between them and a bar before, between and after the
# sentences: "Sorry, I can't. Which date?" -> " | sorry , i cannot | which date ? |".  The patterns below are written
# for that form: they all start with a space, which lets `re` skip from word to word, and their gaps are bounded and
# never cross a bar.

_PART = 2000
_TYPOGRAPHY = {
    "\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"',
    "\u00ab": '"', "\u00bb": '"', "\uff1f": "?", "\u2026": ". ", "\u2011": "-", "\u2013": " - ", "\u2014": " - ",
    "\u2022": "*", "\u200b": "", "\u00ad": "",
}  # fmt: skip
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_BLANKED = str.maketrans(dict.fromkeys('()[]{}<>*#|~=+^\\"`$%', " "))
_FENCE = re.compile(r"```[^`]{0,4000}```|`[^`\n]{1,300}`")
_CITED = re.compile(r"^[ \t]{0,3}>[^\n]{0,4000}", re.MULTILINE)
_DOUBLE = re.compile(r"\"[^\"\n]{1,600}\"")
_SINGLE = re.compile(r"'(?<!\w')(?:[^'\n]|'(?<=\w')(?=\w)){1,300}'(?!\w)")
_ONLY_QUOTED = re.compile(r"(?:quoted|final|answer|result|response|[\W_])*")
_WRAP = re.compile(r"\n(?<=[\w,]\n)(?=[a-z])")
_ITEM = re.compile(r"\n\s{0,8}(?:[-*+]|\d\d?[.)])\s")
_INNER = re.compile(r"\.(?=\w)|:(?=\d)")
_UNDERLINE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")  # markup; the one in share_file is not
_MARKS = (*((mark, f" {mark} ") for mark in ",:.!?;"), ("\n", " ; "))
# A comma ends a sentence only before words that open a request, as in "it failed, could you check".
_COMMA = re.compile(
    r" ,(?= (?:(?:but|and|so) )?(?:please(?! [|,])|(?:could|can|would|do|did|shall|should|may) (?:you|i)) )"
)


def _spellings() -> dict[str, str]:
    """What a token stands for: contracted forms, with and without the apostrophe, and marks."""
    words = {"can't": "cannot", "cant": "cannot", "won't": "will not", "wont": "will not", "i'm": "i am", "im": "i am"}
    for verb in "could would should do does did is are was were has have had".split():
        words[verb + "n't"] = words[verb + "nt"] = verb + " not"
    for who in "i you we they he she it that there this what who where here how when which".split():
        for ending, full in (("'ve", " have"), ("'ll", " will"), ("'d", " would"), ("'re", " are"), ("'s", " is")):
            words[who + ending] = who + full
    return words | dict.fromkeys((".", "!", ";", "-", "--", "---"), "|") | {"?": "? |", "\x02": "*"}


_SPELLED = _spellings()


def _read(text: str) -> str:
    """The text in the form that the patterns are written for."""
    text = text.strip()
    if len(text) > 2 * _PART:
        text = text[:_PART] + "\n" + text[-_PART:]
    if not text.isascii():
        text = _FOREIGN.sub(_fold, text)
    if "\n" in text:
        text = _ITEM.sub("\n\x02 ", "\n" + _WRAP.sub(" ", text))
    line = " ".join([_SPELLED.get(token, token) for token in _tokens(_unquoted(text.lower()))])
    line = f" | {line} |".replace(" can not ", " cannot ").replace("| ? |", "? |")
    for title in (" dr |", " mr |", " mrs |", " ms |", " e_g |", " i_e |"):
        line = line.replace(title, title[:-2])
    return _COMMA.sub(" |", line)


def _fold(found: re.Match[str]) -> str:
    """ASCII for another character: no word that the patterns know has any but ASCII letters."""
    mark = found[0]
    return _TYPOGRAPHY.get(mark, "x" if mark.isalnum() else " ")


def _tokens(text: str) -> list[str]:
    """Words and marks; str.replace and str.split, as they are much faster here than one regular expression."""
    if "_" in text:
        text = _UNDERLINE.sub(" ", text)
    text = _INNER.sub("_", text.translate(_BLANKED))  # "20:00" and "24.90" are words.
    for mark, apart in _MARKS:
        text = text.replace(mark, apart)
    return text.split()


def _unquoted(text: str) -> str:
    """The text without what it quotes; a message that is one quotation is the agent's own."""
    bare = text
    if "`" in bare:
        bare = _FENCE.sub(" quoted ", bare)
    if ">" in bare:
        bare = _CITED.sub(" quoted ", bare)
    if '"' in bare:
        bare = _DOUBLE.sub(" quoted ", bare)
    if "'" in bare:
        bare = _SINGLE.sub(" quoted ", bare)
    return text if bare is not text and _ONLY_QUOTED.fullmatch(bare) else bare


# --- What the patterns are made of ---------------------------------------------------------------------------------


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


def _words(text: str) -> frozenset[str]:
    """Words of which a sentence must have one before a costly pattern is tried on it."""
    return frozenset(text.split())


def _gap(most: int) -> str:
    """Up to so many words of one sentence; each is taken whole (++), so that there is little to try again."""
    return rf"(?:[^ |]++ ){{0,{most}}}"


def _either(alternatives: str) -> str:
    """One of the words; sorted by first letter, which spares `re` most of them.  A bar in (...) splits nothing."""
    groups: dict[str, list[str]] = {}
    for word in re.split(r"\|(?![^()]*\))", alternatives):
        groups.setdefault(word[0], []).append(word[1:])
    return "(?:" + "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in groups.items()) + ") "


_START = r" \| (?:\* )?"
_ID = r"[a-z]{1,3}-?\d{2,12} "  # T5967113
_NUMBER = r"[a-z]{1,4}-?\d{1,12} "  # DEP1, where the words before it say that it is one
_TOOL = r"(?:tools?|functions?|[a-z]{2,20}(?:_[a-z]{2,20}){1,4}) "  # share_file
_ANY_LY = r"\w{3,24}+(?<=ly)"
_LY = rf"(?:{_ANY_LY} )?"
# Words that may stand between "I" and its verb.
_ADVERB = rf"(?:(?:{_ANY_LY}|therefore|thus|hence|just|still|also|now|then|again|however|sadly|too|so|,) ){{0,3}}"
# Words that may stand before a headline such as "Not possible".
_OPENING = _START + (
    r"(?:(?:i am|we are|my|very|so|sorry|apologies|unfortunately|sadly|regrettably|afraid|but|final|answer|result"
    r"|outcome|verdict|conclusion|error|ok|okay|well|hi|however|,|:) ){0,6}"
)
_UNABLE = (
    r"(?:cannot|can no longer|could not|could no longer|will not be able|would not be able"
    rf"|(?:am|was|is|are|were|been|remain) {_LY}(?:still )?(?:unable|not {_LY}able))"
)
# Verbs of finding and knowing: to fail at these is not yet to fail at the task.
_KNOWING = (
    rf"(?:to )?{_LY}(?:find|locate|see|tell|determine|identify|know|figure|guarantee|promise|predict|say|be sure"
    r"|be certain|rule out|make out|understand|work out|match|recogni[sz]e|verify|confirm|quite|think"
    r"|reproduce|detect|spot|observe) "
)
# "I cannot wait": no inability at all.
_FIGURATIVE = r"(?:to )?(?:wait|recommend|stress|overstate|thank|emphasi[sz]e|help but|agree more|be happier|imagine) "
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
_STEPS = "|".join(_STEP_WORDS) + "|passed on|rolled out|called off|opened (?:an?|the|your|one) (?:return|dispute)"
_DONE_PHRASES = "|set up|rolled back|topped up|signed up|checked in|handed over|carried out"
_DONE = _either("|".join(_DONE_WORDS) + _DONE_PHRASES)
_DONE_BY_ME = _either(
    "|".join(_BY_ME_WORDS + _DONE_WORDS)
    + f"|took care of|taken care of|called (?:it |them )?off|{_STEPS}"
    + _DONE_PHRASES
)
_SETTLED = r"(?:paid|shipped|delivered|opened) "
_NOT_BEEN = rf"(?:was|were|has|have) {_LY}not (?:been )?"
# What can be said not to have been done.
_UNMET = _either(
    "|".join(_DONE_WORDS)
    + "|".join(["", *_STEP_WORDS])
    + "|returned|bought|frozen|entered|undertaken|obtained|passed on|rolled out|called off"
    + _DONE_PHRASES
)
_DOING = frozenset(_DONE_WORDS + _BY_ME_WORDS + _STEP_WORDS) | _words(
    "set rolled topped signed checked handed carried took taken called passed opened open out live frozen entered"
)
_DO = _either(
    r"book|reserve|schedule|cancel|refund|send|place|make|create|change|move|transfer|issue|submit|complete|process"
    r"|order|do|take|touch|charge|proceed|go ahead|close|update|delete|add|return|pay|confirm|reschedule|restart|apply"
    r"|grant|forward|reply|remove|modify|approve|execute|perform|start|open|reopen|assign|edit|register|file|exchange"
    r"|replace|extend|renew|share|fix|give|prepare|sign|recall|dispute|freeze|stage|launch|deploy|page|ship|invite|buy"
    r"|roll(?: it)? (?:back|out)|pass on|call off|deliver|organi[sz]e|enter"
)
_TASK = _either(
    r"task|request|booking|reservation|order|transfer|payment|transaction|cancell?ation|return|refund|appointment"
    r"|operation|action|purchase|change|update|exchange|rebooking|delivery|visit|meeting|upgrade|withdrawal|deposit"
    r"|message|mail|email|event|incident|item|modification|extension|claim|swap|move|hold|deployment|launch|rollout"
    r"|rollback|build|invitation|page|file|dispute|recall"
)
_PLACE = _either(
    r"slots?|seats?|tables?|tickets?|rooms?|appointments?|openings?|flights?|trains?|places?|spots?|vacanc(?:y|ies)"
    r"|beds?|times?|availability|capacity|reservations?|bookings?|dates?|units?|cars?|copies|bus|buses|connections?"
    r"|windows?|lots?|replicas?|stock"
)
_MEANS = (
    r"(?:tools?|functions?|functionality|way|means|permissions?|access|authority|ability|capability|endpoint|method"
    r"|possibility|rights?|privileges|clearance|credentials|option to|authori[sz]ation) "
)
# What a rule may forbid, or somebody reject.
_CHANGES = (
    r"(?:changes|cancell?ations|refunds|returns|transfers|bookings|reservations|orders|exchanges|modifications|payments"
    r"|requests?|rebooking|it|this|that|me|us) "
)
_REJECTED = r"(?:refused|denied|declined|rejected|blocked|turned down) "
_RULER = (
    r"(?:policy|policies|system|tools?|fare|rules?|terms|service|bank|api|law|regulations?|settings|permissions"
    r"|contract|conditions) "
)
_GIVE = (
    r"(?:tell|give|provide|specify|clarify|choose|select|pick|indicate|enter|state|supply|double-check|double check"
    r"|recheck|resend|reply|respond|answer|advise|say|name|decide|approve|authori[sz]e|type|describe|explain|elaborate"
    r"|correct|upload|attach|fill (?:me )?in|send (?:me|us|it and|it again|over|the|your|along)"
    r"|(?:confirm|verify|share)(?! with)"
    r"|check (?:it|again|whether|if|that|and|the (?:spelling|number|id|name|address|code|date|reference|details))) "
)
# What a task may lack: the details that a user gives.
_ASKED_FOR_WORDS = (
    "city town date day time length duration minutes number name id hospital department address seats people guests"
    " patient customer card amount reason thing things detail details information clarification confirmation input"
    " piece"
    " party size period month year place kind destination recipient reference"
    " store product quantity units wallet buyer branch payee team role colleague mailbox region engineer replicas"
).split()
_ASKED_FOR = _either("|".join(_ASKED_FOR_WORDS))
# What a report may say there is none of: it is the answer itself.
_REPORTED = _either(
    r"reviews?|prescriptions?|stars?|ratings?|incidents?|mails?|emails?|messages?|meetings?|events?|allerg(?:y|ies)"
    r"|conflicts?|fees?|charges?|costs?|need|problems?|doubt|changes?|errors?|issues?|rain|snow|wind|penalt(?:y|ies)"
    r"|differences?|limits?|discounts?|tax|deposit|hurry|rush|breakfast|longer|surcharge|other|one|wonder|sign|signs"
    r"|question|cap|dress|restrictions?|requirements?|side|symptoms?|alerts?|outages?|tasks?|entries|notes?|more than"
    r"|risk|extra|sales?|shipments?|returns?|disputes?|files?(?<!on file)|pages|downtime"
)
_UNREPORTED = rf"(?!{_gap(3)}{_REPORTED})"
_NO = r"(?:no|not any|not an?|not a single|not one|zero) "
_MAY_LEAD = r"(?:(?:and|so|sorry|ok|okay|sure|,) ){0,2}"

# --- Courtesies ----------------------------------------------------------------------------------------------------

_COURTEOUS = _words(
    "anything something else further any hesitate free hope help helps helped answer answers more let assistance shall"
    " thanks thank regards cheers enjoy have welcome great perfect"
)
_COURTESY = _any(
    r" (?:anything|something|what|how|who|where) (?:else|more|further) ",
    r" any (?:other|further|additional|questions|changes|concerns|more [^ |]+) ",
    r" (?:further|more|additional) (?:assistance|help|questions|support|requests) ",
    r" help you (?:any )?further ",
    r" (?:anything|something) (?:that )?(?:you would like|you want|you need|i can) ",
    r" (?:like|want) (?:any |some )?more (?:details|information|info) ",
    r" feel free ",
    r" shall we (?:call|leave|wrap) ",
    r" do not hesitate ",
    r" (?:hope|does|did|if) (?:this|that|it) (?:helps?|helped|answers?|answered) ",
    r" let (?:me|us) know (?:if|should|in case|when|whenever) (?:you|there|anything|something) ",
)
_INVITING = re.compile(r" (?:\?|if|let|feel|happy|glad|hesitate|hope|should) ")
_THANKS = re.compile(
    _START + r"(?:many |kind |best )?(?:thanks|thank you|regards|cheers|enjoy|have a|you are welcome|great|perfect) "
)
# What makes a sentence with a courtesy in it more than that.
_MORE_BEFORE = re.compile(r" (?:which|what|when|where|who|and|or) ")
_MORE_AFTER = re.compile(r" (?:or (?:should|shall|can|may) i|proceed|go ahead|continue|before i) ")

# --- Success -------------------------------------------------------------------------------------------------------

_BY_ME = _any(
    rf" (?:i|we) (?:{_gap(8)}and (?:then |also )?"
    rf"|(?:(?:have|{_ANY_LY}|already|also|both|then|now|instead|just) ){{0,3}})"
    rf"{_DONE_BY_ME}(?!sure |nothing |no |none |neither |nobody |that |there |with |on |off |it is |it can)"
    # "I made three attempts" and "I created a ticket" are work, but not the task's.
    rf"(?!(?:an?|another|several|two|three|many|some|repeated|multiple|\d{{1,3}}) {_gap(2)}(?:attempts?|tickets?|note"
    r"|escalation|calls?|tries|search|requests?) )",
    rf"{_START}(?:{_TASK}|{_PLACE}){_DONE}(?!by )",  # "Booking confirmed: ..."
    # "Held: ...", "Booked and paid"
    rf"{_START}(?:(?:ok|okay|all|,) ){{0,2}}{_LY}{_DONE_BY_ME}(?=(?:[:,|]|for|at|on|to|as|under|and|with|now|it"
    rf"|[a-z]?\d) ?)",
    r" (?:i|we) (?:(?:then|instead) )?took (?=\d|the (?!liberty|time ))",
    rf"{_START}(?:the )?(?:{_TASK})?{_NUMBER}(?:is|has been) (?:now )?(?:prepared|staged|scheduled|entered) "
    rf"(?:for|at|in|as|on|,|\||{_ANY_LY} )",
    # "is prepared as TF1234567", "the page is out: PG0012345"
    rf" (?:is|are|was|were|been|and|,) (?:{_DONE}|{_either(_STEPS + '|paid|frozen|open|out|live')})"
    rf"(?:{_gap(5)}(?:as|under|number|id|reference|:|,|is|and) )?{_NUMBER}"
    r"(?!(?:is|was|can|cannot|could|has|does|did|lacks) )",
)
_SUCCESS = _any(
    rf" (?:now|successfully) {_DONE}",
    r" went through (?!your |the |all |every |each |my )",
    r" (?:succeeded|worked|success|successful|successfully) ",
    r" all (?:set|done) ",
    _START + r"(?:(?:ok|okay|,) ){0,2}done ",
    rf" (?:i|we) (?:was|were) {_LY}able to ",
    r" (?:i|we) (?:have )?managed to ",
    r" (?:is|are) (?:yours|in place) ",
    r" so you (?:can|may) ",
    rf" so {_gap(3)}(?:is|are) (?:now )?(?:at|on|for) \d",
    rf" (?:your|the) new {_TASK}{_gap(3)}(?:is|are) (?!not )",
    r" (?:is|are) on (?:its|their|the) way ",
    rf" receipts? {_gap(4)}{_ID}(?!(?:is|was|can|cannot|could|has|does|did) )",
    rf" (?:release|link|message)(?: id| number| no)? (?:: |is )?{_NUMBER}(?!(?:is|was|can|cannot|could|has|does|did) )",
    rf"{_START}{_NUMBER}is (?:now )?(?:at|for) \d",
    rf" {_PLACE}(?:is|are) on hold ",
    r" (?:healthy|back|running|working|up|online|available) again ",
)
_SUCCEEDING = _words(
    "now through succeeded worked success successful successfully set done able managed yours so place again way"
    " receipt receipts hold new release link message at for"
)
_STATED = re.compile(rf" (?:is|are|was|were|has been|have been|got) (?:also |both )?{_DONE}(?!by )")
# Before a report, in its own part of the sentence: it is denied, or on a condition, or a reason.
_DENIED = re.compile(
    r" (?:no|not|nothing|none|never|neither|without|if|once|unless|until|because|since|as|when|before|cannot|whether"
    r"|would|should) "
)
_PAST = re.compile(
    r" (?:ago|yesterday|already|last|earlier|previously|in (?:january|february|march|april|may|june|july|august"
    r"|september|october|november|december)) "
)
_BUT = re.compile(r" (?:but|however|still|instead) ")
_LED_ON = _any(_BUT.pattern, rf" so {_gap(4)}(?:is|are) (?:now )?{_DONE}")
_HENCE = re.compile(
    rf" (?:so|therefore|thus|hence|means|reason|consequently|result) {_gap(4)}(?:cannot|not|no|unable|nothing) "
)

# --- Inabilities ---------------------------------------------------------------------------------------------------

# Undone: the agent took back what it had done.
_UNDOING = _words(
    "again back undid undone reverted reversed before hold released go way cancelled canceled recalled withdrawn"
    " withdrew removed"
)
_WITHDRAWN = r"(?:cancell?ed|recalled|withdrawn|withdrew|rolled back|removed|undone|reversed|reverted) "
_EARLIER = r"(?:staged|prepared|placed|tentative|unpaid|unsigned|pending|new) "
_UNDONE = _any(
    r" (?:cancell?ed|removed|deleted|undone|reversed|dropped|recalled|withdrew|withdrawn|took)"
    r" (?:(?!and |but |, )[^ |]++ ){0,7}again ",
    r" (?:i|we) (?:have )?(?:undid|undone) ",
    # "I couldn't sign it, so I recalled it", "I removed the staged deployment since it could not be launched"
    rf" {_WITHDRAWN}(?:the|that|this|my|its) {_EARLIER}{_gap(4)}(?:since|because|as) {_gap(4)}(?:could not|cannot) ",
    rf" (?:cannot|could not|unable to|failed|fails|failing|refused|rejected|denied|broken) {_gap(10)}"
    rf"(?:so|therefore|hence|and|,) (?:i|we) {_gap(1)}{_WITHDRAWN}(?!{_gap(8)}and {_gap(1)}{_DONE_BY_ME})",
    rf" (?:is|are|was|were|stays?|remains?|left) {_gap(3)}(?:as|where|how|what) (?:it|they|things) (?:is|was|were)"
    rf" before ",
    r" the way (?:it|they|things) (?:was|were) ",
    rf" back (?:to|in) (?:its|the|their|how) {_gap(2)}(?:original|was|were|previous) ",
)
# These too, if something went wrong: "I gave the seats back because the payment failed".
_TAKEN_BACK = _any(
    rf" (?:cancell?ed|removed|dropped) (?:the|that|this|my) {_gap(1)}hold ",
    rf" (?:gave|given|rolled|taken|took|put|set) {_gap(4)}back ",
    rf" let {_gap(3)}go ",
    rf" released (?:it|them|the {_gap(1)}(?:hold|{_PLACE}))",
    rf" {_WITHDRAWN}{_gap(6)}so (?:no|nothing|there is no) ",
    r" (?:reverted|reversed) ",
    r" (?:was|were|is|has been|been) (?:undone|withdrawn) ",
    # "recalled the transfer I had prepared", "the staged deployment was rolled back"
    rf" {_WITHDRAWN}{_gap(3)}(?:(?:i|we) (?:had|have) {_LY}{_DONE_BY_ME}|(?:was|were|had been) {_LY}{_DONE_BY_ME})",
    rf" {_EARLIER}{_gap(2)}(?:was|were|is|has been) {_WITHDRAWN}",
    rf" {_WITHDRAWN}(?:the|that|this|my|its) {_EARLIER}",
)
_WRONG = re.compile(
    r" (?:fail|fails|failed|failing|failure|declined|rejected|refused|refuses|denied|an error|errors|lapsed|barred|down"
    r"|unavailable|without success|fell through|out of (?:service|order|action)|gone|missing|suspended|frozen|blocked"
    r"|(?:no longer|not) (?:works?|working|available|allowed|permitted)|not exist) "
)
_INSTEAD = re.compile(r" (?:instead|receipt) ")

# Denials: what cannot be done or was not done, in words such as "not" and "no".
_DENYING = _words("cannot not no unable nothing none nobody never")
_DENIAL = _any(
    r" (?:i|we) (?:"
    rf"{_ADVERB}(?:{_UNABLE}|will not) (?!{_KNOWING}|{_FIGURATIVE})"
    rf"|(?:am|are|was|were) {_LY}not {_LY}(?:allowed|permitted|authori[sz]ed|in a position|going to|comfortable|willing"
    r"|prepared) "
    rf"|(?:have|had|see|know of|know) no {_gap(2)}{_MEANS}"
    rf"|(?:have )?{_DONE_BY_ME}(?:nothing|no|none|neither|nobody) "
    rf"|(?:have|did|had) {_ADVERB}not {_LY}(?:{_DONE_BY_ME}|{_UNMET}|{_SETTLED}|{_DO}))",
    rf" (?:cannot|could not|can no longer|could no longer|may not|must not) {_LY}be (?!(?:undone|reversed|revoked"
    r"|guaranteed|found|located|identified|verified|determined|seen|combined|used|better|ruled|matched"
    r"|happier|easier|more) )",
    rf" (?:so|therefore|thus|hence|but|consequently) {_LY}(?:cannot|could not|unable|not able) (?!{_KNOWING})",
    rf" (?:is|are|was|were|be|seems|appears) {_LY}(?:not|no longer) {_LY}(?:possible|feasible|doable|achievable"
    r"|supported|something i can) ",
    rf" (?:is|was) {_LY}(?:not|no longer) {_LY}(?:permitted|allowed|eligible|entitled|authori[sz]ed|cleared) ",
    rf" (?:are|were) {_LY}(?:not|no longer) {_LY}(?:permitted|allowed|authori[sz]ed|cleared) to {_DO}",
    rf" (?:was|were|has|have) {_ADVERB}not {_LY}(?:been )?{_LY}{_UNMET}(?!yet |before )",
    rf" (?:returns?|disputes?) {_NOT_BEEN}opened ",
    rf"{_START}(?:the|your|this) {_gap(1)}(?:order|purchase) {_NOT_BEEN}paid \|",
    # How a thing stands, unless it follows from something, or something is given as the reason.
    rf" (?:so|therefore|hence|thus) {_gap(4)}{_NOT_BEEN}{_SETTLED}(?!yet |before )",
    rf" {_NOT_BEEN}{_SETTLED}(?:either )?(?:, )?(?:because|since|as|due|:) ",
    rf" (?:is|are|was|were|has been) (?:suspended|blocked|frozen|locked|inactive) (?:and|so|:) {_gap(2)}(?:cannot|may"
    rf" not) ",
    rf" (?:no one|nobody) (?:was|were|has been|could be|got) (?:{_UNMET}|{_SETTLED})",
    rf" there (?:is|are|was|were) (?:no|none|not an?|not any) (?!need |reason |rush |hurry |charge )"
    rf"{_gap(4)}to (?!{_KNOWING}){_DO}",
    r" not (?:(?:anything|much) (?:(?:more|else|further|that) )?(?:i|we) can|qualify|an option|(?:go|come|gone) through"
    r"|(?:within|in) (?:my|our) (?:power|scope|capabilities|remit|control)) ",
    r" no (?:can do "
    rf"|{_gap(2)}(?:tools?|functions?|way|means|endpoint|method|option to|option for) "
    rf"|{_gap(1)}(?:changes? |money |funds |amount |card |engineer |colleague |contact |{_PLACE}|{_TASK})"
    rf"(?:(?:was|were|has been|have been|could be|can be) (?:{_UNMET}|{_SETTLED})"
    rf"|(?:(?:is|are) )?(?!scheduled ){_DONE})"
    rf"|{_gap(1)}{_TASK}(?:is|was) (?:possible|allowed|permitted|available) )",
    rf" (?:not|no|none) {_gap(6)}(?:allows?|lets?|enables?|permits?) (?:me|us) ",
    rf" none of (?:the |my |these )?{_gap(2)}(?:tools|functions) ",
    rf" (?:so|therefore|hence|:|\|) no {_TASK}[|,]",
    rf" nothing (?:(?:was|were|has been|could be|can be|got) (?:{_UNMET}|{_SETTLED})"
    rf"|(?:(?:is|remains) )?(?!scheduled |recalled |disputed )(?:{_DONE}|{_either(_STEPS)})"
    r"(?!now |any (?:more|longer) )"
    r"|(?:(?:more|else|further|that) )?(?:i|we) can )",
    rf" nothing (?:left )?(?:for (?:me|us) )?to (?:{_DO}|report |answer )",
    rf" do not (?:have|see) {_gap(3)}{_MEANS}",
    rf" (?:will|would) not be (?:possible |feasible |right |appropriate |proper |ethical |acceptable |{_DONE})",
    r" (?:that|this) (?:will|would) not work ",
    r" not available to (?:me|us) ",
    rf" (?:i|we) can only {_gap(8)}not {_DO}",
    rf" (?:may not|must not|you cannot) {_DO}",
    rf" (?:cannot|could not) (?:{_DO}|sell ){_gap(6)}(?:while|because|since|as long as) ",
    rf" no {_gap(1)}{_TASK}(?:went|goes|has gone|will go) (?:out|through|ahead) ",
    r" called (?:nothing|none|no one|nobody) off ",
    rf" (?:do|does|did|will) not {_LY}(?:allow|permit|support|let) {_gap(2)}{_CHANGES}",
    rf" {_RULER}{_gap(3)}(?:do|does|did|will|would) not {_LY}(?:allow|permit|support|let|accept) ",
    rf" (?:do|does|did|will|would) not {_LY}(?:allow|accept|permit|take) (?:the|your|this|that|another|an?|any) "
    rf"{_gap(1)}{_TASK}",
    rf" limits? (?:do|does|did|will|would) not {_LY}(?:allow|permit|cover|leave room) ",
    rf" only {_gap(8)}(?:can|may) be {_UNMET}{_gap(6)}(?:is|are|was|were|has|have) not [|,]",
    rf" {_TASK}(?:did|does|has|will|can|could) not (?:happened|happen|take place|taken place|succeed|go ahead"
    r"|go out|gone out|work out) ",
    r" not (?:been )?(?:given|granted|allowed) access ",
)
# Bars: what is refused, forbidden or given up, in words of its own.
_BARRING = _words(
    "impossible infeasible unfeasible prohibited forbidden ineligible refuse refuses refused refusing decline declined"
    " declining reject rejects rejecting forbids forbid prohibits prohibit prevents prevent disallow disallows exclude"
    " excludes rules rule failing violate breach break against outside beyond stopped stopping stops ending quitting"
    " aborting exhausted ran run gave given giving leave leaving left keep kept keeps stay stays remain remains"
    " unchanged bars blocks late limits off-limits question dead no-go lack rejected denied blocked prevented rather"
    " decided prefer chose choose barred lapsed cover coverage covered insured insurance standing answer failed"
    " closed came"
    " doing luck dice go exceed exceeded over above limit lacks missing gone unavailable service order longer not works"
    " turned down failing"
)
_BAR = _any(
    r" (?:i|we) (?:(?:have |am |are )?(?:stopped|stopping|given up|gave up|giving up|declined|declining|refused"
    r"|refusing|exhausted|ran out of|run out of) "
    rf"|{_gap(3)}(?:decline|refuse|rather not|decided not|prefer not|chose not|choose not) "
    rf"|{_ADVERB}lack {_gap(2)}{_MEANS})",
    rf" (?:is|are|was|be|seems|appears) {_LY}(?:infeasible|impossible|unfeasible|prohibited|forbidden|ineligible) ",
    rf" (?:rejects?|refuses?|forbids?|prohibits?|disallows?|excludes?) {_gap(2)}{_CHANGES}",
    rf" {_RULER}{_gap(3)}(?:forbids?|prohibits?|refuses?|rejects?|prevents?|disallows?|rules? out|rejected|refused"
    r"|denied|blocked|prevented|keeps? (?:rejecting|refusing|failing)) ",
    r" (?:prevents?|stops?|keeps?|bars?|blocks?) (?:me|us) from ",
    r" (?:would|could|will) (?:violate|breach|break|be against|go against) ",
    r" against (?:the|our|my|this|hospital|company|shop|bank) (?:\w{1,20} )?(?:policy|policies|rules?|terms|law) ",
    r" (?:outside|beyond) (?:of )?(?:what|my|our|the scope|the range) ",
    r" (?:too late (?:to|for)|off limits|off-limits|out of the question|a dead end|no-go) ",
    r" (?:ending|stopping|quitting|aborting) (?:here|now|this|at this point) ",
    rf" (?:leave|leaving|left|keep|kept) {_gap(4)}(?:untouched|unchanged|alone|as is"
    r"|as (?:it|they|things) (?:is|are|was|were)) ",
    r" (?:stays?|remains?) (?:untouched|as is|(?:as|where) (?:it|they) (?:is|are|was|were)) ",
    rf" {_TASK}{_gap(2)}(?:remains?|is|was) unchanged ",
    # "Sharing it was refused", "so the page was rejected", "transfers from it are rejected"
    rf"(?: [a-z]{{2,16}}ing | (?:so|therefore|hence|and|,) (?:the|your|this|that) (?:{_TASK}|signature )"
    rf"| (?:transfers|orders|payments|deployments|meetings|changes|bookings) |{_START}(?:the )?signature ){_gap(4)}"
    rf"(?:is|are|was|were|got|has been|have been) {_LY}{_REJECTED}(?!on \d|at \d|with |yesterday |in )",
    r" would (?:exceed|go over|overrun|be exceeded) ",
    rf" would (?:take|put|push|bring) {_gap(3)}(?:over|above|beyond) ",
    rf" limit {_gap(3)}is (?:too|not) (?:low|small|high enough|enough) ",
    rf" lacks {_gap(2)}{_MEANS}",
    rf" {_TASK}(?:was|were|is|has been) stopped by ",
    rf"{_START}(?:the )?[a-z]{{3,16}}ing {_gap(4)}failed (?!once |twice |at first |but )",
    # A tool that is not there, unless the agent did without it.
    rf" {_TOOL}{_gap(6)}(?:(?:is|are|was|were|seems|appears) {_LY}(?:missing|gone|unavailable|down|turned off"
    r"|not (?:available|offered|provided|there|present|part of)|no longer|out of (?:service|order|action))"
    r"|(?:do|does) not (?:exist|work)|no longer (?:works?|exists?)|keeps? failing) "
    rf"(?!{_gap(6)}so (?:i|we) (?!am |could |cannot |did |do |have |had ))",
    # Causes that leave nothing to be done.
    rf" (?:(?:is|are|was|been|being) {_LY}|\| )barred ",
    rf" (?:cover|coverage|insurance|policy) {_gap(4)}(?:lapsed|expired|ran out|run out|inactive|invalid"
    r"|(?:not|no longer) (?:valid|active)) ",
    r" (?:no|not have|not have any|without|lapsed) (?:(?:valid|active|current) )?(?:cover|coverage|insurance) ",
    rf" (?:patient|customer|[a-z]\d{{1,12}}) (?:is|was) (?:not|no longer) {_LY}(?:covered|insured|in good standing) ",
    r" (?:is|are|was) closed (?:that day|on (?:that|the (?:chosen|requested)|\d{4}-))",
    r" have no answer ",
    r" came (?:up|back|away) (?:empty|empty-handed|with nothing) ",
    rf"{_OPENING}(?:nothing doing|no luck|no dice|no go) ",
    r" (?:lookup|search|call|tool|service|system) (?:has |have )?failed (?:repeatedly|again|every|each|permanently) ",
)
# Headlines: "Not possible", "REFUSED: ...", "Order not placed", at the start of a sentence.
_HEADING = _words(
    "cannot not unable no refused denied declined rejected blocked turned failed failure infeasible impossible"
    " unsuccessful aborted stopped"
)
_HEADLINE = _any(
    rf"{_OPENING}(?:(?:{_UNABLE}|unable|not able) (?!{_KNOWING})"
    rf"|(?:{_TASK})?not (?:possible|feasible|allowed|permitted|supported) "
    rf"|(?:{_TASK})?(?:not (?:done |{_UNMET}|{_SETTLED})"
    rf"|(?:{_REJECTED}|failed |failure |infeasible |unsuccessful |aborted |stopped )"
    r"(?:\||,|: (?!\d)|because|by|due|as|since|permanently|for good))"
    r"|(?:\w{1,20} )?impossible (?:\||,|:|because|as|since|due))",
    rf"{_START}(?:i am )?(?:very )?sorry (?:, )?(?:but )?no \|",
    rf"{_START}(?:the|your|this|my) (?:(?!first|last|second|third|previous|old)\w{{1,20}} )?{_TASK}"
    rf"(?:(?:for|of|from|to|about) {_gap(3)})?"
    rf"(?:(?:has )?failed |(?:has been|was|is|got) {_REJECTED})(?!on \d|in |at \d|with)",
)
# "I cannot do this: ...", whatever the reason.
_FLAT = re.compile(
    rf"{_OPENING}(?:i|we) (?:cannot|could not|am unable to|was unable to) (?:do|help with) (?:this|that|it) :"
)
_FILLED = _words(
    "no not any sold fully up out solid full none neither all every everything each nothing zero taken gone"
)
_FULL = _any(
    rf" (?:no|not any|not have any) (?:available|free|open|remaining|vacant) (?:\w{{1,20}} )?{_PLACE}",
    rf" (?:{_NO}|not have any ){_gap(3)}{_PLACE}(?:"
    rf"{_gap(6)}(?:left|available|free|remaining|open) "
    rf"|{_gap(8)}(?:that|those|these|this|your|requested) (?:dates?|days?|times?|week|month|evening|nights?|period"
    r"|conditions|criteria) "
    r"|(?:fits?|match|meets?|suits?) "
    rf"|{_gap(2)}(?:i|we) (?:could|can) )",
    rf" (?<! you have )(?:{_NO}|not have (?:any|an?) ){_UNREPORTED}{_gap(3)}{_PLACE}"
    rf"(?:{_gap(8)}(?:on|for|before|after|between|until) (?:\d|monday|tuesday|wednesday|thursday|friday|saturday"
    rf"|sunday)"
    rf"|{_gap(5)}(?:has|have|had|with|long enough|big enough|large enough|fits?|takes?|offers?) )",
    rf" there (?:is|are|was|were) {_NO}{_UNREPORTED}{_gap(3)}{_PLACE}(?!limit)",
    rf" (?:none|neither) of {_gap(2)}{_PLACE}{_gap(6)}(?:has|have|had|is|are|was|were|fits?|offers?|can|could|holds?"
    r"|carr(?:y|ies)|takes?|seats?) ",
    rf" neither {_gap(4)}nor {_gap(4)}(?:has|have|had) ",
    rf" nothing {_gap(4)}(?:fits?|fitted|left|free|available|suitable|open|long enough|remains|remained) (?!to |of )",
    rf" {_PLACE}{_gap(6)}(?:carry|carries|takes?|holds?) nothing ",
    rf" no (?!other |earlier |later )(?:{_PLACE}|{_TASK}){_gap(6)}(?:can|could) (?:carry|take|hold|leave|go|fit) ",
    rf" (?:is|are|was|were) {_LY}full (?:on \d|that day|on that)",
    r" (?:(?:that|chosen|requested|wanted) (?:day|date|slot|time|evening)|(?:day|date|slot|time|evening) (?:that )?you"
    rf" (?:have )?\w{{1,12}}) (?:is|was) {_LY}(?:full|taken|gone) ",
    rf" (?:all|every|everything|each) {_gap(6)}(?:(?:is|are|was|were) {_LY}(?:taken|full|gone|occupied)"
    r"|(?:has|have|had) (?:fewer|less|too (?:few|little))) ",
    r" (?:sold out|fully booked|booked up|booked out|booked solid|out of stock|completely full|no availability) ",
    rf" (?:none|neither) (?:of {_gap(4)})?(?:is|are|was|were) (?:free|available|left|open) ",
    rf" (?:all|every) (?:of )?(?:the )?{_gap(2)}{_PLACE}{_gap(4)}(?:is|are|was|were) {_LY}(?:taken|booked|full|gone"
    r"|occupied|shorter|too (?:short|small)) ",
)
_REASON = re.compile(r" (?:because|since|as|given) ")
_COUNTED = re.compile(_START + r"(?:\d{1,6}|one|two|three|four|five|some|several|many|most) (?:of|out of) ")
_LOSING = _words("cannot not no unable nothing none nobody zero")
_SUPPLY = r"(?:shipments?|deliver(?:y|ies)|restock(?:ing|s)?|refills?|consignments?) "
_LOST = _any(
    rf" (?:i|we) (?:{_ADVERB}{_UNABLE} {_KNOWING}"
    r"|do not (?:yet |currently )?(?:have|know) (?:your|the|which|what|who|where|whether|enough|when) )",
    # Something that was sought is not there at all.
    rf" there (?:is|are|was|were|exists?) {_NO}{_UNREPORTED}",
    r" (?<! you )(?<! i )(?<! we )(?:(?:has|have|had) no|(?:does|did) not (?:(?:seem|appear) to )?have (?:an?|any)) "
    rf"{_UNREPORTED}",
    rf" no {_UNREPORTED}{_gap(6)}(?:found|exists?|on file|listed|registered) ",
    rf"{_OPENING}no (?:matching |such |{_UNREPORTED}{_gap(3)}(?:in|at) )",
    rf" (?:not one|not a single) {_UNREPORTED}",
    r" not to be (?:had|found) ",
    rf" (?:found|finds?|returned|returns|gave|yields?|yielded|shows?|showed|got) (?:nothing|no|none|zero|not an?) "
    rf"{_UNREPORTED}",
    rf" none of {_gap(3)}(?:is|are|was|were) (?:on|at|in|for|with|from) ",
    rf" (?:do|does|did) not {_LY}(?:carry|sell|stock|employ|list) (?!\d|enough |that (?:many|much) |as |more |less )"
    rf"{_UNREPORTED}",
    rf" (?:runs?|sells?|carr(?:y|ies)|stocks?|employs?|lists?|keeps?) no {_UNREPORTED}",
    rf" no {_gap(1)}{_SUPPLY}{_gap(8)}(?:planned|due|coming|expected|brings?|has|have|reach(?:es)?) ",
    rf" (?:no|not any|not an?) {_gap(1)}(?:mails?|emails?|messages?|files?) (?:about|on|regarding|concerning|called"
    r"|titled|with (?:the|that) (?:topic|subject)) ",
    r" (?:no one|nobody) (?:(?:is|was|has|will be|seems to be) )?(?:listed as )?(?:on call|on duty|the pager"
    r"|on the rota|on-call) (?:in|for|at|on|there|then|that) ",
    rf" (?:no one|nobody) {_gap(6)}(?:accepts?|takes?|offers?|treats?|is free|is available) ",
    rf"{_OPENING}(?:{_UNABLE}|unable|not able) {_KNOWING}",
    r" (?:could not|cannot) be (?:found|located|identified|verified|determined|matched) ",
    rf" no (?:such |longer exists? |{_gap(3)}(?:called|named|matching|matches|under|by (?:the|that) name) )",
    r" not (?:(?:seem to |appear to )?exist|found|registered|on file|recogni[sz]ed|in (?:the|our|my) (?:system|database"
    r"|records)) ",
)
_Kind = Literal["full", "plain", "lost"]
# The first that fits is the kind of a sentence.
_INABILITIES: tuple[tuple[_Kind, frozenset[str], re.Pattern[str]], ...] = (
    ("full", _FILLED, _FULL),
    ("plain", _DENYING, _DENIAL),
    ("plain", _BARRING, _BAR),
    ("plain", _HEADING, _HEADLINE),
    ("lost", _LOSING, _LOST),
)
_OBSTRUCTED = _words(
    "unavailable not no taken occupied full already expired frozen blocked discontinued exceeds exceed insufficient"
)
_MILD = re.compile(
    rf" (?:(?:is|are|was|were|be|has|have) {_LY}(?:unavailable|not available|no longer available|taken|occupied|full"
    r"|already (?:taken|booked|reserved|occupied|full)|expired|frozen|blocked|discontinued)"
    r"|exceeds?|insufficient|not enough (?:funds|money|balance|seats|stock|credit)) "
)
# A cause that leaves nothing to be done, if the message says nothing else.
_CAUSE = re.compile(
    rf"{_START}(?!{_gap(5)}card )(?:{_gap(5)}(?:account|access|engineer|buyer|user|organi[sz]er|file|files) {_gap(2)}"
    rf"(?:is|are|has been|was) {_LY}(?:blocked|frozen|suspended|inactive|confidential|not active|not in good standing)"
    rf"|{_gap(5)}{_NUMBER.strip()} {_gap(2)}"  # a number alone may be what was to be frozen
    rf"(?:is|are|has been|was) {_LY}(?:blocked|suspended|inactive|confidential|not active|not in good standing)) "
    r"(?:for transfers |at present |at the moment )?\|"
)
_REGRET = re.compile(
    r" (?:(?:sorry|apologi[sz]e|apologies)"
    r"(?! about | to hear | for (?:the|my|any) (?:delay|confusion|wait|mistake|error))"
    r"|unfortunately|afraid|regret|regrettably|sadly|regretfully) "
)
_LIFTING = _words("without until unless before till enough sufficient")
_LIFTED = _any(
    rf" without (?!(?:an?|any) {_TASK}\|)"
    r"(?:your |you |knowing |it |(?:the|a|an|this|that|these|more|further|any|additional|at least|having) "
    rf"(?!{_gap(2)}(?:fees?|penalty|charge|costs?|permission|problem|authori[sz]ation|approval|tool|access|success) ))",
    r" (?:until|unless|before|till) (?:(?:you|i|we) (?:\w{1,20} )?(?:tell|told|given?|provided?|confirm|confirmed|share"
    r"|shared|specify|know|get|receive|hear|let|choose|chosen|send|say|approve|approved|have)"
    r"|your (?:confirmation|reply|answer|approval|go-ahead|consent)) ",
    r" (?:enough|sufficient) (?:information|details|data|context) ",
)
_ENDED = r"(?:cancell?ed|recalled|rolled back) "
_NONE_ENDED = re.compile(rf" (?:no|nothing|none) {_gap(5)}(?:was|were|is|are|has been|have been) {_ENDED}")
_REMARK = re.compile(r" (?:note that|please note|be aware|keep in mind|remember that|mind that) ")
_ASIDE = _any(
    r" (?:at first|initially|first (?:attempt|try|call|time|one|request)|for a moment) ",
    # A value that is reported.
    # What a total leaves out.
    rf" cancell?ed {_gap(5)}not (?:added|included|counted) ",
    # What is the most or the least of all.
    rf" no {_gap(8)}(?:less|more|fewer|[a-z]{{2,12}}er) {_gap(4)}than ",
    r" incidents? (?:has|have|was|were) not (?:yet )?(?:been )?resolved (?!because |since )",
    rf" no (?:earlier|sooner|nearer|closer|cheaper) {_gap(8)}, so (?!{_gap(5)}(?:not|nothing|no|cannot) )",
    rf" {_ENDED}, so (?:the (?:total|sum)|all|every|it|they|that) ",
    # What was to wait.
    r" , (?:just )?as (?:you )?(?:requested|asked|wanted|wished|instructed|agreed|told) ",
    rf" (?:is|was|been) (?:also )?(?:placed|prepared|staged|scheduled|entered|made|reserved|held) "
    rf"(?:{_gap(8)})(?:and|but|,) {_gap(3)}not {_gap(1)}(?:paid|signed|launched|sent|invited|charged) \|",
    rf" (?:status|state|title|subject|message|error|reply) {_gap(6)}(?:is|was|reads|says) : ",
)
_YES_NO = re.compile(_START + r"(?:yes|no) , ")
_SELF = re.compile(r" (?:i|we|that|this) ")
_I = re.compile(r" (?:i|we) ")
_NEXT = re.compile(rf" (?:first|next|earliest|nearest|soonest) {_gap(6)}(?:is|are) ")
_RESULT = _any(
    rf" (?:costs?|charges|price|fee|fees|total|sum|first|earliest|next) {_gap(6)}\d",
    r" is (?:the )?"
    rf"{_either('cheap(?:er|est)|clos(?:er|est)|near(?:er|est)|quick(?:er|est)|fast(?:er|est)|low(?:er|est)')}",
)

# --- Requests ------------------------------------------------------------------------------------------------------

_GIVING = _words(
    "please kindly tell give reply confirm choose pick select specify provide say send share could can would will may"
    " might what need require missing lack needed required ask"
)
_DETAIL = _any(
    rf" (?:please|kindly) (?:(?:(?:{_ANY_LY}|also|first|just|now|either|do) )?{_GIVE}"
    rf"|{_gap(10)}(?:and|or) (?:confirm|tell|let|send me|give|describe|provide|share|specify|enter) )",
    rf" (?:i|we) {_gap(3)}ask (?:for|you) ",
    _START + r"(?:(?:just|simply|so|then|now|first|go ahead|and|,) ){0,3}(?:tell (?:me|us)|give (?:me|us)|reply|confirm"
    r"|choose|pick"
    r"|select|specify|provide|say|send (?:me|us)|share) ",
    r" (?:could|can|would|will|may|might) (?:you|i) "
    r"(?:(?:please|kindly|also|perhaps|just|maybe|mind|possibly|then) ){0,2}"
    rf"(?:{_GIVE}|(?:telling|giving|sharing|providing|confirming|sending|have|get|know|ask|let) )",
    r" what (?:is|are|was) (?:your|the|his|her|their|its) ",
    rf" (?:i|we) (?:(?:{_ANY_LY}|still|just|also|will|would|do|may|only|first|then|now) ){{0,3}}"
    rf"(?:need|require|am missing|are missing|lack(?! {_gap(2)}{_MEANS})) "
    r"(?:to (?:know|have|ask|confirm|verify|be told)|your?|the|an?|some|more|one|two|three|at least|both|it|that|this"
    r"|further|additional|these|those|information|details|following|:) ",
)
_PROMPTING = _words(
    "let awaiting waiting await know sure clear if once after soon until before your could can would will may shall"
    " should what which when where who how understand catch get follow"
)
_PROMPT = _any(
    r" let (?:me|us) know (?:(?!if |whether |in case |should |when |whenever |about any |how it |\|)"
    rf"|(?:if|whether) (?:i (?:should|may|can)|this|that|it|{_gap(6)}(?:proceed|go ahead|continue)) )",
    r" (?:awaiting|waiting for|await) your ",
    r" (?:once|as soon as|after|until) (?:i|we) (?:have|know|get|receive|hear) "
    r"(?:the|your|that|this|those|these|it|which|what|all|from you) ",
    rf" (?:things?|questions?|details?|points?) {_gap(2)}before (?:i|we) ",
    r" help (?:me )?to know ",
    r" (?:have to|must|should|want to|like to) know ",
    r" not (?:quite |fully )?(?:understand|catch|get|follow) (?:your|what|that|the|you) ",
    r" not (?:quite |entirely )?(?:sure|clear) (?:to me )?(?:which|what|who|whether you|if you) ",
    r" (?:if|once|when|after|as soon as) you (?:(?:can|could|have) )?(?:tell|told|name|confirm|confirmed|give|given"
    r"|provide"
    r"|provided|share|shared|choose|chosen|pick|specify|send (?:me|us)|let (?:me|us) know|approve) ",
    rf"{_START}{_MAY_LEAD}(?:(?:could|can|would|will) you|(?:may|can|could|shall|should) i) ",
    rf"{_START}{_MAY_LEAD}(?:what|which|when|where|who|how) {_gap(4)}(?:do|would|should|shall|can|could|will|did|works?"
    r"|suits?) (?:best |better )?(?:for )?(?:you|i|we|me) ",
)
# A detail is said to be lacking.
_LACKING = _words(
    "missing open knew had left omitted forgot forgotten skipped no not given specified mentioned provided named"
    " stated indicated supplied told said say name need needed required"
    " unknown unclear waiting have mention specify tell give please only"
)
_LACKED = frozenset(_ASKED_FOR_WORDS) | _words("you message request mail note waiting")
_SAID = (
    r"(?:given?|specif(?:y|ied)|mention(?:ed)?|provided?|named?|stated?|indicated?|supplied|supply|told|tell"
    r"|said|say|included?) "
)
_LACK = _any(
    rf" {_ASKED_FOR}{_gap(4)}(?:(?:(?:is|are) {_LY}(?:still )?)?(?:missing|needed|required)"
    r"|(?:is|are) (?:still )?(?:unknown|unclear)) (?!from )",
    r" if (?:i|we) (?:only )?(?:knew|had) ",
    rf" (?:missing|still open|left open) (?:information |details? )?(?:is |are |: )(?:the |an? |your"
    rf" )?{_gap(3)}{_ASKED_FOR}",
    rf" no {_gap(2)}{_ASKED_FOR}{_gap(3)}(?:was|were|is|are|has been|have been|yet) {_SAID}",
    rf" {_ASKED_FOR}{_gap(3)}(?:is|are|was|were|has|have) not (?:yet )?(?:been )?(?:yet )?{_SAID}",
    rf" you (?:have|did|do) not (?:\w{{1,10}} )?{_SAID}",
    rf" (?:your|the) (?:message|request|mail|note) (?:(?:do|does|did) not (?:\w{{1,10}} )?{_SAID}|only (?:says"
    rf"|mentions) )",
    r" you (?:have )?(?:left out|omitted|forgot|forgotten|skipped) ",
    rf" (?:no|not an?|not any) {_gap(2)}{_ASKED_FOR}(?:given )?(?:in|from) (?:your|the) (?:message|request|mail|note) ",
    r" (?:i|we|(?:your|the) (?:message|request)) (?:have|has) no (?:date|day|city|name|number|id|address|length"
    r"|hospital) ",
    rf" need is (?:the |an? |your )?{_gap(3)}{_ASKED_FOR}",
    rf"{_START}need (?:the |an? |your )?{_gap(2)}{_ASKED_FOR}",
    r" (?:(?:i am|we are) (?:\w{1,10} )?|\| (?:still )?)waiting (?:for|on|to (?:hear|know|learn)) (?!the (?:bank"
    r"|system|service|tool) )",
    rf" do not (?:yet |currently )?(?:have|know) (?:your|the|an?) {_gap(3)}{_ASKED_FOR}(?:yet )?[|,:]",
    rf"{_START}(?:(?:and|just) )?(?:the|your|an?) {_gap(4)}{_ASKED_FOR}{_gap(3)}, please [|,]",
    rf"{_START}name (?:the|an?|your|one|it) ",
)
_ELSEWHERE = re.compile(
    r" (?:by (?:clicking|calling|mail|phone)|in the (?:app|portal|email|mail)|on arrival|upon arrival|when you arrive"
    r"|at the (?:desk|door|entrance|counter|reception|gate)) "
)
_OFFER = _any(
    r" would you (?:like|prefer|be interested|care|rather|want) ",
    r" want (?:me|to) ",
    r" (?:shall|should|can|may|could) i ",
    r" (?:how|what) about ",
    r" interested in ",
    rf" would {_gap(5)}(?:work|be ok|be okay|suit|do|help) ",
)
_MORE = re.compile(r" (?:would you like|do you want me|want me|shall i also|should i also) ")
_GO_AHEAD = re.compile(r" (?:proceed|go ahead|continue) ")
_ACT = re.compile(rf" (?:to|i) {_LY}(?!add |send |forward |share ){_DO}(?:it|this|that|them|one|the|your|for|now) ")
_OTHER = re.compile(r" (?:another|other|different|alternatives?|alternatively|instead|else|new) ")
_TO_USER = re.compile(r" (?:you|your|yours|i|me|we|us|my) ")
# A question about a detail, whatever else the message says.
_WHICH = re.compile(
    r" (?:which|who|whom|when|where|how (?:many|much|long|large|big)|what(?! about | else | next | now "
    r"| (?:would|should|do|can|could) (?:you|i|we) (?:like|want|prefer|do)(?: me)?(?: to)? (?:do |\?)?)) "
)
# What follows a question that was meant: no answer to it.
_PRESSING = re.compile(
    r" (?:(?:i|we) (?:will|can|could|would|shall|need|cannot|then|am|do|did)|you|your|please|needs?|needed|must"
    r"|requires?|required|precise|vague|enough|exact|specific|format|otherwise) "
)
_RECALLED = re.compile(
    _START + r"(?:you (?:asked|wanted to know|wondered)|your question|did you know|guess what|who (?:knows|does not)) "
)
_YES_OR_NO = re.compile(_START + r"(?:yes|no|yep|nope) ")


# --- Offers --------------------------------------------------------------------------------------------------------

_PROPOSED = _any(
    r" (?:shall|should|can|may|could) (?:i|we) (?!(?:please )?(?:have|get(?! you | it | them )|ask|know|take your"
    r"|see your) )",
    r" (?:would|do|did) you (?:still |really |also )?(?:like|want|wish|care|prefer) (?:me |us )?(?:to|an?|the|that"
    r"|it|this|some|more) ",
    r" want (?:me|us|to|an?|the|it|that|this|some) ",
    r" (?:proceed|go ahead|go-ahead|continue|carry on|sure|ready to|approve|approval|consent) ",
    r" (?:is|are|does|would|if) (?:it|this|that|everything|all|you) (?:all )?(?:be )?(?:look )?(?:ok|okay|right"
    r"|alright|fine"
    r"|correct|good|happy) ",
    r" (?:ok|okay|correct|right|alright|agreed|deal) \?",
    r" (?:do you|please|to|your) (?:confirm|confirmation|approve|agree|authori[sz]e) "
    r"(?!(?:the|your|a|an|which|what|how|when|where|who|me|us) )",
    r" (?:please|kindly|to) confirm (?:the|your) (?:cancell?ation|booking|reservation|order|transfer|purchase"
    r"|payment) ",
)
_CHOICE = re.compile(r" or (?!no |not )")


# --- The rule ------------------------------------------------------------------------------------------------------


class _Sentence(NamedTuple):
    text: str  # " | which date ? |"
    words: list[str]
    asked: bool  # It ends in a question mark.


def classify(text: str) -> Speech:
    """What the message is, by the rule in this module's docstring."""
    sentences = _sentences(text)
    asks = [sentence.text for n, sentence in enumerate(sentences) if _asks(sentences, n)]
    verdict = _on_inability(sentences, asks)
    if verdict:
        return verdict
    return "question" if asks and not _only_offers(sentences, asks) else "answer"


def offers(text: str) -> bool:
    """Whether all that the message asks is whether to go ahead or to do something: "Shall I book it?"."""
    sentences = _sentences(text)
    asks = [sentence.text for n, sentence in enumerate(sentences) if _asks(sentences, n)]
    return bool(asks) and all(map(_is_offer, asks))


def _is_offer(ask: str) -> bool:
    return not (_WHICH.search(ask) or _CHOICE.search(ask) or _LACK.search(ask)) and _PROPOSED.search(ask) is not None


def _sentences(text: str) -> list[_Sentence]:
    """The message, cut into sentences, without its courtesies."""
    sentences = []
    for part in _read(text).split("|"):
        words = part.split()
        if words:
            sentences.append(_Sentence(f" |{part}|", words, words[-1] == "?"))
    return [sentence for sentence in sentences if not _is_courtesy(sentence)]


def _is_courtesy(sentence: _Sentence) -> bool:
    text = sentence.text
    if _COURTEOUS.isdisjoint(sentence.words):
        return False
    if not sentence.asked and _THANKS.match(text):
        return True
    found = _COURTESY.search(text)
    if not found or not _INVITING.search(text):
        return False
    return not (_MORE_BEFORE.search(text, 0, found.start() + 1) or _MORE_AFTER.search(text))


def _on_inability(sentences: list[_Sentence], asks: list[str]) -> Speech | None:
    """Steps 6a to 6g."""
    if _is_flat(sentences):
        return "refusal"
    if _undid(sentences):
        return "question" if any(map(_wants_detail, asks)) else "refusal"
    kinds = {n: kind for n, sentence in enumerate(sentences) if (kind := _inability(sentence, n))}
    if any(map(_is_lifted, (sentences[n] for n in kinds))):
        return "question"
    if (not kinds and not _is_mild(sentences, asks)) or _succeeded(sentences, max(kinds, default=0)):
        return None
    if _leaves_none_out(sentences, list(kinds)):
        return None
    found = set(kinds.values())
    if found == {"lost"}:
        return _on_loss(sentences, max(kinds), asks)
    if found == {"full"} and not asks and _informs(sentences):
        return None
    if "full" not in found and any(map(_wants_detail, asks)):
        return "question"
    return "refusal"


def _leaves_none_out(sentences: list[_Sentence], blocked: list[int]) -> bool:
    """Whether "no order was cancelled" only says what a total goes over."""
    if not blocked or not all(_NONE_ENDED.search(sentences[n].text) for n in blocked):
        return False
    return any(_RESULT.search(sentence.text) for sentence in sentences)


def _is_flat(sentences: list[_Sentence]) -> bool:
    """Step 6a: whether the message is "I cannot do this: ...", and asks nothing."""
    if not sentences or not _FLAT.match(sentences[0].text) or any(sentence.asked for sentence in sentences):
        return False
    # A reason may be the text of an error ("... ; choose one of ..."): only what speaks to the user asks.
    return not any(
        ("please" in words or _TO_USER.search(text)) and _DETAIL.search(text) for text, words, _ in sentences[1:]
    )


def _is_lifted(sentence: _Sentence) -> bool:
    """Step 6c: whether the inability in the sentence lasts only until the user says something."""
    text, words, _ = sentence
    return (not _LIFTING.isdisjoint(words) and _LIFTED.search(text) is not None) or _lacks(sentence)


def _lacks(sentence: _Sentence) -> bool:
    """Whether the sentence says that a detail is lacking (step 3)."""
    text, words, _ = sentence
    return not (_LACKING.isdisjoint(words) or _LACKED.isdisjoint(words)) and _LACK.search(text) is not None


def _undid(sentences: list[_Sentence]) -> bool:
    """Step 6b: whether the agent took back what it had done, and did nothing after it."""
    undone = [n for n, sentence in enumerate(sentences) if _takes_back(sentence, sentences)]
    return bool(undone) and not any(map(_tells_success, sentences[undone[-1] + 1 :]))


def _takes_back(sentence: _Sentence, sentences: list[_Sentence]) -> bool:
    """Whether the sentence takes back something; `sentences` are all of the message."""
    text, words, _ = sentence
    if _UNDOING.isdisjoint(words) or _INSTEAD.search(text):
        return False
    if _UNDONE.search(text):
        return True
    return _TAKEN_BACK.search(text) is not None and any(_WRONG.search(other.text) for other in sentences)


def _wants_detail(ask: str) -> bool:
    """Whether the request is for a detail, and not for another one than was given."""
    return not _OTHER.search(ask) and any(pattern.search(ask) for pattern in (_DETAIL, _LACK, _WHICH))


def _inability(sentence: _Sentence, position: int) -> _Kind | None:
    """The kind of inability that the sentence states, if any (step 4)."""
    text, words, _ = sentence
    for kind, signs, pattern in _INABILITIES:
        found = None if signs.isdisjoint(words) else pattern.search(text)
        if found and not (kind != "plain" and _is_elsewhere(text, found)):
            return kind if _counts(text, position) else None
    return None


def _is_elsewhere(text: str, found: re.Match[str]) -> bool:
    """Whether another thing is full or lost: "Alda, since Kairo is sold out", "two of the shows are full"."""
    return bool(_COUNTED.match(text) or _REASON.search(text, _clause(text, found), found.end()))


def _informs(sentences: list[_Sentence]) -> bool:
    """Step 6e: whether a message about free places, said without regret, goes on to the next that is free."""
    texts = [sentence.text for sentence in sentences]
    return any(map(_NEXT.search, texts)) and not any(map(_REGRET.search, texts)) and not any(map(_I.search, texts))


def _counts(text: str, position: int) -> bool:
    """Whether an inability in this sentence would be one of the task."""
    if _ASIDE.search(text):
        return False
    if _YES_NO.match(text):
        return _SELF.search(text) is not None
    # A remark that opens the message is no remark.
    return not (position and _REMARK.search(text) and not _I.search(text))


def _is_mild(sentences: list[_Sentence], asks: list[str]) -> bool:
    if sentences and all(_CAUSE.match(sentence.text) for sentence in sentences):
        return True
    if not any(not _OBSTRUCTED.isdisjoint(words) and _MILD.search(text) for text, words, _ in sentences):
        return False
    return any(_REGRET.search(sentence.text) for sentence in sentences) or any(map(_OFFER.search, asks))


def _on_loss(sentences: list[_Sentence], lost: int, asks: list[str]) -> Speech:
    """Step 6g: something was not found, last in the sentence with the number `lost`."""
    if any(not _OFFER.search(ask) or _wants_detail(ask) for ask in asks):
        return "question"
    led_on = any(_BUT.search(sentence.text) for sentence in sentences[lost:])
    known = any(_RESULT.search(sentence.text) for sentence in sentences[:lost])
    return "answer" if not asks and (led_on or known) else "refusal"


def _succeeded(sentences: list[_Sentence], blocked: int) -> bool:
    """Step 6d: whether a success outweighs the inability in the sentence with the number `blocked`."""
    if any(map(_tells_success, sentences)):
        return True
    if _HENCE.search(sentences[blocked].text):
        return False
    # "The order was placed in May and can't be changed" tells how things stand, not what was done.
    return any(
        _states_success(sentence)
        and not _PAST.search(sentence.text)
        and (n != blocked or _LED_ON.search(sentence.text))
        for n, sentence in enumerate(sentences)
    )


def _tells_success(sentence: _Sentence) -> bool:
    """Whether success is told (step 5)."""
    words = sentence.words
    if not _DOING.isdisjoint(words) and _holds(_BY_ME, sentence):
        return True
    return not _SUCCEEDING.isdisjoint(words) and _holds(_SUCCESS, sentence)


def _states_success(sentence: _Sentence) -> bool:
    """Whether success is stated (step 5)."""
    return not _DOING.isdisjoint(sentence.words) and _holds(_STATED, sentence)


def _holds(report: re.Pattern[str], sentence: _Sentence) -> bool:
    """Whether the sentence has the report, and neither denies it nor makes it a condition."""
    text = sentence.text
    for found in () if sentence.asked else report.finditer(text):
        if not _DENIED.search(text, _clause(text, found), found.end()):
            return True
    return False


def _clause(text: str, found: re.Match[str]) -> int:
    """Where the part of the sentence starts that has the match."""
    end = found.start() + 1
    start = 0
    for cut in (" , ", " but ", " and ", " so ", " : "):
        if cut in text:
            start = max(start, text.rfind(cut, 0, end))
    return start


def _asks(sentences: list[_Sentence], position: int) -> bool:
    """Whether the sentence asks something of the user, by its mark or by its words (step 3)."""
    text, words, asked = sentences[position]
    if asked and not _is_rhetorical(sentences, position):
        return True
    if not _GIVING.isdisjoint(words) and _DETAIL.search(text):
        return not _ELSEWHERE.search(text)
    if _lacks(sentences[position]):
        return True
    return not _PROMPTING.isdisjoint(words) and _PROMPT.search(text) is not None


def _is_rhetorical(sentences: list[_Sentence], position: int) -> bool:
    text = sentences[position].text
    if _RECALLED.match(text):
        return True
    if position + 1 == len(sentences):
        return False
    following = sentences[position + 1]
    if following.asked or following.words[0] == "*":
        return False
    if _YES_OR_NO.match(following.text):
        return True
    return not (_TO_USER.search(text) or _PRESSING.search(following.text))


def _only_offers(sentences: list[_Sentence], asks: list[str]) -> bool:
    """Step 6h: whether all that is asked is whether to do more, after a success."""
    if any(not _MORE.search(ask) or _GO_AHEAD.search(ask) for ask in asks):
        return False
    if any(map(_tells_success, sentences)):
        return True
    # "The visit is scheduled for May. Would you like me to cancel it?" is about the task itself.
    return any(_states_success(sentence) for sentence in sentences) and not any(map(_ACT.search, asks))
