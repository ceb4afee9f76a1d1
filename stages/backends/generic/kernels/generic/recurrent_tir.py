"""TIR of RNN and GRU in float32."""

from __future__ import annotations

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.parameters import FLOAT_GRU, FLOAT_RNN
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Operand, loop, store
from stages.backends.kernels.tir.lstm import of_steps
from stages.ir.graph import LayerView

Expr = Any  # a TIR expression or a Python int
_TYPES = ("float32",) * 3


def sigmoid(x: Expr) -> Expr:
    """Return 1 / (1 + exp(-x)) in float32."""
    return T.float32(1) / (T.float32(1) + T.exp(T.float32(0) - x))


def float_rnn(view: LayerView) -> Lowering:
    """Return RNN in float32."""
    op = view.op
    functions = {"none": lambda x: x, "relu": lambda x: T.max(x, T.float32(0)), "tanh": T.tanh}

    def meaning(b: Any) -> None:
        with loop(("u", op.units)) as u:
            store(b.w, b.bias[u], 0)
            _add(b.w, 0, b.x, b.input, u, op.depth, "i")
            _add(b.w, 0, b.hidden, b.recurrent, u, op.units, "j")
            store(b.y, functions[op.activation](b.w[0]), u)
        with loop(("u", op.units)) as u:
            store(b.hidden, b.y[u], u)

    constants = (*_weights(view), Operand("rnn", FLOAT_RNN.shape, "int32"))

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.y, b.rnn]

    return of_steps(view, "fl_rnn_f32", constants, _TYPES, meaning, arguments, 1)


def float_gru(view: LayerView) -> Lowering:
    """Return GRU in float32.

    `w` begins with the reset gates r, or with r * state without `reset_after`.
    """
    op, units = view.op, view.op.units
    first, second = units, units + 1  # cells of sums

    def meaning(b: Any) -> None:
        w = b.w
        with loop(("u", units)) as u:
            store(w, b.bias[units + u] + b.bias[4 * units + u], first)
            _add(w, first, b.x, b.input, units + u, op.depth, "i")
            _add(w, first, b.hidden, b.recurrent, units + u, units, "j")
            reset = sigmoid(w[first])
            store(w, reset if op.reset_after else reset * b.hidden[u], u)
        with loop(("u", units)) as u:
            store(w, b.bias[2 * units + u], first)
            _add(w, first, b.x, b.input, 2 * units + u, op.depth, "i")
            store(w, b.bias[5 * units + u], second)
            _add(w, second, b.hidden if op.reset_after else w, b.recurrent, 2 * units + u, units, "j")
            back = w[u] * w[second] if op.reset_after else w[second]
            store(b.y, T.tanh(w[first] + back), u)
            store(w, b.bias[u] + b.bias[3 * units + u], first)
            _add(w, first, b.x, b.input, u, op.depth, "k")
            _add(w, first, b.hidden, b.recurrent, u, units, "l")
            update = sigmoid(w[first])
            store(b.y, (T.float32(1) - update) * b.y[u] + update * b.hidden[u], u)
        with loop(("u", units)) as u:
            store(b.hidden, b.y[u], u)

    constants = (*_weights(view), Operand("gru", FLOAT_GRU.shape, "int32"))

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.y, b.w, b.gru]

    return of_steps(view, "fl_gru_f32", constants, _TYPES, meaning, arguments, units + 2)


def _add(w: Any, cell: Expr, row: Any, weights: Any, at: Expr, count: int, name: str) -> None:
    """Add the product of a row and a row of the weights to a cell of `w`."""
    with loop((name, count)) as i:
        store(w, w[cell] + row[i] * weights[at, i], cell)


def _weights(view: LayerView) -> tuple[Operand, ...]:
    op = view.op
    rows = op.gates * op.units
    return (
        Operand("input", (rows, op.depth), "float32"),
        Operand("recurrent", (rows, op.units), "float32"),
        Operand("bias", (rows * (2 if op.gates > 1 else 1),), "float32"),
    )
