"""Cases of layers on 16-bit activations: products with 8-bit weights, element by element, windows and means."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stages.ir.arithmetic.sigmoid16 import sigmoid_table
from stages.ir.graph import Add, Dequantize, FullyConnected, LayerView, Mean, Mul, Quantize, Requantize
from stages.ir.operators.arithmetic import Extremum
from stages.ir.operators.interpolated import Interpolated, WideSoftmax
from stages.ir.operators.reductions import ReduceExtremum, ReduceProd
from stages.quantize.interpolation import difference_scaling, exponential_table, reciprocal_table, sigmoid_scaling
from tests.conformance.case import Case, case, cases, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, scaled, view, whole_range, with_constants, with_op
from tests.conformance.operators import conv2d as eight
from tests.conformance.operators.depthwise_conv2d import depthwise as eight_depthwise
from tests.conformance.operators.pool2d import pool2d
from tests.conformance.operators.windows import Window, any_window

BITS = 16
OPS = (
    *("conv2d", "depthwise_conv2d", "fully_connected", "add", "sub", "mul", "requantize", "quantize", "dequantize"),
    *("avg_pool2d", "max_pool2d", "mean", "interpolated", "wide_softmax"),
    *("maximum", "minimum", "reduce_max", "reduce_min", "reduce_prod"),
)
LOW, HIGH = bounds("int16")


def conv2d(draw: Draw, depth: int = 0, units: int = 0, groups: int = 0) -> LayerView:
    """In groups now and then."""
    window = any_window(draw, largest=3)
    depth, units = depth or draw.integer(1, 9), units or draw.integer(1, 5)
    groups, batch = groups or draw.choose(1, 1, 2, 3), draw.choose(1, 1, 2)
    return eight.conv2d(draw, window, depth, units, batch=batch, groups=groups, rounding="wide")


def depthwise(draw: Draw) -> LayerView:
    window, channels, batch = any_window(draw, largest=3), draw.integer(1, 9), draw.choose(1, 1, 2)
    return eight_depthwise(draw, window, channels, multiplier=draw.choose(1, 1, 2, 3), batch=batch, rounding="wide")


def usual_depthwise(draw: Draw) -> LayerView:
    """One filter for a channel; of 3x3 and 5x5 too, over images with an inside and edges."""
    channels, size = draw.choose(1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 22, 24), (draw.integer(3, 7), draw.integer(3, 7))
    edge = min(draw.choose(1, 2), (min(size) - 1) // 2)
    square = Window(size, (2 * edge + 1, 2 * edge + 1), padding=(edge, edge, edge, edge))
    window = draw.choose(square, square, any_window(draw, largest=3))
    return eight_depthwise(draw, window, channels, batch=draw.choose(1, 1, 2), rounding="wide")


def fully_connected(draw: Draw, depth: int = 0) -> LayerView:
    batch, depth, units = draw.choose(1, 1, 3), depth or draw.integer(1, 40), draw.integer(1, 9)
    op = FullyConnected(**draw.clamped(), batch=batch, depth=depth, units=units, input_zero_point=0, rounding="real")
    constants = {
        "bias": draw.rng.integers(-(1 << 33), 1 << 33, units),
        "real": draw.rng.uniform(1, 2, units) * 2.0 ** draw.integer(-14, -8),
        "weights": draw.array((units, depth), "int8"),
    }
    if draw.integer(0, 2) == 0:
        del constants["bias"]
    return view(op, [image("x", (batch, depth), "int16")], image("y", (batch, units), "int16"), constants)


def binary(draw: Draw) -> LayerView:
    """ADD, SUB and MUL, with broadcasting."""
    full = draw.shape()
    other = tuple(size if draw.integer(0, 2) else 1 for size in full)[draw.integer(0, len(full) - 1) :]
    shapes = [full, other] if draw.integer(0, 1) else [other, full]
    inputs = [image(f"x{number}", shape, "int16") for number, shape in enumerate(shapes)]
    last = draw.multiplier(-15, -13)
    op: Add | Mul
    if draw.integer(0, 2) == 0:
        op = Mul(**draw.clamped(), zero_points=(0, 0), output_multiplier=last[0], output_shift=last[1])
    else:
        scales = (draw.multiplier(-4, 0), (1 << 30, 0))
        op = Add(
            **draw.clamped(),
            op=draw.choose("add", "sub"),
            zero_points=(0, 0),
            left_shift=15,
            **scaled(*scales, last),
        )
    return view(op, inputs, image("y", tuple(np.broadcast_shapes(*shapes)), "int16"))


def edge(draw: Draw) -> LayerView:
    """QUANTIZE between integers and from float32, DEQUANTIZE."""
    size, kind = draw.shape(), draw.integer(0, 3)
    if kind == 0:
        scale = float(np.float32(draw.choose(0.5, 0.01, 0.0037)))
        op: Any = Quantize(**draw.clamped(), scale=scale)
        return view(op, [image("x", size, "float32")], image("y", size, "int16"))
    if kind == 1:
        op = Dequantize(input_zero_point=0, scale=float(np.float32(draw.choose(0.5, 0.1, 0.037))))
        return view(op, [image("x", size, "int16")], image("y", size, "float32"))
    x, y = [("int16", "int8"), ("int8", "int16"), ("int16", "int16"), ("int16", "uint8")][draw.integer(0, 3)]
    scale = draw.multiplier(*{"int8": (-9, -6), "uint8": (-9, -6), "int16": (-1, 2) if x == "int16" else (7, 9)}[y])
    ends = draw.clamped() if y == "int16" else Draw(draw.seed, y).clamped()
    zero_point = 0 if x == "int16" else draw.zero_point("int8")
    op = Requantize(**ends, input_zero_point=zero_point, multiplier=scale[0], shift=scale[1])
    return view(op, [image("x", size, x)], image("y", size, y))


def pool(draw: Draw) -> LayerView:
    return pool2d(draw, any_window(draw, dilated=False), draw.integer(1, 9), batch=draw.choose(1, 1, 2))


def mean(draw: Draw) -> LayerView:
    shape = draw.shape()
    axes = tuple(axis for axis in range(len(shape)) if draw.integer(0, 1)) or (0,)
    count = int(np.prod([shape[axis] for axis in axes]))
    multiplier, shift = draw.multiplier(-1, 1)
    left = count.bit_length() - 1
    op = Mean(
        **draw.clamped(),
        axes=axes,
        input_zero_point=0,
        multiplier=(multiplier << left) // count,
        shift=shift - left,
        count=count,
    )
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    out = kept if draw.integer(0, 1) else tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return view(op, [image("x", shape, "int16")], image("y", out, "int16"))


def interpolated(draw: Draw, size: tuple[int, ...] = (), **fields: Any) -> LayerView:
    """LOGISTIC and TANH."""
    size = size or draw.shape()
    multiplier, shift = sigmoid_scaling(draw.choose(1e-5, 1 / 4096, 1 / 8192, 0.0003, 0.002, 2.5))
    op = Interpolated(function=draw.choose("logistic", "tanh"), multiplier=multiplier, shift=shift)
    op = op.model_copy(update=fields)
    return view(op, [image("x", size, "int16")], image("y", size, "int16"), {"table": sigmoid_table()})


def softmax(draw: Draw, count: int = 0) -> LayerView:
    shape = (*draw.shape(), count or draw.integer(1, 30))[-4:]
    multiplier, shift = difference_scaling(draw.choose(1e-6, 1 / 4096, 0.0003, 0.002, 1.2), draw.choose(1.0, 0.7))
    tables = {"exp": exponential_table(), "reciprocal": reciprocal_table()}
    op = WideSoftmax(multiplier=multiplier, shift=shift)
    return view(op, [image("x", shape, "int16")], image("y", shape, "int16"), tables)


def pair_extremum(draw: Draw) -> LayerView:
    """With broadcasting."""
    full = draw.shape()
    second = tuple(size if draw.integer(0, 2) else 1 for size in full)[draw.integer(0, len(full) - 1) :]
    op = Extremum(op=draw.choose("maximum", "minimum"))
    inputs = [image("x0", full, "int16"), image("x1", second, "int16")]
    return view(op, inputs, image("y", full, "int16"))


def extremum_over_axes(draw: Draw) -> LayerView:
    shape = draw.shape()
    axes = tuple(axis for axis in range(len(shape)) if draw.integer(0, 1)) or (0,)
    out = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    op = ReduceExtremum(op=draw.choose("reduce_max", "reduce_min"), axes=axes)
    return view(op, [image("x", shape, "int16")], image("y", out, "int16"))


def product_over_axes(draw: Draw) -> LayerView:
    like = extremum_over_axes(draw)
    multiplier, shift = draw.multiplier(-8, 4)
    op = ReduceProd(axes=like.op.axes, input_zero_point=0, multiplier=multiplier, shift=shift, **whole_range("int16"))
    return view(op, [*like.inputs], like.outputs[0])


MAKERS: tuple[Callable[[Draw], LayerView], ...] = (
    conv2d,
    depthwise,
    fully_connected,
    binary,
    edge,
    pool,
    mean,
    interpolated,
    softmax,
    pair_extremum,
    extremum_over_axes,
    product_over_axes,
)


def drawn(draw: Draw) -> LayerView:
    return MAKERS[draw.seed % len(MAKERS)](Draw(draw.seed, "int16"))


def mandatory() -> Iterator[Case]:
    for part in (_each, _outside, _ties, _reals, _deep, _within_32_bits, _pixels, _functions, _pairs):
        yield from part()


def _each() -> Iterator[Case]:
    return cases(
        24 * len(MAKERS), lambda draw: MAKERS[draw.seed % len(MAKERS)](draw), "shapes", "extremes", types=("int16",)
    )


def _outside() -> Iterator[Case]:
    """Convolutions of which no tap meets the image."""
    draw, window = Draw(1, "int16"), Window((5, 1), (2, 4), (2, 1), (1, 3, 1, 3), (2, 2))
    for layer in (eight.conv2d(draw, window, 3, 5, rounding="wide"), eight_depthwise(draw, window, 3, rounding="wide")):
        yield case(f"{layer.op.op} beside the image", draw, layer, "shapes")


def _ties() -> Iterator[Case]:
    """Sums on the halves of a convolution's rounding and beside them, of every shift; the largest multipliers."""
    for shift in range(-31, 8):
        draw = Draw(shift + 50, "int16")
        halves = [sign * (2 * k + 1) for k in (0, 1, 2, 7, 100, 16383) for sign in (1, -1)]
        near = [half * 2**-shift + beside for half in halves if shift <= 0 for beside in (0, 1, -1)]
        bias = np.array(near or range(-18, 18), np.int64)
        for multiplier in (1 << 30, (1 << 30) + (1 << 15), 0x7FFEFFFF, 0x7FFF8000, (1 << 31) - 1):
            layer = conv2d(draw, depth=2, units=len(bias), groups=1)
            constants = {
                "bias": bias,
                "multiplier": np.full(len(bias), multiplier, np.int32),
                "shift": np.full(len(bias), shift, np.int32),
                "weights": np.zeros_like(layer.constant("weights")),
            }
            layer = with_op(with_constants(layer, **constants), act_min=LOW, act_max=HIGH)
            runs = drawn_inputs(draw, layer)[:1]
            yield Case(f"wide {shift} {multiplier}", ("ties", "shifts"), layer, runs)


