"""Build networks with seeded weights, calibrated layer by layer, as int8, uint8 or float32.

Each layer's weights are random int8 values. A few images pass through the network as it is built, in exact integer
arithmetic (`stages.ir.arithmetic.exact`). Each layer's accumulators give, as if batch normalization were folded in,

    weight_scale[c] = gamma[c] / (input_scale * deviation(accumulator[c]))
    bias[c]         = beta[c] - gamma[c] * mean(accumulator[c]) / deviation(accumulator[c])

with beta and gamma random near 0.25 and 1. So every channel's result has about the same spread at any depth: no layer
dies, and the ranges fit other images too. This int8 network is the master. The uint8 file has the same activation
ranges and one weight scale per tensor, as networks published since 2018 have; the float32 file has the dequantized
weights. The bytes depend on topology, dtype, seed and weight bits, not on the machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.ir.arithmetic import exact
from stages.ir.arrays import Array
from stages.ir.models.builder import ModelBuilder, Tensor

Pair = tuple[int, int]
Range = tuple[float, float]

RELU6_RANGE = (0.0, 6.0)
RANGE_MARGIN = 0.125  # widening of observed ranges, so that other images saturate rarely
THIN_RANGE_MARGIN = 0.25  # the same for few observed values per channel
_MEAN_ABSOLUTE_TO_DEVIATION = 1.2533141373155003  # sqrt(pi / 2), for a normal distribution
_FEW_SAMPLES = 64  # below this many values per channel, all channels share one estimate of the deviation
_BLOCKS = (1, 8, 2, 4)  # block sizes of the calibration images, in pixels; 1 is noise


@dataclass(frozen=True)
class Value:
    """A tensor under construction, with its values for the calibration images.

    tensor   its place in the file
    centred  quantized values minus the zero point, integers in float32, [images, ...]
    scale    real value of one unit
    """

    tensor: Tensor
    centred: Array
    scale: float


class Network:
    """The layers of a network; each method appends one and returns its result.

    `out_range` sets a result's range instead of observing it: (0, 6) after relu6, and for tensors that need equal
    quantization because they are concatenated.
    """

    def __init__(self, dtype: str, seed: int, bits: int = 8, *, images: int = 4) -> None:
        """Begin an empty network.

        images  number of calibration images; networks with few values per layer need more
        """
        self.dtype = dtype
        self.seed = seed
        self.bits = bits
        self.images = images
        self.builder = ModelBuilder()

    def input(self, name: str, shape: Sequence[int], value_range: Range) -> Value:
        """Add the input of `shape` (without batch) and its calibration images.

        The images are noise in blocks of several sizes.
        """
        quant = _quantization(value_range)
        tensor = self.builder.input(name, (1, *shape), self.dtype, *self._quant(quant) or (None,))
        size = int(np.prod(shape))
        noise = exact.random_bytes(self.seed, name, 2 * self.images * size).reshape(2, self.images, *shape)
        images = np.empty((self.images, *shape), dtype=np.int32)
        for index, (fine, coarse) in enumerate(zip(*noise.astype(np.int32), strict=True)):
            for axis in range(max(1, len(shape) - 1)):
                coarse = np.take(coarse, np.arange(shape[axis]) // _BLOCKS[index % len(_BLOCKS)], axis=axis)
            images[index] = (fine if index % len(_BLOCKS) == 0 else (3 * coarse + fine) // 4) - 128
        return Value(tensor, (images - quant[1]).astype(np.float32), quant[0])

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: Pair = (1, 1),
        stride: int = 1,
        *,
        padding: str = "same",
        activation: str = "relu",
        out_range: Range | None = None,
        name: str,
    ) -> Value:
        """CONV_2D with bias and a fused activation."""
        weights = exact.random_weights(self.seed, name, (channels, *kernel, x.tensor.shape[3]), 0, self.bits)
        sums = exact.conv2d(x.centred, weights, (stride, stride), padding)
        options = {"stride": (stride, stride), "padding": padding}
        return self._weighted(self.builder.conv2d, x, weights, 0, sums, activation, out_range, name, options)

    def depthwise(
        self,
        x: Value,
        kernel: Pair = (3, 3),
        stride: int = 1,
        *,
        padding: str = "same",
        activation: str = "relu",
        name: str,
    ) -> Value:
        """DEPTHWISE_CONV_2D, multiplier 1, with bias and a fused activation."""
        weights = exact.random_weights(self.seed, name, (1, *kernel, x.tensor.shape[3]), 3, self.bits)
        sums = exact.depthwise_conv2d(x.centred, weights, (stride, stride), padding)
        options = {"stride": (stride, stride), "padding": padding}
        return self._weighted(self.builder.depthwise_conv2d, x, weights, 3, sums, activation, None, name, options)

    def fully_connected(self, x: Value, units: int, *, activation: str = "none", name: str) -> Value:
        """FULLY_CONNECTED with bias and one weight scale, as TFLite's converter gives it."""
        weights = exact.random_weights(self.seed, name, (units, x.tensor.shape[-1]), None, self.bits)
        sums = exact.matmul(x.centred, weights)
        return self._weighted(self.builder.fully_connected, x, weights, None, sums, activation, None, name, {})

    def add(self, a: Value, b: Value, *, activation: str = "none", name: str) -> Value:
        """ADD of two tensors of one shape."""
        real = a.centred.astype(np.float64) * a.scale + b.centred.astype(np.float64) * b.scale
        centred, quant, fused = self._requantize(real, activation, None)
        tensor = self.builder.add(a.tensor, b.tensor, activation=fused, out=self._quant(quant), name=name)
        return Value(tensor, centred, quant[0])

    def avg_pool(
        self, x: Value, kernel: Pair, stride: int | Pair | None = None, *, padding: str = "valid", name: str
    ) -> Value:
        """AVERAGE_POOL_2D; keeps the quantization."""
        steps = _pair(stride, kernel)
        tensor = self.builder.avg_pool2d(x.tensor, kernel, steps, padding=padding, name=name)
        return Value(tensor, exact.avg_pool2d(x.centred, kernel, steps, padding), x.scale)

    def global_avg_pool(self, x: Value, *, stride: int | None = None, name: str) -> Value:
        """AVERAGE_POOL_2D over the whole image; `stride` only sets the option, there is one window."""
        _, height, width, _ = x.tensor.shape
        return self.avg_pool(x, (height, width), stride, name=name)

    def max_pool(
        self, x: Value, kernel: Pair, stride: int | Pair | None = None, *, padding: str = "valid", name: str
    ) -> Value:
        """MAX_POOL_2D; keeps the quantization."""
        steps = _pair(stride, kernel)
        tensor = self.builder.max_pool2d(x.tensor, kernel, steps, padding=padding, name=name)
        return Value(tensor, exact.max_pool2d(x.centred, kernel, steps, padding), x.scale)

    def concat(self, values: Sequence[Value], *, name: str) -> Value:
        """CONCATENATION over channels of values with equal quantization (use one `out_range`)."""
        if len({(value.scale, value.tensor.zero_point) for value in values}) != 1:
            raise ValueError(f"{name}: the concatenated values differ in quantization")
        tensor = self.builder.concatenation([value.tensor for value in values], 3, name=name)
        return Value(tensor, np.concatenate([value.centred for value in values], axis=3), values[0].scale)

    def flatten(self, x: Value, *, name: str) -> Value:
        """RESHAPE to [1, features]."""
        size = int(np.prod(x.tensor.shape))
        return Value(
            self.builder.reshape(x.tensor, (1, size), name=name), x.centred.reshape(self.images, size), x.scale
        )

    def softmax(self, x: Value, *, name: str) -> Value:
        """SOFTMAX at the end of a network; its values are not computed."""
        return Value(self.builder.softmax(x.tensor, name=name), np.empty(0), 1 / 256)

    def build(self, *outputs: Value) -> bytes:
        """Return the TFLite file."""
        self.builder.output(*(value.tensor for value in outputs))
        return self.builder.build()

    # ---- shared ------------------------------------------------------------------------------------------------

    def _weighted(
        self,
        emit: Any,
        x: Value,
        weights: Array,
        axis: int | None,
        sums: Array,
        activation: str,
        out_range: Range | None,
        name: str,
        options: dict[str, Any],
    ) -> Value:
        """Emit a layer; fold the normalization of `sums` (accumulators) into scale and bias."""
        scale, bias = self._normalization(x, sums, per_channel=axis is not None, name=name)
        units = x.scale * scale.astype(np.float64)
        real = (sums + bias) * units
        centred, quant, fused = self._requantize(real, activation, out_range)
        if self.dtype == "float32":
            shape = [-1 if axis == i else 1 for i in range(weights.ndim)]
            broadcast = scale.reshape(shape) if axis is not None else scale
            stored = (weights * broadcast).astype(np.float32)
            tensor = emit(x.tensor, stored, (bias * units).astype(np.float32), activation=fused, name=name, **options)
        elif self.dtype == "uint8":
            stored, weight_scale, zero_point = _asymmetric(weights, scale, axis)
            rounded = np.rint(bias * units / (x.scale * weight_scale)).astype(np.int32)
            options = options | {"weight_scale": weight_scale, "weight_zero_point": zero_point}
            tensor = emit(x.tensor, stored, rounded, activation=fused, out=self._quant(quant), name=name, **options)
        else:
            options = options | {"weight_scale": scale}
            tensor = emit(
                x.tensor, weights, bias.astype(np.int32), activation=fused, out=self._quant(quant), name=name, **options
            )
        return Value(tensor, centred, quant[0])

    def _normalization(self, x: Value, sums: Array, *, per_channel: bool, name: str) -> tuple[Array, Array]:
        """Return weight scales (float32) and biases (integers in float64, in accumulator units).

        One scale per channel, or one.
        """
        rows = sums.reshape(-1, sums.shape[-1])
        channels = rows.shape[1]
        mean = rows.sum(axis=0) / len(rows)
        # Rounded: the sum below is then of integers, and exact.
        spread = np.abs(rows - np.rint(mean)).sum(axis=0)
        if len(rows) < _FEW_SAMPLES or not per_channel:
            spread = np.full(channels, np.rint(spread.mean()))
        # A channel that hardly varied on these images may vary on others: limit its scale.
        spread = np.maximum(spread, np.maximum(np.median(spread) / 4, len(rows)))
        deviation = spread * (_MEAN_ABSOLUTE_TO_DEVIATION / len(rows))
        draw = exact.random_bytes(self.seed, f"{name}/normalization", 2 * channels).reshape(2, channels) / 256.0
        beta = draw[0] - 0.25
        gamma = (0.75 + draw[1] / 2) if per_channel else np.ones(channels)
        scale = (gamma / (x.scale * deviation)).astype(np.float32)
        bias = np.rint(beta / (x.scale * scale.astype(np.float64)) - mean)
        return (scale if per_channel else scale[:1]), bias

    def _requantize(
        self, real: Array, activation: str, out_range: Range | None
    ) -> tuple[Array, tuple[float, int], str]:
        """Apply the activation, choose the range, quantize.

        Returns centred integers, (scale, zero point), and the fused activation. The 8-bit range of relu6 is 0 to 6
        exactly; uint8 files clamp by the range alone, as published ones do.
        """
        fused = activation
        if activation == "relu6":
            out_range = RELU6_RANGE
            fused = "none" if self.dtype == "uint8" else "relu6"
        low = 0.0 if activation != "none" else float(real.min())
        margin, samples = RANGE_MARGIN, real.size // real.shape[-1]
        if samples < _FEW_SAMPLES:
            # The subtracted mean is that of these samples: others deviate more.
            margin = (1 + THIN_RANGE_MARGIN) * math.sqrt((samples + 1) / (samples - 1)) - 1
        quant = _quantization(out_range or (low, float(real.max())), margin=0.0 if out_range else margin)
        limits = np.array([-128, 127]) - quant[1]
        if activation != "none":
            limits[0] = max(limits[0], 0)
        return np.clip(np.rint(real / quant[0]), *limits).astype(np.float32), quant, fused

    def _quant(self, quant: tuple[float, int]) -> tuple[float, int] | None:
        """Return an int8 quantization in the file's dtype."""
        if self.dtype == "float32":
            return None
        return quant[0], quant[1] + (128 if self.dtype == "uint8" else 0)


