"""JSON Schema: whether values fit what a server lists, and schemas without references.

A complaint is certain, and silence proves nothing: patterns and formats are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

from crosswind.base.extras import extra

WORDS = 200  # characters of a complaint
DEEPEST = 100  # levels of a listed tool
INLINED = 6  # references within references; one that never ends is cut there
NODES = 100_000  # of a schema, as it is listed and once its references are put in
STEPS = 20_000  # of holding a value against a schema, and for each of its parts as many more as `PER_NODE`
PER_NODE = 50
MOST_STEPS = 1_000_000
FEW = 1_000  # entries up to which a list is searched for equal ones
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")

Json = dict[str, Any]


class TooComplex(Exception):
    """A schema takes more work than any that somebody wrote."""


class Allowance:
    """Work that may be done; `spend` raises `TooComplex` once it is more."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, more: int = 1) -> None:
        """Count work that is about to be done."""
        self.left -= more
        if self.left < 0:
            raise TooComplex


_steps: ContextVar[Allowance] = ContextVar("steps")


def record(value: Any) -> Json:
    """A value that should be an object; an empty one where it is something else."""
    return value if isinstance(value, dict) else {}


def misfit(value: Any, schema: Any) -> str:
    """Where and why a value does not fit a schema, or that the schema is too complex to tell.

    Empty where no fault was found, or the schema itself is none.
    """
    with extra("mcp", "tasks for an MCP server"):
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.exceptions import best_match
        from jsonschema.validators import validator_for
        from referencing import Registry
        from referencing.exceptions import Unresolvable

    known = validator_for(schema, default=Draft202012Validator)
    try:
        plain = _of_one_dialect(schema, Allowance(NODES))
        known.check_schema(plain)
        _steps.set(Allowance(min(STEPS + PER_NODE * sum(1 for _ in _parts(value)), MOST_STEPS)))
        error = best_match(_lenient(known)(plain, registry=Registry()).iter_errors(value))  # fetches no reference
    except (SchemaError, Unresolvable, RecursionError, AttributeError, TypeError):  # a reference may lead to any value
        return ""
    except TooComplex:
        return "the schema is too complex to hold a value against it"
    if error is None:
        return ""
    where = error.json_path.removeprefix("$").removeprefix(".") or "the value"
    return f"{where}: {error.message[:WORDS]}"


def _of_one_dialect(schema: Any, nodes: Allowance) -> Any:
    """A schema whose parts do not say which dialect they are in: those that do get another validator than ours."""
    nodes.spend()
    if isinstance(schema, list):
        return [_of_one_dialect(part, nodes) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _of_one_dialect(part, nodes)
        for key, part in schema.items()
        if key != "$schema" or not isinstance(part, str)
    }


def _parts(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    waiting = [value]
    while waiting:
        yield (one := waiting.pop())
        if isinstance(one, (dict, list)):
            waiting += one.values() if isinstance(one, dict) else one


@cache
def _lenient(known: Any) -> Any:
    """A validator that counts its steps, without patterns: they are for another language, and some take forever."""
    from jsonschema.validators import extend

    def counted(check: Any) -> Any:
        def step(validator: Any, more: Any, instance: Any, at: Json) -> Any:
            _steps.get().spend()
            return check(validator, more, instance, at)

        return step

    def closed(validator: Any, more: Any, instance: Any, at: Json) -> Any:
        skips = "patternProperties" in at
        return () if skips else known.VALIDATORS["additionalProperties"](validator, more, instance, at)

    def unique(validator: Any, more: Any, instance: Any, at: Json) -> Any:  # each is compared with each
        skips = isinstance(instance, list) and len(instance) > FEW
        return () if skips else known.VALIDATORS["uniqueItems"](validator, more, instance, at)

    skip = {"pattern": lambda *_: (), "patternProperties": lambda *_: ()}
    checks = {**known.VALIDATORS, **skip, "additionalProperties": closed, "uniqueItems": unique}
    return extend(known, {name: counted(check) for name, check in checks.items()})


def referred(ref: str, root: Any) -> Any:
    """What a reference into the same schema leads to; None where that is nothing."""
    if not ref.startswith("#"):
        return None
    found = root
    for part in filter(None, ref[1:].split("/")):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def inlined(schema: Any, nodes: Allowance | None = None) -> Any:
    """A schema without references: what they lead to stands in their place, as deep as `NODES` allow.

    `nodes` may be made for several schemas together. Raises `TooComplex` where there are too many even without them.
    """
    for deepest in range(INLINED, -1, -1):
        one = Allowance(NODES)
        try:
            return _inlined(schema, schema, deepest, one)
        except TooComplex:
            if not deepest:
                raise
        finally:
            if nodes is not None:
                nodes.spend(NODES - one.left)
    raise AssertionError


def _inlined(schema: Any, root: Any, deeper: int, nodes: Allowance) -> Any:
    nodes.spend()
    if isinstance(schema, list):
        return [_inlined(part, root, deeper, nodes) for part in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {
        key: {name: _inlined(one, root, deeper, nodes) for name, one in part.items()}
        if key == "properties" and isinstance(part, dict)  # whose keys are names, not keywords
        else _inlined(part, root, deeper, nodes)
        for key, part in schema.items()
        if key not in ("$ref", "$defs", "definitions")
    }
    ref = schema.get("$ref")
    found = referred(ref, root) if isinstance(ref, str) and deeper else None
    return {**_inlined(found, root, deeper - 1, nodes), **rest} if isinstance(found, dict) else rest


def bad_listing(listed: Sequence[Any]) -> str:
    """Why a list of tools cannot be used; empty where it can."""
    names: set[str] = set()
    for n, raw in enumerate(listed):
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str) or not name:
            return f"entry {n} is not a tool with a name"
        if name in names:
            return f"{name!r} is listed twice"
        names.add(name)
        if too_deep(raw):
            return f"the schemas of {name!r} nest too deeply"
        schema = raw.get("inputSchema")
        properties = schema.get("properties", {}) if isinstance(schema, dict) else None
        if not isinstance(schema, dict) or schema.get("type", "object") != "object" or not isinstance(properties, dict):
            return f"the inputSchema of {name!r} is not the schema of an object"
        required = schema.get("required", [])
        if not isinstance(required, list) or any(one not in properties for one in required):
            return f"the inputSchema of {name!r} requires what it does not have"
    return ""


def too_deep(value: Any) -> bool:
    """Does a value nest further than any schema that somebody wrote?"""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, (dict, list))
        ]
        if not level:
            return False
    return True


def lie(raw: Json, output: Json | None) -> str:
    """How a result departs from the schema of results that its tool is listed with; empty where it does not."""
    if not isinstance(raw.get("content", []), list):
        return "its content is not a list"
    if output is None or raw.get("isError") is True:
        return ""
    if "structuredContent" not in raw:
        return "it has no structured content"
    return misfit(raw["structuredContent"], output)
