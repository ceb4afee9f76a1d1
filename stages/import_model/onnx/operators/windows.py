"""Convolutions and pools, of real numbers and of integers with scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.weights import Weights, whole_bias
from stages.import_model.onnx.translation import Node, Out, Translation, check_rank
from stages.import_model.onnx.values import Array, Held, Real, Stored, image_order
from stages.ir.arithmetic.sliding import extent, places
from stages.ir.models.onnx_names import Traced
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

Pads = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Window:
    """Sizes along height and width."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: Pads

    @classmethod
    def of(cls, node: Node, x: Held, kernel: Sequence[int]) -> Window:
        """From the attributes of a Conv or a pool over `x`, (N, C, W) or (N, C, H, W)."""
        given, rank = node.attributes, len(x.shape) - 2
        kernel = list(kernel)
        if len(kernel) != rank:
            raise Refused(f"has a window of {len(kernel)} axes over a tensor with {rank + 2}")
        stride, dilation = list(given.get("strides", [1] * rank)), list(given.get("dilations", [1] * rank))
        for name, values in (("strides", stride), ("dilations", dilation)):
            if len(values) != rank:
                raise Refused(f"has {len(values)} {name} for {rank} axes")
        auto = given.get("auto_pad", "NOTSET")
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            pads = [
                _same(size, *along, upper=auto == "SAME_UPPER")
                for size, *along in zip(x.shape[2:], kernel, stride, dilation, strict=True)
            ]
        else:
            flat = list(given.get("pads", [0] * (2 * rank))) if auto == "NOTSET" else [0] * (2 * rank)
            if len(flat) != 2 * rank:
                raise Refused(f"has {len(flat)} pads for {rank} axes; two for each")
            pads = list(zip(flat[:rank], flat[rank:], strict=True))
        if given.get("ceil_mode", 0):
            pads = [
                _ceiled(size, *along) for size, *along in zip(x.shape[2:], kernel, stride, dilation, pads, strict=True)
            ]
        if rank == 1:
            kernel, stride, dilation, pads = [1, *kernel], [1, *stride], [1, *dilation], [(0, 0), *pads]
        if min(kernel + stride + dilation) < 1 or min(min(pair) for pair in pads) < 0:
            raise Refused(f"has the window {kernel}, strides {stride}, dilations {dilation}, pads {pads}")
        return cls(_pair(kernel), _pair(stride), _pair(dilation), (pads[0], pads[1]))

    @property
    def padded(self) -> bool:
        return any(any(pair) for pair in self.pads)

    def padding(self, image: Sequence[int]) -> str | None:
        """What TFLite calls the padding of an image (height, width); None where it has no name for it."""
        if not self.padded:
            return "valid"
        along = zip(image, self.kernel, self.stride, self.dilation, strict=True)
        return "same" if self.pads == tuple(_same(*each, upper=True) for each in along) else None


def _pair(values: Sequence[int]) -> tuple[int, int]:
    return int(values[0]), int(values[1])


def _same(size: int, taps: int, stride: int, dilation: int, *, upper: bool) -> tuple[int, int]:
    count = places(size, taps, stride, dilation, same=True)
    total = max((count - 1) * stride + extent(taps, dilation) - size, 0)
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)


