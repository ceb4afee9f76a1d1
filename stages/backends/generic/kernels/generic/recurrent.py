"""RNN and GRU in float32."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import FLOAT_GRU, FLOAT_LSTM, FLOAT_RNN, LSTM16
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.lstm import of_steps
from stages.backends.kernels.tir.block import Operand
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

_ACTIVATIONS = ("none", "relu", "tanh")  # as in float_rnn.c


class _Recurrent(Kernel):
    """One step of a sequence at a time, with its section of the state."""

    calls = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "" if view.inputs[0].dtype == "float32" else f"{view.inputs[0].dtype}; this kernel is for float32"

    def _weights(self, view: LayerView) -> dict[str, Array]:
        parts = {"input": view.constant("input_weights"), "recurrent": view.constant("recurrent_weights")}
        return {name: array.reshape(-1, array.shape[-1]) for name, array in parts.items()}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 4 instructions per product with an FPU, 120 without; 50 products per gate."""
        op, product_cost = view.op, 4 if target.fpu else 120
        return float(view.outputs[0].elements * op.gates * (op.depth + op.units + 50) * product_cost)


class FloatRnn(_Recurrent):
    """RNN in float32."""

    name = "generic.float_rnn"
    ops: ClassVar[frozenset[str]] = frozenset({"float_rnn"})
    sources = ("float_rnn.c",)
    headers: ClassVar[tuple[str, ...]] = ("float_recurrent.h",)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        sizes = {"units": op.units, "depth": op.depth, "activation": _ACTIVATIONS.index(op.activation)}
        return {**self._weights(view), "bias": view.constant("bias"), "rnn": FLOAT_RNN.of(sizes)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return RNN in float32."""
        constants = (*_weights(view, 1, 1), Operand("rnn", FLOAT_RNN.shape, "int32"))

        def arguments(b: Any) -> list[Any]:
            return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.y, b.rnn]

        return of_steps(view, "fl_rnn_f32", constants, _FLOATS, arguments)


class FloatGru(_Recurrent):
    """GRU in float32."""

    name = "generic.float_gru"
    ops: ClassVar[frozenset[str]] = frozenset({"float_gru"})
    sources = ("float_gru.c",)
    headers: ClassVar[tuple[str, ...]] = ("float_recurrent.h",)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        bias = np.concatenate([view.constant("input_bias"), view.constant("recurrent_bias")]).reshape(-1)
        sizes = {"units": op.units, "depth": op.depth, "reset_after": int(op.reset_after)}
        return {**self._weights(view), "bias": bias, "gru": FLOAT_GRU.of(sizes)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return GRU in float32. `w` takes the reset gates r, or r * state without `reset_after`."""
        constants = (*_weights(view, 3, 6), Operand("gru", FLOAT_GRU.shape, "int32"))

        def arguments(b: Any) -> list[Any]:
            return [b.x, b.input, b.recurrent, b.bias, b.hidden, b.y, b.w, b.gru]

        return of_steps(view, "fl_gru_f32", constants, _FLOATS, arguments, view.op.units)


KERNELS: tuple[type[Kernel], ...] = (FloatGru, FloatRnn)


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
