"""SOFTMAX of int16 rows: the kernel that families with 16-bit lanes share."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.tir.block import Function
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

_MOST_ELEMENTS = 65535  # of a row, whose powers an int32 sums
_LINES = 512  # of a table


class Softmax16(Kernel):
    """Softmax along dense rows.

    function  the C function: (x, y, tables, rows, elements per row, multiplier, shift)
    prices    counted instructions per element and per row
    """

    bits = 16
    calls = True
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"wide_softmax"})
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    sources = ("softmax16.c",)
    function: ClassVar[str]
    prices: ClassVar[tuple[float, float]]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        count = view.inputs[0].shape[-1]
        too_long = "" if count <= _MOST_ELEMENTS else f"rows of {count} elements; the limit is {_MOST_ELEMENTS}"
        return why_not_sixteen(view) or too_long

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return the lines of both tables, int32.

        The lower half is the start as int16, the upper half the slope.
        """
        entries = np.stack([view.constant(role).astype(np.int64) for role in ("exp", "reciprocal")])
        lines = (np.diff(entries) << 16) + (entries[:, :-1] & 0xFFFF)
        return {"tables": lines.astype(np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        x, op = view.inputs[0], view.op
        rows, count = x.elements // x.shape[-1], x.shape[-1]
        with Function("softmax") as f:
            source, tables = f.input(0, (rows, count), "int16"), f.constant("tables", (2, _LINES), "int32")
            y = f.output(0, (rows, count), "int16")
            f.call(self.function, (source, "r"), (y, "w"), (tables, "r"), rows, count, op.multiplier, op.shift)
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        element, row = self.prices
        elements = view.outputs[0].elements
        return element * elements + row * elements / view.outputs[0].shape[-1] + 30
