"""TIR of data movement by words of any alignment."""

from collections.abc import Sequence
from typing import Any

from tvm import tirx

from stages.backends.kernels.copies import Copy
from stages.backends.kernels.copy_calls import Calls, calls_of, resized
from stages.backends.kernels.fills import Fill
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, position, store
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.backends.kernels.tir.strides import Axis, offset
from stages.ir.graph import LayerView
from stages.ir.layers.tensor import ITEM_BYTES


def copies(view: LayerView, wanted: Sequence[Copy], filled: Sequence[Fill], prefix: str) -> Lowering:
    """Return the runs of a pad's value, then the copies."""
    y = view.outputs[0]
    with StatefulFunction(view.layer.kind) as f:
        inputs, out = f.copied(view, {copy.source for copy in wanted})
        for number, fill in enumerate(filled):
            outer, block = fill.axes[:-1], _fill(f"fill{number}", fill, y.dtype, view.op.params["value"], prefix)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as at:
                f.place(block, y=(out, offset(at, outer, 0) + fill.offset))
        for number, copy in enumerate(wanted):
            calls, name = calls_of(copy), f"copy{number}"
            block = (_runs if calls.is_run else _bytes)(name, calls, y.dtype, prefix)
            with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(calls.outer))) as at:
                first = offset(at, calls.outer, 1) + copy.source_offset - _start(calls, 1)
                place = offset(at, calls.outer, 0) + copy.target_offset - _start(calls, 0)
                f.place(block, x=(inputs[copy.source], first), y=(out, place))
    return f.lowering()


def resize(view: LayerView, prefix: str) -> Lowering:
    """Return the resize, one image or plane after the other."""
    x, y = view.inputs[0], view.outputs[0]
    images, height, width, pixel_bytes = resized(view)
    pixel = pixel_bytes // ITEM_BYTES[y.dtype]
    x_height, x_width = x.shape[1:3]

    def meaning(b: Any) -> None:
        with (
            loop(("oy", height), ("ox", width), ("c", pixel)) as (oy, ox, c),
            position("iy", b.rows[oy]) as iy,
            position("ix", b.columns[ox]) as ix,
        ):
            store(b.y, b.x[iy, ix, c], oy, ox, c)

    operands = (
        Operand("x", (x_height, x_width, pixel), x.dtype),
        Operand("rows", (height,), "int32"),
        Operand("columns", (width,), "int32"),
        Operand("y", (height, width, pixel), y.dtype, "w"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.y, b.x, b.rows, b.columns, height, width, pixel_bytes, x_width * pixel_bytes]

    block = Block("resize", operands, meaning, f"{prefix}_nearest", arguments)
    with Function("resize") as f:
        source = f.input(0, (images, x_height, x_width, pixel), x.dtype)
        rows, columns = f.constant("rows", (height,), "int32"), f.constant("columns", (width,), "int32")
        target = f.output(0, (images, height, width, pixel), y.dtype)
        with f.loop(("n", images)) as (n,):
            f.place(block, x=(source, n, 0, 0, 0), rows=rows, columns=columns, y=(target, n, 0, 0, 0))
    return f.lowering()


def _runs(name: str, calls: Calls, dtype: str, prefix: str) -> Block:
    """Return the block y[i * step + j] = x[i * step + j]. Rows may go backwards."""
    item_bytes = ITEM_BYTES[dtype]
    into, out_of = calls.rows.strides

    def arguments(b: Any) -> list[Any]:
        rows, run = calls.rows.extent, calls.columns.extent
        return [*_firsts(b, calls), rows, run * item_bytes, into * item_bytes, out_of * item_bytes]

    return Block(name, _operands(calls, dtype), _meaning(calls), f"{prefix}_copy_rows", arguments)


def _bytes(name: str, calls: Calls, dtype: str, prefix: str) -> Block:
    """Return the block y[i * row + j * column] = x[i * row + j * column].

    x and y have separate steps.
    """
    rows, columns = calls.rows, calls.columns

    def arguments(b: Any) -> list[Any]:
        steps = (rows.strides[0], columns.strides[0], rows.strides[1], columns.strides[1])
        return [*_firsts(b, calls), rows.extent, columns.extent, *steps]

    return Block(name, _operands(calls, dtype), _meaning(calls), f"{prefix}_copy_bytes", arguments)


def _meaning(calls: Calls) -> Any:
    rows, columns = calls.rows, calls.columns

    def meaning(b: Any) -> None:
        with loop(("i", rows.extent), ("j", columns.extent)) as (i, j):
            at = [i * rows.strides[n] + j * _step(columns, n) + _start(calls, n) for n in range(2)]
            store(b.y, b.x[at[1]], at[0])

    return meaning


def _operands(calls: Calls, dtype: str) -> tuple[Operand, Operand]:
    sizes = [
        (calls.rows.extent - 1) * abs(calls.rows.strides[n])
        + (calls.columns.extent - 1) * abs(_step(calls.columns, n))
        + 1
        for n in range(2)
    ]
    return Operand("x", (sizes[1],), dtype), Operand("y", (sizes[0],), dtype, "w")


def _firsts(b: Any, calls: Calls) -> list[Any]:
    """Return the first elements' positions: after the lowest ones where axes go backwards."""
    return [
        buffer.access_ptr(access, offset=_start(calls, n))
        for n, (buffer, access) in enumerate(((b.y, "w"), (b.x, "r")))
    ]


def _start(calls: Calls, number: int) -> int:
    """Return the distance from the lowest element to the first."""
    axes = (calls.rows, calls.columns)
    return -sum(min(0, (axis.extent - 1) * _step(axis, number)) for axis in axes)


def _step(axis: Axis, number: int) -> int:
    return axis.strides[number] if axis.extent > 1 else 0


def _fill(name: str, fill: Fill, dtype: str, value: int, prefix: str) -> Block:
    """Return the block y[i * step + j] = value along the last of a fill's axes."""
    rows, item_bytes = fill.axes[-1], ITEM_BYTES[dtype]
    step = rows.strides[0]

    def meaning(b: Any) -> None:
        with loop(("i", rows.extent), ("j", fill.extent)) as (i, j):
            store(b.y, tirx.const(value, dtype), i * step + j)

    operands = (Operand("y", ((rows.extent - 1) * step + fill.extent,), dtype, "w"),)
    amounts = (value, rows.extent, fill.extent * item_bytes, step * item_bytes)
    return Block(name, operands, meaning, f"{prefix}_fill_rows", lambda b: [b.y, *amounts])
