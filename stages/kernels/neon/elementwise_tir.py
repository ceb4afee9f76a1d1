"""TIR of element-wise layers: one block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import SUFFIX
from stages.kernels.neon.elementwise import ADD_BYTES
from stages.kernels.tir.block import Block, Function, Operand, loop, store
from stages.kernels.tir.fixed_point import clamp, requantize, widen

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def add(view: LayerView) -> Lowering:
    op, out = view.op, view.outputs[0]
    count, dtype = out.elements, out.dtype

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            shifted = [(widen(x[i]) - op.zero_points[k]) * (1 << op.left_shift) for k, x in enumerate((b.x0, b.x1))]
            scaled = [requantize(shifted[k], op.multipliers[k], op.shifts[k], op.rounding) for k in range(2)]
            total = scaled[0] + scaled[1] if op.op == "add" else scaled[0] - scaled[1]
            result = requantize(total, op.output_multiplier, op.output_shift, op.rounding)
            store(b.y, T.Cast(dtype, clamp(result + op.output_zero_point, op.act_min, op.act_max)), i)

    operands = (
        Operand("x0", (count,), dtype),
        Operand("x1", (count,), dtype),
        Operand("add", (ADD_BYTES,), "int8"),
        Operand("y", (count,), dtype, "w"),
    )
    arguments = lambda b: [b.x0, b.x1, b.y, count, b.add]  # noqa: E731
    block = Block("all", operands, meaning, f"neon_{op.op}_{SUFFIX[dtype]}", arguments)
    with Function(op.op) as f:
        x0, x1 = (f.input(k, (count,), dtype) for k in range(2))
        fields = f.constant("add", (ADD_BYTES,), "int8")
        y = f.output(0, (count,), dtype)
        f.place(block, x0=x0, x1=x1, add=fields, y=y)
    return f.lowering()
