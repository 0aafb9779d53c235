"""What episodes add up to: paired statistics, scores by every grouping, and why episodes failed.

scores.py, groups.py, measures.py      drops and scores; groups of episodes; figures of one episode
stats.py, shares.py                    tests, intervals and power; shares over streams
streams.py, careers.py                 success over time, what changes cost, what needed memory
interactions.py, mistakes.py           two obstacles at once; failures by what they have in common
formats.py                             figures as people read them: rounding and wording
diagnosis/                             the stage and the cause of a failure
"""

from __future__ import annotations

from crosswind.metrics.groups import GROUPINGS, By, grouped
from crosswind.metrics.measures import Averages, Measures, averaged, measure
from crosswind.metrics.scores import (
    Cell,
    CleanAndRobust,
    Drop,
    Excluded,
    NetScore,
    RefusalShares,
    Summary,
    Triviality,
    cell,
    clean_and_robust,
    drop,
    drops,
    pairs,
    refusals,
    score,
    summary,
    tasks_needed,
    triviality,
)
from crosswind.metrics.stats import (
    Correlation,
    Interval,
    PairedDifference,
    PassHatK,
    holm,
    mcnemar,
    minimum_detectable_effect,
    paired_difference,
    paired_interval,
    pairs_needed,
    pass_hat_k,
    power,
    spearman,
    wilson,
)

__all__ = [
    "GROUPINGS",
    "Averages",
    "By",
    "Cell",
    "CleanAndRobust",
    "Correlation",
    "Drop",
    "Excluded",
    "Interval",
    "Measures",
    "NetScore",
    "PairedDifference",
    "PassHatK",
    "RefusalShares",
    "Summary",
    "Triviality",
    "averaged",
    "cell",
    "clean_and_robust",
    "drop",
    "drops",
    "grouped",
    "holm",
    "mcnemar",
    "measure",
    "minimum_detectable_effect",
    "paired_difference",
    "paired_interval",
    "pairs",
    "pairs_needed",
    "pass_hat_k",
    "power",
    "refusals",
    "score",
    "spearman",
    "summary",
    "tasks_needed",
    "triviality",
    "wilson",
]  # fmt: skip
