"""outer16 as an accelerator: supported layers, tiles, constants and calls."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from stages.backends.accelerators.accelerator import (
    Accelerator,
    Call,
    Calls,
    CoreWork,
    Parameters,
    Pointer,
    Strides,
    Table,
)
from stages.backends.accelerators.tiles import Granule, Span, Tile, extent, reads
from stages.ir.graph import LayerView
from stages.ir.layers import ROUNDINGS
from stages.ir.operators.products import Conv2D, DepthwiseConv2D, FullyConnected
from stages.support.lazy import np, npt

from .cycles import BLOCK, Work, blocks, cycles

_START = 82  # instructions of the core for a job, with the driver in hwlib/
_LARGEST = 255  # of a number that shares a word with three others


class Outer16(Accelerator[Parameters]):
    name = "outer16"
    title = "outer16, a 16x16 outer-product engine"
    ops = frozenset({"conv2d", "depthwise_conv2d", "fully_connected"})
    sources = ("hwlib/outer16.c",)
    headers = ("hwlib/outer16.h",)
    init = "outer16_init"
    wait = "outer16_wait"
    layouts = ("NCHW16c",)
    queue: ClassVar[int] = 2

    @classmethod
    def requantizers(cls, given: Parameters) -> tuple[str, ...]:
        return ("engine",)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("outer16 was never built: its cycles are those of stages/backends/accelerators/outer16/cycles.py",)

    # ---- must hold -----------------------------------------------------------------------------------------------

    def reads(self, view: LayerView) -> tuple[str, ...]:
        return ("int8",)

    def writes(self, view: LayerView) -> tuple[str, ...]:
        return ("int8",)

    def why_not(self, view: LayerView) -> str:
        op, x = view.op, view.inputs[0]
        if not view.has("weights") or view.constant("weights").dtype != "int8" or op.weight_zero_point:
            return "weights are not int8 constants with zero point 0"
        if not ROUNDINGS[op.rounding].is_multiplied:
            return f"rounding {op.rounding}; the engine has single and double"
        if isinstance(op, FullyConnected):
            many = len(x.shape) != 2 or extent(view.outputs[0]).rows != 1
            return f"several rows in tensor {x.name}; the engine is for one" if many else ""
        if isinstance(op, Conv2D) and op.groups != 1:
            return f"{op.groups} groups of channels; the engine is for one"
        if isinstance(op, DepthwiseConv2D) and op.depth_multiplier != 1:
            return f"a depth multiplier of {op.depth_multiplier}; the engine is for 1"
        largest = max(*op.kernel, *op.stride, *op.dilation, *op.padding)
        return f"a window value of {largest}; registers hold {_LARGEST}" if largest > _LARGEST else ""

    def granule(self, view: LayerView) -> Granule:
        return Granule(rows=1, channels=BLOCK)

    # ---- is better -----------------------------------------------------------------------------------------------

    def tiling_key(self, view: LayerView) -> Hashable:
        return ()  # window and shapes are all that counts

    def cycles(self, view: LayerView, tile: Tile) -> int:
        return cycles(_work(view, tile))

    def core(self, view: LayerView, tile: Tile) -> CoreWork:
        return CoreWork(start=_START)

    # ---- is emitted ----------------------------------------------------------------------------------------------

    def constants(self, view: LayerView, channels: Span) -> npt.NDArray[np.uint8]:
        from .packing import packed

        return packed(view, channels)

    def constant_bytes(self, view: LayerView, channels: Span) -> int:
        return _work(view, Tile(Span(0, 1), channels)).constant_bytes

    def calls(self, view: LayerView, tile: Tile, strides: Strides) -> Calls:
        pointers = (Pointer("input:0"), Pointer("output:0"), Pointer("constants"))
        return Calls(Call("outer16_start", (Table(_job(view, tile, strides)), *pointers)))


def _work(view: LayerView, tile: Tile) -> Work:
    op = view.op
    taps = op.kernel[0] * op.kernel[1] if not isinstance(op, FullyConnected) else 1
    depth = op.depth if isinstance(op, FullyConnected) else op.in_channels
    columns = extent(view.outputs[0]).columns
    return Work(len(tile.rows) * columns, len(tile.channels), taps, depth, isinstance(op, DepthwiseConv2D))


def _job(view: LayerView, tile: Tile, strides: Strides) -> tuple[int, ...]:
    """Return the words of a job after its three addresses, as `device/outer16.cc` reads them."""
    op, x, out = view.op, extent(view.inputs[0]), extent(view.outputs[0])
    (part,) = reads(view, tile)
    work = _work(view, tile)
    mode = work.depthwise | (op.rounds_once) << 1
    ranges = _word(op.input_zero_point, op.output_zero_point, op.act_min, op.act_max)
    if isinstance(op, FullyConnected):  # a single pixel; its channels lie as blocks do
        size, window, place, strides = (1, 1), _word(1, 1, 1, 1), _word(1, 1, 0, 0), Strides((BLOCK,), BLOCK)
    else:
        size, window = (len(part.rows), x.columns), _word(*op.kernel, *op.stride)
        place = _word(*op.dilation, part.above, op.padding[1])
    return (
        strides.inputs[0],
        strides.output,
        _halves(*size),
        _halves(len(tile.rows), out.columns),
        _halves(blocks(len(part.channels)), len(tile.channels)),
        window,
        place,
        ranges,
        mode,
    )


def _halves(high: int, low: int) -> int:
    return high << 16 | low


def _word(*numbers: int) -> int:
    """Return four bytes as a word, the first in the top byte."""
    return sum((number & 0xFF) << shift for number, shift in zip(numbers, (24, 16, 8, 0), strict=True))
