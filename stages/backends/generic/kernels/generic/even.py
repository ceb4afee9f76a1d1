"""ADD, SUB and MUL with halves to the even number, as loops of plain TIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class EvenPairs(Kernel):
    """ADD, SUB and MUL with broadcasting."""

    name = "generic.even"
    row_alignment = 1
    ops: ClassVar[frozenset[str]] = frozenset({"even_add", "even_sub", "even_mul"})
    sources = ()
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 20 instructions per element."""
        return 20.0 * view.outputs[0].elements

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.even_tir import even

        return even(view)


KERNELS: tuple[type[Kernel], ...] = (EvenPairs,)
