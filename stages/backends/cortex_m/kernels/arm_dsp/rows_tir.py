"""TIR of element-wise layers on two operands: one block per row of runs."""

from collections.abc import Callable, Sequence
from typing import Any

from stages.backends.cortex_m.kernels.arm_dsp.rows import Rows
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.strides import offset
from stages.ir.graph import LayerView


def layer(
    view: LayerView, rows: Rows, function: str, constants: Sequence[Operand], value: Callable[[Sequence[Any]], Any]
) -> Lowering:
    """Build calls of `function(x0, x1, y, constants...)`.

    `value` returns an element of the output from the elements of the inputs.
    """
    out, row, run = view.outputs[0], rows.row, rows.run

    def reach(buffer: int) -> int:
        return (row.extent - 1) * row.strides[buffer] + (run.extent - 1) * run.strides[buffer] + 1

    def meaning(b: Any) -> None:
        with loop(("row", row.extent), ("i", run.extent)) as (r, i):
            at = [r * row.strides[n] + i * run.strides[n] for n in range(3)]
            operands = [b.x0[at[1]], b.x1[at[2]]]
            store(b.y, value([operands[rows.order.index(number)] for number in range(2)]), at[0])

    operands = (
        *(Operand(f"x{n}", (reach(n + 1),), view.inputs[number].dtype) for n, number in enumerate(rows.order)),
        *constants,
        Operand("y", (reach(0),), out.dtype, "w"),
    )
    arguments = lambda b: [b.x0, b.x1, b.y, *(getattr(b, operand.name) for operand in constants)]  # noqa: E731
    block = Block("rows", operands, meaning, function, arguments)
    with Function(view.op.op) as f:
        inputs = [f.input(number, (x.elements,), x.dtype) for number, x in enumerate(view.inputs)]
        given = {operand.name: f.constant(operand.name, operand.shape, operand.dtype) for operand in constants}
        y = f.output(0, (out.elements,), out.dtype)
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(rows.outer))) as at:
            starts = [offset(at, rows.outer, n) for n in range(3)]
            regions = {f"x{n}": (inputs[number], starts[n + 1]) for n, number in enumerate(rows.order)}
            f.place(block, **regions, **given, y=(y, starts[0]))
    return f.lowering()
