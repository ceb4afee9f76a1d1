"""Cross-layer equalization: scale channels of successive layers without changing results.

If a layer's only reader is another weighted layer, with ReLU, pooling or nothing between them, channel i of the first
may be divided by any s > 0 if the second's weights for it are multiplied by s. Nagel et al., "Data-Free Quantization
Through Weight Equalization and Bias Correction" (arXiv:1906.04721), section 4.1: with weight ranges r1 and r2 of the
channel in both layers, s = sqrt(r1 / r2) makes the ranges equal, so that one scale for all channels fits each.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ptq.weights import Weights

Array = npt.NDArray[np.float64]
_ROUNDS = 20
_NONE, _RELU = 0, 1  # fused activations that scale with their inputs
_LEAST = 1e-9  # share of a layer's largest weight; smaller channels are skipped
_TRANSPARENT = ("MAX_POOL_2D", "AVERAGE_POOL_2D")  # operators between two layers that work per channel and scale


@dataclass(frozen=True)
class Pair:
    """Two weighted layers; the second is the only reader of the first's channels."""

    first: OperatorInfo
    second: OperatorInfo


def equalized(data: bytes, info: ModelInfo) -> tuple[bytes, int]:
    """Return the file with equalized layer pairs, and the number of pairs."""
    weights = Weights(data, info)
    layer_pairs = list(pairs(info, weights))
    for _ in range(_ROUNDS):
        # A layer between two others is in two pairs: repeat until both converge.
        changes = [_equalize(pair, weights) for pair in layer_pairs]
        if max(changes, default=0.0) < 1e-3:
            break
    return (weights.packed() if layer_pairs else data), len(layer_pairs)


def pairs(info: ModelInfo, weights: Weights) -> Iterator[Pair]:
    """Yield the layer pairs of a network, in its order."""
    readers = Counter(index for operator in info.operators for index in operator.inputs)
    reader = {index: operator for operator in info.operators for index in operator.inputs}
    for first in info.operators:
        if not (weights.has(first) and _is_linear(first)):
            continue
        index = first.outputs[0]
        while readers[index] == 1 and reader[index].op in _TRANSPARENT and _is_linear(reader[index]):
            index = reader[index].outputs[0]
        if readers[index] != 1 or index in info.outputs:
            continue
        second = reader[index]
        # After a convolution, a fully connected layer has several columns per channel.
        same_kind = (first.op == "FULLY_CONNECTED") == (second.op == "FULLY_CONNECTED")
        if same_kind and weights.has(second) and second.inputs[0] == index:
            yield Pair(first, second)


def _is_linear(operator: OperatorInfo) -> bool:
    """Return whether outputs scale with the inputs."""
    return operator.options is not None and operator.options.fields["activation"] in (_NONE, _RELU)


def _equalize(pair: Pair, weights: Weights) -> float:
    """Scale a pair's channels. Return the largest change as a natural logarithm."""
    first, second = weights.by_output(pair.first), weights.by_input(pair.second)
    ranges = [np.abs(values).reshape(len(values), -1).max(axis=1) for values in (first, second)]
    usable = np.logical_and.reduce([values > max(float(values.max()), 1e-30) * _LEAST for values in ranges])
    scale: Array = np.ones(len(first))
    scale[usable] = np.sqrt(ranges[0][usable] / ranges[1][usable])
    weights.scale_output(pair.first, 1 / scale)
    weights.scale_input(pair.second, scale)
    return float(np.abs(np.log(scale)).max())
