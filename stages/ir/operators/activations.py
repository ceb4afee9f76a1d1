"""Element-wise functions of one tensor: with 8 bits a table of 256 outputs, else float32."""

from collections.abc import Callable, Sequence
from math import exp, expm1, inf
from typing import Any, ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView, Shifted
from stages.ir.layers.channels import ValueRange
from stages.ir.model_info import FileTensor
from stages.ir.operators.declaration import COMPUTED, FLOAT, WIDE, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.functions16 import Leaky, Lines
from stages.ir.operators.interpolated import Interpolated
from stages.ir.operators.operation import Operation, Shape, Table
from stages.ir.operators.raw_integers import RawInteger
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.ir.operators.wide_sqrt import WideSqrt
from stages.support.lazy import np, relax


def same_shape(operation: Operation) -> list[Shape]:
    """The output has the input's shape."""
    return [operation.input(0).shape]


class Activation(LayerOp):
    """An element-wise function of one 8-bit tensor, as a table of 256 outputs.

    Constant `table`: index q (uint8) or q + 128 (int8), in the output's type. It is computed with the reference's
    arithmetic for each of the 256 inputs, so it is exact. `function` is the operator's kind (logistic, exp, relu, ...)
    or requantize (rescaling of a concatenation's input).
    """

    uniform: ClassVar[bool] = True
    op: Literal["activation"] = "activation"
    named_by: ClassVar[str] = "function"
    function: str

    @classmethod
    def names(cls) -> frozenset[str]:
        """Names that rules may use for these layers."""
        functions = (operator.kind for operator in OPERATORS if cls in operator.legalization.layers)
        return super().names() | {"requantize", *functions}

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """The table is in the order of the input's values, so only its entries change."""
        if not output:
            return Shifted(self)
        moved = view.constant("table").astype(np.int64) + output
        return Shifted(self, {"table": moved.astype(np.uint8 if output > 0 else np.int8)})

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Range of the table entries between the bounds; the function need not be monotonic."""
        (x,), table = inputs, view.constant("table").astype(np.int64)
        first = int(np.iinfo(view.inputs[0].dtype).min)
        rows = [table[low - first : high - first + 1] for low, high in zip(x.least, x.most, strict=True)]
        return ValueRange(np.array([row.min() for row in rows]), np.array([row.max() for row in rows]))

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Look up each input in the table."""
        (x,) = inputs
        return view.constant("table")[x.astype(np.int64) - int(np.iinfo(x.dtype).min)]


def _table(
    name: str,
    model: SingleOperatorModel | None = None,
    table: Table | None = None,
    version: int = 2,
    types: tuple[str, ...] = COMPUTED,
    body: Callable[[Any], Any] | None = None,
    limits: str = "",
    *,
    more: tuple[type[LayerOp], ...] = (),
    optimized: bool = False,
) -> Operator:
    return Operator(
        name,
        same_shape,
        Tensors(types=types, layout="following"),
        table=table,
        legalization=Legalization((Activation, *more), body=body),
        litert=LiteRT(version=version, optimized=optimized),
        model=model,
        limits=limits,
    )


def _float(name: str, *, optimized: bool = False) -> Operator:
    return Operator(
        name,
        same_shape,
        Tensors(types=FLOAT, layout="following"),
        quantization=Quantization(quantized=False),
        litert=LiteRT(optimized=optimized),
    )


