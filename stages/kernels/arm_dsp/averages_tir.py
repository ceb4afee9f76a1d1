"""TIR of averages: one block for each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import clamp, mean, widen

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def average(view: LayerView, fields_shape: tuple[int, ...]) -> Lowering:
    """The average of each plane; `fields_shape` is that of the kernel's C structure."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    images, height, width, channels = x.shape
    count = height * width

    def meaning(b: Any) -> None:
        with loop(("c", channels)) as c:
            store(b.acc, 0, 0)
            with loop(("pixel", count)) as pixel:
                store(b.acc, b.acc[0] + widen(b.x[c, pixel]), 0)
            store(b.y, T.Cast(y.dtype, clamp(mean(b.acc[0], count), op.act_min, op.act_max)), c)

    operands = (
        Operand("x", (channels, count), x.dtype),
        Operand("fields", fields_shape, "int32"),
        Operand("y", (channels,), y.dtype, "w"),
        accumulator(),
    )
    block = Block("image", operands, meaning, "arm_dsp_average_planes", lambda b: [b.x, b.y, b.fields])
    with Function("avg_pool2d") as f:
        image = f.input(0, (images, channels, count), x.dtype)
        fields = f.constant("fields", fields_shape, "int32")
        out = f.output(0, (images, channels), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        with f.loop(("n", images)) as (n,):
            f.place(block, x=(image, n, 0, 0), fields=fields, y=(out, n, 0), acc=acc)
    return f.lowering()
