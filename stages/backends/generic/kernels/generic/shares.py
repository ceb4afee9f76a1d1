"""Softmax of ONNX Runtime by rows: maximum, sum of exponentials (a table), quotients."""

from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops8
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class NearestSoftmax(Loops8):
    """ONNX Runtime's softmax in 64-bit integers."""

    name = "generic.nearest_softmax"
    ops: ClassVar[frozenset[str]] = frozenset({"nearest_softmax"})
    element = 35.0
    row = 500

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.shares_tir import nearest_softmax

        return nearest_softmax(view)


class FloatSoftmax(Loops8):
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
