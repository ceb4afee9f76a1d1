"""AVERAGE_POOL_2D for any number of channels."""

from collections.abc import Mapping
from math import ceil, prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.windows import taps_inside
from stages.backends.riscv.kernels.rvp.pool_lines import line_bytes, lines_of, pool_lines, why_not_beside
from stages.backends.riscv.kernels.rvp.pooling import FIELDS, Pool2d
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

MAX_WINDOW = 100  # elements; up to so many all counts have a factor in 16 bits (averages.h)


class AveragePoolLines(Kernel):
    """Average pooling on pixel rows as long vectors, in 16 bits.

    Sums the rows of a window first, then the columns along the result.
    """

    name = "rvp.average_pool_lines"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d"})
    sources = ("average_lines.c",)
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if prod(view.op.kernel) > MAX_WINDOW:
            return f"a window has {prod(view.op.kernel)} elements; the limit is {MAX_WINDOW}"
        return why_not_beside(view) or not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return Pool2d().pack(view, params)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        register = target.word_bits // 8
        line, (_, _, width, channels) = line_bytes(view, register), view.inputs[0].shape
        row = -(-width * channels // register) * register
        function = f"rvp_avg_{lines_of(view, register)}_{SUFFIX[view.inputs[0].dtype]}"
        return pool_lines(view, function, FIELDS, line, 5 * line + view.op.kernel[0] * row + register)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A register of a window row: 4.7, and 5.3 for each one or two rows after the third. A register of means: 18 to
        21, 4 to 6 per further column, and 23 plus 20 and a copy where pixels are not whole registers. A run of means:
        83. An output row: 120. A register of a copied row: 6.
        """
        x, y, register = view.inputs[0], view.outputs[0], target.word_bits // 8
        (_, height, width, channels), (batch, out_height, _, _) = x.shape, y.shape
        line = ceil(width * channels / register)
        down = sum(2.8 + 4.7 * rows + 5.3 * ceil(max(rows - 3, 0) / 2) for rows in taps_inside(view, 0))
        along = _whole_pixels(view, register) if channels % register == 0 else _any_pixels(view, register)
        copied = 0 if width * channels % register == 0 else height * (6 * line + 56)
        zeros = 3 * line_bytes(view, register) / register
        return batch * (340 + zeros + copied + line * down + out_height * (120 + along))


def _runs(view: LayerView) -> int:
    """Return the runs of means per output row; neighbouring complete windows form one run."""
    columns, full = taps_inside(view, 1), view.op.kernel[1]
    return sum(count != full for count in columns) + (full in columns)


def _whole_pixels(view: LayerView, register: int) -> float:
    """Return the instructions along a line whose pixels are whole registers."""
    columns, (_, _, out_width, channels) = view.op.kernel[1], view.outputs[0].shape
    register_cost = 18 + 3.7 * (columns - 1) if columns in (1, 3) else 21 + 5.6 * (columns - 1)
    runs = _runs(view) if view.op.stride[1] == 1 else out_width
    return 83 * runs + register_cost * out_width * channels / register


def _any_pixels(view: LayerView, register: int) -> float:
    """Return the instructions along a line whose pixels are not whole registers.

    They include the copy of the means.
    """
    columns, stride, (_, _, out_width, channels) = view.op.kernel[1], view.op.stride[1], view.outputs[0].shape
    line, runs = ceil(((out_width - 1) * stride + 1) * channels / register), _runs(view)
    unit = next(size for size in (4, 2, 1) if channels % size == 0)
    picked = 5.6 * line if stride == 1 else out_width * (4.7 + 1.9 * channels / unit)
    return (
        (columns - 1) * (23 * line + 98) + 20.5 * (line + (runs - 1) * ceil(channels / register)) + 83 * runs + picked
    )