def _clamped_model(low: Callable[[float, float], float], most: float = inf, *options: str) -> SingleOperatorModel:
    """Output range: from `low(the input's lowest, alpha)` to the input's highest or `most`."""

    def build(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
        spec, arguments = model.spec, {"alpha": model.spec.alpha} if "alpha" in options else {}
        out = None
        if model.quant:
            lowest, highest = model.range(model.quant)
            out = model.output(low(lowest, spec.alpha), min(highest, most))
        method: Callable[..., FileTensor] = getattr(model.builder, spec.op)
        return method(x, **arguments, out=out)

    return SingleOperatorModel(build, frozenset({"output", *options}))


def unary_model() -> SingleOperatorModel:
    """Model without options; the output's quantization is LiteRT's, or none."""

    def build(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
        method: Callable[..., FileTensor] = getattr(model.builder, model.spec.op)
        return method(x)

    return SingleOperatorModel(build)


def _called(name: str) -> Callable[[Any], Any]:
    """Body that is one Relax operator."""

    def body(x: Any) -> Any:
        return getattr(relax.op, name)(x)

    return body


def _elu(x: Any) -> Any:
    """max(x, 0) + min(exp(x) - 1, 0)."""
    zero, unit = relax.const(0.0, "float32"), relax.const(1.0, "float32")
    below = relax.op.minimum(relax.op.subtract(relax.op.exp(x), unit), zero)
    return relax.op.add(relax.op.maximum(x, zero), below)


def _gelu(x: Any) -> Any:
    """Either form; the options decide which one the table has."""
    return relax.op.nn.gelu(x)


def _ranged_model(function: Callable[[float], float], table: str = "") -> SingleOperatorModel:
    """Output range: the function at both ends of the input's range.

    Options, of `table`, are the schema's zeros.
    """

    def build(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
        ends = sorted(map(function, model.range(model.quant))) if model.quant else []
        out = model.output(ends[0], ends[1]) if ends else None
        return model.builder.emit(model.spec.op.upper(), [x], x.shape, out, model.spec.op, table)

    return SingleOperatorModel(build, frozenset({"output"}))


_INT8 = ("int8", "float32")
_INT8_16 = (*_INT8, "int16")
_NO_NEGATIVES = "LiteRT aborts on integers below 0"


_Q15 = "16 bits: output scale 1/32768"

OPERATORS = (
    _table("HARD_SWISH", _clamped_model(lambda low, alpha: -0.375), version=1),  # at x = -1.5; never above its input
    _table(
        "LEAKY_RELU",
        _clamped_model(lambda low, alpha: min(0.0, alpha * low), inf, "alpha"),
        Table("LeakyReluOptions", "alpha:float"),
        types=WIDE,
        more=(Leaky,),
    ),
    _table("LOGISTIC", unary_model(), types=WIDE, limits=_Q15, more=(Interpolated,)),
    _table("RELU", _clamped_model(lambda low, alpha: 0.0), types=WIDE),
    _table("RELU6", _clamped_model(lambda low, alpha: 0.0, 6.0), types=WIDE),
    _table("RELU_N1_TO_1"),
    _table("TANH", unary_model(), types=WIDE, limits=_Q15, more=(Interpolated,)),
    _table("ABS", _ranged_model(abs), types=(*_INT8_16, "int32"), body=_called("abs"), version=1, more=(Leaky,)),
    _table(
        "ELU", _ranged_model(lambda x: max(x, expm1(min(x, 0.0)))), types=_INT8, body=_elu, version=1, optimized=True
    ),
    _table("EXP", _ranged_model(exp), types=_INT8_16, body=_called("exp"), more=(Lines,)),
    _table(
        "GELU",
        _ranged_model(lambda x: max(x, -0.17), "GeluOptions"),
        Table("GeluOptions", "approximate:bool"),
        types=WIDE,
        body=_gelu,
        more=(Lines,),
    ),
    _table(
        "LOG", types=_INT8_16, body=_called("log"), more=(Lines,), limits="inputs of 0 and below give the lowest value"
    ),
    _table(
        "NEG",
        types=(*_INT8_16, "int32", "int64"),
        version=1,
        body=_called("negative"),
        more=(RawInteger,),
        limits="8 and 16 bits: raw integers, scales are ignored",
    ),
    _table("RSQRT", types=_INT8_16, body=_called("rsqrt"), limits=_NO_NEGATIVES, more=(Lines,)),
    _table("SQRT", types=_INT8_16, body=_called("sqrt"), limits=_NO_NEGATIVES, more=(WideSqrt,)),
    _float("CEIL", optimized=True),
    _float("COS"),
    _float("FLOOR"),
    _float("ROUND", optimized=True),
    _float("SIN"),
    _float("SQUARE"),
)
