"""TIR of layers that are products of matrices.

    for n in images, t in tiles of R rows, g in groups:
      gather   rows[R, depth]  <- the windows of R output pixels as int8            mve_windows, mve_strip
      product  y[R, columns]   <- requantize(bias + offsets + rows * weights)       mve_gemm_*

Rows that can be read in place are not gathered. Overlapping rows share a strip; then a tile is within one pixel row.
Remaining rows have separate blocks, `..._rest`. Remaining channels have `product_last` (four channels that overlap the
block before) or `product_singles`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from stages.backends.cortex_m.kernels.mve.base import arithmetic
from stages.backends.cortex_m.kernels.mve.requantize_tir import requantize
from stages.backends.cortex_m.kernels.mve.rows import (
    BLOCK,
    BLOCK_FIELDS,
    CHUNK,
    GATHERED,
    columns,
    columns_in_group,
    gathers,
    groups_of,
    images,
    padded_depth,
    product_function,
    row_bytes,
    slides,
    windows_fields,
)
from stages.backends.kernels.eight_bit import SUFFIX, weight_zero_point
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import lowered, output, widen
from stages.backends.kernels.tir.rows import gather_rows
from stages.backends.kernels.tir.window import gathered
from stages.ir.graph import LayerView
from stages.support.lazy import T

Expr = Any  # a TIR expression or a Python int


class _Gemm:
    """Blocks of one layer."""

    def __init__(self, view: LayerView) -> None:
        self.view = view
        self.depth, self.row, self.groups = depth_of(view), row_bytes(view), groups_of(view)
        self.chunks = -(-self.depth // CHUNK)
        self.in_group, self.columns = columns_in_group(view), columns(view)
        self.slides = slides(view)
        self.gathered, self.zero_point = gathers(view), weight_zero_point(view)
        self.windows = windows_fields(view)
        self.image = (self.windows["height"], self.windows["width"], self.windows["pixel"])
        self.mode = arithmetic(view).mode

    def gather(self, name: str, rows: int) -> Block:
        """Gather the windows of output pixels first ... first + rows - 1."""
        if self.slides:
            return gather_strip(self.view, name, self.windows, rows)
        suffix = SUFFIX[self.view.inputs[0].dtype]
        return gather_rows(self.view, name, f"mve_windows_{suffix}", self.windows, (rows, self.row, self.depth))

    def copy(self, name: str, rows: int) -> Block:
        """Copy rows to scratch, so that results may replace them."""

        def meaning(b: Any) -> None:
            with loop(("i", rows), ("k", self.depth)) as (i, k):
                store(b.rows, b.x[i, k], i, k)

        shape = (rows, self.depth)
        operands = (Operand("x", shape, "int8"), Operand("rows", shape, "int8", "w"))
        return Block(name, operands, meaning, "mve_copy_rows", lambda b: [b.rows, b.x, 1, rows * self.depth, 0, 0])

    def strip_bytes(self, rows: int) -> int:
        """Return the bytes of a strip of the windows of `rows` neighbouring pixels."""
        return (rows - 1) * self.row + self.depth

    def product(self, name: str, rows: int, blocks: int) -> Block:
        """Compute `blocks` column blocks of `rows` rows."""

        def meaning(b: Any) -> None:
            with loop(("i", rows), ("block", blocks), ("lane", BLOCK)) as (i, block, lane):
                params = tuple(b.params[block, number, lane] for number in range(3))
                weight = lambda k: b.weights[block, T.truncdiv(k, CHUNK), lane, T.truncmod(k, CHUNK)]  # noqa: E731
                self._output(b, i, block * BLOCK + lane, params, weight)

        weights, params = (blocks, self.chunks, BLOCK, CHUNK), (blocks, 3, BLOCK)
        shapes = {"weights": weights, "params": params, "fields": BLOCK_FIELDS.shape}
        return self._product(name, (rows, blocks * BLOCK), shapes, meaning, product_function(self.view, BLOCK), blocks)

    def singles(self, name: str, rows: int) -> Block:
        """Compute the columns of `rows` rows outside the blocks."""
        count = self.columns.singles

        def meaning(b: Any) -> None:
            with loop(("i", rows), ("column", count)) as (i, column):
                params = tuple(b.params[column, number] for number in range(3))
                self._output(b, i, column, params, lambda k: b.weights[column, k])

        shapes = {"weights": (count, self.chunks * CHUNK), "params": (count, 3), "fields": BLOCK_FIELDS.shape}
        return self._product(name, (rows, count), shapes, meaning, product_function(self.view, 1), count)

    def _output(self, b: Any, i: Expr, column: Expr, params: tuple[Expr, ...], weight: Callable[[Expr], Expr]) -> None:
        bias, multiplier, rounder = params
        store(b.acc, bias + (b.offsets[i] if self.zero_point else 0), 0)
        with loop(("k", self.depth)) as k:
            x = b.x[i * self.row + k] if self.slides else b.x[i, k]
            store(b.acc, b.acc[0] + widen(x) * widen(weight(k)), 0)
        store(b.y, output(self.view, requantize(b.acc[0], multiplier, rounder, self.mode)), i, column)

    def _product(
        self,
        name: str,
        written: tuple[int, int],
        shapes: dict[str, tuple[int, ...]],
        meaning: Callable[[Any], None],
        function: str,
        count: int,
    ) -> Block:
        rows = written[0]
        shape = (rows, self.row if self.gathered else self.depth)
        operands = (
            Operand("x", (self.strip_bytes(rows),) if self.slides else shape, "int8"),
            Operand("weights", shapes["weights"], "int8"),
            Operand("params", shapes["params"], "int32"),
            Operand("y", written, self.view.outputs[0].dtype, "w"),
            Operand("fields", shapes["fields"], "int32"),
            *((Operand("offsets", (rows,), "int32"),) if self.zero_point else ()),
            accumulator(),
        )

        def arguments(b: Any) -> list[Any]:
            # Without a zero point of the weights nobody looks at the offsets.
            offsets = b.offsets if self.zero_point else b.params
            return [b.x, b.weights, b.params, b.y, rows, count, b.fields, offsets]

        return Block(name, operands, meaning, function, arguments)


def gemm(view: LayerView, tile: int, *, copies: bool = False) -> Lowering:
    """Build the layer, `tile` rows at a time.

    copies  rows that could be read in place are copied to scratch first, so that results may replace them
    """
    g, x, y = _Gemm(view), view.inputs[0], view.outputs[0]
    batch, rows = images(view)
    image = g.image if g.gathered else (rows, g.depth * g.groups)
    lines = y.shape[1] if g.slides else 1
    in_line = rows // lines
    parts = {"": tile, "_rest": in_line % tile}
    blocks, full_blocks, singles = len(g.columns.starts), g.columns.whole, g.columns.singles

    with Function("gemm") as f:
        source = f.input(0, (batch, *image), x.dtype)
        if blocks:
            weights = f.constant("weights", (g.groups, blocks, g.chunks, BLOCK, CHUNK), "int8")
            params = f.constant("params", (g.groups, blocks, 3, BLOCK), "int32")
        if singles:
            single_weights = f.constant("single_weights", (g.groups, singles, g.chunks * CHUNK), "int8")
            single_params = f.constant("single_params", (g.groups, singles, 3), "int32")
        fields = f.constant("fields", BLOCK_FIELDS.shape, "int32")
        windows = f.constant("windows", GATHERED.shape, "int32") if g.gathered else None
        out = f.output(0, (batch, rows, g.in_group * g.groups), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        first = f.scratch("first", (1,), "int32") if g.gathered else None
        shape = ((tile - 1) * g.row + padded_depth(view),) if g.slides else (tile, g.row)
        rows_of_windows = f.scratch("rows", shape, "int8") if g.gathered or copies else None
        offsets = f.scratch("offsets", (tile,), "int32") if g.gathered else None

        def part(suffix: str, start: Any, n: Any) -> None:
            """Build the blocks for a range of rows from row `start`."""
            count = parts[suffix]
            gather = g.gather("gather" + suffix, count) if g.gathered else None
            last = g.in_group - BLOCK
            products = {
                (0, 0): g.product("product" + suffix, count, full_blocks) if full_blocks else None,
                (full_blocks, last): g.product("product_last" + suffix, count, 1) if full_blocks < blocks else None,
            }
            single = g.singles("product_singles" + suffix, count) if singles else None
            extra: dict[str, Any] = {"acc": acc} | ({"offsets": (offsets, 0)} if g.zero_point else {})
            if g.gathered:
                f.set_position("first" + suffix, first, start)
            with f.loop(("g", g.groups)) as (group,):
                rows_source: Any = (source, n, start, group * g.depth)
                if gather:
                    rows_source = (rows_of_windows, *(0 for _ in shape))
                    places = {"first": first, "windows": windows, "offsets": (offsets, 0), "acc": acc}
                    f.place(gather, x=(source, n, 0, 0, group * g.windows["channels"]), rows=rows_source, **places)
                elif copies:
                    rows_source = (rows_of_windows, 0, 0)
                    f.place(g.copy("copy" + suffix, count), x=(source, n, start, 0), rows=rows_source)
                column = group * g.in_group
                for (block, begin), product in products.items():
                    if product:
                        constants = {
                            "weights": (weights, group, block, 0, 0, 0),
                            "params": (params, group, block, 0, 0),
                        }
                        f.place(
                            product,
                            x=rows_source,
                            y=(out, n, start, column + begin),
                            fields=fields,
                            **constants,
                            **extra,
                        )
                if single:
                    constants = {"weights": (single_weights, group, 0, 0), "params": (single_params, group, 0, 0)}
                    place = (out, n, start, column + g.in_group - singles)
                    f.place(single, x=rows_source, y=place, fields=fields, **constants, **extra)

        with f.loop(("n", batch), ("line", lines)) as (n, line):
            with f.loop(("t", in_line // tile)) as (t,):
                part("", line * in_line + t * tile, n)
            if parts["_rest"]:
                part("_rest", line * in_line + (in_line - parts["_rest"]), n)
    return f.lowering()


def gather_strip(view: LayerView, name: str, fields: Mapping[str, int], rows: int) -> Block:
    """Gather the windows of `rows` pixels of one output row from `first` on (strip.c).

    The strip is int8 [column, ky, channel]. If the weights have a zero point, offsets[i] is its addend to the sums of
    window i. `fields` are the fields of the C structure.
    """
    depth, step, zero_point = depth_of(view), row_bytes(view), weight_zero_point(view)
    kernel_y, channels = fields["kernel_height"], fields["channels"]
    columns = (rows - 1) * fields["stride_x"] + fields["kernel_width"]

    def meaning(b: Any) -> None:
        with position("start", b.first[0]) as start:
            with loop(("column", columns), ("ky", kernel_y), ("c", channels)) as (column, ky, c):
                # A column of the strip is a tap of the first window that may lie behind it.
                load = lambda iy, ix: lowered(b.x[iy, ix, c], fields["flip"])  # noqa: E731
                value = gathered(fields, start, (ky, column), load, T.int8(fields["fill"]))
                store(b.rows, value, (column * kernel_y + ky) * channels + c)
            if zero_point:
                with loop(("p", rows)) as p:
                    store(b.acc, 0, 0)
                    with loop(("k", depth)) as k:
                        store(b.acc, b.acc[0] + widen(b.rows[p * step + k]), 0)
                    store(b.offsets, b.acc[0] * (0 - zero_point), p)

    operands = (
        Operand("x", (fields["height"], fields["width"], channels), view.inputs[0].dtype),
        Operand("first", (1,), "int32"),
        Operand("windows", (len(fields),), "int32"),
        Operand("rows", ((rows - 1) * step + depth,), "int8", "rw"),
        Operand("offsets", (rows,), "int32", "w"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.rows, b.offsets, b.first[0], rows, b.windows]  # noqa: E731
    return Block(name, operands, meaning, f"mve_strip_{SUFFIX[view.inputs[0].dtype]}", arguments)
