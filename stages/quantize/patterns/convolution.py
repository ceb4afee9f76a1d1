"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED.

    dequantize(x) -> conv2d(., weights) [-> add bias] -> quantize [-> clip]
    [reshape] -> dequantize(x) -> matmul(., weights) [-> add bias] -> quantize [-> clip] [-> reshape]

Weights are dequantize(constant), possibly reshaped or transposed before or after; only their values matter.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from stages.ir.arrays import Array
from stages.ir.graph import Conv2D, DepthwiseConv2D, FullyConnected
from stages.ir.layers import Rounding
from stages.quantize.arithmetic import Fixed, convolution_multipliers, quantize_multiplier
from stages.quantize.constant_channels import fold_constant_channels
from stages.quantize.operator import Operator, Parameters, activated, dequantized, reshaped, transposed
from stages.quantize.real_products import breakpoint_tables, exact_multipliers, overflowing, sums
from stages.quantize.requantization_breakpoints import requantization
from stages.quantize.writer import GraphWriter


class _Weighted:
    """quantize(op(dequantize(x), weights) + bias), with optional bias and fused activation."""

    def __init__(self, name: str, *, flattened: bool = False) -> None:
        self.x, self.weights, self.bias = wildcard(), wildcard(), wildcard()
        x = reshaped(reshaped(self.x)) if flattened else self.x
        self.core = is_op(name)(dequantized(x), self.weights)
        self.body = activated(is_op("relax.add")(self.core, self.bias) | self.core)


