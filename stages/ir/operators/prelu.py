"""PRELU: x for x >= 0, else slope * x; the slopes broadcast."""

from typing import Any, ClassVar, Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.ir.layers import Array, Clamped, LayerView, Rounding
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.arithmetic import binary_shape
from stages.ir.operators.declaration import Legalization, LiteRT, Operator, Tensors
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np, relax


def _prelu(operation: Operation) -> list[Shape]:
    shapes, data, alpha = binary_shape(operation), operation.input(0), operation.input(1)
    if shapes != [data.shape]:
        raise Refused(
            f"has slopes {named(alpha)} {listed(alpha.shape)}, which do not broadcast to the input {listed(data.shape)}"
        )
    return shapes


def _body(x: Any, slopes: Any) -> Any:
    """max(x, 0) + slope * min(x, 0)."""
    zero = relax.const(0.0, "float32")
    return relax.op.add(relax.op.maximum(x, zero), relax.op.multiply(slopes, relax.op.minimum(x, zero)))


class Prelu(Clamped):
    """PRELU of v = x_0 - zp_0 with the slope s = x_1 - zp_1, which broadcasts.

    y = M(v, multiplier_0, shift_0) + zp for v >= 0, else M(v * s, multiplier_1, shift_1) + zp
    """

    by_element: ClassVar[bool] = True
    op: Literal["prelu"] = "prelu"
    zero_points: tuple[int, int]
    multipliers: tuple[int, int]
    shifts: tuple[int, int]
    rounding: Rounding = "double"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        value, slope = (x.astype(np.int64) - zero for x, zero in zip(inputs, self.zero_points, strict=True))
        above, below = (
            multiply_by_quantized_multiplier(factor, multiplier, shift, self.rounding)
            for factor, multiplier, shift in zip((value, value * slope), self.multipliers, self.shifts, strict=True)
        )
        return self.clamped(view, np.where(value >= 0, above, below))


def _model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    """Constant slopes, one for each channel or of `other_shape`."""
    spec, quant, slopes = model.spec, model.second(), model.constant(model.spec.other_shape or model.spec.shape[-1:])
    out = None
    if model.quant and quant:
        (low, high), ends = model.range(model.quant), model.range(quant)
        out = model.output(min(low * end for end in ends), max(high, *(low * end for end in ends)))
    alpha = model.builder.constant("slopes", slopes, *(quant or (None,)))
    return model.builder.emit("PRELU", [x, alpha], None, out, spec.op)


OPERATORS = (
    Operator(
        "PRELU",
        _prelu,
        Tensors((2, 2), layout="following"),
        legalization=Legalization((Prelu,), body=_body),
        litert=LiteRT(version=1),
        model=SingleOperatorModel(_model, frozenset({"other_shape", "other", "output"})),
        limits="slopes broadcast to the input",
    ),
)
