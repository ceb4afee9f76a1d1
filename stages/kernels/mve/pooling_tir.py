"""TIR of pooling: one block for each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.mve.pooling import FIELDS
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import clamp, maximum, select, widen
from stages.kernels.tir.window import inside, tap

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering

_LOWEST = -(1 << 31)


def pool2d(view: LayerView) -> Lowering:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    with Function(op.op) as f:
        image = f.input(0, x.shape, x.dtype)
        fields = f.constant("fields", (len(FIELDS),), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc, count = f.scratch("acc", (1,), "int32"), f.scratch("count", (1,), "int32")
        block = _image(view)
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), fields=fields, y=(out, n, 0, 0, 0), acc=acc, count=count)
    return f.lowering()


def _image(view: LayerView) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    is_max = op.op == "max_pool2d"
    _, in_height, in_width, _ = x.shape
    _, height, width, channels = y.shape

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("c", channels)) as (oy, ox, c):
            store(b.acc, T.int32(_LOWEST) if is_max else 0, 0)
            store(b.count, 0, 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                iy = tap(oy, ky, op.stride[0], 1, op.padding[0])
                ix = tap(ox, kx, op.stride[1], 1, op.padding[1])
                within = inside(iy, in_height, ix, in_width)
                if is_max:
                    store(b.acc, maximum(select(within, widen(b.x[iy, ix, c]), T.int32(_LOWEST)), b.acc[0]), 0)
                else:
                    store(b.acc, b.acc[0] + select(within, widen(b.x[iy, ix, c]), 0), 0)
                    store(b.count, b.count[0] + T.Cast("int32", within), 0)
            half = T.truncdiv(b.count[0], 2)
            mean = T.truncdiv(select(b.acc[0] > 0, b.acc[0] + half, b.acc[0] - half), b.count[0])
            store(b.y, T.Cast(y.dtype, clamp(b.acc[0] if is_max else mean, op.act_min, op.act_max)), oy, ox, c)

    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("fields", (len(FIELDS),), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        accumulator(),
        accumulator("count"),
    )
    function = f"mve_{'max' if is_max else 'avg'}_pool_{'s8' if x.dtype == 'int8' else 'u8'}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.y, b.fields])
