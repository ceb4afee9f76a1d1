"""TIR of depthwise 3x3: a block for each group of channels of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.kernels.rvp.requantize_tir import requantize
from stages.kernels.rvp.strips import GEOMETRY_FIELDS, is_split, scratch_bytes, swapped
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import output, widen
from stages.kernels.tir.window import padded
from stages.kernels.tir.words import byte

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def _group(view: LayerView, lanes: int) -> Block:
    """4 * lanes channels of an image: channel lane * 4 + j has its constants in params[j, :, lane]."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    channels = 4 * lanes
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    exchanged, split = swapped(view), is_split(view)

    def meaning(b: Any) -> None:
        loops = (("oy", out_height), ("ox", out_width), ("lane", lanes), ("j", 4))
        with loop(*loops) as (oy, ox, lane, j):
            store(b.acc, b.params[j, 3, lane], 0)
            with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                activation = padded(
                    op,
                    (height, width),
                    (oy, ox),
                    (ky, kx),
                    lambda iy, ix: widen(b.x[iy, ix, lane * 4 + j]),
                    op.input_zero_point,
                )
                row, column = (kx, ky) if exchanged else (ky, kx)
                weight = byte(b.params[j, row, lane], column)
                if split:
                    weight = weight + byte(b.params[j, row + 6, lane], column)
                store(b.acc, b.acc[0] + activation * weight, 0)
            mark = b.params[0, 5, lanes - 1]
            scaled = requantize(b.acc[0], b.params[j, 4, lane], b.params[j, 5, lane], mark, op.rounding)
            store(b.y, output(view, scaled), oy, ox, lane * 4 + j)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("params", (4, 9 if split else 6, lanes), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("scratch", (scratch_bytes(view, lanes),), "int8", "w"),
        Operand("geometry", (GEOMETRY_FIELDS,), "int32"),
        accumulator(),
    )
    function = f"rvp_depthwise_s{op.stride[0]}{'u' if x.dtype == 'uint8' else ''}{'s' if split else ''}"
    return Block("group", operands, meaning, function, lambda b: [b.x, b.params, b.y, b.scratch, b.geometry])


def depthwise(view: LayerView, lanes: int) -> Lowering:
    """The loops over images and groups of channels."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    groups = op.out_channels // (4 * lanes)
    block = _group(view, lanes)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        params = f.constant("params", (groups, *block.operands[1].shape), "int32")
        geometry = f.constant("geometry", (GEOMETRY_FIELDS,), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("scratch", (scratch_bytes(view, lanes),), "int8")
        with f.loop(("n", y.shape[0]), ("g", groups)) as (n, g):
            f.place(
                block,
                x=(image, n, 0, 0, g * 4 * lanes),
                params=(params, g, 0, 0, 0),
                y=(out, n, 0, 0, g * 4 * lanes),
                scratch=scratch,
                geometry=geometry,
                acc=acc,
            )
    return f.lowering()
