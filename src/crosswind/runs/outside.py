"""Worlds that live on somebody's server: what a reader of a stored run may do there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from crosswind.core.registry import domains

Hosting = Literal["", "started", "shared"]


def hosting_of(domain: str) -> Hosting:
    """Where the worlds of a domain live: here, on a server started for each, or on one that all share."""
    return domains[domain].hosted if domain in domains and domains.origin(domain) else ""


def is_walkable(domain: str) -> bool:
    """May the certified ways of a domain be walked again?"""
    return domain in domains and hosting_of(domain) != "shared"


def unplayable(names: Iterable[str], asked: bool) -> dict[str, str]:
    """The domains in which scripted agents are not played, and why."""
    out = {}
    for name in names:
        hosting = hosting_of(name)
        if name not in domains:
            out[name] = (
                f"No scripted agents are played in {name}, and no certified way is shown: the domain is not loaded "
                "here. crosswind --plugin FILE report DIR loads it."
            )
        elif hosting == "shared":
            out[name] = (
                f"No scripted agents are played in {name}, asked for or not: its server runs on behind a url and "
                "nothing resets it, so what they write would stay."
            )
        elif hosting and not asked:
            out[name] = (
                f"No scripted agents are played in {name}: each of their episodes would start its server once more. "
                "--baselines N plays them on N shifted episodes."
            )
    return out
