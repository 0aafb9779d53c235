"""Worlds that lie with somebody's server: what a report, which only reads, may do there."""

from __future__ import annotations

from typing import Literal

from crosswind.core.registry import domains

How = Literal["", "started", "shared"]


def outside(domain: str) -> How:
    """Where the worlds of a domain lie: here, with a server of their own each, or with one that runs on for all."""
    return domains[domain].hosted if domain in domains and domains.origin(domain) else ""


def walkable(domain: str) -> bool:
    """May a report walk the certified ways of a domain again?"""
    return domain in domains and outside(domain) != "shared"


def apart(names: list[str], asked: bool) -> dict[str, str]:
    """The domains in which scripted agents are not played, and why."""
    out = {}
    for name in names:
        how = outside(name)
        if name not in domains:
            out[name] = (
                f"No scripted agents are played in {name}, and no certified way is shown: the domain is not loaded "
                "here. crosswind --plugin FILE report DIR loads it."
            )
        elif how == "shared":
            out[name] = (
                f"No scripted agents are played in {name}, asked for or not: its server runs on behind a url and "
                "nothing resets it, so what they write would stay."
            )
        elif how and not asked:
            out[name] = (
                f"No scripted agents are played in {name}: each of their episodes would start its server once more. "
                "--baselines N plays them on N shifted episodes."
            )
    return out
