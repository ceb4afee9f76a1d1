"""Softmax of ONNX Runtime, as loops of plain TIR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering

if TYPE_CHECKING:
    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class _Rows(Kernel):
    """Softmax by rows: the maximum, the sum of exponentials from a table, the quotients."""

    sources = ()

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return {"exp": view.constant("exp")}


class NearestSoftmax(_Rows):
    """ONNX Runtime's softmax in 64-bit integers."""

    name = "generic.nearest_softmax"
    ops: ClassVar[frozenset[str]] = frozenset({"nearest_softmax"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.shares_tir import nearest_softmax

        return nearest_softmax(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 35 instructions per element, 500 per row."""
        elements = view.outputs[0].elements
        return 35.0 * elements + 500 * elements / view.outputs[0].shape[-1]


class FloatSoftmax(_Rows):
    """ONNX Runtime's softmax in float32. Cores without an FPU compute it in software."""

    name = "generic.float_softmax"
    ops: ClassVar[frozenset[str]] = frozenset({"float_softmax"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.shares_tir import float_softmax

        return float_softmax(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 60 instructions per element with an FPU, 500 without."""
        return (60.0 if target.fpu else 500.0) * view.outputs[0].elements


KERNELS: tuple[type[Kernel], ...] = (NearestSoftmax, FloatSoftmax)
