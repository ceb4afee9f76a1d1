"""AVERAGE_POOL_2D and MAX_POOL_2D on NHWC images."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

from stages.backends.aarch64.kernels.neon import packing
from stages.backends.aarch64.kernels.neon.base import NeonKernel, output_constants
from stages.backends.kernels.eight_bit import SUFFIX
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Operand
from stages.backends.kernels.tir.pooling import pool2d
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

POOL_FIELDS = 11  # int32 fields of the C structure neon_pool, behind 64 bytes of vectors
POOL_BYTES = 64 + 4 * POOL_FIELDS
GROUP = 16  # channels at a time
MAX_WINDOW = 1 << 14  # elements of a window whose average is exact in float32


class Pool2d(NeonKernel):
    """Pooling of sixteen channels at a time; the last group may overlap the one before it."""

    name = "neon.pool2d"
    estimate_error = 4
    ops: ClassVar[frozenset[str]] = frozenset({"avg_pool2d", "max_pool2d"})
    sources = ("pool.c",)

    def why_not_operator(self, view: LayerView) -> str:
        channels, window = view.outputs[0].shape[3], prod(view.op.kernel)
        if channels < GROUP:
            return f"{channels} channels; this kernel needs at least {GROUP}"
        return f"a window of {window} elements; averages are exact up to {MAX_WINDOW}" if window > MAX_WINDOW else ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, (_, height, width, channels) = view.op, view.inputs[0].shape
        _, out_height, out_width, _ = view.outputs[0].shape
        window = (*op.kernel, *op.stride, *op.padding[:2])
        vectors = output_constants(view, zero_point=0)
        return {"pool": packing.structure(vectors, (height, width, out_height, out_width, channels, *window))}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        kind = "max_pool" if view.op.is_max else f"avg_pool_{SUFFIX[view.inputs[0].dtype]}"
        return pool2d(view, f"neon_{kind}", Operand("pool", (POOL_BYTES,), "int8"))

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions per 16 channels, from counts: 6 an element, 40 a pixel, 60 more."""
        batch, height, width, channels = view.outputs[0].shape
        groups = -(-channels // GROUP)
        return float(batch * height * width * (groups * (6 * prod(view.op.kernel) + 60) + 40))
