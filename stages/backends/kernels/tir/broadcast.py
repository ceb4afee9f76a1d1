"""TIR of element-wise layers with broadcasting: outer loops around a block of rows."""

from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.addition import rescaled_sum
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.rectified import rectified
from stages.backends.kernels.tir.strides import Axis, broadcast, offset
from stages.ir.graph import LayerView
from stages.ir.operators.arithmetic import Mul
from stages.ir.operators.prelu import Prelu


def elementwise(view: LayerView, function: str, fields: tuple[int, ...], first: int = 0) -> Lowering:
    """Return the layer as calls of `function(x0, x1, y, fields)`. x0 is input `first`."""
    out, broadcasting = view.outputs[0], broadcast(view, first)
    block = rows_block(view, "rows", function, fields, broadcasting.rows, broadcasting.run, first)
    with Function(view.op.op) as f:
        inputs = [f.input(number, (view.inputs[number].elements,), out.dtype) for number in range(2)]
        fields_buffer = f.constant("fields", fields, "int32")
        y = f.output(0, (out.elements,), out.dtype)
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(broadcasting.outer))) as variables:
            start = [offset(variables, broadcasting.outer, number) for number in range(3)]
            x0, x1 = (inputs[first], start[1]), (inputs[1 - first], start[2])
            f.place(block, x0=x0, x1=x1, fields=fields_buffer, y=(y, start[0]))
    return f.lowering()


def rows_block(
    view: LayerView, name: str, function: str, fields: tuple[int, ...], rows: Axis, run: Axis, first: int = 0
) -> Block:
    """Return the block `function(x0, x1, y, fields)` for adjacent output rows.

    x0 is input `first`.
    Strides are for the output, x0 and x1.
    """
    op, dtype = view.op, view.outputs[0].dtype

    def value(elements: tuple[Any, Any]) -> Any:
        if isinstance(op, Prelu):
            return rectified(op, elements)
        if not isinstance(op, Mul):
            return rescaled_sum(op, elements)
        product = (widen(elements[0]) - op.zero_points[0]) * (widen(elements[1]) - op.zero_points[1])
        return requantize(product, op.output_multiplier, op.output_shift, op.rounding)

    def meaning(b: Any) -> None:
        with loop(("row", rows.extent), ("i", run.extent)) as (row, i):
            read = [
                x[row * rows.strides[1 + number] + i * run.strides[1 + number]] for number, x in enumerate((b.x0, b.x1))
            ]
            store(b.y, output(view, value((read[first], read[1 - first]))), row * run.extent + i)

    spans = [(rows.extent - 1) * rows.strides[n] + (run.extent - 1) * run.strides[n] + 1 for n in (1, 2)]
    operands = (
        Operand("x0", (spans[0],), dtype),
        Operand("x1", (spans[1],), dtype),
        Operand("fields", fields, "int32"),
        Operand("y", (rows.extent * run.extent,), dtype, "w"),
    )
    return Block(name, operands, meaning, function, lambda b: [b.x0, b.x1, b.y, b.fields])
