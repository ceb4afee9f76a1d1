"""Binary operators: dequantize(a) op dequantize(b) -> quantize [-> clip].

Either operand may be a constant.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from stages.ir.arithmetic.fixed_point import reciprocal
from stages.ir.arithmetic.multipliers import power_of_two
from stages.ir.arrays import Array
from stages.ir.graph import Add, Mul, Tensor
from stages.ir.operators.arithmetic import Div, Extremum, SquaredDifference
from stages.ir.operators.functions16 import PowerOfTwoSum
from stages.ir.operators.int32 import WideInteger
from stages.ir.operators.raw_integers import RawInteger
from stages.ir.operators.wide_div import WideDiv
from stages.quantize.arithmetic import float32_product, float32_ratio, quantize_multiplier
from stages.quantize.operator import Operator, activated, quantized
from stages.quantize.patterns.operand import operand
from stages.quantize.writer import GraphWriter

SQUARED_DIFFERENCE_SHIFT = 7  # left shift of int8 operands
_MOST_QUOTIENT_SHIFT = 22  # the right shift of an 8-bit quotient is not negative
# Left shift of ADD's and SUB's operands before rescaling: the bits that int32 leaves.
LEFT_SHIFT = {"int8": 20, "uint8": 20, "int16": 15}


def add(operator: Operator, writer: GraphWriter) -> None:
    """ADD and SUB. All real multipliers are in double (add.cc, sub.cc)."""
    name = operator.call.op.lower()
    a, b = _operands(operator, writer, {"add": "relax.add", "sub": "relax.subtract"}[name])
    out = operator.outputs[0]
    left_shift = LEFT_SHIFT[out.dtype]
    exponents = [power_of_two(tensor.scale) for tensor in (a, b, out)]
    if out.dtype == "int16" and operator.options.get("potScaleInt16", True) and None not in exponents:
        _power_of_two_sum(operator, writer, (a, b), [exponent or 0 for exponent in exponents])
        return
    twice = 2 * max(a.scale, b.scale)
    fields = _rescaled(operator, (a, b), left_shift, twice / ((1 << left_shift) * out.scale))
    writer.layer(Add(op=name, **fields), [a, b], out)  # type: ignore[arg-type]


def _rescaled(operator: Operator, inputs: Sequence[Tensor], left_shift: int, output_scale: float) -> dict[str, Any]:
    """Return the fields of a layer with inputs rescaled to twice the larger scale.

    The inputs are shifted to the left first.
    """
    twice = 2 * max(tensor.scale for tensor in inputs)
    multipliers, shifts = zip(*(quantize_multiplier(tensor.scale / twice) for tensor in inputs), strict=True)
    output_multiplier, output_shift = quantize_multiplier(output_scale)
    low, high = operator.clamp
    return {
        "zero_points": tuple(tensor.zero_point for tensor in inputs),
        "left_shift": left_shift,
        "multipliers": multipliers,
        "shifts": shifts,
        "output_multiplier": output_multiplier,
        "output_shift": output_shift,
        "output_zero_point": operator.outputs[0].zero_point,
        "act_min": low,
        "act_max": high,
    }


def _power_of_two_sum(
    operator: Operator, writer: GraphWriter, operands: tuple[Tensor, Tensor], exponents: Sequence[int]
) -> None:
    """Sum on power-of-two scales, unless the options forbid it.

    One operand has the output's scale.
    """
    shifts = [exponents[2] - exponent for exponent in exponents[:2]]
    if min(shifts) < 0 or 0 not in shifts or max(shifts) > 31:
        raise operator.error(
            "has power-of-two scales; LiteRT requires one equal to the output's and none above it",
            "Export with pot_scale_int16 off: then any scales work.",
        )
    if operator.call.op == "ADD" and operands[0].shape != operands[1].shape:
        raise operator.error("broadcasts with power-of-two scales, which LiteRT's ADD of int16 does not support")
    low, high = operator.clamp
    name = f"power_of_two_{operator.call.op.lower()}"
    op = PowerOfTwoSum(op=name, shifts=(shifts[0], shifts[1]), output_zero_point=0, act_min=low, act_max=high)  # type: ignore[arg-type]
    writer.layer(op, list(operands), operator.outputs[0])


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


def extremum(operator: Operator, writer: GraphWriter) -> None:
    """MAXIMUM and MINIMUM of the raw integers (maximum_minimum.cc)."""
    name = operator.call.op.lower()
    a, b = _operands(operator, writer, f"relax.{name}")
    writer.layer(Extremum(op=name), [a, b], operator.outputs[0])  # type: ignore[arg-type]


def integer_division(operator: Operator, writer: GraphWriter) -> None:
    """FLOOR_DIV and FLOOR_MOD of the raw integers (floor_div.cc, floor_mod.cc)."""
    name = operator.call.op.lower()
    a, b = _operands(operator, writer, {"floor_div": "relax.floor_divide", "floor_mod": "relax.floor_mod"}[name])
    writer.layer(RawInteger(op=name), [a, b], operator.outputs[0])  # type: ignore[arg-type]


def squared_difference(operator: Operator, writer: GraphWriter) -> None:
    """SQUARED_DIFFERENCE. Double real multipliers of float32 scales (squared_difference.cc)."""
    x, y = wildcard(), wildcard()
    core = is_op("relax.square")(is_op("relax.subtract")(x, y))
    match = operator.expect(quantized(core), "quantize(square(dequantize(a) - dequantize(b)))")
    a, b = operand(operator, writer, match[x], 0), operand(operator, writer, match[y], 1)
    out = operator.outputs[0]
    twice, shift = 2 * max(a.scale, b.scale), SQUARED_DIFFERENCE_SHIFT
    fields = _rescaled(operator, (a, b), shift, twice * twice / float32_product(1 << 2 * shift, out.scale))
    writer.layer(SquaredDifference(**fields), [a, b], out)


def div(operator: Operator, writer: GraphWriter) -> None:
    """DIV. The real multiplier is a float32 expression (div.cc)."""
    a, b = _operands(operator, writer, "relax.divide")
    out = operator.outputs[0]
    multiplier, shift = quantize_multiplier(float32_ratio(a.scale, float32_product(b.scale, out.scale)))
    if shift > _MOST_QUOTIENT_SHIFT:
        raise operator.error(f"would scale its quotients up by 2^{shift}; check the scales of its tensors")
    low, high = operator.clamp
    fields: dict[str, Any] = {
        "output_multiplier": multiplier,
        "output_shift": shift,
        "output_zero_point": out.zero_point,
        "act_min": low,
        "act_max": high,
    }
    if out.dtype == "int16":
        writer.layer(WideDiv(**fields), [a, b], out)
        return
    writer.layer(Div(zero_points=(a.zero_point, b.zero_point), **fields), [a, b], out, division_tables())


def division_tables() -> dict[str, Array]:
    """Constants of `Div`: GetReciprocal of each divisor, and its number of bits."""
    divisors = range(1, 256)
    inverse = [int(reciprocal(divisor << 32 - divisor.bit_length())) for divisor in divisors]
    bits = [divisor.bit_length() for divisor in divisors]
    return {"inverse": np.array([0, *inverse], np.int32), "bits": np.array([0, *bits], np.int32)}


def _operands(operator: Operator, writer: GraphWriter, name: str) -> tuple[Tensor, Tensor]:
    a, b = wildcard(), wildcard()
    match = operator.expect(activated(is_op(name)(a, b)), f"quantize({name}(dequantize(a), dequantize(b)))")
    return operand(operator, writer, match[a], 0), operand(operator, writer, match[b], 1)


_OF_INT32 = {
    "ADD": "add",
    "DIV": "divide",
    "MAXIMUM": "maximum",
    "MINIMUM": "minimum",
    "MUL": "multiply",
    "SUB": "subtract",
}


def of_int32(operator: Operator, writer: GraphWriter) -> bool:
    """Append a layer on int32 without scales or activation; return whether it did."""
    tensors = (*operator.inputs, *operator.outputs)
    if operator.call.op not in _OF_INT32 or any(tensor.dtype != "int32" for tensor in tensors):
        return False
    a, b = wildcard(), wildcard()
    match = operator.match(is_op(f"relax.{_OF_INT32[operator.call.op]}")(a, b))
    if match is None:
        return False
    name, out = f"int32_{operator.call.op.lower()}", operator.outputs[0]
    sides = [match[a], match[b]]
    if operator.call.op not in ("DIV", "SUB") and operator.tensor(sides[0]) is None:
        sides.reverse()
    constant = None if operator.tensor(sides[1]) is not None else operator.parameters(sides[1]).values
    if constant is not None and constant.size == 1 and operator.data(sides[0]).shape == out.shape:
        op = WideInteger(op=name, value=int(constant.reshape(-1)[0]))  # type: ignore[arg-type]
        writer.layer(op, [operator.data(sides[0])], out)
        return True
    inputs = [operand(operator, writer, side, number) for number, side in enumerate(sides)]
    writer.layer(WideInteger(op=name), inputs, out)  # type: ignore[arg-type]
    return True


PATTERNS = {
    "ADD": add,
    "DIV": div,
    "FLOOR_DIV": integer_division,
    "FLOOR_MOD": integer_division,
    "MAXIMUM": extremum,
    "MINIMUM": extremum,
    "MUL": mul,
    "SQUARED_DIFFERENCE": squared_difference,
    "SUB": add,
}
