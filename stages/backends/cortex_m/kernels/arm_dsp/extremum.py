"""MAXIMUM and MINIMUM, with broadcasting."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp.rows import ROWS, Rows, layer, rows_of, why_not_rows
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.fixed_point import maximum, minimum
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView


class Extremum(Kernel):
    """The larger or smaller of two bytes, four at a time.

    Vectors have `register_bytes`. `prices` are counted instructions per vector, for the rest of a row, and per row.
    """

    name = "arm_dsp.extremum_s8"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"maximum", "minimum"})
    sources = ("extremum.c",)
    in_place = True
    family: ClassVar[str] = "arm_dsp"
    register_bytes: ClassVar[int] = 4
    prices: ClassVar[tuple[float, float, float]] = (7.0, 7.0, 22.0)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        wrong_type = not_eight_bit(view) if self.bits == 8 else why_not_sixteen(view)
        return wrong_type or why_not_rows(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        rows, element_bytes = operands(view), view.outputs[0].bytes // view.outputs[0].elements
        in_bytes = {key: rows.fields[key] * element_bytes for key in ("row0", "row1", "y_row")}
        return {"rows": ROWS.of(rows.fields | in_bytes)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        rows, larger = operands(view), view.op.is_max
        kind = "each" if rows.steps == (1, 1) else "one"
        function = f"{self.family}_{view.op.op}_{kind}_{SUFFIX[view.outputs[0].dtype]}"
        constants = [Operand("rows", ROWS.shape, "int32")]
        return layer(view, rows, function, constants, lambda x: (maximum if larger else minimum)(*x))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        vector, rest, row = self.prices
        run = operands(view).run.extent
        vectors, left = divmod(run * view.outputs[0].bytes // view.outputs[0].elements, self.register_bytes)
        return view.outputs[0].elements / run * (vectors * vector + left * rest + row) + 40


class Extremum16(Extremum):
    """MAXIMUM and MINIMUM of int16, two elements at a time."""

    name = "arm_dsp.extremum_s16"
    bits = 16
    prices: ClassVar[tuple[float, float, float]] = (7.0, 3.5, 22.0)


def operands(view: LayerView) -> Rows:
    """Return the layer's rows; the first operand advances along a run."""
    rows = rows_of(view, 0)
    return rows if rows.steps[0] else rows_of(view, 1)
