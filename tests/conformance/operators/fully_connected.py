"""Cases of FULLY_CONNECTED."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from stages.ir.arithmetic.fixed_point import INT32_MAX, INT32_MIN
from stages.ir.graph import FullyConnected, LayerView
from stages.quantize.arithmetic import quantize_multiplier
from stages.quantize.real_products import breakpoint_tables as stepped_constants
from tests.conformance.case import Case, case
from tests.conformance.draw import Draw, as_converted, image, view, with_constants, without_bias
from tests.conformance.operators.products import TIED, Product, plain, product_cases
from tests.conformance.sums import zero_point_runs

OPS = ("fully_connected",)


def fully_connected(
    draw: Draw, batch: int, depth: int, units: int, *, weight_type: tuple[str, int] | None = None, **fields: Any
) -> LayerView:
    dtype, weight_zero_point = weight_type or draw.weight_type(shifted=True)
    op = FullyConnected(
        **draw.clamped(),
        batch=batch,
        depth=depth,
        units=units,
        input_zero_point=draw.zero_point(),
        weight_zero_point=weight_zero_point,
    ).model_copy(update=fields)
    constants = draw.channel_constants(units, depth) | {"weights": draw.array((units, depth), dtype)}
    x, y = (image(name, (batch, size), draw.dtype) for name, size in (("x", depth), ("y", units)))
    return view(op, [x], y, constants)


def drawn(draw: Draw) -> LayerView:
    """Anything; a quarter without a bias."""
    batch = draw.choose(1, 1, draw.integer(2, 9))
    layer = fully_connected(
        draw, batch, draw.integer(1, 80), draw.integer(1, 40), rounding=draw.choose("double", "single")
    )
    if layer.op.rounding == "single" and draw.integer(0, 3) == 0:
        layer = stepped(layer)
    return without_bias(layer) if draw.integer(0, 3) == 0 else layer


def _row(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    return fully_connected(draw, 1, depth, units, **fields)


PRODUCTS = (
    Product("row", _row, pixels=1, depth=70, units=35, int8_zero_points=(-128, 127)),
    Product("rows", fully_connected, pixels=18, depth=36, units=35, shifts=range(-30, 2, 3)),
    Product("few units", fully_connected, pixels=4, depth=20, units=3, shifts=(-12, -2, 1), whole=3, tied=3),
)
PLAIN = (PRODUCTS[0].plain,)


def mandatory() -> Iterator[Case]:
    for product in PRODUCTS:
        yield from product_cases(product)
    yield from _long()
    yield from _stepped()


def stepped(layer: LayerView) -> LayerView:
    """The layer with the results of its multipliers looked up; units share those of the first four."""
    op, roles = layer.op.model_copy(update={"rounding": "steps"}), dict(layer.layer.constants)
    names = {roles.pop("multiplier"), roles.pop("shift")}
    units = zip(layer.constant("multiplier").tolist(), layer.constant("shift").tolist(), strict=True)
    reals = [multiplier * 2.0 ** (shift - 31) or 2.0**-40 for multiplier, shift in units]
    shared = [reals[unit % 4] for unit in range(len(reals))]
    made = stepped_constants(shared, op.act_min - op.output_zero_point, op.act_max - op.output_zero_point)
    constants = {role: array for role, array in layer.arrays.items() if role not in names}
    constants |= {f"layer.{role}": array for role, array in made.items()}
    changed = layer.layer.model_copy(update={"op": op, "constants": roles | {role: f"layer.{role}" for role in made}})
    return LayerView(changed, layer.tensors, constants)


def _stepped() -> Iterator[Case]:
    """All of `products` that round once; then sums on each step and beside it."""
    for product in PRODUCTS:
        for whole in product_cases(product):
            if whole.view.op.rounding == "single":
                yield Case(f"{whole.name}, by steps", whole.covers, stepped(whole.view), whole.inputs)
    for number, real in enumerate((7 / 640, 0.5, 1.25, 1 / 3, 3e-5, 2.0**-23, 1e-9)):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        layer = plain(PRODUCTS[0], draw, TIED, rounding="single")
        multiplier, shift = quantize_multiplier(real)
        layer = with_constants(
            layer, multiplier=np.full(TIED, multiplier, np.int32), shift=np.full(TIED, shift, np.int32)
        )
        layer = stepped(layer)
        steps = layer.constant("steps")[0, 1:].astype(np.int64)
        for first in range(0, 256, TIED // 2):
            below = np.resize(steps[first : first + TIED // 2], TIED // 2)
            bias = np.clip(np.concatenate([below, below + 1]), INT32_MIN + 999, INT32_MAX - 999)
            made = with_constants(layer, bias=bias.astype(np.int32))
            runs = zero_point_runs(draw, layer.inputs[0].shape, layer.op.input_zero_point)
            yield Case(f"steps of {real} from {first}", ("ties: steps",), made, tuple((run,) for run in runs))


def _long() -> Iterator[Case]:
    """Loops that go round many times, with every number of units behind a group; layers without a bias."""
    for number, (units, depth) in enumerate(((4, 4000), (2, 256), (10, 64), (1, 1027), (9, 509), (16, 640))):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        yield case(f"long {units} x {depth}", draw, fully_connected(draw, 1, depth, units), "tails: depth")
    for number in range(24):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        depth = 4 * draw.integer(14, 40) - draw.choose(0, 0, 1)
        layer = fully_connected(draw, 1, depth, number % 8 + 1, rounding=draw.choose("single", "double"))
        yield case(f"row of {depth}, {number % 8 + 1} units", draw, as_converted(layer), "tails: units")
    for number in range(6):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        yield case(f"no bias {number}", draw, without_bias(fully_connected(draw, 1 + number % 3, 16, 16)), "no bias")
