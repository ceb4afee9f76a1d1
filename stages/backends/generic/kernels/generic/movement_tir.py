"""TIR of data movement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm import tirx

from stages.backends.kernels.copies import Copy, whole_of
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.backends.kernels.tir.strides import Axis, offset
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators.variables import Slide

if TYPE_CHECKING:
    from stages.backends.generic.kernels.generic.movement import CopyParams


def copies(view: LayerView, wanted: Sequence[Copy], fill: int | None, params: CopyParams, target: Target) -> Lowering:
    """Return the copies in order. With `fill`, the output is filled with that value first."""
    y = view.outputs[0]
    item_bytes = ITEM_BYTES[y.dtype]
    with StatefulFunction(view.layer.kind) as f:
        inputs, out = f.copied(view, {copy.source for copy in wanted})
        if fill is not None:
            f.place(_fill(y.elements, y.dtype, fill, item_bytes), y=out)
        for number, copy in enumerate(wanted):
            word_bytes = copy.word_bytes(item_bytes, target) if params.by == "words" else 0
            if word_bytes:
                outer, block = copy.axes[:-2], _rows(f"copy{number}", copy, y.dtype, item_bytes, word_bytes)
            else:
                outer = copy.axes[:-1]
                run = _moved if isinstance(view.op, Slide) and copy.axes[-1].strides == (1, 1) else _run
                block = run(f"copy{number}", copy, y.dtype, item_bytes)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                first = offset(at, outer, 1) + copy.source_offset + _lowest(copy)
                place = offset(at, outer, 0) + copy.target_offset
                f.place(block, x=(inputs[copy.source], first), y=(out, place))
    return f.lowering()


def whole(view: LayerView) -> Lowering:
    """Return a copy of the whole input in memory order."""
    x, y = view.inputs[0], view.outputs[0]
    with Function(view.layer.kind) as f:
        source, out = f.input(0, (x.elements,), x.dtype), f.output(0, (y.elements,), y.dtype)
        f.place(_run("copy", whole_of(view), y.dtype, ITEM_BYTES[y.dtype]), x=source, y=out)
    return f.lowering()


def resize(view: LayerView) -> Lowering:
    """Return each output pixel from the input row and column in the tables."""
    x, y = view.inputs[0], view.outputs[0]
    batch, height, width, channels = y.shape

    def at(layout: str, n: Any, row: Any, column: Any, c: Any) -> tuple[Any, ...]:
        return (n, c, row, column) if layout == "NCHW" else (n, row, column, c)

    def meaning(b: Any) -> None:
        if y.layout == "NCHW":
            with loop(("n", batch), ("c", channels), ("oy", height), ("ox", width)) as (n, c, oy, ox):
                element(b, n, oy, ox, c)
        else:
            with loop(("n", batch), ("oy", height), ("ox", width), ("c", channels)) as (n, oy, ox, c):
                element(b, n, oy, ox, c)

    def element(b: Any, n: Any, oy: Any, ox: Any, c: Any) -> None:
        store(b.y, b.x[at(x.layout, n, b.rows[oy], b.columns[ox], c)], *at(y.layout, n, oy, ox, c))

    operands = (
        Operand("x", x.physical_shape, x.dtype),
        Operand("rows", (height,), "int32"),
        Operand("columns", (width,), "int32"),
        Operand("y", y.physical_shape, y.dtype, "w"),
    )
    with Function("resize") as f:
        source = f.input(0, x.physical_shape, x.dtype)
        rows, columns = f.constant("rows", (height,), "int32"), f.constant("columns", (width,), "int32")
        target = f.output(0, y.physical_shape, y.dtype)
        f.place(Block("resize", operands, meaning), x=source, rows=rows, columns=columns, y=target)
    return f.lowering()


def _rows(name: str, copy: Copy, dtype: str, item_bytes: int, word_bytes: int) -> Block:
    """Return y[i * step + j] = x[i * step + j] along the two innermost axes, by words."""
    row = copy.axes[-2] if len(copy.axes) > 1 else Axis(1, (0, 0))
    run, (into, out_of) = copy.axes[-1].extent, row.strides

    def meaning(b: Any) -> None:
        with loop(("i", row.extent), ("j", run)) as (i, j):
            store(b.y, b.x[i * out_of + j], i * into + j)

    operands = (
        Operand("x", ((row.extent - 1) * out_of + run,), dtype),
        Operand("y", ((row.extent - 1) * into + run,), dtype, "w"),
    )
    amounts = (row.extent, run * item_bytes // word_bytes, into * item_bytes, out_of * item_bytes)
    return Block(name, operands, meaning, f"fl_copy_rows_{8 * word_bytes}", lambda b: [b.y, b.x, *amounts])


def _run(name: str, copy: Copy, dtype: str, item_bytes: int) -> Block:
    """Return y[i * step] = x[i * step] along the innermost axis. One run of bytes is a memcpy."""
    run = copy.axes[-1]
    into, out_of = run.strides
    first = -_lowest(copy)

    def meaning(b: Any) -> None:
        with loop(("i", run.extent)) as i:
            store(b.y, b.x[i * out_of + first], i * into)

    operands = (
        Operand("x", ((run.extent - 1) * abs(out_of) + 1,), dtype),
        Operand("y", ((run.extent - 1) * into + 1,), dtype, "w"),
    )
    if not copy.is_run(item_bytes):
        return Block(name, operands, meaning)
    return Block(name, operands, meaning, "memcpy", lambda b: [b.y, b.x, run.extent * item_bytes])


def _moved(name: str, copy: Copy, dtype: str, item_bytes: int) -> Block:
    """Return y[i] = x[i] for buffers that may overlap: in descending order if y is after x."""
    count = copy.axes[-1].extent
    last = count - 1 if copy.target_offset > copy.source_offset else 0

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            at = last - i if last else i
            store(b.y, b.x[at], at)

    operands = (Operand("x", (count,), dtype), Operand("y", (count,), dtype, "w"))
    return Block(name, operands, meaning, "memmove", lambda b: [b.y, b.x, count * item_bytes])


def _lowest(copy: Copy) -> int:
    """Return the lowest offset along the innermost axis: at most 0, below if it goes backwards."""
    run = copy.axes[-1]
    return min(0, (run.extent - 1) * run.strides[1])


def _fill(elements: int, dtype: str, value: int, item_bytes: int) -> Block:
    def meaning(b: Any) -> None:
        with loop(("i", elements)) as i:
            store(b.y, tirx.const(value, dtype), i)

    operands = (Operand("y", (elements,), dtype, "w"),)
    if item_bytes != 1:
        return Block("fill", operands, meaning)
    return Block("fill", operands, meaning, "memset", lambda b: [b.y, value, elements])
