"""Cases of functions and sums of 16-bit activations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stages.graph import LayerView
from stages.operators.functions16 import Leaky, Lines, PowerOfTwoSum
from tests.conformance.case import Case, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, view

BITS = 16
OPS = ("lines", "leaky", "power_of_two_add", "power_of_two_sub")
LOW, HIGH = bounds("int16")
EVERY = np.arange(LOW, HIGH + 1).astype(np.int16)


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
        output_zero_point=0,
        act_min=LOW,
        act_max=HIGH,
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


def drawn(draw: Draw) -> LayerView:
    shape = draw.shape()
    return draw.choose(lines, leaky)(draw, shape) if draw.integer(0, 2) else total(draw, shape, shape)


def mandatory() -> Iterator[Case]:
    """Every value through some tables and slopes; every extreme of sums, of shapes that broadcast as well."""
    for number in range(6):
        for maker in (lines, leaky):
            draw = Draw(number)
            layer = maker(draw, (1, EVERY.size))
            inputs = ((EVERY.reshape(1, -1),),) if number % 3 == 0 else drawn_inputs(draw, maker(Draw(number), (2, 5)))
            layer = layer if number % 3 == 0 else maker(Draw(number), (2, 5))
            yield Case(f"{layer.op.op} {number}", ("extremes",), layer, inputs)
    for number in range(24):
        draw = Draw(number)
        shapes = (((3, 7), (3, 7)), ((2, 3, 5), (1, 3, 1)), ((4,), (4,)))[number % 3]
        layer = total(draw, *shapes)
        yield Case(f"{layer.op.op} {number}", ("extremes", "shifts"), layer, drawn_inputs(draw, layer))
