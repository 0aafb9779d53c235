"""Requests in other words: a core said in a form of some register, details moved out into sentences of their own.

The grammar's entries are in the banks; what they mean is kept by construction (a core holds every detail of its family
once) and checked where it matters (every stated value is read back from the text).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from crosswind.core.domain import Domain, Family, gives_away, recover
from crosswind.core.types import Split, Task
from crosswind.words import banks

SEGMENT = re.compile(r"\[([^\[\]]*)\]")
HOLE = re.compile(r"\{(\w+)\}")
NO_ARTICLE = frozenset("the a an either say possibly maybe perhaps this that".split())  # what "the" does not go before
ARTICLE = re.compile(r"\b(?:the|an|a) (?=[a-z{])")


def segments(core: str) -> list[tuple[str, bool]]:
    """A core in pieces, each with whether it can be moved out."""
    out, at = [], 0
    for found in SEGMENT.finditer(core):
        out += [(core[at : found.start()], False), (found[1], True)]
        at = found.end()
    return [(text, moves) for text, moves in (*out, (core[at:], False)) if text]


def skeletons(domain: str, family: str, split: Split, registers: Sequence[str] = banks.REGISTERS) -> set[str]:
    """Sentence skeletons of a family: core in a form, details masked and left in place."""
    forms = banks.data("common")["forms"]
    out = set()
    for core in banks.data(domain)["families"][family][split]:
        plain = core.replace("[", "").replace("]", "")
        way, hole = ("ask", "{q}") if plain.startswith("? ") else ("do", "{vp}")
        for register in registers:
            out |= {form.replace(hole, plain.removeprefix("? ")) for form in forms[register][way][split]}
    return out


def say(
    task: Task, domain: Domain, rng: Random, registers: Sequence[str], *, moved: int = 0, tries: int = 12
) -> str | None:
    """The request of a task in other words of its split; None where no bank has any.

    Up to `moved` details are said apart from the rest. What comes back gives every stated detail to its reader.
    """
    bank = banks.data(domain.name)
    cores = bank.get("families", {}).get(task.family, {}).get(task.split)
    if not cores:
        return None
    family = domain.family(task)
    for attempt in range(tries):
        text = _said(task, family, bank, rng, rng.choice(cores), rng.choice(registers), max(0, moved - attempt // 4))
        if keeps(text, family, task):
            return text
    return None


def keeps(text: str, family: Family, task: Task) -> bool:
    """Does a text give every stated detail to its reader, and none that is withheld?"""
    found = recover(text, family.details, task.brief.stated)
    return found == task.brief.stated and not gives_away(text, family.details, task)


def _said(
    task: Task, family: Family, bank: Mapping[str, Any], rng: Random, core: str, register: str, moved: int
) -> str:
    split = task.split
    way, hole = ("ask", "{q}") if core.startswith("? ") else ("do", "{vp}")
    parts = segments(core.removeprefix("? "))
    movable = [i for i, (_, moves) in enumerate(parts) if moves]
    out = set(rng.sample(movable, min(moved, len(movable))))
    unsaid = {key for key, words in task.brief.vague.items() if not words}
    out |= {i for i in movable if set(HOLE.findall(parts[i][0])) <= unsaid}
    kept = "".join(text for i, (text, _) in enumerate(parts) if i not in out)
    if register in ("telegraphic", "second_language"):
        kept = ARTICLE.sub(lambda m: "" if register == "telegraphic" or rng.random() < 0.5 else m[0], kept)
    form = rng.choice(banks.data("common")["forms"][register][way][split])
    fill = {k: str(v) for k, v in task.brief.stated.items()}
    fill |= {k: words or family.details[k].vague for k, words in task.brief.vague.items()}
    main = _capital(_filled(form.replace(hole, kept.strip(" ,;")), fill))
    if not main.endswith((".", "!", "?", ")")):
        main += "."
    apart = [key for i in sorted(out) for key in HOLE.findall(parts[i][0]) if _worth_saying(key, task, family)]
    style = "labels" if register in ("telegraphic", "impatient") or rng.random() < 0.3 else "sentences"
    said = [_filled(rng.choice(bank["roles"][key][style][split]), fill) for key in apart]
    if not said:
        return main
    if style == "labels":
        return f"{main} ({', '.join(said)})" if rng.random() < 0.5 else f"{main} {_capital('; '.join(said))}."
    rest = " ".join(map(_capital, said))
    return f"{main} {rest}" if rng.random() < 0.6 else f"{rest} {main}"


def _worth_saying(key: str, task: Task, family: Family) -> bool:
    """Is there something to say about a detail that was moved out? What is kept back altogether is not mentioned."""
    return key in task.brief.stated or bool(family.details[key].read(task.brief.vague.get(key, "")))


def _filled(text: str, fill: Mapping[str, str]) -> str:
    for key in HOLE.findall(text):
        text = put(fill[key], f"{{{key}}}", text)
    return text


def places(value: str, text: str) -> list[int]:
    """Where a value is in a text, not as a part of a longer word."""
    out, at = [], text.find(value)
    while at >= 0:
        end = at + len(value)
        if not (at and _inner(text[at - 1])) and not (end < len(text) and _inner(text[end])):
            out.append(at)
        at = text.find(value, at + 1)
    return out


def _inner(character: str) -> bool:
    return character.isalnum() or character in "_-"


def put(words: str, value: str, text: str) -> str:
    """Words in the place of a value. An article before it gives way to theirs, a unit that they name is said once."""
    at = next(iter(places(value, text)), None)
    if at is None:
        return text
    before, after = text[:at], text[at + len(value) :]
    if " " not in words:
        return before + words + after
    head, _, article = before.rstrip(" ").rpartition(" ")
    if article.lower() in ("a", "an") or (article.lower() == "the" and words.split()[0] in NO_ARTICLE):
        before = head + " " if head else ""
    unit = after[1:].split(" ", 1)[0] if after.startswith(" ") else ""
    if unit.endswith("s") and unit in words.split():
        after = after[1 + len(unit) :]
    return before + words + after


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
