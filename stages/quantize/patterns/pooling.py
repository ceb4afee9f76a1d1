"""AVERAGE_POOL_2D and MAX_POOL_2D of the raw integers.

Input and output have the same quantization.
"""

from __future__ import annotations

from tvm.relax.dpl import is_op, wildcard

from stages.ir.graph import Pool2D
from stages.quantize.operator import Operator, clipped, transposed
from stages.quantize.writer import GraphWriter


def pool(operator: Operator, writer: GraphWriter) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D; padding does not count."""
    average = operator.call.op == "AVERAGE_POOL_2D"
    x = wildcard()
    if average:
        core = is_op("relax.nn.avg_pool2d")(is_op("relax.astype")(x))
        match = operator.expect(transposed(clipped(is_op("relax.astype")(core))), "avg_pool2d on integers")
    else:
        core = is_op("relax.nn.max_pool2d")(x)
        match = operator.expect(transposed(clipped(core)), "max_pool2d on integers")
    source, out, attributes = operator.data(match[x]), operator.outputs[0], match[core].attrs
    if source.quant != out.quant:
        raise operator.error("has an output whose scale or zero point differs from its input's")
    height, width = (int(size) for size in attributes.pool_size)
    top, left, bottom, right = (int(size) for size in attributes.padding)
    low, high = operator.clamp
    op = Pool2D(
        op="avg_pool2d" if average else "max_pool2d",
        kernel=(height, width),
        stride=(int(attributes.strides[0]), int(attributes.strides[1])),
        padding=(top, left, bottom, right),
        output_zero_point=out.zero_point,
        act_min=low,
        act_max=high,
    )
    writer.layer(op, [source], out)


PATTERNS = {"AVERAGE_POOL_2D": pool, "MAX_POOL_2D": pool}
