"""Cases of DEPTHWISE_CONV_2D."""

from collections.abc import Iterator
from itertools import islice
from itertools import product as grid
from typing import Any

import numpy as np

from stages.ir.graph import DepthwiseConv2D, LayerView
from tests.conformance.case import Case, case, drawn_inputs, extremes
from tests.conformance.draw import Draw, bounds, image, middle, scaled_little, view, with_constants, with_op
from tests.conformance.operators.products import UNITS, Product, plain, product_cases
from tests.conformance.operators.windows import Window, any_window, around, fits, kinds
from tests.conformance.sums import tie_constants, zero_point_runs

OPS = ("depthwise_conv2d",)
TIED = 48
FEW_TIED = 36


def depthwise(
    draw: Draw,
    window: Window,
    channels: int,
    *,
    multiplier: int = 1,
    batch: int = 1,
    layouts: tuple[str, str] = ("NHWC", "NHWC"),
    kernel_layout: str = "HWC",
    weight_type: tuple[str, int] | None = None,
    weights: np.ndarray | None = None,
    **fields: Any,
) -> LayerView:
    """`weights` [1, rows, columns, channels * multiplier], otherwise drawn, all of the type but its highest value."""
    dtype, weight_zero_point = weight_type or draw.weight_type()
    count = channels * multiplier
    op = DepthwiseConv2D(
        **window.fields(),
        **draw.clamped(),
        depth_multiplier=multiplier,
        in_channels=channels,
        out_channels=count,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        kernel_layout=kernel_layout,  # type: ignore[arg-type]
    ).model_copy(update=fields)
    if weights is None:
        # 255 less a zero point of 0 is a weight that some kernels leave to others.
        weights = np.minimum(draw.array((1, *window.kernel, count), dtype), bounds(dtype)[1] - 1)
    constants = draw.channel_constants(count, int(np.prod(window.kernel)))
    planar = np.ascontiguousarray(weights.transpose(3, 0, 1, 2))
    constants["weights"] = (weights if kernel_layout == "HWC" else planar).astype(dtype)
    x = image("x", (batch, *window.size, channels), draw.dtype, layouts[0])
    return view(op, [x], image("y", (batch, *window.out, count), draw.dtype, layouts[1]), constants)


def drawn(draw: Draw) -> LayerView:
    """Anything."""
    return depthwise(
        draw,
        any_window(draw, largest=5),
        draw.choose(draw.integer(1, 37), 8, 16),
        multiplier=draw.choose(1, 1, 1, 2, 3),
        batch=draw.choose(1, 2),
        layouts=draw.choose(("NHWC", "NHWC"), (draw.layout(), draw.layout())),
        kernel_layout=draw.choose("HWC", "OIHW"),
        rounding=draw.choose("double", "double", "double", "single"),
    )


