"""LOG_SOFTMAX over the last axis."""

from typing import ClassVar, Literal

from stages.ir.arithmetic.fixed_point import rounding_divide_by_pot
from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.model_info import FileTensor
from stages.ir.operators.declaration import COMPUTED, Legalization, LiteRT, Operator, Tensors
from stages.ir.operators.rows import last_axis
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np


class LogSoftmax(LayerOp):
    """LOG_SOFTMAX of 8 bits; the output has scale 1/16 and the highest zero point.

    With d = max(row) - x,
      y = RDP(difference[d] - ln(sum over the row of exp[d]), 22) + highest, saturated

    Constants: exp, int32[256], exp(-input_scale * d) in Q12.19, 0 below the reference's cut-off; difference,
    int32[256], -input_scale * d in Q5.26, not below -20. ln is stages.ir.arithmetic.logarithm's, RDP
    RoundingDivideByPOT.
    """

    shifts_alike: ClassVar[bool] = True  # the highest value of the type shifts with the output
    op: Literal["log_softmax"] = "log_softmax"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.ir.arithmetic.logarithm import natural_logarithm

        (x,) = inputs
        limits, values = np.iinfo(x.dtype), x.astype(np.int64)
        below = values.max(axis=-1, keepdims=True) - values
        total = view.constant("exp").astype(np.int64)[below].sum(axis=-1, keepdims=True)
        real = view.constant("difference").astype(np.int64)[below] - natural_logarithm(total)
        return np.clip(rounding_divide_by_pot(real, 22) + limits.max, limits.min, limits.max).astype(x.dtype)


def _model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    out = (1 / 16, 255 if model.spec.dtype == "uint8" else 127) if model.quantized else None
    return model.builder.emit("LOG_SOFTMAX", [x], x.shape, out, model.spec.op, "LogSoftmaxOptions")


OPERATORS = (
    Operator(
        "LOG_SOFTMAX",
        last_axis,
        Tensors(types=COMPUTED),
        legalization=Legalization((LogSoftmax,)),
        litert=LiteRT(version=1),
        model=SingleOperatorModel(_model),
        limits="over the last axis; 8 bits: output scale 1/16, zero point 127 (uint8: 255)",
    ),
)
