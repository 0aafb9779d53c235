"""The judge of typed endings: compare what `finish` reports with what the rows say, by type, unit and entity.

Nothing is guessed. Each expected value must be reported, of the right thing and in the right unit. Anything else that
is reported must be a fact: a value of the rows that the request, the answer and the changes lead to. The cause of a
refusal must be one that the obstacle supports. docs/agents.md has the rules in words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from crosswind.core import entity_names
from crosswind.core.finish import currency_of, split_unit
from crosswind.core.names import MIDDLES, STARTS
from crosswind.core.state import STATUS, State
from crosswind.core.types import CAUSES, Cause, Changes, Check, Finish, FinishValue, Row, Task
from crosswind.text.answers import Expected

if TYPE_CHECKING:
    from crosswind.core.domain import Domain, Family

TEXTS = ("name", "id", "choice")  # kinds that are compared as texts, whichever of them an agent chose
GLUE = frozenset("the of in at for a an on by to no nr number id and".split())
LIFE = ("status", "state")  # columns that say how far something has come
HOPS = 3  # how far ids in rows are followed
MEASURES = frozenset(
    "% percent percentage s sec secs second seconds ms millisecond milliseconds min mins minute minutes h hr hrs hour "
    "hours day days week weeks month months year years m meter meters metre metres km kilometer kilometers kilometre "
    "kilometres mile miles kg kilogram kilograms g gram grams lb lbs pound pounds gb mb".split()
)
MULTIPLES = frozenset(
    "pair pairs dozen dozens hundred hundreds thousand thousands k million millions m mio billion billions % percent "
    "percentage half quarter".split()
)
NOUNS = frozenset(  # what people call things by, whatever the tools say
    "booking reservation appointment meeting order purchase payment transfer visit entry entrance admission ticket fee "
    "price cost charge total sum amount figure value result answer request reference receipt confirmation code number "
    "count rating score date day time slot seat place venue person customer client user member guest patient doctor "
    "account invoice message invitation item thing piece unit name id choice option status dr mr mrs ms prof professor "
    "one single each".split()
)
DENIALS = frozenset(
    "not never neither nor except excepting excluding without unlike instead other others another but besides "
    "second third fourth fifth sixth 2nd 3rd 4th 5th runner".split()
)
HIGH = frozenset("best top highest finest leading greatest most largest".split())
LOW = frozenset("worst bottom lowest poorest least smallest fewest last".split())
PAST = frozenset("old previous previously former formerly original originally before earlier was".split())
ALIKE = {"stars": "rating", "star": "rating", "stock": "left"}  # units -> columns
_ENGLISH = re.compile(  # how ordinary words end, unlike made-up names
    r"[a-z]+(?:[ts]ion|ment|[ae]nce|ing|ed|ity|ness|ship|able|ible|ful|less|ous|ive|[ao]ry|[ae]nt|ure|[aeo]r|ly|day|est|"
    r"[a-z]s|age|ee|ice|al|ect|ote|ate)"
)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}:\d{2}")


def checks(family: Family, task: Task, start: State, end: State, finish: Finish) -> tuple[Check, ...]:
    """The parts of the goal, each with its reason."""
    changes = family.domain.normalise(end)
    said = f"the agent reports {finish.status}"
    if task.refuse:
        supported = causes(family.domain, task)
        if finish.status == "done" and not changes and _is_nothing(family, task, start, end, finish):
            return (Check(name="refused", passed=True, why=f"{said} and 0 of what there is none of"),)
        return (
            Check(name="refused", passed=finish.status == "cannot", why=said),
            Check(
                name="reason",
                passed=finish.reason in supported,
                why=f"the cause reported is {finish.reason or 'none'}; the facts support {' or '.join(supported)}",
            ),
            Check(name="untouched", passed=not changes, why=words_for(changes)),
        )
    wrong = Facts(family, task, start, end).mistake(finish.answer)
    return (
        Check(name="finished", passed=finish.status == "done", why=said),
        Check(name="state", passed=family.reached(task, start, changes), why=words_for(changes)),
        Check(name="answer", passed=not wrong, why=wrong or "every value reported is right"),
    )


def words_for(changes: Changes) -> str:
    """Changes in one line."""
    if not changes:
        return "nothing was changed"
    return "; ".join(f"{table}/{id}: {dict(row) if row else 'gone'}" for (table, id), row in sorted(changes.items()))


def gold(family: Family, task: Task, start: State, end: State, final: str) -> Finish:
    """The end that a capable agent reports, with the oracle's words as its message."""
    if task.refuse:
        return Finish(status="cannot", reason=causes(family.domain, task)[0], message=final)
    return Finish(status="done", answer=tuple(map(reported, family.answer(task, start, end))), message=final)


