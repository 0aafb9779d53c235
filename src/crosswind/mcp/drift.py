"""What is different between two listings of a server, and whether it breaks a client that was written for the first.

What is called otherwise is paired by evidence: what it takes, what is said of it, what it gives, and how alike the
names are. A pairing has a confidence; where two candidates are about as likely, none is named.
"""

from __future__ import annotations

import difflib
import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from crosswind.core.types import Model
from crosswind.mcp.schema import Json, record

SURE = 0.6  # from here on a thing is taken to be another one under a new name
APART = 0.1  # by which the likeliest candidate must be ahead of the next
LONGEST = 2000  # characters of a description that are compared
TEXTS = ("title", "description")
NARROWS = {"minimum": 1, "exclusiveMinimum": 1, "minLength": 1, "minItems": 1, "minProperties": 1}
NARROWS |= {"maximum": -1, "exclusiveMaximum": -1, "maxLength": -1, "maxItems": -1, "maxProperties": -1}
# what a hint says where it is missing, and which value a client could rely on
HINTS = {"readOnlyHint": (False, True), "destructiveHint": (True, False), "idempotentHint": (False, True)}
HINTS |= {"openWorldHint": (True, False)}

Sort = Literal[
    "added",
    "removed",
    "renamed",
    "parameter",
    "result",
    "description",
    "annotations",
    "prompt",
    "resource",
    "instructions",
]


class Drift(Model):
    """One thing that is different."""

    sort: Sort
    tool: str  # as it was called, or is called where it is new; a prompt's name or a resource's address likewise
    what: str
    breaking: bool = True  # may it break a client that was written for what was?
    confidence: float | None = None  # of a pairing

    @property
    def words(self) -> str:
        return f"{self.tool}: {self.what}"

    def ignored(self, rules: Iterable[str]) -> bool:
        """Is it to be passed over? A rule is a pattern for the sort, or for SORT:NAME."""
        return any(
            fnmatch.fnmatchcase(self.sort, rule) or fnmatch.fnmatchcase(f"{self.sort}:{self.tool}", rule)
            for rule in rules
        )


# ---------------------------------------------------------------- pairing


Evidence = Callable[[str, str], float]  # how surely one thing is another under a new name, from 0 to 1


def _paired(gone: Sequence[str], come: Sequence[str], likeness: Evidence) -> dict[str, tuple[str, float]]:
    """Which of what is gone is what came, with the confidence; the likest first, each once, and none by a toss-up."""
    scores = {(a, b): likeness(a, b) for a in gone for b in come}
    out: dict[str, tuple[str, float]] = {}
    for (a, b), score in sorted(scores.items(), key=lambda one: (-one[1], one[0])):
        if score < SURE or a in out or b in {new for new, _ in out.values()}:
            continue
        free = {new for new in come if new not in {taken for taken, _ in out.values()}}
        rivals = [scores[a, other] for other in free - {b}]
        rivals += [scores[other, b] for other in gone if other != a and other not in out]
        if score - max(rivals, default=0.0) >= APART:
            out[a] = (b, round(score, 2))
    return out


def _weighed(*parts: tuple[float, float | None]) -> float:
    """The mean of pieces of evidence by their weights, without those that there are none of."""
    known = [(weight, value) for weight, value in parts if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total else 0.0


def _texts_alike(one: Any, other: Any) -> float | None:
    text, after = (str(said or "")[:LONGEST] for said in (one, other))
    return difflib.SequenceMatcher(None, text, after).ratio() if text or after else None


def _names_alike(one: str, other: str) -> float:
    """By the words they are made of, or by their letters."""
    words = [set(re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())) for name in (one, other)]
    shared = len(words[0] & words[1]) / max(1, len(words[0] | words[1]))
    return max(shared, difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio() ** 2)


def _sets_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    if not one and not other:
        return None
    same = sum(bool(one[key] == other[key]) for key in one.keys() & other.keys())
    return same / len(one.keys() | other.keys())


def _sure(confidence: float) -> str:
    return f" ({confidence:.0%} sure)"


# ---------------------------------------------------------------- tools


