"""AVERAGE_POOL_2D and MAX_POOL_2D."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.kernels.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

FIELDS = 13  # int32 fields of the C structure rvp_pool
MAX_WINDOW = 255  # elements of an average: 16-bit sums hold 255 times -128 or 255


class Pool2d(Kernel):
    """A register of channels at a time: averages in 16-bit lanes, maxima in bytes."""

    name = "rvp.pool2d"
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    sources = ("pool.c",)
    headers: ClassVar[tuple[str, ...]] = ("pool.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        register = target.word_bits // 8
        if "NCHW" in (x.layout, y.layout):
            return "the kernel reads and writes NHWC"
        if x.shape[3] % register:
            return f"{x.shape[3]} channels are no multiple of {register}"
        if op.op == "avg_pool2d" and prod(op.kernel) > MAX_WINDOW:
            return f"a window has {prod(op.kernel)} elements; 16-bit sums hold {MAX_WINDOW}"
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        import numpy as np

        op, x, y = view.op, view.inputs[0], view.outputs[0]
        sizes = (*x.shape[1:3], *y.shape[1:3], x.shape[3])
        fields = (*sizes, *op.kernel, *op.stride, *op.padding[:2], op.act_min, op.act_max)
        return {"pool": np.array(fields, np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.kernels.tir.block import Operand
        from stages.kernels.tir.pooling import pool2d

        function = f"rvp_{view.op.op[:3]}_pool_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("pool", (FIELDS,), "int32"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Of a register of channels: 5 instructions (maximum: 2) for a pixel, one for its address, 25 (7) around.

        Windows that are not 3x3 take loops, 6 for a row and 2 for a pixel more, and 28 around them for an average; 60
        for the place of a window. Averages over all of an image take 5 for a pixel.
        """
        (height, width), out = view.op.kernel, view.outputs[0]
        register, average = target.word_bits // 8, view.op.op == "avg_pool2d"
        pixel, around = (6, 25) if average else (3, 7)
        loops = 0 if view.op.kernel == (3, 3) else height * (6 + 2 * width) + 28 * average
        if average and view.op.kernel == tuple(view.inputs[0].shape[1:3]) and out.shape[3] >= 4 * register:
            pixel, around, loops = 5, 30, 0
        pixels = out.elements / out.shape[3]
        return pixels * (60 + out.shape[3] / register * (pixel * height * width + loops + around))
