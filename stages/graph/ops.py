"""Operators of the integer graph, with every constant the arithmetic needs.

Fixed-point convention (LiteRT reference kernels): a real multiplier m is `multiplier` * 2^(shift - 31) with
`multiplier` an int32 in [2^30, 2^31) (or 0) and `shift` its exponent, positive for a left shift. `rounding` names how
x * m is rounded:

  double  MultiplyByQuantizedMultiplier of the reference kernels: x is shifted left by max(shift, 0), then
          SaturatingRoundingDoublingHighMul, then RoundingDivideByPOT by max(-shift, 0): rounds twice
  single  one rounding of the 64-bit product: (x * multiplier + 2^(30 - shift)) >> (31 - shift)

All zero points are those of the tensors: the kernel computes sum((x - input_zero_point) * (w - weight_zero_point)).
Constants (weights, bias, per-channel multiplier and shift, tables) are named in `Layer.constants` by role.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Rounding = Literal["double", "single"]


class _Op(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Clamped(_Op):
    """Output zero point and the clamp of the fused activation, in the output's integers."""

    output_zero_point: int
    act_min: int
    act_max: int


class _Window(_Clamped):
    """A sliding window. Pairs are (height, width); `padding` is (top, left, bottom, right)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]


class Conv2D(_Window):
    """Constants: weights int8/uint8 in `kernel_layout`, bias int32[O] (absent: zero), multiplier and shift int32[O]."""

    op: Literal["conv2d"] = "conv2d"
    dilation: tuple[int, int]
    groups: int = 1
    in_channels: int
    out_channels: int
    input_zero_point: int
    weight_zero_point: int = 0
    kernel_layout: Literal["OHWI", "HWIO", "OIHW"] = "OHWI"
    rounding: Rounding = "double"


class DepthwiseConv2D(_Window):
    """Output channel c * depth_multiplier + m reads input channel c. Constants as Conv2D, weights in `kernel_layout`.

    HWC is the reference's own order (1, kh, kw, channels_out); OIHW is planar: (channels_out, 1, kh, kw).
    """

    op: Literal["depthwise_conv2d"] = "depthwise_conv2d"
    dilation: tuple[int, int]
    depth_multiplier: int
    in_channels: int
    out_channels: int
    input_zero_point: int
    weight_zero_point: int = 0
    kernel_layout: Literal["HWC", "OIHW"] = "HWC"
    rounding: Rounding = "double"


class FullyConnected(_Clamped):
    """y[batch, units] from x[batch, depth]. Constants: weights (units, depth), bias, multiplier, shift as Conv2D."""

    op: Literal["fully_connected"] = "fully_connected"
    batch: int
    depth: int
    units: int
    input_zero_point: int
    weight_zero_point: int = 0
    rounding: Rounding = "single"


class Add(_Clamped):
    """ADD and SUB with broadcasting: both inputs are rescaled to a common scale, added (or subtracted), requantized.

    t_i = M((x_i - zero_point_i) << left_shift, multiplier_i, shift_i)
    y = M(t_0 +- t_1, output_multiplier, output_shift) + output_zero_point
    """

    op: Literal["add", "sub"]
    zero_points: tuple[int, int]
    left_shift: int
    multipliers: tuple[int, int]
    shifts: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"


class Mul(_Clamped):
    """y = M((x_0 - zp_0) * (x_1 - zp_1), output_multiplier, output_shift) + zp, with broadcasting."""

    op: Literal["mul"] = "mul"
    zero_points: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"


class Pool2D(_Window):
    """Padding never counts: averages divide by the number of elements inside the image, halves away from zero."""

    op: Literal["avg_pool2d", "max_pool2d"]


class Mean(_Clamped):
    """MEAN over `axes` (logical): y = M(sum(x) - input_zero_point * count, multiplier, shift) + output_zero_point.

    The division by `count`, the number of elements averaged, is part of the multiplier, as in the reference.
    """

    op: Literal["mean"] = "mean"
    axes: tuple[int, ...]
    input_zero_point: int
    multiplier: int
    shift: int
    count: int
    rounding: Rounding = "double"


class Softmax(_Op):
    """Softmax over the last axis of an 8-bit tensor; the output has scale 1/256 and the lowest zero point.

    Constant `exp`, int32[256]: Q0.31 values of exp(-beta * input_scale * d) for d = max(row) - x, 0 below the
    reference's cut-off. With SRDHM (SaturatingRoundingDoublingHighMul) and RDP (RoundingDivideByPOT) as above:

      sum   = sum over the row of RDP(exp[d], 12)                  Q12.19
      hz    = leading zeros of sum in 32 bits; bits = 12 - hz
      half  = (sum << hz) >> 1, unsigned                           (1 + fraction) / 2, Q0.31
      r     = 1515870810 + SRDHM(half, -1010580540)                48/17 - 32/17 * half, Q2.29
      r     = r + saturate(SRDHM(r, 2^29 - SRDHM(half, r)) << 2)   Newton-Raphson, three times
      y     = min(lowest + RDP(SRDHM(saturate(r << 1), exp[d]), bits + 23), highest)

    A shift bits + 23 above 31 (a sum of 512 or more) stops LiteRT's reference with a failed check; here y is the
    lowest value then. `lowest` and `highest` are the bounds of the type.
    """

    op: Literal["softmax"] = "softmax"


class L2Normalization(_Op):
    """Rows (last axis) divided by their Euclidean norm; the output has scale 1/128 and the middle zero point.

    With d = x - input_zero_point, n = sum of d * d (int32) over the row, and SRDHM and RDP as above:

      shift = 11; while n >= 2^29: n = n / 4 (towards 0), shift + 1
      pairs = (leading zeros of n in 32 bits - 1) / 2 - 1; shift = shift - pairs; n = n << (2 * pairs)
      half  = RDP(n >> 1, 1)                                                            Q3.28
      r     = 2^28; five times: r = saturate((SRDHM(3 * 2^27, r) - SRDHM(half, saturate(r3 << 6))) << 3)
              where r3 = SRDHM(SRDHM(r, r), r)                                          Q3.28, Newton-Raphson
      m     = SRDHM(r, 1518500250), a shift below 0 becoming m << -shift; s = -shift    1 / sqrt(n); sqrt(1/2) in Q0.31
      y     = M(128 * d, m, s) + 128 for uint8; M(d, m, s + 7) for int8; saturated. M rounds as `double`.

    For n of 0 or 1, m is 2^31 - 1 and s is 0.
    """

    op: Literal["l2_normalization"] = "l2_normalization"
    input_zero_point: int


class Activation(_Op):
    """An element-wise function of one 8-bit tensor: constant `table`, 256 outputs, index q (uint8) or q + 128 (int8).

    `function` is logistic, tanh, hard_swish, relu, relu6, leaky_relu, or requantize (an input of a concatenation with
    another scale); the table, of the output's type, is exact by construction, since it is computed with the
    reference's own arithmetic for each of the 256 inputs.
    """

    op: Literal["activation"] = "activation"
    function: str


class Requantize(_Clamped):
    """QUANTIZE of an integer tensor: y = M(x - input_zero_point, multiplier, shift) + output_zero_point."""

    op: Literal["requantize"] = "requantize"
    input_zero_point: int
    multiplier: int
    shift: int
    rounding: Rounding = "double"


class Quantize(_Clamped):
    """QUANTIZE of a float32 tensor: y = round(x / scale) + output_zero_point: float32 division, halves away from 0."""

    op: Literal["quantize"] = "quantize"
    scale: float


class Dequantize(_Op):
    """DEQUANTIZE to float32: y = scale * (x - input_zero_point), one float32 multiplication."""

    op: Literal["dequantize"] = "dequantize"
    input_zero_point: int
    scale: float


class Concatenation(_Op):
    """Inputs one after the other along `axis` (logical). All have the output's quantization, or pass a table first."""

    op: Literal["concatenation"] = "concatenation"
    axis: int


