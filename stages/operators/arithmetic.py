"""Two tensors that broadcast, element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from stages.messages.naming import named
from stages.operators.channels import Reach, every_channel
from stages.operators.declaration import NUMBERS, OneOperatorModel, Operator, Table
from stages.operators.layer import Clamped, LayerOp, Rounding
from stages.operators.operation import Operation, Refused, Shape, listed

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.models.operators import OneOperator
    from stages.models.tflite_writer import Tensor as FileTensor
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


def _between(ends: Sequence[Array]) -> Reach:
    import numpy as np

    return Reach(np.min(ends, axis=0).astype(np.int64), np.max(ends, axis=0).astype(np.int64))


class Add(Clamped):
    """ADD and SUB with broadcasting: both inputs are rescaled to a common scale, added (or subtracted), requantized.

    t_i = M((x_i - zero_point_i) << left_shift, multiplier_i, shift_i)
    y = M(t_0 +- t_1, output_multiplier, output_shift) + output_zero_point

    Where `rounding` is `floor`, t_i = (x_i - zero_point_i) * multiplier_i and
    y = ((t_0 +- t_1) * output_multiplier + output_offset >> output_shift) + output_zero_point.
    """

    op: Literal["add", "sub"]
    zero_points: tuple[int, int]
    left_shift: int
    multipliers: tuple[int, int]
    shifts: tuple[int, int]
    output_multiplier: int
    output_shift: int
    output_offset: int = 0
    rounding: Rounding = "double"

    def reach(self, view: LayerView, inputs: Sequence[Reach]) -> Reach:
        """It rises with the first operand and, as ADD, with the second."""
        a, b = inputs
        low, high = (b.least, b.most) if self.op == "add" else (b.most, b.least)
        return _between([self.compute(view, a.least, low), self.compute(view, a.most, high)])

    def carries(self, view: LayerView) -> tuple[Array, ...]:
        return every_channel(view)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier, scale_and_floor

        sign = 1 if self.op == "add" else -1
        if self.rounding == "floor":
            first, second = (
                (x.astype(np.int64) - zero) * multiplier
                for x, zero, multiplier in zip(inputs, self.zero_points, self.multipliers, strict=True)
            )
            scaling = (self.output_multiplier, self.output_offset, self.output_shift)
            return self.clamped(view, scale_and_floor(first + sign * second, *scaling))
        first, second = (
            multiply_by_quantized_multiplier(
                (x.astype(np.int64) - zero) << self.left_shift, multiplier, shift, self.rounding
            )
            for x, zero, multiplier, shift in zip(inputs, self.zero_points, self.multipliers, self.shifts, strict=True)
        )
        return self.clamped(
            view,
            multiply_by_quantized_multiplier(
                first + sign * second, self.output_multiplier, self.output_shift, self.rounding
            ),
        )


class Mul(Clamped):
    """y = M((x_0 - zp_0) * (x_1 - zp_1), output_multiplier, output_shift) + zp, with broadcasting."""

    op: Literal["mul"] = "mul"
    zero_points: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"

    def reach(self, view: LayerView, inputs: Sequence[Reach]) -> Reach:
        a, b = ((x.least, x.most) for x in inputs)
        return _between([self.compute(view, x, y) for x in a for y in b])

    def carries(self, view: LayerView) -> tuple[Array, ...]:
        return every_channel(view)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier

        a, b = (x.astype(np.int64) - zero for x, zero in zip(inputs, self.zero_points, strict=True))
        return self.clamped(
            view, multiply_by_quantized_multiplier(a * b, self.output_multiplier, self.output_shift, self.rounding)
        )


def _table(name: str) -> Table:
    return Table(f"{name}Options", "activation:byte", required=False)


def second_operand(one: OneOperator) -> FileTensor:
    """The other tensor of an operator of two: an input, or a constant of seeded values."""
    spec, builder, quant = one.spec, one.builder, one.second()
    shape = (spec.batch, *(spec.other_shape or spec.shape))
    if not spec.constant:
        return builder.input("other", shape, spec.dtype, *(quant or (None,)))
    shape = shape[1:] if spec.other_shape else shape  # a constant broadcasts over the batch
    return builder.constant("other", one.constant(shape), *(quant or (None,)))


def _binary_model(combine: Callable[[float, float], float]) -> OneOperatorModel:
    def build(one: OneOperator, x: FileTensor) -> FileTensor:
        spec, out, quants = one.spec, None, (one.quant, one.second())
        other = second_operand(one)
        if quants[0] and quants[1]:
            left, right = one.range(quants[0]), one.range(quants[1])
            corners = [combine(p, q) for p in left for q in right]
            out = one.output(min(corners), max(corners))
        method: Callable[..., FileTensor] = getattr(one.builder, spec.op)
        return method(x, other, activation=spec.activation, out=out, name=spec.op)

    return OneOperatorModel(build, frozenset({"other_shape", "other", "constant", "activation", "output"}))


def _computed(name: str, layer: type[LayerOp], combine: Callable[[float, float], float]) -> Operator:
    return Operator(
        name,
        binary_shape,
        (2, 2),
        table=_table(name.title()),
        types=NUMBERS,
        layout="following",
        layers=(layer,),
        model=_binary_model(combine),
    )


OPERATORS = (
    _computed("ADD", Add, operator.add),
    Operator("DIV", binary_shape, (2, 2), table=_table("Div"), types=NUMBERS, layout="following"),
    Operator("MAXIMUM", binary_shape, (2, 2), types=NUMBERS, layout="following"),
    Operator("MINIMUM", binary_shape, (2, 2), types=NUMBERS, layout="following"),
    _computed("MUL", Mul, operator.mul),
    Operator(
        "SQUARED_DIFFERENCE", binary_shape, (2, 2), types=("float32", "int32"), quantized=False, layout="following"
    ),
    _computed("SUB", Add, operator.sub),
)
