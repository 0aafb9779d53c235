"""Read YAML files strictly. Every error names the file, the line and the remedy.

A file is plain data: anchors, aliases, tags and repeated keys are rejected, because each of them makes a file mean
something other than it seems to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from crosswind.base.errors import BadFile
from crosswind.base.files import read_whole

M = TypeVar("M", bound=BaseModel)
Place = tuple[str | int, ...]
LIMIT = 2_000_000  # characters in a file
DEEP = 40  # levels of nesting
DIGITS = 100  # characters of a number; a longer one is text
MOST = 100_000  # values and keys; what has more is no file that a person wrote, and takes long to read
PLAIN = {  # pydantic's words for what is common, said more plainly
    "extra_forbidden": "unknown key",
    "missing": "this key is missing",
    "greater_than_equal": "expected at least {ge}",
    "greater_than": "expected more than {gt}",
    "less_than_equal": "expected at most {le}",
    "less_than": "expected less than {lt}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "expected a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
    "string_type": "expected text",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "expected a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "expected keys with values"),
}


class Document:
    """The data of a file, and the line of each part."""

    def __init__(self, data: Any, lines: dict[Place, int], where: str) -> None:
        self.data, self.lines, self.where = data, lines, where

    def at(self, place: Sequence[str | int]) -> str:
        """`file:line` of the innermost part that has a line; only the name for data that was never in a file."""
        if not self.lines:
            return self.where
        spot = tuple(place)
        while spot and spot not in self.lines:
            spot = spot[:-1]
        return f"{self.where}:{self.lines.get(spot, 1)}"

    def error(self, place: Sequence[str | int], text: str, line: Sequence[str | int] | None = None) -> BadFile:
        """An error about a place. `line` is the place whose line to name, if it is another."""
        spot = ".".join(map(str, place))
        return BadFile(f"{self.at(place if line is None else line)}: {spot + ': ' if spot else ''}{text}")

    def fit(self, model: type[M]) -> M:
        """The data as a model. The first value that does not fit is reported with its line."""
        try:
            fitted = model.model_validate(self.data, strict=False)
        except ValidationError as error:
            first = error.errors()[0]
            place = tuple(p for p in first["loc"] if not (isinstance(p, str) and "[" in p))
            remedy = "fix this line" if self.lines else "give another value"
            if first["type"] in ("extra_forbidden", "missing"):
                remedy = expected(model, place[:-1])
            said = complaint(first)
            named = (*place, said.split(" ", 1)[0])  # a check of several keys has no place; its text starts with one
            line = named if first["type"] == "value_error" and named in self.lines else place
            raise self.error(place, f"{said}; {remedy}", line) from None
        for place in taken_for_numbers(self.data, fitted):
            raise self.error(place, "got yes or no; expected a number")
        return fitted


def taken_for_numbers(raw: Any, fitted: Any, place: Place = ()) -> Iterator[Place]:
    """The places where yes and no became 1 and 0. Strings may become numbers, because YAML reads `1e-3` as a string."""
    if isinstance(raw, bool):
        if isinstance(fitted, int | float) and not isinstance(fitted, bool):
            yield place
    elif isinstance(raw, dict):
        inner = fitted if isinstance(fitted, Mapping) else getattr(fitted, "__dict__", {})
        for key, value in raw.items():
            yield from taken_for_numbers(value, inner.get(key), (*place, key))
    elif isinstance(raw, list) and isinstance(fitted, list | tuple):
        for n, (value, part) in enumerate(zip(raw, fitted, strict=False)):
            yield from taken_for_numbers(value, part, (*place, n))


def expected(model: type[BaseModel], place: Sequence[str | int]) -> str:
    """A sentence that lists the keys of a part of a model."""
    return f"expected one of the keys {', '.join(_model_at(model, place).model_fields)}"


def _model_at(model: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    """The model of a part, as far as annotations lead to it."""
    for step in place:
        field = model.model_fields.get(str(step))
        inner = [field.annotation, *get_args(field.annotation)] if field else []
        model = next((m for m in inner if isinstance(m, type) and issubclass(m, BaseModel)), model)
    return model


def complaint(error: ErrorDetails) -> str:
    """Say what value came and what was expected. Messages of our own checks name the value already."""
    said = error["msg"].removeprefix("Value error, ").rstrip(".")
    if plain := PLAIN.get(error["type"]):
        limits = error.get("ctx", {}).items()
        said = plain.format_map({k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in limits})
    said = said.replace("Input should be ", "expected ")
    said = said[0].lower() + said[1:]
    if error["type"] in ("value_error", "extra_forbidden", "missing"):
        return said
    came = repr(error["input"])
    return f"got {came if len(came) <= 60 else came[:57] + '...'}; {said}"


def read(path: Path | str) -> Document:
    """Read a YAML file."""
    path = Path(path)
    try:
        text = read_whole(path, 4 * LIMIT, links=True).decode().replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise BadFile(f"{path}: file not found; check the path") from None
    except IsADirectoryError:
        raise BadFile(f"{path}: this is a folder; give a file") from None
    except (OSError, ValueError) as error:  # not UTF-8, or a path with a NUL
        raise BadFile(f"{path}: cannot be read as UTF-8 text ({error})") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Document:
    """Read YAML text."""
    if len(text) > LIMIT:
        raise BadFile(f"{where}:1: the file has {len(text)} characters; at most {LIMIT} are read")
    try:
        loader = _Strict(text, where)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise BadFile(f"{where}:{line}: not valid YAML: {error.problem or error.context}; fix this line") from None
    except yaml.YAMLError as error:
        raise BadFile(f"{where}:1: not valid YAML: {str(error).splitlines()[0]}; fix the file") from None
    except RecursionError:
        raise BadFile(f"{where}:1: nested too deeply; at most {DEEP} levels are read") from None
    except (ValueError, OverflowError) as error:  # a number of a directive or an escape that is none
        raise BadFile(f"{where}:1: not valid YAML: {str(error).splitlines()[0]}; fix the file") from None
    lines: dict[Place, int] = {}
    if node is None:
        return Document(None, lines, where)
    return Document(_built(node, (), lines, where), lines, where)


class _Strict(yaml.SafeLoader):
    """A loader that refuses what a file must not hold as soon as it comes to it."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self.where, self.depth, self.documents, self.parts = where, 0, 0, 0

    def get_event(self) -> yaml.Event:
        event: yaml.Event = super().get_event()  # type: ignore[no-untyped-call]
        line = _line(event)
        _refuse(event, self.where)
        opens = isinstance(event, yaml.CollectionStartEvent)
        self.depth += opens - isinstance(event, yaml.CollectionEndEvent)
        self.parts += isinstance(event, yaml.NodeEvent)
        if opens and self.depth > DEEP:
            raise BadFile(f"{self.where}:{line}: nested too deeply; at most {DEEP} levels are read")
        if self.parts > MOST:
            raise BadFile(f"{self.where}:{line}: too long; at most {MOST:,} keys and values are read")
        self.documents += isinstance(event, yaml.DocumentStartEvent)
        if self.documents > 1:
            raise BadFile(f"{self.where}:{line}: a second document begins here; expected one document per file")
        return event


