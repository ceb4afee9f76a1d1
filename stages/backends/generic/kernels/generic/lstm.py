"""LSTM on integers and in float32."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import FLOAT_LSTM, LSTM16
from stages.backends.generic.kernels.generic.recurrent import float_lstm, lstm16
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.lstm import Lstm8
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.targets.spec import Target
from stages.ir.arithmetic.fixed_point import upper_half
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class _Lstm(Kernel):
    """LSTM, one step of a sequence at a time, with its section of the state."""

    calls = True

    def _weights(self, view: LayerView) -> dict[str, Array]:
        """Return the gates of a cell in order, [units * 4, depth] and [units * 4, units]."""
        parts = {"input": view.constant("input_weights"), "recurrent": view.constant("recurrent_weights")}
        return {
            name: np.ascontiguousarray(array.swapaxes(0, 1)).reshape(-1, array.shape[2])
            for name, array in parts.items()
        }


class Lstm16(_Lstm):
    """LSTM with int16 data and cells, int8 weights."""

    name = "generic.lstm16"
    ops: ClassVar[frozenset[str]] = frozenset({"wide_lstm"})
    sources = ("lstm16.c",)
    bits = 16

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op = view.op
        fields = {
            "units": op.units,
            "depth": op.depth,
            "entering": op.entering[0],
            "entering_shift": op.entering[1],
            "tanh_multiplier": op.cell_scaling[0],
            "tanh_shift": op.cell_scaling[1],
            "clip": op.clip or 1 << 15,
            "multiplier": op.scale[0],
            "shift": op.scale[1],
        }
        pairs = zip(op.input_scales, op.recurrent_scales, strict=True)
        scales = [[part for multiplier, shift in pair for part in (upper_half(multiplier), shift)] for pair in pairs]
        constants = {"bias": view.constant("bias").T.reshape(-1), "scales": np.array(scales, np.int32)}
        return {**self._weights(view), **constants, "table": view.constant("table"), "lstm": LSTM16.of(fields)}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 7 instructions per product, 300 for the functions of a cell."""
        op = view.op
        return float(view.outputs[0].elements * (28 * (op.depth + op.units) + 300))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return lstm16(view)


class FloatLstm(_Lstm):
    """LSTM in float32."""

    name = "generic.float_lstm"
    ops: ClassVar[frozenset[str]] = frozenset({"float_lstm"})
    sources = ("float_lstm.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "" if view.inputs[0].dtype == "float32" else f"{view.inputs[0].dtype}; this kernel is for float32"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        bias = view.constant("bias").T.reshape(-1)
        return {
            **self._weights(view),
            "bias": bias,
            "lstm": FLOAT_LSTM.of({"units": view.op.units, "depth": view.op.depth}),
        }

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 4 instructions per product with an FPU, 120 without; 5 functions per cell."""
        op, product_cost = view.op, 4 if target.fpu else 120
        return float(view.outputs[0].elements * (4 * (op.depth + op.units) * product_cost + 100 * product_cost))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return float_lstm(view)


class Lstm(Lstm8):
    """LSTM on int8 in portable C."""

    name = "generic.lstm"
    estimate_error = 1.5
    sources = ("lstm.c",)
    function = "fl_lstm_s8"
    prices = (4.5, 900.0)


KERNELS: tuple[type[Kernel], ...] = (FloatLstm, Lstm, Lstm16)
