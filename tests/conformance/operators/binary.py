"""Cases of MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, DIV and pairs whose halves go to even, with broadcasting."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from stages.ir.graph import LayerOp, LayerView
from stages.ir.operators.arithmetic import Div, Extremum, SquaredDifference
from stages.ir.operators.half_even import HalfEven
from stages.quantize.patterns.arithmetic import division_tables
from tests.conformance.case import Case, cases
from tests.conformance.draw import Draw, bounds, image, middle, scaled, view, with_layouts, with_op
from tests.conformance.operators.add import every_pair

OPS = ("div", "even_add", "even_mul", "even_sub", "maximum", "minimum", "squared_difference")
Constants = Mapping[str, np.ndarray]


def _maximum(draw: Draw) -> tuple[LayerOp, Constants]:
    return Extremum(op="maximum"), {}


def _minimum(draw: Draw) -> tuple[LayerOp, Constants]:
    return Extremum(op="minimum"), {}


def _squared_difference(draw: Draw) -> tuple[LayerOp, Constants]:
    first, second, output = draw.multiplier(-3, -1), draw.multiplier(-3, -1), draw.multiplier(-24, -15)
    op = SquaredDifference(
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        left_shift=7,
        **scaled(first, second, output),
    )
    return op, {}


def _div(draw: Draw) -> tuple[LayerOp, Constants]:
    output = draw.multiplier(-10, 12)
    op = Div(
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        output_multiplier=output[0],
        output_shift=output[1],
    )
    return op, division_tables()


def _even(draw: Draw) -> tuple[LayerOp, Constants]:
    name = draw.choose("even_add", "even_sub", "even_mul")
    times = draw.choose((1, 1), (3, 1)) if name == "even_mul" else draw.choose((1, 1), (3, 2), (8, 1), (1, 1 << 20))
    op = HalfEven(
        op=name,
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        times=times,
        shift=draw.choose(1, 2, 3, 8, 20),
        parity=draw.integer(0, 1),
    )
    return op, {}


MAKERS: tuple[Callable[[Draw], tuple[LayerOp, Constants]], ...] = (_div, _even, _maximum, _minimum, _squared_difference)


def drawn(draw: Draw) -> LayerView:
    """Inputs that broadcast; images change their layout now and then."""
    shapes = draw.pair(draw.shape())
    op, constants = MAKERS[draw.seed % len(MAKERS)](draw)
    out = tuple(int(size) for size in np.broadcast_shapes(*shapes))
    layout = draw.layout() if len(shapes[1]) == 4 else ""
    inputs = [image(f"x{number}", shape, draw.dtype, layout) for number, shape in enumerate(shapes)]
    layer = view(op, inputs, image("y", out, draw.dtype, layout), constants)
    if len(out) == 4 and all(x.shape == out for x in layer.inputs):
        layer = with_layouts(layer, **{tensor.name: draw.layout() for tensor in (*layer.inputs, layer.outputs[0])})
    return layer


def mandatory() -> Iterator[Case]:
    types = ("int8",) * len(MAKERS) + ("uint8",) * len(MAKERS)
    yield from cases(20 * len(MAKERS), drawn, "shapes", "extremes", types=types)
    yield from _every_pair()


def _every_pair() -> Iterator[Case]:
    """All pairs of values, with zero points in the middle and at both ends; quotients shifted by all amounts."""
    for number in range(6 * len(MAKERS)):
        dtype, make = ("int8", "uint8")[number % 2], MAKERS[number // 6]
        if make is _even and number % 6 > 2:
            continue
        op, constants = make(Draw(number, dtype))
        low, high = bounds(dtype)
        ends = (middle(dtype), low, high)
        tensors = [image(name, (1 << 16,), dtype) for name in ("x0", "x1", "y")]
        layer = view(op, tensors[:2], tensors[2], constants)
        if not isinstance(op, Extremum):
            shifts = (-9, 0, 5, 9, 14, 22) if isinstance(op, Div) else (-24, -22, -20, -18, -16, 0)
            points = {"zero_points": (ends[number % 3], ends[(number + 1) % 3]), "output_zero_point": middle(dtype)}
            multiplier = (1 << 30, 3 << 29, 1518500250)[number % 3]
            layer = with_op(layer, **points, act_min=low, act_max=high)
            if not isinstance(op, HalfEven):
                layer = with_op(layer, output_multiplier=multiplier, output_shift=shifts[number % 6])
        yield Case(f"{op.op} of all pairs {number}", ("all pairs", "zero points"), layer, (every_pair(dtype),))