def _ceiled(size: int, taps: int, stride: int, dilation: int, pads: tuple[int, int]) -> tuple[int, int]:
    """Pads with what a last window that begins inside needs."""
    reach, (before, after) = extent(taps, dilation), pads
    count = -(-(size + before + after - reach) // stride) + 1
    if (count - 1) * stride >= size + before:  # it would begin in the padding
        count -= 1
    return before, max(after, (count - 1) * stride + reach - size - before)


def as_image(t: Translation, x: Held) -> Tensor:
    """(N, C, H, W) as NHWC; (N, C, W) as an image of one row."""
    made = t.ordered(x, (0, 2, 1) if len(x.shape) == 3 else image_order(4)).tensor
    if len(x.shape) == 4:
        return made
    batch, width, channels = made.shape
    return t.builder.reshape(made, (batch, 1, width, channels), name=f"{made.name}/image")


def from_image(t: Translation, made: Tensor, rank: int, name: str) -> Held:
    """The other way; `name` is that of the result in ONNX, which the image of one row is as well."""
    if rank == 4:
        return Held.of(made, image_order(4))
    batch, _, width, channels = made.shape
    t.names[made.index] = Traced(name, (batch, channels, width), (0, 2, 1))
    return Held.of(t.builder.reshape(made, (batch, width, channels), name=name), (0, 2, 1))


def conv(t: Translation, node: Node) -> None:
    """Conv, and what quantizers make of it: DequantizeLinear, Conv, QuantizeLinear."""
    x, stored = t.value(node, 0), t.value(node, 1)
    if not isinstance(stored, Stored):
        raise Refused(f"takes its weights from '{node.inputs[1]}', a computed tensor; they must be a constant")
    bias = t.value(node, 2) if node.has(2) else None
    if bias is not None and not isinstance(bias, Stored):
        raise Refused(f"takes its bias from '{node.inputs[2]}', a computed tensor; it must be a constant")
    if isinstance(x, Real) and stored.scale is not None:
        out = t.destination(node, integers=True)
        if out is not None:
            weights = Weights.of(stored, 0)
            whole, rule = whole_bias(bias, x.held, weights)
            convolve(t, node, x.held, weights, whole, out, sums="float", **rule)
            return
    out = t.destination(node, integers=False)
    assert out is not None
    convolve(t, node, t.held(node, 0), Weights(stored.real), None if bias is None else bias.real, out)


def convolve(t: Translation, node: Node, x: Held, weights: Weights, bias: Array | None, out: Out, **rule: Any) -> None:
    """weights (O, I, [H,] W), integers where `out` has a scale, `bias` int32 then. `rule`: facts for later stages."""
    check_rank(x, (3, 4))
    values, group = weights.values, int(node.attributes.get("group", 1))
    if values.ndim != len(x.shape):
        raise Refused(f"has weights {listed(values.shape)} for an input {listed(x.shape)}")
    if values.shape[1] * group != x.shape[1] or values.shape[0] % group:
        raise Refused(f"has weights {listed(values.shape)} in {group} groups for an input {listed(x.shape)}")
    window = Window.of(node, x, node.attributes.get("kernel_shape", values.shape[2:]))
    if tuple(window.kernel)[-values.ndim + 2 :] != values.shape[2:]:
        raise Refused(f"has the window {listed(window.kernel)} and weights {listed(values.shape)}")
    weights.check_whole()
    weights = weights.centred()
    values = weights.values[:, :, None] if values.ndim == 3 else weights.values
    image = as_image(t, x)
    padding = window.padding(image.shape[1:3])
    if padding is None:
        image, padding = t.builder.pad(image, [(0, 0), *window.pads, (0, 0)], name=f"{out.name}/padded"), "valid"
    lifted = len(x.shape) == 3
    options: dict[str, Any] = {
        **weights.options(),
        "stride": window.stride,
        "dilation": window.dilation,
        "padding": padding,
        "activation": out.activation,
        "out": out.quant,
        "name": f"{out.name}/image" if lifted else out.name,
    }
    if bias is None:
        bias = np.zeros(values.shape[0], np.float32 if out.quant is None else np.int32)
    if bias.size != values.shape[0]:
        raise Refused(f"has the bias {listed(bias.shape)} for {values.shape[0]} outputs")
    # No kernel has a depthwise convolution of int8 by weights with a zero point; one in groups is the same.
    if group == x.shape[1] and group > 1 and not weights.zero_point:
        kept = weights.with_values(values[:, 0].transpose(1, 2, 0)[None])
        made = t.builder.depthwise_conv2d(image, kept.values, bias.reshape(-1), **options)
    else:
        kept = weights.with_values(values.transpose(0, 2, 3, 1))
        made = t.builder.conv2d(image, kept.values, bias.reshape(-1), **options)
    t.rule(**rule)
    t.finish(out, from_image(t, made, len(x.shape), out.name))


Translator = Callable[[Translation, Node], None]
TRANSLATORS: dict[str, Translator] = {"Conv": conv}
