"""Square roots of int16 activations, as loops of plain TIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Root16(Kernel):
    """SQRT in float32. The C library or the core rounds the root correctly."""

    name = "generic.root16"
    ops: ClassVar[frozenset[str]] = frozenset({"wide_sqrt"})
    sources = ()
    bits = 16
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 25 instructions per element with an FPU, 700 without."""
        return (25.0 if target.fpu else 700.0) * view.outputs[0].elements

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.root16_tir import wide_sqrt

        return wide_sqrt(view)


KERNELS: tuple[type[Kernel], ...] = (Root16,)
