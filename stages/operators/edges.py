"""QUANTIZE and DEQUANTIZE: between float32 and 8 bits, or from one quantization to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from stages.operators.activations import same_shape
from stages.operators.declaration import COMPUTED, Operator
from stages.operators.layer import Clamped, LayerOp, Rounding

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.operators.layer import Array


class Requantize(Clamped):
    """QUANTIZE of an integer tensor: y = M(x - input_zero_point, multiplier, shift) + output_zero_point."""

    op: Literal["requantize"] = "requantize"
    input_zero_point: int
    multiplier: int
    shift: int
    rounding: Rounding = "double"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.reference.integer.elementwise import requantize

        return requantize(view, *inputs)


class Quantize(Clamped):
    """QUANTIZE of a float32 tensor: y = round(x / scale) + output_zero_point: float32 division, halves away from 0."""

    op: Literal["quantize"] = "quantize"
    scale: float

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.reference.integer.elementwise import quantize

        return quantize(view, *inputs)


class Dequantize(LayerOp):
    """DEQUANTIZE to float32: y = scale * (x - input_zero_point), one float32 multiplication."""

    op: Literal["dequantize"] = "dequantize"
    input_zero_point: int
    scale: float

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.reference.integer.elementwise import dequantize

        return dequantize(view, *inputs)


OPERATORS = (
    Operator(
        "DEQUANTIZE",
        same_shape,
        types=(*COMPUTED, "int16", "float16"),
        mixed=True,
        layout="following",
        layers=(Dequantize,),
    ),
    Operator(
        "QUANTIZE",
        same_shape,
        types=(*COMPUTED, "int16", "int32"),
        mixed=True,
        layout="following",
        layers=(Quantize, Requantize),
    ),
)
