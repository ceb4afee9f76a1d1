"""TIR of layers that are products of matrices.

    for n in images, t in tiles of R rows:
      gather   rows[R, depth]  <- the windows of R output pixels as int8            mve_windows
      product  y[R, columns]   <- requantize(bias + offsets + rows * weights)       mve_gemm_*

Rows that can be read in place are not gathered. Rows left over get blocks of their own, `..._rest`; so do channels that
are no whole block, `product_last`: four channels that overlap those before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tirx.script.builder import ir as T

from stages.kernels.eight_bit import weight_zero_point
from stages.kernels.matrix import columns_of, depth_of
from stages.kernels.mve.base import arithmetic
from stages.kernels.mve.requantize_tir import requantize
from stages.kernels.mve.rows import (
    BLOCK,
    CHUNK,
    FIELDS,
    GATHERED,
    block_starts,
    function,
    gathers,
    images,
    row_bytes,
    windows_fields,
)
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import output, widen
from stages.kernels.tir.rows import gather_rows

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering

Expr = Any  # a TIR expression or a Python int


class _Gemm:
    """The blocks of one layer."""

    def __init__(self, view: LayerView) -> None:
        self.view = view
        self.depth, self.columns, self.row = depth_of(view), columns_of(view), row_bytes(view)
        self.chunks = -(-self.depth // CHUNK)
        self.blocks = len(block_starts(self.columns))
        self.gathered, self.zero_point = gathers(view), weight_zero_point(view)
        self.windows = windows_fields(view)
        self.image = (self.windows["height"], self.windows["width"], self.windows["channels"])
        self.mode, self.function = arithmetic(view).mode, function(view)

    def gather(self, name: str, rows: int) -> Block:
        """The windows of output pixels first ... first + rows - 1."""
        shape = {"rows": rows, "row": self.row, "written": self.depth}
        return gather_rows(self.view, name, "mve_windows", self.windows, **shape)

    def product(self, name: str, rows: int, blocks: int) -> Block:
        """`blocks` blocks of columns of `rows` rows."""
        dtype = self.view.outputs[0].dtype

        def meaning(b: Any) -> None:
            with loop(("i", rows), ("block", blocks), ("lane", BLOCK)) as (i, block, lane):
                store(b.acc, b.params[block, 0, lane] + (b.offsets[i] if self.zero_point else 0), 0)
                with loop(("k", self.depth)) as k:
                    weight = widen(b.weights[block, T.truncdiv(k, CHUNK), lane, T.truncmod(k, CHUNK)])
                    store(b.acc, b.acc[0] + widen(b.x[i, k]) * weight, 0)
                scaled = requantize(b.acc[0], b.params[block, 1, lane], b.params[block, 2, lane], self.mode)
                store(b.y, output(self.view, scaled), i, block * BLOCK + lane)

        operands = (
            Operand("x", (rows, self.row), "int8"),
            Operand("weights", (blocks, self.chunks, BLOCK, CHUNK), "int8"),
            Operand("params", (blocks, 3, BLOCK), "int32"),
            Operand("y", (rows, blocks * BLOCK), dtype, "w"),
            Operand("fields", (len(FIELDS),), "int32"),
            *((Operand("offsets", (rows,), "int32"),) if self.zero_point else ()),
            accumulator(),
        )

        def arguments(b: Any) -> list[Any]:
            # Without a zero point of the weights nobody looks at the offsets.
            offsets = b.offsets if self.zero_point else b.params
            return [b.x, b.weights, b.params, b.y, rows, blocks, b.fields, offsets]

        return Block(name, operands, meaning, self.function, arguments)


def gemm(view: LayerView, tile: int) -> Lowering:
    """The layer, `tile` rows at a time."""
    g, x, y = _Gemm(view), view.inputs[0], view.outputs[0]
    batch, rows = images(view)
    image = g.image if g.gathered else (rows, g.depth)
    parts = {"": tile, "_rest": rows % tile}

    with Function("gemm") as f:
        source = f.input(0, (batch, *image), x.dtype)
        weights = f.constant("weights", (g.blocks, g.chunks, BLOCK, CHUNK), "int8")
        params = f.constant("params", (g.blocks, 3, BLOCK), "int32")
        fields = f.constant("fields", (len(FIELDS),), "int32")
        windows = f.constant("windows", GATHERED.shape, "int32") if g.gathered else None
        out = f.output(0, (batch, rows, g.columns), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        first = f.scratch("first", (1,), "int32") if g.gathered else None
        rows_of_windows = f.scratch("rows", (tile, g.row), "int8") if g.gathered else None
        offsets = f.scratch("offsets", (tile,), "int32") if g.gathered else None

        def part(suffix: str, start: Any, n: Any) -> None:
            """The blocks for the rows of a part from row `start`."""
            count = parts[suffix]
            left: Any = (source, n, start, 0)
            if g.gathered:
                f.set_position("first" + suffix, first, start)
                left = (rows_of_windows, 0, 0)
                places = {"first": first, "windows": windows, "offsets": (offsets, 0), "acc": acc}
                f.place(g.gather("gather" + suffix, count), x=(source, n, 0, 0, 0), rows=left, **places)
            whole = g.columns // BLOCK
            extra: dict[str, Any] = {"offsets": (offsets, 0)} if g.zero_point else {}
            last = ("_last", whole, g.blocks - whole, g.columns - BLOCK)
            for name, block, blocks, column in (("", 0, whole, 0), last):
                if blocks:
                    extra |= {"weights": (weights, block, 0, 0, 0), "params": (params, block, 0, 0)}
                    product = g.product("product" + name + suffix, count, blocks)
                    f.place(product, x=left, y=(out, n, start, column), fields=fields, acc=acc, **extra)

        with f.loop(("n", batch)) as (n,):
            with f.loop(("t", rows // tile)) as (t,):
                part("", t * tile, n)
            if parts["_rest"]:
                part("_rest", rows - rows % tile, n)
    return f.lowering()
