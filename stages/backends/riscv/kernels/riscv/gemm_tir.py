"""TIR of convolution on RISC-V: pack windows, multiply tiles of six pixels, requantize.

for n in batch, g in groups:
  product  y[P, O]  <- requantize(bias + x[P, K] * w)     pointwise int8 NHWC layers            riscv_gemm_s8
  windows  y[P, O]  <- the same of windows of x           others, padded with the zero point    riscv_windows_s8
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.eight_bit import INT8_OFFSET
from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.backends.kernels.tir.fixed_point import lowered, output, requantize, widen
from stages.backends.kernels.tir.window import gathered
from stages.backends.riscv.kernels.riscv.rows import Rows
from stages.backends.riscv.kernels.riscv.windows import fields_of, outside_bytes, reads_in_place
from stages.ir.graph import LayerView


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
