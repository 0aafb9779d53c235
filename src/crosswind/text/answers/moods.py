"""How a text stands to a value that it mentions: asserted, denied, asked, hedged, on a condition, outdated, retracted.

The sentence that holds a value is read in its spoken form with the value masked as "@" and the things that it could be
said of as "&a" (the right one) and "&b" (another). Patterns look at the clause around the mask, never at the value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from crosswind.text.answers.reading import AnswerText, Claim, Expected
from crosswind.text.sentences import CLAUSE, CONDITION, HEDGE, SEGMENT, spoken
from crosswind.text.values.names import id_places, name_places
from crosswind.text.values.plain import is_inside

GAP = r"(?:[^ ]+ )"
# What makes all of a message a guess, or the values just before.
_DOUBT = re.compile(
    r" (?:(?:just |only |merely |purely )?(?:a |an |my )?(?:pure |rough |wild |educated |best )?(?:guess|hunch"
    r"|estimate|ballpark|speculation|assumption|illustration|guesswork)(?! of )|guessed|guessing|from memory"
    r"|unverified|unconfirmed|verified : no|confirmed : no|checked : no|confidence : (?:low|none|zero|poor"
    r"|weak|small|\d%?)|low confidence"
    r"|(?:not|never) (?:been |actually |really |yet |even |been able to |able to |personally |properly "
    r"|bothered to |had (?:a |the )?(?:chance|time) to |gotten around to "
    r"|got round to )*(?:look(?:ed)?(?: (?:it|that|this|them|anything) up| up| into (?:it|this|that)| at (?:it"
    r"|them|anything|the (?:record|list|data)s?)| (?:yet|myself|again|closely|really))?|check(?:ed)?|verif(?:y"
    r"|ied)|confirm(?:ed)?|quer(?:y|ied)|consult(?:ed)?)"
    r"(?: (?:it|that|this|them|anything|either|so|yet|which|myself|any of (?:it|this|that)|the (?:live "
    r"|actual |current |real |underlying )?(?:\w+ )?(?:figures?|price|fee|number|count|list|records?|entries"
    r"|schedule|calendar|system|data|database|total|sum|time|times|slots?|value|values|facts?|details?|source"
    r"|sources|books|listing|listings|tools?)|\d{4}-\d\d-\d\d))?(?: (?:or anything else|for (?:you|myself)|yet"
    r"|myself|so far|first|directly|in the system|with the (?:system|tools?)|against (?:the "
    r"|any )?\w+))* (?:[.;!)-]|,(?! (?:since|because|as|for|nor|by) )|but|and|so|though)"
    r"|made no (?:query|call|look-?up|check)|(?:no|not have|lack|lacked|without|need|had no) access to (?:the "
    r"|any |that |this |its |their |those |[^ ]+ )?(?:live |current |actual |real |\w+ )?(?:schedule|calendar"
    r"|records?|entries|data|database|system|lists?|figures|prices|books|accounts?|files?|logs?|details"
    r"|register|planner|it|them)|cannot vouch|not vouch|(?:please |do |you should |better )(?:count|check"
    r"|verify|confirm|look) (?:them|it|that|this) (?:up )?(?:yourself|for yourself|first|before)"
    r"|treat (?:this|it|that) (?:purely |only |just )?as|take (?:this|it|that) with|do not (?:rely|count|bank"
    r"|quote me|hold me) (?:on|to) (?:it|this|that)|gut feeling|pending (?:a|further|the) (?:check|look"
    r"|confirmation|verification)|subject to (?:verification|confirmation|change|a check|checking)|(?:not"
    r"|only) (?:yet )?(?:seen|skimmed|glanced at) (?:the|any|part|half|one|a few) (?:\w+ )?|(?:i|we) (?:have "
    r"|did |had |could |can )?(?:not|cannot) (?:\w+ )?(?:count(?:ed)?|compared?|open(?:ed)?|load(?:ed)?"
    r"|reach(?:ed)?)(?: (?:it|them|that|this|(?:the|any) (?:\w+ )?(?:calendar|list|page|records?|data|schedule"
    r"|file|files|database|system|entries)))? [.;,!)-]|(?:might|may|could) (?:well )?be (?:out of date"
    r"|outdated|stale|old|obsolete|wrong|off|incorrect)|(?:page|calendar|list|data|schedule|system) (?:would"
    r"|did|will) not load|(?:that is|it is|but) just me|until someone (?:checks|has checked|confirms)"
    r"|got no (?:reply|answer|response)|(?:could|did|can|cannot) (?:not )?get (?:at|to|hold of|into) (?:the "
    r"|any )?(?:data|figures|records?|lists?|system|numbers|details|entries|schedule|calendar)"
    r"|not settled which|(?:db|database|lookup|look-up|search|tool|system|query|server) (?:is|was|were|seems"
    r"|returned|failed|came|kept|gave|timed|did not)(?! through) (?:down|an error|unavailable|offline|nothing"
    r"|failed|failing|out|back|no|work|respond|unreachable)"
    r"|not (?:quite |entirely |really |so |too |very |at all |100 )?(?:sure|certain|confident"
    r"|positive)(?: (?:about|of) (?:it|this|that|the (?:figure|price|fee|number|time|total|sum|count"
    r"|value)))?(?: though| yet| either| at all)* [.;,!)-]"
    r"|hard to (?:say|tell)|who knows|cannot (?:say|tell) which|cannot (?:say|tell) for (?:sure|certain)"
    r"|not (?:say|tell) for (?:sure|certain)|(?:which|that) i doubt|i doubt (?:it|that|this)"
    r"|whether that (?:holds|is (?:right|true|correct))|(?:query|look up|check|pull"
    r"|open) (?:the )?(?:\w+ )?(?:calendar|schedule|records?|data|list|database|system) of) "
)

# -- outdated and reported by others

_OLD_WORD = (
    r"(?:used to|formerly|previously|originally|initially|at first|first(?= (?:thought|said|noted|assumed|read"
    r"|wrote|had|told|put|took|believed|pass|reply|answer|figure|draft|version|guess|attempt|try|count|look))"
    r"|(?:earlier|early|initial|previous|prior|preliminary|first) (?:i|on|figure|version|answer|reply|message"
    r"|note|estimate|number|value|count|response|draft|statement|calculation|result|quote|total|sum|guess"
    r"|reading|attempt|report|post|time of mine)|earlier (?=i )|in my draft|my draft"
    r"|last (?:year|month|week|season|time|summer|winter|spring|autumn)(?: is|'s)?|in the past|back then"
    r"|years? ago|months? ago|a (?:minute|moment|while) ago|until (?:recently|last|yesterday)|yesterday"
    r"|old|older|oldest|outdated|out-dated|out of date|obsolete|stale|archived?|archival|former|expired"
    r"|superseded|cached|historic(?:al)?|legacy|ancient"
    r"|nearly (?:wrote|said|told|put|gave|answered|typed|sent)|almost (?:wrote|said|told|put|gave|answered"
    r"|typed|sent)|before the (?:fix|change|correction|update|review)|wrong(?:ly)?|mistaken(?:ly)?"
    r"|erroneous(?:ly)?|by mistake|in error"
    r"|(?:i|we) (?:have |had |just |also |then |even )*(?:said|told you|named|offered(?: you)?|quoted|gave you"
    r"|claimed|promised|miscounted|reported|wrote|thought|posted|mentioned|assumed|typed|stated|announced"
    r"|believed|misread|miscounted|forgot|mixed up|slipped)"
    r"|(?:i|we|they|he|she|it) (?:had|would) (?:first |just |already |initially |originally |also "
    r"|even )?(?:\w+ed|got|put|come|read|written|said|found|had|thought|taken|arrived|gone|begun"
    r"|started) (?!to )|miscounted|misread|misquoted|(?:whoever|who|someone|somebody"
    r"|anyone) (?:\w+ )?(?:quoted|said|told|gave|wrote|claimed|mentioned))"
)
_OLD_BEFORE = re.compile(
    rf" {_OLD_WORD} (?:(?!(?:now|today|to|new|instead|actually|really|currently|is|not|says|am|are|correct"
    rf"|right|looking|figures|:) ){GAP}){{0,9}}$"
)
_OLD_LABEL = re.compile(
    r" (?:old|older|former|previous(?:ly)?|earlier|first (?:pass|draft|version|reading|attempt|guess|count|try"
    r"|result)|initial(?:ly)?|draft|stale|cached|outdated|expired|before|original(?:ly)?|past|last (?:year"
    r"|month|week)(?:'s)?)(?: [^ :@]+){0,3} : (?:\S+ (?:at|on) )?$"
)
_OLD_AFTER = re.compile(
    r"^ would (?:have )?be(?:en)? (?:\w+ ){0,4}(?:without|only|before|if) |"
    r"^ (?:(?!(?:now|today|but|to|new|and|@) )[^ ]+ ){0,7}(?:last (?:year|month|week|season|time|summer"
    r"|winter)|in the past|back then|previously|formerly|originally|initially|at first|earlier|(?:years?"
    r"|months?|weeks?|a (?:minute|moment|while)) ago"
    r"|until (?:recently|last|yesterday)|in my (?:draft|first|earlier|previous|last|initial)|outdated"
    r"|out of date|obsolete|stale|until (?:the|it|they|this|prices|rates) |too (?:quickly|soon|early|fast"
    r"|hastily)|prematurely|hastily|in haste|(?:is|was) what (?:the |an? |my )?(?:old|cached|stale|previous"
    r"|earlier|outdated|former|last) |(?:was|were|is) (?:only |just |merely )?(?:my |the |an? )?(?:earlier"
    r"|previous|old|former|initial|wrong|outdated|mistaken)) "
)
# Of a claim that stands before, in the sentence or the one before it.
_DISOWNED = (
    r"(?:out of date|outdated|out-dated|obsolete|stale|wrong|incorrect|inaccurate|false|mistaken|erroneous"
    r"|void|voided|invalid|bogus|nonsense|a (?:mistake|slip|typo|misprint|misreading|mix-up|blunder|glitch"
    r"|lie)|an error|superseded|replaced|withdrawn|revoked|expired|deleted|(?:issued |given |quoted |sent "
    r"|posted )?(?:in error|by mistake|by accident|by accident|accidentally)"
    r"|no longer (?:valid|true|current|correct|right|applicable|in force|up to date|holds?|applies|accurate)"
    r"|not (?:valid|true|current|correct|right|up to date|accurate|it|so|the case|reliable|trustworthy"
    r"|to be trusted|in force)|old news|long gone|gone|a thing of the past|of the past|not maintained"
    r"|no longer maintained|no longer|some(?:one|body) else(?:'s)?|last year(?: is|'s)?|ancient history"
    r"|history|untrue|unreliable|off|a different (?:one|entry|row|line)|rescinded|overruled|retracted"
    r"|discarded|scrapped|cancelled out|updated in ages|been updated"
    r"|(?:from|of|for) (?:an?other|a different|someone|somebody|the wrong|last (?:year|month|week|season)"
    r"|an? (?:older|earlier|outdated|old))|what i misread)"
)
_DISOWN_AFTER = re.compile(
    rf"^ (?:(?!(?:but|now|@) )[^ ]+ ){{0,8}}(?:is|was|are|were|has been|have been|had been|turned out to be"
    rf"|turns out to be|proved|proves|seems|looks|got|to be) (?:all |now |simply |plainly |just |clearly |long "
    rf"|in fact |actually |hopelessly |badly |my |the )?{_DISOWNED} "
    r"|^ (?:(?!(?:but|now|@) )[^ ]+ ){0,6}(?:belong(?:s|ed)? to (?:an? )?(?:other|another|different|some(?:one"
    r"|body)|no(?:body| one)|attempt|failed|earlier|old)|lags? behind|(?:does|do|did) not (?:hold|apply|count"
    r"|stand|exist|include|survive|match)|no longer (?:holds?|applies|counts?|stands?|exists?)|never existed"
    r"|timed out|fell through|(?:had|has|have) (?:\w+ )?(?:forgotten|missed|overlooked|misread|miscounted"
    r"|mixed|confused|ignored|erred|slipped|failed)|i (?:do|did) not trust|is not (?:mine|ours|yours)) "
    r"|^ (?:was |is |got |has been |had been )?(?:rejected|discarded|dropped|ruled out|excluded|thrown out"
    r"|struck|struck out|scrapped|crossed out|overruled|binned) "
    r"|^ read @ |^ (?:ignore|no|outdated|wrong|obsolete|void|invalid|old|edited) [.;)]"
)
_DISOWN_BEFORE = re.compile(
    rf" (?:ignore|ignoring|disregard(?:ing)?|forget|scratch|scrap|discard|strike|retract|withdraw|take back"
    rf"|delete|bin|toss|dump|cross out|throw|throw away|void|erase|skip|drop|pay (?:no )?attention to"
    rf"|not (?:trust|go by|rely on|use|believe|quote|count on)|never mind|contrary to|setting aside|throw out"
    rf"|instead of|rather than|other than|as opposed to|replac(?:es|ing)|mixed up|confused|swapped|came up with"
    rf"|ended up with"
    rf"|wrongly|mistakenly|erroneously) (?:(?!(?:but|now|use|is|it|i|with) ){GAP}){{0,6}}$"
)
_BACK = re.compile(
    rf"^ (?:; |done |and |sorry , |oops , |well , |actually , |apologies , |, )*(?:that|this|it|which|those"
    rf"|these|the (?:list|page|site|source|figure|number|note|price|value|former|first|latter|old one|brochure"
    rf"|website|dashboard)|they|both|dashboards|lists|caches) (?:\w+ ){{0,3}}?(?:is|was|are|were|has been"
    rf"|have been|turned out to be|turns out to be|proved|seems|looks|list is) (?:(?:all|now|simply|plainly"
    rf"|just|clearly|long|in fact|actually|hopelessly|badly) )?{_DISOWNED} "
    rf"|^ (?:(?!(?:but|so|i|it|its|@|if) )[^ ]+ ){{1,6}}(?:is|was|are|were|has been|have been"
    rf"|had been) (?:\w+ )?{_DISOWNED} "
    r"|^ (?:; )?(?:(?:a |the )?(?:\w+ )?(?:which|that|this|it|them|result which|figure which|source) )?(?:i"
    r"|we) (?:do|can|am|are|could|would|will|have)?(?: \w+)? ?(?:not|cannot|unable to|hardly"
    r"|never) (?:\w+ )?(?:believe|trust|endorse|support|stand by|go by|rely on|accept|vouch for|buy|share"
    r"|follow) "
    r"|^ (?:; )?(?:that|this|it|which) (?:one )?(?:belongs? to|is (?:for|of|from)|was (?:for|of"
    r"|from)) (?:an?other|a different|some(?:one|body)|no(?:body| one)|the wrong) "
    r"|^ (?:; )?(?:that|the|this|their|its) (?:\w+ )?(?:page|site|list|source|note|figure|sheet)? ?(?:has"
    r"|have) not been (?:updated|touched|maintained|revised)"
    r"|^ (?:; )?(?:please |do |better |so |and )*(?:ignore|disregard|forget|scratch|discard|strike|bin|toss"
    r"|delete|drop|skip|mind not|pay no (?:heed|attention|mind) to|take no notice of|never mind|not (?:mind"
    r"|heed|use|trust|believe|quote)) (?:that|it|this|them|my|those|the (?:figure|number|above|first|former)) "
    r"|^ (?:; )?(?:i )?(?:do|did|would) not (?:trust|go by|rely on|believe) (?:it|that|this|them) "
    r"|^ (?:; )?(?:i )?take (?:that|it) back |^ (?:; )?dashboards? lag"
)
# From here on everything is new: what was said before does not count if a value follows.
_CORRECTION = re.compile(
    r" (?:correction|no , wait|wait , no|no wait|hold on|scratch that|strike that|on second thought"
    r"|i was (?:wrong|mistaken)|i am mistaken|let me correct|i misspoke|i misread|i (?:have to "
    r"|must )?take (?:that|it) back|i meant|make that|or rather|oops|whoops"
    r"|i stand corrected|correcting myself|(?:a|my) mistake|looking again|having looked (?:at \S+ )?again"
    r"|on closer (?:look|inspection)|after (?:checking|looking|a) (?:again|second)|double-checking|upon review"
    r"|recalculated|recount(?:ed|ing)?|the (?:correct|right|real|true|actual|valid) (?:\w+ ){0,3}(?:on \S+ "
    r"|for \S+ |of \S+ )?(?:is|are|was|:)|valid :|after the (?:fix|correction)|second pass"
    r"|and that is the (?:number|figure|one) i (?:stand|go) by) "
)
_TRUSTED = (
    r"(?!(?:\w+ ){0,3}?(?:record|records|system|tool|tools|data|database|live|current|official|actual|raw|figures"
    r"|search|results?|look-?up|calendar|schedule|register|api|response|output|query|total|sum|answer|count|price"
    r"|fee|math|arithmetic|addition|calculation|confirmation|i|it|which|that|this|you|we|&a|&b) )"
)
_REPORTED = re.compile(
    rf" (?:(?:the|an?|my|our|your|some|one|this|that|old|most|several|two) {_TRUSTED}{GAP}|(?:people|others"
    rf"|someone|somebody|they|everyone) )(?:(?!(?:is|are|was|were|and|but|,|:) ){GAP}){{0,4}}?"
    r"(?:says?|said|states?|stated|shows?|showed|gives?|gave|puts?|quotes?|quoted|mentions?|mentioned|reads?"
    r"|tells?|told|suggests?|reports?|insists?|proclaims?|advertises?|arrives? at|arrived at|still (?:has|had"
    r"|lists)) (?:(?!(?:but|i|so) )[^ ]+ ){0,6}$"
    r"| (?:according to|per|going by|judging by|based on|as per) (?:the|an?|my|your|some|this|one"
    r"|that) (?:\w+ ){0,3}(?:lists?|page|site|website|brochure|catalogue|leaflet|flyer|notes?|memo|cache"
    r"|snapshot|colleague|guide|forum|poster|blog|dashboard|archive|newsletter|screenshot|rumou?r)\b"
)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,200}\"(?=,?\s?(?:(?:the|an?|my|our|one|some)\s)?(?:[a-z-]{2,20}\s){1,3}?(?:say|said|claim"
    r"|proclaim|read|state|insist|tell|told|goes|wrot|writ|promis|boast|announc|tout)[a-z]*\b)"
)
_CLAIMS = re.compile(
    r" (?:claims?|claimed|alleges?|would have (?:you|me|us) believe|pretends?|purports?) (?:(?!(?:but|i) )[^ ]+ ){0,6}$"
)


_OPENING_DOUBT = re.compile(
    r" (?:guess|hunch|estimate|ballpark|speculation|assumption|illustration|guesswork|from memory) "
)
_NOT_BEFORE = re.compile(
    rf" (?:no|not|nothing|none|cannot|never|nobody) (?:(?!@ ){GAP}){{0,9}}(?<! not )(?:before|earlier than"
    rf"|sooner than|prior to|until) (?:the |at )*$"
)


class Mood(NamedTuple):
    """How a text stands to one claim."""

    void: bool = False  # denied, retracted, outdated or on a condition
    reported: bool = False  # somebody else says so
    hedged: bool = False
    about: str = ""  # the right thing ("a"), another one ("b"), or nobody knows
    now: bool = False  # said to hold now
    earliest: bool = False  # "nothing before 14:00"


NO_MOOD = Mood()


@dataclass(slots=True)
class Masked:
    """A sentence in its spoken form with the claims masked."""

    line: str
    places: list[int]  # of the masks, in the order of the claims
    thing: list[tuple[int, str]]  # where things are mentioned, and whether it is the right one ("a") or not ("b")


_NEGATED = re.compile(
    r" (?:not|never|nobody|no one|neither|nor|cannot|hardly) (?!(?:only|just|counting|until|before|including"
    r"|to mention|later|more|less) )"
    r"(?:(?!(?:but|only|until|before|earlier|later|than|that|which|what|except|other|and|so|it|because|how|if"
    r"|whether|:|,|@|&a|&b) )[^ ]+ ){0,4}$"
)
_DENIED = re.compile(
    r" (?:no longer|rather than|instead of|unlike|except(?: for)?|excluding|avoid|other than|apart from"
    r"|aside from|besides"
    r"|unable to|cannot|not)(?: (?:at|on|in|for|by|find|the|an?|hotel|museum|place|restaurant|called|named|be|is|it"
    r"|think"
    r"|believe|say|know|confirm|that|cost|costs|take|takes|as|of|even)){0,6} $"
    r"| (?:check|search|compar|consider|review|look)(?:ed|ing)(?: (?:at|up|through))?(?: (?:the|[a-z]+s))? $"
)
_REFUTED = re.compile(
    r"^ (?:is |was |are |were |would be |seems )?(?:not|wrong|incorrect|false|ruled out) "
    r"|^ (?:cannot be|will not|would not) "
)
_FROM = re.compile(r" from (?:the )?$")
_TO_ANOTHER = re.compile(r" (?:[^ @]+ ){0,3}to @ ")
_CHANGED = re.compile(
    r" (?:chang|gone|went|mov|ris|rose|fell|fall|switch|updat|correct|rais|lower|cut|revis|edit|renumber"
    r"|replac)\w* "
)
_REFUSED_ROW = re.compile(
    r"^ (?:no|x) [.;]? ?$|^ (?:lost|loses|trails|lags|is out|is beaten|(?:comes?|came|is) (?:in )?(?:second"
    r"|third|last)|(?:is|was|would be|seems) (?:clearly |definitely |by far )?(?:the )?(?:worse|wrong|weaker"
    r"|inferior|poorer|losing)) "
)
_NOW = re.compile(
    r" (?:(?:is|are|it is|stands|sits|falls|takes place) now|now (?:is|on|for|at|falls|takes place)|still on"
    r"|moved (?:it |\S+ )?(?:over )?to|new (?:date|day|slot|time) (?:is|:)) (?:on |for |at |the )*$"
)
_OR = re.compile(r" (?:or|between)(?: (?:the|at|on|in|about|even|hotel|museum)){0,2} $")
_STRUCK = re.compile(r"~~[^~\n]{1,120}~~")


class Moods:
    """What a text says about the claims of one expected value."""

    def __init__(self, reading: AnswerText, claims: Sequence[Claim], expected: Expected, given: str) -> None:
        self.reading, self.claims, self.given = reading, claims, given
        self.count = len(reading.sentences)
        self.inside: dict[int, list[Claim]] = {}
        for claim in claims:
            self.inside.setdefault(reading.sentence(claim.start), []).append(claim)
        self.mentions: dict[int, list[tuple[int, int, str]]] = {}
        for mention in _mentions(reading.low, expected):
            self.mentions.setdefault(reading.sentence(mention[0]), []).append(mention)
        self._lines: dict[int, Masked] = {}
        self.quoted = [match.span() for match in _QUOTED.finditer(reading.low)] if '"' in reading.low else []
        self.struck = [match.span() for match in _STRUCK.finditer(reading.low)] if "~" in reading.low else []

    def line(self, n: int) -> Masked:
        """A sentence, with its claims and the things that it mentions masked."""
        if n not in self._lines:
            self._lines[n] = self._masked(n)
        return self._lines[n]

    def _masked(self, n: int) -> Masked:
        low, sentence = self.reading.low, self.reading.sentences[n]
        marks = [(c.start, c.end, "@") for c in self.inside.get(n, ())]
        marks += [
            (start, end, f"&{kind}")
            for start, end, kind in self.mentions.get(n, ())
            if not any(s < end and start < e for s, e, _ in marks)
        ]
        pieces: list[str] = []
        at = sentence.start
        for start, end, mark in sorted(marks):
            pieces += (low[at:start].replace("@", " at ").replace("&", " and "), f" {mark} ")
            at = max(at, min(end, sentence.end))
            if low.startswith("'s", at):
                at += 2
        pieces.append(low[at : sentence.end].replace("@", " at ").replace("&", " and "))
        line = spoken("".join(pieces)).replace(" ( @ ) ", " @ ")
        places = [match.start() + 1 for match in re.finditer(" @(?= )", line)]
        things = [(match.start() + 1, match[1]) for match in re.finditer(" &([ab])(?= )", line)]
        return Masked(line, places, things)

    def judge(self) -> dict[int, Mood]:
        """The moods of the claims, by the places of the claims."""
        judged: dict[int, Mood] = {}
        first_later = self._first_after_correction()
        doubted = self._doubted()
        for n, inside in self.inside.items():
            masked = self.line(n)
            for claim, at in zip(inside, masked.places, strict=False):
                own, old = _mood_at(masked.line, at)
                judged[claim.start] = own._replace(
                    void=own.void
                    or claim.start < first_later
                    or is_inside(claim.start, self.struck)
                    or (bool(old) and not (old in _ASKED_FOR and f" {old} " in self.given))
                    or self._taken_back(n, masked, at),
                    reported=own.reported or is_inside(claim.start, self.quoted),
                    hedged=own.hedged or n in doubted,
                    about=self._thing(n, masked, at),
                )
        return judged

    def _taken_back(self, n: int, masked: Masked, at: int) -> bool:
        """Whether the next clause, with no value of its own before the verdict, disowns this one."""
        rest = masked.line[at + 1 :]
        cut = CLAUSE.search(rest)
        if cut:
            tail = " " + rest[cut.end() :].lstrip()
            following = tail.split(" @ ")[0] + " "
            return bool(_BACK.match(following))
        return n + 1 < self.count and bool(_BACK.match(self.line(n + 1).line.split(" @ ")[0] + " "))

    def _doubted(self) -> set[int]:
        """The sentences whose values the text doubts afterwards, or as a whole."""
        if not _DOUBT.search(self.reading.spoken):
            return set()
        doubts = [n for n in range(self.count) if _DOUBT.search(self.line(n).line)]
        opening = {n + 1 for n in doubts if _OPENING_DOUBT.search(self.line(n).line)}
        return opening | set(range(max(doubts, default=-1) + 1))

    def _first_after_correction(self) -> int:
        """Where the values start that a correction leaves standing."""
        first = 0
        for n in range(self.count) if _CORRECTION.search(self.reading.spoken) else ():
            sentence, masked, inside = self.reading.sentences[n], self.line(n), self.inside.get(n, [])
            for match in _CORRECTION.finditer(masked.line):
                later = [c for c, at in zip(inside, masked.places, strict=False) if at >= match.end() - 1]
                following = [c for c in self.claims if c.start >= sentence.end]
                if later or following:
                    first = max(first, (later or following)[0].start)
        return first

    def _thing(self, n: int, masked: Masked, at: int) -> str:
        """Of which thing a claim is made: the right one ("a"), another ("b") or nobody knows ("")."""
        if not self.mentions:
            return ""
        return _nearest(masked, at) or self._topic(n, " latter " in masked.line)

    def _topic(self, n: int, latter: bool) -> str:
        """What a sentence without a thing of its own is about: the last before it that is, else a label after it."""
        for m in range(n - 1, max(-1, n - 6), -1):
            masked = self.line(m)
            if masked.thing:
                if latter:
                    return masked.thing[-1][1]
                kinds = {kind for place, kind in masked.thing if not _is_beaten(masked.line, place)}
                return kinds.pop() if len(kinds) == 1 else ""
        for masked in map(self.line, range(n + 1, min(n + 4, self.count))):
            if masked.thing and not masked.places and len(masked.line.split()) <= 9:
                kinds = {kind for _, kind in masked.thing}
                return kinds.pop() if len(kinds) == 1 else ""
            if masked.thing:
                break
        return ""


# What a request may ask for: "How many pages had the old book?"
_ASKED_FOR = frozenset("old older oldest former previous prior original originally initial earlier".split())


@lru_cache(maxsize=2048)
def _mood_at(line: str, at: int) -> tuple[Mood, str]:
    """What a masked sentence says of one of its masks, and the word before it by which it is outdated.

    With the values masked, most messages come down to a few sentences, so what was read of one is kept.
    """
    segment, (near, rest) = _around(line, at, SEGMENT), _around(line, at, CLAUSE)
    near = f" {near.lstrip()}"
    earliest = bool(_NOT_BEFORE.search(segment[0]))
    old = _OLD_BEFORE.search(near) or _OLD_LABEL.search(near)
    mood = Mood(
        void=bool(CONDITION.search(segment[0]) or CONDITION.search(segment[1]))
        or (not earliest and bool(_NEGATED.search(near) or _DENIED.search(near)))
        or _is_void(line, at, near, f" {rest.lstrip()}"),
        reported=bool(_REPORTED.search(near)),
        hedged=_is_hedged(line, at, near, rest),
        now=bool(_NOW.search(line[:at])),
        earliest=earliest,
    )
    return mood, old[0].split()[0] if old else ""


def _around(line: str, at: int, cut: re.Pattern[str]) -> tuple[str, str]:
    """What stands before and after a mask, within its clause or segment."""
    start, end = 0, len(line)
    for match in cut.finditer(line):
        if match.end() <= at:
            start = match.end()
        elif match.start() > at:
            end = match.start() + 1
            break
    return line[start:at], line[at + 1 : end]


def _is_void(line: str, at: int, near: str, rest: str) -> bool:
    """Whether the clause around a claim says that it is disowned, or what somebody only claims."""
    if _FROM.search(near) and _CHANGED.search(line) and _TO_ANOTHER.match(line[at + 1 :]):
        return True
    before = (_DISOWN_BEFORE, _CLAIMS)
    return any(p.search(near) for p in before) or any(
        p.match(rest) for p in (_REFUSED_ROW, _REFUTED, _OLD_AFTER, _DISOWN_AFTER)
    )


def _is_hedged(line: str, at: int, near: str, rest: str) -> bool:
    """Whether the clause around a claim, or a few words after it ("Alda, I would imagine"), leave it open."""
    tail = line[at + 1 + len(rest) :]
    if len(tail.split()) <= 7 and " @ " not in tail:
        rest += tail
    return bool(HEDGE.search(near) or _OR.search(near) or HEDGE.search(f" {rest.lstrip()}"))


_BEATEN = re.compile(
    r" (?:than|over|above|beats?|beating|ahead of|before|unlike|instead of|not|rather than|compared (?:to"
    r"|with)|versus|vs|against|outranks|outscores|skipp(?:ed|ing)|behind|besides|except|excluding|other than"
    r"|followed by|isn't|nor|neither|cancell?ed|replac(?:es|ed|ing)) (?:the |that of |those of |its rival "
    r"|also |at |for )*$"
)
_BEATEN_AFTER = re.compile(
    r"^&[ab] (?:, )?(?:behind|second|third|next|lost|loses|(?:was |is |got )?(?:passed over|skipped|dropped"
    r"|rejected|ruled out|left out|discarded))\b|^&[ab] (?:\w+ ){0,2}?(?:is|was|are|were|looked|seemed|has|had"
    r"|came|comes|does|did) (?:\w+ )?(?:not|no|nothing|full|fully|busy|second|third|behind|lower|worse|closed"
    r"|unavailable|sold out|booked|out)\b"
)


def _is_beaten(line: str, at: int) -> bool:
    """Whether a thing is only compared with, or dismissed."""
    return bool(_BEATEN.search(line[max(0, at - 60) : at])) or bool(_BEATEN_AFTER.match(line[at : at + 60]))


_OR_BOTH = re.compile(r"^&[ab] (?:and|as well as|,|or|&) (?:also |at |for )?$")


def _nearest(masked: Masked, at: int) -> str:
    """The thing that the words around a claim give: the one before it in its clause, else after it, else before it."""
    if not masked.thing:
        return ""
    cuts = [0, *(m.end() for m in CLAUSE.finditer(masked.line)), len(masked.line)]
    index = bisect_right(cuts, at) - 1
    start, end = cuts[index], cuts[min(index + 1, len(cuts) - 1)]
    if {kind for _, kind in masked.thing} == {"a", "b"}:
        first = masked.thing[0][0]
        for (left, _), (right, _) in zip(masked.thing, masked.thing[1:], strict=False):
            if _OR_BOTH.match(masked.line[left:right]) and left >= first:
                return ""
    good = [(place, kind) for place, kind in masked.thing if not _is_beaten(masked.line, place)]
    for low, high, last in ((start, at, True), (at, end, False), (0, at, True), (at, len(masked.line), False)):
        found = [kind for place, kind in good if low <= place < high]
        if found:
            return found[-1] if last else found[0]
    return ""


def _mentions(low: str, expected: Expected) -> list[tuple[int, int, str]]:
    """Where a text mentions the things that a value could be said of, the longest names first."""
    found: list[tuple[int, int, str]] = []
    for names, kind in ((expected.about, "a"), (expected.rivals, "b")):
        for name in names:
            places = id_places if any(map(str.isdigit, name)) else name_places
            found += [(start, end, kind) for start, end in places(low, name)]
    found.sort(key=lambda item: (item[0], -item[1]))
    kept: list[tuple[int, int, str]] = []
    for item in found:
        if not kept or item[0] >= kept[-1][1]:
            kept.append(item)
    return kept
