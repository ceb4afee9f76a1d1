"""TIR of RESIZE_BILINEAR on int8, one image at a time."""

from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import widen
from stages.ir.graph import LayerView


def resize(view: LayerView, function: str, parameters: tuple[int, ...], whole: int, words: int) -> Lowering:
    """Return the layer as calls of `function`, with tables of kernels.resize.between.

    The function gets `words` words of scratch.
    """
    x, y = view.inputs[0].shape, view.outputs[0].shape
    batch, height, width, channels = y

    def meaning(b: Any) -> None:
        with (
            loop(("oy", height), ("ox", width)) as (oy, ox),
            position("r0", b.rows[oy, 0]) as r0,
            position("r1", b.rows[oy, 1]) as r1,
            position("c0", b.columns[ox, 0]) as c0,
            position("c1", b.columns[ox, 1]) as c1,
            loop(("c", channels)) as c,
        ):
            p, q = b.rows[oy, 2], b.columns[ox, 2]
            store(b.total, widen(b.x[r0, c0, c]) * ((whole - p) * (whole - q)), 0)
            store(b.total, b.total[0] + widen(b.x[r1, c0, c]) * (p * (whole - q)), 0)
            store(b.total, b.total[0] + widen(b.x[r0, c1, c]) * ((whole - p) * q), 0)
            store(b.total, b.total[0] + widen(b.x[r1, c1, c]) * (p * q), 0)
            half = tirx.Select(b.total[0] > 0, T.int32(whole * whole // 2), T.int32(-(whole * whole // 2)))
            store(b.y, T.Cast("int8", T.truncdiv(b.total[0] + half, T.int32(whole * whole))), oy, ox, c)

    tables = (Operand("rows", (height, 3), "int32"), Operand("columns", (width, 3), "int32"))
    operands = (
        Operand("x", x[1:], "int8"),
        *tables,
        Operand("resize", parameters, "int32"),
        Operand("y", y[1:], "int8", "w"),
        Operand("scratch", (words,), "int32", "rw"),
        accumulator("total"),
    )
    arguments = lambda b: [b.x, b.rows, b.columns, b.y, b.scratch, b.resize]  # noqa: E731
    image = Block("image", operands, meaning, function, arguments)
    with Function("resize_bilinear") as f:
        source = f.input(0, x, "int8")
        constants = {table.name: f.constant(table.name, table.shape, "int32") for table in tables}
        constants["resize"] = f.constant("resize", parameters, "int32")
        out = f.output(0, y, "int8")
        scratch = {"scratch": f.scratch("scratch", (words,), "int32"), "total": f.scratch("total", (1,), "int32")}
        with f.loop(("n", batch)) as (n,):
            f.place(image, x=(source, n, 0, 0, 0), y=(out, n, 0, 0, 0), **constants, **scratch)
    return f.lowering()
