"""Build small TFLite models: one method per operator, with checked shapes and types.

    from stages.ir.models.builder import ModelBuilder

    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 16), "int8", 0.05, -3)
    w = rng.integers(-127, 128, (32, 3, 3, 16), dtype=np.int8)          # OHWI
    bias = rng.integers(-1000, 1000, 32, dtype=np.int32)
    y = b.conv2d(x, w, bias, weight_scale=[0.01] * 32, stride=(2, 2), padding="same",
                 activation="relu", out=(0.1, -128))
    y = b.max_pool2d(y, (2, 2), (2, 2))                                 # out=None: quantized like its input
    b.output(y)
    data: bytes = b.build()

Everywhere: `out=(scale, zero_point)` quantizes the result (None: as the first input; float32 has none); images are
NHWC; `padding` is "same" or "valid" as TensorFlow defines them (use `pad` for explicit amounts); `activation` is
"none", "relu", "relu6" or "relu_n1_to_1"; `name` names the result tensor, which is the layer's name in reports.
Wrong shapes and types raise BuildError.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stages.ir.arrays import Array
from stages.ir.models.builder_lstm import LstmOperators
from stages.ir.models.builder_shapes import ShapeOperators
from stages.ir.models.stated_shapes import stated_shapes
from stages.ir.models.tflite_writer import BuildError, Tensor, int32_array
from stages.ir.operators.declaration import CUSTOM
from stages.ir.operators.table import OPERATORS

__all__ = ["BuildError", "ModelBuilder", "Tensor"]
Pair = tuple[int, int]
Quant = tuple[float, int]
Scale = float | Sequence[float] | Array

ACTIVATIONS = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}
PADDINGS = {"same": 0, "valid": 1}


class ModelBuilder(LstmOperators, ShapeOperators):
    """Builds a TFLite model of one graph; see the module's docstring."""

    # ---- convolution and matrix product ------------------------------------------------------------------------

    def conv2d(
        self,
        x: Tensor,
        weights: Array,
        bias: Array | None = None,
        *,
        weight_scale: Scale | None = None,
        weight_zero_point: int = 0,
        weight_dtype: str = "",
        stride: Pair = (1, 1),
        dilation: Pair = (1, 1),
        padding: str = "same",
        activation: str = "none",
        out: Quant | None = None,
        name: str = "conv2d",
    ) -> Tensor:
        """CONV_2D. weights OHWI, bias [O] (int32, for 16 bits int64; default: zeros).

        weight_scale: one value, or one per output channel. weight_dtype: "int4" or "int2" stores int8 weights in these
        types. Fewer input channels in `weights` than in `x` is a grouped convolution: x.C = groups * weights.I.
        """
        options = _window(name, stride, padding, activation, dilation)
        bias = bias if bias is not None else _no_bias(x, weights.shape[0])
        parameters = self._parameters(name, x, weights, bias, (weight_scale, weight_zero_point), 0, weight_dtype)
        return self.emit("CONV_2D", [x, *parameters], None, out, name, "Conv2DOptions", options)

    def depthwise_conv2d(
        self,
        x: Tensor,
        weights: Array,
        bias: Array | None = None,
        *,
        weight_scale: Scale | None = None,
        weight_zero_point: int = 0,
        weight_dtype: str = "",
        stride: Pair = (1, 1),
        dilation: Pair = (1, 1),
        padding: str = "same",
        activation: str = "none",
        out: Quant | None = None,
        name: str = "depthwise_conv2d",
    ) -> Tensor:
        """DEPTHWISE_CONV_2D. weights [1, H, W, C * multiplier]; bias as in `conv2d`.

        weight_scale: one value, or one per last axis.
        """
        options = _window(name, stride, padding, activation, dilation)
        if weights.ndim != 4 or len(x.shape) != 4:
            raise BuildError(f"{name}: weights {weights.shape} (1HWC) do not fit the input {x.shape} (NHWC)")
        options["depthMultiplier"] = weights.shape[3] // x.shape[3]
        bias = bias if bias is not None else _no_bias(x, weights.shape[3])
        parameters = self._parameters(name, x, weights, bias, (weight_scale, weight_zero_point), 3, weight_dtype)
        return self.emit("DEPTHWISE_CONV_2D", [x, *parameters], None, out, name, "DepthwiseConv2DOptions", options)

    def transpose_conv(
        self,
        x: Tensor,
        weights: Array,
        bias: Array | None = None,
        *,
        shape: Sequence[int] | Array,
        weight_scale: Scale | None = None,
        weight_zero_point: int = 0,
        weight_dtype: str = "",
        stride: Pair = (1, 1),
        padding: str = "same",
        activation: str = "none",
        out: Quant | None = None,
        name: str = "transpose_conv",
    ) -> Tensor:
        """TRANSPOSE_CONV. weights OHWI, bias [O]; `shape` is the result's, NHWC."""
        options = _steps(name, stride, padding, activation)
        parameters = self._parameters(name, x, weights, bias, (weight_scale, weight_zero_point), 0, weight_dtype)
        shape_tensor = self.constant(f"{name}/shape", int32_array(shape))
        inputs = [shape_tensor, parameters[0], x, *parameters[1:]]
        quant = out or (x.scale and (x.scale[0], x.zero_point[0]))
        (result,) = stated_shapes("TRANSPOSE_CONV", name, inputs, options)
        output = self.tensor(name, result, x.dtype, *(quant or ()))
        version = 3 if bias is not None else _version("TRANSPOSE_CONV", x.dtype)
        self.operator("TRANSPOSE_CONV", inputs, [output], "TransposeConvOptions", options, version=version)
        return output

    def fully_connected(
        self,
        x: Tensor,
        weights: Array,
        bias: Array | None = None,
        *,
        weight_scale: Scale | None = None,
        weight_zero_point: int = 0,
        weight_dtype: str = "",
        activation: str = "none",
        keep_num_dims: bool = False,
        out: Quant | None = None,
        name: str = "fully_connected",
    ) -> Tensor:
        """FULLY_CONNECTED. weights [units, depth]; rows of `depth` unless keep_num_dims."""
        parameters = self._parameters(name, x, weights, bias, (weight_scale, weight_zero_point), 0, weight_dtype)
        fields = {"fusedActivationFunction": _activation(name, activation), "keepNumDims": keep_num_dims}
        return self.emit("FULLY_CONNECTED", [x, *parameters], None, out, name, "FullyConnectedOptions", fields)

    def svdf(
        self,
        x: Tensor,
        feature: Array,
        time: Array,
        bias: Array | None = None,
        *,
        rank: int = 1,
        scales: tuple[float, float, float] | None = None,
        activation: str = "relu",
        out: Quant | None = None,
        name: str = "svdf",
    ) -> Tensor:
        """SVDF. feature [units * rank, depth] and time [units * rank, memory]; bias [units].

        Both are int8 and int16, or float32. scales: of the feature weights, the time weights and the state. On integers
        LiteRT demands relu, and ignores it.
        """
        of_feature, of_time, of_state = scales or (None, None, None)
        weights = [self.constant(f"{name}/feature", feature, of_feature), self.constant(f"{name}/time", time, of_time)]
        bias_tensor = None
        if bias is not None:
            product = float(np.float32(of_state) * np.float32(of_time)) if of_state and of_time else None
            bias_tensor = self.constant(f"{name}/bias", bias, product)
        shape, dtype = (x.shape[0], time.size), "int16" if x.scale else x.dtype
        state = self.variable(f"{name}/state", shape, dtype, of_state)
        fields = {"rank": rank, "fusedActivationFunction": _activation(name, activation)}
        return self.emit("SVDF", [x, *weights, bias_tensor, state], None, out, name, "SVDFOptions", fields)

    # ---- element by element ------------------------------------------------------------------------------------

    def add(
        self, a: Tensor, b: Tensor, *, activation: str = "none", out: Quant | None = None, name: str = "add"
    ) -> Tensor:
        """ADD with broadcasting; operands may differ in quantization, and one may be constant."""
        return self._binary("ADD", "AddOptions", a, b, activation, out, name)

    def sub(
        self, a: Tensor, b: Tensor, *, activation: str = "none", out: Quant | None = None, name: str = "sub"
    ) -> Tensor:
        """SUB: a - b, as `add`."""
        return self._binary("SUB", "SubOptions", a, b, activation, out, name)

    def mul(
        self, a: Tensor, b: Tensor, *, activation: str = "none", out: Quant | None = None, name: str = "mul"
    ) -> Tensor:
        """MUL, as `add`."""
        return self._binary("MUL", "MulOptions", a, b, activation, out, name)

    def relu(self, x: Tensor, *, out: Quant | None = None, name: str = "relu") -> Tensor:
        """RELU as a separate operator; `out` may requantize."""
        return self.emit("RELU", [x], None, out, name)

    def relu6(self, x: Tensor, *, out: Quant | None = None, name: str = "relu6") -> Tensor:
        """RELU6 as a separate operator; `out` may requantize."""
        return self.emit("RELU6", [x], None, out, name)

    def leaky_relu(self, x: Tensor, alpha: float = 0.2, *, out: Quant | None = None, name: str = "leaky") -> Tensor:
        """LEAKY_RELU: x where x >= 0, else alpha * x."""
        return self.emit("LEAKY_RELU", [x], None, out, name, "LeakyReluOptions", {"alpha": float(alpha)})

    def hard_swish(self, x: Tensor, *, out: Quant | None = None, name: str = "hard_swish") -> Tensor:
        """HARD_SWISH: x * relu6(x + 3) / 6."""
        return self.emit("HARD_SWISH", [x], None, out, name, "HardSwishOptions")

    def logistic(self, x: Tensor, *, name: str = "logistic") -> Tensor:
        """LOGISTIC with the output scale of kernels: 1/256 for 8 bits, 1/32768 for 16 bits."""
        return self.emit("LOGISTIC", [x], None, _unit_range(x, 256), name)

    def tanh(self, x: Tensor, *, name: str = "tanh") -> Tensor:
        """TANH with the output scale of kernels: 1/128 for 8 bits, 1/32768 for 16 bits."""
        middle = (1.0 / 32768, 0) if x.dtype == "int16" else (1.0 / 128, 128 if x.dtype == "uint8" else 0)
        return self.emit("TANH", [x], None, middle if x.scale else None, name)

    def softmax(self, x: Tensor, beta: float = 1.0, *, name: str = "softmax") -> Tensor:
        """SOFTMAX over the last axis; outputs as in `logistic`."""
        fields = {"beta": float(beta)}
        return self.emit("SOFTMAX", [x], None, _unit_range(x, 256), name, "SoftmaxOptions", fields)

    def quantize(self, x: Tensor, dtype: str, out: Quant, *, name: str = "quantize") -> Tensor:
        """QUANTIZE: float32 to integers, or from one quantization or integer type to another."""
        if dtype == "uint8" and x.dtype in ("int16", "int32"):  # LiteRT needs this exact way through int8
            x = self.quantize(x, "int8", (out[0], out[1] - 128), name=f"{name}/int8")
        output = self.tensor(name, x.shape, dtype, *out)
        self.operator("QUANTIZE", [x], [output], "QuantizeOptions", version=2 if x.scale else 1)
        return output

    def dequantize(self, x: Tensor, *, name: str = "dequantize") -> Tensor:
        """DEQUANTIZE: 8 bits to float32."""
        output = self.tensor(name, x.shape, "float32")
        self.operator("DEQUANTIZE", [x], [output], "DequantizeOptions", version=_version("DEQUANTIZE", x.dtype))
        return output

    # ---- pooling and reduction ---------------------------------------------------------------------------------

    def avg_pool2d(
        self,
        x: Tensor,
        kernel: Pair,
        stride: Pair | None = None,
        *,
        padding: str = "valid",
        activation: str = "none",
        out: Quant | None = None,
        name: str = "avg_pool2d",
    ) -> Tensor:
        """AVERAGE_POOL_2D without padding in the mean. 8-bit kernels need `out` None."""
        options = _pool(name, kernel, stride or kernel, padding, activation)
        return self.emit("AVERAGE_POOL_2D", [x], None, out, name, "Pool2DOptions", options)

    def max_pool2d(
        self,
        x: Tensor,
        kernel: Pair,
        stride: Pair | None = None,
        *,
        padding: str = "valid",
        activation: str = "none",
        out: Quant | None = None,
        name: str = "max_pool2d",
    ) -> Tensor:
        """MAX_POOL_2D; as `avg_pool2d`."""
        options = _pool(name, kernel, stride or kernel, padding, activation)
        return self.emit("MAX_POOL_2D", [x], None, out, name, "Pool2DOptions", options)

    def mean(
        self, x: Tensor, axes: Sequence[int], *, keep_dims: bool = False, out: Quant | None = None, name: str = "mean"
    ) -> Tensor:
        """MEAN over `axes`; `out` may requantize."""
        constant = self.constant(f"{name}/axes", int32_array(list(axes)))
        return self.emit("MEAN", [x, constant], None, out, name, "ReducerOptions", {"keepDims": keep_dims})

    # ---- shared ------------------------------------------------------------------------------------------------

    def _binary(
        self, op: str, table: str, a: Tensor, b: Tensor, activation: str, out: Quant | None, name: str
    ) -> Tensor:
        if a.dtype != b.dtype:
            raise BuildError(f"{name}: {op} of {a.dtype} and {b.dtype}")
        fields = {"fusedActivationFunction": _activation(name, activation)}
        return self.emit(op, [a, b], None, out, name, table, fields)

    def _parameters(
        self,
        name: str,
        x: Tensor,
        weights: Array,
        bias: Array | None,
        quant: tuple[Scale | None, int],
        axis: int,
        dtype: str,
    ) -> list[Tensor]:
        """Declare weights and bias. The bias has scale input_scale * weight_scale and zero point 0.

        axis: of the output channels in `weights`; dtype: of the weights in the file, '' for that of the array.
        """
        channels, (scale, zero_point) = (weights.shape or (1,))[axis], quant
        if bias is not None and bias.shape != (channels,):
            raise BuildError(f"{name}: bias {bias.shape} for {channels} output channels")
        if x.scale and scale is None:
            raise BuildError(f"{name}: weight_scale is missing")
        parameters = [self.constant(f"{name}/weights", weights, scale, zero_point, axis=axis, dtype=dtype)]
        if bias is not None:
            product = np.float32(x.scale[0]) * np.asarray(parameters[0].scale, dtype=np.float32) if x.scale else None
            parameters.append(self.constant(f"{name}/bias", bias, product))
        return parameters

    def place(self, op: str, x: Tensor, axis: int, *, name: str) -> Tensor:
        """ARG_MAX and ARG_MIN along an axis, as int64."""
        output = self.tensor(name, (*x.shape[:axis], *x.shape[axis + 1 :]), "int64")
        inputs = [x, self.constant(f"{name}/axis", int32_array([axis]))]
        table = {"ARG_MAX": "ArgMaxOptions", "ARG_MIN": "ArgMinOptions"}[op]
        self.operator(op, inputs, [output], table, {"outputType": 4}, version=2 if x.dtype == "int8" else 1)
        return output

    def emit(
        self,
        op: str,
        inputs: Sequence[Tensor | None],
        shape: Sequence[int] | None,
        out: Quant | None,
        name: str,
        table: str = "",
        fields: dict[str, Any] | None = None,
        *,
        custom: bytes = b"",
    ) -> Tensor:
        """Append an operator with one result of the first input's dtype.

        shape   of the result; None: as the operator states it
        custom  as for `TFLiteWriter.operator`
        """
        x = inputs[0]
        assert x is not None
        if shape is None:
            (shape,) = stated_shapes(op, name, inputs, fields or {})
        if out is not None and not x.scale:
            raise BuildError(f"{name}: out={out} on a {x.dtype} input without quantization")
        output = self.tensor(name, shape, x.dtype, *out) if out is not None else self._like(x, name, shape)
        self.operator(op, inputs, [output], table, fields, version=_version(op, x.dtype), custom=custom)
        return output


