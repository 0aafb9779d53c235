"""What training in one domain does to the others: the matrix R[stage, domain], and what follows from it.

Row 0 of the matrix is the model before training, row s the model after stage s; a column is the success in one domain.
A mixture is one stage with several domains; sequential training has several. With t(d) the first stage in which domain
d is trained and S the last stage:

    forgetting           mean over d with t(d) < S of  max over t(d) <= s < S of R[s, d]  -  R[S, d]
    backward transfer    mean over d with t(d) < S of  R[S, d] - R[t(d), d]
    forward transfer     mean over d with t(d) > 1 of  R[t(d) - 1, d] - R[0, d]
    carried over         mean over d never trained of  R[S, d] - R[0, d]

Where there is no such domain a figure is None: with a single stage nothing can be forgotten.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Model


class Matrix(Model):
    """Success by stage and domain; what could not be measured is None."""

    domains: tuple[str, ...]  # the columns
    trained: tuple[tuple[str, ...], ...]  # the domains trained in each stage; stages count from 1
    rows: tuple[tuple[float | None, ...], ...]  # row 0: before training

    def array(self) -> NDArray[np.float64]:
        """The matrix as numbers, with nan for what is missing."""
        return np.array([[np.nan if v is None else v for v in row] for row in self.rows], dtype=np.float64)


class Transfer(Model):
    """What follows from a matrix."""

    forgetting: float | None = None
    backward: float | None = None
    forward: float | None = None
    carried: float | None = None
    by_domain: dict[str, dict[str, float]] = Field(default_factory=dict)  # the same four, domain by domain


def transfer(matrix: Matrix) -> Transfer:
    """Forgetting, backward and forward transfer, and what was carried over to domains never trained."""
    r, stages = matrix.array(), len(matrix.trained)
    if r.shape != (stages + 1, len(matrix.domains)):
        raise CrosswindError(
            f"the matrix has {r.shape[0]} rows of {len(matrix.domains)} domains after {stages} stages; "
            "expected one row before training and one after each stage"
        )
    by_domain: dict[str, dict[str, float]] = {}
    for column, name in enumerate(matrix.domains):
        of = r[:, column]
        first = next((s for s, names in enumerate(matrix.trained, 1) if name in names), None)
        found: dict[str, float] = {}
        if first is None:
            found["carried"] = of[stages] - of[0]
        else:
            if first < stages:
                found["forgetting"] = np.max(of[first:stages]) - of[stages]
                found["backward"] = of[stages] - of[first]
            if first > 1:
                found["forward"] = of[first - 1] - of[0]
        by_domain[name] = {key: float(value) for key, value in found.items() if not np.isnan(value)}
    figures: dict[str, list[float]] = {}
    for of_one in by_domain.values():
        for key, value in of_one.items():
            figures.setdefault(key, []).append(value)
    return Transfer(**{key: float(np.mean(values)) for key, values in figures.items()}, by_domain=by_domain)
