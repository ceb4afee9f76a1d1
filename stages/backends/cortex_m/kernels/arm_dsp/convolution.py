"""CONV_2D: panels of four pixels times all output channels."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from stages.backends.cortex_m.kernels.arm_dsp.base import arithmetic
from stages.backends.cortex_m.kernels.arm_dsp.panels import (
    FIELDS,
    GEOMETRY,
    fields,
    geometry,
    is_planar,
    layer_form,
    pixel_runs,
    step_elements,
)
from stages.backends.kernels.eight_bit import (
    INT8_OFFSET,
    same_bytes,
    weight_zero_point,
    why_not_sums,
    why_not_types,
)
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, run_elements
from stages.backends.kernels.windows import whole_windows
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class GemmParams(KernelParams):
    """`mr` pixels are multiplied with all output channels at a time."""

    mr: int = Field(default=4, ge=3, le=4)


class Conv2d(Kernel):
    """Convolution: pointwise layers on NHWC, NCHW or NHCW, other windows on NHWC.

    The output may have any of these layouts. A panel of four or three pixels, widened to int16, is multiplied with all
    channels in one call and needs no other scratch. A pointwise layer with equal input and output channels can work in
    place.
    """

    name = "arm_dsp.gemm_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("gemm.S", "panel.c", "panel.S")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "panel.h")
    params = GemmParams
    band_layouts: ClassVar[tuple[str, ...]] = ("NHCW",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view)
        return shape or why_not_sums(depth_of(view), lambda: arithmetic(view, long=True))

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: a panel holds everything they depend on."""
        return same_bytes(view.inputs[0], view.outputs[0]) and not has_windows(view)

    def candidates(self, view: LayerView, target: Target) -> Sequence[KernelParams]:
        """Four or three pixels; three save 5 % of the inner loop and cost more around it."""
        return GemmParams(mr=4), GemmParams(mr=3)

    def pack(self, view: LayerView, params: GemmParams) -> Mapping[str, Array]:
        from stages.backends.cortex_m.kernels.arm_dsp import packing

        layer_constants, steps = arithmetic(view, long=True), step_elements(view, params.mr)
        pairs = packing.channel_pairs(view.op.out_channels)
        how = packing.form(layer_constants, pairs)
        parts = [
            packing.bias_words(layer_constants.bias, pairs, how),
            packing.weight_words(layer_constants.weights, steps, pairs, how),
            packing.scale_words(layer_constants.scale.scale, pairs),
        ]
        constants = {"pairs": np.concatenate(parts, 1), "fields": FIELDS.of(fields(view, params.mr))}
        if has_windows(view):
            constants["geometry"] = GEOMETRY.of(geometry(view))
        return constants

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.backends.cortex_m.kernels.arm_dsp.convolution_tir import conv2d

        return conv2d(view, params.mr)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """Return the estimated instructions of tiles, remaining pixels and gathered windows."""
        mr = params.mr
        runs, pixels = pixel_runs(view)
        left = _tile_cost(view, params, pixels % mr) if pixels % mr else 0.0
        windows = _gathered(view, mr) if has_windows(view) else 0.0
        tiles = runs * (pixels // mr * _tile_cost(view, params, mr) + left)
        return view.outputs[0].shape[0] * (tiles + windows)


def _tile_cost(view: LayerView, params: GemmParams, rows: int) -> float:
    """Return the instructions for `rows` pixels: panel of a pointwise layer, channel pairs."""
    planar_in, planar_out = map(is_planar, (view.inputs[0], view.outputs[0]))
    steps, form = len(step_elements(view, params.mr)), layer_form(view)
    panel = 0.0 if has_windows(view) else 20.0 * steps if planar_in else rows * 2.0 * steps
    by_twos = rows == 3 and form == "ab"
    weights, activations, products = 2 if form == "ab" else 3, (rows + 1) // 2, 2 * rows
    loop = 0.1 if by_twos else 0.4
    step = loop + (8.5 if by_twos else weights + activations + products)
    around = 20 + 8 * rows + (5 if rows == 3 and planar_out else 0)
    if arithmetic(view, long=True).scale.long:
        around += 2 + 8 * rows
    return 60 + panel + -(-columns_of(view) // 2) * (steps * step + around)


def _gathered(view: LayerView, mr: int) -> float:
    """Return the estimated instructions of panel.c, most for windows that leave the image."""
    op, (_, height, width, _) = view.op, view.outputs[0].shape
    steps, run, is_row = len(step_elements(view, mr)), run_elements(view), op.dilation[1] == 1
    if INT8_OFFSET[view.inputs[0].dtype] or weight_zero_point(view):
        runs = op.kernel[0] * (1 if is_row else op.kernel[1])
        return float(height * width * (100 + runs * (57 + 28 * -(-run // 4))))
    by_bytes = is_row and view.inputs[0].shape[3] % 4 != 0
    edge = 150 + 60 * op.kernel[0] + (19 * op.kernel[0] * -(-run // 4) if by_bytes else 2.6 * steps)
    inside = is_row * len(whole_windows(view, 1))
    outside = width * (height - len(whole_windows(view, 0)))  # above or below
    return height * (inside * (35 + 1.8 * steps) + (width - inside) * edge) + 50 * outside


def _why_not_shape(view: LayerView) -> str:
    op, x = view.op, view.inputs[0]
    if op.groups != 1:
        return f"{op.groups} groups; this kernel supports one"
    if op.out_channels < 2:
        return "one output channel; this kernel computes pairs"
    if {x.layout, view.outputs[0].layout} == {"NCHW", "NHCW"}:
        return "an NCHW and an NHCW tensor"
    if is_planar(x) and has_windows(view):
        return f"windows of an {x.layout} input; this kernel gathers them from NHWC"
    return ""
