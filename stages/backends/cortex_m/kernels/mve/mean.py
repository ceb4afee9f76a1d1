"""MEAN over the pixels of images with neighbouring channels."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.means import means
from stages.backends.kernels.tir.strides import Axis, reduced_axes, two_axes
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

FIELDS = Structure.of_header("mve_mean", __file__, "mean.h")
MOST_COLUMNS = 255  # that are added in 16 bits


class Mean(Kernel):
    """Mean, eight results at a time."""

    name = "mve.mean_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"mean"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("mean.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := not_eight_bit(view):
            return bad
        kept, summed = reduced_axes(view)
        if kept[-1].strides != (1, 1) and kept[-1].extent > 1:
            return "the means are not neighbours in memory"
        if len(summed) > 2:
            return f"the summed axes are {len(summed)} runs in memory; the limit is 2"
        if pixels(view)[1].extent > MOST_COLUMNS:
            return f"rows of {pixels(view)[1].extent} elements; 16-bit sums hold {MOST_COLUMNS}"
        reaches = 255 * view.op.count << max(view.op.shift, 0)
        return "" if reaches < 1 << 31 else f"an output shift of {view.op.shift} is not supported"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (rows, columns) = view.op, pixels(view)
        return {
            "fields": FIELDS.of(
                {
                    "rows": rows.extent,
                    "row_step": rows.strides[0],
                    "columns": columns.extent,
                    "column_step": columns.strides[0],
                    "offset": op.input_zero_point * op.count,
                    "multiplier": op.multiplier,
                    "shift": op.shift,
                    "zero_point": op.output_zero_point,
                    "low": op.act_min,
                    "high": op.act_max,
                }
            )
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        function = f"mve_mean_{SUFFIX[view.inputs[0].dtype]}"
        return means(view, reduced_axes(view)[0], pixels(view), function, FIELDS.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 5 per eight elements, 15 per row of these, 45 per eight means."""
        kept, (rows, columns) = reduced_axes(view)[0], pixels(view)
        eights = view.outputs[0].elements / kept[-1].extent * -(-kept[-1].extent // 8)
        return eights * (rows.extent * (5 * columns.extent + 15) + 45) + 30


def pixels(view: LayerView) -> tuple[Axis, Axis]:
    """Rows and columns of a mean.

    Axes too long for 16 bits are split into the longest rows that fit.
    """
    rows, columns = two_axes(reduced_axes(view)[1])
    if columns.extent <= MOST_COLUMNS or rows.extent > 1:
        return rows, columns
    length = max(n for n in range(1, MOST_COLUMNS + 1) if columns.extent % n == 0)
    step = columns.strides[0]
    return Axis(columns.extent // length, (length * step,)), Axis(length, (step,))