class Move(_Op):
    """Data movement: every output element is a copy of one input element or a fill value, of any dtype.

    `kind` and its `params` (logical axes, one entry per axis of the input); shapes come from the tensors:

      pad                      before, after: elements added on each axis; value: the fill value, an integer of the type
      reshape, squeeze         none; the output is an alias of the input (`Tensor.alias_of`), nothing is copied
      transpose                permutation: output axis i is input axis permutation[i]
      slice, strided_slice     begin, stride, size: output index i < size reads begin + stride * i; strides may
                               be negative. Axes a strided slice drops have size 1 here and are not in the output
      split                    as slice: one layer for each output
      resize_nearest_neighbor  rows, columns: the source row (column) of each output row (column)
      layout                   none: the tensors' layouts differ, their logical shapes do not
    """

    op: Literal["move"] = "move"
    kind: str
    params: dict[str, Any] = Field(default_factory=dict)


class Float(_Op):
    """A float operator, lowered by TVM's own operators.

    `function` is the name of its Relax function in `float.json`; `kind` the operator's name for reports and rules;
    `macs` its multiply-accumulates, which the graph cannot know.
    """

    op: Literal["float"] = "float"
    kind: str
    function: str
    macs: int = 0


# fmt: off
Op = Annotated[
    Conv2D | DepthwiseConv2D | FullyConnected | Add | Mul | Pool2D | Mean | Softmax | L2Normalization | Activation
    | Requantize | Quantize | Dequantize | Concatenation | Move | Float,
    Field(discriminator="op"),
]
# fmt: on
