"""BATCH_MATMUL: quantize(matmul(dequantize(a), dequantize(b))), operands may be transposed."""

import numpy as np
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from stages.ir.arrays import Array
from stages.ir.graph import Conv2D, Layout, Move, Tensor
from stages.ir.layers import Rounding
from stages.ir.operators.matmul import BatchMatmul
from stages.quantize.arithmetic import LIMITS, Fixed, convolution_multipliers, quantize_multiplier
from stages.quantize.constant_channels import fold_constant_channels
from stages.quantize.operator import Operator, quantized
from stages.quantize.patterns.operand import operand
from stages.quantize.requantization_breakpoints import requantization
from stages.quantize.writer import GraphWriter

_MOST_WIDE_SHIFT = 14  # the right shift of a 64-bit sum is at least 1


def batch_matmul(operator: Operator, writer: GraphWriter) -> None:
    """BATCH_MATMUL. The real multiplier is as in a uint8 CONV_2D (batch_matmul.cc).

    It is the product of the scales in float32.
    """
    a, b = wildcard(), wildcard()
    match = operator.expect(quantized(is_op("relax.matmul")(a, b)), "quantize(matmul(dequantize(a), dequantize(b)))")
    tensors = [_operand(operator, writer, match[side], number) for number, side in enumerate((a, b))]
    first, second = tensors
    out = operator.outputs[0]
    wide = first.dtype == "int16"
    adjoint = [bool(operator.options.get(name, False)) for name in ("adjX", "adjY")]
    depth = first.shape[-2 if adjoint[0] else -1]
    low, high = operator.rule.get("clamp", operator.clamp)
    rounding: Rounding = "wide" if wide else "double"
    if operator.onnx:
        rounding, fixed = _of_onnx(operator, first, second, depth, (low, high))
    else:
        (real,) = convolution_multipliers("uint8", first.scale, [second.scale], out.scale)
        fixed = quantize_multiplier(real)
    if wide and fixed[1] > _MOST_WIDE_SHIFT:
        raise operator.error(f"would scale its sums up by 2^{fixed[1]}; check the scales of its tensors")
    matrix = second.constant and not wide and all(size == 1 for size in second.shape[:-2])
    if matrix and not adjoint[0] and not first.constant and len(out.shape) == len(first.shape):
        _convolution(operator, writer, first, second, adjoint[1], fixed, (low, high), rounding)
        return
    op = BatchMatmul(
        adj_x=adjoint[0],
        adj_y=adjoint[1],
        depth=depth,
        zero_points=(first.zero_point, second.zero_point),
        multiplier=fixed[0],
        shift=fixed[1],
        rounding=rounding,
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, tensors, out)


def _operand(operator: Operator, writer: GraphWriter, expr: relax.Expr, number: int) -> Tensor:
    """Operand as in the file, without a transpose."""
    inner = operator.resolve(expr)
    if isinstance(inner, relax.Call) and inner.op.name == "relax.permute_dims":
        expr = inner.args[0]
    return operand(operator, writer, expr, number)


def _of_onnx(
    operator: Operator, first: Tensor, second: Tensor, depth: int, clamp: tuple[int, int]
) -> tuple[Rounding, Fixed]:
    """As `requantization`, for sums of `depth` products of any two int8 numbers."""
    out = operator.outputs[0]
    limits = [[limit - tensor.zero_point for limit in LIMITS["int8"]] for tensor in (first, second)]
    corners = [depth * a * b for a in limits[0] for b in limits[1]]
    scale = np.float32(first.scale) * np.float32(second.scale) / np.float32(out.scale)
    real = first.scale * second.scale / out.scale
    ends = np.array([[min(corners)], [max(corners)]])
    bounds = clamp[0] - out.zero_point, clamp[1] - out.zero_point
    rounding, (fixed,) = requantization(operator, [real], np.array([scale]), ends, *bounds)
    return rounding, fixed


def _convolution(
    operator: Operator,
    writer: GraphWriter,
    x: Tensor,
    weights: Tensor,
    adjoint: bool,
    fixed: Fixed,
    clamp: tuple[int, int],
    rounding: Rounding,
) -> None:
    """A convolution of 1x1: rows are pixels, the matrix is the filters."""
    out, depth = operator.outputs[0], x.shape[-1]
    matrix = writer.graph.constants.pop(weights.name).reshape(weights.shape[-2:])
    del writer.graph.tensors[weights.name]
    filters = (matrix if adjoint else matrix.T).reshape(-1, 1, 1, depth)
    units, rows = len(filters), x.elements // depth
    shape = {"layout": Layout("NHWC")}
    pixels = writer.intermediate(x.model_copy(update={"shape": (1, rows, 1, depth), **shape}), "rows", x.quant)
    writer.layer(Move(kind="reshape"), [x], pixels, alias=True)
    result = writer.intermediate(out.model_copy(update={"shape": (1, rows, 1, units), **shape}), "rows", out.quant)
    multiplier, shift = (np.full(units, part, np.int32) for part in fixed)
    constants: dict[str, Array] = {"multiplier": multiplier, "shift": shift}
    if not operator.onnx:
        filters = fold_constant_channels(filters, constants, x.dtype, x.zero_point, weights.zero_point)
    constants["weights"] = filters
    low, high = clamp
    op = Conv2D(
        kernel=(1, 1),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        dilation=(1, 1),
        in_channels=depth,
        out_channels=units,
        input_zero_point=x.zero_point,
        weight_zero_point=weights.zero_point,
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
        rounding=rounding,
    )
    writer.layer(op, [pixels], result, constants)
    writer.layer(Move(kind="reshape"), [result], out, alias=True)


PATTERNS = {"BATCH_MATMUL": batch_matmul}
