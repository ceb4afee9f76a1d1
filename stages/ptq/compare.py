"""How far a quantized network is from the float one: classes, signal to noise of each layer, what saturates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.ir.arithmetic.fixed_point import round_half_away
from stages.ir.models.tflite_reader import TensorInfo
from stages.ir.reference import Reference
from stages.ptq.data import Sample
from stages.ptq.observe import Array, runs
from stages.ptq.quantizer import Quantized

Begins = Callable[[int], None]
MOST_DB = 200.0  # of equal tensors, whose ratio is infinite


@dataclass
class Noise:
    """Sums over all samples of one tensor: signal is the float network's, noise the difference from it."""

    signal: float = 0.0
    noise: float = 0.0
    clipped: int = 0
    elements: int = 0

    def add(self, exact: Array, got: npt.NDArray[Any], tensor: TensorInfo) -> None:
        """One sample: the float tensor, and the quantized one as it is in the file."""
        reals = real(got, tensor).reshape(exact.shape)
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

    `layers` by the number of the float file's tensor; `outputs` is all outputs together. Hits are counted of the
    samples that have a label; `agree` are samples in which both have the same class: the largest element of the first
    output.
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
        """Percentage points of accuracy lost; without labels, percent of samples whose class changed."""
        if self.labelled:
            return 100 * (self.float_hits - self.quantized_hits) / self.labelled
        return 100 * (1 - self.agree / self.samples)

    def accuracy(self) -> dict[str, Any]:
        """`{images, float, quantized}`, shares of 1; None where there are no labels."""
        shares: dict[str, Any] = {"samples": self.samples, "agree": round(self.agree / self.samples, 6)}
        if self.labelled:
            shares |= {
                "float": round(self.float_hits / self.labelled, 6),
                "quantized": round(self.quantized_hits / self.labelled, 6),
            }
        return shares


def compare(reference: Reference, quantized: Quantized, samples: Sequence[Sample], begins: Begins) -> Comparison:
    """Runs the float network, loaded as `reference`, and the quantized one. Raises StageError, RunError."""
    integers = Reference(quantized.data, name="the quantized network")
    computed = [index for operator in reference.info.operators for index in operator.outputs]
    found = Comparison()
    for sample, exact in zip(samples, runs(reference, samples, begins), strict=True):
        fed = [stored(array, tensor) for array, tensor in zip(sample.inputs, integers.inputs, strict=True)]
        if sample.first:
            integers.reset()
        outputs = integers.run(fed)
        for index in (*reference.info.inputs, *computed):
            tensor = quantized.tensor(index)
            if index in exact and tensor is not None:
                found.layers.setdefault(index, Noise()).add(exact[index], integers.tensor(tensor.index), tensor)
        expected = [reference.tensor(tensor.index) for tensor in reference.outputs]
        for theirs, ours, tensor in zip(expected, outputs, integers.outputs, strict=True):
            if theirs.dtype == np.float32:
                found.outputs.add(theirs, ours, tensor)
        classes = [int(np.argmax(expected[0])), int(np.argmax(outputs[0]))]
        found.samples += 1
        found.agree += classes[0] == classes[1]
        if sample.label is not None:
            found.labelled += 1
            found.float_hits += classes[0] == sample.label
            found.quantized_hits += classes[1] == sample.label
    return found


def stored(values: Array, tensor: TensorInfo) -> npt.NDArray[Any]:
    """Numbers as a tensor of the file has them, as TFLite's QUANTIZE: halves away from zero, clamped."""
    if not tensor.scale.size:
        return values.astype(tensor.dtype)
    limits = np.iinfo(tensor.dtype)
    steps = round_half_away(values / np.float32(tensor.scale[0])).astype(np.float64) + int(tensor.zero_point[0])
    return np.asarray(np.clip(steps, limits.min, limits.max)).astype(tensor.dtype)


def real(values: npt.NDArray[Any], tensor: TensorInfo) -> npt.NDArray[np.float64]:
    """The numbers that a tensor's elements stand for."""
    wide = values.astype(np.float64)
    if not tensor.scale.size:
        return wide
    return np.asarray((wide - float(tensor.zero_point[0])) * float(tensor.scale[0]))


def bounds(tensor: TensorInfo) -> tuple[float, float]:
    """The least and the largest number that a quantized tensor can stand for."""
    limits = np.iinfo(tensor.dtype)
    low, high = real(np.asarray([limits.min, limits.max]), tensor)
    return float(low), float(high)
