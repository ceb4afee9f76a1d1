"""SOFTMAX along dense rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.strides import logical_strides

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Softmax(Kernel):
    """Softmax one row at a time; exponentials of four elements are gathered from a table."""

    name = "mve.softmax"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"softmax"})
    sources = ("softmax.c",)
    headers: ClassVar[tuple[str, ...]] = ("softmax.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        for tensor in (*view.inputs, *view.outputs):
            if tensor.shape[-1] > 1 and logical_strides(tensor)[-1] != 1:
                return f"the row elements of {tensor.name} are not neighbours in memory"
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return {"exp": view.constant("exp")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.softmax import softmax

        return softmax(view, f"mve_softmax_{SUFFIX[view.inputs[0].dtype]}")

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions: 4.2 per element, 120 per row."""
        elements = view.outputs[0].elements
        return 4.2 * elements + 120 * elements / view.outputs[0].shape[-1]
