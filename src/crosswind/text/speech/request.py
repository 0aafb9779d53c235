"""Whether a sentence asks something of the user."""

from __future__ import annotations

import re

from crosswind.text.speech import words as v
from crosswind.text.speech.sentences import Utterance
from crosswind.text.speech.words import any_of, gap, word_set

_LIFTING = word_set("without until unless before till enough sufficient")
_LIFTED = any_of(
    rf" without (?!(?:an?|any) {v.TASK}\|)"
    r"(?:your |you |knowing |it |(?:the|a|an|this|that|these|more|further|any|additional|at least|having) "
    rf"(?!{gap(2)}(?:fees?|penalty|charge|costs?|permission|problem|authori[sz]ation|approval|tool|access|success) ))",
    r" (?:until|unless|before|till) (?:(?:you|i|we) (?:\w{1,20} )?(?:tell|told|given?|provided?|confirm|confirmed|share"
    r"|shared|specify|know|get|receive|hear|let|choose|chosen|send|say|approve|approved|have)"
    r"|your (?:confirmation|reply|answer|approval|go-ahead|consent)) ",
    r" (?:enough|sufficient) (?:information|details|data|context) ",
)

_GIVING = word_set(
    "please kindly tell give reply confirm choose pick select specify provide say send share could can would will may"
    " might what need require missing lack needed required ask"
)
DETAIL = any_of(
    rf" (?:please|kindly) (?:(?:(?:{v.ANY_LY}|also|first|just|now|either|do) )?{v.GIVE}"
    rf"|{gap(10)}(?:and|or) (?:confirm|tell|let|send me|give|describe|provide|share|specify|enter) )",
    rf" (?:i|we) {gap(3)}ask (?:for|you) ",
    v.START + r"(?:(?:just|simply|so|then|now|first|go ahead|and|,) ){0,3}(?:tell (?:me|us)|give (?:me|us)|reply"
    r"|confirm|choose|pick|select|specify|provide|say|send (?:me|us)|share) ",
    r" (?:could|can|would|will|may|might) (?:you|i) "
    r"(?:(?:please|kindly|also|perhaps|just|maybe|mind|possibly|then) ){0,2}"
    rf"(?:{v.GIVE}|(?:telling|giving|sharing|providing|confirming|sending|have|get|know|ask|let) )",
    r" what (?:is|are|was) (?:your|the|his|her|their|its) ",
    rf" (?:i|we) (?:(?:{v.ANY_LY}|still|just|also|will|would|do|may|only|first|then|now) ){{0,3}}"
    rf"(?:need|require|am missing|are missing|lack(?! {gap(2)}{v.MEANS})) "
    r"(?:to (?:know|have|ask|confirm|verify|be told)|your?|the|an?|some|more|one|two|three|at least|both|it|that|this"
    r"|further|additional|these|those|information|details|following|:) ",
)
_PROMPTING = word_set(
    "let awaiting waiting await know sure clear if once after soon until before your could can would will may shall"
    " should what which when where who how understand catch get follow"
)
_PROMPT = any_of(
    r" let (?:me|us) know (?:(?!if |whether |in case |should |when |whenever |about any |how it |\|)"
    rf"|(?:if|whether) (?:i (?:should|may|can)|this|that|it|{gap(6)}(?:proceed|go ahead|continue)) )",
    r" (?:awaiting|waiting for|await) your ",
    r" (?:once|as soon as|after|until) (?:i|we) (?:have|know|get|receive|hear) "
    r"(?:the|your|that|this|those|these|it|which|what|all|from you) ",
    rf" (?:things?|questions?|details?|points?) {gap(2)}before (?:i|we) ",
    r" help (?:me )?to know ",
    r" (?:have to|must|should|want to|like to) know ",
    r" not (?:quite |fully )?(?:understand|catch|get|follow) (?:your|what|that|the|you) ",
    r" not (?:quite |entirely )?(?:sure|clear) (?:to me )?(?:which|what|who|whether you|if you) ",
    r" (?:if|once|when|after|as soon as) you (?:(?:can|could|have) )?(?:tell|told|name|confirm|confirmed|give|given"
    r"|provide|provided|share|shared|choose|chosen|pick|specify|send (?:me|us)|let (?:me|us) know|approve) ",
    rf"{v.START}{v.MAY_LEAD}(?:(?:could|can|would|will) you|(?:may|can|could|shall|should) i) ",
    rf"{v.START}{v.MAY_LEAD}(?:what|which|when|where|who|how) {gap(4)}(?:do|would|should|shall|can|could|will|did"
    rf"|works?"
    r"|suits?) (?:best |better )?(?:for )?(?:you|i|we|me) ",
)
# A detail is said to be lacking.
_LACKING = word_set(
    "missing open knew had left omitted forgot forgotten skipped no not given specified mentioned provided named"
    " stated indicated supplied told said say name need needed required"
    " unknown unclear waiting have mention specify tell give please only"
)
_LACKED = frozenset(v.ASKED_FOR_WORDS) | word_set("you message request mail note waiting")
_SAID = (
    r"(?:given?|specif(?:y|ied)|mention(?:ed)?|provided?|named?|stated?|indicated?|supplied|supply|told|tell"
    r"|said|say|included?) "
)
_LACK = any_of(
    rf" {v.ASKED_FOR}{gap(4)}(?:(?:(?:is|are) {v.LY}(?:still )?)?(?:missing|needed|required)"
    r"|(?:is|are) (?:still )?(?:unknown|unclear)) (?!from "
    r"|(?:(?:is|are|was|were|:) [^|?]{0,40}?)?\d)",  # no value follows
    r" if (?:i|we) (?:only )?(?:knew|had) ",
    rf" (?:missing|still open|left open) (?:information |details? )?(?:is |are |: )(?:the |an? |your"
    rf" )?{gap(3)}{v.ASKED_FOR}",
    rf" no {gap(2)}{v.ASKED_FOR}{gap(3)}(?:was|were|is|are|has been|have been|yet) {_SAID}",
    rf" {v.ASKED_FOR}{gap(3)}(?:is|are|was|were|has|have) not (?:yet )?(?:been )?(?:yet )?{_SAID}",
    rf" you (?:have|did|do) not (?:\w{{1,10}} )?{_SAID}",
    rf" (?:your|the) (?:message|request|mail|note) (?:(?:do|does|did) not (?:\w{{1,10}} )?{_SAID}|only (?:says"
    rf"|mentions) )",
    r" you (?:have )?(?:left out|omitted|forgot|forgotten|skipped) ",
    rf" (?:no|not an?|not any) {gap(2)}{v.ASKED_FOR}(?:given )?(?:in|from) (?:your|the) (?:message|request|mail|note) ",
    r" (?:i|we|(?:your|the) (?:message|request)) (?:have|has) no (?:date|day|city|name|number|id|address|length"
    r"|hospital) ",
    rf" need is (?:the |an? |your )?{gap(3)}{v.ASKED_FOR}",
    rf"{v.START}need (?:the |an? |your )?{gap(2)}{v.ASKED_FOR}",
    r" (?:(?:i am|we are) (?:\w{1,10} )?|\| (?:still )?)waiting (?:for|on|to (?:hear|know|learn)) (?!the (?:bank"
    r"|system|service|tool) )",
    rf" do not (?:yet |currently )?(?:have|know) (?:your|the|an?) {gap(3)}{v.ASKED_FOR}(?:yet )?[|,:]",
    rf"{v.START}(?:(?:and|just) )?(?:the|your|an?) {gap(4)}{v.ASKED_FOR}{gap(3)}, please [|,]",
    rf"{v.START}name (?:the|an?|your|one|it) ",
)
_ELSEWHERE = re.compile(
    r" (?:by (?:clicking|calling|mail|phone)|in the (?:app|portal|email|mail)|on arrival|upon arrival|when you arrive"
    r"|at the (?:desk|door|entrance|counter|reception|gate)) "
)
OFFER = any_of(
    r" would you (?:like|prefer|be interested|care|rather|want) ",
    r" want (?:me|to) ",
    r" (?:shall|should|can|may|could) i ",
    r" (?:how|what) about ",
    r" interested in ",
    rf" would {gap(5)}(?:work|be ok|be okay|suit|do|help) ",
)
MORE = re.compile(r" (?:would you like|do you want me|want me|shall i also|should i also) ")
GO_AHEAD = re.compile(r" (?:proceed|go ahead|continue) ")
ACT = re.compile(rf" (?:to|i) {v.LY}(?!add |send |forward |share ){v.DO}(?:it|this|that|them|one|the|your|for|now) ")
OTHER = re.compile(r" (?:another|other|different|alternatives?|alternatively|instead|else|new) ")
TO_USER = re.compile(r" (?:you|your|yours|i|me|we|us|my) ")
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
    v.START + r"(?:you (?:asked|wanted to know|wondered)|your question|did you know|guess what|who (?:knows|does not)) "
)
_YES_OR_NO = re.compile(v.START + r"(?:yes|no|yep|nope) ")

