"""Element-wise functions of one tensor: dequantize(x) -> function -> quantize becomes a table of 256 outputs."""

from __future__ import annotations

from collections.abc import Callable

from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from stages.graph import Activation
from stages.quantize import tables
from stages.quantize.operator import Array, Operator, dequantized, quantized
from stages.quantize.tables import Quantized
from stages.quantize.writer import GraphWriter

Table = Callable[[Quantized, Quantized], Array]


def _unary(name: str, x: DFPattern) -> DFPattern:
    return is_op(name)(x)


def _clip(x: DFPattern) -> DFPattern:
    return is_op("relax.clip")(x, wildcard(), wildcard())


def _hard_swish(x: DFPattern) -> DFPattern:
    gate = _clip(is_op("relax.add")(x, is_const()))
    return is_op("relax.divide")(is_op("relax.multiply")(x, gate), is_const())


def activation(operator: Operator, writer: GraphWriter) -> None:
    """RELU, RELU6, RELU_N1_TO_1, LEAKY_RELU, LOGISTIC, TANH, HARD_SWISH."""
    shape, table = _FUNCTIONS[operator.call.op]
    x = wildcard()
    core = shape(dequantized(x))
    match = operator.expect(quantized(core), f"quantize({operator.call.op.lower()}(dequantize(x)))")
    source, out = operator.data(match[x]), operator.outputs[0]
    quantizations = operator.quantized(source), operator.quantized(out)
    if operator.call.op == "LEAKY_RELU":
        values = tables.leaky_relu_table(*quantizations, float(match[core].attrs.alpha))
    else:
        try:
            values = table(*quantizations)
        except ValueError as error:
            raise operator.error(f"cannot be computed as the reference does: {error}") from None
    writer.layer(Activation(function=operator.call.op.lower()), [source], out, {"table": values})


def _clamp(low: float | None, high: float | None) -> Table:
    return lambda x, out: tables.clamp_table(x, out, low, high)


_FUNCTIONS: dict[str, tuple[Callable[[DFPattern], DFPattern], Table]] = {
    "RELU": (lambda x: _unary("relax.nn.relu", x), _clamp(0, None)),
    "RELU6": (_clip, _clamp(0, 6)),
    "RELU_N1_TO_1": (_clip, _clamp(-1, 1)),
    "LEAKY_RELU": (lambda x: _unary("relax.nn.leakyrelu", x), _clamp(None, None)),
    "LOGISTIC": (lambda x: _unary("relax.sigmoid", x), tables.logistic_table),
    "TANH": (lambda x: _unary("relax.tanh", x), tables.tanh_table),
    "HARD_SWISH": (_hard_swish, tables.hard_swish_table),
}

FAMILY = dict.fromkeys(_FUNCTIONS, activation)
