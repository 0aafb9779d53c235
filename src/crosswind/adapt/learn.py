"""The interface that an agent knows, out of records of a time when all went well: runs, or the log of a proxy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from crosswind.core.types import Param, ToolSpec
from crosswind.episodes.record import Record
from crosswind.models.interface import KnownInterface


def interface_of(records: Iterable[Record], most: int | None = None) -> KnownInterface:
    """What an agent was shown and answered in the first episodes; layers, worlds and verdicts are not looked at."""
    found = KnownInterface()
    for record in islice(records, most):
        found.meet(_specs(record.tools))
        for step in record.steps:
            if "content" in step["result"]:
                found.answered(str(step["call"]["tool"]), step["result"]["content"])
    return found


def _specs(tools: Iterable[Mapping[str, Any]]) -> Iterable[ToolSpec]:
    for tool in tools:
        function = tool["function"]
        parameters = function.get("parameters")
        schema = parameters if isinstance(parameters, Mapping) else {}
        required = schema.get("required") or ()
        properties = schema.get("properties")
        params = {
            str(name): _param(part, name in required)
            for name, part in (properties.items() if isinstance(properties, Mapping) else ())
        }
        yield ToolSpec(str(function["name"]), str(function.get("description") or ""), params)


def _param(part: Any, required: bool) -> Param:
    about = part if isinstance(part, Mapping) else {}
    sort, enum = about.get("type"), about.get("enum")
    return Param(
        sort if isinstance(sort, str) else "string",
        str(about.get("description") or ""),
        required,
        tuple(map(str, enum)) if isinstance(enum, list) else (),
    )