def _quantization(value_range: Range, margin: float = 0.0) -> tuple[float, int]:
    """Return scale and int8 zero point of a range, extended to 0 and widened by `margin`."""
    low = min(0.0, value_range[0] * (1 + margin))
    high = max(0.0, value_range[1] * (1 + margin))
    scale = float(np.float32(max(high - low, 1e-6) / 255))
    return scale, int(np.clip(np.rint(-128 - low / scale), -128, 127))


def _asymmetric(weights: Array, scale: Array, axis: int | None) -> tuple[Array, float, int]:
    """Return weights as uint8 in 1..255 with one scale and zero point.

    Quantization-aware training gives such weights.
    """
    shape = [-1 if axis == i else 1 for i in range(weights.ndim)]
    real = weights * (scale.astype(np.float64).reshape(shape) if axis is not None else float(scale[0]))
    low, high = min(0.0, float(real.min())), max(0.0, float(real.max()))
    step = float(np.float32((high - low) / 254))
    zero_point = int(np.clip(np.rint(1 - low / step), 1, 255))
    return np.clip(np.rint(real / step) + zero_point, 1, 255).astype(np.uint8), step, zero_point


def _pair(stride: int | Pair | None, kernel: Pair) -> Pair:
    if stride is None:
        return kernel
    return (stride, stride) if isinstance(stride, int) else stride
