"""Nothing is left, or nothing was found."""

from __future__ import annotations

from crosswind.text.speech.vocabulary import (
    ADVERB,
    KNOWING,
    LY,
    NO,
    OPENING,
    PLACE,
    TASK,
    UNABLE,
    UNREPORTED,
    any_of,
    gap,
    word_set,
)

FILLED = word_set(
    "no not any sold fully up out solid full none neither all every everything each nothing zero taken gone"
)
FULL = any_of(
    rf" (?:no|not any|not have any) (?:available|free|open|remaining|vacant) (?:\w{{1,20}} )?{PLACE}",
    rf" (?:{NO}|not have any ){gap(3)}{PLACE}(?:"
    rf"{gap(6)}(?:left|available|free|remaining|open) "
    rf"|{gap(8)}(?:that|those|these|this|your|requested) (?:dates?|days?|times?|week|month|evening|nights?|period"
    r"|conditions|criteria) "
    r"|(?:fits?|match|meets?|suits?) "
    rf"|{gap(2)}(?:i|we) (?:could|can) )",
    rf" (?<! you have )(?:{NO}|not have (?:any|an?) ){UNREPORTED}{gap(3)}{PLACE}"
    rf"(?:{gap(8)}(?:on|for|before|after|between|until) (?:\d|monday|tuesday|wednesday|thursday|friday|saturday"
    rf"|sunday)"
    rf"|{gap(5)}(?:has|have|had|with|long enough|big enough|large enough|fits?|takes?|offers?) )",
    rf" there (?:is|are|was|were) {NO}{UNREPORTED}{gap(3)}{PLACE}(?!limit)",
    rf" (?:none|neither) of {gap(2)}{PLACE}{gap(6)}(?:has|have|had|is|are|was|were|fits?|offers?|can|could|holds?"
    r"|carr(?:y|ies)|takes?|seats?) ",
    rf" neither {gap(4)}nor {gap(4)}(?:has|have|had) ",
    rf" nothing {gap(4)}(?:fits?|fitted|left|free|available|suitable|open|long enough|remains|remained) (?!to |of )",
    rf" {PLACE}{gap(6)}(?:carry|carries|takes?|holds?) nothing ",
    rf" no (?!other |earlier |later )(?:{PLACE}|{TASK}){gap(6)}(?:can|could) (?:carry|take|hold|leave|go|fit) ",
    rf" (?:is|are|was|were) {LY}full (?:on \d|that day|on that)",
    r" (?:(?:that|chosen|requested|wanted) (?:day|date|slot|time|evening)|(?:day|date|slot|time|evening) (?:that )?you"
    rf" (?:have )?\w{{1,12}}) (?:is|was) {LY}(?:full|taken|gone) ",
    rf" (?:all|every|everything|each) {gap(6)}(?:(?:is|are|was|were) {LY}(?:taken|full|gone|occupied)"
    r"|(?:has|have|had) (?:fewer|less|too (?:few|little))) ",
    r" (?:sold out|fully booked|booked up|booked out|booked solid|out of stock|completely full|no availability) ",
    rf" (?:none|neither) (?:of {gap(4)})?(?:is|are|was|were) (?:free|available|left|open) ",
    rf" (?:all|every) (?:of )?(?:the )?{gap(2)}{PLACE}{gap(4)}(?:is|are|was|were) {LY}(?:taken|booked|full|gone"
    r"|occupied|shorter|too (?:short|small)) ",
)
LOSING = word_set("cannot not no unable nothing none nobody zero")
_SUPPLY = r"(?:shipments?|deliver(?:y|ies)|restock(?:ing|s)?|refills?|consignments?) "
LOST = any_of(
    rf" (?:i|we) (?:{ADVERB}{UNABLE} {KNOWING}"
    r"|do not (?:yet |currently )?(?:have|know) (?:your|the|which|what|who|where|whether|enough|when) )",
    # Something that was sought is not there at all.
    rf" there (?:is|are|was|were|exists?) {NO}{UNREPORTED}",
    r" (?<! you )(?<! i )(?<! we )(?:(?:has|have|had) no|(?:does|did) not (?:(?:seem|appear) to )?have (?:an?|any)) "
    rf"{UNREPORTED}",
    rf" no {UNREPORTED}{gap(6)}(?:found|exists?|on file|listed|registered) ",
    rf"{OPENING}no (?:matching |such |{UNREPORTED}{gap(3)}(?:in|at) )",
    rf" (?:not one|not a single) {UNREPORTED}",
    r" not to be (?:had|found) ",
    rf" (?:found|finds?|returned|returns|gave|yields?|yielded|shows?|showed|got) (?:nothing|no|none|zero|not an?) "
    rf"{UNREPORTED}",
    rf" none of {gap(3)}(?:is|are|was|were) (?:on|at|in|for|with|from) ",
    rf" (?:do|does|did) not {LY}(?:carry|sell|stock|employ|list) (?!\d|enough |that (?:many|much) |as |more |less )"
    rf"{UNREPORTED}",
    rf" (?:runs?|sells?|carr(?:y|ies)|stocks?|employs?|lists?|keeps?) no {UNREPORTED}",
    rf" no {gap(1)}{_SUPPLY}{gap(8)}(?:planned|due|coming|expected|brings?|has|have|reach(?:es)?) ",
    rf" (?:no|not any|not an?) {gap(1)}(?:mails?|emails?|messages?|files?) (?:about|on|regarding|concerning|called"
    r"|titled|with (?:the|that) (?:topic|subject)) ",
    r" (?:no one|nobody) (?:(?:is|was|has|will be|seems to be) )?(?:listed as )?(?:on call|on duty|the pager"
    r"|on the rota|on-call) (?:in|for|at|on|there|then|that) ",
    rf" (?:no one|nobody) {gap(6)}(?:accepts?|takes?|offers?|treats?|is free|is available) ",
    rf"{OPENING}(?:{UNABLE}|unable|not able) {KNOWING}",
    r" (?:could not|cannot) be (?:found|located|identified|verified|determined|matched) ",
    rf" no (?:such |longer exists? |{gap(3)}(?:called|named|matching|matches|under|by (?:the|that) name) )",
    r" not (?:(?:seem to |appear to )?exist|found|registered|on file|recogni[sz]ed|in (?:the|our|my) (?:system|database"
    r"|records)) ",
)
