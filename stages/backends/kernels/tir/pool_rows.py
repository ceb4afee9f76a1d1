"""TIR of pooling by rows: as `pooling.py`, with a line of scratch for the C function."""

from dataclasses import replace

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Function, Operand
from stages.backends.kernels.tir.pooling import _image
from stages.ir.graph import LayerView


def pool_rows(view: LayerView, function: str, fields: tuple[int, ...], line: int) -> Lowering:
    """Return the loop over images around `function(x, y, line, fields)`.

    Sums of a line have 16 bits.
    """
    x, y = view.inputs[0], view.outputs[0]
    dtype = x.dtype if view.op.is_max else "int16"
    plain = _image(view, function, Operand("fields", fields, "int32"), planes=False)
    block = replace(
        plain,
        operands=(*plain.operands, Operand("line", (line,), dtype, "rw")),
        arguments=lambda b: [b.x, b.y, b.line, b.fields],
    )
    with Function(view.op.op) as f:
        image = f.input(0, x.shape, x.dtype)
        fields_buffer = f.constant("fields", fields, "int32")
        out = f.output(0, y.shape, y.dtype)
        cells = {name: f.scratch(name, (1,), "int32") for name in ("acc", "count")}
        cells["line"] = f.scratch("line", (line,), dtype)
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(image, n, 0, 0, 0), y=(out, n, 0, 0, 0), fields=fields_buffer, **cells)
    return f.lowering()
