"""TIR of matrix products by tiles.

    for n in images, t in tiles of R rows:
      gather   rows[R, depth]  <- the windows of R output pixels as int8, if they are not read in place
      product  y[R, columns]   <- requantize(bias + x * weights)                   generated from `matrix_product.py`

Remaining rows have separate blocks, `..._rest`.
"""

from typing import Any

from stages.backends.kernels.eight_bit import weight_zero_point
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.matrix import columns_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, widen
from stages.backends.kernels.tir.rows import gather_rows
from stages.backends.tiles.product_sizes import (
    FIELDS,
    GATHERED,
    Blocks,
    block_columns,
    images,
    parts_of,
    reads_in_place,
    row_of,
    rows_at_a_time,
    windows_fields,
)
from stages.ir.graph import LayerView


def _product(view: LayerView, function: str, blocks: Blocks, rounding: str, name: str, rows: int) -> Block:
    """Compute all columns of `rows` rows."""
    step, parts = blocks.step, parts_of(rounding)
    depth, columns, total = row_of(view, step), columns_of(view), block_columns(view, blocks)
    zero_point, entries = weight_zero_point(view), blocks.of(columns)

    def column(b: Any, row: Any, packed: Any, first: Any, j: Any, used: int) -> None:
        """Compute column first + j; `packed` columns lie before its block."""
        channel = packed * parts + j
        store(b.acc, b.channels[channel], 0)
        with loop(("s", depth // step), ("e", step)) as (s, e):
            weight = widen(b.weights[packed * depth + (s * used + j) * step + e]) - zero_point
            store(b.acc, b.acc[0] + widen(b.x[row, s * step + e]) * weight, 0)
        shift = 0 - (b.channels[channel + 2 * used] + (1 if rounding == "once" else 0))
        if rounding == "any":
            shift = shift + b.channels[channel + 3 * used]
        scaled = requantize(b.acc[0], b.channels[channel + used], shift, view.op.rounding)
        store(b.y, output(view, scaled), row, first + j)

    def meaning(b: Any) -> None:
        whole = columns // blocks.width
        with loop(("row", rows)) as row:
            if whole:
                with loop(("block", whole), ("j", blocks.width)) as (block, j):
                    column(b, row, block * blocks.width, block * blocks.width, j, blocks.width)
            if whole < len(entries):
                first, used = entries[-1]
                with loop(("j", used)) as j:
                    column(b, row, whole * blocks.width, first, j, used)

    operands = (
        Operand("x", (rows, depth), "int8"),
        Operand("weights", (total * depth,), "int8"),
        Operand("channels", (total * parts,), "int32"),
        Operand("fields", FIELDS.shape, "int32"),
        Operand("y", (rows, columns), view.outputs[0].dtype, "w"),
        accumulator(),
    )
    return Block(name, operands, meaning, function, lambda b: [b.x, b.weights, b.channels, b.y, rows, b.fields])


def product_layer(view: LayerView, function: str, gather: str, blocks: Blocks, rounding: str) -> Lowering:
    """Build the layer: `function` multiplies, `gather` copies windows to rows."""
    x, y, columns, step = view.inputs[0], view.outputs[0], columns_of(view), blocks.step
    (batch, rows), depth, in_place = images(view, step), row_of(view, step), reads_in_place(view, step)
    tile, total = rows_at_a_time(view, blocks.height, step), block_columns(view, blocks)
    windows = windows_fields(view, step)
    image = (rows, depth) if in_place else (windows["height"], windows["width"], windows["channels"])

    with Function("product") as f:
        source = f.input(0, (batch, *image), x.dtype)
        given: dict[str, Any] = {
            "weights": f.constant("weights", (total * depth,), "int8"),
            "channels": f.constant("channels", (total * parts_of(rounding),), "int32"),
            "fields": f.constant("fields", FIELDS.shape, "int32"),
        }
        gathered = {} if in_place else {"windows": f.constant("windows", GATHERED.shape, "int32")}
        out = f.output(0, (batch, rows, columns), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        if not in_place:
            gathered |= {"first": f.scratch("first", (1,), "int32"), "rows": f.scratch("rows", (tile, depth), "int8")}

        def part(n: Any, start: Any, count: int, suffix: str) -> None:
            x_rows: Any = (source, n, start, 0)
            if not in_place:
                f.set_position(f"first{suffix}", gathered["first"], start)
                shape = (count, depth, depth)
                block = gather_rows(view, f"gather{suffix}", gather, windows, shape, with_offsets=False)
                x_rows = (gathered["rows"], 0, 0)
                f.place(block, x=(source, n, 0, 0, 0), acc=acc, **gathered | {"rows": x_rows})
            product = _product(view, function, blocks, rounding, f"product{suffix}", count)
            f.place(product, x=x_rows, y=(out, n, start, 0), acc=acc, **given)

        whole = rows // tile
        if whole:
            with f.loop(("n", batch), ("t", whole)) as (n, t):
                part(n, t * tile, tile, "")
        if rows % tile:
            with f.loop(("n", batch)) as (n,):
                # A product has at least `height` rows: the rest begins earlier and computes some rows again.
                count = max(rows % tile, blocks.height)
                part(n, rows - count, count, "_rest")
    return f.lowering()
