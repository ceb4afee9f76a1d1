"""Dynamic-range quantization: operators with float32 data and 8-bit weights.

LiteRT's hybrid kernels quantize the input at run time, once per batch, and multiply integers. The Relax here computes
the same: integers are stored as float32, where sums below 2^24 are exact, and scaled back. Results equal LiteRT's to
the last bits of a float.

Formulas: SymmetricQuantizeFloats and AsymmetricQuantizeFloats (portable_tensor_utils), EvalHybrid in conv.cc,
depthwise_conv.cc and fully_connected.cc. Weights with one scale take symmetric inputs, weights with a scale per
channel take asymmetric inputs; FULLY_CONNECTED has an option.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from stages.ir.arithmetic.sliding import same_padding
from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.operators.declaration import NARROW
from stages.ir.operators.table import OPERATORS

# Smaller than any relevant range; avoids a division by zero for an all-zero input.
_TINY = 1e-30


def is_hybrid(operator: OperatorInfo, info: ModelInfo) -> bool:
    """Return whether the operator multiplies float32 data by constant 8-bit or 4-bit weights."""
    if OPERATORS[operator.op].weights.macs is None:
        return False
    data, weights = (info.tensors[index] for index in operator.inputs[:2])
    integers = weights.dtype in ("int8", *NARROW) and weights.scale.size > 0 and weights.data is not None
    return data.dtype == "float32" and integers


@dataclass(frozen=True)
class _Quantized:
    """Integers stored as float32, with the zero point subtracted, and the scale of each batch."""

    values: relax.Expr
    scale: relax.Expr


def convert_hybrid(
    operator: OperatorInfo,
    info: ModelInfo,
    data: relax.Expr,
    bias: npt.NDArray[Any] | None,
    options: Any,
    activation: Callable[[relax.Expr, int], relax.Expr],
) -> relax.Expr:
    """Return the operator as float Relax.

    Steps: quantize `data`, multiply, scale back, add the bias, activate. options: the operator's flatbuffer options.
    activation(expression, code): the fused activation of TVM's front end.
    """
    source, weights = (info.tensors[index] for index in operator.inputs[:2])
    result = info.tensors[operator.outputs[0]]
    is_matmul = operator.op == "FULLY_CONNECTED"
    if is_matmul:
        rows, depth = int(np.prod(source.shape)) // weights.shape[1], weights.shape[1]
        data = relax.op.reshape(data, (rows, depth))
        quantized = _quantize(data, 2, asymmetric=bool(options.AsymmetricQuantizeInputs()))
        product = relax.op.matmul(quantized.values, _float(weights.values().T))
    else:
        quantized = _quantize(data, 4, asymmetric=weights.scale.size > 1)
        product = _convolution(operator.op, source, weights, quantized.values, options)
    if weights.scale.size > 1:
        expression = relax.op.multiply(relax.op.multiply(product, _float(weights.scale)), quantized.scale)
    else:
        expression = relax.op.multiply(product, relax.op.multiply(quantized.scale, _float(weights.scale.reshape(()))))
    if bias is not None:
        expression = relax.op.add(expression, _float(bias))
    expression = activation(expression, options.FusedActivationFunction())
    return relax.op.reshape(expression, result.shape) if is_matmul else expression


def _float(values: npt.NDArray[Any]) -> relax.Expr:
    return relax.const(np.ascontiguousarray(values.astype(np.float32)))


def _scalar(value: float) -> relax.Expr:
    return relax.const(value, "float32")


def _quantize(data: relax.Expr, rank: int, *, asymmetric: bool) -> _Quantized:
    axes = list(range(1, rank))
    if not asymmetric:
        # scale = max |x| / 127; q = round(x * (127 / max |x|))
        reach = relax.op.maximum(relax.op.max(relax.op.abs(data), axes, True), _scalar(_TINY))
        inverse = relax.op.divide(_scalar(127.0), reach)
        rounded = _round(relax.op.multiply(data, inverse))
        return _Quantized(relax.op.clip(rounded, -127.0, 127.0), relax.op.divide(reach, _scalar(127.0)))
    # scale = (max - min) / 255 with min <= 0 <= max; the zero point is rounded from the end with the smaller error.
    low = relax.op.minimum(relax.op.min(data, axes, True), _scalar(0.0))
    high = relax.op.maximum(relax.op.max(data, axes, True), _scalar(0.0))
    scale = relax.op.maximum(relax.op.divide(relax.op.subtract(high, low), _scalar(255.0)), _scalar(_TINY))
    below = relax.op.abs(relax.op.divide(low, scale))
    above = relax.op.abs(relax.op.divide(high, scale))
    from_low = relax.op.subtract(below, _scalar(128.0))
    from_high = relax.op.subtract(_scalar(127.0), above)
    nearer_low = relax.op.less(relax.op.add(below, _scalar(128.0)), relax.op.add(above, _scalar(127.0)))
    zero_point = relax.op.clip(_round(relax.op.where(nearer_low, from_low, from_high)), -128.0, 127.0)
    inverse = relax.op.divide(_scalar(1.0), scale)
    rounded = _round(relax.op.add(zero_point, relax.op.multiply(data, inverse)))
    return _Quantized(relax.op.subtract(relax.op.clip(rounded, -128.0, 127.0), zero_point), scale)


def _round(values: relax.Expr) -> relax.Expr:
    """Round to the nearest integer, halves away from zero like C's round; Relax rounds to even."""
    nearest = relax.op.floor(relax.op.add(relax.op.abs(values), _scalar(0.5)))
    return relax.op.multiply(relax.op.sign(values), nearest)


def _convolution(op: str, source: TensorInfo, weights: TensorInfo, data: relax.Expr, options: Any) -> relax.Expr:
    """Return a conv2d in NHWC. Padding is 0, as the zero point is already subtracted."""
    dilation = (options.DilationHFactor(), options.DilationWFactor())
    stride = (options.StrideH(), options.StrideW())
    padding = [0, 0, 0, 0]
    if options.Padding() == 0:
        (top_pad, bottom_pad), (left_pad, right_pad) = (
            same_padding(source.shape[1 + axis], weights.shape[1 + axis], stride[axis], dilation[axis])
            for axis in (0, 1)
        )
        padding = [top_pad, left_pad, bottom_pad, right_pad]
    channels = source.shape[3]
    if op == "DEPTHWISE_CONV_2D":
        layout, groups = "HWOI", channels  # from (1, kh, kw, O)
    else:
        layout, groups = "HWIO", channels // weights.shape[3]  # from OHWI
    return relax.op.nn.conv2d(
        data,
        _float(weights.values().transpose(1, 2, 3, 0)),
        strides=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout="NHWC",
        kernel_layout=layout,
    )
