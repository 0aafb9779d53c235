"""What a third verdict, "unclear", would cost and save: rules that let a reading of words stand, on stored endings.

    python bench/ending_gates.py bench/endings/sealed.jsonl.xz bench/endings/held.jsonl.xz

Each rule sees the verdict of the reader and the words of the message, and says whether that verdict stands. None is
part of the judge; docs/results/endings.md has the figures and what follows from them.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.core.registry import domains
from crosswind.text.answers.decision import _echoes, _is_allied
from crosswind.text.answers.finders import FINDERS
from crosswind.text.answers.reading import AnswerText, Claim, Expected
from crosswind.text.sentences import CLAUSE, spoken

Words = frozenset[str]
stored: Any = importlib.import_module("endings")  # the file beside this one, not the folder of that name


def _set(text: str) -> Words:
    return frozenset(text.split())


RISKY = _set(
    "not no never none nobody nothing neither nor cannot without hardly isnt unless if may might could would "
    "should must ought perhaps maybe probably possibly likely unlikely seem seems appear appears appeared seemed "
    "guess guessed guessing think thought believe believed assume assumed assuming suppose supposed supposedly "
    "estimate estimated estimates reckon expect expected hope hopefully imagine suspect provided providing "
    "depending depends whether until till but however although though yet while instead rather than except "
    "whereas despite otherwise old older oldest earlier previous previously former formerly was were had used "
    "originally initially yesterday ago last past outdated stale cached said says say told claims claim claimed "
    "according reported reportedly listed quoted heard wrong mistake mistaken error incorrect actually sorry "
    "correction corrected correcting wait scratch ignore disregard retract withdraw withdrawn typo misread oops "
    "revised longer about around roughly approximately nearly almost circa or either between vs versus compared "
    "false lie invalid void allegedly rumour bet sure certain unsure doubt doubtful hunch memory verify verified "
    "verifying confirm checked check unverified pending still again first then now different another other others "
    "second else someone somebody anyone they he she him his her their people friend colleague brochure website "
    "page list flyer draft note memo superseded replaced replace cancelled cancel rescinded revoked expired "
    "disowned disown deny denied untrue bogus nonsense forget forgot skip strike stand stands when once as soon "
    "after before case condition conditional conditionally contingent subject hypothetical hypothetically theory "
    "theoretically principle ish approx ballpark somewhere somewhat apparently presumably seemingly evidently"
)
MILD = _set(
    "was were had now first then still again after when as list page note second sure checked check people he "
    "they their them his her another different stand stands than reported listed before expected confirm about "
    "compared early earliest said"
)
BACK = _set(
    "wrong mistake mistaken incorrect correction corrected scratch ignore disregard retract withdraw withdrawn "
    "typo misread oops outdated stale guess guessing guessed unverified estimate sorry actually trust rely memory "
    "superseded expired invalid verified verify maybe perhaps probably doubt unsure certain obsolete false void "
    "vouch"
)
TURNS = BACK | _set(
    "if unless provided assuming checked confirm confirmed old earlier previous previously not cannot never no"
    " uncertain would could might may should but however though although hold sure replaced longer wait instead"
    " rather nothing none without neither nor nobody hardly"
)
PLAIN = _set(
    "the a an of at for on in to is are and it its your you i we this that with has have there total comes come "
    "altogether here per by be will cost costs price prices priced fee fees charge charges charged euro euros eur "
    "ticket tickets entry admission rate rated rating highest best pay amount amounts answer result value number "
    "count found looked up see which one cheaper cheapest less lower pricier dearer more busy busier least booked "
    "book reserved reservation booking reference id code confirmed made placed done set all confirmation time "
    "date slot appointment order meeting transfer deployment scheduled moved changed rescheduled new shifted "
    "visit next free available opening opens start starts begins hi hello thanks thank please great good news ok "
    "okay yes ready complete completed successfully success everything went through requested asked review "
    "reviews prescription prescriptions sale sales file files task tasks dispute disputes incident incidents open "
    "unit hourly daily so sum makes amounted adding together overall exactly precisely just only figure equals "
    "right correct me my us our let know anything help further happy enjoy day nice"
)
NEGATED = _set(
    "not no never none nobody nothing neither nor cannot without hardly unable impossible unavailable full "
    "refused declined denied rejected suspended blocked barred unfortunately sorry fails failed"
)
DONE = _set(
    "booked reserved done confirmed cancelled moved placed scheduled made completed complete successful success "
    "secured arranged rescheduled changed shifted set sorted in ordered processed submitted transferred sent "
    "deployed held gone called off dropped removed"
)


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower()))


class Ending(NamedTuple):
    """A message with what its judge knows."""

    frame: Any
    text: AnswerText
    given: AnswerText
    expected: tuple[Expected, ...]
    facts: tuple[Expected, ...]
    refuse: bool
    checks: dict[str, bool]
    known: set[str]  # words of the request, the policy and the tools

    @property
    def verdict(self) -> bool:
        return all(self.checks.values())

    def sentences(self) -> list[set[str]]:
        return [words(spoken(self.text.low[s.start : s.end])) for s in self.text.sentences]

    def claims(self, item: Expected) -> tuple[list[Claim], list[Claim]]:
        """Mentions of a value, and of others that are not in the request."""
        found = FINDERS[item.kind](self.text, item, self.given)
        allies = [other for other in self.expected if other is not item]
        rivals = [
            c
            for c in found
            if not (c.match or c.soft or _echoes(c, item.kind, self.given, item) or _is_allied(c, item, allies))
        ]
        return [c for c in found if c.match], rivals

    def names_another(self, item: Expected, n: int) -> bool:
        sentence = self.text.sentences[n]
        low = self.text.low[sentence.start : sentence.end]
        return any(name.lower() in low and name.lower() not in self.given.low for name in item.rivals)

    def clause(self, claim: Claim) -> set[str]:
        sentence = self.text.sentences[self.text.sentence(claim.start)]
        low = self.text.low
        line = spoken(f"{low[sentence.start : claim.start]} @ {low[claim.end : sentence.end]}")
        at, start, end = line.find("@"), 0, len(line)
        for cut in CLAUSE.finditer(line):
            start = cut.end() if cut.end() <= at else start
            end = min(end, cut.start() + 1) if cut.start() > at else end
        return words(line[start:end])


def deed(e: Ending, *, whole: bool) -> bool:
    """Does a verdict on what was done or refused stand: do the words of success and of failure agree with it?"""
    said = e.sentences()
    hollow = NEGATED if e.refuse else (RISKY - words(e.given.low) - {"cancelled"})
    clean = any(s & DONE and not s & hollow for s in said)
    negated = any(s & NEGATED for s in said)
    if e.refuse and e.verdict:
        return negated and not clean
    if e.refuse:
        return (clean and not negated) if whole else (clean or not negated)
    return (clean and not (whole and any(s & TURNS for s in said))) if e.verdict else not clean


def agree(e: Ending, *, strict: bool) -> bool:
    """A pass stands where the clause of the value holds no risky word; a fail where every such clause does."""
    said, given = e.sentences(), words(e.given.low)
    for item in e.expected:
        match, rivals = e.claims(item)
        if not match:
            return True
        plain = [
            c
            for c in match
            if not e.clause(c) & (RISKY - MILD - given)
            and not said[e.text.sentence(c.start)] & {"if", "unless", "provided", "assuming"}
            and not e.text.sentences[e.text.sentence(c.start)].question
            and not (item.kind not in ("name", "choice") and e.names_another(item, e.text.sentence(c.start)))
        ]
        last = max((e.text.sentence(c.start) for c in plain), default=0)
        back = any(s & (BACK - given) for s in said[last:])
        if e.verdict and (not plain or back):
            return False
        if e.verdict and strict and (rivals or len(plain) < len(match) or any(s & (BACK - given) for s in said)):
            return False
        if not e.verdict and plain and (strict or not (back or rivals or not e.checks.get("facts", True))):
            return False
    return True


def message(e: Ending) -> bool:
    """Nothing in the sentences of the value is risky, nothing in the others turns, and no other value is said."""
    said, given = e.sentences(), words(e.given.low)
    for item in e.expected:
        match, rivals = e.claims(item)
        if not match:
            return True
        used = {e.text.sentence(c.start) for c in match}
        other = [n for n in range(len(said)) if e.names_another(item, n)]
        plain = [
            n for n in used if not said[n] & (RISKY - given) and not e.text.sentences[n].question and n not in other
        ]
        turned = any(s & TURNS for n, s in enumerate(said) if n not in used)
        if bool(plain) if not e.verdict else (len(plain) < len(used) or turned or bool(rivals) or bool(other)):
            return False
    return True


def shape(e: Ending) -> bool:
    """Every word beside the value is known, and none is risky. Messages without a value to state never stand."""
    if e.refuse or not e.expected:
        return False
    given = words(e.given.low)
    known = (PLAIN | e.known) - (RISKY - given)
    for item in e.expected:
        match, rivals = e.claims(item)
        if not match:
            return not e.verdict
        names = words(" ".join(map(str, (*item.about, item.value)))) - RISKY
        used = {e.text.sentence(c.start) for c in match}
        for n, said in enumerate(e.sentences()):
            strange = any(w not in known | names and len(w) > 4 for w in said) or said & (RISKY - given)
            if (strange or e.text.sentences[n].question) if n in used else said & TURNS:
                return False
        if rivals or not e.verdict or any(e.names_another(item, n) for n in range(len(e.text.sentences))):
            return False
    return True


RULES: dict[str, Any] = {
    "no third verdict": lambda e: True,
    "clause agrees": lambda e: agree(e, strict=False) if e.expected else deed(e, whole=False),
    "clause agrees, no rival": lambda e: agree(e, strict=True) if e.expected else deed(e, whole=False),
    "whole message agrees": lambda e: message(e) if e.expected else deed(e, whole=True),
    "known words only": shape,
}


def endings(path: Path) -> list[Ending]:
    out = []
    for frame in stored.frames([path]):
        for card, text in stored.filled(frame):
            domain, certificate = domains[card.domain], card.certificate
            task, end = certificate.task, certificate.gold.session.world.state
            family, start = domain.family(task), domain.state(task)
            specs = [entry.spec for entry in domain.world_class.entries.values()]
            known = words(" ".join(f"{s.name} {s.doc} {' '.join(s.params)}" for s in specs).replace("_", " "))
            out.append(
                Ending(
                    frame,
                    AnswerText(text),
                    AnswerText(task.brief.query),
                    () if task.refuse else tuple(family.answer(task, start, end)),
                    () if task.refuse else tuple(family.facts(task, start, end)),
                    task.refuse,
                    {check.name: check.passed for check in family.checks(task, start, end, text)},
                    known | words(f"{task.brief.query} {task.brief.policy}"),
                )
            )
    return out


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for ending in endings(path):
            for kind in (ending.frame.kind, "all"):
                counts[kind]["n"] += 1
                for name, stands in RULES.items():
                    if not stands(ending):
                        counts[kind][f"{name} unclear"] += 1
                    elif ending.verdict != (ending.frame.expect == "pass"):
                        counts[kind][f"{name} wrong"] += 1
        head = f"| class | endings | {' | '.join(RULES)} |\n|---|---{'|---' * len(RULES)}|"
        print(f"\n{path.name}: wrong / unclear\n\n{head}")
        for kind, found in counts.items():
            n = found["n"]
            cells = (f"{found[f'{r} wrong'] / n:.1%} / {found[f'{r} unclear'] / n:.0%}" for r in RULES)
            print(f"| {kind} | {n} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
