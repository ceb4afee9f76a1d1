"""SVDF on integers and in float32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import FLOAT_SVDF, SVDF, epilogue
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.svdf import float_svdf, narrow_svdf, svdf
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.support.lazy import np


class _Svdf(Kernel):
    """SVDF, one row of the batch at a time, with its section of the state."""

    def _sizes(self, view: LayerView) -> dict[str, int]:
        op = view.op
        return {"units": view.outputs[0].shape[1], "rank": op.rank, "depth": op.depth, "memory": op.memory}

    def _arrays(self, view: LayerView, bias: type[np.generic]) -> dict[str, np.ndarray]:
        bias_values = view.constant("bias") if view.has("bias") else np.zeros(view.outputs[0].shape[1], bias)
        return {"feature": view.constant("feature"), "time": view.constant("time"), "bias": bias_values}


class Svdf(_Svdf):
    """SVDF with int8 data and an int16 state."""

    name = "generic.svdf"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"svdf"})
    sources = ("svdf.c",)
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "" if view.inputs[0].dtype == "int8" else f"{view.inputs[0].dtype}; this kernel is for int8"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        op = view.op
        fields = {
            "input_zero_point": op.input_zero_point,
            "feature_multiplier": op.feature_multiplier,
            "feature_shift": op.feature_shift,
            "multiplier": op.multiplier,
            "shift": op.shift,
        }
        structure = SVDF.of(self._sizes(view) | fields | epilogue(op, op.rounding))
        return {**self._arrays(view, np.int32), "svdf": structure}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions: 6 per product, 4 per step of the memory, 30 per feature and unit."""
        op, out = view.op, view.outputs[0].elements
        return float(out * (op.rank * (6 * op.depth + 10 * op.memory + 30) + 30))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return svdf(view, "fl_svdf_s8", SVDF.shape)


class NarrowSvdf(_Svdf):
    """SVDF with int8 data and an int8 state, as loops of plain TIR."""

    name = "generic.narrow_svdf"
    ops: ClassVar[frozenset[str]] = frozenset({"narrow_svdf"})
    sources = ()
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return self._arrays(view, np.int32)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions: 7 per product, 6 per memory step, 40 per feature, 30 per unit."""
        op, out = view.op, view.outputs[0].elements
        return float(out * (op.rank * (7 * op.depth + 13 * op.memory + 40) + 30))

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return narrow_svdf(view)


class FloatSvdf(_Svdf):
    """SVDF in float32."""

    name = "generic.float_svdf"
    ops: ClassVar[frozenset[str]] = frozenset({"float_svdf"})
    sources = ("float_svdf.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "" if view.inputs[0].dtype == "float32" else f"{view.inputs[0].dtype}; this kernel is for float32"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return {**self._arrays(view, np.float32), "svdf": FLOAT_SVDF.of(self._sizes(view))}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 8 instructions per product with an FPU, 120 without."""
        op, product_cost = view.op, 8 if target.fpu else 120
        return float(view.outputs[0].elements * op.rank * (op.depth + op.memory) * product_cost)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return float_svdf(view, "fl_svdf_f32", FLOAT_SVDF.shape)


KERNELS: tuple[type[Kernel], ...] = (FloatSvdf, NarrowSvdf, Svdf)