def _reals() -> Iterator[Case]:
    """Float64 products that are halves, that become halves when they are rounded, and far beyond the bounds."""
    halves = [sign * (2 * k + 1) for k in (0, 1, 2, 7, 100, 16383, 1 << 20, 1 << 40) for sign in (1, -1)]
    bias = np.array([half + beside for half in halves for beside in (0, 1, -1)], np.int64)
    for number, real in enumerate((0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1), 0.25, 1 / 3, 7 / 640, 3.0, 1e-9)):
        draw = Draw(number, "int16")
        layer = fully_connected(draw)
        op = layer.op.model_copy(update={"units": len(bias), "depth": 3, "batch": 1, "act_min": LOW, "act_max": HIGH})
        constants = {"bias": bias, "real": np.full(len(bias), real), "weights": np.zeros((len(bias), 3), np.int8)}
        layer = view(op, [image("x", (1, 3), "int16")], image("y", (1, len(bias)), "int16"), constants)
        yield Case(f"real {real}", ("ties",), layer, drawn_inputs(draw, layer)[:1])


def _deep() -> Iterator[Case]:
    """Sums of as many products as an int32 holds, and of more, as large as they get."""
    for depth in (1, 2, 255, 256, 257, 511, 513):
        for number, end in enumerate(bounds("int8")):
            draw = Draw(depth + number, "int16")
            layers = (conv2d(draw, depth=depth, units=3, groups=1), fully_connected(draw, depth))
            for layer in layers:
                weights = np.full_like(layer.constant("weights"), end)
                layer = with_constants(layer, weights=weights)
                yield case(f"{layer.op.op} depth {depth} of {end}", draw, layer, "tails", "extremes")


