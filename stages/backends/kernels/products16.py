"""Layers of int16 activations with int8 weights as sums of products, for all families.

Each family has C for its sums, `p16_products` of include/products16_image.h. The header describes the rest.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import columns_of, pixels_of, rows_of, run_elements, windows_of
from stages.backends.kernels.plan16 import FIELDS, Tile, direct_rows, plan
from stages.backends.kernels.sixteen_bit import not_sixteen_by_eight
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D
from stages.support.lazy import np


class Products16(Kernel):
    """CONV_2D of one group and FULLY_CONNECTED on NHWC images, one image at a time.

    `function` is the C function of the family. `prices` are instructions per product, per output, and per window
    element that is gathered for `tile.rows` pixels.
    """

    bits = 16
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    roundings: ClassVar[frozenset[str]] = frozenset({"wide", "real"})
    function: ClassVar[str]
    prices: ClassVar[tuple[float, float, float]]

    @abstractmethod
    def tile(self, target: Target) -> Tile:
        """The pixels and outputs that the target's registers hold."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if bad := not_sixteen_by_eight(view):
            return bad
        if op.input_zero_point or op.output_zero_point:
            return "zero points; this kernel is for zero points of 0"
        if getattr(op, "groups", 1) != 1:
            return f"{op.groups} groups; this kernel has one"
        try:
            plan(view, self.tile(target))
        except ValueError as error:
            return str(error)
        return ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        op, tile = view.op, self.tile(target)
        row_plan = plan(view, tile)
        alternating = row_plan.weights.reshape(-1, tile.pair, row_plan.depth).transpose(0, 2, 1)
        fields = {
            **(windows_of(view) if isinstance(op, Conv2D) else pixels_of(op.batch, op.depth)),
            "pixels": rows_of(view) // view.outputs[0].shape[0] if isinstance(op, Conv2D) else op.batch,
            "out_channels": columns_of(view),
            "run": run_elements(view),
            "pitch": row_plan.pitch,
            "depth": row_plan.depth,
            "chunk": row_plan.chunk,
            "direct": direct_rows(view, tile, row_plan.depth),
            "mode": row_plan.mode,
            "low": op.act_min,
            "high": op.act_max,
        }
        return {
            "weights": np.ascontiguousarray(alternating).reshape(-1),
            "channels": np.concatenate([row_plan.bias.view(np.int32).reshape(-1, 2), row_plan.scale], axis=1),
            "fields": FIELDS.of(fields),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from stages.backends.kernels.tir.products16 import products16

        tile = self.tile(target)
        return products16(view, tile, plan(view, tile), self.function)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        tile, row_plan = self.tile(target), plan(view, self.tile(target))
        pixels, (product, output, gathered) = rows_of(view), self.prices
        alone = pixels % tile.rows
        rows_at_once = pixels - alone + alone * tile.rows / 2  # a row alone takes half of a tile
        total = (product * row_plan.depth + output) * row_plan.weights.shape[0] * rows_at_once
        if direct_rows(view, tile, row_plan.depth) < tile.rows:
            total += gathered * row_plan.depth * pixels
        return 100.0 + total
