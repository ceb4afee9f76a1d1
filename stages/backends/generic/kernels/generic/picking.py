"""Gather elements by tables along the axes, and rows by an index tensor. Any element type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.strides import logical_strides

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView


class Pick(Kernel):
    """Gather output elements. The table entries of all axes add up to the memory offset."""

    name = "generic.pick"
    ops: ClassVar[frozenset[str]] = frozenset({"pick"})
    sources = ()

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        """Return each table entry as elements of the input's memory."""
        import numpy as np

        strides = logical_strides(view.inputs[0])
        tables = {f"from{i}": strides[axis] for i, axis in enumerate(view.op.axes)}
        return {key: (view.constant(key) * stride).astype(np.int32) for key, stride in tables.items()}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.picking_tir import pick

        return pick(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 8 instructions per element."""
        return 8.0 * view.outputs[0].elements


class Gather(Kernel):
    """Gather rows of a tensor in logical order."""

    name = "generic.gather"
    ops: ClassVar[frozenset[str]] = frozenset({"gather_rows"})
    sources = ()
    layouts = ("NHWC",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.picking_tir import gather

        return gather(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per element, 20 per index."""
        op = view.op
        return 5.0 * view.outputs[0].elements + 20.0 * op.batch * op.outer * op.rows * len(op.sizes)


KERNELS: tuple[type[Kernel], ...] = (Gather, Pick)
