"""Conv, in float32 and between integers, and the windows that pools share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.weights import Weights, integer_bias
from stages.import_model.onnx.translation import Node, Out, Translation, Translator, check_rank
from stages.import_model.onnx.values import Constant, Dequantized, TensorView, image_order
from stages.ir.arithmetic.sliding import extent, places
from stages.ir.arrays import Array
from stages.ir.models.onnx_names import Traced
from stages.ir.models.tflite_writer import Tensor
from stages.ir.operators.operation import Refused, listed

Pads = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Window:
    """Window, stride, dilation and pads along height and width."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: Pads

    @classmethod
    def of(cls, node: Node, x: TensorView, kernel: Sequence[int]) -> Window:
        """Return the window of a Conv or a pool over `x`, (N, C, W) or (N, C, H, W)."""
        attributes, rank = node.attributes, len(x.shape) - 2
        kernel = list(kernel)
        if len(kernel) != rank:
            raise Refused(f"has a window of {len(kernel)} axes over a tensor with {rank + 2} axes")
        stride, dilation = list(attributes.get("strides", [1] * rank)), list(attributes.get("dilations", [1] * rank))
        for name, values in (("strides", stride), ("dilations", dilation)):
            if len(values) != rank:
                raise Refused(f"has {len(values)} {name} for {rank} axes")
        auto = attributes.get("auto_pad", "NOTSET")
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            pads = [
                _same(size, *settings, upper=auto == "SAME_UPPER")
                for size, *settings in zip(x.shape[2:], kernel, stride, dilation, strict=True)
            ]
        else:
            flat = list(attributes.get("pads", [0] * (2 * rank))) if auto == "NOTSET" else [0] * (2 * rank)
            if len(flat) != 2 * rank:
                raise Refused(f"has {len(flat)} pads for {rank} axes; two per axis are needed")
            pads = list(zip(flat[:rank], flat[rank:], strict=True))
        if attributes.get("ceil_mode", 0):
            pads = [
                _ceiled(size, *settings)
                for size, *settings in zip(x.shape[2:], kernel, stride, dilation, pads, strict=True)
            ]
        if rank == 1:
            kernel, stride, dilation, pads = [1, *kernel], [1, *stride], [1, *dilation], [(0, 0), *pads]
        if min(kernel + stride + dilation) < 1 or min(min(pair) for pair in pads) < 0:
            sizes = f"window {kernel}, strides {stride} and dilations {dilation}"
            raise Refused(f"has {sizes}, which must be at least 1, and pads {pads}, which must not be negative")
        return cls(_pair(kernel), _pair(stride), _pair(dilation), (pads[0], pads[1]))

    @property
    def padded(self) -> bool:
        """Whether there is any padding."""
        return any(any(pair) for pair in self.pads)

    def padding(self, image: Sequence[int]) -> str | None:
        """Return TFLite's name of the padding of an image (height, width); None if it has none."""
        if not self.padded:
            return "valid"
        axes = zip(image, self.kernel, self.stride, self.dilation, strict=True)
        return "same" if self.pads == tuple(_same(*settings, upper=True) for settings in axes) else None


def _pair(values: Sequence[int]) -> tuple[int, int]:
    return int(values[0]), int(values[1])


def _same(size: int, taps: int, stride: int, dilation: int, *, upper: bool) -> tuple[int, int]:
    count = places(size, taps, stride, dilation, same=True)
    total = max((count - 1) * stride + extent(taps, dilation) - size, 0)
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)


