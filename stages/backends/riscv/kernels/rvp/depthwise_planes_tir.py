"""TIR of depthwise convolution through register planes: one block per image."""

from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, select
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp.plane_layout import PLANES, Plane
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize_any, requantize_once
from stages.backends.riscv.kernels.rvp.strips import is_split
from stages.ir.graph import LayerView


def _image(view: LayerView, plane: Plane) -> Block:
    """All channel groups of an image.

    Channel lane * 4 + j of a group has its constants in params[group, :, j, lane].
    """
    op, x, y, lanes = view.op, view.inputs[0], view.outputs[0], plane.lanes
    offset, taps, split = INT8_OFFSET[x.dtype], plane.taps(view), is_split(view)
    groups = plane.groups(view)

    def weight_of(b: Any, row: Any, column: Any, place: tuple[Any, Any, Any]) -> Any:
        word, half = taps.place(row, column, select)
        group, j, lane = place
        number = half * 2 + T.truncmod(j, 2)
        if taps.has_single:
            number = select(word == taps.words - 1, j, number)
        return byte(b.params[group, 3 + word, j, lane], number)

    def channel(b: Any, oy: Any, ox: Any, c: Any) -> None:
        group = T.min(T.truncdiv(c, 4 * lanes), len(groups) - 1)
        within = c - T.min(group * (4 * lanes), groups[-1][0])
        lane, j = T.truncdiv(within, 4), T.truncmod(within, 4)
        store(b.acc, b.params[group, 0, j, lane], 0)
        with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
            value = activation(view, b.x, (oy, ox), (ky, kx), T.truncdiv(c, op.depth_multiplier), offset)
            row, column = (kx, ky) if plane.exchanged else (ky, kx)
            weight = weight_of(b, row, column, (group, j, lane))
            if split:
                weight = weight + weight_of(b, row + plane.kernel[0], column, (group, j, lane))
            store(b.acc, b.acc[0] + value * weight, 0)
        marks = [b.params[group, 2, register, lanes - 1] for register in (0, 1)]
        multiplier, rounder = (b.params[group, n, j, lane] for n in (1, 2))
        unmarked = T.bitwise_and(multiplier, 0x7FFFFFFF)
        points = b.params[group, 2, T.truncmod(j, 2), lane]
        once = requantize_once(view, b.acc[0], unmarked, half_of(points, T.truncdiv(j, 2)))
        twice = requantize_any(b.acc[0], multiplier, rounder, *marks)
        store(b.y, output(view, select(b.params[group, 1, 0, lanes - 1] < 0, once, twice)), oy, ox, c)

    def meaning(b: Any) -> None:
        with loop(("oy", y.shape[1]), ("ox", y.shape[2]), ("c", op.out_channels)) as (oy, ox, c):
            channel(b, oy, ox, c)

    scratch = () if plane.direct else (Operand("scratch", (plane.scratch_bytes(),), "int8", "w"),)
    operands = (
        Operand("x", x.shape[1:], x.dtype),
        Operand("params", (len(groups), 3 + taps.words, 4, lanes), "int32"),
        Operand("y", y.shape[1:], y.dtype, "w"),
        *scratch,
        Operand("offsets", (len(taps.joined),), "int32"),
        Operand("planes", PLANES.shape, "int32"),
        accumulator(),
    )

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.params, b.y, *([] if plane.direct else [b.scratch]), b.offsets, b.planes]

    of_image = "rvp_depthwise_pixels_of_lanes" if plane.by_lanes(view) else "rvp_depthwise_pixels"
    function = of_image if plane.direct else "rvp_depthwise_planes"
    return Block("image", operands, meaning, function, arguments)


def depthwise(view: LayerView, plane: Plane) -> Lowering:
    """Return the layer as a loop over images."""
    return over_images("depthwise_conv2d", _image(view, plane), view.inputs[0].shape[0])
