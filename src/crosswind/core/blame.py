"""Whose code raised: exceptions in what authors write, put into words that name the part, the file and the line."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import ValidationError

from crosswind.base.errors import CrosswindError, InfrastructureError, Unfair
from crosswind.base.yaml_files import complaint

CORE = Path(__file__).parent
PACKAGE = str(CORE.parent)
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames that an exception went through, the innermost first, without those of libraries."""
    out, trace = [], error.__traceback__
    while trace is not None:
        out.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    own = [(f, n) for f, n in out if _is_written(f.f_code.co_filename)]
    return (own or out)[::-1]


def _is_written(file: str) -> bool:
    """Is it a file of an author or of ours, as against one of a library?"""
    return file.startswith(PACKAGE) or not file.startswith(LIBRARIES)


def _part(frame: FrameType) -> str:
    """The part of a domain or a perturbation that a frame belongs to, if it is a method of one."""
    owner: Any = frame.f_locals.get("self", frame.f_locals.get("cls"))
    name = frame.f_code.co_name
    if owner is None:
        return ""
    owner_class: Any = owner if isinstance(owner, type) else type(owner)
    for base in owner_class.__mro__:
        if base.__module__ == "crosswind.core.perturbation" and base.__name__ == "Perturbation":
            return f"{name} of the perturbation {owner_class.model_fields['kind'].default!r}"
        if base.__module__ == "crosswind.core.domain" and base.__name__ == "Family":
            domain = getattr(getattr(owner, "domain", None), "name", "")
            return f"{name} of the family {f'{domain}/' if domain else ''}{getattr(owner, 'name', '')}"
        if base.__module__ == "crosswind.core.domain" and base.__name__ == "Domain":
            return f"{name} of the domain {getattr(owner, 'name', '')}"
        if base.__module__ == "crosswind.core.world" and base.__name__ == "World":
            return f"tool {name!r}" if name in owner.entries else f"{name} of the world {owner_class.__name__}"
    return ""


def culprit(error: BaseException) -> str:
    """The part whose code raised: the method of a family, tool, domain or perturbation nearest to the exception."""
    return next((part for frame, _ in _frames(error) if (part := _part(frame))), "")


def words_of(error: BaseException, who: str = "") -> str:
    """Who raised what, and where: "solve of the family shop/cheapest raised KeyError: 'cost' (shop.py:41)"."""
    frames = _frames(error)
    own = [(f, n) for f, n in frames if not Path(f.f_code.co_filename).is_relative_to(CORE)]
    who = who or culprit(error) or "code"
    if isinstance(error, NotImplementedError) and not own[1:]:
        return f"{who} is not written"
    where = [f" ({Path(f.f_code.co_filename).name}:{n})" for f, n in own or frames][:1]
    said = " ".join(f"{error}".split())
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        said = f"{'.'.join(map(str, first['loc']))}: {complaint(first)}"
    return f"{who} raised {type(error).__name__}: {said}{''.join(where)}"


def is_ours(error: BaseException) -> bool:
    """Is it an exception of this package, which says itself what is wrong?"""
    return type(error).__module__.startswith("crosswind.")


@contextmanager
def blaming() -> Iterator[None]:
    """Turn what an author's code raises into `Unfair` with the law `code`, which names the part and the line."""
    try:
        yield
    except (CrosswindError, InfrastructureError):
        raise
    except Exception as error:
        if is_ours(error):
            raise
        raise Unfair("code", words_of(error)) from error
