"""Copies from and to a tensor of state, of any type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.copies import RUN_BYTES
from stages.backends.kernels.kernel import Kernel, Lowering

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Variable(Kernel):
    """Copy by one memcpy. State has the layout of the file."""

    name = "generic.variable"
    ops: ClassVar[frozenset[str]] = frozenset({"read_variable", "assign_variable"})
    sources = ("copy.c",)
    headers: ClassVar[tuple[str, ...]] = ("copy.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        x, y = view.inputs[0], view.outputs[0]
        return "" if x.lies_as(y.layout) else f"input in {x.layout}, output in {y.layout}"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 20 instructions per call and 0.5 per byte, or 5 per element for few elements."""
        y = view.outputs[0]
        return 20 + 0.5 * y.bytes if y.bytes >= RUN_BYTES else 5.0 * y.elements

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.movement_tir import whole

        return whole(view)


KERNELS: tuple[type[Kernel], ...] = (Variable,)
