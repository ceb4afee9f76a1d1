"""AVERAGE_POOL_2D on NHWC images."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.structure import SIZES, UNDILATED, Structure, pool_fields
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.pooling import pool2d
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

POOL = Structure("arm_dsp_pool", (*SIZES, *UNDILATED, "low", "high"))
MAX_COLUMNS = 255  # of a window whose elements are added in 16 bits
MAX_ELEMENTS_16 = 32767  # of a window of int16


class Pool2d(Kernel):
    """Average pooling of any window: sums of 16 or 4 channels at a time, as pairs of int16."""

    name = "arm_dsp.pool2d"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d"})
    sources = ("pool.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        columns = view.op.kernel[1]
        if columns > MAX_COLUMNS:
            return f"averages over {columns} columns; 16-bit sums hold {MAX_COLUMNS}"
        return not_eight_bit(view) or why_not_nhwc(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"fields": POOL.of(pool_fields(view))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        function = f"arm_dsp_{view.op.op[:3]}_pool_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("fields", POOL.shape, "int32"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured.

        Per window pixel, result and window, for 16, 4 or fewer channels.
        """
        batch, height, width, channels = view.outputs[0].shape
        blocks, rest = divmod(channels, 16)
        fours = -(-rest // 4) if channels >= 4 else 0
        singles = 0 if channels >= 4 else channels
        elements, rows = prod(view.op.kernel), view.op.kernel[0]
        window = blocks * (15 * elements + 8 * rows + 210)
        window += fours * (6 * elements + 7 * rows + 75)
        window += singles * (6 * elements + 6 * rows + 25)
        return float(batch * height * width * (window + 45))


class Pool2d16(Pool2d):
    """Average and maximum pooling of int16: 8, 2 or 1 channels at a time."""

    name = "arm_dsp.pool2d_s16"
    bits = 16
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    sources = ("pool16.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        size = prod(view.op.kernel)
        too_many = "" if size <= MAX_ELEMENTS_16 else f"windows of {size} elements; the limit is {MAX_ELEMENTS_16}"
        return why_not_sixteen(view) or too_many

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts.

        Terms: per pixel, row and result of 8, 2 or 1 channels, and per window.
        """
        batch, height, width, channels = view.outputs[0].shape
        rows, pixels, is_max = view.op.kernel[0], prod(view.op.kernel), view.op.is_max
        blocks, rest = divmod(channels, 8)
        window = blocks * ((15 if is_max else 16) * pixels + 8 * rows + (70 if is_max else 110))
        window += rest // 2 * (7 * pixels + 6 * rows + (25 if is_max else 35))
        window += rest % 2 * (6 * pixels + 6 * rows + 20)
        return float(batch * height * width * (window + 40))
