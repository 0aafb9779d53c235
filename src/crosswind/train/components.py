"""The components of perturbed training: which kinds of perturbation teach the same, so that each can be left out."""

from __future__ import annotations

from typing import Literal, get_args

from crosswind.base.errors import NotForTraining
from crosswind.core.registry import perturbations
from crosswind.words.held_out import HELD_OUT

Component = Literal[
    "error_feedback",  # what comes back is broken, late, partial, in another form or hostile; read it and recover
    "symbols",  # names of tools, parameters, keys and entities are others, or stand among others; go by function
    "semantics",  # the same is said in other words, incompletely, or with other rules; go by meaning
    "structure",  # tools are merged, reordered, or need a further step; plan from the documentation
    "refusal",  # it cannot be done; find out and say so
]
COMPONENTS: tuple[Component, ...] = get_args(Component)

OURS: dict[str, Component] = {
    **dict.fromkeys(
        ("format_switch", "extra_fields", "injected_instruction", "locale_format", "lost_acknowledgement"),
        "error_feedback",
    ),
    **dict.fromkeys(("paged_results", "redirection", "stale_read", "transient_error"), "error_feedback"),
    **dict.fromkeys(("name_noise", "semantic_rename", "identity_erasure", "parameter_rename", "key_rename"), "symbols"),
    **dict.fromkeys(("schema_noise", "distractor_tools", "lookalike_tools", "entity_reskin"), "symbols"),
    **dict.fromkeys(("paraphrase", "typos", "verbose_query", "ambiguous", "underspecified"), "semantics"),
    **dict.fromkeys(("description_rewrite", "conflicting_information", "rule_change"), "semantics"),
    **dict.fromkeys(("tool_merge", "dependency_inversion", "confirm_before_write", "verification_code"), "structure"),
    **dict.fromkeys(("missing_tool", "unsolvable"), "refusal"),
}


def component(kind: str) -> Component:
    """The component that a train kind belongs to; one of a plugin goes by its axis, tier and goal."""
    if kind in OURS:
        return OURS[kind]
    cls = perturbations[kind]
    if kind in HELD_OUT:
        raise NotForTraining(f"{kind!r} is held out from training and belongs to no component")
    if cls.goal == "refuse":
        return "refusal"
    if cls.axis == "observation":
        return "error_feedback"
    if cls.axis == "query":
        return "semantics"
    return "structure" if cls.tier == "reasoning" else "symbols"
