"""Layers that sum products: convolutions and FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from stages.ir.layers import (
    Array,
    Clamped,
    LayerView,
    Narrowed,
    Rounding,
    Tensor,
    Window,
    channel_constants,
    is_known_by_channel,
    per_channel,
)
from stages.ir.layers.channels import Kept, ValueRange, channels_of, labels, summed
from stages.support.lazy import np

ConvLayout = Literal["OHWI", "HWIO", "OIHW"]
DepthwiseLayout = Literal["HWC", "OIHW"]


def _from_zero_point(value_range: ValueRange, op: Conv2D | DepthwiseConv2D) -> tuple[Array, Array]:
    """Bounds less the zero point, and 0 if windows overlap the padding."""
    low, high = value_range.least - op.input_zero_point, value_range.most - op.input_zero_point
    return (np.minimum(low, 0), np.maximum(high, 0)) if any(op.padding) else (low, high)


def _with_added(view: LayerView, added: Array, output: Kept) -> dict[str, Array]:
    """Bias of the remaining channels plus `added`, int64[O]; wraps as the sums do."""
    if not added.any():
        return {}
    bias = view.constant("bias").astype(np.int64) if view.has("bias") else 0
    return {"bias": (bias + added).astype(np.int32)[output.channels]}


def _with_repeated(weights: Array, zero_point: int, kept: Kept) -> Array:
    """Weights of the remaining channels, (..., kept), plus those of channels that equal them.

    `weights`, (..., C), are integers of the file. All sums fit their type (`stages.lower.simplify.bundles`).
    """
    added = weights.astype(np.int64)
    for channel in kept.repeated:
        added[..., kept.equal[channel]] += added[..., channel] - zero_point
    return added[..., kept.channels].astype(weights.dtype)


class Conv2D(Window):
    """CONV_2D.

    Constants: weights int8/uint8 in `kernel_layout`, bias int32[O] (absent: zero), multiplier and shift int32[O].
    """

    op: Literal["conv2d"] = "conv2d"
    dilation: tuple[int, int]
    groups: int = 1
    in_channels: int
    out_channels: int
    input_zero_point: int
    weight_zero_point: int = 0
    kernel_layout: ConvLayout = "OHWI"
    rounding: Rounding = "double"

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the output."""
        return out.elements * self.kernel[0] * self.kernel[1] * self.in_channels // self.groups

    def _ohwi(self, view: LayerView) -> Array:
        """Weights less their zero point, int64."""
        kept = view.constant("weights").transpose([self.kernel_layout.index(axis) for axis in "OHWI"])
        return np.asarray(kept.astype(np.int64) - self.weight_zero_point)

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Range from the positive and the negative weights."""
        low, high = _from_zero_point(inputs[0], self)
        positive, negative = (bound(self._ohwi(view), 0).sum(axis=(1, 2)) for bound in (np.maximum, np.minimum))
        depth = self.in_channels // self.groups
        group = np.arange(self.out_channels) // (self.out_channels // self.groups)
        low, high = (bound.reshape(self.groups, depth)[group] for bound in (low, high))
        least, most = ((positive * a + negative * b).sum(axis=1) for a, b in ((low, high), (high, low)))
        return self.range_of_sums(view, least, most)

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        """(): sums over channels, so any input channel may be removed."""
        return () if self.groups == 1 and is_known_by_channel(view) else None

    def alike(self, view: LayerView, inputs: Sequence[Array]) -> Array | None:
        """Filters are alike if they give equal channels the same total weights."""
        if self.carries(view) is None:
            return None
        return labels(summed(self._ohwi(view), inputs[0]), *channel_constants(view))

    def absorbs(self, view: LayerView, value_range: ValueRange) -> Array:
        """Constant channels, and those without weights; with padding only at the zero point."""
        known = value_range.is_constant
        if any(self.padding):
            known = known & (value_range.least == self.input_zero_point)
        return known | ~self._ohwi(view).any(axis=(0, 1, 2))

    def factors(self, view: LayerView) -> Array:
        """Weights less their zero point, OHWI."""
        return self._ohwi(view)

    def narrowed(self, view: LayerView, inputs: Sequence[Kept], output: Kept) -> Narrowed:
        """The layer on fewer channels.

        The contribution of a removed input channel moves to the bias, or to the weights of the channel that it equals.
        """
        kept, dropped = inputs[0].channels, inputs[0].dropped
        added = self._ohwi(view).sum(axis=(1, 2))[:, dropped] @ (inputs[0].values[dropped] - self.input_zero_point)
        weights = view.constant("weights").take(output.channels, axis=self.kernel_layout.index("O"))
        inner = self.kernel_layout.index("I")
        last = _with_repeated(np.moveaxis(weights, inner, -1), self.weight_zero_point, inputs[0])
        weights = np.ascontiguousarray(np.moveaxis(last, -1, inner))
        op = self.model_copy(update={"in_channels": len(kept), "out_channels": len(output.channels)})
        return Narrowed(op, {**per_channel(view, output), **_with_added(view, added, output), "weights": weights})

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Requantize the sums."""
        return self.requantized(view, self.sums(view, *inputs))

    def sums(self, view: LayerView, *inputs: Array) -> Array:
        """Matrix product over gathered windows, exact in float64 (|sum| < 2^53)."""
        weights = self._ohwi(view)
        zero_point = self.input_zero_point
        windows = np.stack([tap - zero_point for tap in self.taps(view, inputs[0], zero_point)], axis=3)
        n, height, width = windows.shape[:3]
        depth, units = self.in_channels // self.groups, self.out_channels // self.groups
        sums = []
        for group in range(self.groups):
            columns = windows[..., group * depth : (group + 1) * depth].reshape(n * height * width, -1)
            rows = weights[group * units : (group + 1) * units].reshape(units, -1)
            sums.append(columns.astype(np.float64) @ rows.astype(np.float64).T)
        return np.concatenate(sums, axis=1).reshape(n, height, width, -1).astype(np.int64)