_PROPOSED = any_of(
    r" (?:shall|should|can|may|could) (?:i|we) (?!(?:please )?(?:have|get(?! you | it | them )|ask|know|take your"
    r"|see your) )",
    r" (?:would|do|did) you (?:still |really |also )?(?:like|want|wish|care|prefer) (?:me |us )?(?:to|an?|the|that"
    r"|it|this|some|more) ",
    r" want (?:me|us|to|an?|the|it|that|this|some) ",
    r" (?:proceed|go ahead|go-ahead|continue|carry on|sure|ready to|approve|approval|consent) ",
    r" (?:is|are|does|would|if) (?:it|this|that|everything|all|you) (?:all )?(?:be )?(?:look )?(?:ok|okay|right"
    r"|alright|fine|correct|good|happy) ",
    r" (?:ok|okay|correct|right|alright|agreed|deal) \?",
    r" (?:do you|please|to|your) (?:confirm|confirmation|approve|agree|authori[sz]e) "
    r"(?!(?:the|your|a|an|which|what|how|when|where|who|me|us) )",
    r" (?:please|kindly|to) confirm (?:the|your) (?:cancell?ation|booking|reservation|order|transfer|purchase"
    r"|payment) ",
)
_CHOICE = re.compile(r" or (?!no |not )")


