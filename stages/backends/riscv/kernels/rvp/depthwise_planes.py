"""DEPTHWISE_CONV_2D tap by tap through planes of pixel registers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import INT8_OFFSET, centred_weights, why_not_nhwc, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, over_images, store
from stages.backends.kernels.tir.fixed_point import output, select
from stages.backends.kernels.tir.window import activation
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic, one_rounding_of
from stages.backends.riscv.kernels.rvp.plane_layout import PLANES, Plane, fields
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize_any, requantize_once
from stages.backends.riscv.kernels.rvp.strips import is_split, why_not_arithmetic
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class DepthwisePlanes(Kernel):
    """Depthwise convolution of any window, stride, dilation, multiplier and channel count.

    Computes 4 * lanes channels at a time. The cost depends on taps and outputs only, with little overhead: best for few
    taps and for small, dilated or strided images.
    """

    name = "rvp.depthwise_planes_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("depthwise_planes_s8.S", "depthwise_planes.c")
    headers: ClassVar[tuple[str, ...]] = ("depthwise_planes.h",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or why_not_nhwc(view) or why_not_arithmetic(view, any_shift=True)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        constants = arithmetic(view, signed_activations=True, any_shift=True)
        plane = Plane.of(view, target.word_bits // 32)
        return {
            "params": packing.planes_params(
                _pairs(view, plane),
                constants.bias,
                constants.multiplier,
                constants.rounders,
                one_rounding_of(view, constants),
                target.word_bits,
                groups=plane.groups(view),
                has_single=plane.taps(view).has_single,
            ),
            "offsets": np.array(plane.offsets(view), np.int32),
            "planes": PLANES.of(fields(view, plane)),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the layer as a loop over images."""
        plane = Plane.of(view, target.word_bits // 32)
        return over_images("depthwise_conv2d", _image(view, plane), view.inputs[0].shape[0])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return Plane.of(view, target.word_bits // 32).cost(view)


def _pairs(view: LayerView, plane: Plane) -> Array:
    """Return the weights of each tap pair and of a single tap: int64 [words, 2, channels]."""
    weights = centred_weights(view).astype(np.int64).T.reshape(*view.op.kernel, -1)
    if plane.exchanged:
        weights = weights.transpose(1, 0, 2)
    if is_split(view):
        addend = np.clip(weights, -128, 127)
        weights = np.concatenate((addend, weights - addend))
    taps = plane.taps(view)
    pairs = np.zeros((taps.words, 2, weights.shape[2]), np.int64)
    for row, column in np.ndindex(*weights.shape[:2]):
        pairs[taps.place(row, column)] = weights[row, column]
    return pairs


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
