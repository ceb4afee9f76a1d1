"""Cases of functions, sums and quotients of 16-bit activations."""

from collections.abc import Iterator

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.functions16 import Leaky, Lines, PowerOfTwoSum
from stages.ir.operators.wide_div import WideDiv
from stages.ir.operators.wide_sqrt import WideSqrt
from tests.conformance.case import Case, case, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, view, whole_range, with_layouts

BITS = 16
OPS = ("lines", "leaky", "power_of_two_add", "power_of_two_sub", "wide_div", "wide_sqrt")
LOW, HIGH = bounds("int16")
EVERY = np.arange(LOW, HIGH + 1).astype(np.int16)
# Of dividends and divisors: one divisor for each, for a run of them, for neighbours that are apart.
DIVIDED = (((3, 7), (3, 7)), ((2, 3, 5), (1, 3, 1)), ((4,), (2, 4)), ((2, 4, 3, 5), (5,)), ((2, 4, 3, 5), (2, 1, 3, 1)))


def lines(draw: Draw, shape: tuple[int, ...]) -> LayerView:
    """Entries that rise and fall by as much as they can."""
    op = Lines(function=draw.choose("exp", "gelu", "log", "rsqrt"))
    table = {"table": draw.array((513,), "int16").astype(np.int32)}
    return view(op, [image("x", shape, "int16")], image("y", shape, "int16"), table)


def leaky(draw: Draw, shape: tuple[int, ...]) -> LayerView:
    (multiplier, shift), (slope, slope_shift) = draw.multiplier(-3, 2), draw.multiplier(-6, 2)
    op = Leaky(
        multiplier=multiplier,
        shift=shift,
        slope=slope,
        slope_shift=slope_shift,
        sign=draw.choose(1, -1),
        **whole_range("int16"),
    )
    return view(op, [image("x", shape, "int16")], image("y", shape, "int16"))


def root(draw: Draw, shape: tuple[int, ...]) -> LayerView:
    """Of the highest from 1 to what the clamp changes."""
    scale = float(np.float32(10 ** draw.rng.uniform(-8, 1)))
    highest = 10 ** draw.rng.uniform(0, 6)
    op = WideSqrt(
        input_scale=scale, output_scale=float(np.float32((HIGH * scale) ** 0.5 / highest)), **whole_range("int16")
    )
    return view(op, [image("x", shape, "int16")], image("y", shape, "int16"))


def total(draw: Draw, first: tuple[int, ...], second: tuple[int, ...]) -> LayerView:
    """One operand is not shifted."""
    shift = draw.choose(0, 1, 2, 5, 14, 31)
    op = PowerOfTwoSum(
        op=draw.choose("power_of_two_add", "power_of_two_sub"),
        shifts=draw.choose((0, shift), (shift, 0)),
        output_zero_point=0,
        act_min=draw.choose(LOW, LOW, 0),
        act_max=draw.choose(HIGH, HIGH, 20000),
    )
    inputs = [image(name, shape, "int16") for name, shape in (("a", first), ("b", second))]
    return view(op, inputs, image("y", np.broadcast_shapes(first, second), "int16"))


def quotients(draw: Draw, first: tuple[int, ...], second: tuple[int, ...], shift: int | None = None) -> LayerView:
    """Images are in either layout."""
    multiplier, found = draw.multiplier(-31, 22)
    op = WideDiv(
        output_multiplier=multiplier,
        output_shift=found if shift is None else shift,
        output_zero_point=0,
        act_min=draw.choose(LOW, LOW, 0),
        act_max=draw.choose(HIGH, HIGH, 20000),
    )
    inputs = [image(name, shape, "int16") for name, shape in (("a", first), ("b", second))]
    layer = view(op, inputs, image("y", np.broadcast_shapes(first, second), "int16"))
    images = [tensor.name for tensor in (*layer.inputs, layer.outputs[0]) if len(tensor.shape) == 4]
    return with_layouts(layer, **dict.fromkeys(images, draw.layout()))


def drawn(draw: Draw) -> LayerView:
    shape = draw.shape()
    if draw.integer(0, 3) == 0:
        return quotients(draw, shape, tuple(1 if draw.integer(0, 3) == 0 else size for size in shape))
    return draw.choose(lines, leaky, root)(draw, shape) if draw.integer(0, 2) else total(draw, shape, shape)


def mandatory() -> Iterator[Case]:
    """Every value through some tables and slopes; every extreme of sums, of shapes that broadcast as well.

    Quotients of numbers of all sizes, of every dividend and by every divisor.
    """
    for number in range(6):
        for maker in (lines, leaky, root):
            draw = Draw(number)
            layer = maker(draw, (1, EVERY.size))
            inputs = ((EVERY.reshape(1, -1),),) if number % 3 == 0 else drawn_inputs(draw, maker(Draw(number), (2, 5)))
            layer = layer if number % 3 == 0 else maker(Draw(number), (2, 5))
            yield Case(f"{layer.op.op} {number}", ("extremes",), layer, inputs)
    for number in range(24):
        draw = Draw(number)
        shapes = (((3, 7), (3, 7)), ((2, 3, 5), (1, 3, 1)), ((4,), (4,)))[number % 3]
        layer = total(draw, *shapes)
        yield case(f"{layer.op.op} {number}", draw, layer, "extremes", "shifts")
    for number in range(20):
        draw = Draw(number)
        layer = quotients(draw, *DIVIDED[number % len(DIVIDED)])
        some = (draw.array(x.shape, "int16") >> draw.rng.integers(0, 16, x.shape) for x in layer.inputs)
        smaller = tuple(array.astype(np.int16) for array in some)
        yield Case(f"wide_div {number}", ("extremes", "shifts"), layer, (smaller, *drawn_inputs(draw, layer)))
    for number, shift in enumerate((-9, 6, 16)):
        layer = quotients(Draw(number), EVERY.shape, EVERY.shape, shift)
        yield Case(f"wide_div by all {number}", ("extremes",), layer, ((EVERY, np.roll(EVERY, 12345 + number)),))
