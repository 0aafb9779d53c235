"""The groupings of shifted episodes: by tier, axis, kind, domain and so on. Every table and every rule uses these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from crosswind.core.types import AXES, TIERS, Tier
from crosswind.episodes.brief import Told

By = Literal[
    "all",
    "condition",
    "kind",
    "tier",
    "published",
    "axis",
    "cell",
    "family",
    "level",
    "domain",
    "severity",
    "kind@severity",
]
GROUPINGS: tuple[By, ...] = get_args(By)
Some = TypeVar("Some", bound=Told)
PUBLISHED: Mapping[str, Tier] = {  # kinds whose tier is another one by the published definitions; docs/openagent.md
    **dict.fromkeys(
        ("key_rename", "envelope", "format_switch", "locale_format", "missing_values", "extra_fields", "paged_results"),
        "perception",
    ),
    **dict.fromkeys(
        (
            *("name_noise", "semantic_rename", "identity_erasure", "semantic_trap", "description_rewrite"),
            *("parameter_rename", "parameter_format", "schema_noise", "distractor_tools", "lookalike_tools"),
            *(
                "tool_merge",
                "tool_split",
                "better_tool",
                "dependency_inversion",
                "verification_code",
                "confirm_before_write",
                "tool_catalogue",
            ),
        ),
        "interaction",
    ),
    **dict.fromkeys(("underspecified", "ambiguous", "changed_mind", "several_changes", "goal_switch"), "reasoning"),
}
GROUP_OF: Mapping[str, Callable[[Told], str | None]] = {  # None where there is none: a stack has no tier
    "all": lambda r: "all",
    "condition": lambda r: r.condition,
    "kind": lambda r: r.kinds[0] if len(r.kinds) == 1 else None,
    "tier": lambda r: r.tier,
    "published": lambda r: PUBLISHED.get(r.kinds[0], r.tier) if len(r.kinds) == 1 else None,
    "axis": lambda r: r.axis,
    "cell": lambda r: f"{r.tier} x {r.axis}" if r.tier else None,
    "family": lambda r: f"{r.domain}/{r.family}",
    "level": lambda r: str(r.level),
    "domain": lambda r: r.domain,
    "severity": lambda r: None if r.severity is None else str(r.severity),
    "kind@severity": lambda r: f"{r.kinds[0]}@{r.severity}" if len(r.kinds) == 1 and r.severity else None,
}
_ORDER: Mapping[str, Sequence[str]] = {
    "tier": TIERS,
    "published": TIERS,
    "axis": AXES,
    "cell": [f"{tier} x {axis}" for tier in TIERS for axis in AXES],
}


def grouped(records: Iterable[Some], by: By) -> dict[str, list[Some]]:
    """Shifted episodes by group: tiers and axes in the order of the study, levels and severities upwards, the rest
    as they come."""
    if by not in GROUP_OF:
        raise ValueError(f"episodes are not grouped by {by!r}; groupings are {', '.join(GROUPINGS)}")
    out: dict[str, list[Some]] = {}
    for record in records:
        if not record.clean and (name := GROUP_OF[by](record)) is not None:
            out.setdefault(name, []).append(record)
    if by in _ORDER:
        return {name: out[name] for name in _ORDER[by] if name in out}
    return dict(sorted(out.items())) if by in ("level", "severity") else out


REFUSALS = "right refusals"  # the band of episodes to refuse, which are counted apart


@dataclass(slots=True)
class Count:
    """Episodes of one band that were scored, and how many of them passed."""

    n: int = 0
    passed: int = 0
