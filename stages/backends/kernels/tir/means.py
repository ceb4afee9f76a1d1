"""TIR of MEAN: a block for each run of means."""

from collections.abc import Sequence
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.strides import Axis, offset
from stages.ir.graph import LayerView


def means(
    view: LayerView,
    kept: Sequence[Axis],
    summed: tuple[Axis, Axis],
    function: str,
    fields: tuple[int, ...],
) -> Lowering:
    """Return the loops around a run of means.

    The C function is `function(x, y, count, fields)`. Strides of `kept` axes are of (output, input), of `summed` axes
    of (input,).
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
        Operand("fields", fields, "int32"),
        Operand("y", (run.extent,), y.dtype, "w"),
        accumulator(),
    )
    row = Block("row", operands, meaning, function, lambda b: [b.x, b.y, run.extent, b.fields])
    with Function("mean") as f:
        source = f.input(0, (x.elements,), x.dtype)
        fields_buffer = f.constant("fields", fields, "int32")
        target = f.output(0, (y.elements,), y.dtype)
        buffers = {"fields": fields_buffer, "acc": f.scratch("acc", (1,), "int32")}
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(kept[:-1]))) as at:
            f.place(row, x=(source, offset(at, kept, 1)), y=(target, offset(at, kept, 0)), **buffers)
    return f.lowering()
