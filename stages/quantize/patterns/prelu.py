"""PRELU: max(x, 0) + slope * min(x, 0) of real numbers; the slopes may be constant."""

from tvm.relax.dpl import is_const, is_op, wildcard

from stages.ir.operators.prelu import Prelu
from stages.quantize.arithmetic import float32_product, float32_ratio, quantize_multiplier
from stages.quantize.operator import Operator, dequantized, quantized
from stages.quantize.patterns.operand import operand
from stages.quantize.writer import GraphWriter


def prelu(operator: Operator, writer: GraphWriter) -> None:
    """PRELU. The real multipliers are float32 expressions (activations.cc)."""
    x, slopes = wildcard(), wildcard()
    real = dequantized(x)
    below = is_op("relax.multiply")(slopes, is_op("relax.minimum")(real, is_const()))
    core = is_op("relax.add")(is_op("relax.maximum")(real, is_const()), below)
    match = operator.expect(quantized(core), "quantize(prelu(dequantize(x), dequantize(slopes)))")
    source, factors, out = operator.data(match[x]), operand(operator, writer, match[slopes], 1), operator.outputs[0]
    fixed = (
        quantize_multiplier(float32_ratio(source.scale, out.scale)),
        quantize_multiplier(float32_ratio(float32_product(source.scale, factors.scale), out.scale)),
    )
    low, high = operator.clamp
    op = Prelu(
        zero_points=(source.zero_point, factors.zero_point),
        multipliers=(fixed[0][0], fixed[1][0]),
        shifts=(fixed[0][1], fixed[1][1]),
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source, factors], out)


PATTERNS = {"PRELU": prelu}
