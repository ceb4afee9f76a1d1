"""FULLY_CONNECTED: dot products over streamed weights."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic, clamps
from stages.backends.cortex_m.kernels.arm_dsp.units import FIELDS, PAIRS, copies, fours, layer_form, padded_pairs
from stages.backends.kernels.eight_bit import why_not_sums, why_not_types, why_not_weights_order
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class FullyConnected(Kernel):
    """A row of x times all units, six at once, row by row for batches.

    x is read in place. Rows are copied into scratch if they are uint8, not a multiple of four long, or if the weights
    have a zero point.
    """

    name = "arm_dsp.dot_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("dot.S", "rows.c")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or why_not_weights_order(view)
        return shape or why_not_sums(view.op.depth, lambda: arithmetic(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        from stages.backends.cortex_m.kernels.arm_dsp import packing

        constants, how, pairs = arithmetic(view), layer_form(view), padded_pairs(view)
        steps = packing.depth_steps_of_fours(view.op.depth)
        words = packing.weight_words(with_padding(constants.weights, 0), steps, pairs, how)
        bias = packing.bias_words(with_padding(constants.bias, 0), pairs, how)
        weights = words.reshape(len(pairs), -1, 2)  # of each four
        scale = packing.scale_words(with_padding(constants.scale.scale, 0), pairs)
        parts = []
        for first in range(0, len(pairs), PAIRS):
            block = slice(first, first + PAIRS)
            parts += [bias[block], weights[block].transpose(1, 0, 2), scale[block]]
        blocks = np.concatenate([part.reshape(-1) for part in parts])
        return {"blocks": blocks.astype(np.int32), "fields": FIELDS.of({"fours": fours(view), **clamps(view)})}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.arm_dsp.fully_connected_tir import fully_connected

        return fully_connected(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions.

        6.5 (bytes: 9) per four elements of a pair, 3.2 more per block, 7 per copied element.
        """
        op, pairs = view.op, len(padded_pairs(view))
        four = 6.5 if layer_form(view) == "ab" else 9
        blocks, copied = -(-pairs // PAIRS), 7 * op.depth if copies(view) else 0
        return float(op.batch * (pairs * (fours(view) * four + 10) + blocks * (fours(view) * 3.2 + 20) + copied + 70))


def with_padding(values: Array, fill: int) -> Array:
    """Append a padding unit to `values`."""
    return np.concatenate([values, np.full((1, *values.shape[1:]), fill, values.dtype)])
