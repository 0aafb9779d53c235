"""Snapshots of `tools/list`: what `crosswind learn` wrote, or the answer of a server as it came."""

from __future__ import annotations

from typing import Any

from crosswind.watch.observed import ObservedEpisode, listed


def _tools(data: Any) -> Any:
    if isinstance(data, dict) and isinstance(data.get("result"), dict):
        data = data["result"]  # a JSON-RPC answer
    return data.get("tools") if isinstance(data, dict) else data


def is_listing(data: Any) -> bool:
    """Is it a list of tools with names?"""
    tools = _tools(data)
    if not isinstance(tools, list) or not tools or (isinstance(data, dict) and "steps" in data):
        return False
    schemas = ("inputSchema", "input_schema", "parameters", "function", "description")
    return all(isinstance(one, dict) and any(key in one for key in schemas) for one in tools)


def snapshot_of(data: Any, where: str) -> ObservedEpisode:
    """A listing as an episode without calls."""
    name = str(data.get("name") or data.get("server") or "") if isinstance(data, dict) else ""
    return ObservedEpisode(id=where, source="snapshot", agent=name, listing=listed(_tools(data)), is_snapshot=True)
