"""DEPTHWISE_CONV_2D, 3x3 with stride 1, with the dot product."""

from typing import Any, ClassVar

from stages.backends.aarch64.kernels.neon.depthwise_conv2d import ThreeByThree, group_starts
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class Depthwise3x3(ThreeByThree):
    """Two output rows at a time, from columns of four rows that are interleaved once."""

    name = "neon_dotprod.depthwise3x3"
    estimate_error = 1.25
    sources = ("depthwise3x3.c",)
    headers: ClassVar[tuple[str, ...]] = ("depthwise3x3.h",)
    group = 16

    def why_not_window(self, view: LayerView) -> str:
        if view.op.stride != (1, 1):
            return f"a stride of {view.op.stride[0]}x{view.op.stride[1]}; this kernel supports 1x1"
        return super().why_not_window(view)

    def weight_shape(self, view: LayerView) -> tuple[int, ...]:
        return 2, 3, self.group, 4

    def pack_group(self, weights: Array) -> Array:
        """Return (w0, w1, w2, 0) and (0, w0, w1, w2) of each column and channel."""
        packed = np.zeros((2, 3, self.group, 4), np.int8)
        packed[0, ..., :3] = packed[1, ..., 1:] = weights.transpose(1, 2, 0)
        return packed

    def weight(self, buffer: Any, ky: Any, kx: Any, lane: Any) -> Any:
        return buffer[0, kx, lane, ky]

    def function(self, view: LayerView) -> str:
        return f"neon_dotprod_depthwise3x3_{SUFFIX[view.inputs[0].dtype]}"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions, from counts: 125 per 2 outputs of 16 channels, 100 per 2 rows."""
        batch, height, width, channels = view.outputs[0].shape
        groups = len(group_starts(channels, self.group))
        return float(batch * groups * (-(-height // 2) * (width * 125 + 100) + 80))
