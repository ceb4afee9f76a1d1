"""CONV_2D and FULLY_CONNECTED as matrix products.

TIR of convolution and fully connected layers: im2col, matrix product, requantization.

    for n in batch, g in groups, t in tiles of P output pixels:
      first = t * P
      gather   patch[P, K]  <- the windows of P pixels, padded with the zero point    fl_im2col_nhwc / _nchw
      product  y[P, O]      <- requantize(bias + patch * transpose(w))                fl_gemm_s8 / fl_row_s8

If P does not divide the number of pixels, the rest has separate blocks, `gather_rest` and `product_rest`.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar

from pydantic import Field

from stages.backends.generic.kernels.generic import packing
from stages.backends.generic.kernels.generic.costs import ProductCosts, costs_of
from stages.backends.generic.kernels.generic.im2col import im2col_fields, reads_in_place, row_fields
from stages.backends.generic.kernels.generic.packing import PANEL, signed_weights, small_panel
from stages.backends.generic.kernels.generic.parameters import GEMM, IM2COL, epilogue
from stages.backends.kernels.eight_bit import (
    INT8_OFFSET,
    too_deep,
    weight_rows,
    weight_zero_point,
    why_not_types,
    why_not_weights_order,
)
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import lowered, output, requantize, widen
from stages.backends.kernels.tir.window import gathered
from stages.backends.kernels.windows import whole_windows
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np


class ConvParams(KernelParams):
    """`pixels` output pixels are gathered and multiplied at a time.

    0: four, or two when a window has more than 512 elements, on RISC-V 1024.
    """

    pixels: int = Field(default=0, ge=0, le=64)


class Conv2d(Kernel):
    """Convolution as im2col and a blocked matrix product.

    A pointwise int8 NHWC layer reads its input in place.

    Input and output may each be NHWC or NCHW. uint8 inputs become int8 while they are gathered.
    """

    name = "generic.conv2d"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    sources = ("gemm.c", "im2col.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "im2col.h")
    params = ConvParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or too_deep(depth_of(view))

    def pack(self, view: LayerView, params: ConvParams) -> Mapping[str, Array]:
        op, x = view.op, view.inputs[0]
        weights, weight_zero_point = packing.signed_weights(view)
        flat = weight_rows(view, weights)
        if x.layout == "NCHW":  # a window is gathered plane by plane
            flat = flat.reshape(op.out_channels, *op.kernel, -1).transpose(0, 3, 1, 2).reshape(op.out_channels, -1)
        zero_point = op.input_zero_point - INT8_OFFSET[x.dtype]
        constants = {
            "weights": np.stack([packing.panels(group) for group in np.split(flat, op.groups)]),
            "channels": packing.channels(view, flat, weight_zero_point, zero_point).reshape(op.groups, -1, 3),
            "gemm": GEMM.of(gemm_fields(view, weight_zero_point)),
        }
        if not reads_in_place(view):
            constants["im2col"] = IM2COL.of(im2col_fields(view))
        return constants

    def lower(self, view: LayerView, params: ConvParams, target: Target) -> Lowering:
        """Return the convolution, `tile` output pixels at a time."""
        tile = tile_pixels(view, params, target)
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
            out = f.output(
                0, (batch, op.out_channels, pixels) if planar_out else (batch, pixels, op.out_channels), y.dtype
            )
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

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return convolution_cost(view, tile_pixels(view, params, target), target)


class FullyConnected(Kernel):
    """Rows of x times rows of w, two by eight at once.

    uint8 inputs become int8 in a scratch row first.
    """

    name = "generic.fully_connected"
    estimate_error = 1.5
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})
    sources = ("gemm.c", "im2col.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "im2col.h")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_weights_order(view) or why_not_types(view) or too_deep(view.op.depth)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, x = view.op, view.inputs[0]
        weights, weight_zero_point = packing.signed_weights(view)
        weights = weight_rows(view, weights)
        zero_point = op.input_zero_point - INT8_OFFSET[x.dtype]
        fields = {"x_row": op.depth, "y_row": op.units, "y_column": 1, "weight_zero_point": weight_zero_point}
        constants = {
            "weights": packing.panels(weights),
            "channels": packing.channels(view, weights, weight_zero_point, zero_point),
            "gemm": GEMM.of(fields | epilogue(op, op.rounding)),
        }
        if x.dtype == "uint8":
            constants["im2col"] = IM2COL.of(row_fields(view))
        return constants

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
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

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the estimate. A single row takes one instruction more per product than panels."""
        op, price = view.op, costs_of(target).products
        product = price.single + 1 if op.batch == 1 else price.product
        return float(op.batch * op.units * (product * op.depth + price.output))


def tile_pixels(view: LayerView, params: ConvParams, target: Target) -> int:
    """Return the output pixels of one matrix product."""
    out = view.outputs[0]
    pixels = out.shape[1] * out.shape[2]
    if reads_in_place(view):
        return pixels
    chosen = params.pixels or (4 if depth_of(view) <= costs_of(target).deepest_of_four else 2)
    return min(chosen, pixels)


def gemm_fields(view: LayerView, weight_zero_point: int) -> dict[str, int]:
    """Return the fields of the C structure `gemm` by name."""
    op, out = view.op, view.outputs[0]
    planar = out.layout == "NCHW"
    return {
        "x_row": op.in_channels if reads_in_place(view) else depth_of(view),
        "y_row": 1 if planar else op.out_channels,
        "y_column": out.shape[1] * out.shape[2] if planar else 1,
        "weight_zero_point": weight_zero_point,
    } | epilogue(op, op.rounding)


KERNELS: tuple[type[Kernel], ...] = (Conv2d, FullyConnected)


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


ROW_SUM = 4.0  # of an element of a row, for weights that have a zero point


def convolution_cost(view: LayerView, pixels: int, target: Target) -> float:
    """Return the cost of CONV_2D with `pixels` output pixels of a group at a time."""
    op, depth, price = view.op, depth_of(view), costs_of(target).products
    batch, height, width, channels = view.outputs[0].shape
    groups, count = batch * op.groups, height * width
    panels, rest = divmod(channels // op.groups, PANEL)
    tiles, last = divmod(count, pixels)
    blocks = tiles * (pixels // price.rows) + last // price.rows
    alone = count - blocks * price.rows
    row_products = depth * PANEL * panels
    products = (
        blocks * (price.rows * row_products * price.product + panels * price.panel)
        + alone * row_products * price.single
    )
    row = rest * depth * price.left + channels // op.groups * price.output + price.row
    if weight_zero_point(view):
        row += depth * ROW_SUM
    gathered = 0.0 if reads_in_place(view) else _gathered(view, price)
    return groups * (products + count * row + gathered + (tiles + (last > 0)) * price.tile)


def _gathered(view: LayerView, price: ProductCosts) -> float:
    """Return the cost of gathering the windows of a group."""
    op, x, (_, height, width, _) = view.op, view.inputs[0], view.outputs[0].shape
    pixels, channels = height * width, op.in_channels // op.groups
    if x.layout == "NCHW":
        return pixels * channels * (op.kernel[0] * price.plane + prod(op.kernel) * price.element)
    byte = price.flipped if x.dtype == "uint8" else price.byte
    runs = float(op.kernel[1])  # of a row of a window
    if op.groups == 1 and op.dilation[1] == 1:
        inside = len(whole_windows(view, 1)) / width
        runs = inside + (1 - inside) * op.kernel[1]
    return pixels * op.kernel[0] * (runs * price.run + op.kernel[1] * channels * byte)
