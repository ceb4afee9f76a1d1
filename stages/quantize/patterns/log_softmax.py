"""LOG_SOFTMAX: quantize(log_softmax(dequantize(x))) over the last axis."""

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from stages.ir.arithmetic.fixed_point import rounding_divide_by_pot
from stages.ir.operators.log_softmax import LogSoftmax
from stages.quantize.operator import Operator, dequantized, quantized
from stages.quantize.softmax import differences, exponentials
from stages.quantize.writer import GraphWriter

_MAX_TERMS = 4095  # exponentials of at most 1 that Q12.19 can sum


def log_softmax(operator: Operator, writer: GraphWriter) -> None:
    """LOG_SOFTMAX.

    The output's scale is 1/16 and its zero point the type's highest value: results are from -16 to 0.
    """
    x = wildcard()
    core = is_op("relax.nn.log_softmax")(dequantized(x))
    match = operator.expect(quantized(core), "quantize(log_softmax(dequantize(x)))")
    source, out = operator.data(match[x]), operator.outputs[0]
    highest = 127 if out.dtype == "int8" else 255
    if int(match[core].attrs.axis) not in (-1, len(source.shape) - 1):
        raise operator.error("must be over the last axis")
    if out.scale != 1 / 16 or out.zero_point != highest:
        wanted = f"1/16 and {highest}"
        raise operator.error(f"has an output with scale {out.scale:g} and zero point {out.zero_point}, not {wanted}")
    if source.shape[-1] > _MAX_TERMS:
        raise operator.error(f"sums {source.shape[-1]:,} exponentials; the reference can sum at most {_MAX_TERMS:,}")
    try:
        powers = rounding_divide_by_pot(exponentials(source.scale, 1.0), 12).astype(np.int32)
        constants = {"exp": powers, "difference": differences(source.scale)}
    except ValueError as error:
        raise operator.error(f"cannot be computed as the reference does: {error}") from None
    writer.layer(LogSoftmax(), [source], out, constants)


PATTERNS = {"LOG_SOFTMAX": log_softmax}
