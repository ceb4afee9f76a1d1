"""Cases of AVERAGE_POOL_2D and MAX_POOL_2D."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from stages.ir.graph import LayerView, Pool2D
from tests.conformance.case import Case, case, drawn_inputs, extremes
from tests.conformance.draw import Draw, bounds, image, middle, view
from tests.conformance.operators.windows import Window, any_window, around, kinds

OPS = ("avg_pool2d", "max_pool2d")


def pool2d(
    draw: Draw,
    window: Window,
    channels: int,
    *,
    batch: int = 1,
    layouts: tuple[str, str] = ("NHWC", "NHWC"),
    **fields: Any,
) -> LayerView:
    op = Pool2D(op=draw.choose(*OPS), **window.fields(dilated=False), **draw.clamped()).model_copy(update=fields)
    x = image("x", (batch, *window.size, channels), draw.dtype, layouts[0])
    return view(op, [x], image("y", (batch, *window.out, channels), draw.dtype, layouts[1]))


def drawn(draw: Draw) -> LayerView:
    """Anything."""
    layouts = draw.choose(("NHWC", "NHWC"), (draw.layout(), draw.layout()))
    channels = draw.choose(draw.integer(1, 40), 8, 16, 4)
    return pool2d(draw, any_window(draw, dilated=False), channels, batch=draw.integer(1, 2), layouts=layouts)


def mandatory() -> Iterator[Case]:
    for part in (_channels, _windows, _whole_images, _counts, _layouts, _bounds, _units):
        yield from part()


def _channels() -> Iterator[Case]:
    for channels in range(1, 50):
        for op in OPS:
            draw = Draw(channels, ("int8", "uint8")[channels // 2 % 2])
            layer = pool2d(draw, any_window(draw, dilated=False), channels, batch=draw.integer(1, 2), op=op)
            yield case(f"{op} {channels} channels", draw, layer, "tails: channels")


def _windows() -> Iterator[Case]:
    for number, (kernel, stride) in enumerate(kinds(4)):
        draw = Draw(number, ("int8", "uint8")[number // 3 % 2])
        window = around(kernel, stride, (draw.integer(1, 6), draw.integer(1, 6)), draw)
        layer = pool2d(draw, window, draw.choose(8, 16, 24), op=OPS[number % 2])
        yield case(f"{layer.op.op} {window}", draw, layer, "windows")


def _whole_images() -> Iterator[Case]:
    """Averages over all of an image, as networks end with; more pixels than 16-bit sums hold, and just as many."""
    sizes = [(1, 1), (3, 15), (15, 17), (16, 16), (2, 128), (7, 7), (2, 300), (32, 33), (5, 1), (1, 9), (130, 127)]
    for number, size in enumerate(sizes):
        for channels, layouts in ((16, ("NHWC", "NHWC")), (4, ("NHWC", "NHWC")), (3, ("NCHW", "NHWC"))):
            dtype = ("int8", "uint8")[(number + channels) % 2]
            draw = Draw(number, dtype)
            window = Window(size, size, draw.choose((1, 1), size))
            layer = pool2d(
                draw, window, channels, layouts=layouts, op="avg_pool2d" if number % 4 else OPS[channels % 2]
            )
            yield case(f"whole image {size} {channels} {layouts} {dtype}", draw, layer, "windows", "wide sums")


def _counts() -> Iterator[Case]:
    """32 rows of averages of 1, 2, ... elements: the first columns of a window lie left of the image.

    Rows of k and k + 1 in turn have halves of both signs where the count is even; others are at the ends of the type.
    """
    for columns in (131, 255, 260):
        for dtype in ("int8", "uint8"):
            (low, high), draw = bounds(dtype), Draw(columns, dtype)
            window = Window((32, columns), (1, columns), (1, 1), (0, columns - 1, 0, 0))
            layer = pool2d(
                draw, window, 16, op="avg_pool2d", act_min=low, act_max=high, output_zero_point=middle(dtype)
            )
            data = draw.array(layer.inputs[0].shape)
            for row in range(16):
                data[0, row] = middle(dtype) + row - 8 + np.arange(columns)[:, None] % 2
            data[0, 16], data[0, 17] = low, high
            data[0, 18:24] = high - data[0, 18:24] % 3
            data[0, 24:28] = low + data[0, 24:28] % 3
            yield Case(f"averages of 1 to {columns} {dtype}", ("ties: average", "wide sums"), layer, ((data,),))


def _layouts() -> Iterator[Case]:
    orders = product(("NHWC", "NCHW"), ("NHWC", "NCHW"), (True, False), OPS)
    for number, (read, written, whole, op) in enumerate(orders, 1):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        size = (draw.integer(2, 6), draw.integer(2, 6))
        window = Window(size, size) if whole else any_window(draw, dilated=False)
        layer = pool2d(draw, window, draw.choose(3, 4, 8), batch=2, layouts=(read, written), op=op)
        yield case(f"{op} layout {read} {written} {window}", draw, layer, "layouts")


def _bounds() -> Iterator[Case]:
    """The fused activation's bounds anywhere, also equal."""
    for number, op in enumerate(OPS * 6):
        dtype = ("int8", "uint8")[number // 2 % 2]
        low, high = bounds(dtype)
        floor, ceiling = ((low, low), (high, high), (low + 3, high - 3), (low, low + 60), (high - 60, high), (0, 6))[
            number // 2
        ]
        draw = Draw(number, dtype)
        window = Window((4, 4), (4, 4)) if number % 3 == 0 else any_window(draw, dilated=False)
        layer = pool2d(draw, window, 16, op=op, act_min=floor, act_max=ceiling)
        yield case(f"{op} bounds {floor} {ceiling}", draw, layer, "extremes", "zero points")
    for dtype in ("int8", "uint8"):
        draw, (low, high) = Draw(5, dtype), bounds(dtype)
        fields = {"op": "avg_pool2d", "act_min": low + 3, "act_max": high - 3}
        layer = pool2d(draw, Window((4, 4), (4, 4)), 16, layouts=("NCHW", "NHWC"), **fields)
        given = (*drawn_inputs(draw, layer), *extremes(layer.inputs))
        yield Case(f"bounds of planes {dtype}", ("extremes", "zero points"), layer, given)
    for op in OPS:
        for dtype in ("int8", "uint8"):
            draw = Draw(3, dtype)
            layer = pool2d(
                draw, Window((15, 17), (15, 17)), 16, op=op, act_min=bounds(dtype)[0], act_max=bounds(dtype)[1]
            )
            yield Case(f"{op} extremes {dtype}", ("extremes",), layer, tuple(extremes(layer.inputs)))


def _units() -> Iterator[Case]:
    """Strides over pixels of each unit that divides them, of all types and operators."""
    for number, (channels, dtype, op) in enumerate(product((3, 4, 6, 12), ("int8", "uint8"), OPS)):
        draw = Draw(800 + number, dtype)
        window = around((2, 2), (2, 2), (2, 9), draw)
        yield case(f"{op} {channels} {window} {dtype}", draw, pool2d(draw, window, channels, op=op), "tails: channels")
