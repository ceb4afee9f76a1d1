"""Element-wise layers as rows of runs.

In each run an input advances or repeats one element.
"""

from dataclasses import dataclass

from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.strides import Axis, broadcast_strides, logical_strides, walk
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
