"""Element-wise functions of one tensor; with 8 bits each is a table of 256 outputs."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

from tvm.relax.dpl import DFPattern, is_const, is_op, wildcard

from stages.ir.arithmetic.activation_bounds import BOUNDS
from stages.ir.arithmetic.fixed_point import INT32_MAX, quantized_bound
from stages.ir.arithmetic.sigmoid16 import sigmoid_table
from stages.ir.arrays import Array
from stages.ir.graph import Activation, Requantize, Tensor
from stages.ir.operators.functions16 import Leaky, Lines
from stages.ir.operators.interpolated import Interpolated
from stages.ir.operators.raw_integers import RawInteger
from stages.ir.operators.wide_sqrt import WideSqrt
from stages.quantize import function_tables, tables
from stages.quantize.arithmetic import LIMITS, float32_product, float32_ratio, quantize_multiplier
from stages.quantize.interpolation import function_table, sigmoid_scaling
from stages.quantize.operator import Operator, dequantized, quantized
from stages.quantize.tables import Quantized
from stages.quantize.writer import GraphWriter

Table = Callable[[Quantized, Quantized, Mapping[str, Any]], Array]  # f(input, output, the file's options)


def _unary(name: str, x: DFPattern) -> DFPattern:
    return is_op(name)(x)


def _clip(x: DFPattern) -> DFPattern:
    return is_op("relax.clip")(x, wildcard(), wildcard())


def _elu(x: DFPattern) -> DFPattern:
    below = is_op("relax.minimum")(is_op("relax.subtract")(is_op("relax.exp")(x), is_const()), is_const())
    return is_op("relax.add")(is_op("relax.maximum")(x, is_const()), below)


def _hard_swish(x: DFPattern) -> DFPattern:
    gate = _clip(is_op("relax.add")(x, is_const()))
    return is_op("relax.divide")(is_op("relax.multiply")(x, gate), is_const())


def activation(operator: Operator, writer: GraphWriter) -> None:
    """quantize(f(dequantize(x))) of a function in the table below."""
    shape, table = _FUNCTIONS[operator.call.op]
    x = wildcard()
    core = shape(dequantized(x))
    match = operator.expect(quantized(core), f"quantize({operator.call.op.lower()}(dequantize(x)))")
    source, out = operator.data(match[x]), operator.outputs[0]
    if source.dtype == "int16":
        _SIXTEEN.get(operator.call.op, _clamped)(operator, writer, source)
        return
    quantizations = operator.quantized(source), operator.quantized(out)
    try:
        values = table(*quantizations, operator.options)
    except ValueError as error:
        raise operator.error(f"cannot be computed as the reference does: {error}") from None
    writer.layer(Activation(function=operator.call.op.lower()), [source], out, {"table": values})


def _interpolated(operator: Operator, writer: GraphWriter, source: Tensor) -> None:
    """LOGISTIC and TANH of 16 bits."""
    out = operator.outputs[0]
    if out.scale != 1 / 32768:
        raise operator.error(f"has an output with scale {out.scale:g}, not 1/32768")
    multiplier, shift = sigmoid_scaling(source.scale)
    if multiplier >= 1 << 15:
        raise operator.error(f"has an input with scale {source.scale:g}; it must be below 8/3")
    op = Interpolated(function=operator.call.op.lower(), multiplier=multiplier, shift=shift)  # type: ignore[arg-type]
    writer.layer(op, [source], out, {"table": sigmoid_table()})


def _clamped(operator: Operator, writer: GraphWriter, source: Tensor) -> None:
    """RELU, RELU6 and RELU_N1_TO_1 of 16 bits: requantized, then clamped."""
    out, low, high = operator.outputs[0], *BOUNDS[operator.call.op]
    multiplier, shift = quantize_multiplier(float32_ratio(source.scale, out.scale))
    limits = LIMITS[out.dtype]
    op = Requantize(
        input_zero_point=source.zero_point,
        multiplier=multiplier,
        shift=shift,
        output_zero_point=out.zero_point,
        act_min=limits[0] if low is None else max(quantized_bound(low, out.scale, out.zero_point), limits[0]),
        act_max=limits[1] if high is None else min(quantized_bound(high, out.scale, out.zero_point), limits[1]),
    )
    writer.layer(op, [source], out)


def _lines(operator: Operator, writer: GraphWriter, source: Tensor) -> None:
    """EXP, GELU, LOG and RSQRT of 16 bits: interpolation between 513 float32 results."""
    out, function = operator.outputs[0], function_tables.REAL[operator.call.op]
    table = function_table(lambda x: function(x, out.scale, operator.options), source.scale, out.scale)
    writer.layer(Lines(function=operator.call.op.lower()), [source], out, {"table": table})  # type: ignore[arg-type]


def _leaky(operator: Operator, writer: GraphWriter, source: Tensor) -> None:
    """LEAKY_RELU of 16 bits; with a negative slope the value times its magnitude, negated."""
    out, alpha = operator.outputs[0], float(operator.options.get("alpha", 0.0))
    multiplier, shift = quantize_multiplier(float32_ratio(source.scale, out.scale))
    slope, slope_shift = quantize_multiplier(abs(float32_ratio(float32_product(source.scale, alpha), out.scale)))
    low, high = LIMITS[out.dtype]
    op = Leaky(
        multiplier=multiplier,
        shift=shift,
        slope=slope,
        slope_shift=slope_shift,
        sign=-1 if alpha < 0 else 1,
        output_zero_point=0,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source], out)


def _abs(operator: Operator, writer: GraphWriter, source: Tensor) -> None:
    """ABS of 16 bits: the magnitude, scaled as with 8 bits."""
    out = operator.outputs[0]
    multiplier, shift = quantize_multiplier(float32_ratio(source.scale, out.scale))
    low, high = LIMITS[out.dtype]
    op = Leaky(
        function="abs",
        multiplier=multiplier,
        shift=shift,
        slope=multiplier,
        slope_shift=shift,
        sign=-1,
        output_zero_point=0,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source], out)


def _negative(operator: Operator, writer: GraphWriter, source: Tensor) -> None:
    writer.layer(RawInteger(op="negative"), [source], operator.outputs[0])


def _sqrt(operator: Operator, writer: GraphWriter, source: Tensor) -> None:
    out = operator.outputs[0]
    low, high = LIMITS[out.dtype]
    if sqrt(high * source.scale) / out.scale > INT32_MAX:
        raise operator.error("has roots beyond int32; check the scales of its tensors")
    scales: dict[str, Any] = {"input_scale": source.scale, "output_scale": out.scale}
    writer.layer(WideSqrt(**scales, output_zero_point=0, act_min=low, act_max=high), [source], out)


_SIXTEEN = {
    "ABS": _abs,
    "NEG": _negative,
    "LOGISTIC": _interpolated,
    "TANH": _interpolated,
    "LEAKY_RELU": _leaky,
    "SQRT": _sqrt,
    **dict.fromkeys(("EXP", "GELU", "LOG", "RSQRT"), _lines),
}


def _clamp(low: float | None, high: float | None) -> Table:
    return lambda x, out, options: tables.clamp_table(x, out, low, high)


def _plain(table: Callable[[Quantized, Quantized], Array]) -> Table:
    return lambda x, out, options: table(x, out)


def _leaky_relu(x: Quantized, out: Quantized, options: Mapping[str, Any]) -> Array:
    return tables.leaky_relu_table(x, out, float(options.get("alpha", 0.0)))


def _gelu(x: Quantized, out: Quantized, options: Mapping[str, Any]) -> Array:
    return function_tables.gelu_table(x, out, approximate=bool(options.get("approximate", False)))


_FUNCTIONS: dict[str, tuple[Callable[[DFPattern], DFPattern], Table]] = {
    "RELU": (lambda x: _unary("relax.nn.relu", x), _clamp(*BOUNDS["RELU"])),
    "RELU6": (_clip, _clamp(*BOUNDS["RELU6"])),
    "RELU_N1_TO_1": (_clip, _clamp(*BOUNDS["RELU_N1_TO_1"])),
    "LEAKY_RELU": (lambda x: _unary("relax.nn.leakyrelu", x), _leaky_relu),
    "LOGISTIC": (lambda x: _unary("relax.sigmoid", x), _plain(tables.logistic_table)),
    "TANH": (lambda x: _unary("relax.tanh", x), _plain(tables.tanh_table)),
    "HARD_SWISH": (_hard_swish, _plain(tables.hard_swish_table)),
    "ABS": (lambda x: _unary("relax.abs", x), _plain(function_tables.abs_table)),
    "ELU": (_elu, _plain(function_tables.elu_table)),
    "EXP": (lambda x: _unary("relax.exp", x), _plain(function_tables.exp_table)),
    "GELU": (lambda x: _unary("relax.nn.gelu", x), _gelu),
    "LOG": (lambda x: _unary("relax.log", x), _plain(function_tables.log_table)),
    "NEG": (lambda x: _unary("relax.negative", x), _plain(function_tables.neg_table)),
    "RSQRT": (lambda x: _unary("relax.rsqrt", x), _plain(function_tables.rsqrt_table)),
    "SQRT": (lambda x: _unary("relax.sqrt", x), _plain(function_tables.sqrt_table)),
}

PATTERNS = dict.fromkeys(_FUNCTIONS, activation)
