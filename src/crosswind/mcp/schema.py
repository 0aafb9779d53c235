"""JSON Schema: whether values fit what a server lists, and schemas without references.

A complaint is certain, and silence proves nothing: patterns and formats are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from crosswind.base.extras import extra

WORDS = 200  # characters of a complaint
DEEPEST = 100  # levels of a listed tool
INLINED = 6  # references within references; one that never ends is cut there
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")

Json = dict[str, Any]


def record(value: Any) -> Json:
    """A value that should be an object; an empty one where it is something else."""
    return value if isinstance(value, dict) else {}


def misfit(value: Any, schema: Any) -> str:
    """Where and why a value does not fit a schema; empty where no fault was found, or the schema itself is none."""
    with extra("mcp", "tasks for an MCP server"):
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.exceptions import best_match
        from jsonschema.validators import validator_for
        from referencing import Registry
        from referencing.exceptions import Unresolvable

    known = validator_for(schema, default=Draft202012Validator)
    try:
        known.check_schema(schema)
        error = best_match(_lenient(known)(schema, registry=Registry()).iter_errors(value))  # fetches no reference
    except (SchemaError, Unresolvable, RecursionError):
        return ""
    if error is None:
        return ""
    where = error.json_path.removeprefix("$").removeprefix(".") or "the value"
    return f"{where}: {error.message[:WORDS]}"


@cache
def _lenient(known: Any) -> Any:
    """A validator without patterns: they are written for another language, and some take forever."""
    from jsonschema.validators import extend

    def closed(validator: Any, more: Any, instance: Any, at: Json) -> Any:
        skips = "patternProperties" in at
        return () if skips else known.VALIDATORS["additionalProperties"](validator, more, instance, at)

    skip = {"pattern": lambda *_: (), "patternProperties": lambda *_: ()}
    return extend(known, {**skip, "additionalProperties": closed})


def referred(ref: str, root: Any) -> Any:
    """What a reference into the same schema leads to; None where that is nothing."""
    if not ref.startswith("#"):
        return None
    found = root
    for part in filter(None, ref[1:].split("/")):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def inlined(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """A schema without references: what they lead to stands in their place."""
    root = schema if root is None else root
    if isinstance(schema, list):
        return [inlined(part, root, depth) for part in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {
        key: {name: inlined(one, root, depth) for name, one in part.items()}
        if key == "properties" and isinstance(part, dict)  # whose keys are names, not keywords
        else inlined(part, root, depth)
        for key, part in schema.items()
        if key not in ("$ref", "$defs", "definitions")
    }
    ref = schema.get("$ref")
    found = referred(ref, root) if isinstance(ref, str) and depth < INLINED else None
    return {**inlined(found, root, depth + 1), **rest} if isinstance(found, dict) else rest


def bad_listing(listed: Sequence[Any]) -> str:
    """Why a list of tools cannot be used; empty where it can."""
    names: set[str] = set()
    for n, raw in enumerate(listed):
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str) or not name:
            return f"entry {n} is no tool with a name"
        if name in names:
            return f"{name!r} is listed twice"
        names.add(name)
        if too_deep(raw):
            return f"the schemas of {name!r} nest too deeply"
        schema = raw.get("inputSchema")
        properties = schema.get("properties", {}) if isinstance(schema, dict) else None
        if not isinstance(schema, dict) or schema.get("type", "object") != "object" or not isinstance(properties, dict):
            return f"the inputSchema of {name!r} is no schema of an object"
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
        return "its content is no list"
    if output is None or raw.get("isError") is True:
        return ""
    if "structuredContent" not in raw:
        return "it has no structured content"
    return misfit(raw["structuredContent"], output)
