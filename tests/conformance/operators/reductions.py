"""Cases of reductions over axes, SOFTMAX and L2_NORMALIZATION."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from stages.ir.arithmetic.fixed_point import rounding_divide_by_pot
from stages.ir.graph import L2Normalization, LayerOp, LayerView, Layout, Mean, Softmax, Tensor
from stages.ir.operators.log_softmax import LogSoftmax
from stages.ir.operators.onnx_softmax import EXP_BITS, FACTOR_BITS, FloatSoftmax, NearestSoftmax
from stages.ir.operators.reductions import ReduceExtremum, ReduceProd, Sum
from stages.quantize.softmax import differences, exponentials
from tests.conformance.case import Case, case, cases, drawn_inputs
from tests.conformance.draw import Draw, bounds, image, middle, view, whole_range, with_op

OPS = ("mean", "softmax", "l2_normalization", "sum", "reduce_max", "reduce_min", "reduce_prod", "log_softmax")
OPS += ("nearest_softmax", "float_softmax")
SCALES = (0.0004, 0.004, 0.05, 0.3, 1.0)


def over_axes(draw: Draw, size: tuple[int, ...], axes: tuple[int, ...], make: Callable[[int], LayerOp]) -> LayerView:
    """`make` gets the number of elements; axes stay or not; images in any layout on both sides."""
    keep = draw.integer(0, 1)
    out = tuple(1 if i in axes else n for i, n in enumerate(size) if keep or i not in axes)
    op = make(int(np.prod([size[axis] for axis in axes])))
    x = image("x", size, draw.dtype, draw.layout() if len(size) == 4 else "")
    return view(op, [x], image("y", out, draw.dtype, draw.layout() if len(out) == 4 else ""))


def some_axes(draw: Draw, size: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in range(len(size)) if draw.integer(0, 1)) or (draw.integer(0, len(size) - 1),)


def mean(draw: Draw) -> LayerView:
    size = draw.shape()
    axes = some_axes(draw, size)
    if len(size) == 4 and draw.integer(0, 1):
        axes = (1, 2)
    return over_axes(draw, size, axes, lambda count: averaging(draw, axes, count, 1, "double", "single"))


def powers(scale: float, cut: int = 256) -> np.ndarray:
    """The constant of a softmax as the quantize stage makes it: exp(-scale * d) in Q0.31, 0 from `cut` on."""
    found = np.minimum(np.round(np.exp(-scale * np.arange(256)) * 2**31), 2**31 - 1).astype(np.int32)
    found[cut:] = 0
    return found


def rows(draw: Draw, length: int, most: int) -> list[Tensor]:
    """The input and the output of rows of this length, 0 for any."""
    length = length or draw.choose(1, 2, 10, most, draw.integer(1, 40))
    size = (*draw.shape()[:3], length)
    return [image(name, size, draw.dtype, draw.layout() if len(size) == 4 else "") for name in "xy"]


def softmax(draw: Draw, length: int = 0) -> LayerView:
    tensors = rows(draw, length, 300)
    return view(Softmax(), tensors[:1], tensors[1], {"exp": powers(draw.choose(*SCALES), draw.integer(1, 256))})


def l2_normalization(draw: Draw, length: int = 0) -> LayerView:
    tensors = rows(draw, length, 700)
    return view(L2Normalization(input_zero_point=draw.zero_point()), tensors[:1], tensors[1])


REDUCTIONS = ("sum", "reduce_prod", "reduce_max", "reduce_min")


def reduction(draw: Draw, kind: str, axes: tuple[int, ...], count: int) -> LayerOp:
    """The operator of a reduction over `count` elements."""
    if kind in ("reduce_max", "reduce_min"):
        return ReduceExtremum(op=kind, axes=axes)  # type: ignore[arg-type]
    multiplier, shift = draw.multiplier(-8, 4)
    common = {**draw.clamped(), "axes": axes, "input_zero_point": draw.zero_point(), "multiplier": multiplier}
    if kind == "reduce_prod":
        return ReduceProd(**common, shift=shift)
    common |= {"shift": min(shift, 1) - count.bit_length(), "count": count, "rounding": draw.choose("double", "single")}
    return Sum(**common)


def reducing(draw: Draw) -> LayerView:
    """Any axes."""
    size = draw.shape()
    axes = some_axes(draw, size)
    return over_axes(draw, size, axes, lambda count: reduction(draw, draw.choose(*REDUCTIONS), axes, count))


def log_softmax(draw: Draw, length: int = 0) -> LayerView:
    tensors = rows(draw, length, 300)
    scale = draw.choose(*SCALES)
    powers_of_sums = rounding_divide_by_pot(exponentials(scale, 1.0), 12).astype(np.int32)
    return view(LogSoftmax(), tensors[:1], tensors[1], {"exp": powers_of_sums, "difference": differences(scale)})


def shares(draw: Draw, length: int = 0) -> LayerView:
    """Softmax of ONNX Runtime: in integers, or in float32."""
    tensors = rows(draw, length, 300)
    exponentials_of = np.exp(-draw.choose(*SCALES) * np.arange(256))
    inverse = draw.choose(256.0, 255.0, 900.0, 3.7)
    if draw.integer(0, 1):
        table = (exponentials_of * 2.0 ** draw.integer(0, 100)).astype(np.float32)
        return view(FloatSoftmax(**draw.clamped(), factor=np.floor(inverse)), tensors[:1], tensors[1], {"exp": table})
    fraction, exponent = np.frexp(inverse)
    op = NearestSoftmax(**draw.clamped(), factor=int(fraction * 2.0**FACTOR_BITS), shift=FACTOR_BITS - int(exponent))
    return view(op, tensors[:1], tensors[1], {"exp": np.rint(exponentials_of * 2.0**EXP_BITS).astype(np.int32)})


MAKERS: tuple[Callable[[Draw], LayerView], ...] = (mean, softmax, l2_normalization, reducing, log_softmax, shares)


def drawn(draw: Draw) -> LayerView:
    """Any operator."""
    return MAKERS[draw.seed % len(MAKERS)](draw)


def mandatory() -> Iterator[Case]:
    types = ("int8",) * len(MAKERS) + ("uint8",) * len(MAKERS)
    yield from cases(20 * len(MAKERS), drawn, "shapes", "extremes", types=types)
    for part in (_mean_ties, _mean_images, _lengths, _many_axes):
        yield from part()


def _many_axes() -> Iterator[Case]:
    """Axes that are three runs in memory; products of factors near zero, whose order shows, and of both signs."""
    size = (2, 3, 2, 2, 3, 2)
    for number in range(6 * len(REDUCTIONS)):
        draw, axes = Draw(number, ("int8", "uint8")[number % 2]), ((0, 2, 4), (1, 3, 5), (0, 1, 3))[number % 3]
        op = reduction(draw, REDUCTIONS[number // 6], axes, int(np.prod([size[axis] for axis in axes])))
        out = tuple(n for i, n in enumerate(size) if i not in axes)
        layer = view(op, [image("x", size, draw.dtype)], image("y", out, draw.dtype))
        near = (getattr(op, "input_zero_point", 0) + draw.rng.integers(-3, 4, size)).clip(*bounds(draw.dtype))
        runs = (*drawn_inputs(draw, layer), (near.astype(draw.dtype),))
        yield Case(f"{op.op} of three runs {number}", ("many axes",), layer, runs)


def _mean_ties() -> Iterator[Case]:
    """Sums of two neighbours from all pairs of values: halves wherever the sum is odd; all shifts and zero points."""
    for rounding in ("double", "single"):
        for number, (multiplier, shift) in enumerate(
            ((1 << 30, 0), (1 << 30, -1), (1 << 30, -2), (3 << 29, -2), (1 << 30, 1), (5 << 28, -3), (1518500250, -7))
        ):
            for dtype in ("int8", "uint8"):
                low, high = bounds(dtype)
                values = np.arange(low, high + 1, 3).astype(dtype)
                data = np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)
                layer = view(
                    Mean(
                        axes=(1,),
                        count=2,
                        input_zero_point=middle(dtype),
                        multiplier=multiplier,
                        shift=shift,
                        **whole_range(dtype),
                        rounding=rounding,  # type: ignore[arg-type]
                    ),
                    [image("x", data.shape, dtype)],
                    image("y", (len(data),), dtype),
                )
                name = f"mean ties {rounding} {multiplier} {shift} {dtype}"
                yield Case(name, (f"ties: {rounding}",), layer, ((data,),))
                if number < 4:
                    ends = with_op(
                        layer, input_zero_point=(low, high)[number % 2], output_zero_point=(high, low)[number // 2]
                    )
                    yield Case(f"{name}, zero points at the ends", ("zero points",), ends, ((data,),))


def _mean_images() -> Iterator[Case]:
    """Means of neighbours: over pixels, rows or columns of images; all pairs of values, of two pixels."""
    whole = ((1, 1, 16), (2, 1, 8), (1, 3, 24), (7, 7, 64), (4, 4, 40), (5, 3, 8), (3, 2, 4), (2, 5, 12), (40, 30, 16))
    parts = ((5, 9, 3), (3, 11, 1), (4, 6, 10), (2, 23, 13), (9, 4, 7), (7, 7, 2), (6, 13, 20), (3, 8, 9))
    for number, (height, width, channels) in enumerate((*whole, *parts)):
        for dtype, axes in product(("int8", "uint8"), ((1, 2), (1,), (2,), (0, 2))):
            draw = Draw(number, dtype)
            size = (2, height, width, channels)
            count = int(np.prod([size[axis] for axis in axes]))
            out = tuple(n for axis, n in enumerate(size) if axis not in axes)
            layer = view(averaging(draw, axes, count), [image("x", size, dtype)], image("y", out, dtype))
            yield case(f"mean over {axes} of {size} {dtype}", draw, layer, "shapes", "extremes")
    for number, (multiplier, shift) in enumerate(((1 << 30, -1), (1 << 30, -2), (3 << 29, -2), (1518500250, -7))):
        for dtype in ("int8", "uint8"):
            draw = Draw(number, dtype)
            low, high = bounds(dtype)
            values = np.arange(low, high + 1, 3).astype(dtype)
            data = np.stack(np.meshgrid(values, values)).reshape(2, -1)[:, :7392]
            op = averaging(draw, (0,), 2).model_copy(update={"multiplier": multiplier, "shift": shift})
            layer = view(op, [image("x", data.shape, dtype)], image("y", data.shape[1:], dtype))
            yield Case(f"mean of neighbours {multiplier} {shift} {dtype}", ("ties: double",), layer, ((data,),))


def averaging(draw: Draw, axes: tuple[int, ...], count: int, most: int = -1, *roundings: str) -> Mean:
    """Shifts of results up to `most`; one of the roundings."""
    multiplier, shift = draw.multiplier(-2, most)
    common = {**draw.clamped(), "axes": axes, "input_zero_point": draw.zero_point(), "multiplier": multiplier}
    common |= {"shift": shift - int(np.ceil(np.log2(count))), "count": count}
    return Mean(**common, rounding=draw.choose(*roundings) if roundings else "double")


def _lengths() -> Iterator[Case]:
    """Rows of all short lengths and of some long ones; values that differ little, much, and not at all."""
    for length in (*range(1, 19), 31, 64, 200, 511, 512, 600, 3000, 40000):
        for make in (softmax, l2_normalization, shares):
            dtype = ("int8", "uint8")[length % 2]
            draw = Draw(length, dtype)
            layer = make(draw, length)
            if length > 1000:
                tensors = {
                    t.name: t.model_copy(update={"shape": (1, length), "layout": Layout("")})
                    for t in layer.tensors.values()
                }
                layer = LayerView(layer.layer, tensors, layer.arrays)
            x = layer.inputs[0]
            near = (middle(dtype) + draw.rng.integers(-2, 3, x.shape)).astype(dtype)
            runs = (*drawn_inputs(draw, layer), (near,))
            if make is l2_normalization:
                zero = np.full(x.shape, layer.op.input_zero_point, dtype)
                one = zero.copy()
                one[..., 0] = np.clip(layer.op.input_zero_point + 1, *bounds(dtype))
                runs = (*runs, (zero,), (one,))
            yield Case(f"{layer.op.op} rows of {length}", ("tails: length", "extremes"), layer, runs)
    for number, scale in enumerate(SCALES):
        for dtype in ("int8", "uint8"):
            draw = Draw(number, dtype)
            layer = softmax(draw, 40)
            layer = LayerView(layer.layer, layer.tensors, {name: powers(scale) for name in layer.arrays})
            yield case(f"softmax of {scale} {dtype}", draw, layer, "scales")
    for length in (1, 2, 10, 40, 300):
        draw = Draw(length, "int8")
        x, y = (image(name, (3, length), dtype) for name, dtype in (("x", "int8"), ("y", "int16")))
        layer = view(Softmax(), [x], y, {"exp": powers(draw.choose(*SCALES))})
        yield case(f"softmax of {length} to int16", draw, layer, "shapes", "tails: length", "extremes")
