"""TIR of data movement in rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tvm import tirx

from stages.graph.tensor import ITEM_BYTES
from stages.kernels.generic.copies import Copy
from stages.kernels.mve.fills import Fill
from stages.kernels.tir.block import Block, Function, Operand, loop, store
from stages.kernels.tir.strides import Axis, offset

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def copies(view: LayerView, wanted: Sequence[Copy], filled: Sequence[Fill]) -> Lowering:
    """The output's runs of a pad's value, then the copies one after the other."""
    y = view.outputs[0]
    item_bytes = ITEM_BYTES[y.dtype]
    with Function(view.layer.kind) as f:
        used = {copy.source for copy in wanted}
        inputs = {i: f.input(i, (prod(x.physical_shape),), x.dtype) for i, x in enumerate(view.inputs) if i in used}
        out = f.output(0, (prod(y.physical_shape),), y.dtype)
        for number, fill in enumerate(filled):
            value = view.op.params["value"]
            outer, block = fill.axes[:-1], _fill(f"fill{number}", fill, y.dtype, value)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                f.place(block, y=(out, offset(at, outer, 0) + fill.offset))
        for number, copy in enumerate(wanted):
            outer, block = copy.axes[:-2], _rows(f"copy{number}", copy, y.dtype, item_bytes)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                first = offset(at, outer, 1) + copy.source_offset + _before(copy, 1)
                place = offset(at, outer, 0) + copy.target_offset + _before(copy, 0)
                f.place(block, x=(inputs[copy.source], first), y=(out, place))
    return f.lowering()


def _rows(name: str, copy: Copy, dtype: str, item_bytes: int) -> Block:
    """y[i * step + j] = x[i * step + j * stride] along the two innermost axes; rows may be read backwards."""
    row, run = _row(copy), copy.axes[-1]
    (into, out_of), stride = row.strides, run.strides[1] if run.extent > 1 else 1
    starts = [-_before(copy, number) for number in range(2)]

    def meaning(b: Any) -> None:
        with loop(("i", row.extent), ("j", run.extent)) as (i, j):
            store(b.y, b.x[i * out_of + j * stride + starts[1]], i * into + j + starts[0])

    operands = (
        Operand("x", ((row.extent - 1) * abs(out_of) + (run.extent - 1) * stride + 1,), dtype),
        Operand("y", ((row.extent - 1) * abs(into) + run.extent,), dtype, "w"),
    )
    amounts = (row.extent, run.extent * item_bytes, into * item_bytes, out_of * item_bytes)
    function, last = ("mve_copy_rows", ()) if stride == 1 else ("mve_pick_rows", (stride,))

    def arguments(b: Any) -> list[Any]:
        return [b.y, b.x, *amounts, *last]

    return Block(name, operands, meaning, function, arguments)


def _row(copy: Copy) -> Axis:
    return copy.axes[-2] if len(copy.axes) > 1 else Axis(1, (0, 0))


def _before(copy: Copy, number: int) -> int:
    """Where the lowest of all rows begins from the first one, at most 0."""
    row = _row(copy)
    return min(0, (row.extent - 1) * row.strides[number])


def _fill(name: str, fill: Fill, dtype: str, value: int) -> Block:
    """y[i * step + j] = value along the last of a fill's axes."""
    rows = fill.axes[-1]
    step = rows.strides[0]

    def meaning(b: Any) -> None:
        with loop(("i", rows.extent), ("j", fill.extent)) as (i, j):
            store(b.y, tirx.const(value, dtype), i * step + j)

    operands = (Operand("y", ((rows.extent - 1) * step + fill.extent,), dtype, "w"),)
    return Block(name, operands, meaning, "mve_fill_rows", lambda b: [b.y, value, rows.extent, fill.extent, step])
