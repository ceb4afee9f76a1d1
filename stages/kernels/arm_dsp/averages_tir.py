"""TIR of averages and means: one block for each image, or for each run of means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import SUFFIX
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import clamp, mean, output, requantize, widen
from stages.kernels.tir.strides import Axis, offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def average(view: LayerView, fields_count: int) -> Lowering:
    """The average of each plane; `fields_count` is that of the kernel's C structure."""
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
        Operand("fields", (fields_count,), "int32"),
        Operand("y", (channels,), y.dtype, "w"),
        accumulator(),
    )
    block = Block("image", operands, meaning, "arm_dsp_average_planes", lambda b: [b.x, b.y, b.fields])
    with Function("avg_pool2d") as f:
        image = f.input(0, (images, channels, count), x.dtype)
        fields = f.constant("fields", (fields_count,), "int32")
        out = f.output(0, (images, channels), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        with f.loop(("n", images)) as (n,):
            f.place(block, x=(image, n, 0, 0), fields=fields, y=(out, n, 0), acc=acc)
    return f.lowering()


def mean_layer(view: LayerView, kept: Sequence[Axis], summed: tuple[Axis, Axis], kind: str, fields: int) -> Lowering:
    """The loops around a run of means by `arm_dsp_mean_<kind>_*`.

    Strides of the axes that are `kept` are of (output, input), those of the `summed` ones of (input,).
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    run, (outer, inner) = kept[-1], summed
    reach = sum((axis.extent - 1) * axis.strides[-1] for axis in (run, *summed)) + 1

    def meaning(b: Any) -> None:
        with loop(("i", run.extent)) as i:
            store(b.acc, -op.input_zero_point * op.count, 0)
            with loop(("a", outer.extent), ("b", inner.extent)) as (j, k):
                element = b.x[i * run.strides[1] + j * outer.strides[0] + k * inner.strides[0]]
                store(b.acc, b.acc[0] + widen(element), 0)
            store(b.y, output(view, requantize(b.acc[0], op.multiplier, op.shift, op.rounding)), i)

    operands = (
        Operand("x", (reach,), x.dtype),
        Operand("fields", (fields,), "int32"),
        Operand("y", (run.extent,), y.dtype, "w"),
        accumulator(),
    )
    function = f"arm_dsp_mean_{kind}_{SUFFIX[x.dtype]}"
    block = Block("row", operands, meaning, function, lambda b: [b.x, b.y, run.extent, b.fields])
    with Function("mean") as f:
        source = f.input(0, (x.elements,), x.dtype)
        constants = f.constant("fields", (fields,), "int32")
        target = f.output(0, (y.elements,), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(kept[:-1]))) as at:
            f.place(block, x=(source, offset(at, kept, 1)), y=(target, offset(at, kept, 0)), fields=constants, acc=acc)
    return f.lowering()
