"""Run a float network on samples and record the value range of each tensor."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.base import StageError
from stages.ir.reference import Reference
from stages.ptq.data import Sample
from stages.support.messages import escape

Array = npt.NDArray[np.float32]
SampleStarted = Callable[[int], None]


@dataclass(frozen=True)
class Range:
    """Least and largest value of a tensor over all samples."""

    low: float
    high: float


def runs(reference: Reference, samples: Sequence[Sample], on_sample: SampleStarted) -> Iterator[dict[int, Array]]:
    """Yield for each sample its input and computed float32 tensors, by number.

    on_sample(number) is called before each sample. Raises StageError for a NaN, an infinity or the largest float32.
    """
    input_indices = [tensor.index for tensor in reference.inputs]
    for number, sample in enumerate(samples):
        on_sample(number)
        if sample.first:
            reference.reset()
        reference.run(list(sample.inputs))
        tensors = {**dict(zip(input_indices, sample.inputs, strict=True)), **reference.computed()}
        values = {index: array for index, array in tensors.items() if array.dtype == np.float32}
        for index, array in values.items():
            if not (np.abs(array) < np.finfo(np.float32).max).all():  # LiteRT clamps to the largest float32
                tensor_name = escape.quoted(reference.info.tensors[index].name)
                raise StageError(
                    f"the float network's tensor {index} {tensor_name} leaves the range of float32 "
                    f"on {escape.name(sample.name, 200)}",
                    hint="check that the data has the range of the training data",
                )
        yield values


def ranges(reference: Reference, samples: Sequence[Sample], on_sample: SampleStarted) -> dict[int, Range]:
    """Return the range of each input and computed float32 tensor. Raises StageError as `runs`."""
    seen: dict[int, Range] = {}
    for values in runs(reference, samples, on_sample):
        for index, array in values.items():
            low, high = float(array.min(initial=np.inf)), float(array.max(initial=-np.inf))
            previous = seen.get(index, Range(low, high))
            seen[index] = Range(min(low, previous.low), max(high, previous.high))
    return {index: bounds for index, bounds in seen.items() if bounds.low <= bounds.high}


def histograms(
    reference: Reference, samples: Sequence[Sample], bounds: Mapping[int, Range], bins: int, on_sample: SampleStarted
) -> dict[int, npt.NDArray[np.int64]]:
    """Return counts of each tensor's nonzero values in `bins` equal parts of its range."""
    counts = {index: np.zeros(bins, np.int64) for index in bounds}
    for values in runs(reference, samples, on_sample):
        for index, bound in bounds.items():
            array = values[index]
            counts[index] += np.histogram(array[array != 0], bins, (bound.low, bound.high))[0]
    return counts
