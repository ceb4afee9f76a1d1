"""Cases of BATCH_MATMUL."""

from collections.abc import Iterator

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.matmul import BatchMatmul
from tests.conformance.case import Case, case, cases
from tests.conformance.draw import Draw, bounds, image, middle, view, with_op

OPS = ("batch_matmul",)
BATCHES = (((), ()), ((2,), (2,)), ((2, 3), (1, 3)), ((3,), (2, 3)), ((2, 3), ()), ((1, 2, 2), (3, 1, 2)))


def product(draw: Draw, rows: int, depth: int, units: int, batches: tuple[tuple[int, ...], ...]) -> LayerView:
    """Matrices as they are or exchanged, in every combination."""
    adj_x, adj_y = draw.choose(False, True), draw.choose(False, True)
    first = (*batches[0], *((depth, rows) if adj_x else (rows, depth)))
    second = (*batches[1], *((units, depth) if adj_y else (depth, units)))
    scale = draw.multiplier(-12, -7)
    op = BatchMatmul(
        **draw.clamped(),
        adj_x=adj_x,
        adj_y=adj_y,
        depth=depth,
        zero_points=(draw.zero_point(), draw.zero_point()),
        multiplier=scale[0],
        shift=scale[1],
        rounding=draw.choose("double", "single"),
    )
    out = (*np.broadcast_shapes(*batches), rows, units)
    inputs = [image(name, shape, draw.dtype) for name, shape in (("x0", first), ("x1", second))]
    return view(op, inputs, image("y", tuple(int(size) for size in out), draw.dtype))


def drawn(draw: Draw) -> LayerView:
    draw = Draw(draw.seed)  # int8, the only type that LiteRT has
    rows, depth, units = (draw.choose(1, 2, 3, 4, 5, 8, 9, 17) for _ in range(3))
    return product(draw, rows, depth, units, draw.choose(*BATCHES))


def mandatory() -> Iterator[Case]:
    yield from cases(30, drawn, "shapes", "extremes", name="product")
    for number in range(1, 18):
        draw = Draw(number)
        yield case(f"depth {number}", draw, product(draw, 2, number, 18 - number, BATCHES[1]), "tails", "extremes")
    yield from _long()
    yield from _ties()


def _long() -> Iterator[Case]:
    """More of each axis than a register or a tile holds, in every order; bounds of which only one cuts anything off."""
    for number in range(12):
        draw = Draw(100 + number)
        rows, depth, units = ((5, 35, 9), (6, 17, 12), (3, 70, 7))[number % 3]
        layer = product(draw, rows, depth, units, BATCHES[number % 2])
        ends = {"act_min": (-128, -40)[number // 2 % 2], "act_max": (127, 30)[number // 4 % 2]}
        adjoint = {"adj_x": bool(number & 1), "adj_y": number >= 6}
        layer = with_op(layer, **adjoint, **ends, output_zero_point=0, shift=-9 - depth.bit_length() // 2)
        shapes = (((depth, rows), (rows, depth)), ((depth, units), (units, depth)))
        inputs = [
            image(tensor.name, (*tensor.shape[:-2], *pair[order]), "int8")
            for tensor, pair, order in zip(layer.inputs, shapes, (not adjoint["adj_x"], adjoint["adj_y"]), strict=True)
        ]
        yield case(f"long {number}", draw, view(layer.op, inputs, layer.outputs[0]), "shapes", "tails", "extremes")


def _ties() -> Iterator[Case]:
    """All products of two values, with multipliers whose results are halves often; zero points at the ends."""
    low, high = bounds("int8")
    every = np.arange(low, high + 1).astype(np.int8)
    for rounding in ("double", "single"):
        for number, shift in enumerate((-31, -14, -9, -8, -7, -6, -1, 0)):
            draw = Draw(number)
            layer = product(draw, 256, 1, 256, ((), ()))
            points = ((middle("int8"), low, high)[number % 3], (middle("int8"), high, low)[number // 2 % 3])
            layer = with_op(layer, multiplier=(1 << 30, 3 << 29)[number % 2], shift=shift, rounding=rounding)
            layer = with_op(layer, zero_points=points, output_zero_point=0, act_min=low, act_max=high)
            inputs = tuple(every.reshape(tensor.shape) for tensor in layer.inputs)
            yield Case(f"{rounding} {shift}", (f"ties: {rounding}", "shifts", "zero points"), layer, (inputs,))
