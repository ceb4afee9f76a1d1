"""FULLY_CONNECTED of one row: dot products with the lanes along the depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import why_not_nhwc, why_not_sums, why_not_types
from stages.kernels.kernel import Kernel
from stages.kernels.rvp.base import arithmetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target


class FullyConnectedRows(Kernel):
    """A row of x times all units, eight, four or what is left at a time; x is read in place, without a panel.

    Weights are padded along the depth alone, to a register: nothing is computed or stored for units that are not there.
    """

    name = "rvp.dot_rows_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("dot_rows.S",)
    headers: ClassVar[tuple[str, ...]] = ("dot_rows.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view)
        return shape or why_not_sums(view.op.depth, lambda: arithmetic(view, signed_activations=False))

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.rvp import packing

        made, bits = arithmetic(view, signed_activations=False), target.word_bits
        return {
            "weights": packing.rows_weights(made.weights.astype(np.int8), made.weight_zero_point, bits),
            "params": packing.rows_params(made.bias, made.multiplier, made.rounders, bits),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.rvp.fully_connected_tir import fully_connected

        return fully_connected(view, target.word_bits // 32)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return row_cost(view.op.depth, view.op.units, target.word_bits // 8, view.op.weight_zero_point)


def row_cost(depth: int, units: int, register: int, zero_point: int) -> float:
    """Instructions of dot_rows.S for a row of `depth` elements and `units` units; weights have `zero_point`.

    Of a group of n units: 1 + 2 n for a register of x, 3 more for eight of them, 19 + n around. Four units are
    requantized in 23 (RV32: 27); 4 for a register of x where the weights have a zero point.
    """
    from stages.kernels.rvp.packing import unit_groups

    steps, groups = -(-depth // register), unit_groups(units)
    products = sum(steps * (1 + 2 * n + 3 / 8) + 19 + n for n in groups)
    quads = -(-units // 4) * (23 if register == 8 else 27)
    return float(products + quads + (4 * steps if zero_point else 0) + 90)


def _why_not_shape(view: LayerView) -> str:
    if view.op.batch != 1:
        return f"a batch of {view.op.batch}; this kernel is for one row"
    return why_not_nhwc(view)
