"""Cases of BATCH_MATMUL on int16."""

from collections.abc import Iterator

import numpy as np

from stages.ir.graph import LayerView
from tests.conformance.case import Case, case, cases
from tests.conformance.draw import Draw, bounds, with_op
from tests.conformance.operators.batch_matmul import BATCHES, product

BITS = 16
OPS = ("batch_matmul",)
LOW, HIGH = bounds("int16")


def wide(draw: Draw, rows: int, depth: int, units: int, batches: tuple[tuple[int, ...], ...]) -> LayerView:
    layer = product(draw, rows, depth, units, batches)
    scale = draw.multiplier(-20, -12)
    fields = {"zero_points": (0, 0), "output_zero_point": 0, "multiplier": scale[0], "shift": scale[1]}
    ends = {"act_min": draw.choose(LOW, LOW, 0), "act_max": draw.choose(HIGH, HIGH, draw.integer(100, HIGH))}
    return with_op(layer, **fields, **ends, rounding="wide")


def drawn(draw: Draw) -> LayerView:
    draw = Draw(draw.seed, "int16")
    rows, depth, units = (draw.choose(1, 2, 3, 4, 5, 8, 9, 17) for _ in range(3))
    return wide(draw, rows, depth, units, draw.choose(*BATCHES))


def mandatory() -> Iterator[Case]:
    yield from cases(24, drawn, "shapes", "extremes", name="product", types=("int16",))
    for depth in (*range(1, 12), 700):  # sums far beyond 32 bits
        draw = Draw(depth, "int16")
        yield case(f"depth {depth}", draw, wide(draw, 2, depth, 1 + depth % 5, BATCHES[1]), "tails", "extremes")
    yield from _ties()


def _ties() -> Iterator[Case]:
    """Products on the halves of every shift and beside them; sums that int32 holds no more once they are scaled."""
    for shift in range(-31, 15):
        draw = Draw(shift + 40, "int16")
        halves = (
            [sign * (2 * k + 1) * 2**-shift for k in (0, 1, 2, 7, 100, 16383) for sign in (1, -1)] if shift <= 0 else []
        )
        wanted = np.array([half + beside for half in halves for beside in (0, 1, -1)] or range(-18, 18), np.int64)
        # Of a depth of two a sum is high * 2^15 + low: what does not fit is left out.
        pairs = np.stack([wanted >> 15, wanted & 0x7FFF], axis=1)
        pairs = pairs[np.abs(pairs[:, 0]) < 1 << 15]
        if not len(pairs):
            continue
        for multiplier in (1 << 30, (1 << 30) + (1 << 15), 0x7FFEFFFF, 0x7FFF8000, (1 << 31) - 1):
            layer = wide(draw, len(pairs), 3, 1, ((), ()))
            layer = with_op(layer, multiplier=multiplier, shift=shift, act_min=LOW, act_max=HIGH)
            rows = np.concatenate([pairs, pairs[:, :1]], axis=1).astype(np.int16)  # high * 16384 twice, and low
            column = np.array([[1 << 14], [1], [1 << 14]], np.int16)
            x = rows.T if layer.op.adj_x else rows
            w = column.T if layer.op.adj_y else column
            inputs = (np.ascontiguousarray(x), np.ascontiguousarray(w))
            yield Case(f"wide {shift} {multiplier}", ("ties", "shifts"), layer, (inputs,))
