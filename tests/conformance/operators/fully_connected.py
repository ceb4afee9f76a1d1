"""Cases of FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stages.graph import FullyConnected, LayerView
from tests.conformance.case import Case, drawn_inputs
from tests.conformance.draw import Draw, image, view
from tests.conformance.operators.products import Product, product_cases

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
    return without_bias(layer) if draw.integer(0, 3) == 0 else layer


def without_bias(layer: LayerView) -> LayerView:
    constants = {role: name for role, name in layer.layer.constants.items() if role != "bias"}
    return LayerView(layer.layer.model_copy(update={"constants": constants}), layer.tensors, layer.arrays)


def _row(draw: Draw, pixels: int, depth: int, units: int, **fields: Any) -> LayerView:
    return fully_connected(draw, 1, depth, units, **fields)


PRODUCTS = (
    Product("row", _row, pixels=1, depth=70, units=35, int8_zero_points=(-128, 127)),
    Product("rows", fully_connected, pixels=18, depth=36, units=35, shifts=range(-30, 2, 3)),
)
PLAIN = (PRODUCTS[0].plain,)


def mandatory() -> Iterator[Case]:
    for product in PRODUCTS:
        yield from product_cases(product)
    yield from _long()


def _long() -> Iterator[Case]:
    """Loops that go round many times, with every number of units behind a group; layers without a bias."""
    for number, (units, depth) in enumerate(((4, 4000), (2, 256), (10, 64), (1, 1027), (9, 509), (16, 640))):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        layer = fully_connected(draw, 1, depth, units)
        yield Case(f"long {units} x {depth}", ("tails: depth",), layer, drawn_inputs(draw, layer))
    for number in range(24):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        depth = 4 * draw.integer(14, 40) - draw.choose(0, 0, 1)
        layer = fully_connected(draw, 1, depth, number % 8 + 1, rounding=draw.choose("single", "double"))
        weights = layer.constant("weights")
        lowest = np.maximum(weights, -127 if weights.dtype == np.int8 else 1)  # as the converter writes them
        layer = LayerView(layer.layer, layer.tensors, {**layer.arrays, layer.layer.constants["weights"]: lowest})
        yield Case(f"row of {depth}, {number % 8 + 1} units", ("tails: units",), layer, drawn_inputs(draw, layer))
    for number in range(6):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        layer = without_bias(fully_connected(draw, 1 + number % 3, 16, 16))
        yield Case(f"no bias {number}", ("no bias",), layer, drawn_inputs(draw, layer))
