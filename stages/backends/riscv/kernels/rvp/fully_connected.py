"""FULLY_CONNECTED row by row: dot products along the depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import why_not_nhwc, why_not_sums, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word
from stages.backends.riscv.kernels.rvp.gathered_rows import LAYER, row_cost, rows_cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class FullyConnectedRows(Kernel):
    """A row of x times all units, eight, four or fewer at a time, without a panel.

    A row is read in place; of several rows only those at a multiple of the register size. Weights are padded along the
    depth to whole registers, never along the units.
    """

    name = "rvp.dot_rows_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("dot_rows.S", "gathered_rows.c")
    headers: ClassVar[tuple[str, ...]] = ("dot_rows.h", "gathered_rows.h")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or why_not_nhwc(view)
        return shape or why_not_sums(view.op.depth, lambda: arithmetic(view, signed_activations=False))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.backends.riscv.kernels.rvp import packing

        op, constants, bits = view.op, arithmetic(view, signed_activations=False), target.word_bits
        layer = {
            "rows": op.batch,
            "bytes": op.depth,
            "units": op.units,
            "steps": -(-op.depth // (bits // 8)),
            "clip": clip_word(view),
            "weight_zero_point": constants.weight_zero_point,
        }
        return {
            **({"layer": LAYER.of(layer)} if op.batch > 1 else {}),
            "weights": packing.rows_weights(constants.weights.astype(np.int8), constants.weight_zero_point, bits),
            "params": packing.rows_params(constants.bias, constants.multiplier, constants.rounders, bits),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvp.fully_connected_tir import fully_connected

        return fully_connected(view, target.word_bits // 32)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        op, register = view.op, target.word_bits // 8
        if op.batch > 1:
            return rows_cost(op.batch, op.depth, op.units, register, op.weight_zero_point) + _CALLED
        return row_cost(op.depth, op.units, register, op.weight_zero_point)


_CALLED = 50  # instructions of a call for all rows
