"""Sequential tests: when is a run of odd episodes more than chance?

Each stream of scores is turned into conformal p-values: the rank of an episode's score among the reference and all
episodes before it, ties broken at random. As long as the watched episodes and the reference are exchangeable, these
are independent and uniform, whatever the scores are. Bets against uniformity multiply up: a detector
`R = (R + 1) * bet` has mean n after n episodes, so that it takes at least H episodes on average until it reaches H
(an e-detector; Shin, Ramdas and Rinaldo, 2022). The mean of several such detectors is one again. So with K streams,
each with a threshold of K times the wanted run length, all of them together raise a false alarm at most once per run
length on average.

The bag of scores stops growing at `MOST`; from there on the p-values share a large fixed sample and are independent
only up to its error, which is below that of the quantiles of 4,000 values.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from crosswind.core.flow import digest

CUTS = (0.01, 0.03, 0.1, 0.3)  # a bet wins if the p-value is below its cut
STAKE = 0.9  # of the capital that each bet puts down
MOST = 4_000  # scores that are kept


class ConformalStream:
    """One stream of scores, of which high ones are odd."""

    def __init__(self, name: str, reference: Iterable[float]) -> None:
        self.name = name
        self.scores = sorted(reference)
        self.count = 0
        self.restart()

    def restart(self) -> None:
        """Forget the evidence, and keep the reference."""
        self.detectors = [0.0] * len(CUTS)
        self.runs = [1.0] * len(CUTS)
        self.starts = [self.count] * len(CUTS)

    def p_value(self, score: float) -> float:
        """The share of scores that are at least as high, ties broken by a number that only the place decides."""
        above = len(self.scores) - bisect_right(self.scores, score)
        equal = bisect_right(self.scores, score) - bisect_left(self.scores, score) + 1
        chance = int.from_bytes(digest("watch", self.name, self.count)[:6], "big") / 2**48
        return (above + chance * equal) / (len(self.scores) + 1)

    def add(self, score: float) -> float:
        """Take the next episode's score; gives the level of the detector, to compare with the threshold."""
        p = self.p_value(score)
        for i, cut in enumerate(CUTS):
            bet = 1 - STAKE + (STAKE / cut if p <= cut else 0.0)
            self.detectors[i] = min((self.detectors[i] + 1) * bet, 1e12)
            if self.runs[i] <= 1:
                self.runs[i], self.starts[i] = 1.0, self.count
            self.runs[i] = min(self.runs[i] * bet, 1e12)
        if len(self.scores) < MOST:
            insort(self.scores, score)
        self.count += 1
        return self.level

    @property
    def level(self) -> float:
        return sum(self.detectors) / len(CUTS)

    @property
    def since(self) -> int:
        """How many episodes ago the run of odd ones began, by the bet that gained most."""
        best = max(range(len(CUTS)), key=lambda i: self.runs[i])
        return self.count - self.starts[best]
