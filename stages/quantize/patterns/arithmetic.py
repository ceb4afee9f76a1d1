"""ADD, SUB and MUL: dequantize(a) op dequantize(b) -> quantize [-> clip], where one operand may be a constant."""

from __future__ import annotations

from tvm.relax.dpl import is_op, wildcard

from stages.graph import Add, Mul, Tensor
from stages.quantize.arithmetic import float32_product, float32_ratio, quantize_multiplier
from stages.quantize.operator import Operator, activated
from stages.quantize.patterns.operand import operand
from stages.quantize.writer import GraphWriter

LEFT_SHIFT = 20  # of 8-bit ADD and SUB, before the operands are brought to a common scale


def add(operator: Operator, writer: GraphWriter) -> None:
    """ADD and SUB. All real multipliers are in double (add.cc, sub.cc)."""
    subtract = operator.call.op == "SUB"
    a, b = _operands(operator, writer, "relax.subtract" if subtract else "relax.add")
    out = operator.outputs[0]
    twice = 2 * max(a.scale, b.scale)
    fixed = [quantize_multiplier(tensor.scale / twice) for tensor in (a, b)]
    output = quantize_multiplier(twice / ((1 << LEFT_SHIFT) * out.scale))
    low, high = operator.clamp
    op = Add(
        op="sub" if subtract else "add",
        zero_points=(a.zero_point, b.zero_point),
        left_shift=LEFT_SHIFT,
        multipliers=(fixed[0][0], fixed[1][0]),
        shifts=(fixed[0][1], fixed[1][1]),
        output_multiplier=output[0],
        output_shift=output[1],
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [a, b], out)


def mul(operator: Operator, writer: GraphWriter) -> None:
    """MUL. The real multiplier is a float32 expression (mul.cc)."""
    a, b = _operands(operator, writer, "relax.multiply")
    out = operator.outputs[0]
    multiplier, shift = quantize_multiplier(float32_ratio(float32_product(a.scale, b.scale), out.scale))
    low, high = operator.clamp
    op = Mul(
        zero_points=(a.zero_point, b.zero_point),
        output_multiplier=multiplier,
        output_shift=shift,
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [a, b], out)


def _operands(operator: Operator, writer: GraphWriter, name: str) -> tuple[Tensor, Tensor]:
    a, b = wildcard(), wildcard()
    match = operator.expect(activated(is_op(name)(a, b)), f"quantize({name}(dequantize(a), dequantize(b)))")
    return operand(operator, writer, match[a], 0), operand(operator, writer, match[b], 1)


FAMILY = {"ADD": add, "SUB": add, "MUL": mul}
