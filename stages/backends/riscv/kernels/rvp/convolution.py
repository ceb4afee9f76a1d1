"""CONV_2D and FULLY_CONNECTED: pixel panels times all output channels.

TIR of the GEMM kernels: gather a panel, multiply it with all channels.

    for p in products: for t in tiles of P panels of R rows:
      panel  panel[P, chunk, R, lane] <- rows of the matrix, or windows           rvp_panel_rows, rvp_panel_windows
      gemm   y[P * R, N] <- requantize(bias + panel * weights)                    rvp_gemm_s8_r<R>, rvp_dot_s8

Remaining panels have separate blocks, `panel_last` and `gemm_last`; so have remaining rows, `panel_rest` and
`gemm_rest`. If rows of the output are not whole registers, or the output is planar, gemm writes to a stage, and
`unstage` copies from there (rvp_join_rows).

An int32 of the panel holds four activations, the first in the low byte.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar, Literal

from pydantic import Field

from stages.backends.kernels.eight_bit import (
    INT8_OFFSET,
    same_bytes,
    weight_zero_point,
    why_not_types,
    why_not_weights_order,
)
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.kernels.matrix import columns_of, has_windows, rows_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import output, select, widen
from stages.backends.kernels.tir.window import gathered_element
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp import packing
from stages.backends.riscv.kernels.rvp.base import arithmetic, clip_word, one_rounding_of
from stages.backends.riscv.kernels.rvp.gemm_cost import gemm_cost
from stages.backends.riscv.kernels.rvp.panels import (
    GEOMETRY,
    block_count,
    calls,
    function_suffix,
    geometry,
    images_of,
    needs_stage,
    products,
    why_not_arithmetic,
)
from stages.backends.riscv.kernels.rvp.requantize_tir import half_of, requantize, requantize_once
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class GemmParams(KernelParams):
    """`mr` rows (pixels) are multiplied with all output channels at a time.

    panels  how many times `mr` rows are copied to scratch at a time. 0: as many as fit 2 KB on RV32, 4 KB on RV64.
    """

    mr: int = Field(default=5, ge=1, le=5)
    panels: int = Field(default=0, ge=0, le=4096)


class _Gemm(Kernel):
    sources = ("gemm_s8.S", "dot_s8.S", "panel.c", "join_rows.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "panel.h", "join_rows.h")
    params = GemmParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or self.why_not_shape(view) or why_not_arithmetic(view)

    @abstractmethod
    def why_not_shape(self, view: LayerView) -> str:
        """Return why the kernel cannot compute this shape or layout, '' if it can."""

    def pack_for(self, view: LayerView, params: GemmParams, target: Target) -> Mapping[str, Array]:
        bits, lanes = target.word_bits, target.word_bits // 32
        layer_constants = arithmetic(view, signed_activations=True)
        blocks, split = block_count(view, lanes), products(view, lanes)
        once = one_rounding_of(view, layer_constants) if rows_of(view) > 1 else None
        zero_point = layer_constants.weight_zero_point
        weights = layer_constants.weights.astype(np.int8).reshape(split.parts, split.columns, -1)
        if split.groups > 1:
            weights = packing.on_diagonals(weights, zero_point, split.groups, split.depth // split.channels)
        parts = [slice(first, first + split.columns) for first in range(0, split.parts * split.columns, split.columns)]
        constants: dict[str, Array] = {
            "weights": np.stack([packing.gemm_weights(part, zero_point, split.run, bits, blocks) for part in weights]),
            "params": np.stack(
                [
                    packing.gemm_params(
                        layer_constants.bias[channels_of_part],
                        layer_constants.multiplier[channels_of_part],
                        layer_constants.rounders.part(channels_of_part),
                        once.part(channels_of_part) if once else None,
                        bits,
                        blocks,
                    )
                    for channels_of_part in parts
                ]
            ),
        }
        if has_windows(view):
            constants["geometry"] = GEOMETRY.of(geometry(view, lanes))
        return constants

    def candidates(self, view: LayerView, target: Target) -> tuple[GemmParams, ...]:
        """Five or four rows: with a tail of few rows the smaller block can be cheaper."""
        rows = rows_of(view)
        return tuple(self.params(mr=mr) for mr in (5, 4)[: 2 if rows > 4 else 1])

    def smaller(self, view: LayerView, target: Target) -> tuple[GemmParams, ...]:
        """Two panels: half of the scratch or less."""
        return (self.params(panels=2),)

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        return gemm(Gemm(view, target.word_bits // 32), params.mr, params.panels)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        return gemm_cost(view, params.mr, target.word_bits // 32, params.panels)


class Conv2d(_Gemm):
    """Convolution on NHWC images with any window, stride, dilation and padding.

    A panel of five pixels is gathered into scratch once and multiplied with all channels in one call. Pointwise layers
    read their rows in place. Groups are separate products, or several groups form one.
    """

    name = "rvp.gemm_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})

    def why_not_shape(self, view: LayerView) -> str:
        op, x = view.op, view.inputs[0]
        if op.groups != 1 and rows_of(view) == 1:
            return f"{op.groups} groups on a single pixel are not supported"
        if x.layout == "NCHW":
            return "the input is NCHW; this kernel reads NHWC"
        if x.shape[0] != 1 and has_windows(view):
            return f"a batch of {x.shape[0]} with windows is not supported"
        return ""

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: a panel holds everything they depend on."""
        return view.op.groups == 1 and same_bytes(view.inputs[0], view.outputs[0]) and not has_windows(view)


