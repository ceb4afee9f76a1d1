"""Element-wise functions and sums of int16 activations, as loops of plain TIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Functions16(Kernel):
    """Interpolated tables, LEAKY_RELU, and sums with power-of-two scales."""

    name = "generic.functions16"
    ops: ClassVar[frozenset[str]] = frozenset({"lines", "leaky", "power_of_two_add", "power_of_two_sub"})
    sources = ()
    bits = 16

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return {"table": view.constant("table")} if view.has("table") else {}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 25 instructions per element, 40 for a sum."""
        return (40.0 if len(view.inputs) > 1 else 25.0) * view.outputs[0].elements

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.functions16_tir import functions16

        return functions16(view)


KERNELS: tuple[type[Kernel], ...] = (Functions16,)
