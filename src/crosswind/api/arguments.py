"""Arguments from Python: refused with their own names where they cannot work."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from crosswind.base.errors import CrosswindError

F = TypeVar("F", bound=Callable[..., Any])
OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?: ([a-z]+)=(\d[\d.]*\d|\d)| (\d[\d.]*\d|\d))?")


def in_python(text: str) -> str:
    """A text about options of a command, about the arguments that they are in Python.

    >>> in_python("choose another --out, or give --max-drop tier=0.10 and --min-clean 0.8.")
    'choose another out, or give max_drop={"tier": 0.10} and min_clean=0.8.'
    """

    def written(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        value = f'{{"{found[2]}": {found[3]}}}' if found[2] else found[4]
        return f"{name}={value}" if value else name

    return OPTION.sub(written, text)


def naming_arguments(function: F) -> F:
    """The function, plain or async, whose errors name arguments where a command's would name options."""

    def renamed(error: CrosswindError) -> CrosswindError:
        error.args = tuple(in_python(one) if isinstance(one, str) else one for one in error.args)
        return error

    @wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except CrosswindError as error:
            raise renamed(error) from error.__cause__

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CrosswindError as error:
            raise renamed(error) from error.__cause__

    return cast("F", awaited if inspect.iscoroutinefunction(function) else called)


def at_least(least: int, **given: object) -> None:
    """Refuse arguments that are no whole numbers, or less than this; None stands for a default."""
    for name, value in given.items():
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise CrosswindError(f"{name} is {value!r}; expected a whole number, {least} or more")
        if value < least:
            raise CrosswindError(f"{name} is {value}; expected {least} or more")


def above_zero(**given: object) -> None:
    """Refuse arguments that are no numbers above 0; None stands for no limit."""
    for name, value in given.items():
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or not value > 0):
            raise CrosswindError(f"{name} is {value!r}; expected a number above 0")
