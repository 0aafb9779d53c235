"""Other words for tools, keys, descriptions, texts and requests, each entry in one split.

The data of ours is frozen (`data/banks`, made by `banks/make.py`), that of a plug-in's domain is brought by it
(`dealing.py`). Anyone who draws a layer asks for words of the task's split;
a word of the test split is never given out for a training task. A tool that no bank knows, such as one of a domain that
a user added, is renamed by the lexicon of single words, and a parameter or key by words that do in every sense; or else
they are left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from random import Random
from typing import Any

from crosswind.core.registry import domains
from crosswind.core.types import SPLITS, Param, Split, ToolSpec

REGISTERS = ("plain", "formal", "chatty", "telegraphic", "second_language", "impatient")
# holes of texts that take the id of a tool
TOOL_HOLES = frozenset({"new", "wait", "log", "issuer", "tool", "first", "second", "next", "right", "wrong"})
PREFIXES = ("", "", "", "", "api_", "svc_", "do_", "v2_", "x_", "core_")
SUFFIXES = ("", "", "", "", "_v2", "_now", "_call", "_op", "_ex", "_2")


def lemma(text: str) -> str:
    """An entry without case, separators and plural endings: what two entries are compared by."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return "".join(_stem(w) for w in re.findall(r"[a-z0-9{}]+", spaced.lower()))


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return word[:-1] if len(word) > 4 and re.search(r"(s|x|z|ch|sh)e$", word) else word  # buses, boxes, premises


_brought: dict[str, Mapping[str, Any]] = {}  # the banks of plug-ins


def bring(domain: str, bank: Mapping[str, Any]) -> None:
    """Use a dealt bank for a domain from outside the package, in the place of any before."""
    _brought[domain] = bank


def forget(domain: str) -> None:
    """Drop a bank that was brought; anyone who asks for it has it brought again."""
    _brought.pop(domain, None)


def data(name: str) -> Mapping[str, Any]:
    """One file of the data, "common" or a domain, or the bank that a plug-in brings; empty where a domain has none."""
    if name not in _brought and ":" in name:
        domains[name]  # a generated domain brings its bank along
    return _brought[name] if name in _brought else _file(name)


@lru_cache(maxsize=32)
def _file(name: str) -> Mapping[str, Any]:
    path = files("crosswind").joinpath("data", "banks", f"{name}.json")
    if not path.is_file():
        return {}
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def known(domain: str) -> bool:
    """Has this domain a bank?"""
    return bool(data(domain))


# ---------------------------------------------------------------- names


def any_two_words(rng: Random) -> str:
    """A name made of any two words of the train side, of whatever domain, that is not an entry of another split."""
    words, others = _single_words()
    while lemma(name := "_".join(rng.sample(words, 2))) in others:
        pass
    return name


@lru_cache(maxsize=1)
def _single_words() -> tuple[tuple[str, ...], frozenset[str]]:
    lists: Sequence[Mapping[Split, Sequence[str]]] = data("common")["lexicon"]["lists"].values()
    train = {word for by_split in lists for word in by_split["train"] if word.isalpha()}
    others = {lemma(word) for by_split in lists for split in SPLITS if split != "train" for word in by_split[split]}
    return tuple(sorted(train)), frozenset(others)


def styled(words: Sequence[str], style: str) -> str:
    """Words as one identifier."""
    parts = [p for w in words for p in re.split(r"[^A-Za-z0-9]+", w.replace("'", "")) if p]
    if style == "camel":
        return parts[0].lower() + "".join(p.capitalize() for p in parts[1:])
    if style == "pascal":
        return "".join(p.capitalize() for p in parts)
    if style == "kebab":
        return "-".join(parts).lower()
    if style == "upper":
        return "_".join(parts).upper()
    return "_".join(parts).lower()


STYLES = ("snake", "snake", "camel", "pascal", "kebab")


