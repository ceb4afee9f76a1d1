"""Element-wise layers as rows of runs.

In each run an input advances or repeats one element.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.strides import Axis, broadcast_strides, logical_strides, offset, walk
from stages.ir.graph import LayerView

ROWS = Structure.of_header("arm_dsp_rows", __file__, "rows.h")


@dataclass(frozen=True)
class Rows:
    """Axes with strides of (output, first operand, second operand).

    `order` holds the input numbers of the operands.

    outer  loops around a call
    row    axis of the runs of a call
    run    neighbouring elements of the output
    """

    order: tuple[int, int]
    outer: tuple[Axis, ...]
    row: Axis
    run: Axis

    @property
    def steps(self) -> tuple[int, int]:
        """Steps of the operands within a run."""
        return self.run.strides[1], self.run.strides[2]

    @property
    def fields(self) -> dict[str, int]:
        """Fields of the C structure arm_dsp_rows."""
        y_row, row0, row1 = self.row.strides
        return {"rows": self.row.extent, "count": self.run.extent, "row0": row0, "row1": row1, "y_row": y_row}


def rows_of(view: LayerView, first: int) -> Rows:
    """Return the layer's rows, with input number `first` as the first operand."""
    out, order = view.outputs[0], (first, 1 - first)
    strides = [broadcast_strides(view.inputs[number], out.shape) for number in order]
    axes = walk(out.shape, logical_strides(out), *strides)
    row = axes[-2] if len(axes) > 1 else Axis(1, (0, 0, 0))
    return Rows(order, tuple(axes[:-2]), row, axes[-1])


def why_not_rows(view: LayerView) -> str:
    """Return why runs of the output are not runs of the inputs, '' if they are."""
    run = rows_of(view, 0).run
    if run.strides[0] == 1 and set(run.strides[1:]) <= {0, 1}:
        return ""
    return "neighbours in the output are not neighbours in an input"


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
