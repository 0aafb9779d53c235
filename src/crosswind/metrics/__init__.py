"""What episodes add up to: paired statistics, scores by every grouping, and why episodes failed.

scores.py, groups.py, measures.py      drops and scores; groups of episodes; figures of one episode
stats.py, shares.py                    tests, intervals and power; shares over streams
streams.py, careers.py                 success over time, what changes cost, what needed memory
interactions.py, mistakes.py           two obstacles at once; failures by what they have in common
together.py                            what runs must have in common to be compared
formats.py                             figures as people read them: rounding and wording
diagnosis/                             the stage and the cause of a failure

Names are imported when first used: who shows or diagnoses one episode needs no statistics, nor the time to load them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# fmt: off
# isort: off
if TYPE_CHECKING:  # the names of _PLACES, for editors and type checkers; `as` says that they are public
    from crosswind.metrics.groups import GROUPINGS as GROUPINGS, By as By, grouped as grouped
    from crosswind.metrics.measures import Averages as Averages, Measures as Measures, averaged as averaged
    from crosswind.metrics.measures import measure as measure
    from crosswind.metrics.scores import Cell as Cell, CleanAndRobust as CleanAndRobust, Drop as Drop
    from crosswind.metrics.scores import Excluded as Excluded, NetScore as NetScore, RefusalShares as RefusalShares
    from crosswind.metrics.scores import Summary as Summary, Triviality as Triviality, cell as cell
    from crosswind.metrics.scores import clean_and_robust as clean_and_robust, drop as drop, drops as drops
    from crosswind.metrics.scores import pairs as pairs, refusals as refusals, score as score, summary as summary
    from crosswind.metrics.scores import tasks_needed as tasks_needed, triviality as triviality
    from crosswind.metrics.stats import Correlation as Correlation, Interval as Interval
    from crosswind.metrics.stats import PairedDifference as PairedDifference, PassHatK as PassHatK, holm as holm
    from crosswind.metrics.stats import mcnemar as mcnemar, minimum_detectable_effect as minimum_detectable_effect
    from crosswind.metrics.stats import paired_difference as paired_difference, paired_interval as paired_interval
    from crosswind.metrics.stats import pairs_needed as pairs_needed, pass_hat_k as pass_hat_k, power as power
    from crosswind.metrics.stats import spearman as spearman, wilson as wilson
# isort: on
# fmt: on

_PLACES = {  # module -> names
    "groups": "GROUPINGS By grouped",
    "measures": "Averages Measures averaged measure",
    "scores": "Cell CleanAndRobust Drop Excluded NetScore RefusalShares Summary Triviality cell clean_and_robust "
    "drop drops pairs refusals score summary tasks_needed triviality",
    "stats": "Correlation Interval PairedDifference PassHatK holm mcnemar minimum_detectable_effect "
    "paired_difference paired_interval pairs_needed pass_hat_k power spearman wilson",
}
_NAMES = {name: f"crosswind.metrics.{module}" for module, names in _PLACES.items() for name in names.split()}
__all__ = [*_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'crosswind.metrics' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_NAMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
