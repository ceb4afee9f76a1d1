"""TIR of LSTM on int16."""

from __future__ import annotations

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.parameters import LSTM16
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Operand, loop, position, store
from stages.backends.kernels.tir.fixed_point import clamp, int64, requantize, select, widen
from stages.backends.kernels.tir.lstm import GATES, SUM, of_steps
from stages.ir.arithmetic.sigmoid16 import HIGH, LOW
from stages.ir.graph import LayerView

Expr = Any  # a TIR expression or a Python int


def lstm16(view: LayerView) -> Lowering:
    """Return LSTM with int16 data and cells. The block's TIR has a 64-bit buffer for sums."""
    op = view.op
    low, high = (-op.clip, op.clip) if op.clip else (LOW, HIGH)

    def scaled(total: Expr, multiplier: Expr, shift: Expr) -> Expr:
        half = T.shift_left(T.int64(1), int64(14 - shift))
        rounded = T.shift_right(total * int64(multiplier) + half, int64(15 - shift))
        return T.max(T.min(rounded, T.int64(HIGH)), T.int64(LOW))

    def product(factors: Expr, multiplier: int, shift: int) -> Expr:
        return clamp(requantize(factors, multiplier, shift, "double"), LOW, HIGH)

    def meaning(b: Any) -> None:
        w = b.w

        def cell(number: int) -> Expr:
            return T.Cast("int32", w[number])

        def put(value: Expr, number: int) -> None:
            store(w, int64(value), number)

        def interpolated(x: int, multiplier: int, shift: int, function: str) -> None:
            """Set w[x] to its function value.

            It uses several stores, because TVM does not finish simplifying deeply nested expressions.
            """
            bits, most = (9, HIGH << 10) if function == "logistic" else (8, ((1 << 16) - 1) << 8)
            put(T.shift_right(cell(x) * multiplier + (1 << shift >> 1), T.int32(shift)), x)
            put(T.max(cell(x), 0 - cell(x)), 0)
            put(T.min(T.shift_right(cell(0), T.int32(bits)), 254), 1)
            with position(f"at{x}", cell(1)) as at:
                risen = T.bitwise_and(cell(0), T.int32((1 << bits) - 1)) * (b.table[at + 1] - b.table[at])
                put(b.table[at] * (1 << bits) + risen, 2)
            put(select(cell(0) >= 255 << bits, T.int32(most), cell(2)), 2)
            if function == "logistic":
                above, below, down = cell(2) + (1 << 9), (1 << 25) + (1 << 9) - 1 - cell(2), 10
            else:
                above, below, down = cell(2) + ((1 << 7) - (1 << 23)), (1 << 23) + (1 << 7) - 1 - cell(2), 8
            put(select(cell(x) >= 0, above, below), 2)
            put(T.shift_right(cell(2), T.int32(down)), x)

        with loop(("u", op.units)) as u:
            with loop(("k", 4)) as k:
                row = u * 4 + k
                store(w, b.bias[row], 0)
                with loop(("i", op.depth)) as i:
                    store(w, w[0] + int64(widen(b.x[i]) * widen(b.input[row, i])), 0)
                store(w, T.int64(0), 1)
                with loop(("j", op.units)) as j:
                    store(w, w[1] + int64(widen(b.hidden[j]) * widen(b.recurrent[row, j])), 1)
                both = scaled(w[0], b.scales[k, 0], b.scales[k, 1]) + scaled(w[1], b.scales[k, 2], b.scales[k, 3])
                store(w, T.max(T.min(both, T.int64(HIGH)), T.int64(LOW)), k + GATES)
            for k in range(4):
                interpolated(GATES + k, 3, 0, "tanh" if k == 2 else "logistic")
            put(product(widen(b.cell[u]) * cell(GATES + 1), 1 << 30, -14), SUM)
            put(product(cell(GATES) * cell(GATES + 2), *op.entering), 0)
            put(clamp(clamp(cell(SUM) + cell(0), LOW, HIGH), low, high), SUM)
            store(b.cell, T.Cast("int16", w[SUM]), u)
            interpolated(SUM, op.cell_scaling[0], op.cell_scaling[1], "tanh")
            store(b.y, T.Cast("int16", product(cell(SUM) * cell(GATES + 3), *op.scale)), u)
        with loop(("u", op.units)) as u:
            store(b.hidden, b.y[u], u)

    constants = (
        Operand("input", (op.units * 4, op.depth), "int8"),
        Operand("recurrent", (op.units * 4, op.units), "int8"),
        Operand("bias", (op.units * 4,), "int64"),
        Operand("scales", (4, 4), "int32"),
        Operand("table", (256,), "int32"),
        Operand("lstm", LSTM16.shape, "int32"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.scales, b.table, b.hidden, b.cell, b.y, b.lstm]

    return of_steps(view, "fl_lstm_s16", constants, ("int16", "int16", "int64"), meaning, arguments)
