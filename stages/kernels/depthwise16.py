"""DEPTHWISE_CONV_2D of 16-bit activations with one filter for a channel: what the families' kernels share.

Each family has the C of one pixel, D16_PIXEL of include/depthwise16_image.h, which describes the rest.
"""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.kernel import Kernel, Lowering
from stages.kernels.lanes16 import FIELDS, Lanes, constants, packed_weights
from stages.kernels.matrix import windows_of
from stages.kernels.sixteen_bit import not_sixteen_by_eight

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.targets.spec import Target


class Depthwise16(Kernel):
    """NHWC images, a pixel at a time.

    `function` is the C of the family; `prices` are instructions for a group of channels, of them for an element of the
    window, and for an element that is copied.
    """

    bits = 16
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    roundings: ClassVar[frozenset[str]] = frozenset({"wide"})
    function: ClassVar[str]
    prices: ClassVar[tuple[float, float, float]]

    @abstractmethod
    def lanes(self, target: Target) -> Lanes:
        """How many channels the target's registers take at once."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if bad := not_sixteen_by_eight(view):
            return bad
        if op.depth_multiplier != 1:
            return f"{op.depth_multiplier} filters for a channel; this kernel has one"
        try:
            constants(view, self.lanes(target))
        except ValueError as error:
            return str(error)
        return ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        op, lanes = view.op, self.lanes(target)
        fields = {
            **windows_of(view),
            "out_height": view.outputs[0].shape[1],
            "low": op.act_min,
            "high": op.act_max,
        }
        return {
            "weights": packed_weights(view, lanes),
            "channels": constants(view, lanes),
            "fields": FIELDS.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.depthwise16 import depthwise16

        return depthwise16(view, self.lanes(target), self.function)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        op, y, group = view.op, view.outputs[0], self.lanes(target).group
        around, product, copied = self.prices
        taps, inner = prod(op.kernel), 1.0
        for axis, size in enumerate(y.shape[1:3]):
            reach = (op.kernel[axis] - 1) * op.dilation[axis] + 1
            inner *= max(0, (view.inputs[0].shape[axis + 1] - reach) // op.stride[axis] + 1) / size
        at_edges = 1.0 if y.shape[3] % group else 1 - min(inner, 1.0)
        groups = -(-y.shape[3] // group)
        each = groups * (around + taps * product) + at_edges * taps * y.shape[3] * copied + 30
        return 100.0 + y.elements / y.shape[3] * each
