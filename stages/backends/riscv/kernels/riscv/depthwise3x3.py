"""DEPTHWISE_CONV_2D with 3x3 windows."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic import packing
from stages.backends.generic.kernels.generic.packing import signed_weights
from stages.backends.kernels.eight_bit import SUFFIX, weight_rows, why_not_centred_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.window import padded
from stages.backends.riscv.kernels.riscv.rectified import is_rectified
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView, Tensor
from stages.support.lazy import T, np

_SIDE = ("size", "out", "stride", "before", "x_step", "y_step")
FIELDS = Structure(
    "riscv_depthwise3x3",
    (
        *_SIDE,
        *_SIDE,
        *("channels", "multiplier", "x_channel", "y_channel"),
        *("input_zero_point", "weight_zero_point", "floor", "zero_point", "low", "high"),
    ),
)
# Sums of 64-bit registers have as many bits, above `floor`.
_SUM_BITS = 20


class Depthwise3x3(Kernel):
    """3x3 undilated depthwise convolution, channel by channel along lines of windows.

    A line loads each column once and keeps all weights in registers.

    Lines run along the longer image axis whose step is 1 or 2.
    """

    name = "riscv.depthwise3x3"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("depthwise3x3.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_centred_types(view) or _why_not_windows(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        op = view.op
        signed, zero_point = packing.signed_weights(view)
        weights = weight_rows(view, signed).reshape(op.out_channels, 3, 3)
        along = along_axis(view)
        centred = weights.astype(np.int64) - zero_point
        fields = {
            "channels": op.out_channels,
            "multiplier": op.depth_multiplier,
            "x_channel": _steps(view.inputs[0])[2],
            "y_channel": _steps(view.outputs[0])[2],
            "input_zero_point": op.input_zero_point,
            "weight_zero_point": zero_point,
            "floor": _floor(view, int(centred.min()), int(centred.max())) if target.word_bits == 64 else 0,
            "zero_point": op.output_zero_point,
            "low": op.act_min,
            "high": op.act_max,
        }
        values = (*_side(view, along), *_side(view, 1 - along), *fields.values())
        return {
            "weights": np.ascontiguousarray(weights if along == 0 else weights.transpose(0, 2, 1)),
            "channels": packing.channels(view, weights, zero_point, op.input_zero_point),
            "fields": np.array(values, np.int32),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Loop over images around the block of one image.

        Lines run along the rows (1) or down the columns (0).
        """
        along = along_axis(view)
        structure = FIELDS
        x, y, count = view.inputs[0], view.outputs[0], view.op.out_channels
        with Function("depthwise3x3") as f:
            image, out = f.input(0, x.physical_shape, x.dtype), f.output(0, y.physical_shape, y.dtype)
            constants = {
                "w": f.constant("weights", (count, 3, 3), "int8"),
                "channels": f.constant("channels", (count, 3), "int32"),
                "fields": f.constant("fields", structure.shape, "int32"),
            }
            acc = f.scratch("acc", (1,), "int32")
            with f.loop(("n", y.shape[0])) as (n,):
                f.place(
                    _image(view, along, structure), x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), acc=acc, **constants
                )
        return f.lowering()

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return instructions: 31 per output on RV64 (step 2: 41), 45 or 48 on RV32; 110 a line."""
        batch, *sides, channels = view.outputs[0].shape
        along = along_axis(view)
        by_step = (31.0, 41.0) if target.word_bits == 64 else (45.0, 48.0)
        return batch * channels * sides[1 - along] * (by_step[view.op.stride[along] - 1] * sides[along] + 110)


def along_axis(view: LayerView) -> int:
    """The axis of the lines of windows: 0 down, 1 to the right."""
    possible = [axis for axis in (1, 0) if not _why_not_along(view, axis)]
    return max(possible, key=lambda axis: view.outputs[0].shape[1 + axis])


def _why_not_windows(view: LayerView) -> str:
    op = view.op
    if tuple(op.kernel) != (3, 3) or tuple(op.dilation) != (1, 1):
        return "the window is not 3x3 without dilation"
    reasons = [_why_not_along(view, axis) for axis in (1, 0)]
    return reasons[0] if all(reasons) else ""


def _why_not_along(view: LayerView, axis: int) -> str:
    """Return why lines cannot run along `axis`, '' if they can.

    Only the first columns of the first windows may lie outside the image: one, or two.
    """
    op, shape = view.op, view.inputs[0].shape
    step, before = op.stride[axis], op.padding[axis]
    if step > 2:
        return f"the stride is {step}; this kernel supports 1 and 2"
    if before > 3 - step:
        return f"{before} pixels of leading padding; this kernel supports at most {3 - step}"
    if shape[2 - axis] < 3:
        return f"the image is {shape[1]}x{shape[2]}; this kernel needs at least 3x3 pixels"
    return ""


def _steps(tensor: Tensor) -> tuple[int, int, int]:
    """Return the bytes to the next row, column and channel."""
    _, height, width, channels = tensor.shape
    return (width, 1, height * width) if tensor.layout == "NCHW" else (width * channels, channels, 1)


def _side(view: LayerView, axis: int) -> tuple[int, ...]:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    sizes = (x.shape[1 + axis], y.shape[1 + axis], op.stride[axis], op.padding[axis])
    return (*sizes, _steps(x)[axis], _steps(y)[axis])


def _floor(view: LayerView, least: int, most: int) -> int:
    """Return a lower bound of sums of up to nine products with weights in [least, most]."""
    bounds = (0, 255) if view.inputs[0].dtype == "uint8" else (-128, 127)
    corners = [x * w for x in bounds for w in (least, most)]
    floor, top = 9 * min(0, *corners), 9 * max(0, *corners)
    assert top - floor < 1 << _SUM_BITS, "8-bit weights are 255 apart at most"
    return floor


def _image(view: LayerView, along: int, structure: Structure) -> Block:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, count = y.shape
    zero_point = signed_weights(view)[1]

    def meaning(b: Any) -> None:
        with loop(("c", count), ("oy", height), ("ox", width)) as (c, oy, ox):
            source = c if op.depth_multiplier == 1 else T.truncdiv(c, op.depth_multiplier)
            store(b.acc, b.channels[c, 0], 0)
            with loop(("ky", 3), ("kx", 3)) as (ky, kx):
                value = padded(
                    op,
                    x.shape[1:3],
                    (oy, ox),
                    (ky, kx),
                    lambda iy, ix: widen(b.x[_at(x, iy, ix, source)]),
                    op.input_zero_point,
                )
                weight = b.w[c, ky, kx] if along == 0 else b.w[c, kx, ky]
                store(b.acc, b.acc[0] + value * (widen(weight) - zero_point), 0)
            scaled = requantize(b.acc[0], b.channels[c, 1], b.channels[c, 2], op.rounding)
            store(b.y, output(view, scaled), *_at(y, oy, ox, c))

    operands = (
        Operand("x", x.physical_shape[1:], x.dtype),
        Operand("w", (count, 3, 3), "int8"),
        Operand("channels", (count, 3), "int32"),
        Operand("fields", structure.shape, "int32"),
        Operand("y", y.physical_shape[1:], y.dtype, "w"),
        accumulator(),
    )
    step = "_stride2" if op.stride[along] == 2 else ""
    rounding = "_rectified" if is_rectified(view) else ""
    function = f"riscv_depthwise3x3{step}{rounding}_{SUFFIX[x.dtype]}"
    return Block("image", operands, meaning, function, lambda b: [b.x, b.w, b.channels, b.y, b.fields])


def _at(tensor: Any, row: Any, column: Any, channel: Any) -> tuple[Any, Any, Any]:
    """Return the indices of an element in the tensor's layout."""
    return (channel, row, column) if tensor.layout == "NCHW" else (row, column, channel)
