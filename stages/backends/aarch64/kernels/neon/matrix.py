"""Convolution and fully connected layers as matrix products (format.py).

TIR of layers that are products of matrices.

    for n in images, t in tiles of R rows:
      gather      rows[R, depth]  <- the windows of R output pixels as int8             neon_windows
      interleave  panel           <- rows                                               Format.interleave
      product     y[R, columns]   <- requantize(bias + offsets + rows * weights)        a kernel's own

Rows that can be read in place are not gathered. Remaining rows have separate blocks, `..._rest`.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from stages.backends.aarch64.kernels.neon import packing
from stages.backends.aarch64.kernels.neon.base import NeonKernel, mode, output_constants
from stages.backends.aarch64.kernels.neon.format import (
    GATHERED,
    GEMM_BYTES,
    Format,
    depth,
    gemm_fields,
    images,
    native,
    windows_fields,
)
from stages.backends.kernels.eight_bit import too_deep, weight_zero_point, why_not_types
from stages.backends.kernels.kernel import KernelParams, Lowering
from stages.backends.kernels.matrix import columns_of, depth_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import output, requantize, select, widen
from stages.backends.kernels.tir.rows import gather_rows
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D
from stages.support.lazy import T

PANEL_BYTES = 16384  # of gathered rows, unless a recipe says how many: what stays in a first-level cache


class GemmParams(KernelParams):
    """`rows` windows are gathered at a time (0: as many as fit 16 KB)."""

    rows: int = Field(default=0, ge=0, le=4096)


class MatrixKernel(NeonKernel):
    """CONV_2D or FULLY_CONNECTED with operands in `format`."""

    format: ClassVar[Format]
    params = GemmParams

    def why_not_operator(self, view: LayerView) -> str:
        op = view.op
        if bad := why_not_types(view):
            return bad
        if isinstance(op, Conv2D) and op.groups != 1:
            return f"{op.groups} groups; this kernel supports one"
        return too_deep(depth_of(view))

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        weights = packing.flat_weights(view)
        constants = {
            "weights": packing.weights(weights, self.format, depth(view, self.format)),
            "params": packing.params(view, weights, weight_zero_point(view), self.format),
            "gemm": packing.structure(output_constants(view), gemm_fields(view, self.format, self.mode(view))),
        }
        if not native(view, self.format):
            constants["windows"] = GATHERED.of(windows_fields(view, self.format))
        return constants

    def mode(self, view: LayerView) -> int:
        """Return `mode` of neon_gemm."""
        return mode(view)

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        return product_layer(view, self.format, self.function(view), rows_at_a_time(view, self.format, params))

    def gathering(self, view: LayerView) -> float:
        """Return the instructions that gather rows, from counts: 0.3 per byte, 40 per row."""
        batch, rows = images(view, self.format)
        return 0 if native(view, self.format) else batch * rows * (0.3 * depth(view, self.format) + 40)

    @abstractmethod
    def function(self, view: LayerView) -> str:
        """Return the C function of the product."""


def rows_at_a_time(view: LayerView, layout: Format, params: GemmParams) -> int:
    """Return the rows of a product: all if nothing is copied."""
    rows = images(view, layout)[1]
    if native(view, layout) and not layout.interleave:
        return rows
    fitting = max(PANEL_BYTES // depth(view, layout) // 8 * 8, 8)
    return min(params.rows or fitting, rows)


Expr = Any  # a TIR expression or a Python int


class _Layer:
    """Blocks of one layer."""

    def __init__(self, view: LayerView, layout: Format, function: str) -> None:
        self.view, self.format, self.function = view, layout, function
        self.depth, self.columns = depth(view, layout), columns_of(view)
        self.windows = windows_fields(view, layout)
        self.image = (self.windows["height"], self.windows["width"], self.windows["channels"])
        self.gathered = not native(view, layout)
        self.zero_point = weight_zero_point(view)
        self.padded_columns = sum(c.blocks * c.width for c in self.format.columns(self.columns))

    def gather(self, name: str, rows: int) -> Block:
        """Gather the windows of output pixels first ... first + rows - 1."""
        return gather_rows(self.view, name, "neon_windows", self.windows, (rows, self.depth, self.depth))

    def interleave(self, name: str, rows: int) -> Block:
        """Interleave rows in tiles, a chunk of each row in turn."""
        chunk = self.format.chunks[0]

        def meaning(b: Any) -> None:
            for first, tiles, height in _tiles(rows):
                with loop(("t", tiles), ("step", self.depth // chunk), ("r", height), ("k", chunk)) as (t, step, r, k):
                    row = first + t * height + r
                    value = b.rows[row, step * chunk + k]
                    if first + tiles * height > rows:
                        value = select(row < rows, value, T.int8(0))
                    store(b.panel, value, (first + t * height) * self.depth + (step * height + r) * chunk + k)

        operands = (
            Operand("rows", (rows, self.depth), "int8"),
            Operand("gemm", (GEMM_BYTES,), "int8"),
            Operand("panel", (panel_rows(rows) * self.depth,), "int8", "w"),
        )
        return Block(name, operands, meaning, self.format.interleave, lambda b: [b.rows, b.panel, rows, b.gemm])

    def product(self, name: str, rows: int) -> Block:
        """Compute all columns of `rows` rows."""

        def meaning(b: Any) -> None:
            chunk = self.format.chunks[0]
            if not self.format.interleave:
                with loop(("i", rows)) as i:
                    self._row(b, i, lambda k: b.x[i, k])
                return
            for first, tiles, height in _tiles(rows):
                for start, count, used in _used(first, tiles, height, rows):
                    with loop(("t", count), ("r", used)) as (t, r):
                        at = (start + t * height) * self.depth + r * chunk
                        self._row(b, start + t * height + r, partial(_of_panel, b.x, at, height, chunk))

        if self.format.interleave:
            x = Operand("x", (panel_rows(rows) * self.depth,), "int8")
        else:
            x = Operand("x", (rows, self.depth), "int8")
        offsets = (Operand("offsets", (rows,), "int32"),) if self.gathered else ()
        operands = (
            x,
            Operand("weights", (self.padded_columns * self.depth,), "int8"),
            Operand("params", (3 * self.padded_columns,), "int32"),
            Operand("gemm", (GEMM_BYTES,), "int8"),
            Operand("y", (rows, self.columns), self.view.outputs[0].dtype, "w"),
            *offsets,
            accumulator(),
        )

        def arguments(b: Any) -> list[Any]:
            # Without a zero point of the weights nobody looks at the offsets.
            sums = b.offsets if self.gathered else b.params
            return [b.x, b.weights, b.params, b.y, sums, int(self.zero_point != 0), rows, b.gemm]

        return Block(name, operands, meaning, self.function, arguments)

    def _row(self, b: Any, i: Expr, activation: Any) -> None:
        """Compute all columns of row i."""
        op = self.view.op
        position_of_block = 0
        for group in self.format.columns(self.columns):
            width = group.width
            with loop(("block", group.blocks), ("lane", group.used)) as (block, lane):
                at = position_of_block + block * width  # columns before the block, with those that are filled in
                params = at * 3 + lane
                store(b.acc, b.params[params], 0)
                if self.zero_point:
                    store(b.acc, b.acc[0] + b.offsets[i], 0)
                for first, count, size in self.format.depths(self.depth):
                    with loop(("chunk", count), ("e", size)) as (chunk, e):
                        weight = at * self.depth + first * width + (chunk * width + lane) * size + e
                        product = widen(activation(first + chunk * size + e)) * widen(b.weights[weight])
                        store(b.acc, b.acc[0] + product, 0)
                shift = b.params[params + 2 * width]
                shift = shift + 31 if op.rounds_once else shift
                scaled = requantize(b.acc[0], b.params[params + width], shift, op.rounding)
                store(b.y, output(self.view, scaled), i, group.first + block * group.used + lane)
            position_of_block += group.blocks * width


def _of_panel(panel: Any, at: Expr, height: int, chunk: int, k: Expr) -> Expr:
    return panel[at + T.truncdiv(k, chunk) * (chunk * height) + T.truncmod(k, chunk)]


def _tiles(rows: int) -> Iterator[tuple[int, int, int]]:
    """Return (first row, tiles, height): tiles of eight, then one of four for up to four rows."""
    by_eight = -(-rows // 8) if rows % 8 > 4 else rows // 8
    if by_eight:
        yield 0, by_eight, 8
    if by_eight * 8 < rows:
        yield by_eight * 8, 1, 4


def _used(first: int, tiles: int, height: int, rows: int) -> Iterator[tuple[int, int, int]]:
    """Return (first row, tiles, used rows per tile); the last tile may be incomplete."""
    full = min(tiles, (rows - first) // height)
    if full:
        yield first, full, height
    if full < tiles:
        yield first + full * height, 1, rows - first - full * height


def panel_rows(rows: int) -> int:
    """Return the rows of a panel, rounded up to whole tiles."""
    return sum(tiles * height for _, tiles, height in _tiles(rows))


def product_layer(view: LayerView, layout: Format, function: str, tile: int) -> Lowering:
    """Build the layer, `tile` rows at a time; `function` multiplies them."""
    layer, x, y = _Layer(view, layout, function), view.inputs[0], view.outputs[0]
    batch, rows = images(view, layout)
    image = layer.image if layer.gathered else (rows, layer.depth)

    with Function("gemm") as f:
        source = f.input(0, (batch, *image), x.dtype)
        weights = f.constant("weights", (layer.padded_columns * layer.depth,), "int8")
        params = f.constant("params", (3 * layer.padded_columns,), "int32")
        gemm = f.constant("gemm", (GEMM_BYTES,), "int8")
        windows = f.constant("windows", GATHERED.shape, "int32") if layer.gathered else None
        out = f.output(0, (batch, rows, layer.columns), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        first = f.scratch("first", (1,), "int32") if layer.gathered else None
        rows_of_windows = f.scratch("rows", (tile, layer.depth), "int8") if layer.gathered else None
        # The kernels read the offsets of whole tiles.
        offsets = f.scratch("offsets", (panel_rows(tile),), "int32") if layer.gathered else None
        panel = f.scratch("panel", (panel_rows(tile) * layer.depth,), "int8") if layout.interleave else None

        def part(suffix: str, count: int, start: Any, n: Any) -> None:
            """Build the blocks of `count` rows from row `start`."""
            left: Any = (source, n, start, 0)
            extra: dict[str, Any] = {}
            if layer.gathered:
                f.set_position("first" + suffix, first, start)
                places = {"first": first, "windows": windows, "rows": (rows_of_windows, 0, 0), "offsets": (offsets, 0)}
                f.place(layer.gather("gather" + suffix, count), x=(source, n, 0, 0, 0), acc=acc, **places)
                left, extra = (rows_of_windows, 0, 0), {"offsets": (offsets, 0)}
            if layout.interleave:
                f.place(layer.interleave("interleave" + suffix, count), rows=left, gemm=gemm, panel=(panel, 0))
                left = (panel, 0)
            constants = {"weights": weights, "params": params, "gemm": gemm}
            place = (out, n, start, 0)
            f.place(layer.product("product" + suffix, count), x=left, y=place, acc=acc, **constants, **extra)

        with f.loop(("n", batch)) as (n,):
            with f.loop(("t", rows // tile)) as (t,):
                part("", tile, t * tile, n)
            if rows % tile:
                part("_rest", rows % tile, rows - rows % tile, n)
    return f.lowering()
