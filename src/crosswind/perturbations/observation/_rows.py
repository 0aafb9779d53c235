"""What layers do to the content of results, whatever its shape; not a perturbation itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crosswind.core.flow import digest
from crosswind.core.types import ToolCall

Record = dict[str, Any]


def mapped(content: Any, change: Callable[[Record], Record]) -> Any:
    """Content with every record in it changed, the inner ones first; the same object where nothing was."""
    if isinstance(content, dict):
        new = {
            key: mapped(value, change) if isinstance(value, (dict, list)) else value for key, value in content.items()
        }
        return change(content if all(new[key] is content[key] for key in content) else new)
    if isinstance(content, list):
        rows = [mapped(value, change) if isinstance(value, (dict, list)) else value for value in content]
        return content if all(new is old for new, old in zip(rows, content, strict=True)) else rows
    return content


def valued(content: Any, change: Callable[[Any], Any]) -> Any:
    """Content with every scalar in it changed; the same object where nothing was."""
    if isinstance(content, dict):
        new = {key: valued(value, change) for key, value in content.items()}
        return content if all(new[key] is content[key] for key in content) else new
    if isinstance(content, list):
        rows = [valued(value, change) for value in content]
        return content if all(new is old for new, old in zip(rows, content, strict=True)) else rows
    return change(content)


def records(content: Any) -> list[Record]:
    """Every record in some content, the outer ones first."""
    if isinstance(content, dict):
        return [content, *(record for value in content.values() for record in records(value))]
    if isinstance(content, list):
        return [record for value in content for record in records(value)]
    return []


def is_date(value: Any) -> bool:
    """Is it a date as tools write it?"""
    return (
        isinstance(value, str)
        and len(value) == 10
        and value[4] == value[7] == "-"
        and (value[:4] + value[5:7] + value[8:]).isdigit()
    )


def is_time(value: Any) -> bool:
    """Is it a time of day as tools write it?"""
    return isinstance(value, str) and len(value) == 5 and value[2] == ":" and (value[:2] + value[3:]).isdigit()


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_id(value: Any) -> bool:
    """Does it look like an id: one token of letters and digits?"""
    return (
        isinstance(value, str)
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and value.replace("-", "").replace("_", "").replace("#", "").isalnum()
    )


def distorted(content: Any, call: ToolCall, salt: object) -> Any:
    """The same facts with other figures, as another time or another source might give them.

    Numbers and times of day move, and with the dates they change places among the rows of a list; names, ids and
    whatever is in the frame round some records do not. The same call with the same salt is distorted alike.
    """
    return _moved(content, f"{salt}|{call.tool}|{sorted(call.args.items())}")


def _moved(content: Any, at: str) -> Any:
    if isinstance(content, dict):
        frame = any(isinstance(value, (dict, list)) for value in content.values())
        return {
            key: value if frame and not isinstance(value, (dict, list)) else _moved(value, f"{at}.{key}")
            for key, value in content.items()
        }
    if isinstance(content, list):
        return [_moved(value, f"{at}.{i}") for i, value in enumerate(_turned(content, at))]
    if is_number(content):
        return _other_number(content, digest(at, content))
    if is_time(content):
        return f"{(int(content[:2]) + 1 + digest(at, content)[0] % 6) % 24:02d}{content[2:]}"
    return content


def _turned(rows: list[Any], at: str) -> list[Any]:
    """Rows in which figures and dates are in each other's places."""
    if len(rows) < 2 or not all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
        return rows
    columns = [key for key in rows[0] if all(is_number(v) or is_time(v) or is_date(v) for v in (r[key] for r in rows))]
    hop = 1 + digest(at, len(rows))[0] % (len(rows) - 1)
    others = rows[hop:] + rows[:hop]
    return [{**row, **{key: other[key] for key in columns}} for row, other in zip(rows, others, strict=True)]


def _other_number(value: float, chance: bytes) -> float:
    """Another number of the same size and the same number of decimals."""
    decimals = len(repr(value).partition(".")[2]) if isinstance(value, float) else 0
    unit = 10.0**decimals
    steps = round(abs(value) * unit)
    hop = 1 + chance[0] % max(3, steps // 3)
    down = steps >= hop and (steps >= 20 or chance[1] % 2 == 0)
    moved = steps - hop if down else steps + hop
    signed = -moved if value < 0 else moved
    return round(signed / unit, decimals) if decimals else signed


def renamed_keys(content: Any, names: Mapping[str, str]) -> Any:
    """Content in which keys go by other names; the same object where none does."""

    def change(record: Record) -> Record:
        if names.keys().isdisjoint(record):
            return record
        return {names.get(key, key): value for key, value in record.items()}

    return mapped(content, change)
