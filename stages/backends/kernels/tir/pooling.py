"""TIR of pooling: one block per image, which a kernel's C function computes."""

from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, maximum, mean, select, widen
from stages.backends.kernels.tir.window import inside, taps
from stages.ir.graph import LayerView, Tensor
from stages.support.lazy import T

_LOWEST = -(1 << 31)


def pool2d(view: LayerView, function: str, constants: Operand, *, planes: bool = False) -> Lowering:
    """Return the loop over images around `function(x, y, constants)`.

    With `planes` the function supports NCHW tensors too; else all tensors are NHWC.
    """
    x, y = view.inputs[0], view.outputs[0]
    block = _image(view, function, constants, planes)
    with Function(view.op.op) as f:
        image = f.input(0, (x.shape[0], *_shape(x, planes)), x.dtype)
        constants_buffer = f.constant(constants.name, constants.shape, constants.dtype)
        out = f.output(0, (y.shape[0], *_shape(y, planes)), y.dtype)
        acc, count = f.scratch("acc", (1,), "int32"), f.scratch("count", (1,), "int32")
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(
                block,
                x=(image, n, 0, 0, 0),
                y=(out, n, 0, 0, 0),
                acc=acc,
                count=count,
                **{constants.name: constants_buffer},
            )
    return f.lowering()


def _image(view: LayerView, function: str, constants: Operand, planes: bool) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    is_max = op.is_max
    _, in_height, in_width, _ = x.shape
    _, height, width, channels = y.shape

    def at(tensor: Tensor, row: Any, column: Any, c: Any) -> tuple[Any, Any, Any]:
        return (c, row, column) if planes and tensor.layout == "NCHW" else (row, column, c)

    def meaning(b: Any) -> None:
        with loop(("oy", height), ("ox", width), ("c", channels)) as (oy, ox, c):
            store(b.acc, T.int32(_LOWEST) if is_max else 0, 0)
            store(b.count, 0, 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                iy, ix = taps(op, (oy, ox), (ky, kx))
                within = inside(iy, in_height, ix, in_width)
                value = widen(b.x[at(x, iy, ix, c)])
                if is_max:
                    store(b.acc, maximum(select(within, value, T.int32(_LOWEST)), b.acc[0]), 0)
                else:
                    store(b.acc, b.acc[0] + select(within, value, 0), 0)
                    store(b.count, b.count[0] + T.Cast("int32", within), 0)
            result = b.acc[0] if is_max else mean(b.acc[0], b.count[0])
            store(b.y, T.Cast(y.dtype, clamp(result, op.act_min, op.act_max)), *at(y, oy, ox, c))

    operands = (
        Operand("x", _shape(x, planes), x.dtype),
        constants,
        Operand("y", _shape(y, planes), y.dtype, "w"),
        accumulator(),
        accumulator("count"),
    )
    return Block("image", operands, meaning, function, lambda b: [b.x, b.y, getattr(b, constants.name)])


def _shape(tensor: Tensor, planes: bool) -> tuple[int, ...]:
    """Return the shape of one image."""
    return tensor.physical_shape[1:] if planes else tensor.shape[1:]