def _ceiled(size: int, taps: int, stride: int, dilation: int, pads: tuple[int, int]) -> tuple[int, int]:
    """Return pads extended for a last window that begins inside of the image."""
    window_extent, (before, after) = extent(taps, dilation), pads
    count = -(-(size + before + after - window_extent) // stride) + 1
    if (count - 1) * stride >= size + before:  # it would begin in the padding
        count -= 1
    return before, max(after, (count - 1) * stride + window_extent - size - before)


def as_image(t: Translation, x: TensorView) -> Tensor:
    """Return (N, C, H, W) as NHWC, (N, C, W) as an image with one row."""
    result = t.reordered(x, (0, 2, 1) if len(x.shape) == 3 else image_order(4)).tensor
    if len(x.shape) == 4:
        return result
    batch, width, channels = result.shape
    return t.builder.reshape(result, (batch, 1, width, channels), name=f"{result.name}/image")


def from_image(t: Translation, result: Tensor, rank: int, name: str) -> TensorView:
    """Return an NHWC image as the ONNX value `name` with 3 or 4 axes."""
    if rank == 4:
        return TensorView.of(result, image_order(4))
    batch, _, width, channels = result.shape
    t.names[result.index] = Traced(name, (batch, channels, width), (0, 2, 1))
    return TensorView.of(t.builder.reshape(result, (batch, width, channels), name=name), (0, 2, 1))


def conv(t: Translation, node: Node) -> None:
    """Translate Conv, also as DequantizeLinear, Conv, QuantizeLinear."""
    x, stored = t.value(node, 0), t.value(node, 1)
    if not isinstance(stored, Constant):
        raise Refused(f"takes its weights from '{node.inputs[1]}', a computed tensor; they must be a constant")
    bias = t.value(node, 2) if node.has(2) else None
    if bias is not None and not isinstance(bias, Constant):
        raise Refused(f"takes its bias from '{node.inputs[2]}', a computed tensor; it must be a constant")
    if isinstance(x, Dequantized) and stored.scale is not None:
        out = t.destination(node, integers=True)
        if out is not None:
            weights = Weights.of(stored, 0)
            sums, rule = integer_bias(bias, x.integers, weights)
            convolve(t, node, x.integers, weights, sums, out, sums="float", **rule)
            return
    out = t.destination(node, integers=False)
    assert out is not None
    convolve(t, node, t.computed(node, 0), Weights(stored.real_values), None if bias is None else bias.real_values, out)


def convolve(
    t: Translation, node: Node, x: TensorView, weights: Weights, bias: Array | None, out: Out, **rule: Any
) -> None:
    """Append a convolution by weights (O, I, [H,] W).

    Weights are integers and `bias` is int32 if `out` has a scale. rule: arithmetic for later stages.
    """
    check_rank(x, (3, 4))
    values, group = weights.values, int(node.attributes.get("group", 1))
    if values.ndim != len(x.shape):
        raise Refused(f"has weights {listed(values.shape)}, which do not fit the input {listed(x.shape)}")
    if values.shape[1] * group != x.shape[1] or values.shape[0] % group:
        raise Refused(f"has weights {listed(values.shape)} in {group} groups for an input {listed(x.shape)}")
    window = Window.of(node, x, node.attributes.get("kernel_shape", values.shape[2:]))
    if tuple(window.kernel)[-values.ndim + 2 :] != values.shape[2:]:
        raise Refused(f"has the window {listed(window.kernel)} and weights {listed(values.shape)}")
    weights.check_int8()
    weights = weights.centred()
    values = weights.values[:, :, None] if values.ndim == 3 else weights.values
    image = as_image(t, x)
    padding = window.padding(image.shape[1:3])
    if padding is None:
        image, padding = t.builder.pad(image, [(0, 0), *window.pads, (0, 0)], name=f"{out.name}/padded"), "valid"
    is_1d = len(x.shape) == 3
    options: dict[str, Any] = {
        **weights.options(),
        "stride": window.stride,
        "dilation": window.dilation,
        "padding": padding,
        "activation": out.activation,
        "out": out.quant,
        "name": f"{out.name}/image" if is_1d else out.name,
    }
    if bias is None:
        bias = np.zeros(values.shape[0], np.float32 if out.quant is None else np.int32)
    if bias.size != values.shape[0]:
        raise Refused(f"has the bias {listed(bias.shape)}, which does not fit {values.shape[0]} outputs")
    # No kernel supports int8 depthwise weights with a zero point; a grouped convolution is equivalent.
    if group == x.shape[1] and group > 1 and not weights.zero_point:
        oriented = weights.with_values(values[:, 0].transpose(1, 2, 0)[None])
        result = t.builder.depthwise_conv2d(image, oriented.values, bias.reshape(-1), **options)
    else:
        oriented = weights.with_values(values.transpose(0, 2, 3, 1))
        result = t.builder.conv2d(image, oriented.values, bias.reshape(-1), **options)
    t.rule(**rule)
    t.finish(out, from_image(t, result, len(x.shape), out.name))


TRANSLATORS: dict[str, Translator] = {"Conv": conv}
