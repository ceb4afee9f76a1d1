"""Pack constants for outer16, by blocks of 16 output channels.

A block has 16 biases, multipliers and shifts, and weights:

    convolution   taps x input blocks x 16 input channels x 16 output channels     OHWI16i16o, block of outputs by block
    depthwise     taps x 16 channels

The term of the input's zero point is in the bias. Padding is read as the zero point, so
sum((x - zero) * w) = sum(x * w) - zero * sum(w) holds at the edges too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.backends.accelerators.tiles import Span
from stages.backends.kernels.eight_bit import weight_rows
from stages.ir.graph import LayerView
from stages.ir.operators.products import DepthwiseConv2D, FullyConnected

from .cycles import BLOCK, blocks


def packed(view: LayerView, channels: Span) -> NDArray[np.uint8]:
    """Return the constants of a tile's output channels, block by block."""
    op, some = view.op, slice(channels.first, channels.end)
    rows = weight_rows(view, view.constant("weights"))
    bias = view.constant("bias").reshape(-1) if view.has("bias") else np.zeros(len(rows))
    folded = bias.astype(np.int64) - op.input_zero_point * rows.astype(np.int64).sum(axis=1)
    scales = (np.broadcast_to(view.constant(role).reshape(-1), (len(rows),)) for role in ("multiplier", "shift"))
    parameters = np.stack([filled(row[some], 0) for row in (folded, *scales)])  # 3, channels
    taps = 1 if isinstance(op, FullyConnected) else op.kernel[0] * op.kernel[1]
    weights = filled(rows[some].reshape(len(channels), taps, -1), 0)  # channels, taps, inputs
    count = blocks(len(channels))
    if isinstance(op, DepthwiseConv2D):
        ordered = weights.reshape(count, BLOCK, taps).transpose(0, 2, 1)
    else:
        weights = filled(weights, 2)
        ordered = weights.reshape(count, BLOCK, taps, -1, BLOCK).transpose(0, 2, 3, 4, 1)
    numbers = parameters.reshape(3, count, BLOCK).transpose(1, 0, 2).astype("<i4")
    return np.concatenate([as_bytes(numbers), as_bytes(ordered)], axis=1).reshape(-1)


def filled(array: NDArray[Any], axis: int) -> NDArray[Any]:
    """Pad an axis with zeros to whole blocks."""
    count = array.shape[axis]
    behind = [(0, blocks(count) * BLOCK - count if number == axis else 0) for number in range(array.ndim)]
    return np.pad(array, behind)


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a row of bytes for each block of output channels."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)
