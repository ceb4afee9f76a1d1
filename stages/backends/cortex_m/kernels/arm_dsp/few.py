"""CONV_2D and FULLY_CONNECTED with few output channels, and grouped convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic
from stages.backends.cortex_m.kernels.arm_dsp.windows import AT_ONCE, Windows
from stages.backends.kernels.eight_bit import lies_planar, why_not_sums, why_not_types, why_not_weights_order
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.matrix import columns_of, depth_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.kernels.kernel import Lowering
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class FewChannels(Kernel):
    """Up to four channels at a time on windows in place, where a panel would not pay.

    Windows that leave the image are copied first.
    """

    name = "arm_dsp.few_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    sources = ("few.S", "few.c")
    headers: ClassVar[tuple[str, ...]] = ("few.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        made = Windows(view)
        if made.groups == 1 and columns_of(view) >= AT_ONCE:
            return f"{columns_of(view)} output channels in one group; this kernel needs groups, or 1 to 3 channels"
        return why_not_types(view) or _why_not_order(view) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        made = Windows(view)
        return {"weights": made.weights(), "fields": made.fields()}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.arm_dsp.few_tir import few

        return few(Windows(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured.

        Products of four bytes for all channels of a block; 14 per run, 5 per result, 25 per window, 150 per copied row.
        Per layer 70 for plain rows, 200 for windows.
        """
        made = Windows(view)
        n = made.at_once
        four = {1: 5.5, 2: 8.2, 3: 10.2, 4: 13.2}[n]
        block = made.runs * (made.fours * four + 14) + 5 * n + 25
        pixels = made.images * made.out[0] * made.out[1]
        copied = pixels - made.images * made.inside_count
        copies = copied * made.kernel[0] * (150 + made.kernel[1] * made.channels / 2)
        return float(pixels * made.groups * made.blocks * block + copies + (70 if made.rows_alone else 200))


def _why_not_order(view: LayerView) -> str:
    if view.op.op == "fully_connected":
        return why_not_weights_order(view)
    x = view.inputs[0]
    return f"tensor {x.name} is NCHW; this kernel reads NHWC" if lies_planar(x) else ""


def _why_not_arithmetic(view: LayerView) -> str:
    return why_not_sums(depth_of(view), lambda: arithmetic(view, long=view.op.rounding == "double"))
