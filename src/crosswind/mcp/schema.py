"""As much of JSON Schema as is needed to see whether a server keeps to what it lists.

What is not known here (patterns, formats, bounds) is not asked: a complaint is certain, and silence proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

DEPTH = 24  # of schemas and values; below it nothing is asked
INLINED = 6  # references within references; one that never ends is cut there
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")

Json = dict[str, Any]


def record(value: Any) -> Json:
    """A value that should be an object; an empty one where it is something else."""
    return value if isinstance(value, dict) else {}


def misfit(value: Any, schema: Any) -> str:
    """Where and why a value does not fit a schema; empty where no fault was found."""
    return _misfit(value, schema, schema, "", 0)


def _misfit(value: Any, schema: Any, root: Any, at: str, depth: int) -> str:
    if schema is False:
        return f"{at or 'the value'} is not allowed"
    if not isinstance(schema, dict) or depth > DEPTH:
        return ""
    if isinstance(schema.get("$ref"), str):
        found = referred(schema["$ref"], root)
        return _misfit(value, found, root, at, depth + 1) if found is not None else ""
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(kinds, list) and kinds and not any(_is(value, kind) for kind in kinds):
        return f"{at or 'the value'} is {_kind(value)}, not {' or '.join(map(str, kinds))}"
    if "const" in schema and value != schema["const"]:
        return f"{at or 'the value'} is not {schema['const']!r}"
    if isinstance(schema.get("enum"), list) and value not in schema["enum"]:
        return f"{at or 'the value'} is none of the values allowed"
    for key in ("anyOf", "oneOf"):
        parts = schema.get(key)
        if isinstance(parts, list) and parts:
            faults = [_misfit(value, part, root, at, depth + 1) for part in parts]
            if all(faults):
                return faults[0]
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        if fault := _misfit(value, part, root, at, depth + 1):
            return fault
    if isinstance(value, dict):
        return _object(value, schema, root, at, depth)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            if fault := _misfit(item, schema["items"], root, f"{at}[{i}]", depth + 1):
                return fault
    return ""


def _object(value: Json, schema: Json, root: Any, at: str, depth: int) -> str:
    properties, required = record(schema.get("properties")), schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            return f"{at + '.' if at else ''}{name} is missing"
    more = schema.get("additionalProperties")
    for name, part in value.items():
        spot = f"{at}.{name}" if at else name
        if name in properties:
            fault = _misfit(part, properties[name], root, spot, depth + 1)
        elif more is False and "patternProperties" not in schema:
            fault = f"{spot} is not in the schema"
        else:
            fault = _misfit(part, more, root, spot, depth + 1)
        if fault:
            return fault
    return ""


def _is(value: Any, kind: object) -> bool:
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer":
        whole = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value == int(value))
        return whole and not isinstance(value, bool)
    return kind not in TYPES or _kind(value) == kind


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    for kind, types in (("boolean", bool), ("string", str), ("number", (int, float)), ("array", list)):
        if isinstance(value, types):
            return kind
    return "object"


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
        schema = raw.get("inputSchema")
        properties = schema.get("properties", {}) if isinstance(schema, dict) else None
        if not isinstance(schema, dict) or schema.get("type", "object") != "object" or not isinstance(properties, dict):
            return f"the inputSchema of {name!r} is no schema of an object"
        required = schema.get("required", [])
        if not isinstance(required, list) or any(one not in properties for one in required):
            return f"the inputSchema of {name!r} requires what it does not have"
    return ""


def lie(raw: Json, output: Json | None) -> str:
    """How a result departs from the schema of results that its tool is listed with; empty where it does not."""
    if not isinstance(raw.get("content", []), list):
        return "its content is no list"
    if output is None or raw.get("isError") is True:
        return ""
    if "structuredContent" not in raw:
        return "it has no structured content"
    return misfit(raw["structuredContent"], output)
