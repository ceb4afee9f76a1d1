"""Models of one operator, `model: {op: conv2d, ...}` in recipes, from its declaration.

Weights are seeded. Scales follow from uniformly random inputs, which the simulate stage uses: an accumulator of `depth`
products has the deviation sqrt(depth) * rms(input) * rms(weight), and the output's range is +-4 deviations. For
element-wise operators it is the range of the result.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stages.ir.arithmetic.exact import random_bytes, random_weights
from stages.ir.arrays import Array
from stages.ir.model_info import FileTensor
from stages.support.lazy import np

Quant = tuple[float, int]  # scale and zero point
# Deviation of results in real units, unless `output` is set; relu6 then clips a few of them.
_DEVIATION = 2.0
_DEVIATIONS_IN_RANGE = 8.0
_INPUT = {"int8": (0.05, -3), "uint8": (0.05, 125), "int16": (0.0002, 0)}
_OTHER = {"int8": (0.03, 11), "uint8": (0.03, 139), "int16": (0.00012, 0)}


class SingleOperatorBuilder:
    """Builder of the model with its first input; a declaration's `build` appends to it.

    spec       the recipe's options, a stages.ir.models.spec.OpModel
    builder    the file, a stages.ir.models.builder.ModelBuilder
    shape      of the first input, with the batch
    quantized  whether the tensors are quantized; else float32
    quant      of the first input, None for float32
    """

    def __init__(self, spec: Any, builder: Any) -> None:
        self.spec = spec
        self.builder = builder
        self.shape: tuple[int, ...] = (spec.batch, *spec.shape)
        self.quantized: bool = spec.dtype in _INPUT
        self.quant: Quant | None = self._chosen(spec.input, _INPUT)

    def second(self) -> Quant | None:
        """Return the quantization of a second operand."""
        return self._chosen(self.spec.other, _OTHER)

    def _chosen(self, chosen: Any, defaults: Mapping[str, Quant]) -> Quant | None:
        if not self.quantized:
            return None
        return (chosen.scale, chosen.zero_point) if chosen else defaults[self.spec.dtype]

    def range(self, quant: Quant, dtype: str = "") -> tuple[float, float]:
        """Return the real values of the lowest and the highest code of a quantized tensor."""
        limits = np.iinfo(dtype or self.spec.dtype)
        return (int(limits.min) - quant[1]) * quant[0], (int(limits.max) - quant[1]) * quant[0]

    def output(self, low: float, high: float, dtype: str = "") -> Quant | None:
        """Return the recipe's output quantization, else one for the range.

        The range is extended to contain 0.
        """
        chosen = self.spec.output
        if chosen is not None:
            return chosen.scale, chosen.zero_point
        if not self.quantized and not dtype:
            return None
        limits = np.iinfo(dtype or self.spec.dtype)
        low, high = min(low, 0.0), max(high, 0.0)
        if limits.max > 255:  # 16 bits are symmetric
            return float(np.float32(max(-low, high) / int(limits.max))), 0
        scale = float(np.float32((high - low) / 255))
        return scale, int(np.clip(round(limits.min - low / scale), limits.min, limits.max))

    def mean_output(self, axes: tuple[int, ...]) -> Quant | None:
        """Return the output quantization of a mean.

        The mean of n uniform values deviates by range / sqrt(12 n).
        """
        if not self.quant:
            return None
        low, high = self.range(self.quant)
        rank = len(self.shape)
        count = math.prod(self.shape[axis % rank] for axis in {axis % rank for axis in axes})
        middle, spread = (low + high) / 2, (high - low) / math.sqrt(12 * count) * _DEVIATIONS_IN_RANGE / 2
        return self.output(max(low, middle - spread), min(high, middle + spread))

    def weighted(
        self, shape: tuple[int, ...], axis: int, depth: int, per_channel: bool
    ) -> tuple[Array, Array | None, dict[str, Any]]:
        """Return weights, bias and ModelBuilder options of an operator that sums `depth` products.

        axis  axis of the output channels in `shape`
        """
        spec = self.spec
        weights, scale, zero_point, units, out = self._weights(shape, axis, depth, per_channel)
        bias = self.bias(shape[axis], units) if spec.bias else None
        options: dict[str, Any] = {"activation": spec.activation, "out": out, "name": spec.op}
        if self.quantized:
            options |= {"weight_scale": scale, "weight_zero_point": zero_point}
            if spec.weights in ("int4", "int2"):
                options["weight_dtype"] = spec.weights
        return weights, bias, options

    def _weights(
        self, shape: tuple[int, ...], axis: int, depth: int, per_channel: bool
    ) -> tuple[Array, Array, int, Array, Quant | None]:
        """Return weights, scales, zero point, real value of an accumulator, output quantization.

        Stored float32 weights are already multiplied by their scales.
        """
        spec = self.spec
        per_channel = per_channel and spec.dtype != "uint8"
        weights = random_weights(spec.seed, "weights", shape, axis if per_channel else None, spec.weight_bits)
        low, high = self.range(self.quant) if self.quant else (-1.0, 1.0)
        # Of a uniform distribution: variance plus squared mean.
        rms = math.sqrt((high - low) ** 2 / 12 + ((high + low) / 2) ** 2)
        target = _DEVIATION
        if spec.output is not None:
            target = spec.output.scale * (65535 if spec.dtype == "int16" else 255) / _DEVIATIONS_IN_RANGE
        weight_rms = math.sqrt(int(np.square(weights, dtype=np.int64).sum()) / weights.size)
        base = target / (math.sqrt(depth) * rms * weight_rms)
        count = shape[axis] if per_channel else 1
        scale = (base * (0.75 + random_bytes(spec.seed, "scales", count) / 512.0)).astype(np.float32)
        limit = target * _DEVIATIONS_IN_RANGE / 2
        out = self.output(0.0 if spec.activation != "none" else -limit, 6.0 if spec.activation == "relu6" else limit)
        if not self.quant:
            broadcast = scale.reshape([-1 if i == axis and per_channel else 1 for i in range(len(shape))])
            return (weights * broadcast).astype(np.float32), scale, 0, np.broadcast_to(scale, shape[axis]), None
        units = np.broadcast_to(scale.astype(np.float64) * self.quant[0], shape[axis])
        if spec.dtype == "uint8":
            zero_point = 120 + int(random_bytes(spec.seed, "zero_point", 1)[0]) // 16
            stored = np.clip(weights.astype(np.int16) + zero_point, 0, 255).astype(np.uint8)
            return stored, scale, zero_point, units, out
        return weights, scale, 0, units, out

    def bias(self, channels: int, units: Array) -> Array:
        """Return biases within half a deviation of the results.

        units  real value of one, for each channel
        """
        real = (random_bytes(self.spec.seed, "bias", channels) / 128.0 - 1.0) * _DEVIATION / 2
        if not self.quantized:
            return real.astype(np.float32)
        codes: Array = np.rint(real / units).astype(np.int64 if self.spec.dtype == "int16" else np.int32)
        return codes

    def constant(self, shape: tuple[int, ...]) -> Array:
        """Return a random constant of the input's type."""
        if self.spec.dtype == "int16":
            return random_bytes(self.spec.seed, "other", 2 * math.prod(shape)).view("<i2").reshape(shape)
        raw = random_bytes(self.spec.seed, "other", math.prod(shape)).reshape(shape)
        if not self.quantized:
            return (raw / np.float32(128) - np.float32(1)).astype(np.float32)
        return raw.astype(self.spec.dtype)


@dataclass(frozen=True)
class SingleOperatorModel:
    """A model of this operator alone.

    build     appends the operator after the first input, and returns its outputs
    options   its options beside the common ones, fields of stages.ir.models.spec.OpModel
    required  its mandatory options
    """

    build: Callable[[SingleOperatorBuilder, FileTensor], FileTensor | list[FileTensor]]
    options: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
