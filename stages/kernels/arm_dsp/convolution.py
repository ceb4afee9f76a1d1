"""CONV_2D: panels of four pixels times all output channels."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from stages.kernels.arm_dsp.base import arithmetic, clamp_fields
from stages.kernels.eight_bit import INT8_OFFSET, weight_rows, why_not_sums, why_not_types
from stages.kernels.kernel import Kernel, KernelParams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from stages.graph import LayerView
    from stages.kernels.arm_dsp.base import Arithmetic
    from stages.kernels.arm_dsp.packing import Packing
    from stages.kernels.kernel import Lowering
    from stages.targets.spec import Target

# The C structure arm_dsp_geometry of panel.h, field by field.
GEOMETRY = (
    *("height", "width", "channels", "kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x"),
    *("top", "left", "out_width", "fill"),
)
FIELDS = ("steps", "step", "zero_point", "floor", "low")  # of gemm.S


class GemmParams(KernelParams):
    """`mr` pixels are multiplied with all output channels at a time."""

    mr: int = Field(default=4, ge=3, le=4)


class Conv2d(Kernel):
    """Pointwise layers on NHWC rows or NCHW planes, any other window on NHWC images; the output may have either layout.

    Four pixels, or three, go into a panel, widened to int16, which is multiplied with all channels in one call: that is
    all the scratch there is. A pointwise layer with as many channels in as out can work in place.
    """

    name = "arm_dsp.gemm_s8"
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("gemm.S", "panel.c", "panel.S")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "panel.h")
    params = GemmParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        shape = why_not_types(view) or _why_not_shape(view)
        return shape or why_not_sums(matrix(view)[1], lambda: layer_arithmetic(view))

    def overlays(self, view: LayerView) -> bool:
        """A panel holds all that its pixels' results depend on, and these take the place of what was read."""
        x, y = view.inputs[0], view.outputs[0]
        same = x.physical_shape == y.physical_shape and (x.layout == "NCHW") == (y.layout == "NCHW")
        return same and not has_windows(view)

    def candidates(self, view: LayerView, target: Target) -> Sequence[KernelParams]:
        """Three pixels save a twentieth of the inner loop and cost more around it."""
        return GemmParams(mr=4), GemmParams(mr=3)

    def pack(self, view: LayerView, params: GemmParams) -> Mapping[str, np.ndarray]:
        import numpy as np

        from stages.kernels.arm_dsp import packing

        made, steps = layer_arithmetic(view), step_elements(view, params.mr)
        pairs = packing.channel_pairs(view.op.out_channels)
        how = packing.form(made, pairs)
        parts = [
            packing.bias_words(made.bias, pairs, how),
            packing.weight_words(made.weights, steps, pairs, how),
            packing.scale_words(made.scale.scale, pairs),
        ]
        constants = {"pairs": np.concatenate(parts, 1), "fields": np.array(fields(view, params.mr), np.int32)}
        if has_windows(view):
            values = geometry(view)
            constants["geometry"] = np.array([values[name] for name in GEOMETRY], np.int32)
        return constants

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.kernels.arm_dsp.convolution_tir import conv2d

        return conv2d(view, params.mr)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        """Of whole tiles and of the pixels left over.

        Within 2 % of what was measured for pointwise layers on planes, 15 % for small windows.
        """
        out, mr = view.outputs[0], params.mr
        pixels = out.shape[1] * out.shape[2]
        left = _tile_cost(view, params, pixels % mr) if pixels % mr else 0.0
        return out.shape[0] * (pixels // mr * _tile_cost(view, params, mr) + left)


def _tile_cost(view: LayerView, params: GemmParams, rows: int) -> float:
    """Instructions for `rows` pixels: the panel, then all pairs of channels."""
    planar_in, planar_out = (tensor.layout == "NCHW" for tensor in (view.inputs[0], view.outputs[0]))
    steps, form = len(step_elements(view, params.mr)), layer_form(view)
    row = 3.0 * steps + 40 if has_windows(view) else 2.6 * steps
    panel = 20.0 * steps if planar_in else rows * row
    by_twos = rows == 3 and form == "ab"
    weights, activations, products = 2 if form == "ab" else 3, (rows + 1) // 2, 2 * rows
    loop = 0.1 if by_twos else 0.4
    step = loop + (8.5 if by_twos else weights + activations + products)
    around = 24 + 9 * rows + (5 if rows == 3 and planar_out else 0)
    if layer_arithmetic(view).scale.long:
        around += 2 + 8 * rows
    return 70 + panel + -(-matrix(view)[2] // 2) * (steps * step + around)


def _why_not_shape(view: LayerView) -> str:
    op, x = view.op, view.inputs[0]
    if op.groups != 1:
        return f"{op.groups} groups; this kernel has one"
    if op.out_channels < 2:
        return "one output channel; this kernel computes pairs"
    if op.rounding != "double":
        return "rounds once"
    if x.layout == "NCHW" and has_windows(view):
        return "windows of an NCHW input; panels are gathered from NHWC"
    return ""


def layer_arithmetic(view: LayerView) -> Arithmetic:
    """The layer's constants with weights as [channels, (ky, kx, input channel)]."""
    import numpy as np

    return arithmetic(view, weight_rows(view, view.constant("weights").astype(np.int64)), long=True)


def layer_form(view: LayerView) -> Packing:
    """How the layer's weights are packed."""
    from stages.kernels.arm_dsp import packing

    return packing.form(layer_arithmetic(view), packing.channel_pairs(view.op.out_channels))


def matrix(view: LayerView) -> tuple[int, int, int]:
    """Rows (output pixels), depth (elements of a window) and columns (output channels) of the product."""
    op, out = view.op, view.outputs[0]
    return out.elements // op.out_channels, int(prod(op.kernel)) * op.in_channels, op.out_channels


def has_windows(view: LayerView) -> bool:
    """Whether rows must be gathered: the layer is no plain product of matrices."""
    op = view.op
    return bool((op.kernel, op.stride, op.padding) != ((1, 1), (1, 1), (0, 0, 0, 0)))


def step_elements(view: LayerView, mr: int) -> NDArray[np.int64]:
    """[steps, 2]: the elements of the depth in each step of a panel, -1 for none.

    Their number is even where gemm.S takes steps by twos: in the form ab, for panels of three pixels.
    """
    import numpy as np

    from stages.kernels.arm_dsp import packing

    op, out = view.op, view.outputs[0]
    if view.inputs[0].layout == "NCHW":
        steps = packing.plane_steps(op.in_channels)
    else:
        steps = packing.depth_steps(matrix(view)[1], run_elements(view))
    threes = 3 in (mr, out.shape[1] * out.shape[2] % mr)
    odd = len(steps) % 2 and threes and layer_form(view) == "ab"
    return np.concatenate([steps, np.full((1, 2), -1)]) if odd else steps


def run_elements(view: LayerView) -> int:
    """Elements of a panel's row that are neighbours in the image: a row of the window, or one tap of a dilated one."""
    op = view.op
    return int(op.in_channels * (op.kernel[1] if op.dilation[1] == 1 else 1))


def geometry(view: LayerView) -> dict[str, int]:
    """The fields of arm_dsp_geometry."""
    op, x, out = view.op, view.inputs[0], view.outputs[0]
    values = (
        *x.shape[1:],
        *op.kernel,
        *op.stride,
        *op.dilation,
        op.padding[0],
        op.padding[1],
        out.shape[2],
        op.input_zero_point,
    )
    return dict(zip(GEOMETRY, values, strict=True))


def fields(view: LayerView, mr: int) -> tuple[int, ...]:
    """The fields of gemm.S."""
    op, out = view.op, view.outputs[0]
    step = out.shape[1] * out.shape[2] if out.layout == "NCHW" else op.out_channels
    return (len(step_elements(view, mr)), step, *clamp_fields(view))


def flip(view: LayerView) -> int:
    """What makes an activation int8."""
    return INT8_OFFSET[view.inputs[0].dtype]
