"""Cases of RESIZE_BILINEAR, with halves away from zero or to the even number."""

from collections.abc import Iterator

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.interpolation import EvenResize, ResizeBilinear
from stages.quantize.resize import bilinear
from tests.conformance.case import Case, case, cases
from tests.conformance.draw import Draw, image, view

OPS = ("even_resize_bilinear", "resize_bilinear")


def resize(draw: Draw, size: tuple[int, int], out: tuple[int, int], mode: int, channels: int = 0) -> LayerView:
    """mode: 0 plain, 1 align_corners, 2 half_pixel_centers. Images of so many `channels` are NHWC, of 0 any."""
    integer, constants = draw.dtype == "int8", {}
    for axis, name in ((0, "row"), (1, "column")):
        positions, shares = bilinear(size[axis], out[axis], mode == 1, mode == 2, integer=integer)
        constants[f"{name}s"] = np.array(positions, np.int32)
        constants[f"{name}_shares"] = np.array(shares, np.int32 if integer else np.float32)
    layouts = ("NHWC", "NHWC") if channels else (draw.layout(), draw.layout())
    batch, channels = draw.integer(1, 2), channels or draw.choose(1, 2, 3, 8, 17)
    x = image("x", (batch, *size, channels), draw.dtype, layouts[0])
    even = integer and draw.integer(0, 1)
    op = EvenResize(zero_point=draw.zero_point()) if even else ResizeBilinear()
    return view(op, [x], image("y", (batch, *out, channels), draw.dtype, layouts[1]), constants)


def drawn(draw: Draw) -> LayerView:
    """Larger and smaller, in every mode."""
    size, out = ((draw.integer(1, 9), draw.integer(1, 9)) for _ in range(2))
    return resize(draw, size, out, draw.integer(0, 2))


def mandatory() -> Iterator[Case]:
    yield from cases(40, drawn, "shapes", "extremes", name="resize", types=("int8", "uint8"))
    for number, (size, out) in enumerate((((4, 4), (8, 8)), ((3, 3), (6, 6)), ((5, 7), (15, 14)), ((8, 8), (4, 4)))):
        for mode in range(3):
            for dtype in ("int8", "uint8"):
                draw = Draw(number, dtype)
                yield case(f"resize {size} to {out} {mode}", draw, resize(draw, size, out, mode), "ties", "extremes")
    for channels in (4, 8, 12, 20):  # whole units of four bytes, and of registers
        for times in (2, 4):
            draw = Draw(channels, "int8")
            layer = resize(draw, (3, 4), (3 * times, 4 * times), 2, channels)
            yield case(f"resize {channels} channels {times}", draw, layer, "shapes", "ties", "extremes")
