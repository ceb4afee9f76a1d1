"""ConvTranspose as TRANSPOSE_CONV, with a slice where TFLite lacks the padding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.convolution import as_image, from_image
from stages.import_model.onnx.operators.weights import Weights, integer_bias
from stages.import_model.onnx.translation import Node, Out, Translation, Translator, check_rank
from stages.import_model.onnx.values import Constant, Dequantized, TensorView
from stages.ir.arrays import Array
from stages.ir.operators.operation import Refused, listed


@dataclass(frozen=True)
class _Axis:
    """One axis of a transposed convolution.

    size, taps, stride: of the input, the window and the spacing of the products
    before: elements cut in front of the result; result: its size
    """

    size: int
    taps: int
    stride: int
    before: int
    result: int

    @property
    def whole(self) -> int:
        """The size that the products reach, with zeros up to the end of the result."""
        return max((self.size - 1) * self.stride + self.taps, self.before + self.result)

    @property
    def is_same(self) -> bool:
        """Whether TFLite's SAME padding cuts as many elements in front as this operator."""
        total = (self.size - 1) * self.stride + self.taps - self.result
        return -(-self.result // self.stride) == self.size and max(total, 0) // 2 == self.before


def conv_transpose(t: Translation, node: Node) -> None:
    """Translate ConvTranspose, in float32 or between integers."""
    value, stored = t.value(node, 0), t.value(node, 1)
    if not isinstance(stored, Constant):
        raise Refused(f"takes its weights from '{node.inputs[1]}', a computed tensor; they must be a constant")
    bias = t.value(node, 2) if node.has(2) else None
    if bias is not None and not isinstance(bias, Constant):
        raise Refused(f"takes its bias from '{node.inputs[2]}', a computed tensor; it must be a constant")
    out, weights = t.destination(node, integers=True), _integer_weights(stored)
    if isinstance(value, Dequantized) and out is not None and weights is not None:
        x = value.integers
        ohwi = _ohwi_weights(weights, node, x)
        sums, rule = integer_bias(bias, x, ohwi)
        _convolve(t, node, x, ohwi, sums, out, sums="float", **rule)
        return
    out = t.destination(node, integers=False)
    assert out is not None
    x = t.computed(node, 0)
    _convolve(
        t, node, x, _ohwi_weights(Weights(stored.real_values), node, x), None if bias is None else bias.real_values, out
    )


def _integer_weights(stored: Constant) -> Weights | None:
    """Return int8 weights with scales along axis 1, or with one scale; None for others."""
    try:
        weights = None if stored.scale is None else Weights.of(stored, 1).centred()
    except Refused:
        return None
    return None if weights is None or weights.values.dtype != np.int8 else weights


def _ohwi_weights(weights: Weights, node: Node, x: TensorView) -> Weights:
    """Return weights (C, O/groups, [H,] W) as OHWI, without groups and gaps."""
    check_rank(x, (3, 4))
    values, rank, fill = weights.values, len(x.shape) - 2, weights.zero_point
    if values.ndim != rank + 2 or values.shape[0] != x.shape[1]:
        raise Refused(f"has weights {listed(values.shape)}, which do not fit the input {listed(x.shape)}")
    if tuple(node.attributes.get("kernel_shape", values.shape[2:])) != values.shape[2:]:
        raise Refused(
            f"has the window {listed(node.attributes['kernel_shape'])}, but weights for {listed(values.shape[2:])}"
        )
    values = _ungrouped(_spread_weights(values, node, fill), node, fill)
    values = values[:, :, None] if rank == 1 else values
    scale = weights.scale
    if scale is not None and scale.size > 1:
        scale = np.tile(scale, values.shape[1] // scale.size)
    return replace(weights, values=np.ascontiguousarray(values.transpose(1, 2, 3, 0)), scale=scale)


def _convolve(
    t: Translation, node: Node, x: TensorView, weights: Weights, bias: Array | None, out: Out, **rule: Any
) -> None:
    """Append a transposed convolution by OHWI weights.

    Weights are integers and `bias` is int32 if `out` has a scale. rule: arithmetic for later stages.
    """
    rank, (channels, *taps, _) = len(x.shape) - 2, weights.values.shape
    axes = _axes(node, x, taps[-rank:])
    if rank == 1:
        axes = [_Axis(1, 1, 1, 0, 1), *axes]
    image = as_image(t, x)
    same = all(axis.is_same for axis in axes)
    if bias is None:
        bias = np.zeros(channels, np.float32 if out.quant is None else np.int32)
    result = t.builder.transpose_conv(
        image,
        weights.values,
        bias.reshape(-1),
        **weights.options(),
        shape=(x.shape[0], *(axis.result if same else axis.whole for axis in axes), channels),
        stride=(axes[0].stride, axes[1].stride),
        padding="same" if same else "valid",
        activation=out.activation,
        out=out.quant,
        name=f"{out.name}/whole",
    )
    t.rule(**rule)
    if result.shape[1:3] != tuple(axis.result for axis in axes):
        begins, sizes = [axis.before for axis in axes], [axis.result for axis in axes]
        result = t.builder.slice(result, [0, *begins, 0], [x.shape[0], *sizes, channels], name=f"{out.name}/cut")
    t.finish(out, from_image(t, result, len(x.shape), out.name))


def _spread_weights(values: Array, node: Node, fill: int) -> Array:
    """Return the weights of a window without gaps, filled with `fill`, which represents 0."""
    rank = values.ndim - 2
    gaps = node.attributes.get("dilations", [1] * rank)
    if len(gaps) != rank or min(gaps) < 1:
        raise Refused(f"has the dilations {listed(gaps)}; {rank} positive numbers are needed")
    sizes = [(size - 1) * gap + 1 for size, gap in zip(values.shape[2:], gaps, strict=True)]
    spread = np.full((*values.shape[:2], *sizes), fill, values.dtype)
    every = tuple(slice(None, None, gap) for gap in (1, 1, *gaps))
    spread[every] = values
    return spread


def _ungrouped(values: Array, node: Node, fill: int) -> Array:
    """Return the weights of one group; `fill` represents 0 between different groups."""
    groups, (channels, outputs_per_group) = node.attributes.get("group", 1), values.shape[:2]
    if groups < 1 or channels % groups:
        raise Refused(f"has {groups} groups for {channels} channels")
    ungrouped = np.full((channels, groups * outputs_per_group, *values.shape[2:]), fill, values.dtype)
    for channel, weights in enumerate(values):
        first = channel // (channels // groups) * outputs_per_group
        ungrouped[channel, first : first + outputs_per_group] = weights
    return ungrouped


def _axes(node: Node, x: TensorView, taps: Sequence[int]) -> list[_Axis]:
    """Return size, stride, cut and result of each axis."""
    attributes, rank = node.attributes, len(x.shape) - 2
    strides, output_padding = attributes.get("strides", [1] * rank), attributes.get("output_padding", [0] * rank)
    pads, output_shape, auto = (
        attributes.get("pads", [0] * 2 * rank),
        attributes.get("output_shape"),
        attributes.get("auto_pad", "NOTSET"),
    )
    for label, values, count in (
        *(("strides", strides, rank), ("output paddings", output_padding, rank), ("pads", pads, 2 * rank)),
        ("sizes of the output", output_shape if output_shape is not None else [0] * rank, rank),
    ):
        if len(values) != count:
            raise Refused(f"has {len(values)} {label} for {rank} axes")
    axes = []
    for at, (size, window, stride) in enumerate(zip(x.shape[2:], taps, strides, strict=True)):
        full_size = (size - 1) * stride + window + output_padding[at]
        if output_shape is not None:
            if output_shape[at] - full_size >= stride > 0:
                reach = f"end at {full_size}; it may exceed this by less than the stride {stride}"
                raise Refused(f"has the output shape {listed(output_shape)}; on axis {at + 2} the products {reach}")
            full_size = max(full_size, output_shape[at])  # zeros plus bias after the products
        before, after = (pads[at], pads[rank + at]) if auto == "NOTSET" else (0, 0)
        if output_shape is not None or auto.startswith("SAME"):
            # SAME with a window smaller than the stride: like ONNX Runtime, do not extend to size * stride.
            excess = max(full_size - (size * stride if output_shape is None else output_shape[at]), 0)
            before = excess // 2 if auto == "SAME_UPPER" else excess - excess // 2
            after = excess - before
        result = full_size - before - after
        if min(stride, result) < 1 or min(before, after, output_padding[at]) < 0 or output_padding[at] >= stride > 0:
            raise Refused(
                f"has strides {listed(strides)}, pads {listed(pads)} and output paddings {listed(output_padding)}:"
                " out of range"
            )
        axes.append(_Axis(size, window, stride, before, result))
    return axes


TRANSLATORS: dict[str, Translator] = {"ConvTranspose": conv_transpose}
