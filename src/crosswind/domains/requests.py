"""What is said in a domain: the policy, the families with the sentences of their requests, the words for details.

People write `banks/requests/<domain>.yaml`; `banks/make.py` compiles it to the JSON that the package carries, so that
no YAML is parsed at import. Both have one format:

    policy: You work at a ticket desk. ...
    replies: {held: "Held for {time}: {booking}."}  # where they differ from `SAID`
    details:
      group: {label: city, question: "Which city?", words: [city, town], vague: a city I will name}
    families:
      best_price:
        graph: Fact
        about: The ticket price of the best-rated place.
        sentences: ["What does the best-rated {category} in {city} cost?"]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile

WORDS = ("label", "question", "words", "vague")  # keys of a detail
PARTS = ("policy", "replies", "details", "families")
FAMILY = ("graph", "about", "house", "sentences")
HOLE = re.compile(r"\{(\w+)\}")


class Requests:
    """The requests of one domain. A bad or missing entry raises `BadFile` with the domain, the family and the key."""

    def __init__(self, data: Any, where: str) -> None:
        self.where = where
        if not isinstance(data, dict) or not {"policy", "details", "families"} <= set(data) <= set(PARTS):
            raise BadFile(f"{where}: expected a mapping with the keys {', '.join(PARTS)}")
        self.policy: str = self._text(data, "policy")
        self.replies: Mapping[str, str] = self._mapping(data, "replies") if "replies" in data else {}
        self.details: Mapping[str, Any] = self._mapping(data, "details")
        self.families: Mapping[str, Any] = self._mapping(data, "families")
        for key in self.replies:
            self._text(self.replies, key, "replies.")

    @classmethod
    def packaged(cls, domain: str) -> Requests:
        """Those of a domain of this package."""
        path = files("crosswind") / "data" / "requests" / f"{domain}.json"
        where = f"requests of {domain} (banks/requests/{domain}.yaml, compiled by banks/make.py)"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadFile(f"{where}: are missing; write the file and run banks/make.py") from None
        except ValueError as error:
            raise BadFile(f"{where}: cannot be read as JSON ({error}); run banks/make.py") from None
        return cls(data, where)

    @classmethod
    def read(cls, path: Path) -> Requests:
        """Those of a YAML file, for a domain outside this package."""
        from crosswind.base.yaml_files import read

        return cls(read(path).data, str(path))

    def words(self, role: str) -> Mapping[str, Any]:
        """What people call a detail, how they ask for it, and what stands for it where it is withheld."""
        found = self._mapping(self.details, role, "details.", WORDS)
        for key in ("label", "question", "vague"):
            self._text(found, key, f"details.{role}.")
        if not _texts(found.get("words")):
            raise BadFile(f"{self.where}: details.{role}.words: got {found.get('words')!r}; expected a list of words")
        return found

    def family(self, name: str) -> tuple[str, str, dict[str, Any]] | None:
        """The graph of a family, what it is about and its own attributes; None for one that is a class of its own."""
        found = self._mapping(self.families, name, "families.", FAMILY)
        if "graph" not in found:
            return None
        graph, about = (self._text(found, key, f"families.{name}.") for key in ("graph", "about"))
        return graph, about, {"house": tuple(found["house"])} if "house" in found else {}

    def sentences(self, name: str, details: Iterable[str]) -> tuple[str, ...]:
        """The sentences of a family, each of which has a hole for every detail and no other."""
        place = f"{self.where}: families.{name}.sentences"
        found: Any = self._mapping(self.families, name, "families.").get("sentences")
        if isinstance(found, str):
            found = self._mapping(self.families, found, f"families.{name}.sentences: ").get("sentences")
        if not _texts(found):
            raise BadFile(f"{place}: got {found!r}; expected a list of sentences, or the name of a family that has one")
        holes = set(details)
        for n, sentence in enumerate(found):
            if wrong := sorted(holes ^ set(HOLE.findall(sentence))):
                state = "is missing" if wrong[0] in holes else "is no detail of this family"
                raise BadFile(f"{place}.{n}: {{{wrong[0]}}} {state}: {sentence!r}")
        return tuple(found)

    def _mapping(
        self, data: Mapping[str, Any], key: str, place: str = "", known: Sequence[str] = ()
    ) -> Mapping[str, Any]:
        found = data.get(key)
        if not isinstance(found, dict):
            raise BadFile(f"{self.where}: {place}{key}: got {found!r}; expected a mapping")
        if known and (extra := [k for k in found if k not in known]):
            raise BadFile(f"{self.where}: {place}{key}.{extra[0]}: no such key; there are {', '.join(known)}")
        return found

    def _text(self, data: Mapping[str, Any], key: str, place: str = "") -> str:
        found = data.get(key)
        if not isinstance(found, str) or not found:
            raise BadFile(f"{self.where}: {place}{key}: got {found!r}; expected text")
        return found


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) and text for text in value)
