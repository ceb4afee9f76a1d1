"""Base classes of kernels that are loops of plain TIR, without C functions."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import not_eight_bit
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView


class Loops(Kernel):
    """Loops that read constants unpacked, with instructions per output element and row."""

    sources = ()
    element: ClassVar[float]
    row: ClassVar[float] = 0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {role: view.constant(role) for role in view.layer.constants}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        y = view.outputs[0]
        return self.element * y.elements + (self.row * y.elements / y.shape[-1] if self.row else 0)


class Loops8(Loops):
    """Loops over tensors of one 8-bit type."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)


class Loops16(Loops):
    """Loops over int16 tensors."""

    bits = 16

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view)
