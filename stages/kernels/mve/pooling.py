"""AVERAGE_POOL_2D and MAX_POOL_2D on NHWC images."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import SUFFIX
from stages.kernels.mve.base import MveKernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

MAX_ELEMENTS = 255  # of an average, whose sums are of 16 bits
# The C structure mve_pool, field by field.
FIELDS = (
    *("height", "width", "channels", "out_height", "out_width"),
    *("kernel_y", "kernel_x", "stride_y", "stride_x", "top", "left", "low", "high"),
)


class Pool2d(MveKernel):
    """One image at a time; maxima of 16 channels, sums of 8."""

    name = "mve.pool2d"
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    sources = ("pool.c",)
    headers: ClassVar[tuple[str, ...]] = ("pool.h",)

    def why_not_operator(self, view: LayerView) -> str:
        size = prod(view.op.kernel)
        if view.op.op == "avg_pool2d" and size > MAX_ELEMENTS:
            return f"averages of {size} elements; sums hold {MAX_ELEMENTS}"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        op, x, y = view.op, view.inputs[0], view.outputs[0]
        values = (*x.shape[1:], *y.shape[1:3], *op.kernel, *op.stride, *op.padding[:2], op.act_min, op.act_max)
        assert len(values) == len(FIELDS)
        return {"fields": np.array(values, np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.block import Operand
        from stages.kernels.tir.pooling import pool2d

        function = f"mve_{view.op.op[:3]}_pool_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("fields", (len(FIELDS),), "int32"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """7 instructions for a vector of a pixel; 45 (averages) or 20 for a vector of a result, 40 for a window."""
        average = view.op.op == "avg_pool2d"
        batch, height, width, channels = view.outputs[0].shape
        vectors = -(-channels // (8 if average else 16))
        window = vectors * (prod(view.op.kernel) * 7 + view.op.kernel[0] * 6 + (45 if average else 20)) + 40
        return float(batch * height * width * window)
