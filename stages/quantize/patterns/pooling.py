"""AVERAGE_POOL_2D and MAX_POOL_2D of the raw integers.

Input and output have the same quantization.
"""

from typing import Any, Literal

from tvm.relax.dpl import is_op, wildcard

from stages.ir.graph import Pool2D, Tensor
from stages.quantize.operator import Operator, clipped, transposed
from stages.quantize.writer import GraphWriter


def average(operator: Operator, writer: GraphWriter) -> None:
    """AVERAGE_POOL_2D; padding does not count."""
    x = wildcard()
    core = is_op("relax.nn.avg_pool2d")(is_op("relax.astype")(x))
    match = operator.expect(transposed(clipped(is_op("relax.astype")(core))), "avg_pool2d on integers")
    _pool(operator, writer, "avg_pool2d", operator.data(match[x]), match[core].attrs)


def largest(operator: Operator, writer: GraphWriter) -> None:
    """MAX_POOL_2D; padding does not count."""
    x = wildcard()
    core = is_op("relax.nn.max_pool2d")(x)
    match = operator.expect(transposed(clipped(core)), "max_pool2d on integers")
    _pool(operator, writer, "max_pool2d", operator.data(match[x]), match[core].attrs)


def _pool(
    operator: Operator, writer: GraphWriter, name: Literal["avg_pool2d", "max_pool2d"], source: Tensor, attributes: Any
) -> None:
    out = operator.outputs[0]
    if source.quant != out.quant:
        raise operator.error("has an output whose scale or zero point differs from its input's")
    height, width = (int(size) for size in attributes.pool_size)
    top, left, bottom, right = (int(size) for size in attributes.padding)
    low, high = operator.clamp
    op = Pool2D(
        op=name,
        kernel=(height, width),
        stride=(int(attributes.strides[0]), int(attributes.strides[1])),
        padding=(top, left, bottom, right),
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source], out)


PATTERNS = {"AVERAGE_POOL_2D": average, "MAX_POOL_2D": largest}
