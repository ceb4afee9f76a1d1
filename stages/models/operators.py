"""One-operator models (`model: {op: conv2d, ...}`) as TFLite files.

Weights are seeded, and scales follow from the statistics of uniformly random inputs, which is what the simulate stage
feeds: an accumulator of `depth` products has the deviation sqrt(depth) * rms(input) * rms(weight), and the output's
range is +-4 deviations. For element-wise operators the range is that of the result's extremes.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.base import StageError
from stages.models.builder import BuildError, ModelBuilder, Tensor
from stages.models.exact import random_bytes, random_weights
from stages.models.spec import OpModel, Quantization

Quant = tuple[float, int]

# The deviation of results in real units, unless `output` is given; relu6 then clips a few of them.
_DEVIATION = 2.0
_DEVIATIONS_IN_RANGE = 8.0
_INPUT = {"int8": Quantization(scale=0.05, zero_point=-3), "uint8": Quantization(scale=0.05, zero_point=125)}
_OTHER = {"int8": Quantization(scale=0.03, zero_point=11), "uint8": Quantization(scale=0.03, zero_point=139)}


def build(spec: OpModel) -> bytes:
    """The TFLite file of a one-operator model. StageError when shape and options contradict each other."""
    try:
        return _Operator(spec).build()
    except BuildError as error:
        raise StageError(f"model op {spec.op!r}: {error}", at=("model",)) from None


class _Operator:
    """Builds the graph of one spec; `_<family>` methods return the outputs."""

    def __init__(self, spec: OpModel) -> None:
        self.spec = spec
        self.builder = ModelBuilder()
        self.shape = (spec.batch, *spec.shape)
        self.quantized = spec.dtype != "float32"
        self.quant = self._chosen(spec.input, _INPUT)

    def build(self) -> bytes:
        spec, b = self.spec, self.builder
        x = b.input("x", self.shape, spec.dtype, *(self.quant or (None,)))
        families = {
            "conv2d": self._convolution,
            "depthwise_conv2d": self._convolution,
            "fully_connected": self._convolution,
            "add": self._binary,
            "sub": self._binary,
            "mul": self._binary,
            "concatenation": self._concatenation,
            "quantize": self._quantize,
        }
        family = families.get(spec.op, self._unary)
        y = family(x)
        b.output(*(y if isinstance(y, list) else [y]))
        return b.build()

    # ---- families ----------------------------------------------------------------------------------------------

    def _convolution(self, x: Tensor) -> Tensor:
        spec = self.spec
        channels = x.shape[-1]
        if spec.op == "conv2d":
            shape: tuple[int, ...] = (spec.out_channels or 1, *spec.kernel, channels // spec.groups)
            axis, depth = 0, math.prod(shape[1:])
        elif spec.op == "depthwise_conv2d":
            shape = (1, *spec.kernel, channels * spec.depth_multiplier)
            axis, depth = 3, math.prod(spec.kernel)
        else:
            shape = (spec.out_channels or 1, channels)
            axis, depth = 0, channels
        # TFLite's converter gives fully connected weights one scale; per channel only when asked for.
        per_channel = spec.per_channel and (spec.op != "fully_connected" or "per_channel" in spec.model_fields_set)
        weights, scale, zero_point, units, out = self._weights(shape, axis, depth, per_channel)
        bias = self._bias(shape[axis], units) if spec.bias else None
        options: dict[str, Any] = {"activation": spec.activation, "out": out, "name": spec.op}
        if self.quantized:
            options |= {"weight_scale": scale, "weight_zero_point": zero_point}
        if spec.op == "fully_connected":
            return self.builder.fully_connected(x, weights, bias, **options)
        options |= {"stride": spec.stride, "dilation": spec.dilation, "padding": spec.padding}
        build = self.builder.conv2d if spec.op == "conv2d" else self.builder.depthwise_conv2d
        return build(x, weights, bias, **options)

    def _binary(self, x: Tensor) -> Tensor:
        spec, b = self.spec, self.builder
        quant = self._chosen(spec.other, _OTHER)
        shape = (spec.batch, *(spec.other_shape or spec.shape))
        if spec.constant:
            shape = shape[1:] if spec.other_shape else shape  # a constant broadcasts over the batch
            other = b.constant("other", self._constant(shape), *(quant or (None,)))
        else:
            other = b.input("other", shape, spec.dtype, *(quant or (None,)))
        out = None
        if self.quant and quant:
            left, right = self._range(self.quant), self._range(quant)
            combine = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[spec.op]
            corners = [combine(p, q) for p in left for q in right]
            out = self._output(min(corners), max(corners))
        made: Tensor = getattr(b, spec.op)(x, other, activation=spec.activation, out=out, name=spec.op)
        return made

    def _concatenation(self, x: Tensor) -> Tensor:
        spec, b = self.spec, self.builder
        others = [b.input(f"x_{i}", self.shape, spec.dtype, *(self.quant or (None,))) for i in range(1, spec.parts)]
        return b.concatenation([x, *others], spec.axis, name=spec.op)

    def _quantize(self, x: Tensor) -> Tensor:
        spec = self.spec
        dtype = spec.to or (spec.dtype if self.quantized else "int8")
        if self.quant:
            # A quarter wider, so that the operator has something to do.
            low, high = (1.25 * end for end in self._range(self.quant))
        else:
            low, high = -1.0, 1.0  # what random float32 inputs span
        return self.builder.quantize(x, dtype, self._output(low, high, dtype) or (1.0, 0), name=spec.op)

    def _unary(self, x: Tensor) -> Tensor | list[Tensor]:
        """Operators with one input and at most a few options."""
        spec, b = self.spec, self.builder
        match spec.op:
            case "avg_pool2d" | "max_pool2d":
                pool = b.avg_pool2d if spec.op == "avg_pool2d" else b.max_pool2d
                return pool(x, spec.kernel, spec.stride, padding=spec.padding, activation=spec.activation, name=spec.op)
            case "mean":
                axes = spec.axes or ()
                return b.mean(x, axes, keep_dims=spec.keep_dims, out=self._mean_output(axes), name=spec.op)
            case "softmax":
                return b.softmax(x, spec.beta)
            case "logistic" | "tanh" | "dequantize":
                made: Tensor = getattr(b, spec.op)(x)
                return made
            case "relu" | "relu6" | "hard_swish" | "leaky_relu":
                return self._activation(x)
            case "pad":
                return b.pad(x, spec.pads or ())
            case "reshape":
                return b.reshape(x, spec.new_shape or ())
            case "squeeze":
                return b.squeeze(x, spec.axes or ())
            case "transpose":
                return b.transpose(x, spec.permutation or ())
            case "slice":
                return b.slice(x, spec.begin or (), spec.size or ())
            case "strided_slice":
                return b.strided_slice(x, spec.begin or (), spec.end or (), spec.strides)
            case "split":
                return b.split(x, spec.parts, spec.axis)
            case "resize_nearest_neighbor":
                size = spec.size or ()
                if len(size) != 2:
                    raise BuildError(f"size is [height, width], got {list(size)}")
                corners, centers = spec.align_corners, spec.half_pixel_centers
                return b.resize_nearest_neighbor(
                    x, (size[0], size[1]), align_corners=corners, half_pixel_centers=centers
                )
        raise BuildError(f"no builder for {spec.op}")

    def _activation(self, x: Tensor) -> Tensor:
        spec, b = self.spec, self.builder
        out = None
        if self.quant:
            low, high = self._range(self.quant)
            lows = {"relu": 0.0, "relu6": 0.0, "hard_swish": -0.375, "leaky_relu": min(0.0, spec.alpha * low)}
            # hard_swish is lowest at x = -1.5, and never above its input
            out = self._output(lows[spec.op], min(high, 6.0) if spec.op == "relu6" else high)
        if spec.op == "leaky_relu":
            return b.leaky_relu(x, spec.alpha, out=out)
        made: Tensor = getattr(b, spec.op)(x, out=out)
        return made

    # ---- numbers -----------------------------------------------------------------------------------------------

    def _chosen(self, given: Quantization | None, defaults: dict[str, Quantization]) -> Quant | None:
        if not self.quantized:
            return None
        quantization = given or defaults[self.spec.dtype]
        return quantization.scale, quantization.zero_point

    def _range(self, quant: Quant, dtype: str = "") -> tuple[float, float]:
        """The real values of a quantized tensor's lowest and highest codes."""
        limits = np.iinfo(dtype or self.spec.dtype)
        return (int(limits.min) - quant[1]) * quant[0], (int(limits.max) - quant[1]) * quant[0]

    def _output(self, low: float, high: float, dtype: str = "") -> Quant | None:
        """The output quantization the user gave, else one for the range (extended to contain 0)."""
        given = self.spec.output
        if given is not None:
            return given.scale, given.zero_point
        if not self.quantized and not dtype:
            return None
        limits = np.iinfo(dtype or self.spec.dtype)
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(np.float32((high - low) / 255))
        return scale, int(np.clip(round(limits.min - low / scale), limits.min, limits.max))

    def _mean_output(self, axes: tuple[int, ...]) -> Quant | None:
        """The mean of n uniform values deviates by range / sqrt(12 n)."""
        if not self.quant:
            return None
        low, high = self._range(self.quant)
        rank = len(self.shape)
        count = math.prod(self.shape[axis % rank] for axis in {axis % rank for axis in axes})
        middle, spread = (low + high) / 2, (high - low) / math.sqrt(12 * count) * _DEVIATIONS_IN_RANGE / 2
        return self._output(max(low, middle - spread), min(high, middle + spread))

    def _weights(
        self, shape: tuple[int, ...], axis: int, depth: int, per_channel: bool
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], int, npt.NDArray[np.float64], Quant | None]:
        """Weights as stored, their scales and zero point, the real value of one accumulator unit, the output's quant.

        For float32 the stored weights are already multiplied by their scales.
        """
        spec = self.spec
        per_channel = per_channel and spec.dtype != "uint8"
        weights = random_weights(spec.seed, "weights", shape, axis if per_channel else None)
        low, high = self._range(self.quant) if self.quant else (-1.0, 1.0)
        # Of a uniform distribution: variance plus squared mean.
        rms = math.sqrt((high - low) ** 2 / 12 + ((high + low) / 2) ** 2)
        target = _DEVIATION
        if spec.output is not None:
            target = spec.output.scale * 255 / _DEVIATIONS_IN_RANGE
        weight_rms = math.sqrt(int(np.square(weights, dtype=np.int64).sum()) / weights.size)
        base = target / (math.sqrt(depth) * rms * weight_rms)
        count = shape[axis] if per_channel else 1
        scale = (base * (0.75 + random_bytes(spec.seed, "scales", count) / 512.0)).astype(np.float32)
        reach = target * _DEVIATIONS_IN_RANGE / 2
        out = self._output(0.0 if spec.activation != "none" else -reach, 6.0 if spec.activation == "relu6" else reach)
        if not self.quant:
            broadcast = scale.reshape([-1 if i == axis and per_channel else 1 for i in range(len(shape))])
            return (weights * broadcast).astype(np.float32), scale, 0, np.broadcast_to(scale, shape[axis]), None
        units = np.broadcast_to(scale.astype(np.float64) * self.quant[0], shape[axis])
        if spec.dtype == "uint8":
            zero_point = 120 + int(random_bytes(spec.seed, "zero_point", 1)[0]) // 16
            stored = np.clip(weights.astype(np.int16) + zero_point, 0, 255).astype(np.uint8)
            return stored, scale, zero_point, units, out
        return weights, scale, 0, units, out

    def _bias(self, channels: int, units: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Biases within half a deviation of the results."""
        real = (random_bytes(self.spec.seed, "bias", channels) / 128.0 - 1.0) * _DEVIATION / 2
        if not self.quantized:
            return real.astype(np.float32)
        codes: npt.NDArray[Any] = np.rint(real / units).astype(np.int32)
        return codes

    def _constant(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        raw = random_bytes(self.spec.seed, "other", math.prod(shape)).reshape(shape)
        if not self.quantized:
            return (raw / np.float32(128) - np.float32(1)).astype(np.float32)
        return raw.astype(self.spec.dtype)
