"""Cases of MUL and PRELU, of functions by table, and of QUANTIZE and DEQUANTIZE."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from stages.ir.graph import Activation, Dequantize, LayerOp, LayerView, Mul, Quantize, Requantize
from stages.ir.operators.prelu import Prelu
from tests.conformance.broadcasts import pairs
from tests.conformance.case import Case, case, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, middle, view, with_layouts, with_op
from tests.conformance.operators.add import every_pair
from tests.conformance.sums import ties

OPS = ("mul", "prelu", "activation", "requantize", "quantize", "dequantize")


def mul(draw: Draw) -> LayerView:
    """With broadcasting."""
    shapes = draw.pair(draw.shape())
    layout = draw.layout() if len(shapes[1]) == 4 else ""
    inputs = [image(f"x{n}", shape, draw.dtype, layout) for n, shape in enumerate(shapes)]
    scale = draw.multiplier(*draw.choose((-8, -6), (-8, -6), (0, 1)))
    op = Mul(
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        output_multiplier=scale[0],
        output_shift=scale[1],
        rounding=draw.choose("double", "single"),
    )
    return view(op, inputs, image("y", tuple(np.broadcast_shapes(*shapes)), draw.dtype, layout))


def prelu(draw: Draw) -> LayerView:
    """Slopes for each element, for some axes or for all."""
    full = draw.shape()
    slopes = tuple(size if draw.integer(0, 1) else 1 for size in full)[draw.integer(0, len(full) - 1) :]
    layout = draw.layout() if len(slopes) == 4 else ""
    above, below = draw.multiplier(-3, 1), draw.multiplier(-8, -6)
    op = Prelu(
        **draw.clamped(),
        zero_points=(draw.zero_point(), draw.zero_point()),
        multipliers=(above[0], below[0]),
        shifts=(above[1], below[1]),
        rounding=draw.choose("double", "single"),
    )
    inputs = [image("x0", full, draw.dtype, layout), image("x1", slopes, draw.dtype, layout)]
    return view(op, inputs, image("y", full, draw.dtype, layout))


def activation(draw: Draw) -> LayerView:
    size, kind = draw.shape(), draw.choose("int8", "uint8")
    layout = draw.layout() if len(size) == 4 else ""
    x, y = image("x", size, draw.dtype, layout), image("y", size, kind, layout)
    return view(Activation(function="tanh"), [x], y, {"table": draw.array((256,), kind)})


def requantize(draw: Draw, size: tuple[int, ...] = (), **fields: Any) -> LayerView:
    size = size or draw.shape()
    scale, result = draw.multiplier(-3, 2), Draw(draw.seed, draw.choose("int8", "uint8"))
    op = Requantize(
        **result.clamped(),
        input_zero_point=draw.zero_point(),
        multiplier=scale[0],
        shift=scale[1],
        rounding=draw.choose("double", "single"),
    ).model_copy(update=fields)
    return view(op, [image("x", size, draw.dtype)], image("y", size, result.dtype))


def quantize(draw: Draw) -> LayerView:
    size = draw.shape()
    scale = float(np.float32(draw.choose(0.5, 0.1, 0.037, 3.0)))
    op = Quantize(**draw.clamped(), scale=scale, halves=draw.choose("away", "even"))
    return view(op, [image("x", size, "float32")], image("y", size, draw.dtype))


def dequantize(draw: Draw) -> LayerView:
    size = draw.shape()
    op = Dequantize(input_zero_point=draw.zero_point(), scale=float(np.float32(draw.choose(0.5, 0.1, 0.037))))
    return view(op, [image("x", size, draw.dtype)], image("y", size, "float32"))


MAKERS: tuple[Callable[[Draw], LayerView], ...] = (mul, prelu, activation, requantize, quantize, dequantize)


def drawn(draw: Draw) -> LayerView:
    """Any operator; images change their layout now and then."""
    layer = MAKERS[draw.seed % len(MAKERS)](draw)
    out = layer.outputs[0]
    if len(out.shape) == 4 and all(x.shape == out.shape for x in layer.inputs):
        layer = with_layouts(layer, **{t.name: draw.layout() for t in (*layer.inputs, out)})
    return layer


def mandatory() -> Iterator[Case]:
    for part in (_mul_ties, _mul_rows, _broadcasts, _prelu_ties, _requantize_ties, _flips, _edges, _each):
        yield from part()


def _each() -> Iterator[Case]:
    """Drawn layers of each operator, with images whose layout changes on the way."""
    for number in range(20 * len(MAKERS)):
        draw = Draw(number, ("int8", "uint8")[number // len(MAKERS) % 2])
        layer = drawn(draw)
        shapes = {t.layout for t in (*layer.inputs, *layer.outputs) if len(t.shape) == 4}
        covers = ("shapes", *(("layouts",) if len(shapes) > 1 else ()), "extremes")
        yield case(f"{layer.op.op} {number}", draw, layer, *covers)


def _mul_ties() -> Iterator[Case]:
    """All pairs of values with the multiplier 1/2, whose products are halves often, and with others."""

    def make(multiplier: int, shift: int, points: tuple[int, ...], number: int) -> LayerOp:
        second = points[number % 3]
        scale = {"output_multiplier": multiplier, "output_shift": shift}
        ends = {"output_zero_point": points[0], "act_min": points[1], "act_max": points[2]}
        return Mul(zero_points=(points[0], second), **scale, **ends)

    yield from _tied_pairs(make, (-20, -14, -9, -8, -7, -6, -5, -1, 0, 1, -16, -16))


def _mul_rows() -> Iterator[Case]:
    """Rows of whole registers that meet a row, a column or one value, on either side."""
    shapes = (
        *(((1, 3, 5, 24), (1, 1, 1, 24)), ((1, 2, 3, 16), (1, 2, 3, 1)), ((1, 1, 1, 16), (1, 4, 4, 16))),
        *(((4, 24), (1,)), ((1,), (57,)), ((2, 5, 1, 16), (2, 1, 3, 16)), ((2, 3, 1), (2, 3, 40))),
    )
    for number, (left, right) in enumerate(shapes):
        for dtype, rounding in product(("int8", "uint8"), ("double", "single")):
            draw = Draw(number, dtype)
            layer = with_op(mul(draw), output_shift=-draw.integer(6, 9), rounding=rounding)
            inputs = [image(f"x{n}", shape, dtype) for n, shape in enumerate((left, right))]
            layer = view(layer.op, inputs, image("y", tuple(np.broadcast_shapes(left, right)), dtype))
            yield case(f"mul {left} {right} {dtype} {rounding}", draw, layer, "broadcast")


def _broadcasts() -> Iterator[Case]:
    """MUL and PRELU, whose slopes broadcast, with rows of any length."""
    for number, (left, right) in enumerate(pairs()):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        out = tuple(int(size) for size in np.broadcast_shapes(left, right))
        inputs = [image(f"x{n}", shape, draw.dtype) for n, shape in enumerate((left, right))]
        for made in (mul(draw), prelu(draw)):
            if made.op.op == "mul":
                made = with_op(made, output_shift=-draw.integer(6, 9))
            elif left != out:
                continue
            layer = view(with_op(made, rounding="double").op, inputs, image("y", out, draw.dtype))
            yield case(f"{layer.op.op} {left} {right}", draw, layer, "broadcast")


def _prelu_ties() -> Iterator[Case]:
    """All pairs of a value and a slope, with multipliers whose products are halves often, on both sides of zero."""

    def make(multiplier: int, shift: int, points: tuple[int, ...], number: int) -> LayerOp:
        zero_point, low, high = points
        first, second = (zero_point, high, low)[number % 3], points[number // 2 % 3]
        scales = {"multipliers": (multiplier, multiplier), "shifts": (max(shift, -9) + 1, shift)}
        ends = {"output_zero_point": first, "act_min": low, "act_max": high}
        return Prelu(zero_points=(first, second), **scales, **ends)

    yield from _tied_pairs(make, (-31, -14, -9, -8, -7, -6, -3, -1, 0, 1))


def _tied_pairs(make: Callable[..., LayerOp], shifts: Sequence[int]) -> Iterator[Case]:
    """`make` gets a multiplier, a shift, the middle and both ends of the type, and a number."""
    for rounding, (number, shift), multiplier in product(
        ("double", "single"), enumerate(shifts), (1 << 30, 3 << 29, 1518500250)
    ):
        dtype = ("int8", "uint8")[number % 2]
        op = make(multiplier, shift, (middle(dtype), *bounds(dtype)), number).model_copy(update={"rounding": rounding})
        layer = view(op, [image(n, (1 << 16,), dtype) for n in ("x0", "x1")], image("y", (1 << 16,), dtype))
        name = f"{op.op} {rounding} {multiplier} {shift}"
        yield Case(name, (f"ties: {rounding}", "shifts", "zero points"), layer, (every_pair(dtype),))


def _requantize_ties() -> Iterator[Case]:
    """All values; multipliers whose products are halves, every shift, zero points at the ends."""
    for rounding in ("double", "single"):
        for shift in (-31, -20, *range(-9, 3), 7):
            dtype = ("int8", "uint8")[shift % 2]
            low, high = bounds(dtype)
            draw = Draw(shift + 100, dtype)
            multipliers = {tie.multiplier for tie in ties(rounding, shift, draw) if abs(tie.accumulator) < 256}
            for number, multiplier in enumerate([1 << 30, 3 << 29, *sorted(multipliers)][:5]):
                zero_point = (middle(dtype), low, high)[number % 3]
                fields = {"multiplier": multiplier, "shift": shift, "input_zero_point": zero_point}
                layer = requantize(Draw(shift + 100, dtype), (256,), rounding=rounding, **fields)
                layer = with_op(layer, **_ends(layer.outputs[0].dtype, number))
                every = np.arange(low, high + 1).astype(dtype)
                covers = (f"ties: {rounding}", "shifts", "zero points")
                yield Case(f"requantize {rounding} {multiplier} {shift}", covers, layer, ((every,),))


def _flips() -> Iterator[Case]:
    """QUANTIZE that moves the zero point by 128 alone; bytes that are whole words, and that are not."""
    for number, size in enumerate([*range(1, 20), 255, 256, 259]):
        for dtype, other, more in (("int8", "uint8", 128), ("uint8", "int8", -128)):
            low, high = bounds(other)
            zero_point = Draw(number, dtype).zero_point()
            op = Requantize(
                input_zero_point=zero_point,
                multiplier=1 << 30,
                shift=1,
                output_zero_point=zero_point + more,
                act_min=low,
                act_max=high,
            )
            layer = view(op, [image("x", (size,), dtype)], image("y", (size,), other))
            yield Case(
                f"flip of {size} {dtype}", ("tails", "extremes"), layer, drawn_inputs(Draw(number, dtype), layer)
            )


def _ends(dtype: str, number: int) -> dict[str, int]:
    low, high = bounds(dtype)
    return {"act_min": low, "act_max": high, "output_zero_point": (middle(dtype), low, high)[number % 3]}


def _edges() -> Iterator[Case]:
    """QUANTIZE of halves, of what lies beside them, beyond the range, of infinities; DEQUANTIZE of all values."""
    halves = (np.arange(-300, 301) * 0.5).astype(np.float32)
    beside = np.concatenate([np.nextafter(halves, np.float32(end)) for end in (np.inf, -np.inf)])
    far = np.array([3e38, -3e38, 1e9, -1e9, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1023.5, 1024, -1024.5], np.float32)
    data = np.concatenate([halves, beside, far])
    for number, scale in enumerate((1.0, 0.5, 0.037, 3.0)):
        for dtype in ("int8", "uint8"):
            draw = Draw(number, dtype)
            low, high = bounds(dtype)
            zero_point = (middle(dtype), low, high, middle(dtype) + 1)[number]
            with np.errstate(over="ignore"):
                near = data * np.float32(scale)
            clamp = {"output_zero_point": zero_point, "act_min": low, "act_max": high}
            for halves in ("away", "even"):
                op = Quantize(scale=scale, halves=halves, **clamp)
                layer = view(op, [image("x", data.shape, "float32")], image("y", data.shape, dtype))
                covers = ("ties: quantize", "zero points", "extremes")
                yield Case(f"quantize {scale} {dtype} {halves}", covers, layer, ((near,), (data,)))
            every = np.arange(low, high + 1).astype(dtype)
            op = Dequantize(scale=scale, input_zero_point=zero_point)
            layer = view(op, [image("x", (256,), dtype)], image("y", (256,), "float32"))
            yield Case(f"dequantize {scale} {dtype}", ("zero points", "extremes"), layer, ((every,),))
            for result in ("int8", "uint8"):
                layer = view(
                    Activation(function="tanh"),
                    [image("x", (256,), dtype)],
                    image("y", (256,), result),
                    {"table": draw.array((256,), result)},
                )
                yield Case(f"table {number} {dtype} {result}", ("extremes",), layer, ((every,),))
