"""What a study says beyond the built-in tables: rules that turn numbers into marks, and tables and plots of its own.

A study keeps these in `findings.py` next to its definition. The report loads that file by its path and takes from it

    SECTIONS: dict[str, Callable[[Results], str]]   Markdown, by the name that `make` has in `report.sections`
    PLOTS: dict[str, Callable[[Results], str]]      SVG, by name; NAME is written as report_NAME.svg

Both are optional. `Results` (`crosswind.study.results`) has the arms by name and their figures. A `Hypothesis` is a
sentence, the rule in words, and a function that returns a mark and the numbers behind it. `judge_hypotheses` applies
them to whatever the functions look at, `marks_table` shows the marks, and `count_marks` counts them. A function that
needs an arm or a figure that is not there raises `Absent`, and the mark is `missing`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from crosswind.base.errors import BadFile
from crosswind.report.markdown import literal, table
from crosswind.study.results import Absent, Results

FINDINGS = "findings.py"
MISSING = "missing"
L = TypeVar("L")


class Hypothesis(NamedTuple, Generic[L]):
    """A sentence, its rule in words, and the function that applies the rule: a mark, and the numbers behind it."""

    text: str
    rule: str
    judge: Callable[[L], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class JudgedHypothesis:
    """A hypothesis and what the numbers say of it."""

    text: str
    rule: str
    mark: str
    numbers: str


def judge_hypotheses(hypotheses: Sequence[Hypothesis[L]], look: L) -> list[JudgedHypothesis]:
    """Apply the rule of each hypothesis to `look`."""
    out = []
    for one in hypotheses:
        try:
            mark, numbers = one.judge(look)
        except Absent as absent:
            mark, numbers = MISSING, f"not there: {absent}"
        out.append(JudgedHypothesis(one.text, one.rule, mark, numbers))
    return out


def marks_table(judged: Sequence[JudgedHypothesis]) -> str:
    rows = [[literal(one.text, 400), f"**{one.mark}**", one.numbers, literal(one.rule, 400)] for one in judged]
    return table(["claim", "mark", "our numbers", "rule"], rows)


def count_marks(judged: Sequence[JudgedHypothesis]) -> str:
    """How many hypotheses have which mark, the most frequent first."""
    return ", ".join(f"{count} {mark}" for mark, count in Counter(one.mark for one in judged).most_common())


@dataclass(frozen=True)
class Findings:
    """What `findings.py` brings."""

    sections: Mapping[str, Callable[[Results], str]] = field(default_factory=dict)
    plots: Mapping[str, Callable[[Results], str]] = field(default_factory=dict)


def load_findings(folder: Path) -> Findings:
    """Run the `findings.py` of a study's folder; without one there is nothing of its own."""
    path = folder / FINDINGS
    if not path.is_file():
        return Findings()
    spec = importlib.util.spec_from_file_location(f"findings of {folder.resolve()}", path)
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadFile(f"{path}: cannot be loaded ({type(error).__name__}: {error}); fix it, or move it away") from error
    return Findings(getattr(module, "SECTIONS", {}), getattr(module, "PLOTS", {}))
