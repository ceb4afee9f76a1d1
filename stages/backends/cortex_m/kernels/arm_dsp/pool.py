"""AVERAGE_POOL_2D on NHWC images."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import SIZES, UNDILATED, Structure, pool_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView

POOL = Structure("arm_dsp_pool", (*SIZES, *UNDILATED, "low", "high"))
MAX_COLUMNS = 255  # of a window whose elements are added in 16 bits


class Pool2d(Kernel):
    """Average pooling of any window: sums of 16 or 4 channels at a time, as pairs of int16."""

    name = "arm_dsp.pool2d"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d"})
    sources = ("pool.c",)
    headers: ClassVar[tuple[str, ...]] = ("pool.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        columns = view.op.kernel[1]
        if columns > MAX_COLUMNS:
            return f"averages over {columns} columns; 16-bit sums hold {MAX_COLUMNS}"
        return not_eight_bit(view) or why_not_nhwc(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return {"fields": POOL.of(pool_fields(view))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.block import Operand
        from stages.backends.kernels.tir.pooling import pool2d

        function = f"arm_dsp_avg_pool_{SUFFIX[view.inputs[0].dtype]}"
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
