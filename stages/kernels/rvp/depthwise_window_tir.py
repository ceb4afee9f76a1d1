"""TIR of depthwise convolution with any window: a block for each group of channels of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.rvp.requantize_tir import requantize
from stages.kernels.rvp.strips import is_split
from stages.kernels.rvp.window_strips import WINDOW_FIELDS, columns_class, scratch_bytes, starts, swapped, window
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import output, widen
from stages.kernels.tir.window import padded
from stages.kernels.tir.words import byte

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering


def _group(view: LayerView, lanes: int, name: str, channels: int, *, whole: bool) -> Block:
    """`channels` channels of an image, up to 4 * lanes: channel lane * 4 + j has its constants in params[j, :, lane].

    `whole`: pixels are whole registers.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    exchanged, split = swapped(view), is_split(view)
    (rows, columns), (_, stride) = window(view)
    words = len(starts(stride, columns))

    def weight(b: Any, row: Any, column: Any, lane: Any, j: Any) -> Any:
        """Columns 0 to 3 are in the first word of a row, column 4 is the first byte of the last."""
        last = T.truncdiv(column, 4)
        return byte(b.params[j, 3 + row * words + last * (words - 1), lane], column - last * 4)

    def channel(b: Any, oy: Any, ox: Any, lane: Any, j: Any) -> None:
        store(b.acc, b.params[j, 0, lane], 0)
        with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
            activation = padded(
                op,
                (height, width),
                (oy, ox),
                (ky, kx),
                lambda iy, ix: widen(b.x[iy, ix, lane * 4 + j]),
                op.input_zero_point,
            )
            row, column = (kx, ky) if exchanged else (ky, kx)
            factor = weight(b, row, column, lane, j)
            if split:
                factor = factor + weight(b, row + rows, column, lane, j)
            store(b.acc, b.acc[0] + activation * factor, 0)
        mark = b.params[0, 2, lanes - 1]
        scaled = requantize(b.acc[0], b.params[j, 1, lane], b.params[j, 2, lane], mark, op.rounding)
        store(b.y, output(view, scaled), oy, ox, lane * 4 + j)

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width)) as (oy, ox):
            if channels // 4:
                with loop(("lane", channels // 4), ("j", 4)) as (lane, j):
                    channel(b, oy, ox, lane, j)
            if channels % 4:
                with loop(("j", channels % 4)) as j:
                    channel(b, oy, ox, channels // 4, j)

    operands = (
        Operand("x", (height, width, channels), x.dtype),
        Operand("params", (4, 3 + rows * words * (1 + split), lanes), "int32"),
        Operand("y", (out_height, out_width, channels), y.dtype, "w"),
        Operand("scratch", (scratch_bytes(view, lanes),), "int8", "w"),
        Operand("window", (WINDOW_FIELDS,), "int32"),
        accumulator(),
    )
    function = f"rvp_depthwise_s{stride}_k{columns_class(columns)}{'u' if x.dtype == 'uint8' else ''}"
    moved = 0 if whole else channels
    return Block(name, operands, meaning, function, lambda b: [b.x, b.params, b.y, b.scratch, b.window, moved])


def depthwise(view: LayerView, lanes: int) -> Lowering:
    """The loops over images and groups of channels; the last group may be smaller."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    size = 4 * lanes
    groups, rest = divmod(op.out_channels, size)
    whole = rest == 0
    blocks = [_group(view, lanes, "group", size, whole=whole)] if groups else []
    blocks += [_group(view, lanes, "rest", rest, whole=False)] if rest else []
    shape = blocks[0].operands[1].shape
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        params = f.constant("params", (groups + (rest > 0), *shape), "int32")
        fields = f.constant("window", (WINDOW_FIELDS,), "int32")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        scratch = f.scratch("scratch", (scratch_bytes(view, lanes),), "int8")

        def place(block: Block, n: Any, g: Any) -> None:
            f.place(
                block,
                x=(image, n, 0, 0, g * size),
                params=(params, g, 0, 0, 0),
                y=(out, n, 0, 0, g * size),
                scratch=scratch,
                window=fields,
                acc=acc,
            )

        if groups:
            with f.loop(("n", y.shape[0]), ("g", groups)) as (n, g):
                place(blocks[0], n, g)
        if rest:
            with f.loop(("n", y.shape[0])) as (n,):
                place(blocks[-1], n, groups)
    return f.lowering()
