"""Whether a sentence states an inability, of which kind, and whether it counts."""

from __future__ import annotations

import re
from typing import Literal

from crosswind.text.speech import words as v
from crosswind.text.speech.request import OFFER
from crosswind.text.speech.sentences import Utterance
from crosswind.text.speech.success import clause_start
from crosswind.text.speech.words import any_of, either, gap, word_set

# Denials: what cannot be done or was not done, in words such as "not" and "no".
DENYING = word_set("cannot not no unable nothing none nobody never")
DENIAL = any_of(
    r" (?:i|we) (?:"
    rf"{v.ADVERB}(?:{v.UNABLE}|will not) (?!{v.KNOWING}|{v.FIGURATIVE})"
    rf"|(?:am|are|was|were) {v.LY}not {v.LY}(?:allowed|permitted|authori[sz]ed|in a position|going to|comfortable"
    rf"|willing"
    rf"|prepared) |(?:have|had|see|know of|know) no {gap(2)}{v.MEANS}"
    rf"|(?:have )?{v.DONE_BY_ME}(?:nothing|no|none|neither|nobody) "
    rf"|(?:have|did|had) {v.ADVERB}not {v.LY}(?:{v.DONE_BY_ME}|{v.UNMET}|{v.SETTLED}|{v.DO}))",
    rf" (?:cannot|could not|can no longer|could no longer|may not|must not) {v.LY}be (?!(?:undone|reversed|revoked"
    r"|guaranteed|found|located|identified|verified|determined|seen|combined|used|better|ruled|matched"
    r"|happier|easier|more) )",
    rf" (?:so|therefore|thus|hence|but|consequently) {v.LY}(?:cannot|could not|unable|not able) (?!{v.KNOWING})",
    rf" (?:is|are|was|were|be|seems|appears) {v.LY}(?:not|no longer) {v.LY}(?:possible|feasible|doable|achievable"
    r"|supported|something i can) ",
    rf" (?:is|was) {v.LY}(?:not|no longer) {v.LY}(?:permitted|allowed|eligible|entitled|authori[sz]ed|cleared) ",
    rf" (?:are|were) {v.LY}(?:not|no longer) {v.LY}(?:permitted|allowed|authori[sz]ed|cleared) to {v.DO}",
    rf" (?:was|were|has|have) {v.ADVERB}not {v.LY}(?:been )?{v.LY}{v.UNMET}(?!yet |before )",
    rf" (?:returns?|disputes?) {v.NOT_BEEN}opened ",
    rf"{v.START}(?:the|your|this) {gap(1)}(?:order|purchase) {v.NOT_BEEN}paid \|",
    # How a thing stands, unless it follows from something, or something is given as the reason.
    rf" (?:so|therefore|hence|thus) {gap(4)}{v.NOT_BEEN}{v.SETTLED}(?!yet |before )",
    rf" {v.NOT_BEEN}{v.SETTLED}(?:either )?(?:, )?(?:because|since|as|due|:) ",
    rf" (?:is|are|was|were|has been) (?:suspended|blocked|frozen|locked|inactive) (?:and|so|:) {gap(2)}(?:cannot|may"
    rf" not) ",
    rf" (?:no one|nobody) (?:was|were|has been|could be|got) (?:{v.UNMET}|{v.SETTLED})",
    rf" there (?:is|are|was|were) (?:no|none|not an?|not any) (?!need |reason |rush |hurry |charge )"
    rf"{gap(4)}to (?!{v.KNOWING}){v.DO}",
    r" not (?:(?:anything|much) (?:(?:more|else|further|that) )?(?:i|we) can|qualify|an option|(?:go|come|gone) through"
    r"|(?:within|in) (?:my|our) (?:power|scope|capabilities|remit|control)) ",
    r" no (?:can do "
    rf"|{gap(2)}(?:tools?|functions?|way|means|endpoint|method|option to|option for) "
    rf"|{gap(1)}(?:changes? |money |funds |amount |card |engineer |colleague |contact |{v.PLACE}|{v.TASK})"
    rf"(?:(?:was|were|has been|have been|could be|can be) (?:{v.UNMET}|{v.SETTLED})"
    rf"|(?:(?:is|are) )?(?!scheduled ){v.DONE})"
    rf"|{gap(1)}{v.TASK}(?:is|was) (?:possible|allowed|permitted|available) )",
    rf" (?:not|no|none) {gap(6)}(?:allows?|lets?|enables?|permits?) (?:me|us) ",
    rf" none of (?:the |my |these )?{gap(2)}(?:tools|functions) ",
    rf" (?:so|therefore|hence|:|\|) no {v.TASK}[|,]",
    rf" nothing (?:(?:was|were|has been|could be|can be|got) (?:{v.UNMET}|{v.SETTLED})"
    rf"|(?:(?:is|remains) )?(?!scheduled |recalled |disputed )(?:{v.DONE}|{either(v.STEPS)})"
    r"(?!now |any (?:more|longer) )"
    r"|(?:(?:more|else|further|that) )?(?:i|we) can )",
    rf" nothing (?:left )?(?:for (?:me|us) )?to (?:{v.DO}|report |answer )",
    rf" do not (?:have|see) {gap(3)}{v.MEANS}",
    rf" (?:will|would) not be (?:possible |feasible |right |appropriate |proper |ethical |acceptable |{v.DONE})",
    r" (?:that|this) (?:will|would) not work ",
    r" not available to (?:me|us) ",
    rf" (?:i|we) can only {gap(8)}not {v.DO}",
    rf" (?:may not|must not|you cannot) {v.DO}",
    rf" (?:cannot|could not) (?:{v.DO}|sell ){gap(6)}(?:while|because|since|as long as) ",
    rf" no {gap(1)}{v.TASK}(?:went|goes|has gone|will go) (?:out|through|ahead) ",
    r" called (?:nothing|none|no one|nobody) off ",
    rf" (?:do|does|did|will) not {v.LY}(?:allow|permit|support|let) {gap(2)}{v.CHANGES}",
    rf" {v.RULER}{gap(3)}(?:do|does|did|will|would) not {v.LY}(?:allow|permit|support|let|accept) ",
    rf" (?:do|does|did|will|would) not {v.LY}(?:allow|accept|permit|take) (?:the|your|this|that|another|an?|any) "
    rf"{gap(1)}{v.TASK}",
    rf" limits? (?:do|does|did|will|would) not {v.LY}(?:allow|permit|cover|leave room) ",
    rf" only {gap(8)}(?:can|may) be {v.UNMET}{gap(6)}(?:is|are|was|were|has|have) not [|,]",
    rf" {v.TASK}(?:did|does|has|will|can|could) not (?:happened|happen|take place|taken place|succeed|go ahead"
    r"|go out|gone out|work out) ",
    r" not (?:been )?(?:given|granted|allowed) access ",
)
# Bars: what is refused, forbidden or given up, in words of its own.
BARRING = word_set(
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
BAR = any_of(
    r" (?:i|we) (?:(?:have |am |are )?(?:stopped|stopping|given up|gave up|giving up|declined|declining|refused"
    r"|refusing|exhausted|ran out of|run out of) "
    rf"|{gap(3)}(?:decline|refuse|rather not|decided not|prefer not|chose not|choose not) "
    rf"|{v.ADVERB}lack {gap(2)}{v.MEANS})",
    rf" (?:is|are|was|be|seems|appears) {v.LY}(?:infeasible|impossible|unfeasible|prohibited|forbidden|ineligible) ",
    rf" (?:rejects?|refuses?|forbids?|prohibits?|disallows?|excludes?) {gap(2)}{v.CHANGES}",
    rf" {v.RULER}{gap(3)}(?:forbids?|prohibits?|refuses?|rejects?|prevents?|disallows?|rules? out|rejected|refused"
    r"|denied|blocked|prevented|keeps? (?:rejecting|refusing|failing)) ",
    r" (?:prevents?|stops?|keeps?|bars?|blocks?) (?:me|us) from ",
    r" (?:would|could|will) (?:violate|breach|break|be against|go against) ",
    r" against (?:the|our|my|this|hospital|company|shop|bank) (?:\w{1,20} )?(?:policy|policies|rules?|terms|law) ",
    r" (?:outside|beyond) (?:of )?(?:what|my|our|the scope|the range) ",
    r" (?:too late (?:to|for)|off limits|off-limits|out of the question|a dead end|no-go) ",
    r" (?:ending|stopping|quitting|aborting) (?:here|now|this|at this point) ",
    rf" (?:leave|leaving|left|keep|kept) {gap(4)}(?:untouched|unchanged|alone|as is"
    r"|as (?:it|they|things) (?:is|are|was|were)) ",
    r" (?:stays?|remains?) (?:untouched|as is|(?:as|where) (?:it|they) (?:is|are|was|were)) ",
    rf" {v.TASK}{gap(2)}(?:remains?|is|was) unchanged ",
    # "Sharing it was refused", "so the page was rejected", "transfers from it are rejected"
    rf"(?: [a-z]{{2,16}}ing | (?:so|therefore|hence|and|,) (?:the|your|this|that) (?:{v.TASK}|signature )"
    rf"| (?:transfers|orders|payments|deployments|meetings|changes|bookings) |{v.START}(?:the )?signature ){gap(4)}"
    rf"(?:is|are|was|were|got|has been|have been) {v.LY}{v.REJECTED}(?!on \d|at \d|with |yesterday |in )",
    r" would (?:exceed|go over|overrun|be exceeded) ",
    rf" would (?:take|put|push|bring) {gap(3)}(?:over|above|beyond) ",
    rf" limit {gap(3)}is (?:too|not) (?:low|small|high enough|enough) ",
    rf" lacks {gap(2)}{v.MEANS}",
    rf" {v.TASK}(?:was|were|is|has been) stopped by ",
    rf"{v.START}(?:the )?[a-z]{{3,16}}ing {gap(4)}failed (?!once |twice |at first |but )",
    # A tool that is not there, unless the agent did without it.
    rf" {v.TOOL}{gap(6)}(?:(?:is|are|was|were|seems|appears) {v.LY}(?:missing|gone|unavailable|down|turned off"
    r"|not (?:available|offered|provided|there|present|part of)|no longer|out of (?:service|order|action))"
    r"|(?:do|does) not (?:exist|work)|no longer (?:works?|exists?)|keeps? failing) "
    rf"(?!{gap(6)}so (?:i|we) (?!am |could |cannot |did |do |have |had ))",
    # Causes that leave nothing to be done.
    rf" (?:(?:is|are|was|been|being) {v.LY}|\| )barred ",
    rf" (?:cover|coverage|insurance|policy) {gap(4)}(?:lapsed|expired|ran out|run out|inactive|invalid"
    r"|(?:not|no longer) (?:valid|active)) ",
    r" (?:no|not have|not have any|without|lapsed) (?:(?:valid|active|current) )?(?:cover|coverage|insurance) ",
    rf" (?:patient|customer|[a-z]\d{{1,12}}) (?:is|was) (?:not|no longer) {v.LY}(?:covered|insured|in good standing) ",
    r" (?:is|are|was) closed (?:that day|on (?:that|the (?:chosen|requested)|\d{4}-))",
    r" have no answer ",
    r" came (?:up|back|away) (?:empty|empty-handed|with nothing) ",
    rf"{v.OPENING}(?:nothing doing|no luck|no dice|no go) ",
    r" (?:lookup|search|call|tool|service|system) (?:has |have )?failed (?:repeatedly|again|every|each|permanently) ",
)
# Headlines: "Not possible", "REFUSED: ...", "Order not placed", at the start of a sentence.
HEADING = word_set(
    "cannot not unable no refused denied declined rejected blocked turned failed failure infeasible impossible"
    " unsuccessful aborted stopped"
)
HEADLINE = any_of(
    rf"{v.OPENING}(?:(?:{v.UNABLE}|unable|not able) (?!{v.KNOWING})"
    rf"|(?:{v.TASK})?not (?:possible|feasible|allowed|permitted|supported) "
    rf"|(?:{v.TASK})?(?:not (?:done |{v.UNMET}|{v.SETTLED})"
    rf"|(?:{v.REJECTED}|failed |failure |infeasible |unsuccessful |aborted |stopped )"
    r"(?:\||,|: (?!\d)|because|by|due|as|since|permanently|for good))"
    r"|(?:\w{1,20} )?impossible (?:\||,|:|because|as|since|due))",
    rf"{v.START}(?:i am )?(?:very )?sorry (?:, )?(?:but )?no \|",
    rf"{v.START}(?:the|your|this|my) (?:(?!first|last|second|third|previous|old)\w{{1,20}} )?{v.TASK}"
    rf"(?:(?:for|of|from|to|about) {gap(3)})?"
    rf"(?:(?:has )?failed |(?:has been|was|is|got) {v.REJECTED})(?!on \d|in |at \d|with)",
)
# "I cannot do this: ...", whatever the reason.
FLAT = re.compile(
    rf"{v.OPENING}(?:i|we) (?:cannot|could not|am unable to|was unable to) (?:do|help with) (?:this|that|it) :"
)


# ---------------------------------------------------------------- nothing is left, or nothing was found

FILLED = word_set(
    "no not any sold fully up out solid full none neither all every everything each nothing zero taken gone"
)
FULL = any_of(
    rf" (?:no|not any|not have any) (?:available|free|open|remaining|vacant) (?:\w{{1,20}} )?{v.PLACE}",
    rf" (?:{v.NO}|not have any ){gap(3)}{v.PLACE}(?:"
    rf"{gap(6)}(?:left|available|free|remaining|open) "
    rf"|{gap(8)}(?:that|those|these|this|your|requested) (?:dates?|days?|times?|week|month|evening|nights?|period"
    r"|conditions|criteria) |(?:fits?|match|meets?|suits?) "
    rf"|{gap(2)}(?:i|we) (?:could|can) )",
    rf" (?<! you have )(?:{v.NO}|not have (?:any|an?) ){v.UNREPORTED}{gap(3)}{v.PLACE}"
    rf"(?:{gap(8)}(?:on|for|before|after|between|until) (?:\d|monday|tuesday|wednesday|thursday|friday|saturday"
    rf"|sunday)|{gap(5)}(?:has|have|had|with|long enough|big enough|large enough|fits?|takes?|offers?) )",
    rf" there (?:is|are|was|were) {v.NO}{v.UNREPORTED}{gap(3)}{v.PLACE}(?!limit)",
    rf" (?:none|neither) of {gap(2)}{v.PLACE}{gap(6)}(?:has|have|had|is|are|was|were|fits?|offers?|can|could|holds?"
    r"|carr(?:y|ies)|takes?|seats?) ",
    rf" neither {gap(4)}nor {gap(4)}(?:has|have|had) ",
    rf" nothing {gap(4)}(?:fits?|fitted|left|free|available|suitable|open|long enough|remains|remained) (?!to |of )",
    rf" {v.PLACE}{gap(6)}(?:carry|carries|takes?|holds?) nothing ",
    rf" no (?!other |earlier |later )(?:{v.PLACE}|{v.TASK}){gap(6)}(?:can|could) (?:carry|take|hold|leave|go|fit) ",
    rf" (?:is|are|was|were) {v.LY}full (?:on \d|that day|on that)",
    r" (?:(?:that|chosen|requested|wanted) (?:day|date|slot|time|evening)|(?:day|date|slot|time|evening) (?:that )?you"
    rf" (?:have )?\w{{1,12}}) (?:is|was) {v.LY}(?:full|taken|gone) ",
    rf" (?:all|every|everything|each) {gap(6)}(?:(?:is|are|was|were) {v.LY}(?:taken|full|gone|occupied)"
    r"|(?:has|have|had) (?:fewer|less|too (?:few|little))) ",
    r" (?:sold out|fully booked|booked up|booked out|booked solid|out of stock|completely full|no availability) ",
    rf" (?:none|neither) (?:of {gap(4)})?(?:is|are|was|were) (?:free|available|left|open) ",
    rf" (?:all|every) (?:of )?(?:the )?{gap(2)}{v.PLACE}{gap(4)}(?:is|are|was|were) {v.LY}(?:taken|booked|full|gone"
    r"|occupied|shorter|too (?:short|small)) ",
)
LOSING = word_set("cannot not no unable nothing none nobody zero")
_SUPPLY = r"(?:shipments?|deliver(?:y|ies)|restock(?:ing|s)?|refills?|consignments?) "
LOST = any_of(
    rf" (?:i|we) (?:{v.ADVERB}{v.UNABLE} {v.KNOWING}"
    r"|do not (?:yet |currently )?(?:have|know) (?:your|the|which|what|who|where|whether|enough|when) )",
    # Something that was sought is not there at all.
    rf" there (?:is|are|was|were|exists?) {v.NO}{v.UNREPORTED}",
    r" (?<! you )(?<! i )(?<! we )(?:(?:has|have|had) no|(?:does|did) not (?:(?:seem|appear) to )?have (?:an?|any)) "
    rf"{v.UNREPORTED}",
    rf" no {v.UNREPORTED}{gap(6)}(?:found|exists?|on file|listed|registered) ",
    rf"{v.OPENING}no (?:matching |such |{v.UNREPORTED}{gap(3)}(?:in|at) )",
    rf" (?:not one|not a single) {v.UNREPORTED}",
    r" not to be (?:had|found) ",
    rf" (?:found|finds?|returned|returns|gave|yields?|yielded|shows?|showed|got) (?:nothing|no|none|zero|not an?) "
    rf"{v.UNREPORTED}",
    rf" none of {gap(3)}(?:is|are|was|were) (?:on|at|in|for|with|from) ",
    rf" (?:do|does|did) not {v.LY}(?:carry|sell|stock|employ|list) (?!\d|enough |that (?:many|much) |as |more |less )"
    rf"{v.UNREPORTED}",
    rf" (?:runs?|sells?|carr(?:y|ies)|stocks?|employs?|lists?|keeps?) no {v.UNREPORTED}",
    rf" no {gap(1)}{_SUPPLY}{gap(8)}(?:planned|due|coming|expected|brings?|has|have|reach(?:es)?) ",
    rf" (?:no|not any|not an?) {gap(1)}(?:mails?|emails?|messages?|files?) (?:about|on|regarding|concerning|called"
    r"|titled|with (?:the|that) (?:topic|subject)) ",
    r" (?:no one|nobody) (?:(?:is|was|has|will be|seems to be) )?(?:listed as )?(?:on call|on duty|the pager"
    r"|on the rota|on-call) (?:in|for|at|on|there|then|that) ",
    rf" (?:no one|nobody) {gap(6)}(?:accepts?|takes?|offers?|treats?|is free|is available) ",
    rf"{v.OPENING}(?:{v.UNABLE}|unable|not able) {v.KNOWING}",
    r" (?:could not|cannot) be (?:found|located|identified|verified|determined|matched) ",
    rf" no (?:such |longer exists? |{gap(3)}(?:called|named|matching|matches|under|by (?:the|that) name) )",
    r" not (?:(?:seem to |appear to )?exist|found|registered|on file|recogni[sz]ed|in (?:the|our|my) (?:system|database"
    r"|records)) ",
)


# ---------------------------------------------------------------- the kind of inability, and whether it counts

_REASON = re.compile(r" (?:because|since|as|given) ")
_COUNTED = re.compile(v.START + r"(?:\d{1,6}|one|two|three|four|five|some|several|many|most) (?:of|out of) ")
_Kind = Literal["full", "plain", "lost"]
# The first that fits is the kind of a sentence.
_INABILITIES: tuple[tuple[_Kind, frozenset[str], re.Pattern[str]], ...] = (
    ("full", FILLED, FULL),
    ("plain", DENYING, DENIAL),
    ("plain", BARRING, BAR),
    ("plain", HEADING, HEADLINE),
    ("lost", LOSING, LOST),
)
_OBSTRUCTED = word_set(
    "unavailable not no taken occupied full already expired frozen blocked discontinued exceeds exceed insufficient"
)
_MILD = re.compile(
    rf" (?:(?:is|are|was|were|be|has|have) {v.LY}(?:unavailable|not available|no longer available|taken|occupied|full"
    r"|already (?:taken|booked|reserved|occupied|full)|expired|frozen|blocked|discontinued)"
    r"|exceeds?|insufficient|not enough (?:funds|money|balance|seats|stock|credit)) "
)
# A cause that leaves nothing to be done, if the message says nothing else.
_CAUSE = re.compile(
    rf"{v.START}(?!{gap(5)}card )(?:{gap(5)}(?:account|access|engineer|buyer|user|organi[sz]er|file|files) {gap(2)}"
    rf"(?:is|are|has been|was) {v.LY}(?:blocked|frozen|suspended|inactive|confidential|not active|not in good standing)"
    rf"|{gap(5)}{v.NUMBER.strip()} {gap(2)}"  # a number alone may be what was to be frozen
    rf"(?:is|are|has been|was) {v.LY}(?:blocked|suspended|inactive|confidential|not active|not in good standing)) "
    r"(?:for transfers |at present |at the moment )?\|"
)
_REGRET = re.compile(
    r" (?:(?:sorry|apologi[sz]e|apologies)"
    r"(?! about | to hear | for (?:the|my|any) (?:delay|confusion|wait|mistake|error))"
    r"|unfortunately|afraid|regret|regrettably|sadly|regretfully) "
)
_ENDED = r"(?:cancell?ed|recalled|rolled back) "
NONE_ENDED = re.compile(rf" (?:no|nothing|none) {gap(5)}(?:was|were|is|are|has been|have been) {_ENDED}")
_REMARK = re.compile(r" (?:note that|please note|be aware|keep in mind|remember that|mind that) ")
_ASIDE = any_of(
    r" (?:at first|initially|first (?:attempt|try|call|time|one|request)|for a moment) ",
    # A value that is reported.
    # What a total leaves out.
    rf" cancell?ed {gap(5)}not (?:added|included|counted) ",
    # What is the most or the least of all.
    rf" no {gap(8)}(?:less|more|fewer|[a-z]{{2,12}}er) {gap(4)}than ",
    r" incidents? (?:has|have|was|were) not (?:yet )?(?:been )?resolved (?!because |since )",
    rf" no (?:earlier|sooner|nearer|closer|cheaper) {gap(8)}, so (?!{gap(5)}(?:not|nothing|no|cannot) )",
    rf" {_ENDED}, so (?:the (?:total|sum)|all|every|it|they|that) ",
    # What was to wait.
    r" , (?:just )?as (?:you )?(?:requested|asked|wanted|wished|instructed|agreed|told) ",
    rf" (?:is|was|been) (?:also )?(?:placed|prepared|staged|scheduled|entered|made|reserved|held) "
    rf"(?:{gap(8)})(?:and|but|,) {gap(3)}not {gap(1)}(?:paid|signed|launched|sent|invited|charged) \|",
    rf" (?:status|state|title|subject|message|error|reply) {gap(6)}(?:is|was|reads|says) : ",
)
_YES_NO = re.compile(v.START + r"(?:yes|no) , ")
_SELF = re.compile(r" (?:i|we|that|this) ")
_I = re.compile(r" (?:i|we) ")
_NEXT = re.compile(rf" (?:first|next|earliest|nearest|soonest) {gap(6)}(?:is|are) ")
RESULT = any_of(
    rf" (?:costs?|charges|price|fee|fees|total|sum|first|earliest|next) {gap(6)}\d",
    r" is (?:the )?"
    rf"{either('cheap(?:er|est)|clos(?:er|est)|near(?:er|est)|quick(?:er|est)|fast(?:er|est)|low(?:er|est)')}",
)


def inability_kind(sentence: Utterance, position: int) -> _Kind | None:
    """The kind of inability that the sentence states, if any."""
    text, words, _ = sentence
    for kind, signs, pattern in _INABILITIES:
        found = None if signs.isdisjoint(words) else pattern.search(text)
        if found and not (kind != "plain" and _is_elsewhere(text, found)):
            return kind if _counts(text, position) else None
    return None


def _is_elsewhere(text: str, found: re.Match[str]) -> bool:
    """Whether another thing is full or lost: "Alda, since Kairo is sold out", "two of the shows are full"."""
    return bool(_COUNTED.match(text) or _REASON.search(text, clause_start(text, found), found.end()))


def names_next_free(sentences: list[Utterance]) -> bool:
    """Whether a message about free places, said without regret, goes on to the next that is free."""
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


def is_mild(sentences: list[Utterance], asks: list[str]) -> bool:
    if sentences and all(_CAUSE.match(sentence.text) for sentence in sentences):
        return True
    if not any(not _OBSTRUCTED.isdisjoint(words) and _MILD.search(text) for text, words, _ in sentences):
        return False
    return any(_REGRET.search(sentence.text) for sentence in sentences) or any(map(OFFER.search, asks))