def is_offer(ask: str) -> bool:
    return not (_WHICH.search(ask) or _CHOICE.search(ask) or _LACK.search(ask)) and _PROPOSED.search(ask) is not None


def is_lifted(sentence: Utterance) -> bool:
    """Whether the inability in the sentence lasts only until the user says something."""
    text, words, _ = sentence
    return (not _LIFTING.isdisjoint(words) and _LIFTED.search(text) is not None) or _lacks(sentence)


def _lacks(sentence: Utterance) -> bool:
    """Whether the sentence says that a detail is lacking."""
    text, words, _ = sentence
    return not (_LACKING.isdisjoint(words) or _LACKED.isdisjoint(words)) and _LACK.search(text) is not None


def wants_detail(ask: str) -> bool:
    """Whether the request is for a detail, and not for another one than was given."""
    return not OTHER.search(ask) and any(pattern.search(ask) for pattern in (DETAIL, _LACK, _WHICH))


def asks_user(sentences: list[Utterance], position: int) -> bool:
    """Whether the sentence asks something of the user, by its mark or by its words."""
    text, words, asked = sentences[position]
    if asked and not _is_rhetorical(sentences, position):
        return True
    if not _GIVING.isdisjoint(words) and DETAIL.search(text):
        return not _ELSEWHERE.search(text)
    if _lacks(sentences[position]):
        return True
    return not _PROMPTING.isdisjoint(words) and _PROMPT.search(text) is not None


def _is_rhetorical(sentences: list[Utterance], position: int) -> bool:
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
    return not (TO_USER.search(text) or _PRESSING.search(following.text))
