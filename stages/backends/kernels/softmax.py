"""SOFTMAX along dense rows of 8-bit tensors: code that vector kernels share."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import clamp, divide_by_pot, high_mul, int64, maximum, select, widen
from stages.backends.kernels.tir.last_axis import along_rows, leading_zeros, row_operands, row_steps, saturated
from stages.backends.kernels.tir.strides import logical_strides
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T


class RowSoftmax(Kernel):
    """Softmax one row at a time, by the table of exponentials.

    `function` of its C, without the type.
    """

    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"softmax"})
    function: ClassVar[str]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        for tensor in (*view.inputs, *view.outputs):
            if tensor.shape[-1] > 1 and logical_strides(tensor)[-1] != 1:
                return f"the row elements of {tensor.name} are not neighbours in memory"
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {"exp": view.constant("exp")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return softmax(view, f"{self.function}_{SUFFIX[view.inputs[0].dtype]}")


def softmax(view: LayerView, function: str = "") -> Lowering:
    """Return loops around `function(x, exp, y, count, x_step, y_step)`; exp is int32[256].

    Without a C function the loops compute the layer.
    """
    return along_rows(view, _softmax_row(view, function), ("exp", (256,), "int32"))


def _softmax_row(view: LayerView, function: str) -> Block:
    """Compute the formula of `stages.ir.operators.rows.Softmax` on one row."""
    dtype, out_dtype, (count, x_step, y_step) = view.inputs[0].dtype, view.outputs[0].dtype, row_steps(view)
    bits = 16 if out_dtype == "int16" else 8
    lowest, least = (-128 if dtype == "int8" else 0), (0 if out_dtype == "uint8" else -(1 << bits - 1))

    def meaning(b: Any) -> None:
        store(b.top, lowest, 0)
        with loop(("i", count)) as i:
            store(b.top, maximum(widen(b.x[i * x_step]), b.top[0]), 0)
        store(b.total, 0, 0)
        with loop(("i", count)) as i, position("d", b.top[0] - widen(b.x[i * x_step])) as d:
            store(b.total, b.total[0] + T.Cast("int32", divide_by_pot(int64(b.exp[d]), 12)), 0)
        total = T.bitwise_and(int64(b.total[0]), T.int64(0xFFFFFFFF))
        leading_zeros(b.zeros, total)
        store(b.half, T.Cast("int32", T.shift_right(T.shift_left(total, int64(b.zeros[0])), T.int64(1))), 0)
        store(b.scale, T.Cast("int32", high_mul(b.half[0], -1010580540) + T.int64(1515870810)), 0)
        with loop(("step", 3)):
            error = T.int64(1 << 29) - high_mul(b.half[0], b.scale[0])
            change = saturated(high_mul(b.scale[0], error) * T.int64(4))
            store(b.scale, b.scale[0] + change, 0)
        store(b.scale, saturated(int64(b.scale[0]) * T.int64(2)), 0)
        with loop(("i", count)) as i, position("d", b.top[0] - widen(b.x[i * x_step])) as d:
            shift = 43 - bits - b.zeros[0]
            part = divide_by_pot(high_mul(b.scale[0], b.exp[d]), T.min(shift, 31))
            value = select(shift > 31, 0, T.Cast("int32", part))
            store(b.y, T.Cast(out_dtype, clamp(value + least, least, least + (1 << bits) - 1)), i * y_step)

    source, target = row_operands(view)
    cells = (accumulator(name) for name in ("top", "total", "zeros", "half", "scale"))
    operands = (source, Operand("exp", (256,), "int32"), target, *cells)
    if not function:
        return Block("row", operands, meaning)
    return Block("row", operands, meaning, function, lambda b: [b.x, b.exp, b.y, count, x_step, y_step])
