"""Cases that convolutions and fully connected layers share: sizes, ties, shifts, zero points and extremes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stages.ir.graph import LayerView
from tests.conformance.case import Case, Inputs, case, drawn_inputs, extremes, values
from tests.conformance.draw import Draw, bounds, middle, with_constants, with_op
from tests.conformance.sums import mixed_shifts, tie_constants, zero_point_runs

UNITS = 16  # of layers whose sizes do not matter: whole tiles of every kernel
TIED = 96  # of layers of ties: so too, and room for most ties of a shift
SHIFTS = (*range(-31, 3), 7)


@dataclass(frozen=True)
class Product:
    """`make(draw, rows, depth, units, **fields)` gives a layer; the others are the largest sizes of the sweeps.

    whole and tied: units of layers whose sizes do not matter, and of layers of ties.
    """

    name: str
    make: Callable[..., LayerView]
    pixels: int
    depth: int
    units: int
    shifts: Sequence[int] = SHIFTS
    int8_zero_points: Sequence[int] = ()  # of int8 weights, beside 0
    whole: int = UNITS
    tied: int = TIED

    def plain(self, draw: Draw, rounding: str) -> LayerView:
        """A layer for the search of bounds (modes.py)."""
        return plain(self, draw, UNITS, rounding=rounding)


def product_cases(product: Product) -> Iterator[Case]:
    yield from _tails(product)
    yield from _ties(product)
    yield from _shifts(product)
    yield from _extremes(product)
    yield from _zero_points(product)


def _tails(product: Product) -> Iterator[Case]:
    """Each size of each axis, the others whole tiles or of any size too."""
    for axis in ("pixels", "depth", "units"):
        for size in range(1, getattr(product, axis) + 1):
            draw = Draw(size, ("int8", "uint8")[size // 2 % 2])
            whole = draw.integer(0, 1)
            usual = (4, 16, 16) if whole else (draw.integer(1, 7), draw.integer(1, 20), draw.integer(1, 20))
            sizes = dict(zip(("pixels", "depth", "units"), usual, strict=True)) | {axis: size}
            layer = product.make(draw, *sizes.values(), rounding=draw.choose("double", "double", "single"))
            name = f"{product.name} {axis} {' x '.join(str(n) for n in sizes.values())}"
            yield Case(name, (f"tails: {axis}",), layer, (drawn_inputs(draw, layer)[0], *_some(layer, size)))


def _some(layer: LayerView, number: int) -> tuple[Inputs, ...]:
    """One of the extremes."""
    found = extremes(layer.inputs)
    return (found[number % len(found)],)


def _ties(product: Product) -> Iterator[Case]:
    """Each shift, both roundings; for some shifts layers of one sign too, since kernels may know which signs come."""
    for rounding in ("double", "single"):
        for shift in product.shifts:
            for sign in (0, 1, -1) if shift % 3 == 0 else (0,):
                draw = Draw(1000 + shift, ("int8", "uint8")[shift % 2])
                layer = plain(product, draw, product.tied, rounding=rounding)
                for number, constants in enumerate(tie_constants(rounding, shift, product.tied, draw, sign)):
                    runs = zero_point_runs(draw, layer.inputs[0].shape, layer.op.input_zero_point)
                    name = f"{product.name} ties {rounding} shift {shift} sign {sign} {number}"
                    kinds = (f"ties: {rounding}", *(("ties: left shifts",) if shift > 0 else ()))
                    yield Case(name, kinds, with_constants(layer, **constants), tuple((run,) for run in runs))


def plain(product: Product, draw: Draw, units: int, **fields: object) -> LayerView:
    """A layer with whole tiles, all of the output's range, and weights of which most are 0."""
    low, high = bounds(draw.dtype)
    weight_zero_point = 0 if draw.dtype == "int8" else 128
    layer = product.make(draw, 4, 16, units, weight_type=(draw.dtype, weight_zero_point), **fields)
    weights = draw.rng.choice(np.array([0, 0, 0, 0, 0, 1, -1]), layer.constant("weights").shape) + weight_zero_point
    changed = with_constants(layer, weights=weights.astype(draw.dtype))
    ends = {"output_zero_point": middle(draw.dtype), "act_min": low, "act_max": high}
    return with_op(changed, **ends, input_zero_point=middle(draw.dtype) + 3)


