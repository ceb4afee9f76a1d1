"""FULLY_CONNECTED by requantization breakpoints, for scales without a 32-bit multiplier."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import STEPPED
from stages.backends.kernels.eight_bit import (
    centred_weights,
    too_deep,
    weight_rows,
    why_not_types,
    why_not_weights_order,
)
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class SteppedFullyConnected(Kernel):
    """A row at a time. Eight comparisons find each sum's result among 256."""

    name = "generic.stepped_fully_connected"
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("stepped.c",)
    roundings: ClassVar[frozenset[str]] = frozenset({"steps"})

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_weights_order(view) or why_not_types(view) or too_deep(view.op.depth)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        from stages.backends.generic.kernels.generic.packing import signed_weights

        op = view.op
        weights, weight_zero_point = signed_weights(view)
        bias = view.constant("bias").reshape(-1) if view.has("bias") else 0
        folded = bias - op.input_zero_point * centred_weights(view).sum(axis=1, dtype=np.int64)  # modulo 2^32
        fields = {"units": op.units, "depth": op.depth, "weight_zero_point": weight_zero_point}
        return {
            "weights": weight_rows(view, weights),
            "units": np.stack([folded.astype(np.int32), view.constant("step_rows")], axis=1),
            "steps": view.constant("steps"),
            "stepped": STEPPED.of(fields | {"zero_point": op.output_zero_point}),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.generic.kernels.generic.stepped_tir import stepped

        return stepped(view)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per product, 70 per output."""
        return float(view.op.batch * view.op.units * (5 * view.op.depth + 70))


KERNELS: tuple[type[Kernel], ...] = (SteppedFullyConnected,)
