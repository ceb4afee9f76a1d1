"""CONV_2D and FULLY_CONNECTED with few output channels, and grouped convolutions."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic
from stages.backends.cortex_m.kernels.arm_dsp.windows import AT_ONCE, Windows
from stages.backends.kernels.eight_bit import lies_planar, why_not_sums, why_not_types, why_not_weights_order
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import columns_of, depth_of
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import FullyConnected


class FewChannels(Kernel):
    """Up to four channels at a time, from windows in place: a panel would cost more.

    Windows that leave the image are copied first.
    """

    name = "arm_dsp.few_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    sources = ("few.S", "few.c")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        windows = Windows(view)
        if windows.groups == 1 and columns_of(view) >= AT_ONCE:
            return f"{columns_of(view)} output channels in one group; this kernel needs groups, or 1 to 3 channels"
        return why_not_types(view) or _why_not_order(view) or _why_not_arithmetic(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        windows = Windows(view)
        return {"weights": windows.weights(), "fields": windows.fields()}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.arm_dsp.few_tir import few

        return few(Windows(view))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, as measured.

        Products of four bytes for all channels of a block; 14 per run, 5 per result, 25 per window, 150 per copied row.
        Per layer 70 for plain rows, 200 for windows.
        """
        windows = Windows(view)
        n = windows.at_once
        four = {1: 5.5, 2: 8.2, 3: 10.2, 4: 13.2}[n]
        block = windows.runs * (windows.fours * four + 14) + 5 * n + 25
        pixels = windows.images * windows.out[0] * windows.out[1]
        copied = pixels - windows.images * windows.inside_count
        copies = copied * windows.kernel[0] * (150 + windows.kernel[1] * windows.channels / 2)
        return float(pixels * windows.groups * windows.blocks * block + copies + (70 if windows.rows_alone else 200))


def _why_not_order(view: LayerView) -> str:
    if isinstance(view.op, FullyConnected):
        return why_not_weights_order(view)
    x = view.inputs[0]
    return f"tensor {x.name} is NCHW; this kernel reads NHWC" if lies_planar(x) else ""


def _why_not_arithmetic(view: LayerView) -> str:
    return why_not_sums(depth_of(view), lambda: arithmetic(view, long=view.op.rounds_twice))
