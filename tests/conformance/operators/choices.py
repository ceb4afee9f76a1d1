"""Cases of comparisons, logic, SELECT, CAST, ARG_MAX, ARG_MIN and CUMSUM."""

from collections.abc import Iterator
from functools import partial
from typing import get_args

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.along_axis import ArgExtreme, Cumsum
from stages.ir.operators.casting import Cast
from stages.ir.operators.choices import Comparison, Logic, Select, is_scaled
from stages.ir.operators.int32 import IntegerSteps, WideInteger
from stages.ir.operators.raw_integers import RawInteger
from tests.conformance.case import Case, Inputs, case, cases, drawn_inputs
from tests.conformance.draw import Draw, image, view

COMPARED = get_args(Comparison.model_fields["op"].annotation)
LOGIC = get_args(Logic.model_fields["op"].annotation)
EXTREMES = get_args(ArgExtreme.model_fields["op"].annotation)
WHOLE = get_args(RawInteger.model_fields["op"].annotation)
INT32 = get_args(WideInteger.model_fields["op"].annotation)
OPS = (*COMPARED, *LOGIC, *EXTREMES, *WHOLE, *INT32, "int32_steps", "select", "cast", "cumsum")
TYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "bool")
NUMBERS = ("int8", "uint8", "int16", "int32", "int64", "float32")


def comparison(draw: Draw, kind: str = "") -> LayerView:
    kind = kind or draw.choose(*COMPARED)
    op = Comparison(op=kind)  # type: ignore[arg-type]
    if is_scaled(kind, draw.dtype):
        (a, first), (b, second) = (draw.multiplier(-8, 0) for _ in range(2))
        if draw.integer(0, 1):
            a, first = b, second  # equal ones meet then
        zeros = (draw.zero_point(), draw.zero_point())
        op = op.model_copy(update={"zero_points": zeros, "multipliers": (a, b), "shifts": (first, second)})
    return _broadcast(draw, op, [draw.dtype] * 2, "bool")


def logic(draw: Draw, kind: str = "") -> LayerView:
    kind = kind or draw.choose(*LOGIC)
    return _broadcast(draw, Logic(op=kind), ["bool"] * (1 if kind == "logical_not" else 2), "bool")  # type: ignore[arg-type]


def whole(draw: Draw, kind: str = "") -> LayerView:
    kind = kind or draw.choose(*WHOLE)
    dtype = draw.choose("int16") if kind == "negative" else draw.choose("int8", "int16")
    return _broadcast(draw, RawInteger(op=kind), [dtype] * (1 if kind == "negative" else 2), dtype)  # type: ignore[arg-type]


def int32(draw: Draw, kind: str = "") -> LayerView:
    value = draw.choose(None, 0, -1, 7, -(1 << 31), draw.integer(-1000, 1000))
    op = WideInteger(op=kind or draw.choose(*INT32), value=value)  # type: ignore[arg-type]
    return _broadcast(draw, op, ["int32"] * (2 if value is None else 1), "int32")


def steps(draw: Draw) -> LayerView:
    names = [kind.removeprefix("int32_") for kind in INT32]
    constants = [draw.choose(0, -1, 7, 666, -(1 << 31), draw.integer(-1000, 1000)) for _ in range(draw.integer(1, 6))]
    op = IntegerSteps(steps=tuple((draw.choose(*names), constant) for constant in constants))
    types = ("int8", "uint8", "int16", "int32")
    return _broadcast(draw, op, [draw.choose(*types)], draw.choose(*types))


def select(draw: Draw) -> LayerView:
    return _broadcast(draw, Select(), ["bool", draw.dtype, draw.dtype], draw.dtype)


def cast(draw: Draw, dtype: str = "") -> LayerView:
    return _broadcast(draw, Cast(), [draw.dtype], dtype or draw.choose(*TYPES))


def arg_extreme(draw: Draw, kind: str = "") -> LayerView:
    size, dtype = draw.shape(), draw.choose("int32", "int64")
    axis = draw.integer(0, len(size) - 1)
    op = ArgExtreme(op=kind or draw.choose(*EXTREMES), axis=axis)  # type: ignore[arg-type]
    layout = draw.layout() if len(size) == 4 else ""
    out = tuple(n for at, n in enumerate(size) if at != axis)
    return view(op, [image("x", size, draw.dtype, layout)], image("y", out, dtype))


