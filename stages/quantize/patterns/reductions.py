"""Reductions over axes, SOFTMAX and L2_NORMALIZATION."""

from math import isclose, prod
from typing import Any

from tvm.relax.dpl import is_const, is_op, wildcard

from stages.ir.graph import L2Normalization, Mean, Softmax, Tensor
from stages.ir.operators.interpolated import WideSoftmax
from stages.ir.operators.reductions import ReduceExtremum, ReduceProd, Sum
from stages.quantize.arithmetic import mean_multiplier, quantize_multiplier
from stages.quantize.interpolation import difference_scaling, exponential_table, reciprocal_table
from stages.quantize.operator import Operator, dequantized, quantized
from stages.quantize.softmax import exponentials
from stages.quantize.writer import GraphWriter

_MOST_PRODUCT_SHIFT = 7  # from the reference


def mean(operator: Operator, writer: GraphWriter) -> None:
    """Append MEAN; over more than two separate axes as Sum, whose kernel takes any axes."""
    source, axes, count = _reduced(operator, "mean")
    out = operator.outputs[0]
    fixed = mean_multiplier(source.scale, out.scale, count)
    fields = _summing(operator, source, axes, count, fixed)
    several = sum(axis + 1 not in axes and source.shape[axis] > 1 for axis in axes) > 2
    several &= source.dtype != "int16"  # its kernel takes any axes
    writer.layer(Sum(averages=True, **fields) if several else Mean(**fields), [source], out)


def total(operator: Operator, writer: GraphWriter) -> None:
    """SUM. The real multiplier is in double (reduce.cc)."""
    source, axes, count = _reduced(operator, "sum")
    out = operator.outputs[0]
    fixed = quantize_multiplier(source.scale / out.scale)
    writer.layer(Sum(**_summing(operator, source, axes, count, fixed)), [source], out)


def extremum(operator: Operator, writer: GraphWriter) -> None:
    """REDUCE_MAX and REDUCE_MIN of the raw integers."""
    name = operator.call.op.lower()
    source, axes, _ = _reduced(operator, name.removeprefix("reduce_"))
    op = ReduceExtremum(op=name, axes=axes)  # type: ignore[arg-type]
    writer.layer(op, [source], operator.outputs[0])


def product(operator: Operator, writer: GraphWriter) -> None:
    """REDUCE_PROD. Real multiplier: input scale / output scale^(1 / count), in double."""
    source, axes, count = _reduced(operator, "prod")
    out = operator.outputs[0]
    multiplier, shift = quantize_multiplier(source.scale / out.scale ** (1.0 / count))
    if shift > _MOST_PRODUCT_SHIFT:
        raise operator.error(f"would scale its products up by 2^{shift}; check the scales of its tensors")
    low, high = operator.clamp
    op = ReduceProd(
        axes=axes,
        input_zero_point=source.zero_point,
        multiplier=multiplier,
        shift=shift,
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source], out)


def _reduced(operator: Operator, name: str) -> tuple[Tensor, tuple[int, ...], int]:
    """Input, logical axes and their number of elements.

    The body is dequantize(x) -> relax.`name`(axes) -> quantize.
    """
    x = wildcard()
    core = is_op(f"relax.{name}")(dequantized(x))
    match = operator.expect(quantized(core), f"quantize({name}(dequantize(x)))")
    source = operator.data(match[x])
    axes = operator.logical_axes([int(axis) for axis in match[core].attrs.axis], source)
    return source, tuple(sorted(axes)), prod(source.shape[axis] for axis in axes)


def _summing(
    operator: Operator, source: Tensor, axes: tuple[int, ...], count: int, fixed: tuple[int, int]
) -> dict[str, Any]:
    """Fields of MEAN and SUM."""
    low, high = operator.clamp
    return {
        "axes": axes,
        "input_zero_point": source.zero_point,
        "multiplier": fixed[0],
        "shift": fixed[1],
        "count": count,
        "output_zero_point": operator.outputs[0].zero_point,
        "act_min": low,
        "act_max": high,
    }


