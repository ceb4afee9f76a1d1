"""Cases of CONV_2D."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from stages.ir.graph import Conv2D, LayerView
from tests.conformance.case import Case, case
from tests.conformance.draw import Draw, as_converted, bounds, image, scaled_little, view, with_op
from tests.conformance.operators.products import Product, product_cases
from tests.conformance.operators.windows import Window, any_window, around, kinds

OPS = ("conv2d",)
TO_LAYOUT = {layout: ["OHWI".index(axis) for axis in layout] for layout in ("OHWI", "HWIO", "OIHW")}


def conv2d(
    draw: Draw,
    window: Window,
    depth: int,
    units: int,
    *,
    batch: int = 1,
    groups: int = 1,
    layouts: tuple[str, str] = ("NHWC", "NHWC"),
    kernel_layout: str = "OHWI",
    weight_type: tuple[str, int] | None = None,
    **fields: Any,
) -> LayerView:
    """A layer of `groups` groups of `units` channels each; weights, bias and scales are drawn."""
    dtype, weight_zero_point = weight_type or draw.weight_type()
    op = Conv2D(
        **window.fields(),
        **draw.clamped(),
        groups=groups,
        in_channels=groups * depth,
        out_channels=groups * units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
        kernel_layout=kernel_layout,  # type: ignore[arg-type]
    ).model_copy(update=fields)
    weights = draw.array((groups * units, *window.kernel, depth), dtype)
    constants = draw.channel_constants(groups * units, weights[0].size)
    constants["weights"] = np.ascontiguousarray(weights.transpose(TO_LAYOUT[kernel_layout]))
    x = image("x", (batch, *window.size, groups * depth), draw.dtype, layouts[0])
    y = image("y", (batch, *window.out, groups * units), draw.dtype, layouts[1])
    return view(op, [x], y, constants)


def drawn(draw: Draw) -> LayerView:
    """Anything."""
    return conv2d(
        draw,
        any_window(draw),
        draw.integer(1, 20),
        draw.choose(draw.integer(1, 20), 8, 16),
        batch=draw.choose(1, 1, 1, 2),
        groups=draw.choose(1, 1, 1, 1, 2, 3),
        layouts=draw.choose(("NHWC", "NHWC"), ("NHWC", "NHWC"), (draw.layout(), draw.layout())),
        kernel_layout=draw.choose("OHWI", "OHWI", "HWIO", "OIHW"),
        rounding=draw.choose("double", "double", "single"),
    )


def pointwise(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """A plain product of matrices."""
    return conv2d(draw, Window((1, pixels)), depth, units, **fields)


def _threes(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """A 3x3 window, for kernels that are for windows alone."""
    return conv2d(draw, around((3, 3), (1, 1), (2, max(pixels // 2, 1)), draw), depth, units, **fields)


def _shallow(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """Pixels of four or eight channels, for kernels that keep a block's constants in registers."""
    return pointwise(draw, pixels, 4 if depth % 8 else 8, units, **fields)


