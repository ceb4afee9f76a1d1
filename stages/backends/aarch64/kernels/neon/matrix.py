"""Convolution and fully connected layers as matrix products (format.py)."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from stages.backends.aarch64.kernels.neon.base import NeonKernel, mode, output_constants
from stages.backends.aarch64.kernels.neon.format import (
    GATHERED,
    Format,
    depth,
    gemm_fields,
    images,
    native,
    windows_fields,
)
from stages.backends.kernels.eight_bit import too_deep, weight_zero_point, why_not_types
from stages.backends.kernels.kernel import KernelParams, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D

PANEL_BYTES = 16384  # of gathered rows, unless a recipe says how many: what stays in a first-level cache


class GemmParams(KernelParams):
    """`rows` windows are gathered at a time (0: as many as fit 16 KB)."""

    rows: int = Field(default=0, ge=0, le=4096)


class MatrixKernel(NeonKernel):
    """CONV_2D or FULLY_CONNECTED with operands in `format`."""

    format: ClassVar[Format]
    params = GemmParams

    def why_not_operator(self, view: LayerView) -> str:
        op = view.op
        if bad := why_not_types(view):
            return bad
        if isinstance(op, Conv2D) and op.groups != 1:
            return f"{op.groups} groups; this kernel supports one"
        return too_deep(depth_of(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        from stages.backends.aarch64.kernels.neon import packing

        weights = packing.flat_weights(view)
        constants = {
            "weights": packing.weights(weights, self.format, depth(view, self.format)),
            "params": packing.params(view, weights, weight_zero_point(view), self.format),
            "gemm": packing.structure(output_constants(view), gemm_fields(view, self.format, self.mode(view))),
        }
        if not native(view, self.format):
            constants["windows"] = GATHERED.of(windows_fields(view, self.format))
        return constants

    def mode(self, view: LayerView) -> int:
        """Return `mode` of neon_gemm."""
        return mode(view)

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.backends.aarch64.kernels.neon.matrix_tir import product_layer

        return product_layer(view, self.format, self.function(view), rows_at_a_time(view, self.format, params))

    def gathering(self, view: LayerView) -> float:
        """Return the instructions that gather rows, from counts: 0.3 per byte, 40 per row."""
        batch, rows = images(view, self.format)
        return 0 if native(view, self.format) else batch * rows * (0.3 * depth(view, self.format) + 40)

    @abstractmethod
    def function(self, view: LayerView) -> str:
        """Return the C function of the product."""


def rows_at_a_time(view: LayerView, layout: Format, params: GemmParams) -> int:
    """Return the rows of a product: all if nothing is copied."""
    rows = images(view, layout)[1]
    if native(view, layout) and not layout.interleave:
        return rows
    fitting = max(PANEL_BYTES // depth(view, layout) // 8 * 8, 8)
    return min(params.rows or fitting, rows)
