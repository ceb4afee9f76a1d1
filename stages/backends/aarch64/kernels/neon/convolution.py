"""CONV_2D and FULLY_CONNECTED without dot-product instructions."""

from typing import Any, ClassVar

from stages.backends.aarch64.kernels.neon import packing
from stages.backends.aarch64.kernels.neon.format import Format, depth, images
from stages.backends.aarch64.kernels.neon.matrix import MatrixKernel
from stages.backends.kernels.matrix import columns_of
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class Gemm4x4(MatrixKernel):
    """Four rows times four columns, 16 products per three instructions."""

    name = "neon.gemm_4x4"
    estimate_error = 4
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    sources = ("gemm_4x4.S", "gemm.c", "windows.c")
    headers: ClassVar[tuple[str, ...]] = ("matrix.h",)
    format = Format(width=4, chunks=(16, 8))

    def function(self, view: LayerView) -> str:
        return "neon_gemm_s8_wide" if packing.has_low_pairs(packing.flat_weights(view)) else "neon_gemm_s8"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts: 55 per 256 products, 75 per tile of 16 outputs."""
        batch, rows = images(view, self.format)
        deep, columns = depth(view, self.format), columns_of(view)
        tiles = batch * -(-rows // 4) * -(-columns // 4)
        return tiles * (deep / 16 * 55 + 75) + self.gathering(view) + 200
