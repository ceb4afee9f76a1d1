"""TIR of pooling: one block for each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.rvp.pooling import FIELDS
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import clamp, maximum, select, widen
from stages.kernels.tir.window import inside, tap

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering

_LOWEST = -(1 << 31)


def pool2d(view: LayerView) -> Lowering:
    """The loop over images."""
    x, y = view.inputs[0], view.outputs[0]
    block = _image(view)
    with Function(view.op.op) as f:
        image = f.input(0, x.shape, x.dtype)
        fields = f.constant("pool", (FIELDS,), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc, count = f.scratch("acc", (1,), "int32"), f.scratch("count", (1,), "int32")
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), pool=fields, y=(out, n, 0, 0, 0), acc=acc, count=count)
    return f.lowering()


def _image(view: LayerView) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    average = op.op == "avg_pool2d"
    _, in_height, in_width, _ = x.shape
    _, height, width, channels = y.shape

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("c", channels)) as (oy, ox, c):
            store(b.acc, 0 if average else T.int32(_LOWEST), 0)
            store(b.count, 0, 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                iy = tap(oy, ky, op.stride[0], 1, op.padding[0])
                ix = tap(ox, kx, op.stride[1], 1, op.padding[1])
                within = inside(iy, in_height, ix, in_width)
                value = widen(b.x[iy, ix, c])
                if average:
                    store(b.acc, b.acc[0] + select(within, value, 0), 0)
                    store(b.count, b.count[0] + T.Cast("int32", within), 0)
                else:
                    store(b.acc, maximum(select(within, value, T.int32(_LOWEST)), b.acc[0]), 0)
            if average:
                half = T.truncdiv(b.count[0], 2)
                total = T.truncdiv(select(b.acc[0] > 0, b.acc[0] + half, b.acc[0] - half), b.count[0])
            else:
                total = b.acc[0]
            store(b.y, T.Cast(y.dtype, clamp(total, op.act_min, op.act_max)), oy, ox, c)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("pool", (FIELDS,), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        accumulator(),
        accumulator("count"),
    )
    function = f"rvp_{'avg' if average else 'max'}_pool_{'s8' if x.dtype == 'int8' else 'u8'}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.y, b.pool])
