"""What all checks of a declaration share: complaints with their line, names, columns and values."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crosswind.authoring.yaml_domain.references import ColumnTest, Ref, conditions, holes, ref
from crosswind.authoring.yaml_domain.schema import Column, Declaration, NumberRange, is_date, minutes, reader_sort
from crosswind.base.errors import BadFile
from crosswind.base.files import Document, Place
from crosswind.core.registry import near

_WORD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


class Checker:
    """Checks what a schema cannot say. The first thing that does not fit is raised with its line."""

    def __init__(self, document: Document, declared: Declaration) -> None:
        self.document, self.d = document, declared

    def fail(self, place: Sequence[str | int], text: str) -> BadFile:
        return self.document.error(place, text)

    def word(self, text: str, place: Place, what: str) -> None:
        if not _WORD.fullmatch(text) or keyword.iskeyword(text) or text in ("all", "ask_user"):
            raise self.fail(
                place, f"{what} cannot be called {text!r}; use lower-case letters, digits and _, as in best_of_two"
            )

    def one_of(self, name: str, names: Iterable[str], place: Place, what: str) -> None:
        if name not in (known := sorted(names)):
            raise self.fail(place, f"there is no {what} {name!r}; {near(name, known) if known else 'none is declared'}")

    def parsed(self, place: Place, value: Any) -> Ref:
        try:
            return ref(value)
        except ValueError as error:
            raise self.fail(place, str(error)) from None

    def conditions(self, place: Place, given: Mapping[str, Any]) -> list[ColumnTest]:
        try:
            return conditions(given)
        except ValueError as error:
            raise self.fail(place, str(error)) from None

    def columns(self, table: str) -> dict[str, Column]:
        """The columns of a table's rows: its own and, where it belongs to another, that one's key."""
        made = self.d.tables[table]
        return {**self.d.tables[table].columns, **({self.key(made.of): Column(refer=made.of)} if made.of else {})}

    def key(self, table: str) -> str:
        return self.d.tables[table].id.key

    def mentions(self, place: Place, text: str) -> None:
        for name in holes(text):
            self.one_of(name, self.d.tools, place, "tool")

    def range(self, place: Place, made: NumberRange) -> None:
        if made.step <= 0 or made.high < made.low + made.step:
            raise self.fail(place, "expected low < high and a step that fits between them")

    def fits(self, place: Place, column: Column, value: Any, name: str) -> None:
        """Can a column hold a literal value?"""
        wrong = (
            (column.refer or (column.choice and value not in column.choice))
            or (column.number and (isinstance(value, str) or not column.number.low <= value <= column.number.high))
            or (column.date and not is_date(str(value)))
            or (column.time and minutes(value) is None)
        )
        if wrong:
            takes = ", ".join(column.choice) or (f"keys of {column.refer}" if column.refer else f"a {column.fill}")
            raise self.fail(place, f"{name} cannot be {value!r}; it holds {takes}")

    def literal(self, place: Place, given: Ref) -> None:
        if given.detail or given.step:
            raise self.fail(place, "only a plain value can stand here")

    def sort(self, detail: str) -> str:
        """Details of one sort are read alike."""
        made = self.d.details[detail]
        return reader_sort(self.d, made)