def _four_outputs(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """Shallow pixels with four outputs, for kernels whose registers have the outputs of several pixels."""
    return _shallow(draw, pixels, depth, 4, **fields)


def _square(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """As many inputs as outputs, for kernels whose results replace the input."""
    return pointwise(draw, pixels, units, units, **fields)


def _whole(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """A window that is the image, for kernels of a single pixel."""
    return conv2d(draw, Window((2, pixels), (2, pixels)), depth, units, **fields)


def _of_one_channel(draw: Draw, pixels: int, depth: int, units: int, *, size: int = 3, **fields: Any) -> LayerView:
    """Filters that read one channel, which kernels of depthwise layers take too."""
    return conv2d(draw, around((size, size), (1, 1), (2, max(pixels // 2, 1)), draw), min(depth, 1), units, **fields)


def _one_input(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """Pixels of one channel, for kernels with a table of results."""
    return pointwise(draw, pixels, min(depth, 1), units, **fields)


def _pairs(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    """Four groups that read two channels each, for kernels whose words have the inputs of two groups."""
    window = around((3, 3), (1, 1), (2, max(pixels // 2, 1)), draw)
    return conv2d(draw, window, min(depth, 2), max(units // 4, 1), groups=4, **fields)


PRODUCTS = (
    Product("pointwise", pointwise, pixels=35, depth=70, units=35),
    Product("3x3", _threes, pixels=4, depth=20, units=20, shifts=range(-30, 2, 3)),
    Product("shallow", _shallow, pixels=12, depth=8, units=32, shifts=range(-30, 2, 3)),
    Product("whole images", _whole, pixels=5, depth=20, units=20, shifts=range(-30, 2, 4)),
    Product("single columns", pointwise, pixels=5, depth=20, units=3, shifts=(-12, -2, 1), whole=3, tied=3),
)
FOUR_OUTPUTS = Product(
    "four outputs", _four_outputs, pixels=8, depth=8, units=1, shifts=range(-30, 2, 3), whole=4, tied=4
)
SQUARE = Product("as many outputs", _square, pixels=9, depth=1, units=35, shifts=range(-30, 2, 3))
NARROW = (
    Product("one input", _one_input, pixels=9, depth=1, units=20, shifts=range(-30, 2, 5), tied=48),
    Product("pairs", _pairs, pixels=9, depth=2, units=20, shifts=range(-30, 2, 5)),
)
PLAIN = tuple(kind.plain for kind in PRODUCTS)
# Sums and roundings are those of depthwise layers, whose bounds are searched there.
ONE_CHANNEL = tuple(
    Product(
        f"{size}x{size} of one channel",
        partial(_of_one_channel, size=size),
        pixels=9,
        depth=1,
        units=20,
        shifts=range(-30, 2, 5),
    )
    for size in (3, 5)
)


def mandatory() -> Iterator[Case]:
    for kind in (*PRODUCTS, FOUR_OUTPUTS, SQUARE, *ONE_CHANNEL, *NARROW):
        yield from product_cases(kind)
    for part in (_windows, _lanes, _layouts, _bands, _few_rows, _single_pixels, _long, _scales):
        yield from part()


def _windows() -> Iterator[Case]:
    """Every extent, stride and side that a window can leave the image on; dilated ones; batches."""
    for number, (kernel, stride) in enumerate(kinds(7)):
        draw = Draw(number, ("int8", "uint8")[number // 3 % 2] if number % 4 else "int8")
        out = (draw.integer(1, 12), draw.integer(1, 12))
        layer = conv2d(
            draw,
            around(kernel, stride, out, draw),
            draw.choose(1, 2, 3, 4, 5, 6, 7, 8, 12, 17),
            draw.choose(8, 16, 24, draw.integer(1, 20)),
            batch=draw.choose(1, 1, 1, 2),
        )
        yield case(f"window {kernel} {stride} {out}", draw, as_converted(layer) if number % 2 else layer, "windows")
    for number in range(48):
        draw = Draw(number, ("int8", "int8", "uint8")[number % 3])
        window = any_window(draw)
        layer = conv2d(draw, window, draw.choose(1, 3, 4, 8, 16), draw.choose(3, 8, 16, 17))
        yield case(f"any window {window}", draw, as_converted(layer) if number % 2 else layer, "windows")
    for number, (rows, columns) in enumerate(((3, 20), (20, 3), (9, 40), (40, 9), (1, 33), (19, 19))):
        for stride in (1, 2):
            draw = Draw(number)  # strips and tiles of all widths
            layer = conv2d(draw, around((3, 3), (stride, stride), (rows, columns), draw), draw.choose(3, 5, 16), 16)
            yield case(f"strips {rows} {columns} {stride}", draw, layer, "windows")
    yield from _signals()


def _signals() -> Iterator[Case]:
    """Windows of few bytes, of which many lie beside each other: every byte of a register is where one begins."""
    for number, (kernel, channels) in enumerate(
        (((1, 4), 1), ((1, 5), 1), ((1, 12), 1), ((2, 4), 1), ((3, 3), 1), ((1, 2), 3), ((1, 4), 2), ((1, 1), 7))
    ):
        for stride in (1, 2, 3):
            draw = Draw(number + 8 * stride, "int8")
            layer = conv2d(draw, around(kernel, (1, stride), (2, 19 + number), draw), channels, 8 - number % 2 * 3)
            yield case(f"signal {kernel} of {channels}, stride {stride}", draw, layer, "signals")


def _lanes() -> Iterator[Case]:
    """Pixels and groups of so many bytes that every second one begins in the middle of a register of eight.

    Windows leave the image by one pixel and by several, of which the first may end a word and may not.
    """
    windows = (
        Window((4, 5), (3, 3), padding=(1, 1, 1, 1)),
        Window((3, 7)),
        Window((5, 6), stride=(2, 2)),
        Window((3, 7), (2, 5), (1, 2), (1, 3, 0, 2)),
        Window((3, 6), (1, 2), (1, 1), (0, 2, 0, 2), (1, 2)),
        Window((6, 3), (2, 1), (1, 1), (1, 0, 1, 0), (2, 1)),
        Window((3, 2), (3, 7), (1, 1), (1, 3, 1, 3)),
    )
    shapes = (
        *((1, 12, 16), (1, 20, 8), (1, 4, 1), (1, 12, 3), (1, 20, 2), (1, 36, 5), (1, 12, 19)),
        *((3, 12, 4), (2, 20, 8), (1, 2, 3), (1, 6, 8)),
    )
    for number, (window, (groups, depth, units)) in enumerate(
        (window, shape) for window in windows for shape in shapes
    ):
        draw = Draw(number, ("int8", "int8", "uint8")[number // 2 % 3])
        layer = conv2d(draw, window, depth, units, batch=1 + number % 5 // 4, groups=groups)
        yield case(f"{window} of {groups} groups of {depth} and {units}", draw, layer, "lanes")


def _bands() -> Iterator[Case]:
    """Rows of planes (NHCW), as streamed layers have: rows that tiles of three and four pixels divide, and others."""
    for number, columns in enumerate((1, 2, 3, 4, 5, 7, 8, 9, 12, 13)):
        for read, written in (("NHWC", "NHCW"), ("NHCW", "NHWC"), ("NHCW", "NHCW")):
            for kernel in ((1, 1), (3, 2)) if read == "NHWC" else ((1, 1),):
                for rows in (1, 3):
                    draw = Draw(5000 + number + rows, ("int8", "int8", "uint8")[(number + rows) % 3])
                    window = around(kernel, (1, 1), (rows, columns), draw)
                    units = draw.choose(2, 7, 16)
                    batch = draw.choose(1, 1, 2)
                    layer = conv2d(draw, window, draw.integer(1, 9), units, batch=batch, layouts=(read, written))
                    yield case(f"band {read} {written} {window} {units} units", draw, layer, "layouts")


def _few_rows() -> Iterator[Case]:
    """Bands of streamed layers: some rows of many columns, padded at the sides or everywhere."""
    kernels = (((3, 3), 1), ((3, 3), 2), ((5, 5), 1), ((1, 3), 1), ((3, 7), 1))
    for number, ((kernel, stride), depth, rows) in enumerate(product(kernels, (3, 4, 8, 16), (1, 2, 4))):
        draw = Draw(5400 + number, "int8")
        columns = draw.choose(4, 6, 8, 12, 16, 18)
        left, right = draw.integer(0, kernel[1] // 2), draw.integer(0, kernel[1] // 2)
        above = number % 3 // 2 * (kernel[0] // 2)
        size = ((rows - 1) * stride + kernel[0] - 2 * above, (columns - 1) * stride + kernel[1] - left - right)
        if min(size) > 0:
            window = Window(size, kernel, (stride, stride), (above, left, above, right))
            yield case(f"few rows {window} of {depth}", draw, conv2d(draw, window, depth, 8), "windows")
    shapes = product((*kernels, ((7, 7), 1)), range(2, 10), (1, 2, 3))
    for number, ((kernel, stride), columns, rows) in enumerate(shapes):
        draw = Draw(5500 + number, "int8")
        size = ((rows - 1) * stride + kernel[0], (columns - 1) * stride + kernel[1])
        window = Window(size, kernel, (stride, stride), (0, 0, 0, 0))
        yield case(f"pixels as a tile {window}", draw, conv2d(draw, window, 3, 8), "windows")


def _layouts() -> Iterator[Case]:
    """Each order of bytes of tensors and weights, and groups."""
    orders = product(("NHWC", "NCHW"), ("NHWC", "NCHW"), TO_LAYOUT, ((1, 1), (3, 2)))
    for number, (read, written, kernel_layout, kernel) in enumerate(orders, 1):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        window = around(kernel, (1, 1), (3, 5), draw)
        layer = conv2d(draw, window, 8 + number % 5, 16, layouts=(read, written), kernel_layout=kernel_layout)
        yield case(f"layout {read} {written} {kernel_layout} {kernel}", draw, layer, "layouts")
    for groups in (2, 3, 8):  # of images in a model's own order, which has no name
        draw = Draw(groups)
        layer = conv2d(draw, around((3, 3), (1, 1), (4, 4), draw), 4, 4, groups=groups, layouts=("", ""))
        yield case(f"{groups} groups", draw, layer, "groups")
    # Groups that fill a register of channels alone, two or all together, or not at all, and all with odd channels;
    # of one pixel; planar
    grouped = (
        *((2, 8, 16, (1, 1)), (4, 16, 8, (3, 2)), (6, 4, 4, (3, 3)), (8, 2, 1, (1, 1)), (3, 5, 8, (1, 3))),
        *((5, 3, 7, (2, 2)), (4, 8, 24, (5, 1)), (4, 3, 2, (3, 2)), (2, 7, 1, (3, 2)), (7, 1, 2, (3, 3))),
        *((20, 1, 1, (3, 3)), (18, 1, 1, (5, 5))),
    )
    for number, (groups, depth, units, kernel) in enumerate(grouped):
        for size in ((1, 1), (5, 7)):
            draw = Draw(number, ("int8", "uint8")[number % 2])
            layouts = ("NHWC", "NCHW" if number % 3 == 2 else "NHWC")
            window = around(kernel, (1 + number % 2, 1), size, draw)
            layer = conv2d(draw, window, depth, units, batch=1 + number % 2, groups=groups, layouts=layouts)
            yield case(f"{groups} groups of {depth} and {units} {kernel} {size}", draw, layer, "groups")
    # Rows that are no windows, of both types: kernels copy some of them for their types alone
    for number, (groups, depth, units) in enumerate(((2, 8, 4), (3, 5, 7), (8, 2, 1), (6, 3, 16))):
        for dtype in ("int8", "uint8"):
            draw = Draw(number, dtype)
            layer = pointwise(draw, 3 + 4 * number, depth, units, batch=1 + number % 2, groups=groups)
            yield case(f"{groups} groups of {depth} and {units} {dtype}", draw, layer, "groups")


def _single_pixels() -> Iterator[Case]:
    """Groups of windows that have one place: the image, in rows and in planes, a part of it, or more than it.

    Runs of a window are of any number of bytes, and begin anywhere; so do the outputs of a group.
    """
    windows = (
        Window((4, 3), (4, 3)),
        Window((1, 9), (1, 9), (2, 2)),
        Window((6, 5), (3, 2), (9, 9)),
        Window((5, 5), (3, 2), (1, 3), (0, 0, 0, 0), (2, 3)),
        Window((2, 1), (4, 3), (4, 4), (1, 1, 1, 1)),
        Window((3, 4), (3, 3), (3, 3), (1, 1, 1, 1), (2, 2)),
    )
    shapes = ((1, 8, 16), (2, 16, 8), (3, 4, 4), (4, 2, 1), (2, 5, 13), (5, 3, 7), (2, 20, 11), (3, 24, 6), (2, 18, 4))
    pairs = [(window, shape) for window in windows for shape in shapes]
    for number, (window, (groups, depth, units)) in enumerate(pairs):
        draw = Draw(number, ("int8", "int8", "uint8")[number % 3])
        layouts = ("NCHW" if number % 4 == 1 and window.kernel == window.size else "NHWC", "NHWC")
        layer = conv2d(
            draw,
            window,
            depth,
            units,
            batch=1 + number % 5 // 4,
            groups=groups,
            layouts=layouts,
            kernel_layout=("OHWI", "HWIO", "OIHW")[number % 7 % 3],
            rounding="single" if number % 4 == 3 else "double",
        )
        yield case(f"single pixel of {window}, {groups} groups of {depth} and {units}", draw, layer, "single pixels")


def _long() -> Iterator[Case]:
    """So deep that scratch of a usual size does not hold two rows, and loops go round many times."""
    for number, (kernel, depth) in enumerate((((3, 3), 70), ((1, 1), 300), ((5, 5), 33), ((1, 7), 48))):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        layer = conv2d(draw, around(kernel, (1, 1), (3, 3), draw), depth, 16)
        yield case(f"deep {kernel} {depth}", draw, layer, "depth")


def _scales() -> Iterator[Case]:
    """Each number of pixels and of channels in a tile: both types, orders and roundings, usual and large scales."""
    few = (Window((4, 5), (3, 3)), 2)
    shapes = (*((Window((1, pixels)), 6, 6) for pixels in (5, 10, 5, 10)), *((*few, units) for units in (1, 2, 3)))
    kinds = product((("int8", 0), ("uint8", 0)), ("NHWC", "NCHW"), ("usual", "large", "once"), shapes)
    for number, (kind, written, scale, (window, depth, units)) in enumerate(kinds):
        draw, (low, high) = Draw(5800 + number, kind[0]), bounds(kind[0])
        fields = {"weight_type": kind, "rounding": "single" if scale == "once" else "double"}
        layer = as_converted(conv2d(draw, window, depth, units, layouts=("NHWC", written), **fields))
        layer = with_op(scaled_little(layer) if scale == "large" else layer, act_min=low, act_max=high - 9)
        yield case(f"scales {written} {window} of {units} {kind} {scale}", draw, layer, "layouts", "shifts")
