"""AVERAGE_POOL_2D and MAX_POOL_2D on NHWC images, averages of NCHW ones."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import SUFFIX, not_eight_bit, why_not_nhwc
from stages.kernels.kernel import Kernel, Lowering
from stages.kernels.structure import SIZES, UNDILATED, Structure, pool_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.targets.spec import Target

AVERAGE = Structure("arm_dsp_average", ("channels", "count", "flip", "low", "high"))
POOL = Structure("arm_dsp_pool", (*SIZES, *UNDILATED, "low", "high"))
MAX_COLUMNS = 255  # of a window whose elements are added in 16 bits


class Pool2d(Kernel):
    """Any window: the largest bytes of 16 or 4 channels at a time, or their sums in halves of words."""

    name = "arm_dsp.pool2d"
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    sources = ("pool.c",)
    headers: ClassVar[tuple[str, ...]] = ("pool.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        columns = view.op.kernel[1]
        if view.op.op == "avg_pool2d" and columns > MAX_COLUMNS:
            return f"averages over {columns} columns; sums of 16 bits hold {MAX_COLUMNS}"
        return not_eight_bit(view) or why_not_nhwc(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return {"fields": POOL.of(pool_fields(view))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.block import Operand
        from stages.kernels.tir.pooling import pool2d

        function = f"arm_dsp_{view.op.op[:3]}_pool_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("fields", POOL.shape, "int32"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As measured: for a pixel of a window, a result and a window, of 16 channels, 4 or fewer."""
        average = view.op.op == "avg_pool2d"
        batch, height, width, channels = view.outputs[0].shape
        blocks, rest = divmod(channels, 16)
        fours = -(-rest // 4) if channels >= 4 else 0
        singles = 0 if channels >= 4 else channels
        elements, rows = prod(view.op.kernel), view.op.kernel[0]
        window = blocks * (15 * elements + 8 * rows + (210 if average else 50))
        window += fours * (6 * elements + 7 * rows + (75 if average else 28))
        window += singles * (6 * elements + 6 * rows + 25)
        return float(batch * height * width * (window + 45))


class AveragePool(Kernel):
    """One window that is the image, planes: four neighbours are added at once."""

    name = "arm_dsp.average_s8"
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d"})
    sources = ("averages.c",)
    headers: ClassVar[tuple[str, ...]] = ("averages.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op, x = view.op, view.inputs[0]
        if op.kernel != tuple(x.shape[1:3]) or op.padding != (0, 0, 0, 0):
            return "the window is not the image"
        if x.layout != "NCHW" and lies_rows(view):
            return f"tensor {x.name} is NHWC; this kernel is for NCHW"
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op, x = view.op, view.inputs[0]
        fields = {
            "channels": x.shape[3],
            "count": x.shape[1] * x.shape[2],
            "flip": 0x80 if x.dtype == "int8" else 0,
            "low": op.act_min,
            "high": op.act_max,
        }
        return {"fields": AVERAGE.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.arm_dsp.averages_tir import average

        return average(view, AVERAGE.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As measured: an element 0.9, a channel 40."""
        return 0.9 * view.inputs[0].elements + 40.0 * view.outputs[0].elements


def lies_rows(view: LayerView) -> bool:
    """Whether the bytes of an NHWC input are in another order than the same image's in NCHW."""
    _, height, width, channels = view.inputs[0].shape
    return bool(channels > 1 and height * width > 1)
