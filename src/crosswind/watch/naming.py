"""The inverse problem: which perturbation lies between the episodes before a change and those after it.

Each kind that would show in what differs is a hypothesis with a fit from 0 to 1. Where its fields can be told, the
perturbation is made and tried: a renaming must turn the old list of tools into the new one, a wrapper must come off.
The confidence is the fit, lowered by how near the next best kind comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosswind.core.registry import perturbations
from crosswind.watch.alarms import Alternative, NamedShift
from crosswind.watch.differences import Differences
from crosswind.watch.explanation import Explanation, best
from crosswind.watch.naming_results import named_by_results, scaled
from crosswind.watch.naming_talk import named_by_talk
from crosswind.watch.naming_tools import is_same_meaning, named_by_tools
from crosswind.watch.observed import ObservedEpisode, bare

LEAST = 0.35  # fit below which nothing is named
RIVALS = 4  # alternatives that are listed


def explanations(found: Differences) -> list[Explanation]:
    """Every kind that would fit, the best first."""
    every = [*named_by_tools(found), *named_by_results(found), *named_by_talk(found)]
    return best(one for one in every if one.kind in perturbations)


def name_shift(
    before: Sequence[ObservedEpisode], after: Sequence[ObservedEpisode]
) -> tuple[NamedShift | None, dict[str, Any]]:
    """The shift between two sets of episodes, and what was found to differ."""
    found = Differences.of(before, after)
    ranked = explanations(found)
    facts = facts_of(found)
    if not ranked or ranked[0].fit < LEAST:
        return None, facts
    top = ranked[0]
    weights = [one.fit**4 for one in ranked]
    confidence = round(min(1.0, top.fit) * (weights[0] / sum(weights)) ** 0.5, 3)
    rest = [
        Alternative(kind=one.kind, confidence=round(min(1.0, one.fit) * (w / sum(weights)) ** 0.5, 3))
        for one, w in zip(ranked[1 : RIVALS + 1], weights[1 : RIVALS + 1], strict=True)
    ]
    shift = NamedShift(
        axis=perturbations[top.kind].axis,
        kind=top.kind,
        severity=max(1, min(5, top.severity)),
        tools=top.tools,
        keys=top.keys,
        layer=top.layer,
        confidence=confidence,
        alternatives=tuple(rest),
    )
    return shift, {**facts, **({"proved": True} if top.is_proved else {})}


def facts_of(found: Differences) -> dict[str, Any]:
    """What differs, in a few words and figures; no content of calls or results."""
    change = found.tools
    docs = [old for old, c in change.tools.items() if c.doc]
    facts: dict[str, Any] = {
        "tools_renamed": change.renamed,
        "tools_added": sorted(t.name for t in change.added),
        "tools_removed": sorted(t.name for t in change.removed),
        "parameters_renamed": {old: c.renamed for old, c in change.tools.items() if c.renamed},
        "parameters_added": {old: sorted(c.added) for old, c in change.tools.items() if c.added},
        "parameters_removed": {old: list(c.removed) for old, c in change.tools.items() if c.removed},
        "parameters_changed": {old: sorted(c.retyped) for old, c in change.tools.items() if c.retyped},
        "descriptions_changed": sorted(docs),
        "descriptions_with_other_facts": sorted(
            old for old in docs if not is_same_meaning(change.tools[old].old.doc, change.tools[old].new.doc)
        ),
        "result_schemas_changed": sorted(
            old for old, c in change.tools.items() if bare(c.old.output) != bare(c.new.output)
        ),
        "errors_more_frequent": found.new_errors,
        "tools_failing": found.failing,
        "policy_sentences_added": len(found.added_policy),
        "numbers_scaled": scaled(found),
    }
    return {name: value for name, value in facts.items() if value}
