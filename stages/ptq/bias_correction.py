"""Bias correction: subtract the mean error of rounded weights from the biases.

Nagel et al., arXiv:1906.04721, section 4.2: with W' the weights that the integers represent, the outputs are off by
(W' - W) * E[x] on average over samples and positions. E[x] is the mean input, padding zeros included.
"""

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from stages.ir.arithmetic.sliding import same_padding, tapped
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ptq.constants import real
from stages.ptq.quantizer import Quantized
from stages.ptq.weights import Weights

Array = npt.NDArray[np.float64]
_SAME = 0  # the schema's Padding


def mean_inputs(runs: Iterable[Mapping[int, npt.NDArray[np.float32]]]) -> dict[int, Array]:
    """Return the mean of each tensor over samples, from stages.ptq.observe.runs."""
    sums: dict[int, Array] = {}
    count = 0
    for values in runs:
        count += 1
        for index, array in values.items():
            sums[index] = sums[index] + array if index in sums else array.astype(np.float64)
    return {index: array / count for index, array in sums.items()}


def corrected(data: bytes, info: ModelInfo, quantized: Quantized, means: Mapping[int, Array]) -> tuple[bytes, int]:
    """Return the float file with biases corrected for `quantized`, and their count."""
    weights = Weights(data, info)
    count = 0
    for operator in info.operators:
        if not (weights.has(operator) and weights.has_bias(operator)):
            continue
        tensor = quantized.tensor(operator.inputs[1])
        if tensor is None or not tensor.scale.size or tensor.data is None:
            continue  # stays float
        exact = info.tensors[operator.inputs[1]].values().astype(np.float64)
        weights.add_bias(operator, -shift(real(tensor) - exact, operator, info, means[operator.inputs[0]]))
        count += 1
    return (weights.packed() if count else data), count


def shift(error: Array, operator: OperatorInfo, info: ModelInfo, mean: Array) -> Array:
    """Return the mean effect of a weight error on each output channel, for a mean input."""
    return _SHIFTS[operator.op](error, operator, info, mean)


def _connected(error: Array, operator: OperatorInfo, info: ModelInfo, mean: Array) -> Array:
    rows = mean.reshape(-1, error.shape[1])
    return np.asarray((rows @ error.T).mean(axis=0))


def _convolved(error: Array, operator: OperatorInfo, info: ModelInfo, mean: Array) -> Array:
    patch = _mean_patch(error, operator, info, mean)
    return np.asarray(np.einsum("ohwi,hwi->o", error, patch))


def _depthwise(error: Array, operator: OperatorInfo, info: ModelInfo, mean: Array) -> Array:
    patch = _mean_patch(error, operator, info, mean)
    mean_shift = error[0].reshape(*patch.shape, -1)
    return np.asarray(np.einsum("hwcm,hwc->cm", mean_shift, patch)).reshape(prod(mean_shift.shape[2:]))


_SHIFTS = {"CONV_2D": _convolved, "DEPTHWISE_CONV_2D": _depthwise, "FULLY_CONNECTED": _connected}


def _mean_patch(error: Array, operator: OperatorInfo, info: ModelInfo, mean: Array) -> Array:
    """Return the mean input of each tap, [height, width, channels]."""
    out = info.tensors[operator.outputs[0]].shape[1:3]
    taps = [window.mean(axis=(0, 1, 2)) for window in _windows(operator, mean, error.shape[1:3], (out[0], out[1]))]
    return np.stack(taps).reshape(*error.shape[1:3], -1)


def _windows(operator: OperatorInfo, image: Array, kernel: tuple[int, int], out: tuple[int, int]) -> list[Array]:
    """Return for each tap the image elements that it meets, padding included."""
    assert operator.options is not None
    fields = operator.options.fields
    stride, dilation = (fields["stride_h"], fields["stride_w"]), (fields["dilation_h"], fields["dilation_w"])
    if fields["padding"] == _SAME:
        pads = [same_padding(image.shape[1 + axis], kernel[axis], stride[axis], dilation[axis]) for axis in (0, 1)]
        image = np.pad(image, ((0, 0), *pads, (0, 0)))
    return tapped(image, kernel, stride, dilation, out)
