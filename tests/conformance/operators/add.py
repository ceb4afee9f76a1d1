"""Cases of ADD and SUB, on all pairs of 8-bit values."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from stages.ir.graph import Add, LayerView
from tests.conformance.broadcasts import pairs
from tests.conformance.case import Case, Inputs, case
from tests.conformance.draw import Draw, bounds, image, middle, scaled, view, whole_range, with_layouts, with_op

OPS = ("add", "sub")
HALF = (1 << 30, 0)  # the multiplier and shift of the input that has the larger scale
# Multipliers and shifts of the inputs and the output such that some pair of values has another sum, and another
# difference, where the halves of that step's rounding go any other way.
TIED = {
    "first input": (
        ((1073742848, -1), (1073741824, 0), (1610612736, -17)),
        ((1879048195, -1), (1073741824, 0), (1342177280, -17)),
        ((1073745920, -3), (1073741824, 0), (1073741824, -17)),
        ((1610611712, -3), (1744829440, -3), (1073741824, -20)),
        ((1879048195, -1), (1073741827, -2), (1342177280, -17)),
        ((1342183424, -3), (1073747968, -3), (1073741824, -17)),
        ((1610610688, -2), (1073741824, 0), (1073741824, -17)),
        ((1744830467, -1), (1073741824, 0), (1073741824, -19)),
    ),
    "second input": (
        ((1073741824, 0), (1073744896, -2), (1073741824, -17)),
        ((1073741824, 0), (1610613760, -1), (1073741824, -17)),
        ((1073741824, 0), (1610612739, -1), (1879048192, -20)),
        ((1073741824, 0), (1073743872, -1), (1073741824, -18)),
        ((1476396032, -3), (1610613760, -3), (1073741824, -17)),
        ((1879049216, -2), (1610613760, -2), (1610612736, -18)),
        ((1610612739, -1), (1610612739, -1), (1879048192, -20)),
        ((2013267968, -3), (1610614784, -1), (1073741824, -19)),
    ),
    "output": (
        ((1073741824, 0), (1879050240, -1), (1073741824, -17)),
        ((1073741824, 0), (1610614784, -1), (1342177280, -20)),
        ((1073741824, 0), (1476398080, -3), (1073741824, -18)),
        ((1073744896, -2), (1073741824, 0), (1073741824, -18)),
        ((1073744896, -2), (1476398080, -3), (1073741824, -18)),
        ((1073743872, -1), (1073741824, 0), (1342177280, -20)),
    ),
}


def add(draw: Draw, shapes: list[tuple[int, ...]], layouts: tuple[str, str, str] = ("", "", ""), **fields: Any) -> Any:
    """Shapes of both inputs, which may broadcast; scales as LiteRT prepares them."""
    second = draw.multiplier(-9, -1)
    scales = [HALF, second] if draw.integer(0, 1) or fields.get("op") == "sub" else [second, HALF]
    output = draw.multiplier(-21, -18)
    op = Add(
        op=draw.choose("add", "sub"),
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        left_shift=20,
        **scaled(*scales, output),
    ).model_copy(update=fields)
    tensors = [
        image(name, shape, draw.dtype, layout)
        for name, shape, layout in zip(("x0", "x1"), shapes, layouts, strict=False)
    ]
    out = tuple(int(n) for n in np.broadcast_shapes(*shapes))
    return view(op, tensors, image("y", out, draw.dtype, layouts[2]))


def drawn(draw: Draw) -> LayerView:
    """Inputs that broadcast, scales of any kind."""
    full = draw.shape()
    shapes = draw.pair(full, 2, 3) if draw.integer(0, 1) else [full, full]
    scaling = scaled(draw.multiplier(-4, 0), draw.multiplier(-4, 0), draw.multiplier(-21, -18))
    fields = scaling if draw.integer(0, 1) else {}
    layer = add(draw, shapes, rounding=draw.choose("double", "double", "single"), **fields)
    if {len(shape) for shape in shapes} == {4}:
        layouts = draw.choose(("NHWC",) * 3, ("NCHW",) * 3, tuple(draw.layout() for _ in range(3)))
        layer = with_layouts(layer, **dict(zip(("x0", "x1", "y"), layouts, strict=True)))
    return layer  # type: ignore[no-any-return]


def mandatory() -> Iterator[Case]:
    for part in (_ties, _tails, _scales, _zero_points):
        yield from part()


def every_pair(dtype: str) -> Inputs:
    """All pairs of two 8-bit values."""
    low, high = bounds(dtype)
    first, second = np.meshgrid(np.arange(low, high + 1), np.arange(low, high + 1), indexing="ij")
    return first.reshape(-1).astype(dtype), second.reshape(-1).astype(dtype)


def _ties() -> Iterator[Case]:
    for number, (rounding, op, step) in enumerate(product(("double", "single"), ("add", "sub"), TIED)):
        for place, scales in enumerate(TIED[step]):
            dtype = ("int8", "uint8")[(number + place) % 2]
            fields = {"zero_points": (middle(dtype),) * 2, **whole_range(dtype), "rounding": rounding, "op": op}
            layer = add(Draw(0, dtype), [(1 << 16,)] * 2, **scaled(*scales), **fields)
            yield Case(f"{op} tie {place} at the {step}", (f"ties: {rounding}, {step}",), layer, (every_pair(dtype),))


def _tails() -> Iterator[Case]:
    """Each number of elements up to two vectors and one more, in one axis or in rows; broadcast inputs; layouts."""
    for count in range(1, 67):
        draw = Draw(count, ("int8", "uint8")[count // 2 % 2])
        shape = (count,) if count % 3 else (2, count)
        layer = add(draw, [shape, shape], op=("add", "sub")[count % 2])
        yield case(f"{layer.op.op} {shape}", draw, layer, "tails: elements")
    wide = [
        ((3, 5, 24), (24,)),
        ((2, 3, 16), (2, 3, 1)),
        ((1, 1, 8), (4, 6, 8)),
        ((2, 3, 4), (3, 4)),
        ((1, 5, 1, 16), (2, 1, 3, 16)),
        ((7, 20), (1,)),
        ((4, 1), (1, 33)),
        ((1,), (5,)),
    ]
    for number, shapes in enumerate(wide):
        for dtype in ("int8", "uint8"):
            draw = Draw(number, dtype)
            layer = add(draw, list(shapes), rounding=("double", "single")[number % 2])
            yield case(f"broadcast {shapes} {dtype}", draw, layer, "broadcast")
    for number, both in enumerate(pairs()):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        layer = add(draw, list(both), op=("add", "sub")[number // 2 % 2])
        yield case(f"{layer.op.op} {both}", draw, layer, "broadcast")
    for number, layouts in enumerate((("NHWC",) * 3, ("NCHW",) * 3, ("", "NHWC", "NHWC"), ("NHWC", "NCHW", "NHWC"))):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        layer = add(draw, [(2, 3, 4, 5)] * 2, layouts)  # type: ignore[arg-type]
        yield case(f"layouts {layouts}", draw, layer, "layouts")


def _scales() -> Iterator[Case]:
    """Shifts at both ends of what comes from files, on all pairs; both inputs with the larger scale."""
    settings = [
        (HALF, HALF, (1 << 30, -18)),
        (HALF, ((1 << 31) - 1, -1), ((1 << 31) - 1, -17)),
        (HALF, (1 << 30, -9), (1 << 30, -20)),
        (((1 << 31) - 1, -3), HALF, (1518500250, -18)),
        (((1 << 31) - 1, 0), (1 << 30, -2), (1 << 30, -20)),
        ((1 << 30, -3), ((1 << 31) - 1, -3), ((1 << 31) - 1, -21)),
        (HALF, (1800000001, -30), (1 << 30, -31)),
    ]
    for number, (first, second, output) in enumerate(settings):
        for op in ("add", "sub"):
            dtype = ("uint8", "int8")[(number + (op == "sub")) % 2]
            fields = {"op": op, "rounding": "double", **scaled(first, second, output)}
            layer = add(Draw(number, dtype), [(1 << 16,)] * 2, **fields)
            yield Case(f"{op} scales {number}", ("shifts",), layer, (every_pair(dtype),))


def _zero_points() -> Iterator[Case]:
    for dtype in ("int8", "uint8"):
        low, high = bounds(dtype)
        for number, zero_points in enumerate(((low, high), (high, low), (low, low), (high, high))):
            for op in ("add", "sub"):
                draw = Draw(number, dtype)
                floor, ceiling = ((low, high), (low, high), (low, low + 40), (high - 40, high))[number]
                second = draw.multiplier(-3, -1)
                scales = {"multipliers": (HALF[0], second[0]), "shifts": (HALF[1], second[1])}
                fields = {"op": op, "zero_points": zero_points, "act_min": floor, "act_max": ceiling}
                layer = add(draw, [(40,)] * 2, **fields, **scales)
                layer = with_op(layer, output_zero_point=(low, high, middle(dtype), low)[number])
                yield case(f"{op} zero points {zero_points} {dtype}", draw, layer, "zero points", "extremes")
