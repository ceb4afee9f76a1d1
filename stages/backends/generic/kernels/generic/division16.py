"""Division of int16 activations as loops of plain TIR."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.sixteen_bit import why_not_sixteen
from stages.backends.kernels.tir.strides import Axis, broadcast_strides, logical_strides, walk

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Division16(Kernel):
    """DIV with broadcasting by reciprocals from Newton steps. Neighbours with the same divisor share a reciprocal."""

    name = "generic.division16"
    ops: ClassVar[frozenset[str]] = frozenset({"wide_div"})
    sources = ()
    bits = 16
    in_place = True

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_sixteen(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 95 instructions per element, 160 per reciprocal; on 64 bits 60 and 80."""
        element_cost, inverse = (95.0, 160.0) if target.word_bits == 32 else (60.0, 80.0)
        axes, divided = _loops(view)
        return element_cost * view.outputs[0].elements + inverse * prod(axis.extent for axis in axes[:divided])

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.division16_tir import wide_div

        return wide_div(view, *_loops(view))


def _loops(view: LayerView) -> tuple[list[Axis], int]:
    """Return the loops over output, dividends and divisors.

    The second value is the number of outer loops that select a divisor.
    """
    out = view.outputs[0]
    axes = walk(out.shape, logical_strides(out), *(broadcast_strides(x, out.shape) for x in view.inputs))
    return axes, max((depth for depth, axis in enumerate(axes, 1) if axis.strides[2]), default=0)


KERNELS: tuple[type[Kernel], ...] = (Division16,)
