"""TIR of data movement in rows."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm import tirx

from stages.backends.cortex_m.kernels.mve.copy_candidates import CopyCandidate
from stages.backends.kernels.copies import Copy
from stages.backends.kernels.fills import Fill
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.strides import offset
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES


def copies(view: LayerView, wanted: Sequence[tuple[Copy, CopyCandidate]], filled: Sequence[Fill]) -> Lowering:
    """Build the fills with a pad's value, then the copies one after the other."""
    y = view.outputs[0]
    item_bytes = ITEM_BYTES[y.dtype]
    with Function(view.layer.kind) as f:
        used = {copy.source for copy, _ in wanted}
        inputs = {i: f.input(i, (prod(x.physical_shape),), x.dtype) for i, x in enumerate(view.inputs) if i in used}
        out = f.output(0, (prod(y.physical_shape),), y.dtype)
        for number, fill in enumerate(filled):
            value = view.op.params["value"]
            outer, block = fill.axes[:-1], _fill(f"fill{number}", fill, y.dtype, value)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                f.place(block, y=(out, offset(at, outer, 0) + fill.offset))
        for number, (copy, candidate) in enumerate(wanted):
            table = {}
            if candidate.kind == "gather":
                table["offsets"] = f.constant(f"offsets{number}", (candidate.count,), "uint8")
            block = _rows(f"copy{number}", candidate, y.dtype, item_bytes)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(candidate.outer))) as at:
                first = offset(at, candidate.outer, 1) + copy.source_offset + _before(candidate, 1)
                place = offset(at, candidate.outer, 0) + copy.target_offset + _before(candidate, 0)
                f.place(block, x=(inputs[copy.source], first), y=(out, place), **table)
    return f.lowering()


def _rows(name: str, candidate: CopyCandidate, dtype: str, item_bytes: int) -> Block:
    """Copy y = x along rows and the axes of a row; rows may be read backwards."""
    into, out_of = candidate.row.strides
    starts = [-_before(candidate, number) for number in range(2)]

    def meaning(b: Any) -> None:
        names = [(f"j{depth}", axis.extent) for depth, axis in enumerate(candidate.inner)]
        with loop(("i", candidate.row.extent), *names) as (i, *along):
            store(
                b.y,
                b.x[i * out_of + offset(along, candidate.inner, 1) + starts[1]],
                i * into + offset(along, candidate.inner, 0) + starts[0],
            )

    operands = [Operand("x", (_reach(candidate, 1),), dtype)]
    if candidate.kind == "gather":
        operands.append(Operand("offsets", (candidate.count,), "uint8"))
    operands.append(Operand("y", (_reach(candidate, 0),), dtype, "w"))
    steps = (into * item_bytes, out_of * item_bytes)

    def arguments(b: Any) -> list[Any]:
        if candidate.kind == "copy":
            return [b.y, b.x, candidate.row.extent, candidate.count * item_bytes, *steps]
        if candidate.kind == "gather":
            return [b.y, b.x, candidate.row.extent, candidate.count, *steps, b.offsets]
        stride = candidate.inner[0].strides[1 if candidate.kind == "pick" else 0] * item_bytes
        return [b.y, b.x, candidate.row.extent, candidate.inner[0].extent, *steps, stride]

    function = f"mve_{candidate.kind}_rows"
    return Block(
        name,
        tuple(operands),
        meaning,
        function + (f"_{8 * candidate.item}" if candidate.kind in ("pick", "put") else ""),
        arguments,
    )


def _reach(candidate: CopyCandidate, number: int) -> int:
    """Return the elements from the first of a call to its last."""
    return 1 + sum((axis.extent - 1) * abs(axis.strides[number]) for axis in (candidate.row, *candidate.inner))


def _before(candidate: CopyCandidate, number: int) -> int:
    """Return the offset of the lowest row from the first one, at most 0."""
    return min(0, (candidate.row.extent - 1) * candidate.row.strides[number])


def _fill(name: str, fill: Fill, dtype: str, value: int) -> Block:
    """Fill y[i * step + j] = value along the last axis of a fill."""
    rows = fill.axes[-1]
    step = rows.strides[0]

    def meaning(b: Any) -> None:
        with loop(("i", rows.extent), ("j", fill.extent)) as (i, j):
            store(b.y, tirx.const(value, dtype), i * step + j)

    operands = (Operand("y", ((rows.extent - 1) * step + fill.extent,), dtype, "w"),)
    return Block(name, operands, meaning, "mve_fill_rows", lambda b: [b.y, value, rows.extent, fill.extent, step])
