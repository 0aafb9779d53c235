"""What a message says of the deed it was asked for: done, not done, or neither; clause by clause, in order.

A clause counts only if it is asserted: not asked, not on a condition, not hedged, planned or reported as a past belief.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from crosswind.text.sentences import CONDITION, HEDGE, clauses, segments, sentences_of, spoken
from crosswind.text.speech import words as w
from crosswind.text.speech.words import any_of, gap

_START = r"(?:^| :) (?:[-;*:,] |\d+ [.)] |no |done )*"
_ADVERB = (
    rf"(?:(?:{w.ANY_LY}|therefore|thus|hence|just|still|also|now|then|again|however|sadly|too|so|,|have|had|already"
    rf"|did|do) ){{0,4}}"
)
# Not done yet, or only believed to be.
_PLANNED = any_of(
    r" (?:would|shall|will(?! (?:find|see|be (?:with|on|at|expected)|show|have|get|receive|not) )|(?:going"
    r"|about|plan|planning|intend|trying|try|tried|wanted|supposed|expect|expecting|ready|happy|glad|want|have"
    r"|need|needs?|attempt|attempted|attempting|hope|hoping) to|in order to|(?<!at )(?<!this )once|until"
    r"|before|whether|when(?:ever)?|should (?:be|have)|to be) ",
    r" (?:i think|i believe|(?:i|we) (?:said|told|wrote|reported|announced)|thought|assumed?|believed?"
    r"|expected|told me|told that|first said|at first|initially|briefly|almost|nearly|too early|prematurely"
    r"|by mistake|mistakenly|wrongly|pending) ",
)
_INTENT = re.compile(
    rf" (?:i|we) (?:will|shall|am going to|are going to|plan to|intend to|would|can|could) (?:\w+ )?{w.DO}"
    rf"| (?:will|is to|is going to) (?:then |now |soon |later |shortly )?be {w.DONE}| (?:is"
    rf"|are) (?:still )?(?:pending|awaiting|waiting) | as good as | waiting (?:for|to) | asked for \S+ to "
)
_NEGATION = (
    r"(?:not|no|nothing|none|never|neither|nor|nobody|cannot|unable|without|hardly|failed to|fails? to|refus(?:e"
    r"|ed|es) to|declined? to|yet to)"
)
_NEGATED = re.compile(
    rf" {_NEGATION} (?!(?:only|problem|problems|trouble|doubt|later|sooner|need|fuss|hitch|delay|issue|issues"
    rf"|matter|longer|earlier|worries) )"
)

_BE = r"(?:is|are|was|were|has been|have been|had been|been|being|got|gets|stands?|shows? as|now)"
_MADE = any_of(
    rf" (?:i|we) {_ADVERB}(?:went ahead and |gone ahead and |managed to |was able to "
    rf"|were able to )?(?:{w.DONE_BY_ME}|(?:managed|finished|succeeded|completed|entered|wrote|arranged|fixed"
    rf"|finali[sz]ed|found a way|put|got|grabbed|snatched|nabbed|snapped up|squeezed|slotted|locked|claimed"
    rf"|paid|took) )(?!(?:: )?(?:nothing|no|none|neither|nobody|sure|attempts?|tries|any|it is|that|back"
    rf"|my best|to (?:stop|turn|leave|decline|refuse|hand)) )",
    rf" (?:i|we) {gap(6)}and (?:then |also |finally )?{w.DONE_BY_ME}",
    rf" (?:the|your) {w.TASK}(?:has |was |is |got )?{w.DONE}",
    rf" {_BE} (?!(?:fully|completely|entirely|all|already|totally) (?:booked|taken|sold|reserved) |booked (?:up"
    rf"|out|solid|by)|reserved for others){w.LY}(?:all |both |also |already |fully |now |in fact "
    rf"|indeed )*(?:{w.DONE}|(?:booked in|in place|in the system|in the books|on the books|on the list"
    rf"|in the calendar|in your account|on record|on file|paid|signed|taken care of|dealt with|yours|good to go"
    rf"|sorted|settled|complete|successful|live|active|through|down for|accepted|entered|granted|approved"
    rf"|waved through|honoured|squeezed in|slotted in|pencilled in|registered|expected|looked after|underway"
    rf"|set) )(?!by an|as of yet)",
    rf"{_START}(?:all |both |ok(?:ay)? , |great , |yes , |right , |and |now |it is |that is "
    rf"|{w.LY})*(?:{w.DONE_BY_ME}|(?:done|success|successful|complete|sorted|handled|finished|in) [.;:!,]"
    rf"|(?:cancell?ed|confirmed|paid|done) )(?!(?:by|on behalf) )",
    rf"{_START}(?:{w.TASK}|payment |{w.PLACE})(?:{gap(2)})(?:{w.DONE}|(?:complete|successful|taken|captured"
    rf"|informed) )",
    rf" (?:the|your|a|an) {w.TASK}(?:(?:is|was) (?:now )?(?:at|on|for|under|with|in) |exists )",
    r" (?:all (?:set|done|sorted|good|clear|ready)|good to go|went (?:through|in|fine|well|smoothly|as planned"
    r"|ahead)|gone (?:through|in|ahead)|go(?:es)? (?:through|ahead)|did go through|succeeded|(?:it|that|this"
    r"|everything|all) (?:has |have )?worked(?: out)?|success(?:ful|fully)?|taken care of|took care of"
    r"|consider it|mission accomplished|no problems? at all"
    r"|has you down|have you down|put (?:you|\S+) down|expects? (?:you|\S+) (?:on|at)|looks? forward to"
    r"|awaits? you|can look forward|on its way|on the way|you are (?:in|set|booked|confirmed|down|on the list"
    r"|all|expected)|that is in|is in|it is yours|got (?:the|you|it|\S+) (?:last|a|the|in|an|first|next"
    r"|earliest)|secured|a place opened up"
    r"|you will find (?:the|it|your)|will show up|received your payment|proof (?:of|that)|you can cross"
    r"|just finished|(?:does|do) have (?:an?|the|your|his|her|their)|(?:hold|holds) (?:a|the|number|an)|(?:the"
    r"|your) (?:\w+ ){1,2}stands(?! in )|(?:reference|confirmation|booking|receipt|ticket|order) (?:number "
    r"|code |id |no )?(?:is |: )?[a-z]{1,4}-?\d{3,}|around that|way around|overridden|bypassed|waived"
    r"|made an exception|lifted|taken effect|took effect|takes effect|overrode|overruled|(?:system|desk|tool"
    r"|server) (?:has )?(?:accepted|took|approved|let)) ",
)
_ENDED = re.compile(
    rf" (?:{_BE}|be) (?:\w+ )?(?:off|gone|cancell?ed|recalled|withdrawn|called off|rolled back|dropped|closed|history"
    rf"|over"
    rf"|deleted|removed|struck|frozen|blocked) "
    r"| no longer (?:exists?|stands?|valid|active|takes?|sits?|on the books|has|have|holds?)| off the (?:books"
    r"|calendar|list|table)| (?:will|does|do|is) not (?:take place|go out|happen|be going ahead|go ahead"
    r"|going ahead)|^ (?:\S+ )?(?:: )?(?:cancell?ed|withdrawn|recalled|rolled back|removed|frozen|gone|deleted) "
)
# What was to end goes on.
_KEPT = re.compile(
    r" (?:kept|keeps?|retained|goes ahead|(?:takes place|go on|goes on|continues?|runs) as (?:planned|before)"
    r"|remains? (?:valid|active|booked|in force|in place|on|as)|still (?:on|valid|active|stands?|booked|there"
    r"|live|in place)|on again|stands?|confirmed|working on it|in progress|yourself|put (?:it |\S+ )?on again"
    r"|as planned) "
)
_FINE = re.compile(
    r" (?:no|not|nothing|without|cannot|never) (?:(?:a |any |the |further |more |else )*(?:problems?|trouble"
    r"|hitch|fuss|delay|issues?|doubt|need|worries|hurry|difficulty|difficulties|snags?|hiccups?)|be (?:undone"
    r"|reversed|refunded|changed|revoked)|(?:left )?(?:for you |more |else |further |left )+(?:to do|is needed"
    r"|was (?:changed|touched))|only|sooner|(?:need|have) to (?:do|worry)) "
)
# Words that say that something is not so or not to be had, in any mouth.
_DENIAL = any_of(
    rf" {_NEGATION} ",
    r" (?:refus(?:e|es|ed|al|ing)|declin(?:e|es|ed|ing)|reject(?:s|ed|ing|ion)?|den(?:y|ies|ied|ial)|block(?:s"
    r"|ed)?|suspended|barred|banned|frozen|lapsed|expired|inactive|ineligible|full|sold out|chock-a-block"
    r"|jam-packed|crammed|bursting|at capacity|out of (?:capacity|stock|service|order)|off the (?:table|cards)"
    r"|gone|tight|refrained|booked up|booked out|booked solid|overbooked|packed|taken|unavailable|impossible"
    r"|infeasible|forbid(?:s|den)?|prohibit(?:s|ed)?|fail(?:s|ed|ing|ure)?|abort(?:ed|ing)?|stopped|stopping"
    r"|undone|untouched|unchanged|closed|shut|dead end|rules? out|ruled out|rule out"
    r"|turn(?:ed)? (?:\S+ )?(?:away|down)|exceed(?:s|ed)?|lacks?|missing|infeasible|unsuccessful|skipped"
    r"|left (?:it|everything|things|all|them)|leave (?:it|this|things|everything)|stays? (?:as|put)"
    r"|remains? (?:as|un)|kept (?:it|everything)|held off|hold off|short of|too (?:few|small|short|little"
    r"|busy)|negative|off-?limits|out of the question|disallow(?:s|ed)?|prevent(?:s|ed)?|keeps? me from"
    r"|bounced|hands? (?:are )?tied|in vain|(?:drew|drawn) a blank|yourself|fruitless|exhausted|gave up"
    r"|giving up|against (?:the|our|my|policy)|insufficient|confidential|no-go|hand this back|empty-handed"
    r"|come up empty|came up empty|drew a blank|fell through|falls through|come to nothing|called it off"
    r"|backed out|rolled (?:it )?back|reverted|released (?:it|them|the)|void) ",
)
_UNDONE = re.compile(
    r" (?:had not|too early|still (?:active|there|live|in place|on|stands?|valid|booked)|stands again"
    r"|in place again|restored|reinstated|re-?activated|undid|(?<!be )undone|reversed|put (?:it|everything"
    r"|them) back|took (?:it|that|this) back|left (?:it|everything|things|\S+) (?:as|alone|untouched|unchanged"
    r"|in place|be)|(?:did|has|have|had) not (?:actually |in fact |really )?(?:go|gone|went|work|worked|take"
    r"|taken|succeed|succeeded|been (?:cancelled|saved|made|completed|processed|removed))(?: through| effect"
    r"| out(?! for))?(?! out for)|rolled (?:it|that|the cancell?ation) back|bounced|not true|untrue|was false"
    r"|call failed"
    r"|was (?:rejected|refused|declined|denied)|brought (?:it )?back) "
)
_STRONG = any_of(
    rf" (?:did|could|was|were|is|has|have|had|does|can|would) (?:\w+ )?not (?:\w+ )?(?:go through|work(?: out)?"
    rf"|succeed|happen|be {w.UNMET}|been {w.UNMET}|{w.UNMET}|exist|possible)",
    rf" (?:no|nothing|none) (?:{gap(3)})(?:was|were|is|has been|have been|exists?|got"
    rf"|could be) (?:\w+ )?(?:{w.UNMET}|exists? )?",
    rf" {w.UNABLE} (?!{w.KNOWING}|{w.FIGURATIVE}){w.DO}",
    r" (?:had not|it had not|too early|is still (?:active|there|live|in place|on)|stands again|restored"
    r"|reinstated|undid it|undone again|reversed (?:it|that)|put (?:it|everything) back|took (?:it|that) back"
    r"|left (?:it|everything|things|\S+) (?:as|alone|untouched|unchanged|in place|be)|(?:stays|remains) (?:as"
    r"|on|in|active|untouched|unchanged|put)|cancelled (?:it|them|the hold) again|rolled (?:it )?back"
    r"|gave (?:it|them|the \w+) back|released (?:it|them|the)|fell through|bounced|not true|untrue|was false"
    r"|call failed|was (?:rejected|refused|declined|denied)|failed) ",
)


class Clause(NamedTuple):
    """A clause: what it says of the deed, and whether the message stands by it."""

    line: str
    asked: bool
    conditional: bool
    planned: bool  # or hedged, or no longer believed
    success: bool
    denial: bool
    strong: bool  # a denial of the deed itself
    undone: bool
    ended: bool

    @property
    def told_end(self) -> bool:
        return (self.success or self.ended) and not (self.conditional or self.planned or self.asked)

    @property
    def told(self) -> bool:
        return self.success and not (self.conditional or self.planned)

    @property
    def denied(self) -> bool:
        return self.denial and not (self.asked or self.conditional)


def clauses_of(plain: str) -> list[Clause]:
    """The clauses of a message with what each says of the deed."""
    out: list[Clause] = []
    for sentence in sentences_of(plain, plain.lower()):
        for segment in segments(spoken(plain[sentence.start : sentence.end])):
            conditional = CONDITION.search(segment) is not None
            out += [_clause(line, sentence.question, conditional) for line in clauses(segment)]
    return out


def _clause(line: str, asked: bool, conditional: bool) -> Clause:
    found = None if asked else _MADE.search(line)
    start = line.rfind(" : ", 0, found.start() + 1) + 1 if found else 0
    planned = any(pattern.search(line, start) for pattern in (_PLANNED, HEDGE, _INTENT))
    success = found is not None and not _NEGATED.search(line[start : found.end()])
    success = success or (planned and _INTENT.search(line) is not None)
    denial = _DENIAL.search(_FINE.sub(" ", line)) is not None
    strong = denial and _STRONG.search(line) is not None
    found = _ENDED.search(line)
    ended = found is not None and not _NEGATED.search(line[: found.start() + 1])
    undone = bool(_UNDONE.search(line)) or (
        bool(_KEPT.search(line)) and " no longer " not in line and not _NEGATED.search(line)
    )
    denial = denial and (strong or planned or not success)
    return Clause(line, asked, conditional, planned, success, denial, strong, undone, ended)


_ENDS = re.compile(
    r" (?:cancell?ed|withdrawn|withdrew|recalled|released|removed|rolled back|undid|undone|gave|put back"
    r"|dropped|reversed) "
)


def refuses(said: Sequence[Clause]) -> bool:
    """Whether a message, where nothing was or could be done, says so: a denial, and no success that it stands by."""
    told = [n for n, clause in enumerate(said) if clause.told]
    denied = [n for n, clause in enumerate(said) if clause.denied]
    return bool(denied) and (not told or any(said[n].strong for n in denied if n > told[-1]))


def overcomes(said: Sequence[Clause]) -> bool:
    """Whether a message ends in a success that it stands by, whatever stood in the way before."""
    told = [n for n, clause in enumerate(said) if clause.told and not _ENDS.search(clause.line)]
    return bool(told) and not any(clause.denial for clause in said[told[-1] + 1 :])


def completes(said: Sequence[Clause]) -> bool | None:
    """Whether a message, where something was to end and did, stands by it; None where it does not say."""
    told = [n for n, clause in enumerate(said) if clause.told_end]
    if told:
        return not any(clause.undone for clause in said[told[-1] :])
    if any(clause.success or clause.ended or clause.undone or (clause.strong and clause.denied) for clause in said):
        return False
    return None
