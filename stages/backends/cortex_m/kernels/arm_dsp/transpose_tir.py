"""TIR of transposes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.strides import offset
from stages.ir.graph import LayerView

if TYPE_CHECKING:
    from stages.backends.cortex_m.kernels.arm_dsp.transpose import Matrices


def transposes(view: LayerView, wanted: Sequence[Matrices]) -> Lowering:
    """Build the transposes one after the other; tensors keep their memory layout."""
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
