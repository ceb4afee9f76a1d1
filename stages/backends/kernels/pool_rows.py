"""Pooling by rows: code that the kernels of all families share (include/pool_rows.h)."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure, pool_fields
from stages.backends.kernels.tir.block import Function, Operand
from stages.backends.kernels.tir.pooling import _image
from stages.backends.kernels.windows import taps_inside
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

MAX_ELEMENTS = 255  # of an average, whose sums are of 16 bits
POOL_ROWS = Structure.of_header("fl_pool_rows", __file__, "include/pool_rows.h")


class PoolRows(Kernel):
    """AVERAGE_POOL_2D and MAX_POOL_2D: over rows into a line of scratch, then over columns.

    A window takes kernel + kernel taps instead of kernel * kernel.

    family  prefix of its C functions
    lanes   elements of a vector: maxima, sums
    prices  instructions per tap of a vector: maxima, sums of a column, means; and of a run of neighbouring results
    """

    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    family: ClassVar[str]
    lanes: ClassVar[tuple[int, int]]
    prices: ClassVar[tuple[float, float, float, float]]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        size = prod(view.op.kernel)
        if not view.op.is_max and size > MAX_ELEMENTS:
            return f"averages of {size} elements; this kernel is for {MAX_ELEMENTS} or fewer"
        if not_eight_bit(view) or why_not_nhwc(view):
            return not_eight_bit(view) or why_not_nhwc(view)
        met = min(count for axis in range(2) for count in taps_inside(view, axis))
        return "a window lies outside the image" if met < 1 else ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"fields": POOL_ROWS.of({**pool_fields(view), "line": line_elements(view)})}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the loop over images around `function(x, y, line, fields)`.

        Sums of a line have 16 bits.
        """
        function = f"{self.family}_{view.op.op[:3]}_rows_{SUFFIX[view.inputs[0].dtype]}"
        fields = POOL_ROWS.shape
        line = line_elements(view)
        x, y = view.inputs[0], view.outputs[0]
        dtype = x.dtype if view.op.is_max else "int16"
        plain = _image(view, function, Operand("fields", fields, "int32"), planes=False)
        block = replace(
            plain,
            operands=(*plain.operands, Operand("line", (line,), dtype, "rw")),
            arguments=lambda b: [b.x, b.y, b.line, b.fields],
        )
        with Function(view.op.op) as f:
            image = f.input(0, x.shape, x.dtype)
            fields_buffer = f.constant("fields", fields, "int32")
            out = f.output(0, y.shape, y.dtype)
            cells = {name: f.scratch(name, (1,), "int32") for name in ("acc", "count")}
            cells["line"] = f.scratch("line", (line,), dtype)
            with f.loop(("n", y.shape[0])) as (n,):
                f.place(block, x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), fields=fields_buffer, **cells)
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the estimated instructions of passes over rows and over the columns."""
        op, (batch, height, width, channels) = view.op, view.outputs[0].shape
        maximum, total, mean, run = self.prices
        lanes = self.lanes_of(target)[not op.is_max]
        down, along = (maximum, maximum) if op.is_max else (total, mean)
        rows = ceil(view.inputs[0].shape[2] * channels / lanes) * sum(taps + 1 for taps in taps_inside(view, 0))
        runs, length = (1, width * channels) if op.stride[1] == 1 else (width, channels)
        if op.is_max and runs > length:  # vectors along the row
            runs, length = length, runs
        columns = (op.kernel[1] + 1) * runs * (run + ceil(length / lanes) * along)
        return batch * (150 + rows * down + height * (60 + (0 if op.is_max else 20 * width) + columns))

    def lanes_of(self, target: Target) -> tuple[int, int]:
        """Return `lanes` for a target."""
        return self.lanes


def line_elements(view: LayerView) -> int:
    """Return the elements of the line: an image row with its padding, up to the last window."""
    op, (_, _, width, channels), (_, _, out_width, _) = view.op, view.inputs[0].shape, view.outputs[0].shape
    reached = (out_width - 1) * op.stride[1] + op.kernel[1]
    return int(channels * max(op.padding[1] + width, reached))