def _refuse(event: yaml.Event, where: str) -> None:
    line = _line(event)
    anchor = getattr(event, "anchor", None)
    if isinstance(event, yaml.AliasEvent):
        raise BadFile(f"{where}:{line}: the alias *{anchor} is not allowed; write the value out")
    if anchor:
        raise BadFile(f"{where}:{line}: the anchor &{anchor} is not allowed; write the value where it is needed")
    tag = getattr(event, "tag", None)
    if tag and tag != "!":
        raise BadFile(f"{where}:{line}: the tag {tag} is not allowed; write a plain value")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _built(node: yaml.Node, place: Place, lines: dict[Place, int], where: str) -> Any:
    line = node.start_mark.line + 1
    lines[place] = line
    if isinstance(node, yaml.MappingNode):
        out: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            at = key_node.start_mark.line + 1
            key = _scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, (str, int, float)) or isinstance(key, bool):
                raise BadFile(f"{where}:{at}: a key must be plain text; put it in quotes")
            key = key if isinstance(key, (str, int)) else str(key)
            if key in out:
                raise BadFile(f"{where}:{at}: the key {key!r} appears twice; keep one")
            lines[(*place, key)] = at
            out[key] = _built(value_node, (*place, key), lines, where)
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_built(child, (*place, i), lines, where) for i, child in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return _scalar(node)


_PLAIN = yaml.constructor.SafeConstructor()


def _scalar(node: yaml.ScalarNode) -> Any:
    """A scalar as YAML reads it, but dates and binary data stay text."""
    if node.tag in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:binary", "tag:yaml.org,2002:value"):
        return node.value
    if node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float") and len(node.value) > DIGITS:
        return node.value
    try:
        return _PLAIN.construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError):
        return node.value
