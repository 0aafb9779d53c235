"""Packages that come with an extra of crosswind."""

from __future__ import annotations

import importlib.util
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError

TRAINING = ("torch", "transformers", "peft", "accelerate")  # what trains models


def requirement(extras: str) -> str:
    """What pip installs to add extras to this crosswind: a checkout, the address it came from, or its name."""
    from importlib import metadata
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        told = metadata.distribution("crosswind").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        told = None
    came: dict[str, Any] = json.loads(told) if told else {}
    url = str(came.get("url", ""))
    source = Path(__file__).resolve().parents[3]  # the checkout, if this file is in one
    if "dir_info" in came and (folder := Path(url2pathname(urlsplit(url).path))).is_dir():
        source = folder
    if (source / "pyproject.toml").is_file() and (source / "src" / "crosswind").is_dir():
        return f"{'.' if source == Path.cwd() else source}[{extras}]"
    if not url.startswith("https://") and not Path(url2pathname(urlsplit(url).path)).is_file():
        return f"crosswind[{extras}]"
    vcs = came.get("vcs_info", {})
    return f"crosswind[{extras}] @ " + (f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url)


def install(extras: str) -> str:
    """The command that adds extras to this crosswind, which no index has."""
    return f"pip install {shlex.quote(requirement(extras))}"


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Import inside this context what an extra installs; says how to get it where it is missing."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package == "crosswind":
            raise
        text = f"{purpose} needs the package {package!r}; {install(name)}"
        raise CrosswindError(text) from None


def need_packages(what: str, *packages: str) -> None:
    """Raise if one of these packages is not installed; by default those that train models."""
    for package in packages or TRAINING:
        if importlib.util.find_spec(package) is None:
            raise CrosswindError(f"{what} needs the package {package!r}; {install('train')}")
