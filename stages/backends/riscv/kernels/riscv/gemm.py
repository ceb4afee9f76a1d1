"""CONV_2D as a matrix product of six pixels at a time.

TIR of convolution on RISC-V: pack windows, multiply tiles of six pixels, requantize.

for n in batch, g in groups:
  product  y[P, O]  <- requantize(bias + x[P, K] * w)     pointwise int8 NHWC layers            riscv_gemm_s8
  windows  y[P, O]  <- the same of windows of x           others, padded with the zero point    riscv_windows_s8
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic import packing
from stages.backends.kernels.eight_bit import INT8_OFFSET, too_deep, weight_rows, weight_zero_point, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.structure import Structure
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import lowered, output, requantize, widen
from stages.backends.kernels.tir.window import gathered
from stages.backends.riscv.kernels.riscv.rectified import is_rectified
from stages.backends.riscv.kernels.riscv.rows import GROUP, ROWS, Rows
from stages.backends.riscv.kernels.riscv.windows import FIELDS as WINDOWS
from stages.backends.riscv.kernels.riscv.windows import fields_of, outside_bytes, reads_in_place
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import T, np

FIELDS = Structure.of_header("riscv_gemm", __file__, "gemm.h")
# What the words of a tile may take of the arena, in bytes.
_MOST_PACKED = 16384


class Gemm(Kernel):
    """Convolution as the product of six windows and a weight panel.

    Both are packed into words, the windows straight from the image.

    Input and output may each be NHWC or NCHW. uint8 inputs become int8 in the words.
    """

    name = "riscv.gemm"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("gemm.c",)

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        if bad := why_not_types(view) or too_deep(depth_of(view)):
            return bad
        if weight_zero_point(view):
            return "the weights have a zero point; this kernel supports none"
        size = 4 * rows_of_words(view, target).words
        return f"a tile takes {size} bytes of scratch; the limit is {_MOST_PACKED}" if size > _MOST_PACKED else ""

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        op, x = view.op, view.inputs[0]
        flat = weight_rows(view, packing.signed_weights(view)[0])
        if x.layout == "NCHW":  # a window is gathered plane by plane
            flat = flat.reshape(op.out_channels, *op.kernel, -1).transpose(0, 3, 1, 2).reshape(op.out_channels, -1)
        words = rows_of_words(view, target)
        packed = packing.channels(view, flat, 0, op.input_zero_point - INT8_OFFSET[x.dtype])
        constants = {
            "weights": np.stack([panels(group, words) for group in np.split(flat, op.groups)]),
            "channels": np.stack([channels(group, words) for group in np.split(packed, op.groups)]),
            "gemm": FIELDS.of(_fields(view, words)),
        }
        if not reads_in_place(view):
            constants["windows"] = WINDOWS.of(fields_of(view))
        return constants

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return conv2d(view, rows_of_words(view, target), FIELDS.shape, WINDOWS.shape)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return gemm_cost(view, rows_of_words(view, target))


def rows_of_words(view: LayerView, target: Target) -> Rows:
    """Return the layout of the layer's rows in words of the target."""
    return Rows(depth_of(view), target.word_bits)


def _fields(view: LayerView, words: Rows) -> dict[str, int]:
    op, out = view.op, view.outputs[0]
    planar = out.layout == "NCHW"
    return {
        "x_row": op.in_channels if reads_in_place(view) else words.row,
        "y_row": 1 if planar else op.out_channels,
        "y_column": out.shape[1] * out.shape[2] if planar else 1,
        "row": words.row,
        "depth": words.depth,
        "zero_point": op.output_zero_point,
        "low": op.act_min,
        "high": op.act_max,
        "rectified": int(is_rectified(view)),
    }


