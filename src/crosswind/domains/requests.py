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
      sold_out: {graph: Full, about: Nothing that fits is left., like: book_visit}  # whose sentences it takes
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from crosswind.base.errors import BadFile
from crosswind.base.yaml_files import Document
from crosswind.core.types import Model
from crosswind.domains.layout import packaged

HOLE = re.compile(r"\{(\w+)\}")
Said = Annotated[str, Field(min_length=1)]
Sentences = Annotated[tuple[Said, ...], Field(min_length=1)]


class DetailWords(Model):
    """What people call a detail, how they ask for it, and what replaces it where it is withheld or told before."""

    label: Said
    question: Said
    words: Sentences
    vague: Said
    known: str = ""


class FamilyWords(Model):
    """A family over a graph, with what it is about and its own attributes, or one that is a class of its own."""

    graph: str = ""
    about: str = ""
    house_rules: tuple[str, ...] | None = None
    like: str = ""  # a family whose sentences it takes
    sentences: Sentences | None = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if bool(self.graph) != bool(self.about):
            raise ValueError(f"graph is {self.graph!r} and about is {self.about!r}; expected both or neither")
        if bool(self.like) == bool(self.sentences):
            raise ValueError("expected either sentences, or like with the name of a family that has some")
        return self


class Requests(Model):
    """The requests of one domain. A bad or missing entry raises `BadFile` with the domain, the family and the key."""

    where: str
    policy: Said
    replies: dict[str, Said] = Field(default_factory=dict)
    details: dict[str, DetailWords]
    families: dict[str, FamilyWords]

    @classmethod
    def of(cls, data: Any, where: str) -> Requests:
        """Those that data has; `where` says in errors where it is."""
        return Document({**data, "where": where} if isinstance(data, dict) else data, {}, where).fit(cls)

    @classmethod
    def packaged(cls, domain: str) -> Requests:
        """Those of a domain of this package."""
        return cls.of(*packaged("requests", domain))

    def words(self, role: str) -> DetailWords:
        if role not in self.details:
            raise BadFile(f"{self.where}: details.{role}: is missing; write its words")
        return self.details[role]

    def sentences(self, name: str, details: Iterable[str]) -> tuple[str, ...]:
        """The sentences of a family, each of which has a hole for every detail and no other."""
        place, family = f"{self.where}: families.{name}", self.families[name]
        other = self.families.get(family.like, family)
        if other.sentences is None:
            raise BadFile(f"{place}.like: got {family.like!r}; expected the name of a family that has sentences")
        holes = set(details)
        for n, sentence in enumerate(other.sentences):
            if wrong := sorted(holes ^ set(HOLE.findall(sentence))):
                state = "is missing" if wrong[0] in holes else "is no detail of this family"
                raise BadFile(f"{place}.sentences.{n}: {{{wrong[0]}}} {state}: {sentence!r}")
        return other.sentences
