"""CONV_2D and FULLY_CONNECTED with the dot product, in two formats.

Hybrid reads the rows of activations in place: four bytes of a row times four bytes of 16 channels. Interleaved copies
rows into a panel first; one load then reads eight rows; this pays for many channels.
"""

from typing import Any, ClassVar

from stages.backends.aarch64.kernels.neon.format import Format, depth, images
from stages.backends.aarch64.kernels.neon.matrix import MatrixKernel
from stages.backends.kernels.matrix import columns_of
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class DotProductKernel(MatrixKernel):
    """CONV_2D or FULLY_CONNECTED with dot-product instructions."""

    headers: ClassVar[tuple[str, ...]] = ("dotprod.h", "../neon/matrix.h")


class Hybrid4x16(DotProductKernel):
    """Four rows in place times 16 columns."""

    name = "neon_dotprod.hybrid_4x16"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    sources = ("gemm_4x16.S", "hybrid.c", "../neon/windows.c")
    format = Format(width=16, chunks=(4,))

    def function(self, view: LayerView) -> str:
        return "neon_dotprod_hybrid"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A tile of R x 16 takes 17 R + 6 per four steps and 28 R + 27 overhead, a tile of R x 4 fewer.
        """
        batch, rows = images(view, self.format)
        deep, columns = depth(view, self.format), columns_of(view)
        total = 60.0
        for height, tiles in ((4, rows // 4), (rows % 4, 1 if rows % 4 else 0)):
            wide = deep / 16 * (17 * height + 6) + 28 * height + 27
            narrow = deep / 16 * (5 * height + 3) + 11 * height + 25
            total += tiles * (columns // 16 * wide + -(-(columns % 16) // 4) * narrow + 20)
        return batch * total + self.gathering(view)


class Interleaved8x12(DotProductKernel):
    """Eight interleaved rows times 12 columns."""

    name = "neon_dotprod.interleaved_8x12"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("gemm_8x12.S", "interleaved.c", "../neon/windows.c")
    format = Format(width=12, chunks=(4,), interleave="neon_dotprod_interleave")

    def function(self, view: LayerView) -> str:
        return "neon_dotprod_interleaved"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        A tile of R x 12 takes 3 R + 2.5 per step and 25 R + 40 overhead; a byte of the panel 0.4.
        """
        batch, rows = images(view, self.format)
        deep, columns = depth(view, self.format), columns_of(view)
        steps, total = deep / 4, 100.0
        for height, tiles in ((8, -(-rows // 8) if rows % 8 > 4 else rows // 8), (4, 1 if 0 < rows % 8 <= 4 else 0)):
            wide = steps * (3 * height + 2.5) + 25 * height + 40
            narrow = steps * (height + 2.5) + 9 * height + 28
            total += tiles * (columns // 12 * wide + -(-(columns % 12) // 4) * narrow + 50)
        return batch * (total + rows * (0.4 * deep + 10)) + self.gathering(view)
