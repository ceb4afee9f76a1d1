"""QUANTIZE and DEQUANTIZE: between float32 and integers, or between quantizations."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, round_half_away
from stages.ir.layers import Array, Clamped, LayerOp, LayerView, Rounding
from stages.ir.layers.channels import ValueRange
from stages.ir.model_info import FileTensor
from stages.ir.operators.activations import same_shape, unary_model
from stages.ir.operators.declaration import COMPUTED, NARROW, Legalization, Operator, Tensors
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np


class Requantize(Clamped):
    """QUANTIZE of an integer tensor.

    y = M(x - input_zero_point, multiplier, shift) + output_zero_point
    """

    by_element: ClassVar[bool] = True
    uniform: ClassVar[bool] = True
    op: Literal["requantize"] = "requantize"
    input_zero_point: int
    multiplier: int
    shift: int
    rounding: Rounding = "double"

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Monotonic: the results at both bounds."""
        least, most = (self.compute(view, bound).astype("int64") for bound in (inputs[0].least, inputs[0].most))
        return ValueRange(least, most)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        value = inputs[0].astype(np.int64) - self.input_zero_point
        return self.clamped(view, multiply_by_quantized_multiplier(value, self.multiplier, self.shift, self.rounding))


class Quantize(Clamped):
    """QUANTIZE of float32: y = round(x / scale) + output_zero_point, float32 division.

    halves: rounded `away` from zero as LiteRT, or to the `even` number as ONNX Runtime.
    """

    op: Literal["quantize"] = "quantize"
    scale: float
    halves: Literal["away", "even"] = "away"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        ratio = inputs[0].astype(np.float32) / np.float32(self.scale)
        # Outside the clamp, but inside int64.
        within = np.clip(ratio, np.float32(-1e9), np.float32(1e9))
        rounded = np.rint(within) if self.halves == "even" else round_half_away(within)
        return self.clamped(view, rounded.astype(np.int64))


class Dequantize(LayerOp):
    """DEQUANTIZE to float32: y = scale * (x - input_zero_point), one float32 multiplication."""

    op: Literal["dequantize"] = "dequantize"
    input_zero_point: int
    scale: float

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        return (inputs[0].astype(np.int32) - self.input_zero_point).astype(np.float32) * np.float32(self.scale)


def _quantize_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec = model.spec
    dtype = spec.to or (spec.dtype if model.quantized else "int8")
    if model.quant:
        # A quarter wider, so that values change.
        low, high = (1.25 * end for end in model.range(model.quant))
    else:
        low, high = -1.0, 1.0  # the range of random float32 inputs
    return model.builder.quantize(x, dtype, model.output(low, high, dtype) or (1.0, 0), name=spec.op)


OPERATORS = (
    Operator(
        "DEQUANTIZE",
        same_shape,
        Tensors(types=(*COMPUTED, "int16", "float16", *NARROW), mixed=True, layout="following"),
        legalization=Legalization((Dequantize,)),
        model=unary_model(),
        limits="output float32; constants may also be float16, int4 or int2",
    ),
    Operator(
        "QUANTIZE",
        same_shape,
        Tensors(types=(*COMPUTED, "int16", "int32"), mixed=True, layout="following"),
        legalization=Legalization((Quantize, Requantize)),
        model=SingleOperatorModel(_quantize_model, frozenset({"to", "output"})),
        limits="float32 to int8, uint8 or int16; among these, except int16 to uint8; "
        "int16 to and from int32; int32 to int8",
    ),
)
