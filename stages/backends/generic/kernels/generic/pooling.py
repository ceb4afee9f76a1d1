"""AVERAGE_POOL_2D and MAX_POOL_2D."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.parameters import POOL
from stages.backends.kernels.eight_bit import SUFFIX, not_eight_bit
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import taps
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.pooling import pool2d
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView


class Pool2d(Kernel):
    """Pooling, one image at a time. Input and output may each be NHWC or NCHW."""

    name = "generic.pool2d"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    sources = ("pool.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return not_eight_bit(view)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, x, y = view.op, view.inputs[0], view.outputs[0]
        channels = x.shape[3]
        fields = {
            "height": x.shape[1],
            "width": x.shape[2],
            "out_height": y.shape[1],
            "out_width": y.shape[2],
            "channels": channels,
            **taps(op),
            "low": op.act_min,
            "high": op.act_max,
        }
        for letter, tensor in (("x", x), ("y", y)):
            planar = tensor.layout == "NCHW"
            fields[f"{letter}_pixel"] = 1 if planar else channels
            fields[f"{letter}_channel"] = tensor.shape[1] * tensor.shape[2] if planar else 1
        return {"pool": POOL.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        function = f"fl_{view.op.op[:3]}_pool_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, function, Operand("pool", POOL.shape, "int32"), planes=True)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return 5 instructions per window element, 40 per output."""
        return view.outputs[0].elements * (5.0 * prod(view.op.kernel) + 40)


KERNELS: tuple[type[Kernel], ...] = (Pool2d,)
