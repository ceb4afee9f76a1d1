"""ConvTranspose: TRANSPOSE_CONV, and a slice where TFLite has no such padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stages.import_model.onnx.operators.weights import Weights, whole_bias
from stages.import_model.onnx.operators.windows import as_image, from_image
from stages.import_model.onnx.translation import Node, Out, Translation, check_rank
from stages.import_model.onnx.values import Array, Held, Real, Stored
from stages.ir.operators.operation import Refused, listed


@dataclass(frozen=True)
class _Axis:
    """One axis of a transposed convolution: what lies in `size` places is `cut` before and `more` behind are added."""

    size: int
    taps: int
    stride: int
    before: int
    result: int

    @property
    def whole(self) -> int:
        """What all products reach, and zeros up to the end of the result."""
        return max((self.size - 1) * self.stride + self.taps, self.before + self.result)

    @property
    def is_same(self) -> bool:
        """Whether TFLite's SAME cuts as much before the result."""
        total = (self.size - 1) * self.stride + self.taps - self.result
        return -(-self.result // self.stride) == self.size and max(total, 0) // 2 == self.before


def conv_transpose(t: Translation, node: Node) -> None:
    """ConvTranspose of real numbers, or of integers between DequantizeLinear and QuantizeLinear."""
    value, stored = t.value(node, 0), t.value(node, 1)
    if not isinstance(stored, Stored):
        raise Refused(f"takes its weights from '{node.inputs[1]}', a computed tensor; they must be a constant")
    bias = t.value(node, 2) if node.has(2) else None
    if bias is not None and not isinstance(bias, Stored):
        raise Refused(f"takes its bias from '{node.inputs[2]}', a computed tensor; it must be a constant")
    out, weights = t.destination(node, integers=True), _integer_weights(stored)
    if isinstance(value, Real) and out is not None and weights is not None:
        x = value.held
        ohwi = _laid(weights, node, x)
        sums, rule = whole_bias(bias, x, ohwi)
        _convolve(t, node, x, ohwi, sums, out, sums="float", **rule)
        return
    out = t.destination(node, integers=False)
    assert out is not None
    x = t.held(node, 0)
    _convolve(t, node, x, _laid(Weights(stored.real), node, x), None if bias is None else bias.real, out)


def _integer_weights(stored: Stored) -> Weights | None:
    """Weights with scales for output channels (axis 1), or one for all; None for others, which float32 is for."""
    try:
        weights = None if stored.scale is None else Weights.of(stored, 1).centred()
    except Refused:
        return None
    return None if weights is None or weights.values.dtype != np.int8 else weights


def _laid(weights: Weights, node: Node, x: Held) -> Weights:
    """Weights (C, O/groups, [H,] W) as OHWI of one group and without gaps, with a scale for each output channel."""
    check_rank(x, (3, 4))
    values, rank, fill = weights.values, len(x.shape) - 2, weights.zero_point
    if values.ndim != rank + 2 or values.shape[0] != x.shape[1]:
        raise Refused(f"has weights {listed(values.shape)} for an input {listed(x.shape)}")
    if tuple(node.attributes.get("kernel_shape", values.shape[2:])) != values.shape[2:]:
        raise Refused(
            f"has the window {listed(node.attributes['kernel_shape'])} and weights {listed(values.shape[2:])}"
        )
    values = _ungrouped(_undilated(values, node, fill), node, fill)
    values = values[:, :, None] if rank == 1 else values
    scale = weights.scale
    if scale is not None and scale.size > 1:
        scale = np.tile(scale, values.shape[1] // scale.size)
    return replace(weights, values=np.ascontiguousarray(values.transpose(1, 2, 3, 0)), scale=scale)


def _convolve(t: Translation, node: Node, x: Held, weights: Weights, bias: Array | None, out: Out, **rule: Any) -> None:
    """weights: OHWI, integers where `out` has a scale; `bias` int32 then. `rule`: facts for later stages."""
    rank, (channels, *taps, _) = len(x.shape) - 2, weights.values.shape
    axes = _axes(node, x, taps[-rank:])
    if rank == 1:
        axes = [_Axis(1, 1, 1, 0, 1), *axes]
    image = as_image(t, x)
    same = all(axis.is_same for axis in axes)
    if bias is None:
        bias = np.zeros(channels, np.float32 if out.quant is None else np.int32)
    made = t.builder.transpose_conv(
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
    if made.shape[1:3] != tuple(axis.result for axis in axes):
        begins, sizes = [axis.before for axis in axes], [axis.result for axis in axes]
        made = t.builder.slice(made, [0, *begins, 0], [x.shape[0], *sizes, channels], name=f"{out.name}/cut")
    t.finish(out, from_image(t, made, len(x.shape), out.name))


def _undilated(values: Array, node: Node, fill: int) -> Array:
    """The weights of a window without gaps: `fill`, which stands for 0, is where there were some."""
    rank = values.ndim - 2
    gaps = node.attributes.get("dilations", [1] * rank)
    if len(gaps) != rank or min(gaps) < 1:
        raise Refused(f"has the dilations {listed(gaps)} for {rank} axes")
    sizes = [(size - 1) * gap + 1 for size, gap in zip(values.shape[2:], gaps, strict=True)]
    made = np.full((*values.shape[:2], *sizes), fill, values.dtype)
    every = tuple(slice(None, None, gap) for gap in (1, 1, *gaps))
    made[every] = values
    return made


def _ungrouped(values: Array, node: Node, fill: int) -> Array:
    """The weights of one group: `fill`, which stands for 0, from each channel to the outputs of other groups."""
    groups, (channels, each) = node.attributes.get("group", 1), values.shape[:2]
    if groups < 1 or channels % groups:
        raise Refused(f"has {groups} groups for {channels} channels")
    made = np.full((channels, groups * each, *values.shape[2:]), fill, values.dtype)
    for channel, weights in enumerate(values):
        first = channel // (channels // groups) * each
        made[channel, first : first + each] = weights
    return made


def _axes(node: Node, x: Held, taps: Sequence[int]) -> list[_Axis]:
    """What the operator says of each axis: its result, and what is cut before that."""
    given, rank = node.attributes, len(x.shape) - 2
    strides, more = given.get("strides", [1] * rank), given.get("output_padding", [0] * rank)
    pads, wanted, auto = given.get("pads", [0] * 2 * rank), given.get("output_shape"), given.get("auto_pad", "NOTSET")
    for what, values, count in (
        *(("strides", strides, rank), ("output paddings", more, rank), ("pads", pads, 2 * rank)),
        ("sizes of the output", wanted if wanted is not None else [0] * rank, rank),
    ):
        if len(values) != count:
            raise Refused(f"has {len(values)} {what} for {rank} axes")
    axes = []
    for at, (size, window, stride) in enumerate(zip(x.shape[2:], taps, strides, strict=True)):
        whole = (size - 1) * stride + window + more[at]
        if wanted is not None:
            if wanted[at] - whole >= stride > 0:
                reach = f"reach {whole}, and ONNX Runtime adds less than the stride {stride}"
                raise Refused(f"has the output shape {listed(wanted)}; on axis {at + 2} its products {reach}")
            whole = max(whole, wanted[at])  # zeros, and the bias, behind the products
        before, behind = (pads[at], pads[rank + at]) if auto == "NOTSET" else (0, 0)
        if wanted is not None or auto.startswith("SAME"):
            # SAME with a window smaller than its stride: as ONNX Runtime, which adds nothing up to size * stride.
            cut = max(whole - (size * stride if wanted is None else wanted[at]), 0)
            before = cut // 2 if auto == "SAME_UPPER" else cut - cut // 2
            behind = cut - before
        result = whole - before - behind
        if min(stride, result) < 1 or min(before, behind, more[at]) < 0 or more[at] >= stride > 0:
            raise Refused(f"has strides {listed(strides)}, pads {listed(pads)} and output paddings {listed(more)}")
        axes.append(_Axis(size, window, stride, before, result))
    return axes


TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {"ConvTranspose": conv_transpose}