def _shifts(product: Product) -> Iterator[Case]:
    """Channels of all shifts beside each other: dead ones, such that need another rounding, usual ones."""
    for number in range(16):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        rounding = ("double", "double", "double", "single")[number % 4]
        if number % 8 < 4:
            layer = plain(product, draw, product.whole, rounding=rounding)
            layer = with_constants(layer, **mixed_shifts(product.whole, draw, rounding))
        else:
            layer = product.make(draw, 4, 12, product.whole, rounding=rounding)
            shift, bias = layer.constant("shift").copy(), layer.constant("bias").copy()
            chosen = draw.rng.random(product.whole) < 0.3
            if number % 8 == 6:  # usual ones alone
                shift[chosen] -= 1
            else:
                shift[chosen] = draw.rng.choice(np.array([-2, -13, -15, -20, -31]), int(chosen.sum()))
                bias[chosen] = draw.rng.integers(-(1 << 26), 1 << 26, int(chosen.sum()))
            layer = with_constants(layer, shift=shift.astype(np.int32), bias=bias.astype(np.int32))
        yield case(f"{product.name} shifts {number} {rounding}", draw, layer, "shifts")


def _extremes(product: Product) -> Iterator[Case]:
    """Weights all lowest, all highest, in turn, in pairs; activations too: sums are as large as they get."""
    for depth in (15, 16, 27, 64):
        for number, ends in enumerate(((0, 0), (1, 1), (0, 1), (1, 0))):
            for dtype, weight_dtype, zero_point in (("int8", "int8", 0), ("uint8", "uint8", (0, 128, 255)[number % 3])):
                draw = Draw(depth + number, dtype)
                layer = product.make(draw, 4, depth, product.whole, weight_type=(weight_dtype, zero_point))
                low, high = bounds(weight_dtype)
                parity = np.indices(layer.constant("weights").shape).sum(0) % 2
                weights = np.where(parity, (low, high)[ends[1]], (low, high)[ends[0]])
                if number == 0 and depth == 16:
                    weights = weights.copy()
                    weights[weights == low] += draw.rng.integers(0, 2, int((weights == low).sum()))  # -128 and -127
                taps = layer.constant("weights").size // product.whole
                shift = -max(int(np.log2(taps)) + 7, 2)
                layer = with_constants(
                    layer, weights=weights.astype(weight_dtype), shift=np.full(product.whole, shift, np.int32)
                )
                layer = with_op(layer, output_zero_point=middle(dtype), act_min=bounds(dtype)[0])
                name = f"{product.name} extremes {depth} {ends} {dtype}"
                yield Case(name, ("extremes",), layer, (*_spread(layer, draw), *extremes(layer.inputs)))


def _spread(layer: LayerView, draw: Draw) -> tuple[Inputs, ...]:
    return ((values(draw, layer.inputs[0]),),)


def _zero_points(product: Product) -> Iterator[Case]:
    """Those of input, weights and output at both ends; the fused activation's bounds anywhere, also equal."""
    for dtype, weight_dtype in (("int8", "int8"), ("uint8", "uint8"), ("uint8", "int8")):
        low, high = bounds(dtype)
        for number, (x, y) in enumerate(((low, low), (low, high), (high, low), (high, high))):
            for weights in (0, 255) if weight_dtype == "uint8" else (0, *product.int8_zero_points):
                draw = Draw(number + abs(weights), dtype)
                layer = product.make(draw, 3, 11, product.whole, weight_type=(weight_dtype, weights))
                floor = (low, min(y, high - 1), low, y)[number]
                ceiling = (high, high, min(max(y, floor) + 1, high), y)[number]
                layer = with_op(layer, input_zero_point=x, output_zero_point=y, act_min=floor, act_max=ceiling)
                name = f"{product.name} zero points {x} {y} {weights} {dtype} {weight_dtype}"
                yield case(name, draw, layer, "zero points")