def cumsum(draw: Draw) -> LayerView:
    size = draw.shape()
    op = Cumsum(
        axis=draw.integer(0, len(size) - 1), exclusive=draw.choose(False, True), reverse=draw.choose(False, True)
    )
    layouts = [draw.layout() if len(size) == 4 else "" for _ in range(2)]
    return view(op, [image("x", size, draw.dtype, layouts[0])], image("y", size, draw.dtype, layouts[1]))


def _broadcast(draw: Draw, op: object, types: list[str], result: str) -> LayerView:
    """One tensor of each type; where they are several, some axes of each are of one element, or are missing."""
    full = draw.shape()
    shapes = [list(full) for _ in types]
    for shape in shapes[1:]:
        for axis in range(len(full)):
            shape[axis] = 1 if draw.integer(0, 3) == 0 else shape[axis]
        del shape[: draw.choose(0, 0, 0, 1)]
    draw.rng.shuffle(shapes)
    layouts = [draw.layout() if len(shape) == 4 else "" for shape in shapes]
    inputs = [
        image(f"x{n}", tuple(shape), dtype, layout)
        for n, (shape, dtype, layout) in enumerate(zip(shapes, types, layouts, strict=True))
    ]
    layout = draw.layout() if len(full) == 4 else ""
    out = np.broadcast_shapes(*shapes)
    return view(op, inputs, image("y", tuple(out), result, layout if len(out) == 4 else ""))  # type: ignore[arg-type]


def drawn(draw: Draw) -> LayerView:
    """Any of them."""
    kind = draw.choose(comparison, logic, whole, int32, steps, select, cast, arg_extreme, cumsum)
    if kind is cumsum:
        draw.dtype = draw.choose("int32", "int64", "float32")
    return kind(draw)


def _near(draw: Draw, layer: LayerView) -> tuple[Inputs, ...]:
    """Any values and extremes; then few different ones, so that many are equal."""
    few = tuple((x % 3).astype(x.dtype) if x.dtype != bool else x for x in drawn_inputs(draw, layer)[0])
    return (*drawn_inputs(draw, layer), few)


def mandatory() -> Iterator[Case]:
    for kind in COMPARED:
        make = partial(comparison, kind=kind)
        yield from cases(10, make, "extremes", "comparison", types=NUMBERS, inputs=_near)
    for kind in ("equal", "not_equal"):
        layer = comparison(draw := Draw(99, "bool"), kind)
        yield case(f"{kind} of booleans", draw, layer, "extremes", "comparison")
    for kind in LOGIC:
        yield from cases(6, partial(logic, kind=kind), "extremes", "logic", types=("bool",))
    for kind in WHOLE:
        yield from cases(8, partial(whole, kind=kind), "extremes", "whole", inputs=_near)
    for kind in INT32:
        yield from cases(6, partial(int32, kind=kind), "extremes", "int32", inputs=_near)
    yield from cases(12, steps, "extremes", "int32", name="int32 steps", inputs=_near)
    yield from cases(28, select, "extremes", "select", types=TYPES)
    for source in (*TYPES, "uint32"):
        for dtype in (*TYPES, "uint32"):
            layer = cast(draw := Draw(len(source) + len(dtype), source), dtype)
            yield case(f"cast {source} to {dtype}", draw, layer, "extremes", "cast")
    for kind in EXTREMES:
        types = ("int8", "uint8", "float32", "int32", "bool")
        yield from cases(12, partial(arg_extreme, kind=kind), "extremes", "arg", types=types, inputs=_near)
    for number in range(18):
        layer = cumsum(draw := Draw(number, ("int32", "int64", "float32")[number % 3]))
        inputs = drawn_inputs(draw, layer)
        yield Case(f"cumsum {number}", ("extremes", "cumsum"), layer, inputs[:1] if number % 3 == 2 else inputs)