def drifted(was: Sequence[Json], now: Sequence[Json]) -> list[Drift]:
    """What is different between two lists of tools, in the order of their names."""
    old, new = {t["name"]: t for t in was}, {t["name"]: t for t in now}
    gone, come = [n for n in old if n not in new], [n for n in new if n not in old]
    pairs = _paired(gone, come, lambda a, b: _tools_alike(old[a], new[b]))
    out = [
        Drift(sort="renamed", tool=a, what=f"is called {b} now{_sure(sure)}", confidence=sure)
        for a, (b, sure) in pairs.items()
    ]
    out += [Drift(sort="removed", tool=name, what="is gone") for name in gone if name not in pairs]
    taken = {b for b, _ in pairs.values()}
    out += [Drift(sort="added", tool=name, what="is new", breaking=False) for name in come if name not in taken]
    for name in old:
        if (other := new.get(pairs[name][0] if name in pairs else name)) is not None:
            out += _changed(name, old[name], other)
    return sorted(out, key=lambda one: one.tool)


def _tools_alike(one: Json, other: Json) -> float:
    gives = [one.get("outputSchema"), other.get("outputSchema")]
    return _weighed(
        (0.4, _sets_alike(_params(one), _params(other))),
        (0.35, _texts_alike(one.get("description"), other.get("description"))),
        (0.1, float(_bare(gives[0]) == _bare(gives[1])) if any(gives) else None),
        (0.15, _names_alike(one["name"], other["name"])),
    )


def _params(tool: Json) -> dict[str, tuple[Any, bool]]:
    """The parameters of a tool: schemas without what is said about them, and whether they are required."""
    schema = record(tool.get("inputSchema"))
    return {name: (_bare(part), name in _required(schema)) for name, part in record(schema.get("properties")).items()}


def _required(schema: Json) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _bare(schema: Any) -> Any:
    """A schema without what is said in it; names of properties are kept, whatever they are."""
    if isinstance(schema, dict):
        return {
            k: {name: _bare(part) for name, part in v.items()}
            if k == "properties" and isinstance(v, dict)
            else _bare(v)
            for k, v in schema.items()
            if k not in TEXTS
        }
    return [_bare(part) for part in schema] if isinstance(schema, list) else schema


def _changed(name: str, was: Json, now: Json) -> list[Drift]:
    def told(sort: Sort, what: str, breaking: bool, sure: float | None = None) -> Drift:
        return Drift(sort=sort, tool=name, what=what, breaking=breaking, confidence=sure)

    out = _parameters(was, now, told)
    takes = [_bare(record(tool.get("inputSchema"))) for tool in (was, now)]
    if not out and takes[0] != takes[1]:
        keys = sorted(k for k in {**takes[0], **takes[1]} if takes[0].get(k) != takes[1].get(k))
        out.append(told("parameter", f"the schema of its arguments is another ({', '.join(keys)})", True))
    out += _results(was, now, told)
    for key in TEXTS:
        if was.get(key) != now.get(key):
            out.append(told("description", _worded(key, was.get(key), now.get(key)), False))
    return out + _hints(was, now, told)


Told = Callable[..., Drift]


def _parameters(was: Json, now: Json, told: Told) -> list[Drift]:
    old, new = _params(was), _params(now)
    docs = [record(record(tool.get("inputSchema")).get("properties")) for tool in (was, now)]
    gone, come = [p for p in old if p not in new], [p for p in new if p not in old]

    def likeness(a: str, b: str) -> float:
        said = _texts_alike(record(docs[0][a]).get("description"), record(docs[1][b]).get("description"))
        return _weighed(
            *((0.4, float(old[a][0] == new[b][0])), (0.3, said)),
            *((0.25, _names_alike(a, b)), (0.15, float(old[a][1] == new[b][1]))),
        )

    pairs = _paired(gone, come, likeness)
    taken = {b for b, _ in pairs.values()}
    out = [told("parameter", f"the parameter {a} is called {b} now{_sure(s)}", True, s) for a, (b, s) in pairs.items()]
    out += [told("parameter", f"the parameter {p} is gone", True) for p in gone if p not in pairs]
    for param in (p for p in come if p not in taken):
        needed = new[param][1]
        out.append(told("parameter", f"the {'required' if needed else 'optional'} parameter {param} is new", needed))
    for param in old:
        after = pairs[param][0] if param in pairs else param
        if after not in new:
            continue
        (schema, required), (other, needed) = old[param], new[after]
        if required is not needed:
            what = f"the parameter {param} is {'required' if needed else 'optional'} now"
            out.append(told("parameter", what, needed))
        if schema != other:
            what = f"the parameter {param} was {_short(schema)} and is {_short(other)}"
            out.append(told("parameter", what, not _takes_all(schema, other)))
        for key in TEXTS:
            texts = [record(docs[0][param]).get(key), record(docs[1][after]).get(key)]
            if texts[0] != texts[1] and not (key == "title" and param in pairs):
                out.append(told("description", f"of the parameter {param}, {_worded(key, *texts)}", False))
    return out


