"""Layers with ONNX Runtime's integer arithmetic, whose roundings differ from LiteRT's.

Sums of a QLinear operator are integers (`stages.quantize.requantization_breakpoints`). Between DequantizeLinear and
QuantizeLinear they are float32 sums, each with its own error. Layers scale the integer sum by the real multiplier and
round once. `stages.verify.near_ties` has the bound within which ONNX Runtime may give the neighbouring value.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from stages.ir.arithmetic.pairs import LEFT_SHIFT, Pair, exact_halves, nearest_multipliers
from stages.ir.graph import Activation, Add, Mean, Mul, Quantize, Tensor
from stages.ir.operators.half_even import HalfEven
from stages.ir.operators.onnx_softmax import EXP_BITS, FACTOR_BITS, FloatSoftmax, NearestSoftmax
from stages.quantize.arithmetic import LIMITS
from stages.quantize.operator import Operator, activated, dequantized, quantized
from stages.quantize.patterns.operand import operand
from stages.quantize.requantization_breakpoints import requantization
from stages.quantize.writer import GraphWriter


def quantize(operator: Operator, writer: GraphWriter) -> None:
    """QUANTIZE: rounds real numbers, halves to even; integers use the table from import."""
    source, out = operator.inputs[0], operator.outputs[0]
    if "table" in operator.rule:
        table = np.array(operator.rule["table"], np.int8)
        writer.layer(Activation(function=operator.rule["function"]), [source], out, {"table": table})
        return
    if source.dtype != "float32":  # int8 and uint8 of the same real numbers
        difference = out.zero_point - source.zero_point
        low, high = LIMITS[source.dtype]
        table = (np.arange(low, high + 1) + difference).astype(out.dtype)
        writer.layer(Activation(function="requantize"), [source], out, {"table": table})
        return
    low, high = LIMITS[out.dtype]
    edge = Quantize(scale=out.scale, output_zero_point=out.zero_point, act_min=low, act_max=high, halves="even")
    writer.layer(edge, [source], out)


def combine(operator: Operator, writer: GraphWriter) -> None:
    """ADD, SUB and MUL with multipliers exact for all or nearly all pairs, or with shifts."""
    kind = operator.call.op.lower()
    a, b = _operands(operator, writer, {"add": "relax.add", "sub": "relax.subtract", "mul": "relax.multiply"}[kind])
    out, (low, high) = operator.outputs[0], operator.clamp
    first, second, result = ((tensor.scale, tensor.zero_point) for tensor in (a, b, out))
    pair = Pair(kind, first, second, result, low, high, operator.rule.get("lowered"))
    clamp: dict[str, Any] = {"output_zero_point": out.zero_point, "act_min": low, "act_max": high}
    points = (a.zero_point, b.zero_point)
    nearest = nearest_multipliers(pair)
    if nearest is None:
        halves = exact_halves(pair)
        if halves is None:
            raise operator.error("has scales for which no integer arithmetic gives ONNX Runtime's results")
        even = HalfEven(op=f"even_{kind}", zero_points=points, **asdict(halves), **clamp)  # type: ignore[arg-type]
        writer.layer(even, [a, b], out)
        return
    fixed, _ = nearest
    if kind == "mul":
        ((multiplier, shift),) = fixed
        op = Mul(zero_points=points, output_multiplier=multiplier, output_shift=shift, rounding="single", **clamp)
        writer.layer(op, [a, b], out)
        return
    (multiplier_a, shift_a), (multiplier_b, shift_b), (multiplier, shift) = fixed
    total = Add(
        op="sub" if kind == "sub" else "add",
        zero_points=points,
        left_shift=LEFT_SHIFT,
        multipliers=(multiplier_a, multiplier_b),
        shifts=(shift_a, shift_b),
        output_multiplier=multiplier,
        output_shift=shift,
        **clamp,
    )
    writer.layer(total, [a, b], out)


def _operands(operator: Operator, writer: GraphWriter, name: str) -> tuple[Tensor, Tensor]:
    a, b = wildcard(), wildcard()
    match = operator.expect(activated(is_op(name)(a, b)), f"quantize({name}(dequantize(a), dequantize(b)))")
    return operand(operator, writer, match[a], 0), operand(operator, writer, match[b], 1)


def mean(operator: Operator, writer: GraphWriter) -> None:
    """MEAN: the sum times a multiplier that includes the count."""
    x = wildcard()
    core = is_op("relax.mean")(dequantized(x))
    match = operator.expect(quantized(core), "quantize(mean(dequantize(x)))")
    source, out = operator.data(match[x]), operator.outputs[0]
    axes = operator.logical_axes([int(axis) for axis in match[core].attrs.axis], source)
    count, (low, high) = prod(source.shape[axis] for axis in axes), operator.clamp
    ends = np.array([[count * (limit - source.zero_point)] for limit in LIMITS[source.dtype]])
    limits = low - out.zero_point, high - out.zero_point
    scale = np.float32(source.scale) / (np.float32(out.scale) * np.float32(count))
    real = source.scale / (out.scale * count)
    rounding, ((multiplier, shift),) = requantization(operator, [real], np.array([scale]), ends, *limits)
    op = Mean(
        axes=tuple(sorted(axes)),
        input_zero_point=source.zero_point,
        multiplier=multiplier,
        shift=shift,
        count=count,
        rounding=rounding,
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source], out)


def softmax(operator: Operator, writer: GraphWriter) -> None:
    """SOFTMAX: rounds the real results to the nearest integers; QLinearSoftmax uses its table."""
    source, out, rule = operator.inputs[0], operator.outputs[0], operator.rule
    if source.layout == "NCHW":
        raise operator.error("must be over the last axis")
    low, high = LIMITS[out.dtype]
    clamp: dict[str, Any] = {"output_zero_point": out.zero_point, "act_min": low, "act_max": high}
    if "exp" in rule:
        table = np.array(rule["exp"], np.float32)
        writer.layer(FloatSoftmax(factor=rule["factor"], **clamp), [source], out, {"exp": table})
        return
    fraction, exponent = math.frexp(1 / out.scale)
    nearest = NearestSoftmax(factor=int(math.ldexp(fraction, FACTOR_BITS)), shift=FACTOR_BITS - exponent, **clamp)
    powers = np.exp(-np.float64(source.scale) * np.arange(256))
    writer.layer(nearest, [source], out, {"exp": np.rint(powers * 2.0**EXP_BITS).astype(np.int32)})


PATTERNS: dict[str, Callable[[Operator, GraphWriter], None]] = {
    "ADD": combine,
    "MEAN": mean,
    "MUL": combine,
    "QUANTIZE": quantize,
    "SOFTMAX": softmax,
    "SUB": combine,
}
"""Operators whose results differ from LiteRT's by more than the requantization."""
