"""TIR of ADD and SUB: one block of all elements, with the reference's arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.mve.add import FIELDS, shifted_input
from stages.kernels.tir.block import Block, Function, Operand, loop, store
from stages.kernels.tir.fixed_point import clamp, requantize, widen

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def add(view: LayerView) -> Lowering:
    op, y = view.op, view.outputs[0]
    count, dtype, shifted = y.elements, y.dtype, shifted_input(view)

    def meaning(b: Any) -> None:
        with loop(("i", count)) as i:
            shares = []
            for number in range(2):
                x = widen((b.x0 if number == shifted else b.x1)[i]) - op.zero_points[number]
                share = requantize(x * (1 << op.left_shift), op.multipliers[number], op.shifts[number], op.rounding)
                shares.append(share)
            total = shares[0] + shares[1] if op.op == "add" else shares[0] - shares[1]
            scaled = requantize(total, op.output_multiplier, op.output_shift, op.rounding)
            store(b.y, T.Cast(dtype, clamp(scaled + op.output_zero_point, op.act_min, op.act_max)), i)

    operands = (
        Operand("x0", (count,), dtype),
        Operand("x1", (count,), dtype),
        Operand("fields", (len(FIELDS),), "int32"),
        Operand("y", (count,), dtype, "w"),
    )
    arguments = lambda b: [b.x0, b.x1, b.y, count, b.fields]  # noqa: E731
    block = Block("sum", operands, meaning, f"mve_{op.op}_{'s8' if dtype == 'int8' else 'u8'}", arguments)
    with Function(op.op) as f:
        inputs = [f.input(number, (count,), dtype) for number in range(2)]
        fields = f.constant("fields", (len(FIELDS),), "int32")
        out = f.output(0, (count,), dtype)
        f.place(block, x0=inputs[shifted], x1=inputs[1 - shifted], fields=fields, y=out)
    return f.lowering()
