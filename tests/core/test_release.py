"""Chains of releases: what becomes of tools that move, and rules that are amended again."""

from __future__ import annotations

import re

from crosswind.core.oracle import walk
from crosswind.core.registry import domains
from crosswind.core.release import evolve, probes_of
from crosswind.perturbations.action.description_rewrite import DescriptionRewrite
from crosswind.perturbations.action.semantic_rename import SemanticRename
from crosswind.perturbations.domain.amended_rules import AmendedRules
from crosswind.perturbations.observation.redirection import Redirection

POI = domains["poi"]


def test_tools_are_announced_to_move_then_redirect_and_are_gone() -> None:
    chain = evolve(POI, {"redirection": 2}, 3, 5, probes=probes_of(POI), announced=True)
    assert [release.change for release in chain[1:]] == [
        "announced redirection",
        "redirecting redirection",
        "gone redirection",
    ]
    ((notice,), (move,), (renamed,)) = (release.stack for release in chain[1:])
    assert isinstance(notice, DescriptionRewrite)
    assert isinstance(move, Redirection)
    assert isinstance(renamed, SemanticRename)
    successors = {moves[0].old: moves[-1].new for moves in move.moves}
    assert notice.docs.keys() == successors.keys()
    assert renamed.names == successors
    task = POI.task("book_visit", 0)
    clean, told = walk(POI, task), walk(POI, task, (notice,))
    assert [step.call for step in told.steps] == [step.call for step in clean.steps]  # nothing else has changed
    docs = {tool.name: tool.doc for tool in clean.session.tools()}
    assert all(text.startswith(docs[name]) and len(text) > len(docs[name]) for name, text in notice.docs.items())


def test_a_chain_without_announcements_redirects_at_once() -> None:
    (_, second) = evolve(POI, {"redirection": 2}, 1, 5, probes=probes_of(POI))
    assert second.change == "added redirection"


def test_rules_that_are_amended_again_are_those_that_the_policy_has() -> None:
    chain = evolve(POI, {"amended_rules": 2}, 3, 1, probes=probes_of(POI))
    assert [release.change for release in chain[1:]] == ["added amended_rules", *["again amended_rules"] * 2]
    for release in chain[1:]:
        (layer,) = release.stack
        assert isinstance(layer, AmendedRules)
        ((_, amount),) = layer.rules.items()
        assert amount == "yes" or re.search(rf"\b{amount}\b", layer.words[0])
