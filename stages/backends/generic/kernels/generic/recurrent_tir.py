"""TIR of LSTM on int16, and of LSTM, RNN and GRU in float32."""

from typing import Any

import numpy as np
from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.parameters import FLOAT_GRU, FLOAT_LSTM, FLOAT_RNN, LSTM16
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.lstm import of_steps
from stages.ir.graph import LayerView

_FLOATS = ("float32",) * 3


def lstm16(view: LayerView) -> Lowering:
    """Return LSTM with int16 data and cells."""
    constants = (
        *_weights(view, 4, 4, "int8", "int64"),
        Operand("scales", (4, 4), "int32"),
        Operand("table", (256,), "int32"),
        Operand("lstm", LSTM16.shape, "int32"),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.scales, b.table, b.hidden, b.cell, b.y, b.lstm]

    return of_steps(view, "fl_lstm_s16", constants, ("int16", "int16", "int64"), arguments)


def float_lstm(view: LayerView) -> Lowering:
    """Return LSTM in float32. Bounds of unclamped cells are infinite."""
    bound = T.float32(view.op.clip or np.inf)
    constants = (*_weights(view, 4, 4), Operand("lstm", FLOAT_LSTM.shape, "int32"))

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.cell, b.y, bound, b.lstm]

    return of_steps(view, "fl_lstm_f32", constants, _FLOATS, arguments)


def float_rnn(view: LayerView) -> Lowering:
    """Return RNN in float32."""
    constants = (*_weights(view, 1, 1), Operand("rnn", FLOAT_RNN.shape, "int32"))

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.y, b.rnn]

    return of_steps(view, "fl_rnn_f32", constants, _FLOATS, arguments)


def float_gru(view: LayerView) -> Lowering:
    """Return GRU in float32. `w` takes the reset gates r, or r * state without `reset_after`."""
    constants = (*_weights(view, 3, 6), Operand("gru", FLOAT_GRU.shape, "int32"))

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.y, b.w, b.gru]

    return of_steps(view, "fl_gru_f32", constants, _FLOATS, arguments, view.op.units)


def _weights(
    view: LayerView, gates: int, biases: int, weights: str = "float32", bias: str = "float32"
) -> tuple[Operand, ...]:
    """Return the weights of all gates, and so many biases of a unit."""
    op = view.op
    return (
        Operand("input", (gates * op.units, op.depth), weights),
        Operand("recurrent", (gates * op.units, op.units), weights),
        Operand("bias", (biases * op.units,), bias),
    )
