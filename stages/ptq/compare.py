"""Compare a quantized network with the float one: classes, SNR per layer, saturation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.arithmetic.fixed_point import round_half_away
from stages.ir.model_info import TensorInfo
from stages.ir.reference import Reference
from stages.ptq.data import Sample
from stages.ptq.observe import Array, runs
from stages.ptq.quantizer import Quantized

SampleStarted = Callable[[int], None]
MOST_DB = 200.0  # the value for equal tensors


@dataclass
class Noise:
    """Sums of one tensor over all samples; noise is the difference from the float network."""

    signal: float = 0.0
    noise: float = 0.0
    clipped: int = 0
    elements: int = 0

    def add(self, exact: Array, quantized: npt.NDArray[Any], tensor: TensorInfo) -> None:
        """Add one sample: the float tensor, and the quantized tensor with the file's integers."""
        reals = real(quantized, tensor).reshape(exact.shape)
        wide = exact.astype(np.float64)
        self.signal += float(np.square(wide).sum())
        self.noise += float(np.square(wide - reals).sum())
        self.elements += exact.size
        if tensor.scale.size == 1:
            low, high = bounds(tensor)
            half = float(tensor.scale[0]) / 2
            self.clipped += int(((wide < low - half) | (wide > high + half)).sum())

    @property
    def snr(self) -> float:
        """Signal-to-noise ratio in dB."""
        if self.noise <= self.signal * 10 ** (-MOST_DB / 10):
            return MOST_DB
        return max(-MOST_DB, 10 * math.log10(max(self.signal, 1e-300) / self.noise))


@dataclass
class Comparison:
    """Both networks on the same samples.

    layers: by tensor number of the float file
    outputs: all outputs together
    float_hits, quantized_hits: correct classes, of samples with a label
    agree: samples with the same class in both networks; the class is the largest element of the first output
    """

    samples: int = 0
    labelled: int = 0
    float_hits: int = 0
    quantized_hits: int = 0
    agree: int = 0
    layers: dict[int, Noise] = field(default_factory=dict)
    outputs: Noise = field(default_factory=Noise)

    @property
    def loss(self) -> float:
        """Accuracy lost, in percentage points.

        Without labels, percent of samples with another class.
        """
        if self.labelled:
            return 100 * (self.float_hits - self.quantized_hits) / self.labelled
        return 100 * (1 - self.agree / self.samples)

    def accuracy(self) -> dict[str, Any]:
        """Return `{samples, agree, float, quantized}` as shares of 1; the last two need labels."""
        shares: dict[str, Any] = {"samples": self.samples, "agree": round(self.agree / self.samples, 6)}
        if self.labelled:
            shares |= {
                "float": round(self.float_hits / self.labelled, 6),
                "quantized": round(self.quantized_hits / self.labelled, 6),
            }
        return shares


def compare(
    reference: Reference, quantized: Quantized, samples: Sequence[Sample], on_sample: SampleStarted
) -> Comparison:
    """Run `reference`, the float network, and the quantized one. Raises StageError, RunError."""
    integers = Reference(quantized.data, name="the quantized network")
    computed = [index for operator in reference.info.operators for index in operator.outputs]
    comparison = Comparison()
    for sample, exact in zip(samples, runs(reference, samples, on_sample), strict=True):
        inputs = [stored(array, tensor) for array, tensor in zip(sample.inputs, integers.inputs, strict=True)]
        if sample.first:
            integers.reset()
        outputs = integers.run(inputs)
        for index in (*reference.info.inputs, *computed):
            tensor = quantized.tensor(index)
            if index in exact and tensor is not None:
                comparison.layers.setdefault(index, Noise()).add(exact[index], integers.tensor(tensor.index), tensor)
        expected = [reference.tensor(tensor.index) for tensor in reference.outputs]
        for exact_output, output, tensor in zip(expected, outputs, integers.outputs, strict=True):
            if exact_output.dtype == np.float32:
                comparison.outputs.add(exact_output, output, tensor)
        classes = [int(np.argmax(expected[0])), int(np.argmax(outputs[0]))]
        comparison.samples += 1
        comparison.agree += classes[0] == classes[1]
        if sample.label is not None:
            comparison.labelled += 1
            comparison.float_hits += classes[0] == sample.label
            comparison.quantized_hits += classes[1] == sample.label
    return comparison


def stored(values: Array, tensor: TensorInfo) -> npt.NDArray[Any]:
    """Return real numbers in the tensor's type, as TFLite's QUANTIZE: halves away from zero."""
    if not tensor.scale.size:
        return values.astype(tensor.dtype)
    limits = np.iinfo(tensor.dtype)
    steps = round_half_away(values / np.float32(tensor.scale[0])).astype(np.float64) + int(tensor.zero_point[0])
    return np.asarray(np.clip(steps, limits.min, limits.max)).astype(tensor.dtype)


def real(values: npt.NDArray[Any], tensor: TensorInfo) -> npt.NDArray[np.float64]:
    """Return the real numbers that a tensor's elements represent."""
    wide = values.astype(np.float64)
    if not tensor.scale.size:
        return wide
    return np.asarray((wide - float(tensor.zero_point[0])) * float(tensor.scale[0]))


def bounds(tensor: TensorInfo) -> tuple[float, float]:
    """Return the least and the largest real number that a quantized tensor represents."""
    limits = np.iinfo(tensor.dtype)
    low, high = real(np.asarray([limits.min, limits.max]), tensor)
    return float(low), float(high)
