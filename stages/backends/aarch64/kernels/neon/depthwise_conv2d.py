"""DEPTHWISE_CONV_2D on NHWC images: 3x3 with 16 channels at a time, other windows with 8."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from stages.backends.aarch64.kernels.neon import packing
from stages.backends.aarch64.kernels.neon.base import NeonKernel, mode, output_constants
from stages.backends.kernels.eight_bit import INT8_OFFSET, SUFFIX, why_not_centred_types
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.structure import taps
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.window import activation
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

# The int32 fields of the C structure neon_depthwise, behind 80 bytes of vectors.
FIELDS = (
    *("height", "width", "pixel", "out_height", "out_width", "kernel_height", "kernel_width", "stride_y", "stride_x"),
    *("dilation_y", "dilation_x", "top", "left", "mode"),
)
STRUCTURE_BYTES = 80 + 4 * len(FIELDS)


class DepthwiseKernel(NeonKernel):
    """Depthwise convolution of `group` channels of an image at a time.

    The last group overlaps the one before if the channels are not a multiple; the overlapping channels get the same
    result twice.
    """

    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    headers: ClassVar[tuple[str, ...]] = ("depthwise.h",)
    group: ClassVar[int]
    weight_type: ClassVar[str]
    int8_activations: ClassVar[bool]

    def why_not_operator(self, view: LayerView) -> str:
        op = view.op
        if bad := why_not_centred_types(view):
            return bad
        if op.depth_multiplier != 1:
            return f"a depth multiplier of {op.depth_multiplier} is not supported"
        if op.out_channels < self.group:
            return f"{op.out_channels} channels; this kernel needs at least {self.group}"
        return self.why_not_window(view)

    def why_not_window(self, view: LayerView) -> str:
        """Return why the kernel cannot compute the layer's window or arithmetic, '' if it can."""
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, offset = view.op, INT8_OFFSET[view.inputs[0].dtype]
        channels = packing.depthwise_channels(view, op.input_zero_point - offset if self.int8_activations else 0)
        if not self.int8_activations:
            channels[0] = view.constant("bias") if view.has("bias") else 0
        weights = packing.depthwise_weights(view)
        starts = group_starts(op.out_channels, self.group)
        fill = np.full(16, op.input_zero_point).astype(view.inputs[0].dtype).view(np.int8)
        vectors = np.concatenate([output_constants(view), fill])
        return {
            "weights": np.stack([self.pack_group(weights[..., s : s + self.group]) for s in starts]).astype(
                self.weight_type
            ),
            "params": np.stack([channels[:, s : s + self.group] for s in starts]).astype(np.int32),
            "depthwise": packing.structure(vectors, [fields(view)[name] for name in FIELDS]),
        }

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        group = Group(
            self.group,
            self.function(view),
            self.weight_shape(view),
            self.weight_type,
            self.weight,
            STRUCTURE_BYTES,
            int8_activations=self.int8_activations,
        )
        return depthwise(view, group)

    def weight_shape(self, view: LayerView) -> tuple[int, ...]:
        """Return the shape of a group's packed weights."""
        return (*view.op.kernel, self.group)

    def pack_group(self, weights: Array) -> Array:
        """Pack the weights [ky, kx, channel] of a group."""
        return weights

    def weight(self, buffer: Any, ky: Any, kx: Any, lane: Any) -> Any:
        """Return a weight of a packed group."""
        return buffer[ky, kx, lane]

    @abstractmethod
    def function(self, view: LayerView) -> str:
        """Return the C function for a channel group."""


class ThreeByThree(DepthwiseKernel):
    """3x3 depthwise convolution on int8 values, stride 1 or 2."""

    weight_type = "int8"
    int8_activations = True

    def why_not_window(self, view: LayerView) -> str:
        op = view.op
        if op.kernel != (3, 3) or op.dilation != (1, 1) or op.stride not in ((1, 1), (2, 2)):
            return "only 3x3 windows without dilation and with stride 1 or 2 are supported"
        if max(op.padding[:2]) > 1:
            return "more than one row or column of padding before the image is not supported"
        if not op.rounds_twice or view.constant("shift").max() >= 0:
            return "the layer rounds once or shifts left; this kernel does neither"
        return self.why_not_weights(view)

    def why_not_weights(self, view: LayerView) -> str:
        """Return why the weights do not fit int8, '' if they do."""
        weights = packing.depthwise_weights(view)
        small = weights.min() >= -128 and weights.max() <= 127
        return "" if small else "weights minus their zero point do not fit int8"


