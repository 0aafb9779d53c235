"""The suites that the package brings. They register themselves when the first one is asked for.

Each has a version, and its episodes are frozen: `tests/episodes/frozen_suites.json` has a digest of them. A change to
what agents meet there, in a suite, a domain, a kind or a bank, is a new version.
"""

from __future__ import annotations

from itertools import combinations

from crosswind.core.draw import SEVERITY
from crosswind.episodes.recipe import Choice
from crosswind.episodes.suite import Condition, Suite, suites


def _one(*kinds: str, severity: int = SEVERITY) -> tuple[Condition, ...]:
    levels = (severity, severity)
    return tuple(Condition(name=k, stack=(Choice(kind=k, severity=levels),)) for k in kinds)


# the scenarios of the study that named the four axes and tiers; medical is the domain that its agents had not seen
ORIGINAL = (
    *("ambiguous", "underspecified", "verbose_query", "name_noise", "semantic_rename", "distractor_tools"),
    *("identity_erasure", "semantic_trap", "schema_noise", "parameter_rename"),
    *("missing_values", "format_switch", "transient_error", "redirection"),
    *("tool_merge", "tool_split", "dependency_inversion", "rule_change", "verification_code"),
    *("conflicting_information", "unsolvable", "fatal_error"),
)
# kinds that need no more of a domain than tools, results and a recorded solution, for benchmarks of other people
BORROWED = (
    *("verbose_query", "name_noise", "semantic_rename", "identity_erasure", "parameter_rename", "schema_noise"),
    *("distractor_tools", "lookalike_tools", "tool_split", "retired_midway", "confirm_before_write"),
    *("verification_code", "foreign_interface", "envelope", "format_switch", "key_rename", "rate_limit"),
    *("redirection", "transient_error", "lost_acknowledgement"),
)
# kinds that change the request, the tools or the rows while an agent works
MIDWAY = (
    *("several_changes", "goal_switch", "follow_up", "tool_added", "unlisted_tools", "moved_meanwhile"),
    "gone_meanwhile",
)
# a kind of each tier that leaves the goal as it is
TIERED = ("semantic_rename", "transient_error", "confirm_before_write", "entity_reskin")


def _of(name: str, *kinds: tuple[str, int]) -> Condition:
    return Condition(name=name, stack=tuple(Choice(kind=kind, severity=(n, n)) for kind, n in kinds))


for _suite in (
    Suite(
        name="quick",
        version=1,
        summary="At most 24 short episodes: one kind of each tier on four tasks, for a small local model.",
        domains=("poi",),
        levels=(1,),
        tasks=4,
        conditions=_one("semantic_rename", "format_switch", "tool_merge", "unsolvable", severity=2),
    ),
    Suite(
        name="demo",
        version=1,
        summary="24 short episodes for `crosswind demo`: renamed tools and renamed result keys on eight tasks.",
        domains=("poi",),
        levels=(1,),
        tasks=8,
        conditions=_one("semantic_rename", "key_rename", severity=2),
    ),
    Suite(
        name="tiers",
        version=2,
        summary="The kinds that training may use, in test words, balanced over tiers and axes.",
        each_of="train",
        edition=1,
        balanced=True,
        tasks=3,
    ),
    Suite(
        name="original",
        version=1,
        summary="The scenarios of the original study on poi, and medical as the domain not seen.",
        domains=("poi",),
        tasks=18,
        conditions=(
            *_one(*ORIGINAL),
            *(Condition(name=f"medical: {k}", stack=(Choice(kind=k),), domains=("medical",)) for k in ORIGINAL),
        ),
    ),
    Suite(
        name="heldout",
        version=1,
        summary="Only kinds that training never uses, in test words.",
        each_of="heldout",
        edition=1,
        tasks=9,
    ),
    Suite(
        name="doses",
        version=1,
        summary="The kinds that training may use at every severity, few tasks each.",
        each_of="train",
        edition=1,
        severities=(1, 2, 3, 4, 5),
        domains=("poi", "retail"),
        tasks=4,
    ),
    Suite(
        name="bfcl",
        version=1,
        summary="Multi-turn tasks of the Berkeley Function Calling Leaderboard (package bfcl-eval), by its checker.",
        domains=("bfcl",),
        tasks=40,
        conditions=_one(*BORROWED),
    ),
    Suite(
        name="agentdojo",
        version=1,
        summary="The user tasks of AgentDojo (package agentdojo), judged by their utility functions.",
        domains=("agentdojo",),
        tasks=97,
        conditions=_one(*BORROWED, severity=1),
    ),
    Suite(
        name="full",
        version=1,
        summary="Every kind in every domain, and random stacks of up to five.",
        each_of="all",
        edition=1,
        tasks=18,
        stacks=5,
    ),
    Suite(
        name="midway",
        version=2,
        summary="Requests, tools and rows that change while an agent works, and requests that follow.",
        tasks=9,
        conditions=_one(*MIDWAY),
    ),
    Suite(
        name="clock",
        version=2,
        summary="Simulated time: deadlines, what is taken or gets dearer, services that are down, late approvals.",
        tasks=9,
        conditions=(
            _of("deadline@2", ("deadline", 2)),
            _of("deadline@5", ("deadline", 5)),
            _of("deadline and retries", ("deadline", 4), ("transient_error", 3)),
            _of("deadline and pages", ("deadline", 4), ("paged_results", 3)),
            _of("service_hours@2", ("service_hours", 2)),
            _of("service_hours@5", ("service_hours", 5)),
            _of("late_approval@2", ("late_approval", 2)),
            _of("late_approval@5", ("late_approval", 5)),
            _of("taken_at@5", ("taken_at", 5)),
            _of("taken_at and retries", ("taken_at", 4), ("transient_error", 3)),
            _of("price_moves@5", ("price_moves", 5)),
            _of("price_moves and pages", ("price_moves", 4), ("paged_results", 3)),
            _of("closed_today", ("closed_today", 3)),
        ),
    ),
    Suite(
        name="interactions",
        version=1,
        summary="One kind of each tier alone and every two of them at once: do losses add up?",
        tasks=9,
        conditions=(
            *(_of(kind, (kind, 3)) for kind in TIERED),
            *(_of(f"{a} + {b}", (a, 3), (b, 3)) for a, b in combinations(TIERED, 2)),
        ),
    ),
    Suite(
        name="catalogue",
        version=1,
        summary="100, 400 and 1,000 tools, of which an agent sees what it searched for, also under other names.",
        tasks=9,
        conditions=(
            *(_of(f"{count:,} tools", ("tool_catalogue", n)) for count, n in ((100, 1), (400, 3), (1000, 5))),
            _of("400 tools, renamed", ("tool_catalogue", 3), ("semantic_rename", 3)),
            _of("400 tools, request in other words", ("tool_catalogue", 3), ("paraphrase", 3)),
        ),
    ),
):
    suites.add(_suite.name, _suite)
