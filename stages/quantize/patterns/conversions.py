"""QUANTIZE and DEQUANTIZE: between float32 and 8 bits, or from one quantization to another."""

from tvm.relax.dpl import wildcard

from stages.ir.graph import Dequantize, Quantize, Requantize
from stages.quantize.arithmetic import LIMITS, quantize_multiplier
from stages.quantize.operator import Operator, dequantized, quantized
from stages.quantize.writer import GraphWriter


def quantize(operator: Operator, writer: GraphWriter) -> None:
    """quantize(x) of float32, or quantize(dequantize(x)) of integers with a double multiplier."""
    x, out = wildcard(), operator.outputs[0]
    low, high = LIMITS[out.dtype]
    match = operator.match(quantized(dequantized(x)))
    if match is not None or "int32" in (operator.inputs[0].dtype, out.dtype):
        source = operator.inputs[0] if match is None else operator.data(match[x])
        multiplier, shift = quantize_multiplier(source.scale / out.scale)
        op = Requantize(
            input_zero_point=source.zero_point,
            multiplier=multiplier,
            shift=shift,
            output_zero_point=out.zero_point,
            act_min=low,
            act_max=high,
        )
        writer.layer(op, [source], out)
        return
    match = operator.expect(quantized(x), "quantize(x) or quantize(dequantize(x))")
    edge = Quantize(scale=out.scale, output_zero_point=out.zero_point, act_min=low, act_max=high)
    writer.layer(edge, [operator.data(match[x])], out)


def dequantize(operator: Operator, writer: GraphWriter) -> None:
    """dequantize(x) of an 8-bit tensor."""
    x = wildcard()
    source = operator.data(operator.expect(dequantized(x), "dequantize(x)")[x])
    writer.layer(Dequantize(input_zero_point=source.zero_point, scale=source.scale), [source], operator.outputs[0])


PATTERNS = {"QUANTIZE": quantize, "DEQUANTIZE": dequantize}
