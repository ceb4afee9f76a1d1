"""RESIZE_BILINEAR."""

from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops8
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class ResizeBilinear(Loops8):
    """RESIZE_BILINEAR one pixel at a time: its four weights, then its channels."""

    name = "generic.resize_bilinear"
    row_alignment = 1
    estimate_error = 4
    ops: ClassVar[frozenset[str]] = frozenset({"resize_bilinear"})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.interpolation_tir import resize_bilinear

        return resize_bilinear(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return per element 18 instructions (int8), 16 (uint8, FPU) or 700 (uint8, no FPU)."""
        element_cost = 18.0 if view.inputs[0].dtype == "int8" else 16.0 if target.fpu else 700.0
        return element_cost * view.outputs[0].elements


class EvenResize(ResizeBilinear):
    """RESIZE_BILINEAR on int8 that rounds halves to even."""

    name = "generic.even_resize_bilinear"
    row_alignment = 1
    ops: ClassVar[frozenset[str]] = frozenset({"even_resize_bilinear"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        dtype = view.inputs[0].dtype
        return "" if dtype == "int8" else f"{dtype}; this kernel is for int8"


KERNELS: tuple[type[Kernel], ...] = (ResizeBilinear, EvenResize)
