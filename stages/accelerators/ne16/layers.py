"""Layers as jobs of NE16: which convolution a layer is to the engine, and what it sums.

    3x3, 3x3 depthwise          as they are; stride 2 goes in blocks of 2x2 outputs
    1x1, fully connected        as they are, with any stride: pixels in between are stepped over
    few channels, other windows  1x1 over windows that transfers lay side by side

The engine multiplies activations as they are stored. What their zero point adds is the same for all pixels, since
padding has that value too, and goes into the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stages.accelerators.ne16.job import Job, Mode, Padding
from stages.accelerators.tiles import extent, reads
from stages.kernels.eight_bit import MAX_DEPTH, accumulator_range, centred_weights, sums, weight_rows

if TYPE_CHECKING:
    from stages.accelerators.tiles import Part, Span, Tile
    from stages.graph import LayerView

Array = npt.NDArray[Any]
_LARGEST = 1 << 31
_FEW = 32  # numbers of a window that are multiplied as one pixel's


@dataclass(frozen=True)
class Geometry:
    """A layer to the engine: `window` and `stride` are the layer's own, `step` is that of the job."""

    mode: Mode
    gathers: bool
    window: tuple[int, int]
    stride: tuple[int, int]
    depth: int

    @property
    def step(self) -> int:
        """The stride of the engine."""
        return self.stride[0] if self.mode != "conv1x1" else 1


def why_not(view: LayerView) -> str:
    """Why the engine cannot compute the layer's sums, '' if it can."""
    op = view.op
    if not view.has("weights"):
        return "the weights are not constant"
    if view.constant("weights").dtype not in ("int8", "uint8"):
        return f"weights are {view.constant('weights').dtype}"
    if op.rounding not in ("double", "single"):
        return f"NE16 does not round as {op.rounding}"
    if op.op != "fully_connected":
        if op.dilation != (1, 1):
            return f"a dilation of {op.dilation[0]}x{op.dilation[1]}"
        if getattr(op, "groups", 1) != 1 or getattr(op, "depth_multiplier", 1) != 1:
            return "groups of channels"
        if view.inputs[0].shape[0] != 1:
            return f"a batch of {view.inputs[0].shape[0]}"
        if op.op == "depthwise_conv2d" and (op.kernel != (3, 3) or op.stride not in ((1, 1), (2, 2))):
            return f"depthwise windows of {op.kernel[0]}x{op.kernel[1]}, stride {op.stride[0]}x{op.stride[1]}"
    return _why_not_sums(view)


def _why_not_sums(view: LayerView) -> str:
    weights = centred_weights(view).astype(np.int64)
    if weights.shape[1] > MAX_DEPTH:
        return f"a sum has {weights.shape[1]} products"
    limits = np.iinfo(view.inputs[0].dtype)
    nothing = np.zeros(len(weights), np.int64)
    raw = accumulator_range(weights, nothing, int(limits.min), int(limits.max)).size
    bias = np.abs(sums(view, 0).bias)
    return "sums do not fit 32 bits" if max(raw.max(), bias.max(), (raw + bias).max()) >= _LARGEST else ""


def geometry(view: LayerView) -> Geometry:
    """Of a layer that the engine can compute."""
    op = view.op
    if op.op == "fully_connected":
        return Geometry("conv1x1", False, (1, 1), (1, 1), op.depth)
    if op.op == "depthwise_conv2d":
        return Geometry("depthwise3x3", False, op.kernel, op.stride, op.in_channels)
    if op.kernel == (1, 1) and not any(op.padding):
        return Geometry("conv1x1", False, op.kernel, op.stride, op.in_channels)
    few = 9 * op.in_channels <= _FEW
    if op.kernel == (3, 3) and op.stride in ((1, 1), (2, 2)) and max(op.padding) <= 1 and not few:
        return Geometry("conv3x3", False, op.kernel, op.stride, op.in_channels)
    return Geometry("conv1x1", True, op.kernel, op.stride, op.in_channels * op.kernel[0] * op.kernel[1])


@dataclass(frozen=True)
class Stored:
    """`bits` of each weight less `offset` are stored; the engine adds `added`, and has it without its zero point."""

    bits: int
    offset: int
    added: int


def stored(view: LayerView) -> Stored:
    """In as few bits as all of the layer's weights take."""
    weights = view.constant("weights")
    low, high = int(weights.min()), int(weights.max())
    return Stored(max((high - low).bit_length(), 2), low, low - view.op.weight_zero_point)


def weights_of(view: LayerView, channels: Span) -> Array:
    """Those of some output channels, OHWI, or HWC of a depthwise layer."""
    some = weight_rows(view, view.constant("weights"))[channels.first : channels.end]
    shape = geometry(view)
    if shape.mode == "depthwise3x3":
        return some.T.reshape(3, 3, len(some))
    taps = (3, 3) if shape.mode == "conv3x3" else (1, 1)
    return some.reshape(len(some), *taps, -1)


def job(view: LayerView, tile: Tile, pixel: int, output_pixel: int, **more: Any) -> Job:
    """The tile's job at address 0: `pixel` bytes from input to input (channels), and so for the output."""
    shape, out = geometry(view), extent(view.outputs[0])
    (part,) = reads(view, tile)
    columns = extent(view.inputs[0]).columns
    ki = len(tile.channels) if shape.mode == "depthwise3x3" else shape.depth
    if view.op.op == "fully_connected":
        rows, width, pixel, row = len(tile.rows), 1, shape.depth, shape.depth
    elif shape.gathers:
        rows, width, pixel, row = len(tile.rows), out.columns, ki, ki * out.columns
    else:
        rows, width, row = len(tile.rows), out.columns, columns * pixel
        if shape.mode == "conv1x1":
            pixel, row = pixel * shape.stride[1], row * shape.stride[0]
    return Job(
        mode=shape.mode, h_out=rows, w_out=width, ki=ki, ko=len(tile.channels), input=0, input_pixel=pixel,
        input_row=row, output=0, output_pixel=output_pixel, output_row=output_pixel * width, weights=0,
        stride=shape.step, padding=_padding(view, part, shape), pad_value=getattr(view.op, "input_zero_point", 0),
        **more,
    )  # fmt: skip


def _padding(view: LayerView, part: Part, shape: Geometry) -> Padding:
    if shape.mode == "conv1x1":
        return Padding()
    left = view.op.padding[1]
    out, x = extent(view.outputs[0]), extent(view.inputs[0])
    right = (out.columns - 1) * shape.stride[1] + shape.window[1] - left - x.columns
    return Padding(part.above, max(right, 0), part.below, left)


@lru_cache(maxsize=4096)
def cycles(given: Job) -> int:
    """Of the engine, the driver's part of blocks included."""
    from stages.accelerators.ne16.cycles import cycles as of_engine

    return of_engine(given)
