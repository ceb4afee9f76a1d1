"""RESIZE_BILINEAR of the raw integers: dequantize(x) -> resize2d -> quantize."""

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from stages.ir.operators.interpolation import EvenResize, ResizeBilinear
from stages.quantize.operator import Operator, dequantized, quantized
from stages.quantize.resize import bilinear
from stages.quantize.writer import GraphWriter


def resize_bilinear(operator: Operator, writer: GraphWriter) -> None:
    """RESIZE_BILINEAR, with tables of source rows and columns and their shares."""
    x = wildcard()
    form = "quantize(resize2d(dequantize(x)))"
    match = operator.expect(quantized(is_op("relax.image.resize2d")(dequantized(x), wildcard())), form)
    source, out = operator.data(match[x]), operator.outputs[0]
    corners, centers = (bool(operator.options.get(name)) for name in ("alignCorners", "halfPixelCenters"))
    integer, constants = source.dtype == "int8", {}
    for axis, role, share_role in ((1, "rows", "row_shares"), (2, "columns", "column_shares")):
        try:
            positions, shares = bilinear(source.shape[axis], out.shape[axis], corners, centers, integer=integer)
        except ValueError as error:
            raise operator.error(f"cannot be computed as the reference does: {error}") from None
        constants[role] = np.array(positions, np.int32)
        constants[share_role] = np.array(shares, np.int32 if integer else np.float32)
    op = EvenResize(zero_point=source.zero_point) if operator.rule.get("sums") == "resize" else ResizeBilinear()
    writer.layer(op, [source], out, constants)


PATTERNS = {"RESIZE_BILINEAR": resize_bilinear}