class InPairs(ThreeByThree):
    """Depthwise convolution that adds products in int16, two at a time."""

    per_output: ClassVar[tuple[int, int]]  # instructions for a pixel of a group at stride 1 and 2
    per_row: ClassVar[int]

    def why_not_weights(self, view: LayerView) -> str:
        weights = packing.depthwise_weights(view)
        by_columns = weights.transpose(1, 0, 2).reshape(9, -1)  # as the kernels pair them
        both = (by_columns[:8].reshape(4, 2, -1) == -128).all(axis=1).any()
        meet = "two paired weights are -128; their products do not fit int16"
        return super().why_not_weights(view) or (meet if both else "")

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts."""
        batch, height, width, channels = view.outputs[0].shape
        groups = len(group_starts(channels, self.group))
        output_cost = self.per_output[view.op.stride[0] - 1]
        return float(batch * groups * (height * (width * output_cost + self.per_row) + 80))


class Depthwise3x3(InPairs):
    """3x3 depthwise convolution that keeps window columns in registers between outputs."""

    name = "neon.depthwise3x3"
    estimate_error = 1.25
    sources = ("depthwise3x3.c",)
    group = 16
    per_output, per_row = (78, 84), 60

    def function(self, view: LayerView) -> str:
        return f"neon_depthwise3x3_s{view.op.stride[0]}_{SUFFIX[view.inputs[0].dtype]}"


class Depthwise3x3Pairs(InPairs):
    """3x3 depthwise convolution with two neighbouring outputs per register, for few channels."""

    name = "neon.depthwise3x3_pairs"
    estimate_error = 1.25
    sources = ("depthwise3x3_pairs.c",)
    group = 8
    per_output, per_row = (45, 53), 200

    def function(self, view: LayerView) -> str:
        return f"neon_depthwise3x3_pairs_s{view.op.stride[0]}_{SUFFIX[view.inputs[0].dtype]}"


class Depthwise(DepthwiseKernel):
    """Depthwise convolution of any window, stride and dilation."""

    name = "neon.depthwise"
    estimate_error = 1.5
    sources = ("depthwise.c",)
    group = 8
    weight_type = "int16"
    int8_activations = False

    def function(self, view: LayerView) -> str:
        return f"neon_depthwise_{SUFFIX[view.inputs[0].dtype]}"

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions, from counts: 9 per tap of 8 channels, 70 overhead."""
        op, (batch, height, width, channels) = view.op, view.outputs[0].shape
        groups = len(group_starts(channels, self.group))
        return float(batch * groups * height * width * (prod(op.kernel) * 9 + 70))


def group_starts(channels: int, group: int) -> list[int]:
    """Return the first channel of each group."""
    return [*range(0, channels - group + 1, group), *([channels - group] if channels % group else [])]


def fields(view: LayerView) -> dict[str, int]:
    """Return the int32 fields of neon_depthwise."""
    op, (_, height, width, channels) = view.op, view.inputs[0].shape
    _, out_height, out_width, _ = view.outputs[0].shape
    return {
        "height": height,
        "width": width,
        "pixel": channels,
        "out_height": out_height,
        "out_width": out_width,
        **taps(op),
        "mode": mode(view),
    }


@dataclass(frozen=True)
class Group:
    """`channels` channels that a kernel's `function` computes at a time.

    weight_shape, weight_type  of a group's packed weights
    weight                     (weights, ky, kx, channel) -> the weight in packed order
    structure_bytes            size of the C structure with the layer's constants
    int8_activations           uint8 activations are converted to int8; no zero point is subtracted
    """

    channels: int
    function: str
    weight_shape: tuple[int, ...]
    weight_type: str
    weight: Callable[[Any, Any, Any, Any], Any]
    structure_bytes: int
    int8_activations: bool


def _group(view: LayerView, group: Group) -> Block:
    """Return the block that computes all outputs of a channel group."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    _, height, width, _ = x.shape
    _, out_height, out_width, _ = y.shape
    # What is subtracted from every activation
    offset = INT8_OFFSET[x.dtype] if group.int8_activations else op.input_zero_point

    def meaning(b: Any) -> None:
        with loop(("oy", out_height), ("ox", out_width), ("lane", group.channels)) as (oy, ox, lane):
            store(b.acc, b.params[0, lane], 0)
            with loop(("ky", op.kernel[0]), ("kx", op.kernel[1])) as (ky, kx):
                value = activation(view, b.x, (oy, ox), (ky, kx), lane, offset)
                store(b.acc, b.acc[0] + value * widen(group.weight(b.weights, ky, kx, lane)), 0)
            shift = b.params[2, lane] + 31 if op.rounds_once else b.params[2, lane]
            scaled = requantize(b.acc[0], b.params[1, lane], shift, op.rounding)
            store(b.y, output(view, scaled), oy, ox, lane)

    operands = (
        Operand("x", (height, width, group.channels), x.dtype),
        Operand("weights", group.weight_shape, group.weight_type),
        Operand("params", (3, group.channels), "int32"),
        Operand("y", (out_height, out_width, group.channels), y.dtype, "w"),
        Operand("depthwise", (group.structure_bytes,), "int8"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.weights, b.params, b.y, b.depthwise]  # noqa: E731
    return Block("group", operands, meaning, group.function, arguments)


def depthwise(view: LayerView, group: Group) -> Lowering:
    """Loops over images and channel groups; the last group may overlap the one before it."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    whole, left = divmod(op.out_channels, group.channels)
    groups = whole + (1 if left else 0)
    block = _group(view, group)
    with Function("depthwise_conv2d") as f:
        image = f.input(0, x.shape, x.dtype)
        weights = f.constant("weights", (groups, *group.weight_shape), group.weight_type)
        params = f.constant("params", (groups, 3, group.channels), "int32")
        fields = f.constant("depthwise", (group.structure_bytes,), "int8")
        out = f.output(0, y.shape, y.dtype)
        acc = f.scratch("acc", (1,), "int32")

        def place(n: Any, g: Any, channel: Any) -> None:
            constants = {
                "weights": (weights, g, *(0 for _ in group.weight_shape)),
                "params": (params, g, 0, 0),
                "depthwise": fields,
            }
            f.place(block, x=(image, n, 0, 0, channel), y=(out, n, 0, 0, channel), acc=acc, **constants)

        with f.loop(("n", y.shape[0])) as (n,):
            with f.loop(("g", whole)) as (g,):
                place(n, g, g * group.channels)
            if left:
                place(n, whole, op.out_channels - group.channels)
    return f.lowering()
