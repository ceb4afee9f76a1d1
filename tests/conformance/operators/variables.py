"""Cases of layers that read and write a variable."""

from collections.abc import Iterator

from stages.ir.graph import LayerView
from stages.ir.operators.variables import Assign, Read, Slide
from tests.conformance.case import Case, case
from tests.conformance.draw import Draw, image, view

OPS = ("read_variable", "assign_variable", "slide")
_TYPES = ("int8", "uint8", "int16", "int32", "int64", "float32")


def variable(op: Read | Assign, shape: tuple[int, ...], dtype: str) -> LayerView:
    """The state of an Assign is its output's memory: a case sees the output."""
    return view(op, [image("x", shape, dtype)], image("y", shape, dtype))


def slide(shape: tuple[int, ...], axis: int, source: int, target: int, rows: int, dtype: str) -> LayerView:
    """Rows that move within a state of `shape`."""
    moved = (*shape[:axis], rows, *shape[axis + 1 :])
    op = Slide(axis=axis, source=source, target=target, rows=rows)
    return view(op, [], image("y", moved, dtype), state=(image("state", shape, dtype),))


def drawn_slide(draw: Draw, dtype: str) -> LayerView:
    """Towards the begin or the end, over each other or not, in one window or several."""
    axis, rows = draw.integer(0, 2), draw.integer(2, 12)
    source, target = draw.integer(0, rows - 1), draw.integer(0, rows - 1)
    target += (source == target) * (1 if source == 0 else -1)
    shape = [draw.integer(1, 3), draw.integer(1, 3), draw.choose(1, 2, 3, 8, 16, 37)]
    shape[axis] = rows
    return slide((*shape,), axis, source, target, draw.integer(1, rows - max(source, target)), dtype)


def drawn(draw: Draw) -> LayerView:
    shape, dtype = draw.shape(), draw.choose(*_TYPES)
    op = draw.choose(Read(), Assign(), None)
    return drawn_slide(draw, dtype) if op is None else variable(op, shape, dtype)


def mandatory() -> Iterator[Case]:
    """Runs of few bytes and of many, of every type."""
    for number, dtype in enumerate(_TYPES):
        draw = Draw(number, dtype)
        for shape in ((1,), (3,), (4, 5), (1, 2, 3, 7)):
            for op in (Read(), Assign()):
                yield case(f"{op.op} {dtype} {shape}", draw, variable(op, shape, dtype), "tails", "extremes")
        for axis, source, target, rows in ((1, 1, 0, 6), (1, 3, 1, 2), (1, 0, 2, 5), (2, 1, 0, 4)):
            layer = slide((2, 7, 5), axis, source, target, rows, dtype)
            yield case(f"slide {dtype} {axis} {source} {target}", draw, layer, "tails", "extremes")
