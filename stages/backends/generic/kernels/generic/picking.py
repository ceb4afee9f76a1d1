"""Gather elements by tables along the axes, and rows by an index tensor. Any element type."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.loops import Loops
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.strides import logical_strides
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class Pick(Loops):
    """Gather output elements. The table entries of all axes add up to the memory offset."""

    name = "generic.pick"
    ops: ClassVar[frozenset[str]] = frozenset({"pick"})
    element = 8.0

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        """Return each table entry as elements of the input's memory."""
        strides = logical_strides(view.inputs[0])
        tables = {f"from{i}": strides[axis] for i, axis in enumerate(view.op.axes)}
        return {key: (view.constant(key) * stride).astype(np.int32) for key, stride in tables.items()}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.picking_tir import pick

        return pick(view)


class Gather(Loops):
    """Gather rows of a tensor in logical order."""

    name = "generic.gather"
    ops: ClassVar[frozenset[str]] = frozenset({"gather_rows"})
    layouts = ("NHWC",)

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.picking_tir import gather

        return gather(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per element, 20 per index."""
        op = view.op
        return 5.0 * view.outputs[0].elements + 20.0 * op.batch * op.outer * op.rows * len(op.sizes)


KERNELS: tuple[type[Kernel], ...] = (Gather, Pick)
