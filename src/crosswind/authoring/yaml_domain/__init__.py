"""A domain that is declared in a YAML file: tables, tools, rules and families become a `Domain` like any other.

`solve` makes the declared calls and reads their results. What is right (`ends`, `answer`, `conceivable_ends`) is found
without it, by following the same declaration over the rows of a state; no tool, session or layer has a part in that. A
declaration that asks for the wrong thing is wrong on both sides, though: no law can see that.

schema.py                      what a file may say
checks.py, family_checks.py    what else must be right: of tables, tools and rules; of details and families
rows.py, world.py, family.py   rows, tools and tasks; domain.py puts them together
"""

from __future__ import annotations

from pathlib import Path

from crosswind.authoring.yaml_domain.checks import Checker, TableChecks, ToolChecks
from crosswind.authoring.yaml_domain.domain import DeclaredDomain
from crosswind.authoring.yaml_domain.family import DeclaredFamily
from crosswind.authoring.yaml_domain.family_checks import FamilyChecks
from crosswind.authoring.yaml_domain.rows import TableShapes
from crosswind.authoring.yaml_domain.schema import Declaration, YamlFamily, without_holes
from crosswind.authoring.yaml_domain.world import DeclaredWorld, entry_of, world_body
from crosswind.base import yaml_files
from crosswind.base.errors import BadFile
from crosswind.base.yaml_files import Document, Place
from crosswind.core import domain as domains_module
from crosswind.core.domain import Domain, Family


def read_declaration(path: Path | str) -> tuple[Declaration, Document]:
    """Read and check a file; the document still knows the lines."""
    document = yaml_files.read(path)
    if not isinstance(document.data, dict):
        raise BadFile(f"{document.where}:1: expected a YAML domain; {yaml_files.expected(Declaration, ())}")
    declared = document.fit(Declaration)
    Checker(document, declared).word(declared.domain, ("domain",), "the domain")
    _check(declared, document)
    return declared, document


def load(path: Path | str) -> Domain:
    """The domain that a file declares."""
    declared, document = read_declaration(path)
    return _built(declared, document)


def checked(document: Document) -> Domain:
    """The domain that data declares, checked as a file would be; its name may be any text."""
    declared = document.fit(Declaration)
    _check(declared, document)
    return _built(declared, document)


def _built(declared: Declaration, document: Document) -> Domain:
    domains_module._rows.cache_clear()  # rows of an earlier domain of this name
    domain = build(declared)
    for name, family in domain.families.items():
        _check_words(document, ("families", name, "queries"), family)
    return domain


def _check(declared: Declaration, document: Document) -> None:
    for checks in (TableChecks, ToolChecks, FamilyChecks):
        checks(document, declared).run()


def _check_words(document: Document, place: Place, family: Family) -> None:
    """Refuse words that would be taken for a detail: in a query, or in what stands in for one that is withheld."""
    texts = [((*place, i), without_holes(query)) for i, query in enumerate(family.queries)]
    texts += [(("details", key), detail.vague) for key, detail in family.details.items()]
    for at, text in texts:
        for key, detail in family.details.items():
            if found := detail.read(text):
                raise document.error(at, f"the words themselves hold {found[0]!r}, to be taken for {{{key}}}; reword")


def build(declared: Declaration) -> Domain:
    """A domain from its declaration."""
    shapes = TableShapes(declared)
    world: type[DeclaredWorld] = type(f"{_camel(declared.domain)}World", (DeclaredWorld,), world_body(declared, shapes))
    world.entries = {name: entry_of(declared, shapes, name, tool) for name, tool in declared.tools.items()}
    world.specs = tuple(entry.spec for entry in world.entries.values())
    parts = {"name": declared.domain, "summary": declared.summary, "policy": declared.policy, "world_class": world}
    made: type[DeclaredDomain] = type(
        _camel(declared.domain), (DeclaredDomain,), {**parts, "__doc__": declared.summary}
    )
    domain = made(declared, shapes)
    families = [_family(domain, name, kind) for name, kind in declared.families.items()]
    domain.families = {family.name: family for family in families}
    made.named = frozenset(column for family in families for column in family.named())
    namers = {role: shapes.namer(of) for role, of in declared.entities.items() if role != "kind"}
    made.namers = {role: namer for role, namer in namers.items() if namer is not None}
    return domain


def _family(domain: DeclaredDomain, name: str, kind: YamlFamily) -> DeclaredFamily:
    """A family from its part of the declaration."""
    body = {"name": name, "level": kind.level, "refusal": kind.refusal, "queries": kind.queries}
    about = {
        "__doc__": kind.about,
        "stands": " > ".join(step.call for step in kind.steps if step.call),
        "__module__": __name__,
    }
    made: type[DeclaredFamily] = type(_camel(name), (DeclaredFamily,), {**body, **about})
    family = made(domain)
    made.house_rules = tuple(family.known_rules())
    return family


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