class FullyConnected(_Gemm):
    """Fully connected layer: rows of x times all units.

    A single row is a dot product over streamed weights, 4 * lanes units at once.
    """

    name = "rvp.dot_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})

    def why_not_shape(self, view: LayerView) -> str:
        return why_not_weights_order(view)


Expr = Any  # a TIR expression or a Python int
Call = tuple[str, "Callable[[Any], list[Any]]"]  # a C function, and its arguments by the operands of a block


class Gemm:
    """Blocks of one layer."""

    def __init__(self, view: LayerView, lanes: int) -> None:
        self.view, self.lanes = view, lanes
        self.products = products(view, lanes)
        self.rows, self.depth, self.columns = rows_of(view), self.products.depth, self.products.columns
        self.run = self.products.run
        self.row_step = view.inputs[0].shape[-1] if self.products.parts > 1 else self.depth
        self.run_chunks = -(-self.run // 4)
        self.chunks = self.products.chunks
        self.blocks = block_count(view, lanes)
        self.single_row = self.rows == 1
        self.weight_zero_point = weight_zero_point(view)
        self.suffix = function_suffix(self.weight_zero_point, view.op.rounding)
        self.staged = needs_stage(view, lanes)

    @property
    def panel_chunks(self) -> int:
        """Chunks of a panel's row, with its sum if weights have a zero point."""
        return self.chunks + (1 if self.weight_zero_point else 0)

    def panel(self, rows: int, panels: int, access: Literal["r", "w"] = "r") -> Operand:
        """Return `panels` panels of `rows` packed rows: words [panels, chunks, rows, lanes]."""
        return Operand("panel", (panels * self.panel_chunks * rows * self.lanes,), "int32", access)

    def word_of(self, rows: int, panel: Expr, chunk: Expr, row: Expr, lane: Expr) -> Expr:
        """Return the index of a word in panels of `rows` rows."""
        return ((panel * self.panel_chunks + chunk) * rows + row) * self.lanes + lane

    def gather(self, name: str, rows: int, panels: int) -> Block:
        """Gather `panels` panels of `rows` rows from the matrix or the image."""
        view, windows = self.view, has_windows(self.view)
        x = view.inputs[0]
        flipped = INT8_OFFSET[x.dtype]

        def activation(b: Any, pixel: Expr, chunk: Expr, k: Expr) -> Expr:
            """Return an element of a row's chunk as int32; elements after the end of a run are 0."""
            run, within = T.truncdiv(chunk, self.run_chunks), T.truncmod(chunk, self.run_chunks) * 4 + k
            element = run * self.run + within
            value = self._window_element(b, pixel, element) if windows else widen(b.x[pixel, element])
            value = value - flipped if flipped else value
            return value if self.run % 4 == 0 else select(within < self.run, value, 0)

        def row_of(b: Any, start: Expr, panel: Expr, row: Expr) -> None:
            pixel = start + panel * rows + row
            with loop(("chunk", self.chunks)) as chunk:
                taps = [activation(b, pixel, chunk, k) for k in range(4)]
                word = T.bitwise_and(taps[0], 255) + T.bitwise_and(taps[1], 255) * 256
                word = word + T.bitwise_and(taps[2], 255) * 65536 + taps[3] * 16777216
                with loop(("lane", self.lanes)) as lane:
                    store(b.panel, word, self.word_of(rows, panel, chunk, row, lane))
            if self.weight_zero_point:
                store(b.acc, 0, 0)
                with loop(("chunk", self.chunks), ("k", 4)) as (chunk, k):
                    store(b.acc, b.acc[0] + activation(b, pixel, chunk, k), 0)
                with loop(("lane", self.lanes)) as lane:
                    place = self.word_of(rows, panel, self.chunks, row, lane)
                    store(b.panel, b.acc[0] * (0 - self.weight_zero_point), place)

        def meaning(b: Any) -> None:
            if windows:
                with position("start", b.first[0]) as start, loop(("panel", panels), ("row", rows)) as (panel, row):
                    row_of(b, start, panel, row)
            else:
                with loop(("panel", panels), ("row", rows)) as (panel, row):
                    row_of(b, 0, panel, row)

        panel = self.panel(rows, panels, "w")
        if windows:
            shape = (*x.shape[1:3], self.products.channels)
            position_operands = Operand("first", (1,), "int32"), Operand("geometry", GEOMETRY.shape, "int32")
            operands: tuple[Operand, ...] = (Operand("x", shape, x.dtype), *position_operands, panel, accumulator())
            return Block(name, operands, meaning, *self.windows_call(rows, panels))
        operands = (Operand("x", (panels * rows, self.depth), x.dtype), panel, accumulator())
        return Block(name, operands, meaning, *self.rows_call(rows, panels))

    def windows_call(self, rows: int, panels: int) -> Call:
        """Return the call that gathers windows."""
        adjust = INT8_OFFSET[self.view.inputs[0].dtype], self.weight_zero_point
        return "rvp_panel_windows", lambda b: [b.panel, b.x, b.first[0], rows, panels, b.geometry, *adjust]

    def rows_call(self, rows: int, panels: int) -> Call:
        """Return the call that gathers matrix rows."""
        adjust = INT8_OFFSET[self.view.inputs[0].dtype], self.weight_zero_point
        return "rvp_panel_rows", lambda b: [b.panel, b.x, rows, panels, self.depth, self.row_step, *adjust]

    def constants(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Return shapes and types of the constants that `multiply` reads per product."""
        return {
            "weights": ((self.blocks, self.chunks, 4, self.lanes, 4), "int8"),
            "params": ((self.blocks, 3, 4, self.lanes), "int32"),
        }

    def _window_element(self, b: Any, pixel: Expr, k: Expr) -> Expr:
        g = geometry(self.view, self.lanes)
        return gathered_element(g, pixel, k, lambda iy, ix, c: widen(b.x[iy, ix, c]), g["fill"])

    def multiply(self, name: str, rows: int, panels: int) -> Block:
        """Multiply `panels` panels of `rows` rows with all columns."""
        op, dtype, lanes = self.view.op, self.view.outputs[0].dtype, self.lanes
        width = self.blocks * 4 * lanes if self.staged else self.columns
        step = width if self.staged else columns_of(self.view)

        def meaning(b: Any) -> None:
            loops = (("panel", panels), ("row", rows), ("block", self.blocks), ("j", 4), ("lane", lanes))
            with loop(*loops) as (panel, row, block, j, lane):
                store(b.acc, b.params[block, 0, j, lane], 0)
                if self.weight_zero_point:
                    store(b.acc, b.acc[0] + b.panel[self.word_of(rows, panel, self.chunks, row, lane)], 0)
                with loop(("chunk", self.chunks), ("k", 4)) as (chunk, k):
                    word = b.panel[self.word_of(rows, panel, chunk, row, lane)]
                    product = byte(word, k) * widen(b.weights[block, chunk, j, lane, k])
                    store(b.acc, b.acc[0] + product, 0)
                mark = b.params[block, 2, 0, lanes - 1]
                multiplier, rounder = (b.params[block, n, j, lane] for n in (1, 2))
                scaled = requantize(b.acc[0], multiplier, rounder, mark, op.rounding)
                if not self.single_row:
                    zero_point = half_of(b.params[block, 2, 1 + T.truncdiv(j, 2), lane], T.truncmod(j, 2))
                    once = requantize_once(self.view, b.acc[0], multiplier, zero_point)
                    scaled = select(mark == 0, once, scaled)
                # Register j holds channels 0, 2, 1, 3 of the block in turn.
                channel = block * (4 * lanes) + lane * 4 + T.truncmod(j, 2) * 2 + T.truncdiv(j, 2)
                store(b.y, output(self.view, scaled), panel * rows + row, channel)

        operands = (
            self.panel(rows, panels),
            *(Operand(name, *spec) for name, spec in self.constants().items()),
            Operand("y", (panels * rows, width), dtype, "w"),
            accumulator(),
        )
        clip = clip_word(self.view)
        if self.single_row:
            return Block(
                name,
                operands,
                meaning,
                f"rvp_dot_s8{self.suffix}",
                lambda b: [b.panel, b.weights, b.params, b.y, self.chunks, self.blocks, clip],
            )
        return Block(
            name,
            operands,
            meaning,
            f"rvp_gemm_s8_r{rows}{self.suffix}",
            lambda b: [b.panel, b.weights, b.params, b.y, self.chunks, self.blocks, step, clip, panels],
        )

    def unstage(self, name: str, rows: int) -> Block:
        """Copy the wanted columns into the output's layout.

        A transpose, and rows with gaps between them, stay TIR.
        """
        dtype, planar = self.view.outputs[0].dtype, self.view.outputs[0].layout == "NCHW"
        width = self.blocks * 4 * self.lanes

        def meaning(b: Any) -> None:
            with loop(("row", rows), ("column", self.columns)) as (row, column):
                store(b.y, b.stage[row, column], *((column, row) if planar else (row, column)))

        stage = Operand("stage", (rows, width), dtype)
        y = Operand("y", (self.columns, rows) if planar else (rows, self.columns), dtype, "w")
        if planar or self.products.parts > 1:
            return Block(name, (stage, y), meaning)
        return Block(name, (stage, y), meaning, "rvp_join_rows", lambda b: [b.stage, b.y, rows, width, self.columns])


def gemm(g: Gemm, mr: int, panels: int = 0) -> Lowering:
    """Build the layer with panels of `mr` rows, `panels` at a time."""
    view, lanes, windows = g.view, g.lanes, has_windows(g.view)
    x, y = view.inputs[0], view.outputs[0]
    planar = y.layout == "NCHW"
    images, tiles = images_of(view), calls(view, lanes, mr, panels)
    pixels, tile = g.rows // images, prod(tiles[""][:2])
    # Rows and panels of the blocks: in the loop over tiles, for the last panels and for the last rows.
    parts = {suffix: call[:2] for suffix, call in tiles.items()}

    with Function("gemm") as f:
        count, channels = g.products.parts, columns_of(view)
        source = f.input(0, x.shape if windows else (images, pixels, count * g.depth), x.dtype)
        constants = {name: f.constant(name, (count, *shape), dtype) for name, (shape, dtype) in g.constants().items()}
        fields = f.constant("geometry", GEOMETRY.shape, "int32") if windows else None
        out = f.output(0, (images, channels, pixels) if planar else (images, pixels, channels), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        first = f.scratch("first", (1,), "int32") if windows else None
        panel = f.scratch("panel", max(g.panel(*part).shape for part in parts.values()), "int32")
        width = g.blocks * 4 * lanes
        stage = f.scratch("stage", (tile, width), y.dtype) if g.staged else None

        def part(suffix: str, start: Any, n: Any, p: Any) -> None:
            """Build the blocks for a range of rows of product `p`, starting at row `start`."""
            size = parts[suffix]
            collect, multiply = g.gather("panel" + suffix, *size), g.multiply("gemm" + suffix, *size)
            if windows:
                f.set_position("first" + suffix, first, start)
                f.place(
                    collect,
                    x=(source, n, 0, 0, p * g.products.channels),
                    first=first,
                    geometry=fields,
                    panel=(panel, 0),
                    acc=acc,
                )
            else:
                f.place(collect, x=(source, n, start, p * g.depth), panel=(panel, 0), acc=acc)
            first_column = p * g.columns
            place = (out, n, first_column, start) if planar else (out, n, start, first_column)
            target = (stage, 0, 0) if g.staged else place
            product_constants = {
                name: (constants[name], p, *(0 for _ in shape)) for name, (shape, _) in g.constants().items()
            }
            f.place(multiply, panel=(panel, 0), **product_constants, y=target, acc=acc)
            if g.staged:
                f.place(g.unstage("unstage" + suffix, prod(size)), stage=target, y=place)

        with f.loop(("n", images), ("p", count)) as (n, p):
            with f.loop(("t", tiles[""].times)) as (t,):
                part("", t * tile, n, p)
            if "_last" in tiles:
                part("_last", tiles[""].times * tile, n, p)
            if "_rest" in tiles:
                part("_rest", pixels - tiles["_rest"].rows, n, p)
    return f.lowering()