def softmax(operator: Operator, writer: GraphWriter) -> None:
    """SOFTMAX: dequantize(x) [-> times beta] -> softmax over the last axis -> quantize."""
    x, beta = wildcard(), is_const()
    real = dequantized(x)
    core = is_op("relax.nn.softmax")(is_op("relax.multiply")(real, beta) | real)
    match = operator.expect(quantized(core), "quantize(softmax(beta * dequantize(x)))")
    source, out = operator.data(match[x]), operator.outputs[0]
    lowest = -128 if out.dtype == "int8" else 0
    if int(match[core].attrs.axis) not in (-1, len(source.shape) - 1) or source.layout == "NCHW":
        raise operator.error("must be over the last axis")
    factor = operator.scalar(match[beta]) if beta in match else 1.0
    if source.dtype == "int16":
        _wide_softmax(operator, writer, source, factor)
        return
    to_sixteen = out.dtype == "int16"
    lowest = -(1 << 15) if to_sixteen else lowest
    # LiteRT's int16 form uses 2^-16, whatever the scale; TFLite's converter writes 1/65535.
    fits = isclose(out.scale, 2.0**-16, rel_tol=1e-3) if to_sixteen else out.scale == 1 / 256
    if not fits or out.zero_point != lowest:
        wanted = f"{'1/65536' if to_sixteen else '1/256'} and {lowest}"
        raise operator.error(f"has an output with scale {out.scale:g} and zero point {out.zero_point}, not {wanted}")
    try:
        table = exponentials(source.scale, factor)
    except ValueError as error:
        raise operator.error(f"cannot be computed as the reference does: {error}") from None
    writer.layer(Softmax(), [source], out, {"exp": table})


def _wide_softmax(operator: Operator, writer: GraphWriter, source: Tensor, beta: float) -> None:
    """SOFTMAX of 16 bits."""
    out = operator.outputs[0]
    if out.scale != 1 / 32768:
        raise operator.error(f"has an output with scale {out.scale:g}, not 1/32768")
    try:
        multiplier, shift = difference_scaling(source.scale, beta)
    except ValueError as error:
        raise operator.error(f"cannot be computed as the reference does: {error}") from None
    tables = {"exp": exponential_table(), "reciprocal": reciprocal_table()}
    writer.layer(WideSoftmax(multiplier=multiplier, shift=shift), [source], out, tables)


def l2_normalization(operator: Operator, writer: GraphWriter) -> None:
    """L2_NORMALIZATION: x / sqrt(sum of x^2 over the last axis), of real numbers."""
    x = wildcard()
    real = dequantized(x)
    total = is_op("relax.sum")(is_op("relax.square")(real))
    norm = is_op("relax.maximum")(is_op("relax.sqrt")(total), is_const())
    form = "quantize(dequantize(x) / max(sqrt(sum(square(dequantize(x)))), epsilon))"
    match = operator.expect(quantized(is_op("relax.divide")(real, norm)), form)
    source, out = operator.data(match[x]), operator.outputs[0]
    axes = [int(axis) for axis in match[total].attrs.axis]
    if axes not in ([-1], [len(source.shape) - 1]) or source.layout == "NCHW":
        raise operator.error("must be over the last axis")
    middle = 0 if out.dtype == "int8" else 128
    if out.scale != 1 / 128 or out.zero_point != middle or out.dtype != source.dtype:
        wanted = f"1/128 and {middle}"
        raise operator.error(f"has an output with scale {out.scale:g} and zero point {out.zero_point}, not {wanted}")
    writer.layer(L2Normalization(input_zero_point=source.zero_point), [source], out)


PATTERNS = {
    "L2_NORMALIZATION": l2_normalization,
    "MEAN": mean,
    "REDUCE_MAX": extremum,
    "REDUCE_MIN": extremum,
    "REDUCE_PROD": product,
    "SOFTMAX": softmax,
    "SUM": total,
}
