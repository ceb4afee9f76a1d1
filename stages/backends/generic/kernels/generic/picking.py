"""Elements picked by tables along the axes, and rows by the indices of a tensor: any type of element."""

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
    """Each element of the output by the sum of its axes' tables, which have places in memory."""

    name = "generic.pick"
    ops: ClassVar[frozenset[str]] = frozenset({"pick"})
    sources = ()

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        """What the numbers of a table are in elements of the input's memory."""
        import numpy as np

        strides = logical_strides(view.inputs[0])
        tables = {f"from{i}": strides[axis] for i, axis in enumerate(view.op.axes)}
        return {key: (view.constant(key) * stride).astype(np.int32) for key, stride in tables.items()}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.picking_tir import pick

        return pick(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Eight instructions for an element."""
        return 8.0 * view.outputs[0].elements


class Gather(Kernel):
    """Rows of a tensor that lies in logical order."""

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
        """Five instructions for an element, twenty for an index."""
        op = view.op
        return 5.0 * view.outputs[0].elements + 20.0 * op.batch * op.outer * op.rows * len(op.sizes)


KERNELS: tuple[type[Kernel], ...] = (Gather, Pick)
