"""AVERAGE_POOL_2D and MAX_POOL_2D on NHWC images."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.mve.base import MveKernel
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.structure import SIZES, UNDILATED, Structure, pool_fields
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.pooling import pool2d
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

MAX_ELEMENTS = 255  # of an average, whose sums are of 16 bits
MAX_ELEMENTS_16 = 32767  # of int16
POOL = Structure("mve_pool", (*SIZES, *UNDILATED, "low", "high"))


class Pool2d(MveKernel):
    """Pooling one image at a time: maxima of 64 channels, sums of 16."""

    name = "mve.pool2d"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    sources = ("pool.c",)

    def why_not_operator(self, view: LayerView) -> str:
        size = prod(view.op.kernel)
        if not view.op.is_max and size > MAX_ELEMENTS:
            return f"averages of {size} elements; the limit is {MAX_ELEMENTS}"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"fields": POOL.of(pool_fields(view))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        function = f"mve_{view.op.op[:3]}_pool_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("fields", POOL.shape, "int32"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        Per pixel, row and result of 64 maxima, 16 maxima or 16 sums; 50 per window.
        """
        batch, height, width, channels = view.outputs[0].shape
        rows, pixels = view.op.kernel[0], prod(view.op.kernel)
        if not view.op.is_max:
            window = -(-channels // 16) * (6 * pixels + 5 * rows + 45)
        else:
            window = channels // 64 * (10 * pixels + 5 * rows + 40)
            window += -(-(channels % 64) // 16) * (4 * pixels + 5 * rows + 10)
        return float(batch * height * width * (window + 50))


class Pool2d16(Pool2d):
    """Pooling of int16: maxima of 32 or 8 channels, sums of 8."""

    name = "mve.pool2d_s16"
    bits = 16
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    sources = ("pool16.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        size = prod(view.op.kernel)
        too_many = "" if size <= MAX_ELEMENTS_16 else f"windows of {size} elements; the limit is {MAX_ELEMENTS_16}"
        return why_not_sixteen(view) or too_many

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        Terms: per pixel, row and result of a block of channels, and per window.
        """
        batch, height, width, channels = view.outputs[0].shape
        rows, pixels = view.op.kernel[0], prod(view.op.kernel)
        if view.op.is_max:
            window = channels // 32 * (10 * pixels + 5 * rows + 25)
            window += -(-(channels % 32) // 8) * (5 * pixels + 6 * rows + 20)
        else:
            window = -(-channels // 8) * ((6 if channels >= 8 else 8) * pixels + 5 * rows + 35)
        return float(batch * height * width * (window + 40))
