"""FULLY_CONNECTED of one row: dot products along the depth."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.riscv.kernels.rvp.base import arithmetic
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class FullyConnectedRows(Kernel):
    """A row of x times all units, eight, four or fewer at a time, without a panel.

    The row is read in place. Weights are padded along the depth to whole registers, never along the units.
    """

    name = "rvp.dot_rows_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("dot_rows.S",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if view.op.batch > 1:
            return f"{view.op.batch} rows; this kernel supports one"
        shape = why_not_types(view) or why_not_nhwc(view)
        return shape or why_not_sums(view.op.depth, lambda: arithmetic(view, signed_activations=False))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        from stages.backends.riscv.kernels.rvp import packing

        constants, bits = arithmetic(view, signed_activations=False), target.word_bits
        return {
            "weights": packing.rows_weights(constants.weights.astype(np.int8), constants.weight_zero_point, bits),
            "params": packing.rows_params(constants.bias, constants.multiplier, constants.rounders, bits),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvp.fully_connected_tir import fully_connected

        return fully_connected(view, target.word_bits // 32)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A group of n units takes 1 + 2 n per register of x, 3 more per eight registers, 19 + n around. Four units are
        requantized in 23 (RV32: 27). A zero point of the weights adds 4 per register of x.
        """
        from stages.backends.riscv.kernels.rvp.packing import unit_groups

        op, register = view.op, target.word_bits // 8
        steps = -(-op.depth // register)
        products = sum(steps * (1 + 2 * n + 3 / 8) + 19 + n for n in unit_groups(op.units))
        quads = -(-op.units // 4) * (23 if register == 8 else 27)
        return float(products + quads + (4 * steps if op.weight_zero_point else 0) + 90)
