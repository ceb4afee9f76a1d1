"""DEPTHWISE_CONV_2D of int16 activations, channel multiplier 1: shared by all families.

Each family has C for one pixel, D16_PIXEL of include/depthwise16_clipped.h or include/depthwise16_image.h. The headers
describe the rest.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.lanes16 import FIELDS, Lanes, constants, packed_weights
from stages.backends.kernels.matrix import windows_of
from stages.backends.kernels.products16 import scaled16, wide_bias, within32
from stages.backends.kernels.sixteen_bit import not_sixteen_by_eight
from stages.backends.kernels.tir.block import Block, Function, Operand, loop, store
from stages.backends.kernels.tir.fixed_point import clamp, widen
from stages.backends.kernels.tir.window import padded
from stages.backends.kernels.windows import whole_windows
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T


@dataclass(frozen=True)
class Prices16:
    """Counted instructions.

    pixel     per pixel, and `group` per group of its channels
    row       per row of a group's window, `product` per element of the row
    tap       per copied window element, for all channels: `copied` per group of channels; in an incomplete last
              group `single` per channel and `filled` per missing channel
    by_lanes  extra per element that is read in place if channels are not whole groups

    Kernels that clip windows copy nothing.
    """

    pixel: float
    group: float
    row: float
    product: float
    tap: float = 0.0
    copied: float = 0.0
    single: float = 0.0
    filled: float = 0.0
    by_lanes: float = 0.0


class Depthwise16(Kernel):
    """Depthwise convolution of NHWC images, one pixel at a time.

    function  the C function of the family
    clips     it reads all windows in place, clipped to the image; else it copies windows at the edges
    """

    bits = 16
    ops: ClassVar[frozenset[str]] = frozenset({"depthwise_conv2d"})
    layouts: ClassVar[tuple[str, ...]] = ("NHWC",)
    roundings: ClassVar[frozenset[str]] = frozenset({"wide"})
    function: ClassVar[str]
    clips: ClassVar[bool] = False
    prices: ClassVar[Prices16]

    @abstractmethod
    def lanes(self, target: Target) -> Lanes:
        """Channels that the target's registers hold at once."""

    def is_in_place(self, channels: int, target: Target) -> bool:
        """Return whether windows inside an image with these channels are read in place."""
        return channels % self.lanes(target).group == 0

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if bad := not_sixteen_by_eight(view):
            return bad
        if op.depth_multiplier != 1:
            return f"a depth multiplier of {op.depth_multiplier}; this kernel is for 1"
        try:
            constants(view, self.lanes(target))
        except ValueError as error:
            return str(error)
        return ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        op, lanes = view.op, self.lanes(target)
        fields = {**windows_of(view), "out_height": view.outputs[0].shape[1], "low": op.act_min, "high": op.act_max}
        return {"weights": packed_weights(view, lanes), "channels": constants(view, lanes), "fields": FIELDS.of(fields)}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return depthwise16(view, self.lanes(target), self.function, panel=not self.clips)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        op, y, group, price = view.op, view.outputs[0], self.lanes(target).group, self.prices
        taps, inner = prod(op.kernel), 1.0
        for axis, size in enumerate(() if self.clips else y.shape[1:3]):
            inner *= len(whole_windows(view, axis)) / size
        groups_filled, rest = divmod(y.shape[3], group)
        copied = (
            price.tap
            + groups_filled * price.copied
            + (rest * price.single + (group - rest) * price.filled if rest else 0.0)
        )
        if not self.clips and not self.is_in_place(y.shape[3], target):
            inner = 0.0
        row = 0.0 if op.kernel == (3, 3) else price.row  # which has separate code
        product = price.product + (inner * price.by_lanes if rest else 0.0)
        groups = (groups_filled + (rest > 0)) * (price.group + op.kernel[0] * row + taps * product)
        return 150.0 + y.elements / y.shape[3] * (price.pixel + groups + (1 - inner) * taps * copied)


Expr = Any  # a TIR expression or a Python int


def depthwise16(view: LayerView, lanes: Lanes, function: str, *, panel: bool) -> Lowering:
    """Return the loop over images around the block of one image.

    With `panel` the C function gets scratch for the elements of a window.
    """
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    groups, steps = lanes.groups(view), lanes.steps(view)
    kernel, word = tuple(op.kernel), lanes.group * lanes.taps

    def weight(b: Any, c: Expr, ky: Expr, kx: Expr) -> Expr:
        lane = T.truncmod(c, lanes.group)
        byte = T.truncmod(lane, lanes.inner) * lanes.apart + T.truncdiv(lane, lanes.inner) * lanes.outer
        step = (T.truncdiv(c, lanes.group) * kernel[0] + ky) * steps + T.truncdiv(kx, lanes.taps)
        return widen(b.w[step * word + byte + T.truncmod(kx, lanes.taps)])

    def meaning(b: Any) -> None:
        with loop(*zip(("oy", "ox", "c"), y.shape[1:], strict=True)) as (oy, ox, c):
            store(b.acc, wide_bias(b, c), 0)
            with loop(("ky", kernel[0]), ("kx", kernel[1])) as (ky, kx):
                value = padded(op, x.shape[1:3], (oy, ox), (ky, kx), lambda iy, ix: widen(b.x[iy, ix, c]), 0)
                store(b.acc, b.acc[0] + T.Cast("int64", value * weight(b, c, ky, kx)), 0)
            value = scaled16(within32(b.acc[0]), b.channels[c, 2], b.channels[c, 3])
            store(b.y, T.Cast("int16", clamp(value, op.act_min, op.act_max)), oy, ox, c)

    constants = (
        Operand("w", (groups * kernel[0] * steps * word,), "int8"),
        Operand("channels", (groups * lanes.group, 4), "int32"),
        Operand("fields", FIELDS.shape, "int32"),
    )
    scratch = [Operand("acc", (1,), "int64", "rw")]
    if panel:
        scratch.insert(0, Operand("panel", (kernel[0] * kernel[1] * groups * lanes.group,), "int16", "rw"))
    operands = (Operand("x", x.shape[1:], "int16"), *constants, Operand("y", y.shape[1:], "int16", "w"), *scratch)
    arguments = lambda b: [b.x, b.w, b.channels, b.y, *([b.panel] if panel else []), b.fields]  # noqa: E731
    block = Block("image", operands, meaning, function, arguments)
    with Function("depthwise_conv2d") as f:
        source = f.input(0, x.shape, "int16")
        buffers = {c.name: f.constant("weights" if c.name == "w" else c.name, c.shape, c.dtype) for c in constants}
        out = f.output(0, y.shape, "int16")
        buffers |= {operand.name: f.scratch(operand.name, operand.shape, operand.dtype) for operand in scratch}
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(source, n, 0, 0, 0), y=(out, n, 0, 0, 0), **buffers)
    return f.lowering()