def _product(name: str, kernel: tuple[int, int], **sizes: Any) -> Product:
    """Windows of one size, of which each pixel meets a channel of its own."""

    def make(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
        return depthwise(draw, around(kernel, (1, 1), (2, max(pixels // 2, 1)), draw), units, **fields)

    return Product(name, make, pixels=9, depth=1, units=20, tied=TIED, **sizes)


def _whole_image(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    return depthwise(draw, Window((3, pixels), (3, pixels)), units, **fields)


PRODUCTS = (
    _product("3x3", (3, 3)),
    _product("2x3", (2, 3), shifts=range(-30, 2, 3)),
    _product("5x5", (5, 5), shifts=range(-29, 2, 6)),
    Product("whole image", _whole_image, pixels=5, depth=1, units=20, tied=TIED),
)
PLAIN = (PRODUCTS[0].plain, _product("5x2", (5, 2)).plain)


def mandatory() -> Iterator[Case]:
    few = (_few_taps, _ties_of_few_taps, _taps_of_few_channels, _words_of_four_channels, _few_rows)
    for part in (_channels, _threes, _windows, *few, _long_rows, _layouts, _bands, _extremes, _whole, _many_channels):
        yield from part()
    for product in PRODUCTS:
        yield from product_cases(product)
    yield from _groups()
    yield from _scales()
    yield from _large_sums()


def _large_sums() -> Iterator[Case]:
    """Sums up to both ends of 32 bits, of which one rounding keeps a half and more."""
    ends = ((1 << 31) - 1 - 9 * 255 * 255) * np.array([1, -1, 1, -1]) // np.array([1, 1, 2, 2])
    for number, dtype in enumerate(("int8", "uint8")):
        draw = Draw(number, dtype)
        layer = depthwise(draw, around((3, 3), (1, 1), (3, 8), draw), 8, rounding="single")
        multiplier = np.repeat([1 << 30, (1 << 31) - 1], 4).astype(np.int32)
        bias = np.tile(ends, 2).astype(np.int32)
        layer = with_constants(layer, bias=bias, multiplier=multiplier, shift=np.zeros(8, np.int32))
        yield case(f"large sums {dtype}", draw, layer, "wide sums")


def _channels() -> Iterator[Case]:
    """Each number of channels in a group and behind it."""
    for kernel in ((3, 3), (5, 5)):
        for channels in range(1, 36):
            draw = Draw(channels, ("int8", "uint8")[channels // 2 % 2])
            stride = draw.choose(1, 2)
            window = around(kernel, (stride, stride), (draw.integer(1, 4), draw.integer(1, 6)), draw)
            yield case(f"{kernel} {channels} channels", draw, depthwise(draw, window, channels), "tails: channels")


def _threes() -> Iterator[Case]:
    """3x3 windows: each size of the output along both axes, both strides, any padding up to two rows."""
    for size in range(1, 20):
        for stride in ((1, 1), (2, 2)):
            for axis in (0, 1):
                draw = Draw(size + 100 * stride[0] + axis, ("int8", "uint8")[(size + axis) % 2])
                out = (size, draw.integer(1, 9)) if axis == 0 else (draw.integer(1, 9), size)
                window = around((3, 3), stride, out, draw)
                if size % 3 == 0:  # one row of padding at most before the image
                    top, left, bottom, right = (min(side, 1) for side in window.padding)
                    window = Window(window.size, (3, 3), stride, (top, left, bottom, right))
                layer = depthwise(draw, window, 16 * draw.integer(1, 2), batch=draw.choose(1, 1, 2))
                yield case(f"3x3 {window}", draw, layer, f"tails: {['rows', 'columns'][axis]}")


def _windows() -> Iterator[Case]:
    """Every extent, stride, and side that a window can leave the image on."""
    for number, (kernel, stride) in enumerate(kinds(7)):
        draw = Draw(number, ("int8", "uint8")[number // 3 % 2])
        out = (draw.integer(1, 9), draw.integer(1, 9))
        window = around(kernel, stride, out, draw)
        layer = depthwise(draw, window, draw.choose(8, 16, 24, draw.integer(1, 20)), batch=draw.choose(1, 1, 2))
        yield case(f"window {window}", draw, layer, "windows")
    for number, kernel in enumerate([*np.ndindex(5, 5), (4, 6), (3, 8), (4, 8), (8, 8), (7, 7)]):
        for stride in ((1, 1), (2, 2), (3, 1), (1, 3)):
            draw = Draw(300 + number, ("int8", "uint8")[number % 2])
            out = (draw.integer(1, 9), draw.integer(1, 9))
            window = around((kernel[0] + 1, kernel[1] + 1), stride, out, draw)
            layer = depthwise(draw, window, draw.choose(8, 16, 13), multiplier=1)
            if number % 2 == stride[0] % 2:
                yield case(f"window {window}", draw, layer, "windows")
    for number in range(24):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        window = any_window(draw)
        if fits(window):
            layer = depthwise(draw, window, draw.integer(1, 9), multiplier=draw.choose(1, 2, 3))
            yield case(f"any window {window}", draw, layer, "windows", "multipliers")


def _few_taps() -> Iterator[Case]:
    """Windows of up to four taps, in rows of some outputs, with all of the output's range, and steps of one sign."""
    windows = (
        *(((2, 2), (1, 1)), ((3, 1), (1, 1)), ((3, 1), (4, 1))),
        *(((1, 4), (1, 1)), ((2, 2), (2, 2)), ((1, 3), (1, 2))),
    )
    for number, (kernel, dilation) in enumerate((*windows, *windows)):
        for stride in (1, 2) if dilation == (1, 1) else (1,):
            for count in (5, 6, 9, 12):
                draw = Draw(600 + 10 * number + count, ("int8", "uint8")[number % 5 // 4])
                low, high = bounds(draw.dtype)
                across = kernel[1] == 1
                out = (count, draw.integer(1, 2)) if across else (draw.integer(1, 2), count)
                size = tuple((o - 1) * stride + (k - 1) * d + 1 for o, k, d in zip(out, kernel, dilation, strict=True))
                window = Window((size[0], size[1]), kernel, (stride, stride), dilation=dilation)
                if number < len(windows):
                    top, left = (kernel[0] > 1), (kernel[1] > 1)
                    window = Window(
                        (size[0] - top, size[1] - left), kernel, (stride, stride), (top, 0, 0, left), dilation
                    )
                if not fits(window):
                    continue
                layer = depthwise(draw, window, draw.choose(8, 16, 24))
                zero_point = low if count % 2 else middle(draw.dtype)
                layer = with_op(layer, output_zero_point=zero_point, act_min=low, act_max=high)
                yield case(f"few taps {window} {zero_point}", draw, layer, "windows")


def _ties_of_few_taps() -> Iterator[Case]:
    """Each number of taps up to six, in and around the image, whose results are small, and near what 32 bits hold."""
    kernels = ((1, 1), (1, 2), (3, 1), (2, 2), (5, 1), (2, 3))
    for kernel, shift, dtype, inside in grid(kernels, (-5, -14), ("int8", "uint8"), (True, False)):
        draw = Draw(650 - shift, dtype)
        padding = (0, 0, 0, 0) if inside else (kernel[0] - 1, kernel[1] - 1, 0, 0)
        window = Window((kernel[0] + 1, kernel[1] + 2), kernel, padding=padding)

        def make(draw: Draw, *sizes: int, window: Window = window, **fields: Any) -> LayerView:
            return depthwise(draw, window, sizes[-1], **fields)

        layer = plain(Product("few taps", make, 1, 1, 1), draw, FEW_TIED)
        for number, constants in enumerate(islice(tie_constants("double", shift, FEW_TIED, draw), 1, 3)):
            runs = zero_point_runs(draw, layer.inputs[0].shape, layer.op.input_zero_point)
            name = f"ties of {window}, {dtype} shift {shift} {number}"
            yield Case(name, ("ties: double",), with_constants(layer, **constants), tuple((run,) for run in runs))


def _taps_of_few_channels() -> Iterator[Case]:
    """Fewer channels than vectors have lanes, and up to a few more; rows that some of them divide evenly, and prime."""
    kernels = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (3, 2), (1, 5))
    for channels in (1, 2, 3, 4, 5, 7, 8, 12, 15, 18, 20, 31, 40):
        for number, kernel in enumerate(kernels):
            draw = Draw(2000 + 10 * channels + number, ("int8", "int8", "uint8")[(number + channels) % 3])
            stride = ((1, 1), (2, 2), (1, 1), (1, 2))[(number + channels) % 4]
            columns = draw.choose(5, 6, 8, 11)
            window = around(kernel, stride, (draw.integer(1, 5), columns), draw)
            if number % 2:
                spans = tuple((o - 1) * s + k for o, s, k in zip(window.out, stride, kernel, strict=True))
                window = Window((spans[0], spans[1]), kernel, stride)
            layer = depthwise(draw, window, channels, batch=draw.choose(1, 1, 2))
            if number % 3 == 0:
                low, high = bounds(draw.dtype)
                layer = with_op(layer, act_min=low, act_max=high)
            yield case(f"{window} of {channels}", draw, layer, "tails: channels", "windows")
    for channels in (1, 2, 3, 5, 7, 11, 15):  # the last row of the image meets no window, or a part of it
        for kernel, rows in (((1, 1), 6), ((2, 2), 5), ((1, 3), 4), ((2, 1), 7)):
            draw = Draw(2700 + channels, "int8")
            window = Window((rows, 8 - channels % 2), kernel, (2, 2 + channels % 2))
            yield case(f"{window} of {channels}", draw, depthwise(draw, window, channels), "tails: channels", "windows")


def _words_of_four_channels() -> Iterator[Case]:
    """Pixels of an odd number of words of four bytes, windows inside the image, each number of outputs in a row; groups
    of channels that are requantized otherwise than those beside them.
    """
    kernels = ((1, 1), (2, 2), (3, 1), (1, 4), (2, 3), (3, 3), (1, 5), (5, 2))
    for number, (kernel, columns) in enumerate(grid(kernels, range(1, 10))):
        draw = Draw(2950 + number, "int8")
        channels = (12, 20, 28, 44)[(number + columns) % 4]
        stride = draw.choose((1, 1), (1, 1), (2, 2), (1, 2))
        out = (columns, draw.integer(1, 3))[:: 1 if kernel[1] == 1 else -1]
        spans = tuple((o - 1) * s + k for o, s, k in zip(out, stride, kernel, strict=True))
        window = Window((spans[0], spans[1]), kernel, stride)
        layer = depthwise(draw, window, channels, batch=draw.choose(1, 1, 2))
        if number % 2:
            low, high = bounds(draw.dtype)
            layer = with_op(layer, act_min=low, act_max=high)
        if number % 3 == 0:
            shift = layer.constant("shift").copy()
            first = draw.integer(0, channels // 8) * 8
            shift[first : first + 3] = draw.choose(0, 1, -20)
            layer = with_constants(layer, shift=shift)
        yield case(f"{window} of {channels}", draw, layer, "tails: channels", "windows", "shifts")


def _long_rows() -> Iterator[Case]:
    """Images of which scratch holds some rows only, or those of some channels."""
    windows = (
        ((13, 20), (3, 2), (1, 1), 20),
        ((29, 21), (2, 2), (2, 1), 23),
        ((17, 24), (3, 1), (3, 1), 21),
        ((9, 30), (2, 3), (1, 1), 37),
        ((13, 26), (3, 3), (1, 1), 117),
        ((17, 25), (4, 1), (2, 2), 100),
        ((3, 300), (2, 2), (1, 1), 16),
        ((2, 260), (2, 2), (1, 2), 35),
    )
    for number, (out, kernel, stride, channels) in enumerate(windows):
        for dtype in ("int8", "uint8"):
            draw = Draw(2900 + number, dtype)
            window = around(kernel, stride, out, draw)
            yield case(f"long rows {window} of {channels}", draw, depthwise(draw, window, channels), "windows")


def _few_rows() -> Iterator[Case]:
    """Bands of streamed layers: one to three rows of pixels, padded at the sides only."""
    sides = ((0, 0), (0, 1), (1, 0), (1, 1))
    kinds = grid((1, 2), sides, ("plain", "clamped", "wide", "long"), (1, 3))
    for number, (stride, (left, right), weights, rows) in enumerate(kinds):
        dtype = "uint8" if weights == "wide" or number % 5 == 0 else "int8"
        draw = Draw(4700 + number, dtype)
        columns = draw.choose(1, 2, 3, 5, 8, 13)
        size = ((rows - 1) * stride + 3, max((columns - 1) * stride + 3 - left - right, 1))
        window = Window(size, (3, 3), (stride, stride), (0, left, 0, right))
        weight_type = ("uint8", 0) if weights == "wide" else None
        layer = depthwise(draw, window, draw.choose(4, 8, 16, 24), weight_type=weight_type)
        if weights != "clamped":
            low, high = bounds(dtype)
            layer = with_op(layer, output_zero_point=low if rows == 1 else middle(dtype), act_min=low, act_max=high)
        if weights == "long":
            shift = layer.constant("shift").copy()
            shift[-1] = 1
            layer = with_constants(layer, shift=shift)
        yield case(f"few rows {window} {weights}", draw, layer, "windows")


def _groups() -> Iterator[Case]:
    """3x3 windows, of images and of a row inside one: all types, groups of channels and steps of one or both signs."""
    types = (("int8", ("int8", 0)), ("uint8", ("uint8", 128)), ("uint8", ("uint8", 0)))
    kinds = grid((1, 2), types, ((3, 5), (12, 5), (16, 5), (16, 1)), (False, True))
    for number, (stride, (dtype, weight_type), (channels, rows), once) in enumerate(kinds):
        draw, low = Draw(5000 + number, dtype), bounds(dtype)[0]
        window = around((3, 3), (stride, stride), (rows, 6), draw)
        if rows == 1:
            window = Window((3, 6 * stride), (3, 3), (stride, stride), (0, 1, 0, 2 - stride))
        layer = depthwise(draw, window, channels, weight_type=weight_type)
        layer = with_op(layer, output_zero_point=low if once else middle(dtype), act_min=low, act_max=low + 255)
        yield case(f"group of {channels} {window} {weight_type} {once}", draw, layer, "tails: channels")


def _scales() -> Iterator[Case]:
    """Two rows of 3x3 windows: both types, strides and roundings, usual and large scales, each order of bytes."""
    types, orders = (("int8", 0), ("uint8", 128)), (("NHWC", "NHWC"), ("NHWC", "NCHW"), ("NHCW", "NHWC"))
    kinds = grid(types, orders, ((1, (0, 1, 0, 1)), (2, (0, 0, 0, 1))), ("usual", "large", "once"))
    for number, (kind, layouts, (stride, padding), scale) in enumerate(kinds):
        draw, (low, high) = Draw(5100 + number, kind[0]), bounds(kind[0])
        window = Window((3 + stride, 12), (3, 3), (stride, stride), padding)
        rounding = "single" if scale == "once" else "double"
        layer = depthwise(draw, window, 8, layouts=layouts, weight_type=kind, rounding=rounding)
        layer = with_op(scaled_little(layer) if scale == "large" else layer, act_min=low, act_max=high - 9)
        yield case(f"scales {layouts} {window} {kind} {scale}", draw, layer, "layouts", "shifts")
    for size, high in grid((2, 3), (127, 90)):  # of large sums
        draw = Draw(5200 + size, "int8")
        layer = depthwise(draw, around((size, size), (2, 2), (3, 9), draw), 20)
        far = {"bias": draw.rng.integers(-(1 << 21), 1 << 21, 20).astype(np.int32), "shift": np.full(20, -14, np.int32)}
        layer = with_op(with_constants(layer, **far), output_zero_point=0, act_min=-128, act_max=high)
        yield case(f"scales of large sums {size} {high}", draw, layer, "shifts")
    draw = Draw(5210, "uint8")
    layer = scaled_little(depthwise(draw, around((5, 5), (1, 1), (3, 9), draw), 5, weight_type=("uint8", 0)))
    weights = layer.constant("weights").copy()
    weights[0, 2, 2] = 200
    yield case("scales of wide weights", draw, with_constants(layer, weights=weights), "shifts")
    draw = Draw(5211, "int8")
    layer = depthwise(draw, around((3, 3), (3, 3), (3, 5), draw), 8, rounding="single")
    yield case("scales of windows apart", draw, with_op(layer, act_min=-128, act_max=127), "shifts")


def _layouts() -> Iterator[Case]:
    orders = grid(("NHWC", "NCHW"), ("NHWC", "NCHW"), ("HWC", "OIHW"), ((1, 1), (2, 1), (1, 2)))
    for number, (read, written, kernel_layout, (stride, multiplier)) in enumerate(orders, 1):
        draw, layouts = Draw(number, ("int8", "uint8")[number % 2]), (read, written)
        window = around((3, 3), (stride, stride), (draw.integer(1, 6), draw.integer(1, 9)), draw)
        layer = depthwise(draw, window, 16, multiplier=multiplier, layouts=layouts, kernel_layout=kernel_layout)
        yield case(f"layout {read} {written} {kernel_layout} {window} {multiplier}", draw, layer, "layouts")


def _bands() -> Iterator[Case]:
    """Rows of planes (NHCW), as streamed layers have: one row and more, with and without padding above and below."""
    kernels = (((3, 3), (1, 1)), ((3, 3), (2, 2)), ((3, 5), (1, 1)), ((5, 7), (2, 1)))
    layouts = {1: ("NHCW", "NHCW"), 2: ("NHCW", "NHCW"), 4: ("NHWC", "NHCW"), 5: ("NHCW", "NHWC"), 9: ("NCHW", "NHCW")}
    kinds = grid(kernels, layouts, ("plain", "clamped", "wide"), (False, True))
    for number, ((kernel, stride), rows, weights, long) in enumerate(kinds):
        dtype = "uint8" if weights == "wide" else "int8"
        draw = Draw(4000 + number, dtype)
        columns = {2: draw.choose(8, 9, 13), 4: draw.choose(9, 12), 9: 2}.get(rows, draw.choose(1, 2, 7, 9, 12))
        window = around(kernel, stride, (rows, columns), draw)
        if number % 3:  # padding at the sides only: the rows above and below lie in the buffer
            top, left, bottom, right = window.padding
            window = Window((window.size[0] + top + bottom, window.size[1]), kernel, stride, (0, left, 0, right))
        weight_type = (dtype, 0) if weights == "wide" else None
        layer = depthwise(draw, window, draw.integer(1, 9), layouts=layouts[rows], weight_type=weight_type)
        if weights == "plain":
            layer = with_op(layer, act_min=-128, act_max=127)
        if long:
            shift = layer.constant("shift").copy()
            shift[0] = 1
            layer = with_constants(layer, shift=shift)
        name = f"band {layouts[rows]} {window} {weights}{' long' if long else ''}"
        yield case(name, draw, layer, "layouts", "windows")
    # Few rows of outputs, padded at the sides: kernels may leave out what pays for many rows.
    planes = grid(("NHCW",), (4, 5, 6, 7, 9, 12, 14, 16), (0,), ("NHCW", "NHWC", "NCHW"), (False, True), (False, True))
    pixels = grid(("NHWC",), (1, 5, 9, 16), (1, 2, 3), ("NHWC",), (False, True), (False, True))
    for number, (read, columns, rows, written, cut, long) in enumerate((*planes, *pixels)):
        draw, stride = Draw(4400 + number, "int8"), 2 if columns % 2 == 0 and number % 3 else 1
        more = rows - 1 if rows else stride * (number // 3 % 2)
        window = Window((3 + more, columns), (3, 3), (stride, stride), (0, 2 - stride, 0, 1))
        channels = draw.choose(3, 8, 24) if read == "NHWC" else draw.integer(1, 9)
        layer = depthwise(draw, window, channels, layouts=(read, written))
        if not cut:
            layer = with_op(layer, act_min=-128, act_max=127)
        if long:
            layer = with_constants(layer, shift=np.maximum(layer.constant("shift"), -1))
        yield case(f"band {written} {window} {cut} {long}", draw, layer, "layouts", "windows")


def _extremes() -> Iterator[Case]:
    """Weights all lowest, all highest, in turn, -127 and 127 (pairs of products that just fit int16), halves."""
    for kernel in ((3, 3), (5, 5), (2, 2), (1, 4)):
        for stride in (1, 2):
            for dtype, zero_point in (("int8", 0), ("uint8", 128), ("uint8", 0), ("uint8", 255)):
                low, high = bounds(dtype)
                ends = ((low, low), (high, high), (low, high), (low + 1, low + 1), (low + 1, high))
                for number, (even, odd) in enumerate((*ends, (low // 2 + 32, high // 2))):
                    draw = Draw(number, dtype)
                    shape = (1, *kernel, UNITS)
                    parity = np.indices(shape).sum(0) % 2
                    window = around(kernel, (stride, stride), (3, 4), draw)
                    weights = np.where(parity, odd, even)
                    layer = depthwise(draw, window, UNITS, weight_type=(dtype, zero_point), weights=weights)
                    layer = with_op(layer, output_zero_point=middle(dtype), act_min=low)
                    layer = with_constants(
                        layer, shift=np.full(UNITS, -int(np.log2(shape[1] * shape[2])) - 8, np.int32)
                    )
                    if (number + stride + kernel[0]) % 2 or kernel == (3, 3):
                        name = f"extremes {kernel} {stride} {dtype} {zero_point} {even} {odd}"
                        runs = (*drawn_inputs(draw, layer)[:1], *extremes(layer.inputs))
                        yield Case(name, ("extremes",), layer, runs)


def _whole() -> Iterator[Case]:
    """Windows that have one place, inside of the image, as before a classifier."""
    kernels = ((7, 7), (1, 3), (4, 4), (5, 5), (3, 3), (2, 4), (9, 1), (25, 5))
    for channels in range(1, 25):
        draw = Draw(700 + channels, ("int8", "uint8")[channels // 2 % 2])
        kernel, dilation = kernels[channels % len(kernels)], (1 + channels % 3 // 2, 1 + channels % 5 // 4)
        size = tuple((kernel[i] - 1) * dilation[i] + 1 for i in (0, 1))
        if channels % 4 == 3:  # more of the image than the window meets
            size = (size[0] + 1, size[1] + 2)
        window = Window((size[0], size[1]), kernel, (3, 3), dilation=dilation)
        layer = depthwise(draw, window, channels, batch=draw.choose(1, 1, 2))
        yield case(f"whole {window} {channels}", draw, layer, "tails: channels", "windows")


def _many_channels() -> Iterator[Case]:
    """More channels than long vectors have lanes; multipliers for which an input channel is read by many lanes."""
    windows = (((3, 3), (1, 1)), ((3, 3), (2, 2)), ((2, 4), (1, 1)), ((3, 2), (4, 3)), ((1, 1), (2, 2)))
    sizes = ((130, 1), (65, 1), (47, 3), (2, 33), (1, 70), (3, 128), (1, 7))
    for number, ((kernel, stride), (channels, multiplier)) in enumerate(grid(windows, sizes)):
        draw = Draw(3100 + number, ("int8", "int8", "uint8")[number % 3])
        window = around(kernel, stride, (draw.integer(1, 4), draw.integer(1, 5)), draw)
        layer = depthwise(draw, window, channels, multiplier=multiplier)
        covers = ("tails: channels", "windows", "multipliers")
        yield case(f"many channels {window} {channels} x {multiplier}", draw, layer, *covers)
