"""The facts that a career tells early and needs later: which values each has, and how it is put into words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Literal

from crosswind.core.domain import Family
from crosswind.core.flow import rng_for
from crosswind.core.memory import HOLE, Need, Telling, Value
from crosswind.core.state import State
from crosswind.core.types import Model, Task
from crosswind.domains.desk import Desk
from crosswind.domains.graphs import Graph
from crosswind.words import banks

How = Literal["set", "meanwhile", "over", "hearsay"]
Sort = Literal["fact", "preference", "rule", "interface"]
CAREER = (
    "You serve one user in one conversation after the other. What the user or a notice tells you for later holds in "
    "later conversations, and is not repeated, until the user or a newer notice says otherwise. What the user passes "
    "on as the opinion of others changes nothing."
)


class KnownFact(Model):
    """A family of dependency: what is told, and how a request refers to it."""

    name: str
    sort: Sort
    role: str = ""  # of the detail that it is about
    rule: str = ""  # of the house, for rules and interface facts
    clause: str = ""  # what is told; a detail says "my usual ... is ..." unless there is one
    default: str = ""  # the same of a rule that is not in force
    ask: str = ""  # ends a request that a rule applies to

    def fits(self, family: Family) -> bool:
        """Can requests of a family depend on it?"""
        if not isinstance(family, Graph) or family.refusal or type(family).withhold is not Family.withhold:
            return False
        return self.rule in family.house_rules if self.rule else self.role in family.roles

    def key(self, family: Family) -> str:
        """The detail of a request that it is about; empty for a rule."""
        if self.rule or not isinstance(family, Graph):
            return ""
        return dict(zip(family.roles, family.details, strict=True))[self.role]

    def values(self, domain: Desk, state: State, rng: Random) -> tuple[Value, Value]:
        """The value in force and the rival."""
        records = domain.records
        if self.rule in ("latest", "strict"):
            return "yes", "no"
        if self.rule == "surcharge":
            a, b = rng.sample(range(2, 10), 2)
            return str(a), str(b)
        if self.rule == "spare":
            return str(rng.choice(domain.spares)), "0"
        if self.role == "kind":
            first, second = rng.sample(records.kind_names, 2)
            return first, second
        if self.role == "date":
            first, second = rng.sample(records.dates(state), 2)
            return first, second
        if self.role == "need":
            one, two = rng.sample(list(records.needs), 2)
            return one, two
        while True:
            drawn = [self._value(domain, state, rng) for _ in range(2)]
            if drawn[0] != drawn[1]:
                return drawn[0], drawn[1]

    def _value(self, domain: Desk, state: State, rng: Random) -> str:
        records = domain.records
        if self.role == "who":
            return records.someone(rng, state)[0]
        if self.role == "means":
            return records.some_means(rng)
        return records.group(state, rng.randrange(records.groups(state.size)))

    def said(self, domain: Desk, value: Value) -> str:
        """What holds with a value, as part of a sentence."""
        if self.rule:
            holes = {
                "slot": banks.noun(domain.name, "slot"),
                "fee": banks.noun(domain.name, "fee"),
                "need": banks.noun(domain.name, "need", "units"),
                "n": value,
            }
            return (self.default if value in ("no", "0") else self.clause).format_map(holes)
        detail = domain.details[self.role]
        subject = detail.known if self.role in ("who", "date") else f"my usual {detail.label}"
        return f"{subject} is {value}"

    def telling(self, domain: Desk, value: Value, how: How, salt: object) -> Telling:
        """Words that tell a value; wordings differ by the salt."""
        said = self.said(domain, value)
        official = self.sort == "interface" and how == "set"
        if how == "over":
            about = said.partition(" is ")[0]
            words = f"I am back, so what I told you for the time of my absence about {about} no longer holds."
        else:
            words = rng_for("telling", salt).choice(FORMS["notice" if official else how]).format(said=said)
        return Telling(
            fact=self.name,
            value=value,
            words=words,
            by="hearsay" if how == "hearsay" else "notice" if official else "user",
            how="set" if how == "hearsay" else how,
        )

    def need(self, domain: Desk, task: Task, value: Value, rival: Value, rng: Random) -> Need | None:
        """How a request refers to it; None where no wording of the family can."""
        family, stated = domain.family(task), task.brief.stated
        key = self.key(family)
        said = {k: HOLE if k == key else v for k, v in stated.items()}
        ask = f" {self.ask}" if self.ask else ""
        wordings = [w for w in family.queries if not key or _has_room(w, key, self.role, domain)]
        if not wordings:
            return None
        return Need(
            fact=self.name,
            value=value,
            rival=rival,
            key=key,
            rule=self.rule,
            sentence=rng.choice(wordings).format_map(said) + ask,
            known=domain.details[self.role].known if key else "",
            policies={str(v): self._policy(domain, v) for v in (value, rival)} if self.rule else {},
        )

    def _policy(self, domain: Desk, value: Value) -> str:
        said = self.said(domain, value)
        return f"The user says: {said}." if self.sort == "rule" else f"{said[0].upper()}{said[1:]}."


def _has_room(wording: str, key: str, role: str, domain: Desk) -> bool:
    """Does a wording still read well with a phrase in the place of a value?"""
    match = re.search(rf"(\w*)\W*\{{{key}\}}(\S*)(?: (\w+))?", wording)
    if match is None or match[2].startswith("'") or match[2][:1].isalpha():
        return False
    if role == "who":
        return match[1].lower() != domain.records.person_noun
    if role == "need":
        return bool(domain.details[role].label.endswith(f" {match[3]}"))
    return True


FORMS: dict[str, Sequence[str]] = {
    "set": (
        "Please remember for later: {said}.",
        "For later requests: from now on, {said}.",
        "Something to keep in mind for another time: {said}.",
    ),
    "meanwhile": ("While I am away and until I say that I am back, {said}.",),
    "hearsay": (
        "A colleague of mine is of the opinion that {said}.",
        "By the way, somebody in the corridor claimed that {said}.",
    ),
    "notice": ("Notice of today, which is not shown again: {said}.",),
}
FACTS = (
    KnownFact(name="identity", sort="fact", role="who"),
    KnownFact(name="occasion", sort="fact", role="date"),
    KnownFact(name="place", sort="preference", role="group"),
    KnownFact(name="sort", sort="preference", role="kind"),
    KnownFact(name="amount", sort="preference", role="need"),
    KnownFact(name="means", sort="preference", role="means"),
    KnownFact(
        name="latest",
        sort="rule",
        rule="latest",
        clause="my rule for choosing a time is to take the latest {slot} that fits instead of the earliest",
        default="my rule for choosing a time is to take the earliest {slot} that fits",
        ask="Keep to my rule for choosing a time.",
    ),
    KnownFact(
        name="strict",
        sort="rule",
        rule="strict",
        clause="my rule for minimum values is that only what is above the minimum counts, not what equals it",
        default="my rule for minimum values is that what equals the minimum counts too",
        ask="Keep to my rule for minimum values.",
    ),
    KnownFact(
        name="gross",
        sort="interface",
        rule="surcharge",
        clause='the meaning of "gross" in a request is that {n} is added to every {fee} that the tools show, before '
        "anything is reported or added up",
        default='the meaning of "gross" in a request is that nothing is added to any {fee}',
        ask='Mode of this request: "gross".',
    ),
    KnownFact(
        name="reserve",
        sort="interface",
        rule="spare",
        clause='the meaning of "reserve" in a request is that at least {n} {need} more than it needs must be left in '
        "the {slot} that is chosen",
        default='the meaning of "reserve" in a request is that the {slot} that is chosen may become full',
        ask='Mode of this request: "reserve".',
    ),
)
BY_NAME = {fact.name: fact for fact in FACTS}


def facts_of(domain: Desk) -> list[KnownFact]:
    """The facts that some family of a domain can depend on."""
    return [fact for fact in FACTS if any(map(fact.fits, domain.families.values()))]