def convolution(operator: Operator, writer: GraphWriter) -> None:
    """Translate CONV_2D and DEPTHWISE_CONV_2D into a layer of the integer graph."""
    pattern = _Weighted("relax.nn.conv2d")
    form = "quantize(conv2d(dequantize(x), constant weights) + constant bias)"
    match = operator.expect(transposed(pattern.body), form)
    x, out = operator.data(match[pattern.x]), operator.outputs[0]
    attributes = match[pattern.core].attrs
    weights = _in_order(operator.parameters(match[pattern.weights]), str(attributes.kernel_layout))
    zero_point = weight_zero_point(operator, weights)
    is_depthwise = operator.call.op == "DEPTHWISE_CONV_2D"
    if is_depthwise and x.dtype == "int8" and not operator.onnx:
        zero_point = 0  # the reference ignores the file's; of CONV_2D it requires 0
    channels, height, width, _ = weights.values.shape
    wide = x.dtype == "int16"
    constants, rounding = dict[str, Array](), "wide" if wide else "double"
    if pattern.bias in match:
        constants["bias"] = _bias(operator, match[pattern.bias], x.dtype)
    if operator.onnx:
        rounding, fixed = of_onnx(operator, weights, constants.get("bias"), zero_point)
        constants |= columns_of(fixed)
    else:
        reals = real_multipliers(weights, x.dtype, x.scale, out.scale)
        constants |= columns_of(fixed_multipliers(operator, reals, 7 if wide else 30))
        rows = weights.values.reshape(channels, -1)
        check_results(operator, reals, sums(rows, constants.get("bias"), x.dtype, x.zero_point, zero_point))
    values = weights.values
    if not wide and not operator.onnx:
        values = fold_constant_channels(values, constants, x.dtype, x.zero_point, zero_point)
    low, high = operator.clamp
    common: dict[str, Any] = {
        "kernel": (height, width),
        "stride": _pair(attributes.strides),
        "padding": _padding(attributes.padding),
        "dilation": _pair(attributes.dilation),
        "in_channels": x.shape[3],
        "out_channels": channels,
        "input_zero_point": x.zero_point,
        "weight_zero_point": zero_point,
        "output_zero_point": out.zero_point,
        "act_min": low,
        "act_max": high,
        "rounding": rounding,
    }
    op: Conv2D | DepthwiseConv2D
    if is_depthwise:
        op = DepthwiseConv2D(depth_multiplier=channels // x.shape[3], **common)
        constants["weights"] = values.transpose(3, 1, 2, 0)  # (1, height, width, C)
    else:
        op = Conv2D(groups=int(attributes.groups), **common)
        constants["weights"] = values
    writer.layer(op, [x], out, constants)


def fully_connected(operator: Operator, writer: GraphWriter) -> None:
    """FULLY_CONNECTED on any number of rows, with and without bias."""
    pattern = _Weighted("relax.matmul", flattened=True)
    body = reshaped(reshaped(pattern.body))
    match = operator.expect(body, "quantize(matmul(dequantize(x), constant weights) + constant bias)")
    x, out = operator.data(match[pattern.x]), operator.outputs[0]
    if not x.lies_as(""):
        raise operator.error("reads a planar (NCHW) tensor as rows")
    weights = operator.parameters(match[pattern.weights]).map(np.transpose)  # (depth, units) in the body
    units, depth = weights.values.shape
    constants = {"weights": weights.values}
    if pattern.bias in match:
        constants["bias"] = _bias(operator, match[pattern.bias], x.dtype)
    low, high = operator.clamp
    points = weight_zero_point(operator, weights)
    reals = real_multipliers(weights, "int8", x.scale, out.scale)
    bias = constants.get("bias")
    if operator.onnx:
        rounding, fixed = of_onnx(operator, weights, bias, points)
        constants |= columns_of(fixed)
    else:
        rounding, scaling = _as_real_products(operator, weights, bias, reals, points)
        constants |= scaling
    op = FullyConnected(
        batch=x.elements // depth,
        depth=depth,
        units=units,
        input_zero_point=x.zero_point,
        weight_zero_point=points,
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
        rounding=rounding,
    )
    writer.layer(op, [x], out, constants)


def of_onnx(
    operator: Operator, weights: Parameters, bias: Array | None, zero_point: int
) -> tuple[Rounding, list[Fixed]]:
    """`requantization` of weights with one output channel for each first index."""
    x, out, (low, high) = operator.inputs[0], operator.outputs[0], operator.clamp
    reals = real_multipliers(weights, "int8", x.scale, out.scale)
    ends = sums(weights.values.reshape(len(weights.values), -1), bias, x.dtype, x.zero_point, zero_point)
    assert weights.scale is not None
    scale = weights.scale.reshape(len(weights.values), -1)[:, 0].astype(np.float32)
    float32 = np.float32(x.scale) * scale / np.float32(out.scale)
    return requantization(operator, reals, float32, ends, low - out.zero_point, high - out.zero_point)


def _as_real_products(
    operator: Operator, weights: Parameters, bias: Array | None, reals: Sequence[float], points: int
) -> tuple[Rounding, dict[str, Array]]:
    """Rounding and scaling constants of a FULLY_CONNECTED that LiteRT scales in float64."""
    (x, *_), out, (low, high) = operator.inputs, operator.outputs[0], operator.clamp
    ends = sums(weights.values, bias, x.dtype, x.zero_point, points)
    check_results(operator, reals, ends)
    if x.dtype == "int16":
        return "real", {"real": np.array(reals, np.float64)}
    results = low - out.zero_point, high - out.zero_point
    fixed = exact_multipliers(fixed_multipliers(operator, reals), reals, ends, *results)
    return ("steps", breakpoint_tables(reals, *results)) if fixed is None else ("single", columns_of(fixed))


def check_results(operator: Operator, reals: Sequence[float], ends: Array) -> None:
    """Raise OperatorError for a layer with sums that overflow in LiteRT (`overflowing`)."""
    out = operator.outputs[0]
    unit = overflowing(reals, ends, out.zero_point, out.dtype)
    if unit is not None:
        most = np.abs(ends[:, unit].astype(np.float64)).max()
        raise operator.error(
            f"has sums of up to {most:.3g} in unit {unit}, which scales multiply by {reals[unit]:.3g}:"
            " they overflow in LiteRT, whose results are undefined",
            "Use a smaller bias or a larger output scale.",
        )


def _bias(operator: Operator, expr: Any, dtype: str) -> Array:
    """int32[O]; with 16-bit activations int64[O]."""
    return operator.parameters(expr).values.reshape(-1).astype(np.int64 if dtype == "int16" else np.int32)


def real_multipliers(weights: Parameters, rule: str, input_scale: float, output_scale: float) -> list[float]:
    """Real multipliers, one for each unit or channel, rounded as for the type `rule`.

    FULLY_CONNECTED computes them in double for uint8 too.
    """
    assert weights.scale is not None
    scales = weights.scale
    while scales.ndim > 1:
        scales = scales[:, 0]
    return convolution_multipliers(rule, input_scale, scales.astype(np.float64).tolist(), output_scale)


def fixed_multipliers(operator: Operator, reals: Sequence[float], most: int = 30) -> list[Fixed]:
    """Fixed-point multipliers with left shifts of at most `most`; OperatorError beyond."""
    fixed = [quantize_multiplier(real) for real in reals]
    too_large = max(shift for _, shift in fixed)
    if too_large > most:
        raise operator.error(f"would scale its sums up by 2^{too_large}; check the scales of its tensors")
    return fixed


def columns_of(fixed: Sequence[Fixed]) -> dict[str, Array]:
    """Constants multiplier and shift, int32[O]."""
    multiplier, shift = np.array(fixed, dtype=np.int32).T
    return {"multiplier": multiplier, "shift": shift}


def weight_zero_point(operator: Operator, weights: Parameters) -> int:
    """Zero point of all weights. Raises OperatorError if there are several, or for other types."""
    if weights.scale is None or weights.zero_point is None:
        raise operator.error(f"has {weights.values.dtype} weights without a scale")
    if weights.values.dtype not in (np.int8, np.uint8):
        raise operator.error(f"has {weights.values.dtype} weights; int8 and uint8 are supported")
    low, high = int(weights.zero_point.min()), int(weights.zero_point.max())
    if low != high:
        raise operator.error("has weights with more than one zero point")
    return low


def _in_order(weights: Parameters, layout: str) -> Parameters:
    """Convolution weights as (out, height, width, in)."""
    return weights.map(lambda part: part.transpose([layout.index(axis) for axis in "OHWI"]))


def _pair(values: Any) -> tuple[int, int]:
    first, second = (int(value) for value in values)
    return first, second


def _padding(values: Any) -> tuple[int, int, int, int]:
    top, left, bottom, right = (int(value) for value in values)
    return top, left, bottom, right


PATTERNS = {"CONV_2D": convolution, "DEPTHWISE_CONV_2D": convolution, "FULLY_CONNECTED": fully_connected}
