"""TIR of LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm.tirx.script.builder import ir as T

from stages.arithmetic.sigmoid16 import HIGH, LOW
from stages.kernels.generic.parameters import FLOAT_LSTM, LSTM
from stages.kernels.tir.block import Block, Operand, loop, store
from stages.kernels.tir.fixed_point import clamp, requantize, widen
from stages.kernels.tir.sigmoid16 import CELLS, rounded, sigmoid16, tanh16
from stages.kernels.tir.stateful import StatefulFunction

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering

Expr = Any  # a TIR expression or a Python int
# Cells of the buffer of a meaning, behind those of the functions: four gates, and what leaves them.
GATES, SUM = CELLS, CELLS + 4


def lstm(view: LayerView) -> Lowering:
    """int8 data, int16 cells."""
    op = view.op
    low, high = (-op.clip, op.clip) if op.clip else (LOW, HIGH)

    def meaning(b: Any) -> None:
        w = b.w
        with loop(("u", op.units)) as u:
            with loop(("k", 4)) as k:
                row = u * 4 + k
                store(w, b.bias[row, 0], 0)
                with loop(("i", op.depth)) as i:
                    store(w, w[0] + widen(b.x[i]) * widen(b.input[row, i]), 0)
                store(w, b.bias[row, 1], 1)
                with loop(("j", op.units)) as j:
                    store(w, w[1] + widen(b.hidden[j]) * widen(b.recurrent[row, j]), 1)
                first = clamp(requantize(w[0], b.scales[k, 0], b.scales[k, 1], "double"), LOW, HIGH)
                second = requantize(w[1], b.scales[k, 2], b.scales[k, 3], "double")
                store(w, clamp(first + second, LOW, HIGH), k + GATES)
            for k, name in ((0, "si"), (1, "sf"), (3, "so")):
                sigmoid16(w, GATES + k, name)
            tanh16(w, GATES + 2, 3, "tg")
            store(w, rounded(widen(b.cell[u]) * w[GATES + 1], 15), SUM)
            store(w, w[SUM] + rounded(w[GATES] * w[GATES + 2], 15 + op.cell_bits), SUM)
            store(w, clamp(clamp(w[SUM], LOW, HIGH), low, high), SUM)
            store(b.cell, T.Cast("int16", w[SUM]), u)
            tanh16(w, SUM, op.cell_bits, "tc")
            given = requantize(w[SUM] * w[GATES + 3], op.scale[0], op.scale[1], "double")
            store(b.y, T.Cast("int8", clamp(given + op.output_zero_point, -128, 127)), u)
        with loop(("u", op.units)) as u:
            store(b.hidden, b.y[u], u)

    constants = (
        Operand("input", (op.units * 4, op.depth), "int8"),
        Operand("recurrent", (op.units * 4, op.units), "int8"),
        Operand("bias", (op.units * 4, 2), "int32"),
        Operand("scales", (4, 4), "int32"),
        Operand("lstm", LSTM.shape, "int32"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.scales, b.hidden, b.cell, b.y, b.lstm]

    return of_steps(view, "fl_lstm_s8", constants, ("int8", "int16", "int32"), meaning, arguments)


def float_lstm(view: LayerView) -> Lowering:
    """All in float32; bounds of the cells are infinite where it has none."""
    op = view.op
    bound = T.float32(op.clip or np.inf)

    def sigmoid(x: Expr) -> Expr:
        return T.float32(1) / (T.float32(1) + T.exp(T.float32(0) - x))

    def meaning(b: Any) -> None:
        w = b.w
        with loop(("u", op.units)) as u:
            with loop(("k", 4)) as k:
                store(w, b.bias[u * 4 + k], k + GATES)
                with loop(("i", op.depth)) as i:
                    store(w, w[k + GATES] + b.x[i] * b.input[u * 4 + k, i], k + GATES)
                with loop(("j", op.units)) as j:
                    store(w, w[k + GATES] + b.hidden[j] * b.recurrent[u * 4 + k, j], k + GATES)
            kept, entering = b.cell[u] * sigmoid(w[GATES + 1]), sigmoid(w[GATES]) * T.tanh(w[GATES + 2])
            store(b.cell, T.max(T.min(kept + entering, bound), T.float32(0) - bound), u)
            store(b.y, sigmoid(w[GATES + 3]) * T.tanh(b.cell[u]), u)
        with loop(("u", op.units)) as u:
            store(b.hidden, b.y[u], u)

    constants = (
        Operand("input", (op.units * 4, op.depth), "float32"),
        Operand("recurrent", (op.units * 4, op.units), "float32"),
        Operand("bias", (op.units * 4,), "float32"),
        Operand("lstm", FLOAT_LSTM.shape, "int32"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.cell, b.y, bound, b.lstm]

    return of_steps(view, "fl_lstm_f32", constants, ("float32",) * 3, meaning, arguments)


def of_steps(
    view: LayerView,
    function: str,
    constants: tuple[Operand, ...],
    types: tuple[str, str, str],
    meaning: Callable[[Any], None],
    arguments: Callable[[Any], list[Any]],
) -> Lowering:
    """A block for each step of each sequence; `types` of data, cells and what is computed with."""
    op, x_shape, y_shape = view.op, view.inputs[0].shape, view.outputs[0].shape
    batch, steps = (x_shape[1], x_shape[0]) if op.time_major else x_shape[:2]
    operands = (
        Operand("x", (op.depth,), types[0]),
        *constants,
        Operand("hidden", (op.units,), types[0], "rw"),
        Operand("cell", (op.units,), types[1], "rw"),
        Operand("y", (op.units,), types[0], "rw"),
        Operand("w", (SUM + 1,), types[2], "rw"),
    )
    block = Block("step", operands, meaning, function, arguments)
    with StatefulFunction("lstm") as f:
        x = f.input(0, x_shape, types[0])
        given = {one.name: f.constant(one.name, one.shape, one.dtype) for one in constants}
        hidden, cell = f.state(0, (batch, op.units), types[0]), f.state(1, (batch, op.units), types[1])
        y, w = f.output(0, y_shape, types[0]), f.scratch("w", (SUM + 1,), types[2])
        with f.loop(("n", batch), ("t", steps)) as (n, t):
            at = (t, n, 0) if op.time_major else (n, t, 0)
            f.place(block, x=(x, *at), hidden=(hidden, n, 0), cell=(cell, n, 0), y=(y, *at), w=w, **given)
    return f.lowering()