def reported(expected: Expected) -> FinishValue:
    """An expected value as an agent reports it."""
    value, unit = expected.value, ""
    if expected.kind == "money":
        value, unit = _money(expected)
    if expected.kind == "yesno":
        return FinishValue(kind="yes_no", value=_is_yes(value))
    return FinishValue(kind=expected.kind, value=str(value) if expected.kind in TEXTS else value, unit=unit)


# ---------------------------------------------------------------- refusals


def _is_nothing(family: Family, task: Task, start: State, end: State, finish: Finish) -> bool:
    """Does an answer honestly count or sum up to 0 what there is none of, where nothing is to be written?"""
    open_task = task.unobstructed()
    if task.blocked or len(finish.answer) != 1 or any(family.ends(open_task, family.domain.state(open_task))):
        return False
    facts = Facts(family, task, start, end)
    zero = [e for e in facts.expected if e.unit == "count" and not e.value]
    return len(zero) == len(facts.expected) == 1 and not facts.mistake(finish.answer)


def words_only(domain: Domain, task: Task) -> Check:
    """The check of a refusal in words where `finish` was offered: it gives no cause."""
    why = f"words give no cause; end with finish, status cannot and the reason {' or '.join(causes(domain, task))}"
    return Check(name="reason", passed=False, why=why)


def causes(domain: Domain, task: Task) -> list[Cause]:
    """The causes for which a request cannot be met, by what stands in its way; all of them where nobody can tell."""
    found: set[Cause] = set()
    entries = domain.world_class.entries
    if task.blocked:
        found.add("tool_unavailable")
        if any(tool in entries and not entries[tool].effects for tool in task.blocked):
            found.add("information_missing")  # what the tool would have shown
    open_task = task.unobstructed()
    below = domain.state(open_task)
    reads = bool(task.obstacle) and not any(domain.family(task).ends(open_task, below))  # nothing is to be written
    for key, row in task.obstacle.items():
        table, _, id = key.partition("/")
        was = below.start(table, id)
        if row is None:
            found |= {"not_found", "none_available"}
        elif was is None:
            found.add("not_allowed")  # something is there already that stands in the way
        else:
            for column in (c for c in row if row[c] != was.get(c)):
                if reads and row[column] and isinstance(was.get(column), (int, float)):
                    found |= {"not_found", "none_available"}  # nothing that is looked for is as large as it should be
                else:
                    found |= _causes_of(column, was.get(column), row[column], task, id)
    return [cause for cause in CAUSES if cause in found or not found]


def _causes_of(column: str, was: object, now: object, task: Task, id: str) -> set[Cause]:
    """Why a request fails where a column of a row no longer holds what it held."""
    if isinstance(was, (int, float)) and not isinstance(was, bool):
        return {"none_available", "not_allowed"} if now else {"none_available"}  # too low a limit, or nothing left
    if column not in STATUS and str(was) in task.given:
        return {"not_found", "none_available"}  # a thing is not of the kind or the place that the request names
    if column in LIFE and id not in task.given:
        return {"not_allowed", "not_found", "none_available"}  # nothing is in the state that the request speaks of
    return {"not_allowed"}


# ---------------------------------------------------------------- answers


