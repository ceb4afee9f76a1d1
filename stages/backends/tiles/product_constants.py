"""Constants in the order in which matrix products by tiles read them."""

import numpy as np

from stages.backends.generic.kernels.generic import packing as generic
from stages.backends.kernels.eight_bit import INT8_OFFSET, weight_rows, weight_zero_point
from stages.backends.tiles.product_sizes import Blocks
from stages.ir.graph import LayerView


def weights(view: LayerView, depth: int, blocks: Blocks) -> np.ndarray:
    """Return int8 []: for each block [depth / step][column][step]."""
    flat = weight_rows(view, generic.signed_weights(view)[0])
    filled = np.pad(flat, ((0, 0), (0, depth - flat.shape[1])))
    parts = (filled[first : first + used] for first, used in blocks.of(len(filled)))
    return np.concatenate([part.reshape(len(part), -1, blocks.step).transpose(1, 0, 2).reshape(-1) for part in parts])


def channels(view: LayerView, blocks: Blocks, rounding: str) -> np.ndarray:
    """Return int32 []: by block its biases, multipliers, right shifts (and more, `parts_of`)."""
    flat = weight_rows(view, generic.signed_weights(view)[0])
    zero_point = view.op.input_zero_point - INT8_OFFSET[view.inputs[0].dtype]
    bias, multiplier, shift = generic.channels(view, flat, weight_zero_point(view), zero_point).T
    shift = np.where(multiplier == 0, -2, shift)
    right = np.maximum(-shift, 0)
    rows = [bias, multiplier, right - 1 if rounding == "once" else right]
    if rounding == "any":
        rows += [np.maximum(shift, 0), -(right > 0).astype(np.int32)]
    table = np.stack(rows).astype(np.int32)
    return np.concatenate([table[:, first : first + used].reshape(-1) for first, used in blocks.of(len(bias))])
