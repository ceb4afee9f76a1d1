"""MEAN, SOFTMAX and L2_NORMALIZATION."""

from __future__ import annotations

from math import prod

from tvm.relax.dpl import is_const, is_op, wildcard

from stages.graph import L2Normalization, Mean, Softmax
from stages.quantize.arithmetic import mean_multiplier
from stages.quantize.operator import Operator, dequantized, quantized
from stages.quantize.softmax import exponentials
from stages.quantize.writer import GraphWriter


def mean(operator: Operator, writer: GraphWriter) -> None:
    """dequantize(x) -> mean(axes) -> quantize."""
    x = wildcard()
    core = is_op("relax.mean")(dequantized(x))
    match = operator.expect(quantized(core), "quantize(mean(dequantize(x)))")
    source, out = operator.data(match[x]), operator.outputs[0]
    axes = operator.logical_axes([int(axis) for axis in match[core].attrs.axis], source)
    count = prod(source.shape[axis] for axis in axes)
    multiplier, shift = mean_multiplier(source.scale, out.scale, count)
    low, high = operator.clamp
    op = Mean(
        axes=tuple(sorted(axes)),
        input_zero_point=source.zero_point,
        multiplier=multiplier,
        shift=shift,
        count=count,
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source], out)


def softmax(operator: Operator, writer: GraphWriter) -> None:
    """dequantize(x) [-> times beta] -> softmax over the last axis -> quantize."""
    x, beta = wildcard(), is_const()
    real = dequantized(x)
    core = is_op("relax.nn.softmax")(is_op("relax.multiply")(real, beta) | real)
    match = operator.expect(quantized(core), "quantize(softmax(beta * dequantize(x)))")
    source, out = operator.data(match[x]), operator.outputs[0]
    lowest = -128 if out.dtype == "int8" else 0
    if int(match[core].attrs.axis) not in (-1, len(source.shape) - 1) or source.layout == "NCHW":
        raise operator.error("is not over the last axis")
    if out.scale != 1 / 256 or out.zero_point != lowest or out.dtype != source.dtype:
        wanted = f"1/256 and {lowest}"
        raise operator.error(f"has an output with scale {out.scale:g} and zero point {out.zero_point}, not {wanted}")
    try:
        table = exponentials(source.scale, operator.scalar(match[beta]) if beta in match else 1.0)
    except ValueError as error:
        raise operator.error(f"cannot be computed as the reference does: {error}") from None
    writer.layer(Softmax(), [source], out, {"exp": table})


def l2_normalization(operator: Operator, writer: GraphWriter) -> None:
    """dequantize(x) divided by the square root of its sum of squares over the last axis -> quantize."""
    x = wildcard()
    real = dequantized(x)
    total = is_op("relax.sum")(is_op("relax.square")(real))
    norm = is_op("relax.maximum")(is_op("relax.sqrt")(total), is_const())
    form = "quantize(dequantize(x) / max(sqrt(sum(square(dequantize(x)))), epsilon))"
    match = operator.expect(quantized(is_op("relax.divide")(real, norm)), form)
    source, out = operator.data(match[x]), operator.outputs[0]
    axes = [int(axis) for axis in match[total].attrs.axis]
    if axes not in ([-1], [len(source.shape) - 1]) or source.layout == "NCHW":
        raise operator.error("is not over the last axis")
    middle = 0 if out.dtype == "int8" else 128
    if out.scale != 1 / 128 or out.zero_point != middle or out.dtype != source.dtype:
        wanted = f"1/128 and {middle}"
        raise operator.error(f"has an output with scale {out.scale:g} and zero point {out.zero_point}, not {wanted}")
    writer.layer(L2Normalization(input_zero_point=source.zero_point), [source], out)


FAMILY = {"MEAN": mean, "SOFTMAX": softmax, "L2_NORMALIZATION": l2_normalization}
