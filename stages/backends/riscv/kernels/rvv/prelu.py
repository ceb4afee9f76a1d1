"""PRELU with broadcast slopes."""

from typing import Any

from stages.backends.kernels.eight_bit import Range
from stages.backends.kernels.prelu import TablePrelu
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.strides import broadcast
from stages.backends.riscv.kernels.rvv.scaling import why_not_scale
from stages.backends.riscv.kernels.rvv.turns import turns
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView

FIELDS = ("zero_point0", "zero_point1", "multiplier", "right", "zero_point", "low", "high")


class Prelu(TablePrelu):
    """PRELU of a table and scaled products."""

    name = "rvv.prelu"
    row_alignment = 1
    estimate_error = 1.25
    sources = ("prelu.S",)
    function = "rvv_prelu"
    structure = Structure("rvv_prelu", FIELDS)

    def factors(self, view: LayerView, products: Range) -> tuple[int, int]:
        multiplier, shift = view.op.multipliers[1], view.op.shifts[1]
        if shift > 0:
            raise ValueError(f"a product shift of {shift} is not supported")
        if bad := why_not_scale(int(products.size[0]), multiplier, shift):
            raise ValueError(bad)
        return multiplier, -shift

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 33 per iteration, 40 per call. Each run is a call."""
        axes = broadcast(view)
        return axes.calls * axes.rows.extent * (turns(target, axes.run.extent, 4) * 33 + 40.0)
