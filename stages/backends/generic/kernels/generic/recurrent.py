"""RNN and GRU in float32."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import FLOAT_GRU, FLOAT_RNN
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

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
        from stages.backends.generic.kernels.generic.recurrent_tir import float_rnn

        return float_rnn(view)


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
        from stages.backends.generic.kernels.generic.recurrent_tir import float_gru

        return float_gru(view)


KERNELS: tuple[type[Kernel], ...] = (FloatGru, FloatRnn)
