"""TIR of pooling by lines: one block per image, with scratch for a line and rows."""

from dataclasses import replace
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir import pooling
from stages.backends.kernels.tir.block import Function, Operand
from stages.ir.graph import LayerView


def pool_lines(view: LayerView, function: str, fields: int, line_bytes: int, scratch_bytes: int) -> Lowering:
    """Loop over images around `function(x, y, scratch, pool, line_bytes)`."""
    x, y = view.inputs[0], view.outputs[0]
    image = pooling._image(view, function, Operand("pool", (fields,), "int32"), planes=False)
    scratch = Operand("scratch", (scratch_bytes,), "int8", "w")

    def arguments(b: Any) -> list[Any]:
        return [b.x, b.y, b.scratch, b.pool, line_bytes]

    block = replace(image, operands=(*image.operands, scratch), arguments=arguments)
    with Function(view.op.op) as f:
        given, out = f.input(0, x.shape, x.dtype), f.output(0, y.shape, y.dtype)
        constants = {
            "pool": f.constant("pool", (fields,), "int32"),
            "scratch": f.scratch("scratch", (scratch_bytes,), "int8"),
            "acc": f.scratch("acc", (1,), "int32"),
            "count": f.scratch("count", (1,), "int32"),
        }
        with f.loop(("n", y.shape[0])) as (n,):
            f.place(block, x=(given, n, 0, 0, 0), y=(out, n, 0, 0, 0), **constants)
    return f.lowering()
