"""CONV_2D and FULLY_CONNECTED: int8 rows times weights, 2 rows x 4 columns or 4 x 1."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from stages.backends.cortex_m.kernels.mve.base import MveKernel, arithmetic
from stages.backends.cortex_m.kernels.mve.gemm_tir import gemm
from stages.backends.cortex_m.kernels.mve.rows import (
    BLOCK,
    BLOCK_FIELDS,
    CHUNK,
    GATHERED,
    block_cost,
    block_fields,
    column_cost,
    columns,
    columns_in_group,
    gather_cost,
    gathered_rows,
    gathers,
    groups_of,
    images,
    product_functions,
    slides,
    strip_cost,
    strip_rows,
    windows_fields,
)
from stages.backends.kernels.eight_bit import same_bytes, weight_zero_point, why_not_sums, why_not_types
from stages.backends.kernels.kernel import KernelParams, Lowering
from stages.backends.kernels.matrix import depth_of, has_windows, rows_of
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class GemmParams(KernelParams):
    """`rows` windows are gathered at a time (0: as many as fit 1 KB, at least a tile)."""

    rows: int = Field(default=0, ge=0, le=4096)


class _Gemm(MveKernel):
    sources: ClassVar[tuple[str, ...]] = ("strip.c", "windows.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h",)
    params = GemmParams

    def why_not_operator(self, view: LayerView) -> str:
        return why_not_types(view) or why_not_sums(depth_of(view), lambda: arithmetic(view))

    def sources_for(self, view: LayerView, params: Any, target: Target) -> tuple[str, ...]:
        return (*self.sources, *(f"{name}.S" for name in product_functions(view)))

    def headers_for(self, view: LayerView, params: Any, target: Target) -> tuple[str, ...]:
        return (*self.headers, *(f"{name}.h" for name in product_functions(view)))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        layer_constants, split, groups, in_group = (
            arithmetic(view),
            columns(view),
            groups_of(view),
            columns_in_group(view),
        )
        weights = layer_constants.weights.astype(np.int8)
        if slides(view):
            weights = weights.reshape(len(weights), *view.op.kernel, -1).transpose(0, 2, 1, 3).reshape(weights.shape)
        padded = np.pad(weights, ((0, 0), (0, -depth_of(view) % CHUNK)))
        padded = padded.reshape(groups, in_group, -1)
        by_group = layer_constants.params.astype(np.int32).reshape(3, groups, in_group).transpose(1, 0, 2)
        constants: dict[str, Any] = {"fields": BLOCK_FIELDS.of(block_fields(view))}
        if split.starts:
            blocks = np.stack([padded[:, first : first + BLOCK] for first in split.starts], 1)
            blocks = blocks.reshape(groups, len(split.starts), BLOCK, -1, CHUNK).transpose(0, 1, 3, 2, 4)
            constants["weights"] = np.ascontiguousarray(blocks)
            constants["params"] = np.stack([by_group[:, :, first : first + BLOCK] for first in split.starts], 1)
        if split.singles:
            constants["single_weights"] = np.ascontiguousarray(padded[:, in_group - split.singles :])
            params_of = by_group[:, :, in_group - split.singles :].transpose(0, 2, 1)
            constants["single_params"] = np.ascontiguousarray(params_of)
        if gathers(view):
            constants["windows"] = GATHERED.of(windows_fields(view))
        return constants

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        return gemm(view, rows_at_a_time(view, params))

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        return gemm_cost(view, rows_at_a_time(view, params))


class Conv2d(_Gemm):
    """Convolution: pointwise rows are read in place, windows gathered in about 1 KB of scratch."""

    name = "mve.gemm_s8"
    row_alignment = 1
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})


class Conv2dInPlace(Conv2d):
    """Pointwise convolution whose results may replace its input.

    About 1 KB of rows is copied to scratch at a time.
    """

    name = "mve.gemm_in_place_s8"
    sources = (*Conv2d.sources, "copies.S")
    headers: ClassVar[tuple[str, ...]] = (*Conv2d.headers, "copies.h")
    estimate_error = 1.0  # dearer than mve.gemm_s8, so only worth a count where the arena is largest

    def why_not_operator(self, view: LayerView) -> str:
        if has_windows(view) or gathers(view) or groups_of(view) > 1:
            return "only pointwise layers of one group are supported, with int8 weights and activations"
        if not same_bytes(view.inputs[0], view.outputs[0]):
            return "the output has more or fewer bytes than the input, so it cannot replace it"
        return super().why_not_operator(view)

    def overlays(self, view: LayerView) -> bool:
        return True

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        return gemm(view, self._rows(view, params), copies=True)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        tiles = -(-rows_of(view) // self._rows(view, params))
        return gemm_cost(view, self._rows(view, params)) + 20 * tiles + 3.0 * rows_of(view) * depth_of(view) / CHUNK

    def _rows(self, view: LayerView, params: GemmParams) -> int:
        return min(params.rows or gathered_rows(view), rows_of(view))


class FullyConnected(_Gemm):
    """Fully connected layer: rows of x times all units.

    A single row streams the weights, four units at once.
    """

    name = "mve.dot_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})


def rows_at_a_time(view: LayerView, params: GemmParams) -> int:
    """Return the rows of a product.

    All if nothing is copied; otherwise at most one pixel row where windows overlap.
    """
    rows = images(view)[1]
    if not gathers(view):
        return rows
    if slides(view):
        return min(params.rows or strip_rows(view), view.outputs[0].shape[2])
    return min(params.rows or gathered_rows(view), rows)


def gemm_cost(view: LayerView, tile: int) -> float:
    """Return the estimated instructions: products, copied rows, 70 per tile of `tile` rows."""
    split, groups, rows = columns(view), groups_of(view), rows_of(view)
    group = (block_cost(view, len(split.starts)) if split.starts else 0) + column_cost(view, split.singles)
    if gathers(view):
        group += strip_cost(view, tile) if slides(view) else gather_cost(view)
    if weight_zero_point(view):
        group += rows * (22 + 3 * -(-depth_of(view) // CHUNK))
    return float(groups * (group + 70 * -(-rows // tile)))