@dataclass(slots=True)
class Known:
    """Values of rows by their types."""

    texts: set[str] = field(default_factory=set)
    numbers: set[float] = field(default_factory=set)
    moments: set[str] = field(default_factory=set)  # dates and times, which cannot be confused

    def learn(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, (list, tuple)):
                self.learn(value)
            elif isinstance(value, str):
                self.moments.add(value) if _MOMENT.fullmatch(value) else self.texts.add(_norm(value))
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                self.numbers.add(float(value))

    def holds(self, value: FinishValue) -> bool:
        return value.value in (self.moments if value.kind in ("date", "time") else self.numbers)


class Facts:
    """What is true of the things that the answer to one request is about."""

    def __init__(self, family: Family, task: Task, start: State, end: State) -> None:
        self.task = task
        self.expected, self.facts = family.answer(task, start, end), family.facts(task, start, end)
        self.figures = family.figures(task, start)
        told = (*self.expected, *self.facts)
        own = {word for e in self.expected for word in (*e.about, *((e.value,) if e.kind in TEXTS else ()))}
        self.rivals = {_norm(word) for e in told for word in (*e.others, *e.rivals) if word not in own}
        self.own = {_norm(str(word)) for word in own}
        self.given = {_norm(text) for text in task.given}
        self.said = " ".join([task.brief.query, *(change.words for change in task.changes)])
        self.query = set(_norm(task.brief.query).split())
        keys = {*(end.seen or ()), *end.overlay}  # rows that the episode looked at, where somebody recorded them
        self.rows = {key: row for key in sorted(keys) if (row := end.row(*key))}
        self.seen = Counter(_norm(text) for (_, id), row in self.rows.items() for text in {id, *_texts(row)})
        self.known = Known()
        for e in told:
            self.known.learn([*e.about, e.value, *e.alike])
        self.known.learn(e.value for e in self.figures if own.intersection(e.about))
        entries = family.domain.world_class.entries
        made = [content for tool, content in end.told if tool in entries and entries[tool].effects]
        for content in made:
            self.known.learn(text for text in _texts(content if isinstance(content, Mapping) else {}) if _is_id(text))
        changed = [(key, row or {}) for key, row in end.changes().items()]
        self._follow(self.known, self._seeds(end))
        self.old = Known()  # what changed rows held before
        was = [row for key, _ in changed if (row := end.start(*key))]
        self.old.learn(value for row in was for value in row.values())
        self._follow(self.old, {text for row in was for text in _texts(row)})
        self.states = {_norm(effect.partition("=")[2]) for entry in entries.values() for effect in entry.effects} - {""}
        self.reached = {_norm(row[column]) for _, row in changed for column in STATUS if row.get(column)}
        self.words = {word for text in self.known.texts for word in text.split()}
        specs = [entry.spec for entry in family.domain.world_class.entries.values()]
        docs = " ".join(f"{spec.name} {spec.doc} {' '.join(spec.params)}" for spec in specs)
        named = (*(table for table, _ in self.rows), *(param for spec in specs for param in spec.params))
        self.nouns = NOUNS.union(*(_singles(_norm(text)) for text in named))
        self.vocabulary = NOUNS | self.words | self.query | set(_norm(f"{task.brief.policy} {docs}").split())

    def _seeds(self, end: State) -> set[str]:
        """The ids that the request, the answer and the changes name."""
        names = {_norm(e.value) for e in self.expected if e.kind == "name"}
        ids = {str(v) for e in (*self.expected, *self.facts) for v in (*e.about, e.value)} | self.task.given
        for (_, id), row in end.changes().items():
            ids |= {id, *re.split(r"[|/]", id), *_texts(row or {})}
        if not end.overlay:  # what is only read of somebody belongs to them
            given = {text for text in self.task.given if _is_id(text)}
            ids |= {id for (_, id), row in self.rows.items() if not given.isdisjoint(_texts(row))}
        return ids | {id for (_, id), row in self.rows.items() if any(_norm(text) in names for text in _texts(row))}

    def _follow(self, known: Known, ids: set[str], also: frozenset[str] = frozenset()) -> None:
        """Learn the rows that ids lead to, and those that the ids in these lead to.

        The row of a pair, such as the way between two places, is led to by both of them; that of a part by the whole.
        """
        for _ in range(HOPS):
            linked = [(id, row) for (_, id), row in self.rows.items() if id in ids or _is_between(id, ids | also)]
            for id, row in linked:
                known.learn([id, *row.values()])
            ids = ids.union(*(_texts(row) for _, row in linked))

    def _text(self, value: object) -> str:
        return _norm(entity_names.plain(self.task, str(value)))

    # -- what was reported

    def mistake(self, answer: tuple[FinishValue, ...]) -> str:
        """What is wrong with an answer; nothing where it is right."""
        for expected in self.expected:
            if not any(self.is_same(value, expected) for value in answer):
                return f"not reported, or not as the right type and unit: {expected.kind} {expected.value}"
        for value in answer:
            told = f"{value.kind} {value.value} {value.unit}".strip()
            fitting = [expected for expected in self.expected if self.is_same(value, expected)]
            if fitting and value.about and not any(self.is_of(value.about, expected) for expected in fitting):
                return f"{told} is reported of {value.about!r}, which it does not belong to"
            if not fitting and (why := self.untrue(value)):
                return f"{told} is reported as well: {why}"
        return ""

    def is_same(self, value: FinishValue, expected: Expected) -> bool:
        """Is a reported value the expected one, by type and unit?"""
        if expected.kind in TEXTS:
            return value.kind in TEXTS and self._names(self._text(value.value), _norm(str(expected.value)))
        if expected.kind == "yesno":
            return value.kind == "yes_no" and value.value is _is_yes(expected.value)
        if expected.kind in ("date", "time"):
            return value.kind == expected.kind and value.value == expected.value
        if expected.kind == "money":
            amount, wanted = _money(expected)
            found = self.amount(value)
            return found is not None and found[1] in ("", wanted) and _equal(found[0], amount, expected)
        if value.kind != "number" or currency_of(value.unit) or _multiplies(value.unit):
            return False
        return not (expected.unit == "count" and _measures(value.unit)) and _equal(
            float(value.value), expected.value, expected
        )

    def amount(self, value: FinishValue) -> tuple[float, str] | None:
        """A reported amount of money and its currency, if that is said; None where it is not money."""
        if value.kind not in ("money", "number") or (value.kind == "number" and not value.unit):
            return None
        found = currency_of(value.unit) if value.unit else ("", 1.0)
        if found is None or not set(_norm(split_unit(value.unit)[1]).split()) <= self.vocabulary | GLUE:
            return None
        return float(value.value) * found[1], found[0]

    def _names(self, text: str, name: str) -> bool:
        """Is a text a name, perhaps with true facts about its bearer? Both are normalised."""
        if text == name or self._is_id(text, name):
            return True
        if not _mentions(text, name) or any(_mentions(text, rival) for rival in self.rivals):
            return False
        before, _, after = f" {text} ".partition(f" {name} ")
        if not self.nouns.union(self.words, self.query, GLUE).issuperset(before.split()):
            return False
        return set(after.split()) <= self.words | self.query | GLUE

    def _is_id(self, text: str, id: str) -> bool:
        """Is a text an id, whatever stands between its letters and digits, after a noun perhaps?"""
        words, bare = text.split(), id.replace(" ", "")
        for i in range(len(words) if _is_id(bare) else 0):
            if "".join(words[i:]) == bare:
                return self.nouns | GLUE >= set(words[:i])
        return False

    def _denies(self, text: str) -> bool:
        """Does a text deny, except or rank what the request does not?"""
        said = text.split()
        words = set(said) - self.query
        own = {word for name in self.own for word in name.split()}
        if words & DENIALS or any(a in DENIALS and b in own for a, b in pairwise(said)):
            return True
        low, high = self.query & LOW, self.query & HIGH
        return bool(words & LOW and high and not low) or bool(words & HIGH and low and not high)

    def is_of(self, about: str, expected: Expected) -> bool:
        """Does `about` name what the expected value belongs to?"""
        text = self._text(about)
        if self._denies(text):
            return False
        apart = [e for e in self.expected if expected.about and e.about != expected.about]
        others = {_norm(word) for e in apart for word in e.about if word not in expected.about}
        rivals = {rival for rival in self.rivals | others if _mentions(text, rival)}
        own = {_norm(str(word)) for word in (*expected.about, *((expected.value,) if expected.kind in TEXTS else ()))}
        if any(_mentions(text, word) for word in own):
            return not rivals - self.given
        if rivals:
            return False
        known = (*self.known.texts, *self.given, *(() if expected.about else self.seen))
        return any(_mentions(text, word) for word in known) or not self._is_strange(about)

    def _is_strange(self, about: str) -> bool:
        """Is there a word in a text that looks like the name or the id of something unknown?"""
        words = re.findall(r"\w+", about)
        if len(words) > 1 and words[1] in self.nouns and words[0].istitle() and not _is_made_up(words[0]):
            words = words[1:]  # "Adult ticket"
        unknown = [word for word in words if self._text(word) not in self.vocabulary | GLUE and not word.isdigit()]
        return any(_is_id(word) or not (word.islower() or _is_english(word)) for word in unknown)

    def untrue(self, value: FinishValue) -> str:
        """Why a value that nobody asked for must not be reported; nothing where it is a fact."""
        about = self._text(value.about)
        known = self.known.texts | self.given | self.seen.keys()
        if about and not any(_mentions(about, text) for text in known) and self._is_strange(value.about):
            return f"nothing here is called {value.about!r}"
        if value.kind in TEXTS:
            text = self._text(value.value)
            if any(_mentions(text, rival) for rival in self.rivals - self.own):
                return "it is something else than what was asked for"
            true = any(self._names(text, fact) for fact in self.known.texts | self.given if _mentions(text, fact))
            if true:
                return ""
            if (said := self._state(text, about)) is not None:
                return "" if said else "nothing was brought to that state"
            chosen = value.kind == "choice" and any(e.kind == "choice" for e in self.expected)
            return "the facts do not hold it" if chosen or self._is_strange(str(value.value)) else ""
        if value.kind == "yes_no":
            if any(e.kind == "yesno" for e in self.expected):
                return "another value of the same type is the right one"
            said = self._state(about, about)
            return "" if said in (None, value.value) else "that is not so"
        if PAST & set(about.split()) and self.old.holds(value):
            return ""
        kind = "money" if value.kind == "money" or currency_of(value.unit) else value.kind
        if kind == "money":
            amount = self.amount(value)
            if amount is None or amount[1] not in ("", "EUR"):
                return "no amount here is in that unit"
            value = value.model_copy(update={"value": amount[0]})
            if str(value.value).removesuffix(".0") in self.task.given and not self._is_money_given(amount[0]):
                return "that number of the request is no amount of money"
        elif _multiplies(value.unit):
            return "no number here is in that unit"
        elif kind == "number" and self._is_labelled(value, about):
            return ""
        asked, echoed = any(e.kind == kind for e in self.expected), str(value.value) in self.task.given
        stated = [e for e in self.facts if e.kind == kind]
        if ids := self._named(about):  # a fact about something in particular
            if asked and any(_mentions(about, text) for text in self.own | self.rivals):
                return "another value of the same type is the right one"
            own = Known()
            self._follow(own, ids, also=self.task.given)
            told = (*stated, *(e for e in self.figures if e.kind == kind))
            named = [e for e in told if any(_mentions(about, _norm(word)) for word in e.about)]
            own.learn(v for e in named for v in (e.value, *e.alike))
            true = own.holds(value)
        elif asked:
            repeated = echoed and kind == "number" and bool(value.unit)  # the request's own figure, said to be that
            return "" if repeated else "another value of the same type is the right one"
        elif stated:
            true = any(value.value in (e.value, *e.alike) for e in stated)
        else:
            true = echoed or self.known.holds(value)
        return "" if true else "the facts do not hold it"

    def _state(self, text: str, about: str) -> bool | None:
        """Is something in the state that a text speaks of? None where it speaks of none."""
        folded = text.replace("ll", "l")  # canceled, cancelled
        spoken = {state for state in self.states if _mentions(folded, state.replace("ll", "l"))}
        if not spoken:
            return None
        for state in spoken:
            about = f" {about} ".replace(f" {state} ", " ").strip()
        named = self._named(about)
        rows = [row for (_, id), row in self.rows.items() if id in named]
        now = {_norm(str(row[column])) for row in rows for column in STATUS if row.get(column)} | self.reached
        return spoken <= now if DENIALS.isdisjoint(text.split()) else spoken.isdisjoint(now)

    def _is_money_given(self, amount: float) -> bool:
        """Does the request speak of an amount as money?"""
        number = re.escape(f"{amount:g}")
        money = r"(?:€|eur|euros?)"
        return bool(re.search(rf"(?i)\b{number}\s*{money}(?!\w)|{money}\s*{number}\b", self.said))

    def _is_labelled(self, value: FinishValue, about: str) -> bool:
        """Is a number what a column of the right thing holds, and called so?"""
        label = set(f"{about} {_norm(value.unit)}".split())
        label |= {ALIKE[word] for word in label & ALIKE.keys()}
        rows = [row for (_, id), row in self.rows.items() if {_norm(id), *map(_norm, _texts(row))} & self.own]
        held = ((column, row[column]) for row in rows for column in row)
        return any(held == value.value and label.intersection(_norm(column).split()) for column, held in held)

    def _named(self, about: str) -> set[str]:
        """The ids of the rows that a text names: by their ids, or by a text that no other row has."""
        alone = {text for text, n in self.seen.items() if n == 1}
        return {
            id
            for (_, id), row in self.rows.items()
            if any(_mentions(about, text) for text in (_norm(id), *(alone & {_norm(t) for t in _texts(row)})))
        }


