"""What episodes add up to: paired statistics, scores by every grouping, and what failed episodes died of."""

from __future__ import annotations

from crosswind.metrics.groups import GROUPINGS, By, grouped
from crosswind.metrics.measures import Averages, Measures, averaged, measure
from crosswind.metrics.scores import (
    Cell,
    CleanAndRobust,
    Drop,
    Excluded,
    Summary,
    cell,
    clean_and_robust,
    drop,
    drops,
    pairs,
    summary,
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
    pairs_needed,
    pass_hat_k,
    power,
    spearman,
    tango,
    wilson,
)

__all__ = [
    "GROUPINGS", "Averages", "By", "Cell", "CleanAndRobust", "Correlation", "Drop", "Excluded", "Interval",
    "Measures", "PairedDifference", "PassHatK", "Summary", "averaged", "cell", "clean_and_robust", "drop", "drops",
    "grouped", "holm", "mcnemar", "measure", "minimum_detectable_effect", "paired_difference", "pairs",
    "pairs_needed", "pass_hat_k", "power", "spearman", "summary", "tango", "wilson",
]  # fmt: skip
