"""CONV_2D and FULLY_CONNECTED as matrix products with RVV."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from stages.backends.kernels.eight_bit import INT8_OFFSET, too_deep, weight_zero_point, why_not_types
from stages.backends.kernels.kernel import Kernel, KernelParams
from stages.backends.kernels.matrix import columns_of, depth_of
from stages.backends.riscv.kernels.rvv.gemm_sizes import (
    FIELDS,
    GATHERED,
    has_dot,
    images,
    reads_in_place,
    row_of,
    rows_at_a_time,
    width_of,
    windows_fields,
)
from stages.backends.riscv.kernels.rvv.gemm_steps import Variant
from stages.ir.operators.products import Conv2D

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from stages.backends.kernels.kernel import Lowering
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView

Registers = Literal[0, 1, 2, 4, 8]

_HEIGHTS: dict[Registers, int] = {8: 3, 4: 7, 2: 7, 1: 7}  # rows that registers hold, by registers of an accumulator
_HEIGHTS_OF_ANY: dict[Registers, int] = {8: 2, 4: 6, 2: 7, 1: 7}  # with two groups of constants at a time


class GemmParams(KernelParams):
    """`height` rows share a load of weights; an accumulator has `lmul` registers. 0: the best known."""

    height: int = Field(default=0, ge=0, le=7)
    lmul: Registers = 0


class Gemm(Kernel):
    """Convolution and fully connected layers; lanes are output channels.

    Pointwise int8 layers are read in place. Windows are gathered into rows first.
    """

    name = "rvv.gemm"
    row_alignment = 1
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    params = GemmParams
    layouts = ("NHWC",)
    sources = ("windows.c",)
    headers: ClassVar[tuple[str, ...]] = ("windows.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if bad := why_not_types(view) or too_deep(depth_of(view)):
            return bad
        if isinstance(op, Conv2D) and op.groups != 1:
            return f"{op.groups} groups; this kernel supports one"
        return "" if rounding_of(view) else "a multiplier of 1/4 or more that rounds once"

    def candidates(self, view: LayerView, target: Target) -> tuple[GemmParams, ...]:
        """Accumulators of 8, 4, 2 and 1 registers; heights that divide the rows best."""
        columns, rows = columns_of(view), images(view, target)[1]
        candidates: list[GemmParams] = []
        for lmul, most in _heights(view).items():
            if lmul > 1 and columns <= width_of(lmul // 2, target):
                continue
            even = -(-rows // -(-rows // most))
            candidates += [GemmParams(height=height, lmul=lmul) for height in {min(most, rows), even}]
        return tuple(sorted(candidates, key=lambda params: self.cost(view, params, target)))

    def pack_for(self, view: LayerView, params: GemmParams, target: Target) -> Mapping[str, np.ndarray]:
        from stages.backends.riscv.kernels.rvv import packing

        variant, depth = self.variant(view, params, target), row_of(view, target)
        op, width = view.op, width_of(variant.lmul, target)
        offset = INT8_OFFSET[view.outputs[0].dtype]
        constants = {
            "weights": packing.weights(view, depth, width, variant.step),
            "channels": packing.channels(view, width, variant.rounding),
            "gemm": FIELDS.of(
                {
                    "x_row": depth,
                    "y_row": columns_of(view),
                    "depth": depth,
                    "columns": columns_of(view),
                    "zero_point": op.output_zero_point - offset,
                    "low": op.act_min - offset,
                    "high": op.act_max - offset,
                    "weight_zero_point": weight_zero_point(view),
                }
            ),
        }
        if not reads_in_place(view, target):
            constants["windows"] = GATHERED.of(windows_fields(view, target))
        return constants

    def sources_for(self, view: LayerView, params: GemmParams, target: Target) -> tuple[str, ...]:
        own = () if reads_in_place(view, target) else self.sources
        return (*own, f"{self.variant(view, params, target).name}.S")

    def headers_for(self, view: LayerView, params: GemmParams, target: Target) -> tuple[str, ...]:
        return (*self.headers, f"{self.variant(view, params, target).name}.h")

    def _whole(self, view: LayerView, params: GemmParams, target: Target) -> GemmParams:
        """Return `params` with nothing left open, and at most as many rows as the layer and the registers have."""
        if not params.lmul:
            return self.candidates(view, target)[0]
        most = min(_heights(view)[params.lmul], images(view, target)[1])
        return GemmParams(height=min(params.height or most, most), lmul=params.lmul)

    def variant(self, view: LayerView, params: GemmParams, target: Target) -> Variant:
        """Return the program that computes the layer."""
        params = self._whole(view, params, target)
        op, offset = view.op, INT8_OFFSET[view.outputs[0].dtype]
        zero_point = weight_zero_point(view)
        clamped = (op.act_min - offset, op.act_max - offset) != (-128, 127)
        is_dot = has_dot(view, target)
        return Variant(params.height, params.lmul, is_dot, rounding_of(view), zero_point != 0, clamped, bool(offset))

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvv.gemm_tir import product_layer

        variant = self.variant(view, params, target)
        return product_layer(view, variant, target, rows_at_a_time(view, variant.height, target))

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """Return the instructions of tiles and of gathered windows, estimated from the program's lines."""
        params = self._whole(view, params, target)
        height, lmul = params.height, params.lmul
        batch, rows = images(view, target)
        row, is_dot = row_of(view, target), has_dot(view, target)
        step = 2 if is_dot else 3 + (weight_zero_point(view) != 0)
        depth = row / (4 if is_dot else 1) * (step + 2 * height + (height + 1) / 4)
        blocks, tiles = -(-columns_of(view) // width_of(lmul, target)), -(-rows // height)
        gathering = 0.0
        if not reads_in_place(view, target):
            gathering = 25 + depth_of(view) / 16 + (10 * view.op.kernel[0] if isinstance(view.op, Conv2D) else 10)
        return float(batch * (blocks * (15 + tiles * (depth + 35 + 12 * height)) + rows * gathering + 100))


def _heights(view: LayerView) -> dict[Registers, int]:
    return _HEIGHTS_OF_ANY if rounding_of(view) == "any" else _HEIGHTS


def rounding_of(view: LayerView) -> str:
    """Return the rounding of `Variant`, '' if no program has it."""
    shift = view.constant("shift")[view.constant("multiplier") != 0]
    most = int(shift.max()) if shift.size else -2
    if view.op.rounding == "single":
        return "once" if most <= -2 else ""
    if most <= 0 and view.op.act_min >= view.op.output_zero_point:
        return "relu"
    return "signed" if most <= -1 else "any"