def _takes_all(old: Any, new: Any) -> bool:
    """Does a schema surely take whatever another one takes? Only what narrows it in plain sight is looked at."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return bool(new is True or new == {} or old == new)
    for key in old.keys() | new.keys():
        one, other = old.get(key), new.get(key)
        if one == other or key in ("default", "examples", "deprecated") or other is None:
            continue
        numbers = isinstance(other, (int, float)) and (one is None or isinstance(one, (int, float)))
        if key == "type":
            kinds = [set(kind) if isinstance(kind, list) else {kind} for kind in (one, other)]
            kinds[1] |= {"integer"} if "number" in kinds[1] else set()
            if one is None or not kinds[0] <= kinds[1]:
                return False
        elif key == "enum" and isinstance(one, list) and isinstance(other, list):
            if any(value not in other for value in one):
                return False
        elif key in NARROWS and numbers and one is not None:
            if (other - one) * NARROWS[key] > 0:
                return False
        else:
            return False
    return True


def _results(was: Json, now: Json, told: Told) -> list[Drift]:
    """Keys of results by their places, such as `rows[].id`."""
    schemas = [tool.get("outputSchema") for tool in (was, now)]
    if (schemas[0] is None) is not (schemas[1] is None):
        if schemas[0] is None:
            return [told("result", "the schema of its results is new", False)]
        return [told("result", "the schema of its results is gone", True)]
    old, new = (dict(_keys(schema)) for schema in schemas)
    gone, come = [p for p in old if p not in new], [p for p in new if p not in old]

    def likeness(a: str, b: str) -> float:
        if a.rpartition(".")[0] != b.rpartition(".")[0]:
            return 0.0  # what is below another key is told by that key
        said = _texts_alike(old[a][2], new[b][2])
        names = _names_alike(a.rpartition(".")[2], b.rpartition(".")[2])
        return _weighed((0.4, float(old[a][0] == new[b][0])), (0.3, said), (0.3, names))

    pairs = _paired(gone, come, likeness)
    taken = {b for b, _ in pairs.values()}
    out = [told("result", f"the key {a} is called {b} now{_sure(s)}", True, s) for a, (b, s) in pairs.items()]
    out += [told("result", f"the key {p} is gone", True) for p in gone if p not in pairs]
    out += [told("result", f"the key {p} is new", False) for p in come if p not in taken]
    for place, (schema, required, _) in old.items():
        if place in new:
            if schema != new[place][0]:
                what = f"the key {place} was {_short(schema)} and is {_short(new[place][0])}"
                out.append(told("result", what, not _takes_all(new[place][0], schema)))
            if required is not new[place][1]:
                out.append(
                    told(
                        "result",
                        f"the key {place} is {'always' if new[place][1] else 'not always'} there now",
                        required,
                    )
                )
    if not out and _bare(schemas[0]) != _bare(schemas[1]):
        out.append(told("result", "the schema of its results is another", True))
    return out


def _keys(schema: Any, at: str = "", depth: int = 0) -> list[tuple[str, tuple[Any, bool, Any]]]:
    """The keys that a schema names, each with its own schema, whether it is required, and what is said of it."""
    schema = record(schema)
    out: list[tuple[str, tuple[Any, bool, Any]]] = []
    if depth > 6:
        return out
    for name, part in record(schema.get("properties")).items():
        place = f"{at}.{name}" if at else name
        own = {k: v for k, v in record(_bare(part)).items() if k not in ("properties", "items", "required")}
        out.append((place, (own, name in _required(schema), record(part).get("description"))))
        out += _keys(part, place, depth + 1)
    if isinstance(schema.get("items"), dict):
        out += _keys(schema["items"], f"{at}[]", depth + 1)
    return out


def _hints(was: Json, now: Json, told: Told) -> list[Drift]:
    old, new = record(was.get("annotations")), record(now.get("annotations"))
    out = []
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) == new.get(key):
            continue
        if key not in HINTS:
            out.append(told("annotations", f"its {key} {_from_to(old, new, key)}", False))
            continue
        unsaid, relied_on = HINTS[key]
        breaking = old.get(key, unsaid) is relied_on and new.get(key, unsaid) is not relied_on
        out.append(told("annotations", f"its hint {key} {_from_to(old, new, key)}", breaking))
    return out


def _from_to(old: Json, new: Json, key: str) -> str:
    was, now = (json.dumps(one[key]) if key in one else "not given" for one in (old, new))
    return f"was {was} and is {now}"


# ---------------------------------------------------------------- what is no tool


def listed_besides(sort: Literal["prompt", "resource"], was: Sequence[Json], now: Sequence[Json]) -> list[Drift]:
    """What is different between two lists of prompts or resources."""
    old, new = ({_address(one): one for one in listed} for listed in (was, now))
    gone, come = [n for n in old if n not in new], [n for n in new if n not in old]

    def likeness(a: str, b: str) -> float:
        one, other = old[a], new[b]
        return _weighed(
            (0.4, _sets_alike(_arguments(one), _arguments(other))),
            (0.4, _texts_alike(one.get("description"), other.get("description"))),
            (0.2, _names_alike(a, b)),
        )

    pairs = _paired(gone, come, likeness)
    taken = {b for b, _ in pairs.values()}

    def told(at: str, what: str, breaking: bool, sure: float | None = None) -> Drift:
        return Drift(sort=sort, tool=at, what=what, breaking=breaking, confidence=sure)

    out = [told(a, f"the {sort} is called {b} now{_sure(s)}", True, s) for a, (b, s) in pairs.items()]
    out += [told(name, f"the {sort} is gone", True) for name in gone if name not in pairs]
    out += [told(name, f"the {sort} is new", False) for name in come if name not in taken]
    for name in old:
        other = new.get(pairs[name][0] if name in pairs else name)
        if other is None:
            continue
        takes = [_arguments(one) for one in (old[name], other)]
        for arg in (a for a in takes[0] if a not in takes[1]):
            out.append(told(name, f"the argument {arg} is gone", True))
        for arg, needed in takes[1].items():
            if arg not in takes[0]:
                out.append(told(name, f"the {'required' if needed else 'optional'} argument {arg} is new", needed))
            elif takes[0][arg] is not needed:
                out.append(told(name, f"the argument {arg} is {'required' if needed else 'optional'} now", needed))
        for key in ("mimeType", *TEXTS):
            if old[name].get(key) != other.get(key):
                out.append(told(name, _worded(key, old[name].get(key), other.get(key)), key == "mimeType"))
    return sorted(out, key=lambda one: one.tool)


def _address(one: Json) -> str:
    return str(one.get("uri", one.get("uriTemplate", one.get("name", ""))))


def _arguments(prompt: Json) -> dict[str, bool]:
    listed = prompt.get("arguments")
    known = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {str(one.get("name")): one.get("required") is True for one in known}


def instructed(was: str, now: str) -> list[Drift]:
    """Whether the server's instructions are others."""
    if was == now:
        return []
    return [Drift(sort="instructions", tool="the server", what=_worded("instructions", was, now), breaking=False)]


# ---------------------------------------------------------------- words


def _worded(key: str, was: Any, now: Any) -> str:
    """A text that became another, from a little before the first difference on."""
    if not was or not now:
        return f"the {key} is {'new' if now else 'gone'}"
    one, other = str(was), str(now)
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - 20)
    return f"the {key} was {_short(one[start:])} and is {_short(other[start:])}"


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