def _window(name: str, stride: Pair, padding: str, activation: str, dilation: Pair) -> dict[str, Any]:
    """Return the options that the convolutions share."""
    return _steps(name, stride, padding, activation) | {"dilationHFactor": dilation[0], "dilationWFactor": dilation[1]}


def _pool(name: str, kernel: Pair, stride: Pair, padding: str, activation: str) -> dict[str, Any]:
    return _steps(name, stride, padding, activation) | {"filterHeight": kernel[0], "filterWidth": kernel[1]}


def _steps(name: str, stride: Pair, padding: str, activation: str) -> dict[str, Any]:
    if padding not in PADDINGS:
        raise BuildError(f"{name}: padding {padding!r} is neither 'same' nor 'valid'")
    return {
        "padding": PADDINGS[padding],
        "strideH": stride[0],
        "strideW": stride[1],
        "fusedActivationFunction": _activation(name, activation),
    }


def _no_bias(x: Tensor, channels: int) -> Array:
    return np.zeros(channels, dtype=(np.int64 if x.dtype == "int16" else np.int32) if x.scale else np.float32)


def _activation(name: str, activation: str) -> int:
    if activation not in ACTIVATIONS:
        raise BuildError(f"{name}: activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[activation]


def _unit_range(x: Tensor, steps: int) -> Quant | None:
    """Return the fixed quantization of results in [0, 1)."""
    if x.dtype == "int16":
        return 1.0 / 32768, 0
    return (1.0 / steps, 0 if x.dtype == "uint8" else -128) if x.scale else None


def _version(op: str, dtype: str) -> int:
    return OPERATORS[op].litert.version if dtype == "int8" and not op.startswith(CUSTOM) else 1
