"""TIR of convolution on RISC-V: gather windows (im2col), multiply tiles of six rows, requantize.

    for n in batch, g in groups:
      pointwise int8 NHWC layers   one block for all pixels
      others, for tiles of six     gather   patch[6, K]  <- windows, padded with the zero point   fl_im2col_nhwc / _nchw
                                   product  y[6, O]      <- requantize(bias + patch * w)          riscv_gemm_s8

The last tile begins six pixels before the end; images of fewer pixels are one tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stages.kernels.generic.convolution_tir import gather
from stages.kernels.generic.im2col import im2col_fields, reads_in_place
from stages.kernels.generic.parameters import IM2COL
from stages.kernels.riscv.rows import ROWS
from stages.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.kernels.tir.fixed_point import output, requantize, widen

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Lowering
    from stages.kernels.riscv.rows import Rows
    from stages.kernels.structure import Structure


def _product(view: LayerView, name: str, rows: int, words: Rows, structure: Structure) -> Block:
    """y[i, j] = requantize(bias[j] + sum over k of x[i, k] * w[j, k]); NCHW: y is [j, i]. w as `panels` packs it."""
    y = view.outputs[0]
    planar = y.layout == "NCHW"
    columns = view.op.out_channels // view.op.groups
    whole = columns - columns % words.panel

    def element(b: Any, i: Any, j: Any, weight: Callable[[Any], Any]) -> None:
        store(b.acc, b.channels[j, 0], 0)
        with loop(("k", words.row)) as k:
            store(b.acc, b.acc[0] + widen(b.x[i, k]) * widen(b.w[weight(k)]), 0)
        scaled = requantize(b.acc[0], b.channels[j, 1], b.channels[j, 2], view.op.rounding)
        store(b.y, output(view, scaled), *((j, i) if planar else (i, j)))

    def at(panel: Any, lane: Any, k: Any) -> Any:
        return panel * words.panel_bytes + words.header + k * words.panel + lane

    def meaning(b: Any) -> None:
        with loop(("i", rows)) as i:
            if whole:
                with loop(("panel", whole // words.panel), ("lane", words.panel)) as (panel, lane):
                    element(b, i, panel * words.panel + lane, lambda k: at(panel, lane, k))
            if columns - whole:
                with loop(("j", columns - whole)) as j:
                    element(b, i, j + whole, lambda k: at(whole // words.panel, j, k))

    operands = (
        Operand("x", (rows, words.row), "int8"),
        Operand("w", (weight_bytes(columns, words),), "int8"),
        Operand("channels", (words.whole_columns(columns), 3), "int32"),
        Operand("gemm", structure.shape, "int32"),
        Operand("y", (columns, rows) if planar else (rows, columns), y.dtype, "w"),
        Operand("packed", (words.words,), "int32", "rw"),
        accumulator(),
    )
    return Block(
        name,
        operands,
        meaning,
        "riscv_gemm_s8",
        lambda b: [b.x, b.w, b.channels, b.y, b.packed, rows, columns, b.gemm],
    )


def weight_bytes(columns: int, words: Rows) -> int:
    """Bytes of all panels."""
    return words.whole_columns(columns) // words.panel * words.panel_bytes


def conv2d(view: LayerView, words: Rows, structure: Structure) -> Lowering:
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    batch, pixels, groups = y.shape[0], y.shape[1] * y.shape[2], op.groups
    columns, rows = op.out_channels // groups, min(ROWS, pixels)
    in_place, planar_in, planar_out = reads_in_place(view), x.layout == "NCHW", y.layout == "NCHW"
    x_shape = x.physical_shape if not in_place else (batch, pixels, op.in_channels)

    with Function("conv2d") as f:
        image = f.input(0, x_shape, x.dtype)
        weights = f.constant("weights", (groups, weight_bytes(columns, words)), "int8")
        channels = f.constant("channels", (groups, words.whole_columns(columns), 3), "int32")
        gemm = f.constant("gemm", structure.shape, "int32")
        im2col = None if in_place else f.constant("im2col", IM2COL.shape, "int32")
        out = f.output(0, (batch, op.out_channels, pixels) if planar_out else (batch, pixels, op.out_channels), y.dtype)
        given = {"acc": f.scratch("acc", (1,), "int32"), "packed": f.scratch("packed", (words.words,), "int32")}
        first = None if in_place else f.scratch("first", (1,), "int32")
        patch = None if in_place else f.scratch("patch", (rows, words.row), "int8")

        def multiply(suffix: str, count: int, left: Any, start: Any, n: Any, g: Any) -> None:
            block = _product(view, "product" + suffix, count, words, structure)
            corner = (g * columns, start) if planar_out else (start, g * columns)
            constants = {"w": (weights, g, 0), "channels": (channels, g, 0, 0), "gemm": gemm}
            f.place(block, x=left, y=(out, n, *corner), **constants, **given)

        def tile(suffix: str, start: Any, n: Any, g: Any) -> None:
            """The blocks for a tile from pixel `start`."""
            f.set_position("first" + suffix, first, start)
            step = op.in_channels // groups
            window = (image, n, g * step, 0, 0) if planar_in else (image, n, 0, 0, g * step)
            collect = gather("gather" + suffix, rows, im2col_fields(view), x.dtype, planar_in)
            f.place(collect, x=window, first=first, im2col=im2col, patch=patch)
            multiply(suffix, rows, (patch, 0, 0), start, n, g)

        with f.loop(("n", batch), ("g", groups)) as (n, g):
            if in_place:
                multiply("", pixels, (image, n, 0, g * words.row), 0, n, g)
            else:
                with f.loop(("t", pixels // rows)) as (t,):
                    tile("", t * rows, n, g)
                if pixels % rows:
                    tile("_rest", pixels - rows, n, g)
    return f.lowering()
