"""CONV_2D and FULLY_CONNECTED of several rows with smmla."""

from typing import Any, ClassVar

from stages.backends.aarch64.kernels.neon.base import HALVES, mode
from stages.backends.aarch64.kernels.neon.format import Format, depth, images
from stages.backends.aarch64.kernels.neon.matrix import MatrixKernel
from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.matrix import columns_of
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView

POSITIVE = 3  # MODE_POSITIVE of neon_requantize.h
CLIPS, FLIPS = 4, 8  # the bits of gemm_8x12.S


class Interleaved8x12(MatrixKernel):
    """Eight interleaved rows times 12 columns, 32 products per instruction."""

    name = "neon_i8mm.interleaved_8x12"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    sources = ("gemm_8x12.S", "interleaved.c", "../neon/windows.c")
    headers: ClassVar[tuple[str, ...]] = ("i8mm.h", "../neon/matrix.h")
    format = Format(width=12, chunks=(8,), interleave="neon_i8mm_interleave")

    def function(self, view: LayerView) -> str:
        return "neon_i8mm_interleaved"

    def mode(self, view: LayerView) -> int:
        """Return the rounding mode and whether results are clipped and flipped.

        After a ReLU the rounding of negative sums does not matter. Saturation replaces the clamp to all of int8.
        """
        op, offset = view.op, INT8_OFFSET[view.outputs[0].dtype]
        rounding = mode(view)
        if rounding == HALVES and op.act_min >= op.output_zero_point:
            rounding = POSITIVE
        clips = (op.act_min - offset, op.act_max - offset) != (-128, 127)
        return rounding + (CLIPS if clips else 0) + (FLIPS if offset else 0)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A tile of R x 12 takes 3 R + 3 per step and 15 R + 35 overhead; a byte of the panel 0.25.
        """
        batch, rows = images(view, self.format)
        deep, columns = depth(view, self.format), columns_of(view)
        steps, total = deep / 8, 100.0
        for height, tiles in ((8, -(-rows // 8) if rows % 8 > 4 else rows // 8), (4, 1 if 0 < rows % 8 <= 4 else 0)):
            wide = steps * (3 * height + 3) + 15 * height + 35
            narrow = steps * (height + 2) + 6 * height + 35
            total += tiles * (columns // 12 * wide + -(-(columns % 12) // 4) * narrow + 50)
        return batch * (total + rows * (0.25 * deep + 10)) + self.gathering(view)
