"""Functions along the last axis."""

from typing import ClassVar, Literal

from stages.ir.arithmetic.fixed_point import (
    inverse_square_root,
    multiply_by_quantized_multiplier,
    reciprocal,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    wrap,
)
from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.declaration import EIGHT_BITS, WIDE, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.interpolated import WideSoftmax
from stages.ir.operators.onnx_softmax import FloatSoftmax, NearestSoftmax
from stages.ir.operators.operation import Operation, Refused, Shape, Table
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np


def last_axis(operation: Operation) -> list[Shape]:
    """Shape rule of functions along the last axis. Raises Refused for a scalar."""
    if not operation.input(0).shape:
        raise Refused(f"works along the last axis, but {named(operation.input(0))} is a scalar")
    return [operation.input(0).shape]


class Softmax(LayerOp):
    """Softmax over the last axis of an 8-bit tensor; the output has 8 bits, or 16.

    The output's scale is 1/256 (16 bits: 1/65536), its zero point the lowest of its type.

    Constant `exp`, int32[256]: Q0.31 values of exp(-beta * input_scale * d) for d = max(row) - x, 0 below the
    reference's cut-off. With SRDHM (SaturatingRoundingDoublingHighMul) and RDP (RoundingDivideByPOT) as above:

      sum   = sum over the row of RDP(exp[d], 12)                  Q12.19
      hz    = leading zeros of sum in 32 bits; bits = 12 - hz
      half  = (sum << hz) >> 1, unsigned                           (1 + fraction) / 2, Q0.31
      r     = 1515870810 + SRDHM(half, -1010580540)                48/17 - 32/17 * half, Q2.29
      r     = r + saturate(SRDHM(r, 2^29 - SRDHM(half, r)) << 2)   Newton-Raphson, three times
      y     = min(lowest + RDP(SRDHM(saturate(r << 1), exp[d]), bits + 31 - bits of y), highest)

    A shift above 31 (for 8 bits a sum of 512 or more) stops LiteRT's reference with a failed check; here y is the
    lowest value then. `lowest` and `highest` are the bounds of the type.
    """

    shifts_alike: ClassVar[bool] = True  # the lowest value of the type shifts with the output
    op: Literal["softmax"] = "softmax"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        (x,) = inputs
        limits, values = np.iinfo(view.outputs[0].dtype), x.astype(np.int64)
        powers = view.constant("exp").astype(np.int64)[values.max(axis=-1, keepdims=True) - values]
        total = rounding_divide_by_pot(powers, 12).sum(axis=-1, keepdims=True)
        zeros = 32 - np.frexp(total.astype(np.float64))[1]  # leading zeros in 32 bits: total < 2^frexp's exponent
        shift = 12 - zeros + 31 - limits.bits
        product = saturating_rounding_doubling_high_mul(reciprocal(total << zeros), powers)
        unit = np.where(shift <= 31, rounding_divide_by_pot(product, np.minimum(shift, 31)), 0)
        return np.clip(unit + limits.min, limits.min, limits.max).astype(limits.dtype)


class L2Normalization(LayerOp):
    """Rows (last axis) divided by their Euclidean norm.

    The output has scale 1/128 and the middle zero point.

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

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        (x,) = inputs
        limits = np.iinfo(x.dtype)
        rows = x.astype(np.int64).reshape(-1, x.shape[-1]) - self.input_zero_point
        out = np.empty_like(rows)
        for index, row in enumerate(rows):
            multiplier, shift = inverse_square_root(int(wrap((row * row).sum())))
            if x.dtype == np.uint8:
                out[index] = multiply_by_quantized_multiplier(128 * row, multiplier, shift, "double") + 128
            else:
                out[index] = multiply_by_quantized_multiplier(row, multiplier, shift + 7, "double")
        return np.clip(out, limits.min, limits.max).astype(x.dtype).reshape(x.shape)


def _softmax_types(operation: Operation) -> None:
    source, result = operation.input(0), operation.outputs[0]
    if result.dtype != source.dtype and (source.dtype not in EIGHT_BITS or result.dtype != "int16"):
        raise Refused(f"mixes {source.dtype} in {named(source)} and {result.dtype} in {named(result)}")


def _softmax_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    return model.builder.softmax(x, model.spec.beta)


OPERATORS = (
    Operator(
        "L2_NORMALIZATION",
        last_axis,
        table=Table("L2NormOptions", "activation:byte"),
        legalization=Legalization((L2Normalization,)),
        litert=LiteRT(fuses=False),
        limits="over the last axis; 8 bits: output scale 1/128, zero point 0 (uint8: 128)",
    ),
    Operator(
        "SOFTMAX",
        last_axis,
        Tensors(types=WIDE, mixed=True),
        table=Table("SoftmaxOptions", "beta:float"),
        quantization=Quantization(check=_softmax_types),
        legalization=Legalization((Softmax, WideSoftmax, NearestSoftmax, FloatSoftmax)),
        model=SingleOperatorModel(_softmax_model, frozenset({"beta"})),
        limits="over the last axis; 8 bits: output scale 1/256, zero point -128 (uint8: 0), "
        "or int16 with scale 1/65536, zero point -32768; 16 bits: output scale 1/32768",
    ),
)
