"""Starting points: a commented file with a small domain, perturbation or agent that works, and a test next to it."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.registry import Registry, agents, did_you_mean, domains, perturbations
from crosswind.words.dealing import bank_file

SORTS: dict[str, Registry[Any]] = {"domain": domains, "perturbation": perturbations, "agent": agents}
RESERVED = frozenset({"all", "clean", "stack", "crosswind", "ask_user"})  # words with a meaning of their own here


def write(sort: str, name: str, out: Path, *, force: bool = False, values: bool = False) -> list[Path]:
    """Write NAME.py and test_NAME.py into a folder; for a domain also NAME.bank.yaml, other words for it.

    `values` asks for a perturbation that only maps values.
    """
    _check(sort, name)
    if values and sort != "perturbation":
        raise CrosswindError(f"--values applies only to perturbations; leave it out for a {sort}")
    title = "".join(part.capitalize() for part in name.split("_"))
    paths = {out / f"{name}.py": f"{sort}_values" if values else sort, out / f"test_{name}.py": f"{sort}_test"}
    if sort == "domain":
        paths[bank_file(name, out)] = "bank"
    return write_templates(paths, {"name": name, "Name": title}, force=force)


def write_templates(paths: Mapping[Path, str], words: Mapping[str, str], *, force: bool) -> list[Path]:
    """Write a template of the package to each path, with these words put in; files that exist only with `force`."""
    if not force:
        for path in paths:
            if path.exists():
                raise CrosswindError(f"{path} already exists; choose another --out, or pass --force to overwrite it")
    for path, template in paths.items():
        text = files("crosswind").joinpath("data", "templates", f"{template}.txt").read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"{{{{{word}}}}}", value)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CrosswindError(f"{path} cannot be written ({error.strerror}); choose another --out") from None
    return list(paths)


def _check(sort: str, name: str) -> None:
    if sort not in SORTS:
        raise CrosswindError(f"there is no template for a {sort!r}; {did_you_mean(sort, list(SORTS))}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", name) or len(name) > 40:
        raise CrosswindError(
            f"{name!r} is not a name for the {sort}; use lower-case letters, digits and _, as in my_{sort}, 40 at most"
        )
    if keyword.iskeyword(name) or name in RESERVED or name in sys.stdlib_module_names or name.startswith("test_"):
        raise CrosswindError(f"the name {name!r} is reserved; choose another, such as my_{name}")
    if name in SORTS[sort]:
        where = SORTS[sort].origin(name) or "crosswind itself"
        raise CrosswindError(f"the {sort} {name!r} exists already, from {where}; choose another name")
