"""Cross-layer equalization: channels of two layers in a row are scaled against each other, which changes no result.

Where a layer's only reader is another weighted layer, with ReLU, pooling or nothing between them, channel i of the
first may be divided by any s > 0 if the second's weights for it are multiplied by s. Nagel et al., "Data-Free
Quantization Through Weight Equalization and Bias Correction" (arXiv:1906.04721), section 4.1: with ranges r1 and r2 of
the channel's weights in both, s = sqrt(r1 / r2) makes them equal, so that one scale for all channels fits each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ptq.weights import Weights

Array = npt.NDArray[np.float64]
_ROUNDS = 20
_NONE, _RELU = 0, 1  # fused activations that scale with what they are given
_LEAST = 1e-9  # of a layer's largest weight: below, a channel has no range to be made equal
_PASSING = ("MAX_POOL_2D", "AVERAGE_POOL_2D")  # between two layers, channel by channel and to scale


@dataclass(frozen=True)
class Pair:
    """Two weighted layers, the second the only reader of the first's channels."""

    first: OperatorInfo
    second: OperatorInfo


def equalized(data: bytes, info: ModelInfo) -> tuple[bytes, int]:
    """The file with equal ranges in all pairs of layers, and how many pairs there are."""
    weights = Weights(data, info)
    found = list(pairs(info, weights))
    for _ in range(_ROUNDS):
        # A layer between two others is in two pairs: each round brings both closer.
        moved = [_equalize(pair, weights) for pair in found]
        if max(moved, default=0.0) < 1e-3:
            break
    return (weights.packed() if found else data), len(found)


def pairs(info: ModelInfo, weights: Weights) -> Iterator[Pair]:
    """The pairs of layers of a network, in its order."""
    readers = Counter(index for operator in info.operators for index in operator.inputs)
    reader = {index: operator for operator in info.operators for index in operator.inputs}
    for first in info.operators:
        if not (weights.has(first) and _scales(first)):
            continue
        index = first.outputs[0]
        while readers[index] == 1 and reader[index].op in _PASSING and _scales(reader[index]):
            index = reader[index].outputs[0]
        if readers[index] != 1 or index in info.outputs:
            continue
        second = reader[index]
        # Behind a convolution, a fully connected layer has a column for each element of a channel.
        alike = (first.op == "FULLY_CONNECTED") == (second.op == "FULLY_CONNECTED")
        if alike and weights.has(second) and second.inputs[0] == index:
            yield Pair(first, second)


def _scales(operator: OperatorInfo) -> bool:
    """Whether larger inputs make outputs as much larger."""
    return operator.options is not None and operator.options.fields["activation"] in (_NONE, _RELU)


def _equalize(pair: Pair, weights: Weights) -> float:
    """Scales the channels of a pair. Returns by how much at most, as a natural logarithm."""
    first, second = weights.by_output(pair.first), weights.by_input(pair.second)
    ranges = [np.abs(one).reshape(len(one), -1).max(axis=1) for one in (first, second)]
    usable = np.logical_and.reduce([one > max(float(one.max()), 1e-30) * _LEAST for one in ranges])
    scale: Array = np.ones(len(first))
    scale[usable] = np.sqrt(ranges[0][usable] / ranges[1][usable])
    weights.scale_output(pair.first, 1 / scale)
    weights.scale_input(pair.second, scale)
    return float(np.abs(np.log(scale)).max())
