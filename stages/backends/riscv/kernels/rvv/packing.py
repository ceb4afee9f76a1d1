"""Constants in the order in which the matrix products of RVV read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stages.backends.generic.kernels.generic import packing as generic
from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_rows, weight_zero_point

if TYPE_CHECKING:
    from stages.ir.graph import LayerView


def weights(view: LayerView, depth: int, width: int, step: int) -> np.ndarray:
    """Return int8 []: blocks of `width` columns, each [depth / step][column][step]. The last block is narrower."""
    flat = weight_rows(view, generic.signed_weights(view)[0])
    filled = np.pad(flat, ((0, 0), (0, depth - flat.shape[1])))
    blocks = (filled[first : first + width] for first in range(0, len(filled), width))
    return np.concatenate([block.reshape(len(block), -1, step).transpose(1, 0, 2).reshape(-1) for block in blocks])


def channels(view: LayerView, width: int, rounding: str) -> np.ndarray:
    """Return int32 []: for each block its biases, multipliers and right shifts (and more, see `Variant.parts`)."""
    flat = weight_rows(view, generic.signed_weights(view)[0])
    zero_point = view.op.input_zero_point - INT8_OFFSET[view.inputs[0].dtype]
    bias, multiplier, shift = generic.channels(view, flat, weight_zero_point(view), zero_point).T
    shift = np.where(multiplier == 0, -2, shift)
    right = np.maximum(-shift, 0)
    rows = [bias, multiplier, right - 1 if rounding == "once" else right]
    if rounding == "any":
        rows += [np.maximum(shift, 0), -(right > 0).astype(np.int32)]
    table = np.stack(rows).astype(np.int32)
    return np.concatenate([table[:, first : first + width].reshape(-1) for first in range(0, len(bias), width)])
