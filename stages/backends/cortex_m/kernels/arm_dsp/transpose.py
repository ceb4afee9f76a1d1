"""TRANSPOSE and layout changes of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.copies import Copy, copy_of, relayouts, why_not_relayouts
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.strides import Axis, offset
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES

_ONE = Axis(1, (0, 0))


@dataclass(frozen=True)
class Matrices:
    """A copy as matrix transposes: calls along `outer`, matrices along `matrices`.

    Strides are (output, input).

    rows     neighbours in the output
    columns  neighbours in the input
    """

    copy: Copy
    outer: tuple[Axis, ...]
    matrices: Axis
    rows: Axis
    columns: Axis

    @property
    def cost(self) -> float:
        """Return the instructions, from counts: 27 per 4x4 block, 11 per word of a smaller block."""
        rows, columns = self.rows.extent, self.columns.extent
        if min(rows, columns) >= 4:
            matrix = -(-rows // 4) * (27 * -(-columns // 4) + 14)
        else:
            few, many = sorted((rows, columns))
            matrix = few * (11 * (many // 4) + 5 * (many % 4) + 12)
        return float(prod(axis.extent for axis in self.outer) * (self.matrices.extent * (matrix + 12) + 40))


class Transpose(Kernel):
    """Transpose of matrices whose rows and columns are neighbours in one tensor each."""

    name = "arm_dsp.transpose"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"move"})
    sources = ("transpose.c",)

    def why_not_layouts(self, view: LayerView) -> str:
        """Return '': tensors may change between any layouts."""
        return "" if view.op.kind == "layout" else super().why_not_layouts(view)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        if view.op.kind not in ("transpose", "layout"):
            return f"{view.op.kind} is not a transpose"
        if x.dtype != y.dtype or ITEM_BYTES[y.dtype] != 1:
            return f"{x.dtype} to {y.dtype}; this kernel moves bytes"
        if view.op.kind == "layout" and (bad := why_not_relayouts(x, y)):
            return bad
        return "" if all(map(_matrices, _copies(view))) else "neighbouring elements stay neighbours"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Build the transposes one after the other; tensors keep their memory layout."""
        wanted = _found(view)
        x, y = view.inputs[0], view.outputs[0]
        with Function(view.layer.kind) as f:
            given, out = f.input(0, (prod(x.physical_shape),), x.dtype), f.output(0, (prod(y.physical_shape),), y.dtype)
            for number, matrices in enumerate(wanted):
                block = _block(f"transpose{number}", matrices, y.dtype)
                outer, copy = matrices.outer, matrices.copy
                with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                    first = offset(at, outer, 1) + copy.source_offset
                    place = offset(at, outer, 0) + copy.target_offset
                    f.place(block, x=(given, first), y=(out, place))
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return sum(matrices.cost for matrices in _found(view))


def _found(view: LayerView) -> list[Matrices]:
    return [matrices for matrices in map(_matrices, _copies(view)) if matrices is not None]


def _copies(view: LayerView) -> list[Copy]:
    return relayouts(view.inputs[0], view.outputs[0]) if view.op.kind == "layout" else [copy_of(view)]


def _matrices(copy: Copy) -> Matrices | None:
    """Return the matrices, or None.

    None if no axis but the last is a run of the input, or if elements keep their order.
    """
    *others, rows = copy.axes
    columns = next((axis for axis in others if axis.strides[1] == 1), None)
    if columns is None or rows.strides[0] != 1:
        return None
    rest = [axis for axis in others if axis is not columns]
    longest = max(rest, key=lambda axis: axis.extent, default=_ONE)
    return Matrices(copy, tuple(axis for axis in rest if axis is not longest), longest, rows, columns)


def _block(name: str, matrices: Matrices, dtype: str) -> Block:
    """y[m * y_matrix + column * y_step + row] = x[m * x_matrix + row * x_step + column]"""
    axes = (matrices.matrices, matrices.columns, matrices.rows)
    along, columns, rows = axes

    def meaning(b: Any) -> None:
        with loop(("m", along.extent), ("column", columns.extent), ("row", rows.extent)) as at:
            store(b.y, b.x[offset(at, axes, 1)], offset(at, axes, 0))

    reach = [1 + sum((axis.extent - 1) * axis.strides[number] for axis in axes) for number in range(2)]
    operands = (Operand("x", (reach[1],), dtype), Operand("y", (reach[0],), dtype, "w"))
    amounts = (rows.extent, columns.extent, columns.strides[0], rows.strides[1], along.extent, *along.strides)
    return Block(name, operands, meaning, "arm_dsp_transpose", lambda b: [b.y, b.x, *amounts])
