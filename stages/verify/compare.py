"""Difference of two arrays."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stages.ir.arrays import Array


@dataclass(frozen=True)
class Difference:
    """Difference of an array from the expected one.

    elements   differing elements, of `of`
    max_abs    largest difference
    mean_abs   mean difference of the differing elements
    index      first differing element, in logical order; got and expected are its values
    relative   largest difference relative to the largest expected magnitude; used for float32 only
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
        """Return the fields as JSON values."""
        return asdict(self) | {"index": list(self.index)}


def difference(got: Array, expected: Array) -> Difference | None:
    """Return the difference of `got` from `expected`; None if all elements are equal.

    A NaN equals a NaN. Between a NaN or an infinity and any other value, the difference is infinite.
    Raises ValueError if shapes or dtypes differ.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise ValueError(f"cannot compare {got.dtype}{list(got.shape)} with {expected.dtype}{list(expected.shape)}")
    wrong = got != expected
    if np.issubdtype(got.dtype, np.floating):
        wrong &= ~(np.isnan(got) & np.isnan(expected))
    if not wrong.any():
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(got[wrong].astype(np.float64) - expected[wrong].astype(np.float64))
    distance[~np.isfinite(distance)] = np.inf
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    magnitude = float(finite.max()) if finite.size else 0.0
    index = tuple(int(axis) for axis in np.argwhere(wrong)[0])
    largest = float(distance.max())
    return Difference(
        elements=int(wrong.sum()),
        of=int(got.size),
        max_abs=largest,
        mean_abs=float(distance.mean()),
        index=index,
        got=got[index].item(),
        expected=expected[index].item(),
        relative=largest / magnitude if magnitude else np.inf,
    )