def _within_32_bits() -> Iterator[Case]:
    """Sums that 32 bits hold, as those of networks: more channels, rows and windows than a tile has."""
    for number in range(60):
        draw = Draw(900 + number, "int16")
        maker = (conv2d, usual_depthwise, fully_connected)[number % 3]
        layer = maker(draw, units=draw.integer(1, 9), groups=1) if maker is conv2d else maker(draw)
        if layer.has("bias"):
            units = len(layer.constant("bias"))
            layer = with_constants(layer, bias=draw.rng.integers(-(1 << 26), 1 << 26, units))
        yield case(f"{layer.op.op} within 32 bits {number}", draw, layer, "shapes", "tails", "extremes")


def _pixels() -> Iterator[Case]:
    """Plain products of rows, which some kernels read where they lie, of each number of inputs and of outputs."""
    for number in range(64):
        draw, depth, units = Draw(2000 + number, "int16"), 1 + number % 14, 1 + number % 9
        batch, width = draw.choose(1, 1, 2), draw.integer(1, 8)
        layer = eight.conv2d(draw, Window((1, width)), depth, units, batch=batch, rounding="wide")
        layer = with_constants(layer, bias=draw.rng.integers(-(1 << 26), 1 << 26, units))
        yield case(f"{batch} times {width} pixels of {depth} and {units}", draw, layer, "shapes", "tails", "extremes")


