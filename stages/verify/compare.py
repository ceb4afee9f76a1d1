"""How much two arrays differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stages.verify.records import Array


@dataclass(frozen=True)
class Difference:
    """Where an array is not what it should be.

    elements   how many of `of` differ
    max_abs    the largest difference
    mean_abs   the mean difference of those that differ
    index      the first that differs, in logical order; got and expected are its values
    relative   the largest difference relative to the largest magnitude expected; only float32 is judged by it
    """

    elements: int
    of: int
    max_abs: float
    mean_abs: float
    index: tuple[int, ...]
    got: float
    expected: float
    relative: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"index": list(self.index)}


def difference(got: Array, expected: Array) -> Difference | None:
    """How `got` differs from `expected`, None when all elements are equal. Shapes and dtypes must be equal.

    A NaN equals a NaN; against anything else, and an infinity against any other value, the difference is infinite.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise ValueError(f"cannot compare {got.dtype}{list(got.shape)} with {expected.dtype}{list(expected.shape)}")
    wrong = got != expected
    if np.issubdtype(got.dtype, np.floating):
        wrong &= ~(np.isnan(got) & np.isnan(expected))
    if not wrong.any():
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(got[wrong].astype(np.float64) - expected[wrong].astype(np.float64))
    apart[~np.isfinite(apart)] = np.inf
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    magnitude = float(finite.max()) if finite.size else 0.0
    index = tuple(int(axis) for axis in np.argwhere(wrong)[0])
    largest = float(apart.max())
    return Difference(
        elements=int(wrong.sum()),
        of=int(got.size),
        max_abs=largest,
        mean_abs=float(apart.mean()),
        index=index,
        got=got[index].item(),
        expected=expected[index].item(),
        relative=largest / magnitude if magnitude else np.inf,
    )