def concept(domain: str, spec: ToolSpec) -> tuple[str, str] | None:
    """What a canonical tool is, as (action, word); of a merged tool, the last of its parts."""
    tools = data(domain).get("tools", {})
    found = [tuple(tools[i]) for i in sorted(spec.ids) if i in tools]
    return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of a first and a second word, in order; none of them is made before it is asked for."""

    first: Sequence[str] = ()
    second: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.first) * len(self.second)

    def __getitem__(self, n: int) -> tuple[str, str]:
        return self.first[n // len(self.second)], self.second[n % len(self.second)]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return product(self.first, self.second)


def tool_names(domain: str, spec: ToolSpec, split: Split) -> Pairs:
    """All pairs of words that name a tool in a split; empty where no bank knows it."""
    pair = concept(domain, spec)
    if pair is None:
        return Pairs()
    bank = data(domain)
    return Pairs(bank["actions"][pair[0]][split], bank["words"][pair[1]][split])


def tool_name(domain: str, spec: ToolSpec, split: Split, rng: Random, taken: set[str], style: str = "") -> str | None:
    """Another name for a tool that says the same, different from all in `taken`; None where there is none."""
    pairs = tool_names(domain, spec, split)
    for _ in range(40):
        look = style or rng.choice(STYLES)
        words = list(rng.choice(pairs)) if pairs else _by_lexicon(spec.name, split, rng)
        if words is None:
            return None
        if rng.random() < 0.25:
            words = words[::-1]
        name = styled(words, look)
        if look == "snake":
            name = rng.choice(PREFIXES) + name + rng.choice(SUFFIXES)
        if len(name) <= 60 and name not in taken and name != spec.name:
            return name
    return None


def _by_lexicon(name: str, split: Split, rng: Random) -> list[str] | None:
    """The words of a name, those that the lexicon knows replaced; None where it knows none."""
    lexicon = data("common")["lexicon"]
    parts = [p.lower() for p in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
    new = []
    for part in parts:
        of = lexicon["of"].get(part) or lexicon["of"].get(_stem(part))
        others = [w for w in lexicon["lists"][of][split] if w != part] if of else []
        new.append(rng.choice(others) if others else part)
    return new if new != parts else None


def _by_interface(key: str, split: Split, rng: Random) -> list[str] | None:
    """The words of a key that no bank knows, general ones replaced by others that do in every sense they may have."""
    interface = data("common")["interface"]
    parts = [p.lower() for p in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", key)]
    new = [rng.choice(interface[part][split]) if part in interface else part for part in parts]
    return new if new != parts else None


def key_names(domain: str, key: str, split: Split) -> Pairs:
    """All (word, qualifier) that a parameter or result key goes by in a split; empty where no bank knows it."""
    bank = data(domain)
    pair = bank.get("keys", {}).get(key)
    if pair is None:
        return Pairs()
    word, sort = pair
    return Pairs(bank["words"][word][split], data("common")["qualifiers"][sort][split])


def key_name(domain: str, key: str, split: Split, rng: Random, taken: set[str], style: str = "snake") -> str | None:
    """Another name for a key, different from all in `taken`; None where there is none."""
    pairs = key_names(domain, key, split)
    for _ in range(40):
        if pairs:
            word, qualifier = rng.choice(pairs)
            words = [word, qualifier] if rng.random() < 0.6 else [qualifier, word]
        else:
            other = _by_interface(key, split, rng)
            if other is None:
                return None
            words = other
        name = styled(words, style)
        if name not in taken and name != key:
            return name
    return None


# ---------------------------------------------------------------- texts


def phrase(kind: str, split: Split, rng: Random, **holes: Any) -> str:
    """A wording of a kind of text. Holes that stand for tools are given as ids, and come out as {id}."""
    parts = data("common")["phrases"][kind][split]
    text = " ".join(rng.choice(part) for part in parts)
    fill = {name: f"{{{value}}}" if name in TOOL_HOLES else str(value) for name, value in holes.items()}
    return re.sub(r"\{(\w+)\}", lambda hole: fill[hole[1]], text) if fill else text


def wordings(kind: str, split: Split) -> list[Sequence[str]]:
    """The parts of a kind of text, of which a wording takes one each."""
    parts: list[Sequence[str]] = data("common")["phrases"][kind][split]
    return parts


def entries(name: str, split: Split) -> Sequence[Any]:
    """A flat list of common entries: openers, closers, asides, extras, endings, distractors."""
    found: Sequence[Any] = data("common")[name][split]
    return found


def own(kind: str, table: str) -> Mapping[Split, Any]:
    """A table of words that a kind of perturbation brings along itself, by split (`banks/layers`)."""
    found: Mapping[Split, Any] = fixed(_layers()[kind][table])
    return found


@lru_cache(maxsize=1)
def _layers() -> Mapping[str, Any]:
    paths = files("crosswind").joinpath("data", "layers").iterdir()
    return {kind: tables for path in paths for kind, tables in json.loads(path.read_text("utf-8")).items()}


def fixed(value: Any) -> Any:
    """Data whose lists are tuples."""
    if isinstance(value, dict):
        return {key: fixed(part) for key, part in value.items()}
    return tuple(map(fixed, value)) if isinstance(value, list) else value


def noun(domain: str, role: str, default: str = "") -> str:
    """What a domain calls a part of its requests in plain words."""
    return str(data(domain).get("nouns", {}).get(role, default or role))


def description(domain: str, spec: ToolSpec, split: Split, rng: Random) -> str | None:
    """Another true description of a canonical tool; None where no bank has one."""
    bank = data(domain).get("descriptions", {})
    found = [i for i in sorted(spec.ids) if i in bank and bank[i][split]]
    return str(rng.choice(bank[found[0]][split])) if len(found) == 1 else None


# ---------------------------------------------------------------- tools that are not needed


def distractor(domain: str, split: Split, rng: Random, taken: set[str]) -> ToolSpec:
    """A tool of the neighbourhood that no request needs."""
    things: Sequence[str] = data(domain).get("distractors", {}).get(split) or entries("extras", split)
    while True:
        template, thing = rng.choice(entries("distractors", split)), rng.choice(things).replace("_", " ")
        name = styled([template["action"], thing], "snake")
        if name not in taken:
            break
    article = "an" if thing[0] in "aeiou" else "a"
    holes = {"{thing}": thing, "{a_thing}": f"{article} {thing}", "{things}": plural(thing)}
    doc = template["doc"]
    for hole, value in holes.items():
        doc = doc.replace(hole, value)
    plain = styled([thing], "snake")
    params = {key.replace("thing", plain): Param(type_) for key, type_ in template.get("params", {}).items()}
    return ToolSpec.new(name, doc, params)


def plural(thing: str) -> str:
    """A noun in the plural, by the rules of spelling."""
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return thing[:-1] + "ies"
    return thing + ("es" if re.search(r"(s|x|z|ch|sh)$", thing) else "s")


def every_text(value: Any) -> list[str]:
    """All texts in some data."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in every_text(v)]
    return [t for v in value for t in every_text(v)] if isinstance(value, (list, tuple)) else []


__all__ = [name for name in globals() if name[0] != "_" and name not in ("annotations", "Any", "SPLITS")]
