"""AVERAGE_POOL_2D of any window."""

from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.pooling import pool2d
from stages.backends.kernels.windows import taps_inside
from stages.backends.riscv.kernels.rvp.base import LANE
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

FIELDS = 13  # int32 fields of the C structure rvp_pool
MAX_WINDOW = 255  # elements of an average: 16-bit sums hold 255 times -128 or 255


class Pool2d(Kernel):
    """Average pooling of a register of channels in 16-bit lanes.

    On RV64 pixels that are not whole registers use the lower lanes.
    """

    name = "rvp.pool2d"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d"})
    sources = ("pool.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        if "NCHW" in (x.layout, y.layout):
            return "a tensor is NCHW; this kernel reads and writes NHWC"
        if x.shape[3] % LANE:
            return f"{x.shape[3]} channels are not a multiple of {LANE}"
        if prod(op.kernel) > MAX_WINDOW:
            return f"a window has {prod(op.kernel)} elements; 16-bit sums hold {MAX_WINDOW}"
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        sizes = (*x.shape[1:3], *y.shape[1:3], x.shape[3])
        fields = (*sizes, *op.kernel, *op.stride, *op.padding[:2], op.act_min, op.act_max)
        return {"pool": np.array(fields, np.int32)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        lanes = "" if view.inputs[0].shape[3] % (target.word_bits // 8) == 0 else "lanes_"
        function = f"rvp_avg_pool_{lanes}{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("pool", (FIELDS,), "int32"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions of each register of a window, from counts.

        7 per element in the image, 16 per window row, 35 overhead. Complete 3x3 windows take 69, in a separate loop.
        Locating a window takes 84. Averages over whole rows take 4.6 per element and 50 overhead.
        """
        kernel, out = view.op.kernel, view.outputs[0]
        register = target.word_bits // 8 if out.shape[3] % (target.word_bits // 8) == 0 else LANE
        is_strip = out.shape[3] >= 4 * register

        def window(rows: int, columns: int) -> float:
            if rows == columns == 3 and kernel == (3, 3):
                return 69
            if is_strip and columns == view.inputs[0].shape[2]:
                return 50 + 4.6 * rows * columns
            return 35 + rows * (16 + 7 * columns)

        rows, columns = (Counter(taps_inside(view, axis)) for axis in range(2))
        registers = out.shape[3] // register
        windows = ((window(r, c), rows[r] * columns[c]) for r in rows for c in columns)
        return out.shape[0] * (180 + sum(times * (84 + registers * each) for each, times in windows))
