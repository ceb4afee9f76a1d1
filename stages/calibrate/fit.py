"""A model of a kernel's cost from its measurements: non-negative factors for a few quantities of a layer.

cost = sum of factor[q] * quantity[q], q in `stages.tensorize.costs.quantities`. Factors minimise the squared *relative*
error, so that small layers count as much as large ones, and none is negative, so that more work never costs less. Which
quantities are used is decided by the error at each measurement when that one is left out: what only describes the
measurements at hand is not taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import numpy as np
from numpy.typing import NDArray

_PER_QUANTITY = 4  # measurements for each quantity of the model
_MOST = 4  # quantities
_NOISE = 1e-9  # squared errors that differ by less are the same
ENOUGH = 2 * _PER_QUANTITY  # measurements that tell quantities apart


@dataclass(frozen=True)
class Measurement:
    """What one layer took, and its quantities."""

    instructions: int
    quantities: Mapping[str, float]


@dataclass(frozen=True)
class Fit:
    """`error` is the median relative error of the `layers` measurements, each predicted without itself."""

    factors: Mapping[str, float]
    layers: int
    error: float


def fit(measurements: Sequence[Measurement]) -> Fit | None:
    """The model of one variant; None without measurements that have anything to fit."""
    usable = [m for m in measurements if m.instructions > 0]
    if not usable:
        return None
    shared = set.intersection(*(set(m.quantities) for m in usable))
    names = sorted(name for name in shared if any(m.quantities[name] for m in usable))
    if len(usable) < ENOUGH and "estimate" in names:
        names = ["estimate"]
    matrix = np.array([[m.quantities[name] / m.instructions for name in names] for m in usable])
    best: Fit | None = None
    least = float("inf")
    for size in range(1, min(_MOST, max(1, len(usable) // _PER_QUANTITY)) + 1):
        for columns in combinations(range(len(names)), size):
            solved = _solve(matrix[:, columns])
            if solved is None:
                continue
            factors, residuals = solved
            total = float((residuals**2).sum())
            if total < least * (1 - 1e-9) - _NOISE:
                least = total
                named = {names[column]: float(f"{value:.6g}") for column, value in zip(columns, factors, strict=True)}
                best = Fit(named, len(usable), round(median(abs(r) for r in residuals.tolist()), 4))
    return best


def _solve(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Factors with matrix @ factors ~ 1, and each row's error when that row is left out of the fit.

    None when a factor is not positive, or the columns are not independent. The error left out is the residual divided
    by one minus the row's leverage, the diagonal of matrix @ pinv(matrix).
    """
    scale = np.linalg.norm(matrix, axis=0)
    if not scale.all():
        return None
    inverse = np.linalg.pinv(matrix / scale)
    if np.linalg.matrix_rank(matrix / scale) < matrix.shape[1]:
        return None
    factors = inverse.sum(1) / scale
    if (factors <= 0).any():
        return None
    leverage = ((matrix / scale) * inverse.T).sum(1)
    residuals = (1 - matrix @ factors) / np.maximum(1 - leverage, 1e-6)
    return factors, residuals if len(matrix) > 1 else 1 - matrix @ factors
