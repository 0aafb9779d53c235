"""Large catalogues of tools and a search over them by words; not a perturbation itself.

A tool is found by the words of its name, its description and its parameters, and by those of requests that were met
with it before: a word of a request counts for a tool by the share of such requests that took the tool.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from crosswind.base.errors import CannotDraw, Unfair
from crosswind.core.flow import once_each, rng_for
from crosswind.core.oracle import walk
from crosswind.core.registry import domains
from crosswind.core.types import Param, Split, ToolSpec
from crosswind.words import banks

MOST = 1000  # tools of a catalogue that no request needs
NAME, TEXT, USED = 2.0, 1.0, 3.0  # what a word counts for by where it is
# words that say nothing of what is wanted
STOP = frozenset(
    """about all also and any are ask before both but can could did does done else for from get gets given gives had has
    have her him his how into its just let like made make makes many may might more most much must need needs nor not
    now off one only other our out over own per please put same say she should some such take takes than that the their
    them then there these they this those too two until use used was way were what when where which while who whose will
    with without would yet you your""".split()
)
Weights = Mapping[str, float]  # stem -> weight


def stems(text: str) -> list[str]:
    """The words of a text without their endings, those of names such as list_slots or listSlots apart."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return [stem(word) for word in re.findall(r"[a-z]{3,}", spaced.lower()) if word not in STOP]


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ments", "ment", "ied", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


# ---------------------------------------------------------------- tools that no request needs


@lru_cache(maxsize=8)
def pool(domain: str, split: Split) -> tuple[ToolSpec, ...]:
    """Tools of all neighbourhoods in an order of their own, none about a thing that the domain's tools deal with."""
    things = dict.fromkeys(t for d in domains for t in banks.data(d.name).get("distractors", {}).get(split, ()))
    own = {s for spec in domains[domain].world_class.specs for s in stems(f"{spec.name} {spec.doc}")}
    out = list[ToolSpec]()
    for thing in sorted(t.replace("_", " ") for t in things):
        if not own.isdisjoint(stems(thing)):
            continue
        plain, article = banks.styled([thing], "snake"), "an" if thing[0] in "aeiou" else "a"
        for template in banks.entries("distractors", split):
            doc = template["doc"].replace("{a_thing}", f"{article} {thing}").replace("{things}", banks.plural(thing))
            params = {k.replace("thing", plain): Param(t) for k, t in template.get("params", {}).items()}
            name = banks.styled([template["action"], thing], "snake")
            out.append(ToolSpec.new(name, doc.replace("{thing}", thing), params, listed=False))
    rng_for("catalogue", domain, split).shuffle(out)
    return tuple(out)


@lru_cache(maxsize=64)
def idle_tools(domain: str, split: Split, count: int, start: int, without: frozenset[str]) -> tuple[ToolSpec, ...]:
    """This many of these, from a place in their order on; none with one of the names `without`."""
    tools = [tool for tool in pool(domain, split) if tool.name not in without and len(tool.name) <= 60]
    begin = start % max(1, len(tools))
    return tuple((*tools[begin:], *tools[:begin])[: min(count, MOST)])


# ---------------------------------------------------------------- the search


class Index:
    """Which tools a word stands for."""

    def __init__(self, entries: Iterable[tuple[str, Weights]]) -> None:
        self.of: dict[str, list[tuple[str, float]]] = {}
        self.size = 0
        for name, weights in entries:
            self.size += 1
            for one, weight in weights.items():
                self.of.setdefault(one, []).append((name, weight))


@lru_cache(maxsize=64)
def index_of_idle(domain: str, split: Split, count: int, start: int, without: frozenset[str]) -> Index:
    return Index((tool.name, own_words(tool)) for tool in idle_tools(domain, split, count, start, without))


@once_each()
def own_words(tool: ToolSpec) -> Weights:
    """The words of a tool's texts."""
    texts = [tool.doc, *tool.params, *(p.doc for p in tool.params.values())]
    return {**{s: TEXT for text in texts for s in stems(text)}, **dict.fromkeys(stems(tool.name), NAME)}


def words_of(tool: ToolSpec, domain: str) -> Weights:
    """The words by which a tool that somebody needs is found."""
    out = dict(own_words(tool))
    used = usage(domain)
    for id in tool.ids:
        for one, share in used.get(id, {}).items():
            out[one] = out.get(one, 0.0) + USED * share
    return out


@lru_cache(maxsize=64)
def usage(domain: str) -> Mapping[str, Weights]:
    """Canonical tool -> the words of requests that took it, each with the share of such requests."""
    home = domains[domain]
    with_word: Counter[str] = Counter()
    taken: dict[str, Counter[str]] = {}
    for family in home.families.values():
        try:
            task = home.task(family.name, 0, split="train")
            made = walk(home, task)
        except (CannotDraw, Unfair):
            continue
        kinds = [str(v) for v in task.wanted.values() if v in home.kinds()]
        said = [*home.kinds()] if kinds else []
        for sentence in family.queries or (task.brief.query,):
            words = {*stems(re.sub(r"\{\w+\}", " ", sentence)), *(s for kind in said for s in stems(kind))}
            with_word.update(words)
            for tool in {call.tool for step in made.steps for call, _ in step.inner}:
                taken.setdefault(tool, Counter()).update(words)
    return {
        tool: {one: (n / with_word[one]) ** 2 for one, n in count.items() if n * 4 >= with_word[one]}
        for tool, count in taken.items()
    }


def search(words: Sequence[str], needed: Mapping[str, Weights], idle: Index, most: int) -> list[str]:
    """The names of the tools that fit the words best, the best first; `needed` are those outside of the index."""
    scores: dict[str, float] = {}
    total = idle.size + len(needed)
    for one in dict.fromkeys(s for word in words for s in stems(word)):
        found = [*idle.of.get(one, ()), *((name, w[one]) for name, w in needed.items() if one in w)]
        rarity = math.log(1 + total / len(found)) if found else 0.0
        for name, weight in found:
            scores[name] = scores.get(name, 0.0) + weight * rarity
    return sorted(scores, key=lambda name: (-scores[name], name))[:most]


def telling(
    texts: str, name: str, needed: Mapping[str, Weights], idle: Index, most: int, opened: Collection[str] = ()
) -> tuple[str, ...]:
    """A few words of some texts by which a tool is found; none where there are no such words."""
    words = [w for w in dict.fromkeys(re.findall(r"(?<![\w.:-])[a-z]{3,}(?![\w.:-])", texts)) if stems(w)]

    def worth(word: str) -> float:
        return sum(needed[name].get(s, 0.0) for s in stems(word))

    best = sorted((w for w in words if worth(w)), key=lambda w: (-worth(w), words.index(w)))[:8]
    tries = [(w,) for w in best] + [(a, b) for i, a in enumerate(best) for b in best[i + 1 :]]
    tries += [tuple(best[:n]) for n in (3, 4, 5)]
    return next((found for found in tries if name in search(found, needed, idle, most)), ())
