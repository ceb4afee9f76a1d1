"""TIR of convolution and fully connected layers: im2col, matrix product, requantization.

    for n in batch, g in groups, t in tiles of P output pixels:
      first = t * P
      gather   patch[P, K]  <- the windows of P pixels, padded with the zero point    fl_im2col_nhwc / _nchw
      product  y[P, O]      <- requantize(bias + patch * transpose(w))                fl_gemm_s8 / fl_row_s8

If P does not divide the number of pixels, the rest has separate blocks, `gather_rest` and `product_rest`.
"""

from collections.abc import Callable
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.generic.kernels.generic.im2col import im2col_fields, reads_in_place, row_fields
from stages.backends.generic.kernels.generic.packing import PANEL, signed_weights, small_panel
from stages.backends.generic.kernels.generic.parameters import GEMM, IM2COL
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import lowered, output, requantize, widen
from stages.backends.kernels.tir.window import gathered
from stages.ir.graph import LayerView

Region = Any  # a buffer, or a tuple of a buffer and the first index in it


def product(view: LayerView, name: str, rows: int, columns: int, depth: int) -> Block:
    """Return the block of a matrix product with requantized results. `w` is flat, see gemm.c.

    y[i, j] = requantize(bias[j] + sum over k of x[i, k] * (w[j, k] - zero_point)). NCHW: y is [j, i]. `w` is in panels
    (gemm.c).
    """
    zero_point, y = signed_weights(view)[1], view.outputs[0]
    planar = y.layout == "NCHW"
    panel_columns, small = columns - columns % PANEL, small_panel(columns)

    def element(b: Any, i: Any, j: Any, weight: Callable[[Any], Any]) -> None:
        store(b.acc, b.channels[j, 0], 0)
        with loop(("k", depth)) as k:
            store(b.acc, b.acc[0] + widen(b.x[i, k]) * (widen(b.w[weight(k)]) - zero_point), 0)
        scaled = requantize(b.acc[0], b.channels[j, 1], b.channels[j, 2], view.op.rounding)
        store(b.y, output(view, scaled), *((j, i) if planar else (i, j)))

    def meaning(b: Any) -> None:
        with loop(("i", rows)) as i:
            if panel_columns:
                with loop(("panel", panel_columns // PANEL), ("lane", PANEL)) as (panel, lane):
                    element(b, i, panel * PANEL + lane, lambda k: panel * (PANEL * depth) + k * PANEL + lane)
            if small:
                with loop(("lane", small)) as lane:
                    element(b, i, lane + panel_columns, lambda k: panel_columns * depth + k * small + lane)
            if single := columns - panel_columns - small:
                with loop(("j", single)) as j:
                    first = panel_columns + small
                    element(b, i, j + first, lambda k: (j + first) * depth + k)

    operands = (
        Operand("x", (rows, depth), "int8"),
        Operand("w", (columns * depth,), "int8"),
        Operand("channels", (columns, 3), "int32"),
        Operand("y", (columns, rows) if planar else (rows, columns), y.dtype, "w"),
        Operand("gemm", GEMM.shape, "int32"),
        accumulator(),
    )
    if rows == 1:
        return Block(
            name, operands, meaning, "fl_row_s8", lambda b: [b.x, b.w, b.channels, b.y, columns, depth, b.gemm]
        )
    return Block(
        name, operands, meaning, "fl_gemm_s8", lambda b: [b.x, b.w, b.channels, b.y, rows, columns, depth, b.gemm]
    )


def gather(name: str, rows: int, geometry: dict[str, int], dtype: str, planar: bool) -> Block:
    """Return the block that gathers the windows of output pixels `first` + p as int8, padded.

    patch[p, :] is ordered (ky, kx, c), with `planar` (c, ky, kx).
    """
    height, width, channels = geometry["height"], geometry["width"], geometry["channels"]
    kernel_height, kernel_width = geometry["kernel_height"], geometry["kernel_width"]
    depth = kernel_height * kernel_width * channels

    def element(b: Any, pixel: Any, p: Any, ky: Any, kx: Any, c: Any) -> None:
        value = gathered(
            geometry,
            pixel,
            (ky, kx),
            lambda iy, ix: lowered(b.x[c, iy, ix] if planar else b.x[iy, ix, c], geometry["flip"]),
            T.int8(geometry["fill"]),
        )
        column = (c * kernel_height + ky) * kernel_width + kx if planar else (ky * kernel_width + kx) * channels + c
        store(b.patch, value, p, column)

    def meaning(b: Any) -> None:
        with position("start", b.first[0]) as start, loop(("p", rows)) as p:
            if planar:
                with loop(("c", channels), ("ky", kernel_height), ("kx", kernel_width)) as (c, ky, kx):
                    element(b, start + p, p, ky, kx, c)
            else:
                with loop(("ky", kernel_height), ("kx", kernel_width), ("c", channels)) as (ky, kx, c):
                    element(b, start + p, p, ky, kx, c)

    operands = (
        Operand("x", (channels, height, width) if planar else (height, width, channels), dtype),
        Operand("first", (1,), "int32"),
        Operand("im2col", IM2COL.shape, "int32"),
        Operand("patch", (rows, depth), "int8", "w"),
    )
    function = "fl_im2col_nchw" if planar else "fl_im2col_nhwc"
    return Block(name, operands, meaning, function, lambda b: [b.x, b.patch, b.first[0], rows, b.im2col])


def conv2d(view: LayerView, tile: int) -> Lowering:
    """Return the convolution, `tile` output pixels at a time."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    batch, pixels, groups = y.shape[0], y.shape[1] * y.shape[2], op.groups
    depth, columns = depth_of(view), op.out_channels // groups
    in_place, planar_in, planar_out = reads_in_place(view), x.layout == "NCHW", y.layout == "NCHW"
    x_shape = x.physical_shape if not in_place else (batch, pixels, op.in_channels)

    with Function("conv2d") as f:
        image = f.input(0, x_shape, x.dtype)
        weights = f.constant("weights", (groups, columns * depth), "int8")
        channels = f.constant("channels", (groups, columns, 3), "int32")
        gemm = f.constant("gemm", GEMM.shape, "int32")
        im2col = None if in_place else f.constant("im2col", IM2COL.shape, "int32")
        out = f.output(0, (batch, op.out_channels, pixels) if planar_out else (batch, pixels, op.out_channels), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        first = None if in_place else f.scratch("first", (1,), "int32")
        patch = None if in_place else f.scratch("patch", (tile, depth), "int8")

        def part(suffix: str, rows: int, start: Any, n: Any, g: Any) -> None:
            """Place the blocks for `rows` pixels from pixel `start`."""
            multiply = product(view, "product" + suffix, rows, columns, depth)
            if in_place:
                x_region: Region = (image, n, start, g * depth)
            else:
                f.set_position("first" + suffix, first, start)
                step = op.in_channels // groups
                window = (image, n, g * step, 0, 0) if planar_in else (image, n, 0, 0, g * step)
                collect = gather("gather" + suffix, rows, im2col_fields(view), x.dtype, planar_in)
                f.place(collect, x=window, first=first, im2col=im2col, patch=patch)
                x_region = (patch, 0, 0)
            corner = (g * columns, start) if planar_out else (start, g * columns)
            constants = {"w": (weights, g, 0), "channels": (channels, g, 0, 0), "gemm": gemm}
            f.place(multiply, x=x_region, y=(out, n, *corner), acc=acc, **constants)

        with f.loop(("n", batch), ("g", groups)) as (n, g):
            with f.loop(("t", pixels // tile)) as (t,):
                part("", tile, t * tile, n, g)
            if pixels % tile:
                part("_rest", pixels % tile, pixels - pixels % tile, n, g)
    return f.lowering()


def fully_connected(view: LayerView) -> Lowering:
    """Return one product of all rows. A uint8 input goes through an int8 copy, row by row."""
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    copied = x.dtype == "uint8"
    rows = 1 if copied else op.batch
    multiply = product(view, "product", rows, op.units, op.depth)
    with Function("fully_connected") as f:
        inputs = f.input(0, (op.batch, 1, 1, op.depth) if copied else (op.batch, op.depth), x.dtype)
        weights = f.constant("weights", (op.units * op.depth,), "int8")
        channels = f.constant("channels", (op.units, 3), "int32")
        gemm = f.constant("gemm", GEMM.shape, "int32")
        im2col = f.constant("im2col", IM2COL.shape, "int32") if copied else None
        out = f.output(0, (op.batch, op.units), y.dtype)
        acc = f.scratch("acc", (1,), "int32")
        first = f.scratch("first", (1,), "int32") if copied else None
        row = f.scratch("row", (1, op.depth), "int8") if copied else None
        with f.loop(("n", op.batch // rows)) as (n,):
            x_region: Region = (inputs, n * rows, 0)
            if copied:
                f.set_position("first", first, 0)
                copy = gather("copy", 1, row_fields(view), x.dtype, False)
                f.place(copy, x=(inputs, n, 0, 0, 0), first=first, im2col=im2col, patch=row)
                x_region = (row, 0, 0)
            constants = {"w": weights, "channels": channels, "gemm": gemm}
            f.place(multiply, x=x_region, y=(out, n * rows, 0), acc=acc, **constants)
    return f.lowering()
