"""Runs a float network on samples and sees which values each tensor has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.base import StageError
from stages.ir.reference import Reference
from stages.ptq.data import Sample
from stages.support.messages import escape

Array = npt.NDArray[np.float32]
Begins = Callable[[int], None]


@dataclass(frozen=True)
class Range:
    """The least and the largest value of a tensor over all samples."""

    low: float
    high: float


def runs(reference: Reference, samples: Sequence[Sample], begins: Begins) -> Iterator[dict[int, Array]]:
    """For each sample the float32 tensors that are fed or computed, by number; `begins` is told the sample's number.

    Raises StageError where one has a NaN, an infinity or the largest float32.
    """
    fed = [tensor.index for tensor in reference.inputs]
    for number, sample in enumerate(samples):
        begins(number)
        if sample.first:
            reference.reset()
        reference.run(list(sample.inputs))
        found = {**dict(zip(fed, sample.inputs, strict=True)), **reference.computed()}
        values = {index: array for index, array in found.items() if array.dtype == np.float32}
        for index, array in values.items():
            if not (np.abs(array) < np.finfo(np.float32).max).all():  # to which LiteRT clamps
                called = escape.quoted(reference.info.tensors[index].name)
                raise StageError(
                    f"the float network's tensor {index} {called} leaves the range of float32 "
                    f"on {escape.name(sample.name, 200)}",
                    hint="is the data of the range that the network was trained on?",
                )
        yield values


def ranges(reference: Reference, samples: Sequence[Sample], begins: Begins) -> dict[int, Range]:
    """The range of each float32 tensor that is fed or computed, by number. Raises StageError as `runs`."""
    found: dict[int, Range] = {}
    for values in runs(reference, samples, begins):
        for index, array in values.items():
            low, high = float(array.min(initial=np.inf)), float(array.max(initial=-np.inf))
            before = found.get(index, Range(low, high))
            found[index] = Range(min(low, before.low), max(high, before.high))
    return {index: one for index, one in found.items() if one.low <= one.high}


def histograms(
    reference: Reference, samples: Sequence[Sample], bounds: Mapping[int, Range], bins: int, begins: Begins
) -> dict[int, npt.NDArray[np.int64]]:
    """How many values of each tensor, but for zeros, lie in each of `bins` equal parts of its range."""
    found = {index: np.zeros(bins, np.int64) for index in bounds}
    for values in runs(reference, samples, begins):
        for index, bound in bounds.items():
            array = values[index]
            found[index] += np.histogram(array[array != 0], bins, (bound.low, bound.high))[0]
    return found
