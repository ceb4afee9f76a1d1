"""TIR of pooling: one block for each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import SUFFIX
from stages.kernels.generic.pooling import POOL
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import clamp, maximum, select, widen
from stages.kernels.tir.window import inside, tap

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering

_PARAMETERS = Operand("pool", POOL.shape, "int32")
_LOWEST = -(1 << 31)


def pool2d(view: LayerView) -> Lowering:
    x, y = view.inputs[0], view.outputs[0]
    block = _image(view)
    with Function(view.op.op) as f:
        image = f.input(0, x.physical_shape, x.dtype)
        fields = f.constant("pool", _PARAMETERS.shape, "int32")
        out = f.output(0, y.physical_shape, y.dtype)
        acc, count = f.scratch("acc", (1,), "int32"), f.scratch("count", (1,), "int32")
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), pool=fields, y=(out, n, 0, 0, 0), acc=acc, count=count)
    return f.lowering()


def _image(view: LayerView) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    is_max = op.op == "max_pool2d"
    _, in_height, in_width, _ = x.shape
    _, height, width, channels = y.shape

    def at(buffer_layout: str, row: Any, column: Any, c: Any) -> tuple[Any, Any, Any]:
        return (c, row, column) if buffer_layout == "NCHW" else (row, column, c)

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("c", channels)) as (oy, ox, c):
            store(b.acc, T.int32(_LOWEST) if is_max else 0, 0)
            store(b.count, 0, 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                iy = tap(oy, ky, op.stride[0], 1, op.padding[0])
                ix = tap(ox, kx, op.stride[1], 1, op.padding[1])
                within = inside(iy, in_height, ix, in_width)
                value = widen(b.x[at(x.layout, iy, ix, c)])
                if is_max:
                    store(b.acc, maximum(select(within, value, T.int32(_LOWEST)), b.acc[0]), 0)
                else:
                    store(b.acc, b.acc[0] + select(within, value, 0), 0)
                    store(b.count, b.count[0] + T.Cast("int32", within), 0)
            half = T.truncdiv(b.count[0], 2)
            mean = T.truncdiv(select(b.acc[0] > 0, b.acc[0] + half, b.acc[0] - half), b.count[0])
            result = clamp(b.acc[0] if is_max else mean, op.act_min, op.act_max)
            store(b.y, T.Cast(y.dtype, result), *at(y.layout, oy, ox, c))

    operands = (
        Operand("x", x.physical_shape[1:], x.dtype),
        _PARAMETERS,
        Operand("y", y.physical_shape[1:], y.dtype, "w"),
        accumulator(),
        accumulator("count"),
    )
    function = f"fl_{'max' if is_max else 'avg'}_pool_{SUFFIX[x.dtype]}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.y, b.pool])
