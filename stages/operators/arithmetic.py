"""Two tensors that broadcast, element by element."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from stages.models.naming import named
from stages.operators.declaration import NUMBERS, Operator, Table
from stages.operators.layer import Clamped, Rounding
from stages.operators.operation import Operation, Refused, Shape, listed

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.operators.layer import Array


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """The common shape, as NumPy has it; None when there is none."""
    found = []
    for a, b in zip_longest(reversed(left), reversed(right), fillvalue=1):
        if a != b and 1 not in (a, b):
            return None
        found.append(b if a == 1 else a)
    return tuple(reversed(found))


def binary_shape(operation: Operation) -> list[Shape]:
    left, right = operation.input(0), operation.input(1)
    found = broadcast(left.shape, right.shape)
    if found is None:
        shapes = f"{named(left)} {listed(left.shape)} and {named(right)} {listed(right.shape)}"
        raise Refused(f"cannot broadcast {shapes}")
    return [found]


class Add(Clamped):
    """ADD and SUB with broadcasting: both inputs are rescaled to a common scale, added (or subtracted), requantized.

    t_i = M((x_i - zero_point_i) << left_shift, multiplier_i, shift_i)
    y = M(t_0 +- t_1, output_multiplier, output_shift) + output_zero_point
    """

    op: Literal["add", "sub"]
    zero_points: tuple[int, int]
    left_shift: int
    multipliers: tuple[int, int]
    shifts: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.reference.integer.elementwise import add

        return add(view, *inputs)


class Mul(Clamped):
    """y = M((x_0 - zp_0) * (x_1 - zp_1), output_multiplier, output_shift) + zp, with broadcasting."""

    op: Literal["mul"] = "mul"
    zero_points: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        from stages.reference.integer.elementwise import mul

        return mul(view, *inputs)


def _table(name: str) -> Table:
    return Table(f"{name}Options", "activation:byte", required=False)


OPERATORS = (
    Operator("ADD", binary_shape, (2, 2), table=_table("Add"), types=NUMBERS, layout="following", layers=(Add,)),
    Operator("DIV", binary_shape, (2, 2), table=_table("Div"), types=NUMBERS, layout="following"),
    Operator("MAXIMUM", binary_shape, (2, 2), types=NUMBERS, layout="following"),
    Operator("MINIMUM", binary_shape, (2, 2), types=NUMBERS, layout="following"),
    Operator("MUL", binary_shape, (2, 2), table=_table("Mul"), types=NUMBERS, layout="following", layers=(Mul,)),
    Operator(
        "SQUARED_DIFFERENCE", binary_shape, (2, 2), types=("float32", "int32"), quantized=False, layout="following"
    ),
    Operator("SUB", binary_shape, (2, 2), table=_table("Sub"), types=NUMBERS, layout="following", layers=(Add,)),
)
