"""Plain inabilities: the task cannot, may not or will not be done, or was not done."""

from __future__ import annotations

import re

from crosswind.text.speech.vocabulary import (
    ADVERB,
    CHANGES,
    DO,
    DONE,
    DONE_BY_ME,
    FIGURATIVE,
    KNOWING,
    LY,
    MEANS,
    NOT_BEEN,
    OPENING,
    PLACE,
    REJECTED,
    RULER,
    SETTLED,
    START,
    STEPS,
    TASK,
    TOOL,
    UNABLE,
    UNMET,
    any_of,
    either,
    gap,
    word_set,
)

# Denials: what cannot be done or was not done, in words such as "not" and "no".
DENYING = word_set("cannot not no unable nothing none nobody never")
DENIAL = any_of(
    r" (?:i|we) (?:"
    rf"{ADVERB}(?:{UNABLE}|will not) (?!{KNOWING}|{FIGURATIVE})"
    rf"|(?:am|are|was|were) {LY}not {LY}(?:allowed|permitted|authori[sz]ed|in a position|going to|comfortable|willing"
    r"|prepared) "
    rf"|(?:have|had|see|know of|know) no {gap(2)}{MEANS}"
    rf"|(?:have )?{DONE_BY_ME}(?:nothing|no|none|neither|nobody) "
    rf"|(?:have|did|had) {ADVERB}not {LY}(?:{DONE_BY_ME}|{UNMET}|{SETTLED}|{DO}))",
    rf" (?:cannot|could not|can no longer|could no longer|may not|must not) {LY}be (?!(?:undone|reversed|revoked"
    r"|guaranteed|found|located|identified|verified|determined|seen|combined|used|better|ruled|matched"
    r"|happier|easier|more) )",
    rf" (?:so|therefore|thus|hence|but|consequently) {LY}(?:cannot|could not|unable|not able) (?!{KNOWING})",
    rf" (?:is|are|was|were|be|seems|appears) {LY}(?:not|no longer) {LY}(?:possible|feasible|doable|achievable"
    r"|supported|something i can) ",
    rf" (?:is|was) {LY}(?:not|no longer) {LY}(?:permitted|allowed|eligible|entitled|authori[sz]ed|cleared) ",
    rf" (?:are|were) {LY}(?:not|no longer) {LY}(?:permitted|allowed|authori[sz]ed|cleared) to {DO}",
    rf" (?:was|were|has|have) {ADVERB}not {LY}(?:been )?{LY}{UNMET}(?!yet |before )",
    rf" (?:returns?|disputes?) {NOT_BEEN}opened ",
    rf"{START}(?:the|your|this) {gap(1)}(?:order|purchase) {NOT_BEEN}paid \|",
    # How a thing stands, unless it follows from something, or something is given as the reason.
    rf" (?:so|therefore|hence|thus) {gap(4)}{NOT_BEEN}{SETTLED}(?!yet |before )",
    rf" {NOT_BEEN}{SETTLED}(?:either )?(?:, )?(?:because|since|as|due|:) ",
    rf" (?:is|are|was|were|has been) (?:suspended|blocked|frozen|locked|inactive) (?:and|so|:) {gap(2)}(?:cannot|may"
    rf" not) ",
    rf" (?:no one|nobody) (?:was|were|has been|could be|got) (?:{UNMET}|{SETTLED})",
    rf" there (?:is|are|was|were) (?:no|none|not an?|not any) (?!need |reason |rush |hurry |charge )"
    rf"{gap(4)}to (?!{KNOWING}){DO}",
    r" not (?:(?:anything|much) (?:(?:more|else|further|that) )?(?:i|we) can|qualify|an option|(?:go|come|gone) through"
    r"|(?:within|in) (?:my|our) (?:power|scope|capabilities|remit|control)) ",
    r" no (?:can do "
    rf"|{gap(2)}(?:tools?|functions?|way|means|endpoint|method|option to|option for) "
    rf"|{gap(1)}(?:changes? |money |funds |amount |card |engineer |colleague |contact |{PLACE}|{TASK})"
    rf"(?:(?:was|were|has been|have been|could be|can be) (?:{UNMET}|{SETTLED})"
    rf"|(?:(?:is|are) )?(?!scheduled ){DONE})"
    rf"|{gap(1)}{TASK}(?:is|was) (?:possible|allowed|permitted|available) )",
    rf" (?:not|no|none) {gap(6)}(?:allows?|lets?|enables?|permits?) (?:me|us) ",
    rf" none of (?:the |my |these )?{gap(2)}(?:tools|functions) ",
    rf" (?:so|therefore|hence|:|\|) no {TASK}[|,]",
    rf" nothing (?:(?:was|were|has been|could be|can be|got) (?:{UNMET}|{SETTLED})"
    rf"|(?:(?:is|remains) )?(?!scheduled |recalled |disputed )(?:{DONE}|{either(STEPS)})"
    r"(?!now |any (?:more|longer) )"
    r"|(?:(?:more|else|further|that) )?(?:i|we) can )",
    rf" nothing (?:left )?(?:for (?:me|us) )?to (?:{DO}|report |answer )",
    rf" do not (?:have|see) {gap(3)}{MEANS}",
    rf" (?:will|would) not be (?:possible |feasible |right |appropriate |proper |ethical |acceptable |{DONE})",
    r" (?:that|this) (?:will|would) not work ",
    r" not available to (?:me|us) ",
    rf" (?:i|we) can only {gap(8)}not {DO}",
    rf" (?:may not|must not|you cannot) {DO}",
    rf" (?:cannot|could not) (?:{DO}|sell ){gap(6)}(?:while|because|since|as long as) ",
    rf" no {gap(1)}{TASK}(?:went|goes|has gone|will go) (?:out|through|ahead) ",
    r" called (?:nothing|none|no one|nobody) off ",
    rf" (?:do|does|did|will) not {LY}(?:allow|permit|support|let) {gap(2)}{CHANGES}",
    rf" {RULER}{gap(3)}(?:do|does|did|will|would) not {LY}(?:allow|permit|support|let|accept) ",
    rf" (?:do|does|did|will|would) not {LY}(?:allow|accept|permit|take) (?:the|your|this|that|another|an?|any) "
    rf"{gap(1)}{TASK}",
    rf" limits? (?:do|does|did|will|would) not {LY}(?:allow|permit|cover|leave room) ",
    rf" only {gap(8)}(?:can|may) be {UNMET}{gap(6)}(?:is|are|was|were|has|have) not [|,]",
    rf" {TASK}(?:did|does|has|will|can|could) not (?:happened|happen|take place|taken place|succeed|go ahead"
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
    rf"|{ADVERB}lack {gap(2)}{MEANS})",
    rf" (?:is|are|was|be|seems|appears) {LY}(?:infeasible|impossible|unfeasible|prohibited|forbidden|ineligible) ",
    rf" (?:rejects?|refuses?|forbids?|prohibits?|disallows?|excludes?) {gap(2)}{CHANGES}",
    rf" {RULER}{gap(3)}(?:forbids?|prohibits?|refuses?|rejects?|prevents?|disallows?|rules? out|rejected|refused"
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
    rf" {TASK}{gap(2)}(?:remains?|is|was) unchanged ",
    # "Sharing it was refused", "so the page was rejected", "transfers from it are rejected"
    rf"(?: [a-z]{{2,16}}ing | (?:so|therefore|hence|and|,) (?:the|your|this|that) (?:{TASK}|signature )"
    rf"| (?:transfers|orders|payments|deployments|meetings|changes|bookings) |{START}(?:the )?signature ){gap(4)}"
    rf"(?:is|are|was|were|got|has been|have been) {LY}{REJECTED}(?!on \d|at \d|with |yesterday |in )",
    r" would (?:exceed|go over|overrun|be exceeded) ",
    rf" would (?:take|put|push|bring) {gap(3)}(?:over|above|beyond) ",
    rf" limit {gap(3)}is (?:too|not) (?:low|small|high enough|enough) ",
    rf" lacks {gap(2)}{MEANS}",
    rf" {TASK}(?:was|were|is|has been) stopped by ",
    rf"{START}(?:the )?[a-z]{{3,16}}ing {gap(4)}failed (?!once |twice |at first |but )",
    # A tool that is not there, unless the agent did without it.
    rf" {TOOL}{gap(6)}(?:(?:is|are|was|were|seems|appears) {LY}(?:missing|gone|unavailable|down|turned off"
    r"|not (?:available|offered|provided|there|present|part of)|no longer|out of (?:service|order|action))"
    r"|(?:do|does) not (?:exist|work)|no longer (?:works?|exists?)|keeps? failing) "
    rf"(?!{gap(6)}so (?:i|we) (?!am |could |cannot |did |do |have |had ))",
    # Causes that leave nothing to be done.
    rf" (?:(?:is|are|was|been|being) {LY}|\| )barred ",
    rf" (?:cover|coverage|insurance|policy) {gap(4)}(?:lapsed|expired|ran out|run out|inactive|invalid"
    r"|(?:not|no longer) (?:valid|active)) ",
    r" (?:no|not have|not have any|without|lapsed) (?:(?:valid|active|current) )?(?:cover|coverage|insurance) ",
    rf" (?:patient|customer|[a-z]\d{{1,12}}) (?:is|was) (?:not|no longer) {LY}(?:covered|insured|in good standing) ",
    r" (?:is|are|was) closed (?:that day|on (?:that|the (?:chosen|requested)|\d{4}-))",
    r" have no answer ",
    r" came (?:up|back|away) (?:empty|empty-handed|with nothing) ",
    rf"{OPENING}(?:nothing doing|no luck|no dice|no go) ",
    r" (?:lookup|search|call|tool|service|system) (?:has |have )?failed (?:repeatedly|again|every|each|permanently) ",
)
# Headlines: "Not possible", "REFUSED: ...", "Order not placed", at the start of a sentence.
HEADING = word_set(
    "cannot not unable no refused denied declined rejected blocked turned failed failure infeasible impossible"
    " unsuccessful aborted stopped"
)
HEADLINE = any_of(
    rf"{OPENING}(?:(?:{UNABLE}|unable|not able) (?!{KNOWING})"
    rf"|(?:{TASK})?not (?:possible|feasible|allowed|permitted|supported) "
    rf"|(?:{TASK})?(?:not (?:done |{UNMET}|{SETTLED})"
    rf"|(?:{REJECTED}|failed |failure |infeasible |unsuccessful |aborted |stopped )"
    r"(?:\||,|: (?!\d)|because|by|due|as|since|permanently|for good))"
    r"|(?:\w{1,20} )?impossible (?:\||,|:|because|as|since|due))",
    rf"{START}(?:i am )?(?:very )?sorry (?:, )?(?:but )?no \|",
    rf"{START}(?:the|your|this|my) (?:(?!first|last|second|third|previous|old)\w{{1,20}} )?{TASK}"
    rf"(?:(?:for|of|from|to|about) {gap(3)})?"
    rf"(?:(?:has )?failed |(?:has been|was|is|got) {REJECTED})(?!on \d|in |at \d|with)",
)
# "I cannot do this: ...", whatever the reason.
FLAT = re.compile(
    rf"{OPENING}(?:i|we) (?:cannot|could not|am unable to|was unable to) (?:do|help with) (?:this|that|it) :"
)
