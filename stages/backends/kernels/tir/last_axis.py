"""TIR of layers along the last axis: a block per row, and fixed-point helpers."""

from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import int64
from stages.backends.kernels.tir.strides import logical_strides, offset, walk
from stages.ir.graph import LayerView
from stages.support.lazy import T


def along_rows(view: LayerView, row: Block, *constants: tuple[str, tuple[int, ...], str]) -> Lowering:
    """Return the loops around the block of a row.

    A row's elements may be apart (NCHW). One-element operands are scratch.
    """
    x, y = view.inputs[0], view.outputs[0]
    axes = walk(x.shape[:-1], logical_strides(y)[:-1], logical_strides(x)[:-1])
    with Function(view.op.op) as f:
        source = f.input(0, (x.elements,), x.dtype)
        others = {key: f.constant(key, shape, dtype) for key, shape, dtype in constants}
        target = f.output(0, (y.elements,), y.dtype)
        for operand in row.operands:
            if operand.access == "rw":
                others[operand.name] = f.scratch(operand.name, operand.shape, operand.dtype)
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(axes))) as at:
            f.place(row, x=(source, offset(at, axes, 1)), y=(target, offset(at, axes, 0)), **others)
    return f.lowering()


def row_operands(view: LayerView) -> tuple[Operand, Operand]:
    """Return operands for the last axis of the input and of the output."""
    x, y = view.inputs[0], view.outputs[0]
    count, x_step, y_step = row_steps(view)
    return Operand("x", ((count - 1) * x_step + 1,), x.dtype), Operand("y", ((count - 1) * y_step + 1,), y.dtype, "w")


def row_steps(view: LayerView) -> tuple[int, int, int]:
    """Return the elements of a row, and the element steps in input and output."""
    x, y = view.inputs[0], view.outputs[0]
    return x.shape[-1], logical_strides(x)[-1], logical_strides(y)[-1]


def leading_zeros(count: Any, value: Any) -> None:
    """Count the leading zeros of an int64 expression in [0, 2^32) as 32 bits, into count[0]."""
    store(count, 0, 0)
    with loop(("bit", 32)) as bit:
        below = value < T.shift_left(T.int64(1), int64(bit))
        store(count, count[0] + T.Cast("int32", below), 0)


def saturated(x: Any) -> Any:
    """Return an int64 expression, saturated to int32."""
    return T.Cast("int32", T.min(T.max(x, T.int64(-(1 << 31))), T.int64((1 << 31) - 1)))