def _functions() -> Iterator[Case]:
    """All of the input's range by the scales at which the table ends within it, before it and far behind it."""
    for number, scale in enumerate((1 / 4096, 1 / 2048, 0.00005, 0.0011)):
        multiplier, shift = sigmoid_scaling(scale)
        every = np.arange(LOW, HIGH + 1, 7).astype(np.int16)
        for function in ("logistic", "tanh"):
            fields = {"function": function, "multiplier": multiplier, "shift": shift}
            layer = interpolated(Draw(number), every.shape, **fields)
            yield Case(f"{function} {scale}", ("extremes",), layer, ((every,),))
    for count in (1, 2, 3, 600):
        draw = Draw(count, "int16")
        layer = softmax(draw, count)
        equal = np.full(layer.inputs[0].shape, -700, np.int16)
        yield Case(f"softmax of {count}", ("tails", "extremes"), layer, (*drawn_inputs(draw, layer), (equal,)))


def _pairs() -> Iterator[Case]:
    """SUB whose first input has the larger scale, as no drawn one has; MUL by each rounding and kind of shift."""
    inputs, y = [image(f"x{number}", (3, 21), "int16") for number in range(2)], image("y", (3, 21), "int16")
    for number, shift in enumerate((0, -1, -11, -14, -31)):
        draw = Draw(3000 + number, "int16")
        fields: dict[str, Any] = {"zero_points": (0, 0), **draw.clamped()}
        last = (draw.integer(1 << 30, (1 << 31) - 1), shift)
        scales = scaled((1 << 30, 0), draw.multiplier(-4, -1), (last[0], -13 - number))
        yield case(f"sub {number}", draw, view(Add(op="sub", left_shift=15, **fields, **scales), inputs, y), "shifts")
        for rounding in ("double", "single"):
            op = Mul(output_multiplier=last[0], output_shift=shift, rounding=rounding, **fields)
            yield case(f"mul {shift} {rounding}", draw, view(op, inputs, y), "shifts")
