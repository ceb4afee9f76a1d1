"""TIR of LSTM in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.parameters import FLOAT_LSTM
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Operand, loop, store
from stages.backends.kernels.tir.lstm import GATES, of_steps
from stages.ir.graph import LayerView

Expr = Any  # a TIR expression or a Python int


def float_lstm(view: LayerView) -> Lowering:
    """Return LSTM in float32. Bounds of unclamped cells are infinite."""
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