def _measures(unit: str) -> bool:
    return any(word in MEASURES for word in re.findall(r"[a-z%]+", unit.casefold())[:1])


def _multiplies(unit: str) -> bool:
    return not MULTIPLES.isdisjoint(re.findall(r"[a-z%]+", split_unit(unit)[0].casefold()))


def _is_id(text: str) -> bool:
    """Does a text look like an id, with letters and digits?"""
    return bool(re.search(r"[^\W\d_]", text) and re.search(r"\d", text)) and " " not in text


def _is_english(word: str) -> bool:
    """Is a capitalised word an ordinary one, by how it ends?"""
    return word[1:].islower() and not _is_made_up(word) and bool(_ENGLISH.fullmatch(word.casefold()))


def _is_made_up(word: str) -> bool:
    return any(word.startswith(start) and word[len(start) :].startswith(MIDDLES) for start in STARTS)


def _singles(text: str) -> set[str]:
    """The words of a text, also without a plural's ending."""
    return {form for word in text.split() for form in (word, word.removesuffix("s"), word.removesuffix("es"))}


def _money(expected: Expected) -> tuple[float, str]:
    """An expected amount and its currency; a plain number is in euros."""
    if isinstance(expected.value, str) and (found := re.search(r"-?\d+(?:\.\d+)?", expected.value)):
        rest = expected.value.replace(found[0], "").strip()
        code, worth = currency_of(rest) or ("EUR", 1.0)
        return float(found[0]) * worth, code or "EUR"
    return expected.value, "EUR"


def _equal(value: float, wanted: Any, expected: Expected) -> bool:
    amount = float(wanted)
    return abs(value - amount) <= max(expected.tolerance, 1e-6 * abs(amount), 1e-9)


def _is_yes(value: object) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() in ("yes", "true")


@lru_cache(maxsize=4096)
def _norm(text: str) -> str:
    """A text without case, accents and punctuation."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.findall(r"\w+", bare.replace("_", " ").casefold()))


def _mentions(text: str, word: str) -> bool:
    return bool(word) and f" {word} " in f" {text} "


def _is_between(id: str, ids: set[str]) -> bool:
    parts = id.split("|")
    return (len(parts) > 1 and ids.issuperset(parts)) or ("#" in id and id.partition("#")[0] in ids)


def _texts(row: Row) -> set[str]:
    return {value for value in row.values() if isinstance(value, str)}
