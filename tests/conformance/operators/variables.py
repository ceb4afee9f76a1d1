"""Cases of layers that read and write a variable."""

from __future__ import annotations

from collections.abc import Iterator

from stages.ir.graph import LayerView
from stages.ir.operators.variables import Assign, Read
from tests.conformance.case import Case, drawn_inputs
from tests.conformance.draw import Draw, image, view

OPS = ("read_variable", "assign_variable")
_TYPES = ("int8", "uint8", "int16", "int32", "int64", "float32")


def variable(op: Read | Assign, shape: tuple[int, ...], dtype: str) -> LayerView:
    """The state of an Assign is its output's memory: a case sees the output."""
    return view(op, [image("x", shape, dtype)], image("y", shape, dtype))


def drawn(draw: Draw) -> LayerView:
    shape = draw.shape()
    return variable(draw.choose(Read(), Assign()), shape, draw.choose(*_TYPES))


def mandatory() -> Iterator[Case]:
    """Runs of few bytes and of many, of every type."""
    for number, dtype in enumerate(_TYPES):
        draw = Draw(number, dtype)
        for shape in ((1,), (3,), (4, 5), (1, 2, 3, 7)):
            for op in (Read(), Assign()):
                layer = variable(op, shape, dtype)
                yield Case(f"{op.op} {dtype} {shape}", ("tails", "extremes"), layer, drawn_inputs(draw, layer))