class DepthwiseConv2D(Window):
    """DEPTHWISE_CONV_2D: output channel c * depth_multiplier + m reads input channel c.

    Constants as Conv2D, weights in `kernel_layout`. HWC is the reference's order (1, kh, kw, channels_out); OIHW is
    planar: (channels_out, 1, kh, kw).
    """

    op: Literal["depthwise_conv2d"] = "depthwise_conv2d"
    dilation: tuple[int, int]
    depth_multiplier: int
    in_channels: int
    out_channels: int
    input_zero_point: int
    weight_zero_point: int = 0
    kernel_layout: DepthwiseLayout = "HWC"
    rounding: Rounding = "double"

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the output."""
        return out.elements * self.kernel[0] * self.kernel[1]

    def _factors(self, view: LayerView) -> Array:
        """Weights of each tap less their zero point, int64[kh * kw, O]."""
        kept = view.constant("weights")
        weights = (kept[0] if self.kernel_layout == "HWC" else kept[:, 0].transpose(1, 2, 0)).astype(np.int64)
        return np.asarray(weights - self.weight_zero_point).reshape(-1, self.out_channels)

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Range from the positive and the negative weights."""
        low, high = (np.repeat(bound, self.depth_multiplier) for bound in _from_zero_point(inputs[0], self))
        positive, negative = (bound(self._factors(view), 0).sum(axis=0) for bound in (np.maximum, np.minimum))
        return self.range_of_sums(view, positive * low + negative * high, positive * high + negative * low)

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        """Each output channel reads one input channel."""
        if not is_known_by_channel(view):
            return None
        return (np.arange(self.out_channels) // self.depth_multiplier,)

    def alike(self, view: LayerView, inputs: Sequence[Array]) -> Array | None:
        """Channels are alike if inputs, weights and scales are equal."""
        carried = self.carries(view)
        return (
            None if carried is None else labels(inputs[0][carried[0]], self._factors(view).T, *channel_constants(view))
        )

    def narrowed(self, view: LayerView, inputs: Sequence[Kept], output: Kept) -> Narrowed:
        """The layer on the remaining channels."""
        weights = view.constant("weights").take(output.channels, axis=3 if self.kernel_layout == "HWC" else 0)
        sizes = {"in_channels": len(inputs[0].channels), "out_channels": len(output.channels)}
        return Narrowed(self.model_copy(update=sizes), {**per_channel(view, output), "weights": weights})

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Requantize the sums."""
        return self.requantized(view, self.sums(view, *inputs))

    def sums(self, view: LayerView, *inputs: Array) -> Array:
        """Sum of the taps, one by one."""
        factors = self._factors(view)
        image = np.repeat(inputs[0], self.depth_multiplier, axis=3)
        total = np.zeros(view.outputs[0].shape, dtype=np.int64)
        for tap, factor in zip(self.taps(view, image, self.input_zero_point), factors, strict=True):
            total += (tap - self.input_zero_point) * factor
        return total


class FullyConnected(Clamped):
    """FULLY_CONNECTED: y[batch, units] from x[batch, depth].

    Constants: weights (units, depth), bias, multiplier, shift as Conv2D. With `rounding` "steps": steps and step_rows
    instead of multiplier and shift.
    """

    op: Literal["fully_connected"] = "fully_connected"
    batch: int
    depth: int
    units: int
    input_zero_point: int
    weight_zero_point: int = 0
    rounding: Rounding = "single"

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the output."""
        return out.elements * self.depth

    def _by_channel(self, view: LayerView) -> Array | None:
        """Weights less their zero point, int64[units, n, C], for the C channels of the input."""
        channels = channels_of(view.inputs[0])
        if self.depth % channels:
            return None
        weights = view.constant("weights").astype(np.int64) - self.weight_zero_point
        return np.asarray(weights).reshape(self.units, -1, channels)

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange | None:
        """Range from the positive and the negative weights."""
        weights = self._by_channel(view)
        if weights is None:
            return None
        positive, negative = (bound(weights, 0).sum(axis=1) for bound in (np.maximum, np.minimum))
        low, high = inputs[0].least - self.input_zero_point, inputs[0].most - self.input_zero_point
        return self.range_of_sums(view, positive @ low + negative @ high, positive @ high + negative @ low)

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        """(): sums over channels, so any input channel may be removed."""
        return () if is_known_by_channel(view) and self._by_channel(view) is not None else None

    def alike(self, view: LayerView, inputs: Sequence[Array]) -> Array | None:
        """As in Conv2D."""
        return (
            None
            if self.carries(view) is None
            else labels(summed(self.factors(view), inputs[0]), *channel_constants(view))
        )

    def absorbs(self, view: LayerView, value_range: ValueRange) -> Array:
        """Constant channels, and those without weights."""
        return value_range.is_constant | ~self.factors(view).any(axis=(0, 1))

    def factors(self, view: LayerView) -> Array:
        """Weights less their zero point, by input channel."""
        weights = self._by_channel(view)
        assert weights is not None
        return weights

    def narrowed(self, view: LayerView, inputs: Sequence[Kept], output: Kept) -> Narrowed:
        """As in Conv2D."""
        by_channel, dropped = self.factors(view), inputs[0].dropped
        added = by_channel.sum(axis=1)[:, dropped] @ (inputs[0].values[dropped] - self.input_zero_point)
        weights = view.constant("weights").reshape(by_channel.shape)[output.channels]
        weights = _with_repeated(weights, self.weight_zero_point, inputs[0]).reshape(len(output.channels), -1)
        op = self.model_copy(update={"depth": weights.shape[1], "units": len(output.channels)})
        return Narrowed(op, {**per_channel(view, output), **_with_added(view, added, output), "weights": weights})

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Requantize the sums."""
        return self.requantized(view, self.sums(view, *inputs)).reshape(view.outputs[0].shape)

    def sums(self, view: LayerView, *inputs: Array) -> Array:
        """Sums of products, int64[batch, units]."""
        rows = inputs[0].reshape(self.batch, self.depth).astype(np.float64) - self.input_zero_point
        weights = view.constant("weights").astype(np.float64) - self.weight_zero_point
        return (rows @ weights.T).astype(np.int64)
