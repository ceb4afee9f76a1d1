"""AVERAGE_POOL_2D over whole images, the layer before a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import not_eight_bit
from stages.kernels.kernel import Kernel, Lowering

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.targets.spec import Target

FIELDS = ("channels", "count", "flip", "low", "high")  # of the C structure arm_dsp_average
MAX_PIXELS = 255  # of NHWC images, whose sums are of 16 bits


class AveragePool(Kernel):
    """One window that is the image: NCHW by summing four neighbours at once, NHWC by summing four channels."""

    name = "arm_dsp.average_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d"})
    sources = ("pool.c",)
    headers: ClassVar[tuple[str, ...]] = ("pool.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op, x = view.op, view.inputs[0]
        if op.kernel != tuple(x.shape[1:3]) or op.padding != (0, 0, 0, 0):
            return "the window is not the image"
        if not planar(view) and x.shape[3] % 4:
            return f"{x.shape[3]} channels are no multiple of 4"
        if not planar(view) and x.shape[1] * x.shape[2] > MAX_PIXELS:
            return f"more than {MAX_PIXELS} NHWC pixels"
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        op, x = view.op, view.inputs[0]
        flip = 0x80 if x.dtype == "int8" else 0
        fields = (x.shape[3], x.shape[1] * x.shape[2], flip, op.act_min, op.act_max)
        return {"fields": np.array(fields, np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.arm_dsp.pool_tir import average

        return average(view, len(FIELDS), planar=planar(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """As measured: an element 0.9 (NHWC 1.8), a channel 40."""
        return (0.9 if planar(view) else 1.8) * view.inputs[0].elements + 40.0 * view.outputs[0].elements


def planar(view: LayerView) -> bool:
    return view.inputs[0].layout == "NCHW"
