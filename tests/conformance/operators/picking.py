"""Cases of elements picked by tables, and of rows by indices, on every type of element."""

from collections.abc import Iterator

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.picking import KINDS, Gather, Pick
from tests.conformance.case import Case, Inputs, cases, extremes, values
from tests.conformance.draw import Draw, image, view

OPS = ("pick", "gather_rows")
TYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "bool")
_KINDS = sorted(KINDS)


def pick(draw: Draw) -> LayerView:
    """Any axes with tables of any numbers, one, some or many."""
    size, kind = draw.shape(), draw.choose(*_KINDS)
    layouts = [draw.layout() if len(size) == 4 else "" for _ in range(2)]
    axes = [axis for axis in range(len(size)) if draw.integer(0, 1)] or [draw.integer(0, len(size) - 1)]
    out = [draw.choose(1, 2, 5, 17) if axis in axes else n for axis, n in enumerate(size)]
    tables = {
        f"from{number}": draw.rng.integers(0, size[axis], out[axis]).astype(np.int32)
        for number, axis in enumerate(axes)
    }
    inputs = [image("x", size, draw.dtype, layouts[0])]
    return view(Pick(kind=kind, axes=tuple(axes)), inputs, image("y", tuple(out), draw.dtype, layouts[1]), tables)


def gather(draw: Draw) -> LayerView:
    """With and without batches and axes in front, by one index or several, also such that count from the end."""
    sizes = tuple(draw.integer(1, 6) for _ in range(draw.integer(1, 3)))
    batch, outer, inner, rows = (draw.choose(1, 1, 2, 5) for _ in range(4))
    negative = bool(draw.integer(0, 1))
    op = Gather(kind="gather", batch=batch, outer=outer, sizes=sizes, inner=inner, rows=rows, negative=negative)
    x = image("x", (batch, outer, int(np.prod(sizes)), inner), draw.dtype)
    indices = image("indices", (batch, rows, len(sizes)), draw.choose("int32", "int32", "int16", "int64"))
    return view(op, [x, indices], image("y", (batch, outer, rows, inner), draw.dtype))


def many_rows() -> LayerView:
    """By indices of 16 bits, which reach a part of the rows."""
    op = Gather(kind="gather", batch=1, outer=1, sizes=(33000,), inner=1, rows=3)
    x, indices = image("x", (1, 1, 33000, 1), "int8"), image("indices", (1, 3, 1), "int16")
    return view(op, [x, indices], image("y", (1, 1, 3, 1), "int8"))


def _inputs(draw: Draw, layer: LayerView) -> tuple[Inputs, ...]:
    """Values and, where there are indices, some inside of their sizes; then the extremes of both."""
    x = values(draw, layer.inputs[0])
    if len(layer.inputs) == 1:
        return ((x,), *extremes(layer.inputs)[:2])
    indices = layer.inputs[1]
    least = -1 if layer.op.negative else 0
    drawn = [draw.rng.integers(least * size, size, indices.shape[:-1]) for size in layer.op.sizes]
    return ((x, np.stack(drawn, axis=-1).astype(indices.dtype)), *extremes(layer.inputs))


def drawn(draw: Draw) -> LayerView:
    """Either."""
    return gather(draw) if draw.integer(0, 2) == 0 else pick(draw)


def mandatory() -> Iterator[Case]:
    for number in range(42):
        draw = Draw(number, TYPES[number % len(TYPES)])
        layer = pick(draw)
        yield Case(f"pick {number}", ("extremes", layer.op.kind), layer, _inputs(draw, layer))
    yield from cases(42, gather, "extremes", "gather", name="gather", types=TYPES, inputs=_inputs)
    layer = many_rows()
    yield Case("gather of more rows than int16 counts", ("extremes", "gather"), layer, _inputs(Draw(42, "int8"), layer))
