"""TIR of ADD and SUB: one block over all elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.rvp.add import FIELDS
from stages.kernels.tir.block import Block, Function, Operand, loop, store
from stages.kernels.tir.fixed_point import clamp, requantize, widen

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def add(view: LayerView) -> Lowering:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    count = y.elements

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            scaled = [
                requantize(
                    (widen(x[i]) - op.zero_points[n]) * (1 << op.left_shift),
                    op.multipliers[n],
                    op.shifts[n],
                    op.rounding,
                )
                for n, x in enumerate((b.x0, b.x1))
            ]
            total = scaled[0] + scaled[1] if op.op == "add" else scaled[0] - scaled[1]
            result = requantize(total, op.output_multiplier, op.output_shift, op.rounding) + op.output_zero_point
            store(b.y, T.Cast(y.dtype, clamp(result, op.act_min, op.act_max)), i)

    operands = (
        Operand("x0", (count,), x.dtype),
        Operand("x1", (count,), x.dtype),
        Operand("y", (count,), y.dtype, "w"),
        Operand("add", (FIELDS,), "int32"),
    )
    block = Block("add", operands, meaning, f"rvp_{op.op}_s8", lambda b: [b.x0, b.x1, b.y, count, b.add])
    with Function(op.op) as f:
        x0, x1 = (f.input(n, (count,), x.dtype) for n in range(2))
        fields = f.constant("add", (FIELDS,), "int32")
        out = f.output(0, (count,), y.dtype)
        f.place(block, x0=x0, x1=x1, y=out, add=fields)
    return f.lowering()
