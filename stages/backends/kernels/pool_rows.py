"""Pooling by rows: code that the kernels of all families share (include/pool_rows.h)."""

from collections.abc import Mapping
from itertools import groupby
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure, pool_fields
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
    """

    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    family: ClassVar[str]

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
        from stages.backends.kernels.tir.pool_rows import pool_rows

        function = f"{self.family}_{view.op.op[:3]}_rows_{SUFFIX[view.inputs[0].dtype]}"
        return pool_rows(view, function, POOL_ROWS.shape, line_elements(view))


def line_elements(view: LayerView) -> int:
    """Return the elements of the line: an image row with its padding, up to the last window."""
    op, (_, _, width, channels), (_, _, out_width, _) = view.op, view.inputs[0].shape, view.outputs[0].shape
    reached = (out_width - 1) * op.stride[1] + op.kernel[1]
    return int(channels * max(op.padding[1] + width, reached))


def mean_groups(view: LayerView) -> list[int]:
    """Return runs of adjacent output pixels whose windows have equally many columns."""
    return [len(list(group)) for _, group in groupby(taps_inside(view, 1))]


def mean_runs(view: LayerView) -> list[int]:
    """Return the elements of each averaging call of an output row.

    A call covers a group, or one pixel if windows are strided.
    """
    channels, groups = view.outputs[0].shape[3], mean_groups(view)
    return [channels] * sum(groups) if view.op.stride[1] > 1 else [pixels * channels for pixels in groups]