@dataclass(frozen=True)
class _Layer:
    """A convolution with rows packed in words, and the sizes of the C structures."""

    view: LayerView
    words: Rows
    gemm: tuple[int, ...]
    windows: tuple[int, ...]

    @property
    def columns(self) -> int:
        return int(self.view.op.out_channels // self.view.op.groups)

    @property
    def pixels(self) -> int:
        _, height, width, _ = self.view.outputs[0].shape
        return int(height * width)

    @property
    def is_planar(self) -> bool:
        return self.view.outputs[0].layout == "NCHW"

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weight panels."""
        return self.words.whole_columns(self.columns) // self.words.panel * self.words.panel_bytes

    def operands(self) -> tuple[Operand, ...]:
        """Operands of both blocks besides x."""
        pixels, columns, words = self.pixels, self.columns, self.words
        return (
            Operand("w", (self.weight_bytes,), "int8"),
            Operand("channels", (words.whole_columns(columns), 3), "int32"),
            Operand("gemm", self.gemm, "int32"),
            Operand("y", (columns, pixels) if self.is_planar else (pixels, columns), self.view.outputs[0].dtype, "w"),
            Operand("packed", (words.words,), "int32", "rw"),
            accumulator(),
        )

    def columns_of(self, b: Any, row: Any, products: Callable[[Callable[[Any], Any]], None]) -> None:
        """Compute all results of a row.

        `products` sums the products with the weights, which it gets as a function of the element.
        """
        words, columns = self.words, self.columns
        whole = columns - columns % words.panel

        def result(column: Any, panel: Any, lane: Any) -> None:
            store(b.acc, b.channels[column, 0], 0)
            products(lambda k: b.w[panel * words.panel_bytes + words.header + k * words.panel + lane])
            scaled = requantize(b.acc[0], b.channels[column, 1], b.channels[column, 2], self.view.op.rounding)
            store(b.y, output(self.view, scaled), *((column, row) if self.is_planar else (row, column)))

        if whole:
            with loop(("panel", whole // words.panel), ("lane", words.panel)) as (panel, lane):
                result(panel * words.panel + lane, panel, lane)
        if columns - whole:
            with loop(("j", columns - whole)) as j:
                result(j + whole, whole // words.panel, j)


def _product(layer: _Layer) -> Block:
    """y[i, j] = requantize(bias[j] + sum over k of x[i, k] * w[j, k]), w packed by `panels`.

    NCHW: y is [j, i].
    """
    pixels, row = layer.pixels, layer.words.row

    def meaning(b: Any) -> None:
        with loop(("i", pixels)) as i:

            def products(weight: Callable[[Any], Any]) -> None:
                with loop(("k", row)) as k:
                    store(b.acc, b.acc[0] + widen(b.x[i, k]) * widen(weight(k)), 0)

            layer.columns_of(b, i, products)

    operands = (Operand("x", (pixels, row), "int8"), *layer.operands())
    return Block(
        "product",
        operands,
        meaning,
        "riscv_gemm_s8",
        lambda b: [b.x, b.w, b.channels, b.y, b.packed, pixels, layer.columns, b.gemm],
    )


def _windows(layer: _Layer) -> Block:
    """The same product on windows of x.

    Window elements are in the order (ky, kx, c), in planes (c, ky, kx).
    """
    view, pixels, fields = layer.view, layer.pixels, fields_of(layer.view)
    x, height, width = view.inputs[0], fields["height"], fields["width"]
    kernel_height, kernel_width = fields["kernel_height"], fields["kernel_width"]
    depth, planar = view.op.in_channels // view.op.groups, x.layout == "NCHW"
    zero_point = view.op.input_zero_point - (offset := INT8_OFFSET[x.dtype])
    taps = (("ky", kernel_height), ("kx", kernel_width))

    def meaning(b: Any) -> None:
        with loop(("i", pixels)) as i:

            def products(weight: Callable[[Any], Any]) -> None:
                with loop(*((("c", depth), *taps) if planar else (*taps, ("c", depth)))) as variables:
                    c, ky, kx = variables if planar else (variables[2], *variables[:2])
                    value = gathered(
                        fields,
                        i,
                        (ky, kx),
                        lambda iy, ix: lowered(b.x[c, iy, ix] if planar else b.x[iy, ix, c], offset),
                        T.int8(zero_point),
                    )
                    tap = ky * kernel_width + kx
                    element = c * (kernel_height * kernel_width) + tap if planar else tap * depth + c
                    store(b.acc, b.acc[0] + widen(value) * widen(weight(element)), 0)

            layer.columns_of(b, i, products)

    operands = (
        Operand("x", (depth, height, width) if planar else (height, width, depth), x.dtype),
        *layer.operands(),
        Operand("windows", layer.windows, "int32"),
        Operand("outside", (outside_bytes(view),), "int8", "rw"),
    )
    return Block(
        "windows",
        operands,
        meaning,
        "riscv_windows_s8",
        lambda b: [b.x, b.w, b.channels, b.y, b.packed, b.outside, pixels, layer.columns, b.gemm, b.windows],
    )


def conv2d(view: LayerView, words: Rows, gemm: tuple[int, ...], windows: tuple[int, ...]) -> Lowering:
    """Build the layer; `gemm` and `windows` are the shapes of the C structures."""
    layer = _Layer(view, words, gemm, windows)
    op, x, y = view.op, view.inputs[0], view.outputs[0]
    batch, groups, pixels, columns = y.shape[0], op.groups, layer.pixels, layer.columns
    in_place, step = reads_in_place(view), op.in_channels // op.groups
    block = _product(layer) if in_place else _windows(layer)

    with Function("conv2d") as f:
        image = f.input(0, (batch, pixels, op.in_channels) if in_place else x.physical_shape, x.dtype)
        weights = f.constant("weights", (groups, layer.weight_bytes), "int8")
        channels = f.constant("channels", (groups, words.whole_columns(columns), 3), "int32")
        given = {"gemm": f.constant("gemm", gemm, "int32")}
        if not in_place:
            given["windows"] = f.constant("windows", windows, "int32")
        shape = (op.out_channels, pixels) if layer.is_planar else (pixels, op.out_channels)
        out = f.output(0, (batch, *shape), y.dtype)
        given["acc"] = f.scratch("acc", (1,), "int32")
        given["packed"] = f.scratch("packed", (words.words,), "int32")
        if not in_place:
            given["outside"] = f.scratch("outside", (outside_bytes(view),), "int8")
        with f.loop(("n", batch), ("g", groups)) as (n, g):
            group = (0, g * step) if in_place else (g * step, 0, 0) if x.layout == "NCHW" else (0, 0, g * step)
            corner = (g * columns, 0) if layer.is_planar else (0, g * columns)
            f.place(
                block,
                x=(image, n, *group),
                y=(out, n, *corner),
                w=(weights, g, 0),
                channels=(channels, g, 0, 0),
                **given,
            )
    return f.lowering()


_MOST = 32767  # what is added to halves of words before they are counted


def panels(weights: np.ndarray, words: Rows) -> np.ndarray:
    """Pack int8 [columns, row] into consecutive panels, int8 [bytes]; the filling is 0."""
    columns, row = weights.shape
    whole = np.zeros((words.whole_columns(columns), words.depth), np.int8)
    whole[:columns, :row] = weights
    by_panel = whole.reshape(-1, words.panel, words.depth).transpose(0, 2, 1)
    interleaved = np.ascontiguousarray(by_panel).reshape(len(by_panel), -1)
    if not words.header:
        return interleaved.reshape(-1)
    return np.concatenate([_headers(by_panel, words), interleaved], axis=1).reshape(-1)


def channels(constants: np.ndarray, words: Rows) -> np.ndarray:
    """Return int32 [columns, 3] constants, padded with rows of 0 to whole panels."""
    columns = len(constants)
    return np.pad(constants, ((0, words.whole_columns(columns) - columns), (0, 0)))


def _headers(weights: np.ndarray, words: Rows) -> np.ndarray:
    """Return int8 [panels, bytes] headers for weights [panels, depth, columns].

    A header is a halfword with the number of counts, then one bit per group of elements (the first group in the top bit
    of a halfword). A set bit means that the products of the group may be counted once: the sums of four of them, plus
    _MOST, stay in [0, 2^16) for all int8 activations and both columns.
    """
    groups = weights.astype(np.int64).reshape(len(weights), -1, GROUP, words.panel)
    up, down = np.maximum(groups, 0).sum(2), -np.minimum(groups, 0).sum(2)
    most, least = 127 * up + 128 * down, -128 * up - 127 * down
    once = ((most + _MOST < 1 << 16) & (least + _MOST >= 0)).all(2)
    bits = np.zeros((len(weights), 8 * (words.header - 2)), np.uint8)
    bits[:, : once.shape[1]] = once
    masks = np.packbits(bits, axis=1).reshape(len(weights), -1, 2)[:, :, ::-1]
    counted = (2 * once.shape[1] - once.sum(1)).astype("<u2")[:, None].view(np.uint8)
    header = np.concatenate([counted, masks.reshape(len(weights), -1)], axis=1)
    return np.ascontiguousarray(header).view(np.int8)


SEGMENT = 64  # products that are added up on 64 bits before sums are taken apart


@dataclass(frozen=True)
class _Prices:
    """Instructions per tile, packed element, panel element, panel segment and result.

    A result without a ReLU, or of an incomplete tile, takes `straight` more.
    """

    tile: float
    packed: float
    element: float
    segment: float
    result: float
    straight: float


_PRICES = {32: _Prices(245, 18, 24, 0, 18.4, 8.6), 64: _Prices(60, 20, 43.4, 300, 11, 9.8)}
# For a run of taps, for a row of the windows in a plane, and for a tile of windows.
_RUN, _ROW, _WINDOWS = 115, 15, 130


def gemm_cost(view: LayerView, words: Rows) -> float:
    """Return the instructions of tiles, row packing, panels and results."""
    out, op, price = view.outputs[0], view.op, _PRICES[words.word_bits]
    pixels, columns = out.shape[1] * out.shape[2], op.out_channels // op.groups
    panels = words.whole_columns(columns) // words.panel
    products = panels * (price.element * words.depth + price.segment * -(-words.depth // SEGMENT))
    result = price.result + (price.straight if op.act_min < op.output_zero_point or pixels < ROWS else 0)
    tiles = -(-pixels // ROWS)
    tile_cost = price.tile + price.packed * words.depth + products + result * columns * min(ROWS, pixels)
    return float(out.shape[0] * op.groups * (tiles * tile_cost + _gathered(view, tiles)))


def _gathered(view: LayerView, tiles: int) -> float:
    """Return the instructions that locate the windows of an image."""
    if reads_in_place(view):
        return 0
    fields = fields_of(view)
    runs = _runs(fields, view.outputs[0].shape[1] * view.outputs[0].shape[2])
    return float(tiles * _WINDOWS + fields["planes"] * fields["kernel_height"] * (tiles * _ROW + runs * _RUN))


def _runs(fields: dict[str, int], pixels: int) -> int:
    """Return the runs of taps that the tiles of an image pack per window row.

    A window row inside the image is one run. Otherwise, each tap is a run.
    """
    width = fields["kernel_width"]
    first = np.minimum(np.arange(0, pixels, ROWS), max(pixels - ROWS, 0))
    if fields["dilation_x"] != 1 or fields["pixel"] != fields["channels"]:
        return width * len(first)
    column = (first[:, None] + np.arange(min(ROWS, pixels))) % fields["out_width"]
    left = column * fields["stride_x"] - fields["left"]
    begin = np.maximum(-left, 0).max(axis=1)
    end = np.minimum(fields["width"] - left, width).min(axis=1)
    return int((width + 1 - np.maximum(end - begin, 1)).sum())
