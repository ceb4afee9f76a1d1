"""Two tensors that broadcast, element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stages.ir.models.naming import named
from stages.ir.operators.channels import ValueRange, every_channel
from stages.ir.operators.declaration import FLOAT, NUMBERS, WIDE, OneOperatorModel, Operator, Table
from stages.ir.operators.even import Even
from stages.ir.operators.functions16 import PowerOfTwoSum
from stages.ir.operators.layer import Clamped, LayerOp, Rounding, Shifted
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.ir.operators.wide_div import WideDiv

if TYPE_CHECKING:
    from stages.ir.graph import LayerView
    from stages.ir.models.operators import OneOperator
    from stages.ir.models.tflite_writer import Tensor as FileTensor
    from stages.ir.operators.layer import Array


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


def _between(ends: Sequence[Array]) -> ValueRange:
    import numpy as np

    return ValueRange(np.min(ends, axis=0).astype(np.int64), np.max(ends, axis=0).astype(np.int64))


_WHOLE = ("float32", "int32")


class Add(Clamped):
    """ADD and SUB with broadcasting: both inputs are rescaled to a common scale, added (or subtracted), requantized.

    t_i = M((x_i - zero_point_i) << left_shift, multiplier_i, shift_i)
    y = M(t_0 +- t_1, output_multiplier, output_shift) + output_zero_point

    Where `rounding` is `floor`, t_i = (x_i - zero_point_i) * multiplier_i and
    y = ((t_0 +- t_1) * output_multiplier + output_offset >> output_shift) + output_zero_point.
    """

    by_element: ClassVar[bool] = True
    uniform: ClassVar[bool] = True
    op: Literal["add", "sub"]
    zero_points: tuple[int, int]
    left_shift: int
    multipliers: tuple[int, int]
    shifts: tuple[int, int]
    output_multiplier: int
    output_shift: int
    output_offset: int = 0
    rounding: Rounding = "double"

    def reach(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """It rises with the first operand and, as ADD, with the second."""
        a, b = inputs
        low, high = (b.least, b.most) if self.op == "add" else (b.most, b.least)
        return _between([self.compute(view, a.least, low), self.compute(view, a.most, high)])

    def carries(self, view: LayerView) -> tuple[Array, ...]:
        return every_channel(view)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, scale_and_floor

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

    by_element: ClassVar[bool] = True
    uniform: ClassVar[bool] = True
    op: Literal["mul"] = "mul"
    zero_points: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"

    def reach(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        a, b = ((x.least, x.most) for x in inputs)
        return _between([self.compute(view, x, y) for x in a for y in b])

    def carries(self, view: LayerView) -> tuple[Array, ...]:
        return every_channel(view)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier

        a, b = (x.astype(np.int64) - zero for x, zero in zip(inputs, self.zero_points, strict=True))
        return self.clamped(
            view, multiply_by_quantized_multiplier(a * b, self.output_multiplier, self.output_shift, self.rounding)
        )


class Extremum(LayerOp):
    """The larger, or the smaller, integer of two with broadcasting, whatever numbers they stand for."""

    by_element: ClassVar[bool] = True
    op: Literal["maximum", "minimum"]

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """None where not all integers move alike."""
        return Shifted(self) if {*inputs} == {output} else None

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        return (np.maximum if self.op == "maximum" else np.minimum)(*inputs)


class SquaredDifference(Clamped):
    """Both inputs brought to a common scale as by `Add`; y = M((t_0 - t_1)^2, output_multiplier, output_shift) + zp."""

    by_element: ClassVar[bool] = True
    op: Literal["squared_difference"] = "squared_difference"
    zero_points: tuple[int, int]
    left_shift: int
    multipliers: tuple[int, int]
    shifts: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier

        first, second = (
            multiply_by_quantized_multiplier(
                (x.astype(np.int64) - zero) << self.left_shift, multiplier, shift, self.rounding
            )
            for x, zero, multiplier, shift in zip(inputs, self.zero_points, self.multipliers, self.shifts, strict=True)
        )
        scaling = (self.output_multiplier, self.output_shift, self.rounding)
        return self.clamped(view, multiply_by_quantized_multiplier((first - second) ** 2, *scaling))


class Div(Clamped):
    """Quotients of v = x_0 - zp_0 and d = x_1 - zp_1 with broadcasting, both negated where d < 0:

    u = H(v << h, inverse[d]), w = H(u, output_multiplier), y = w / 2^e + zp to the nearest, halves away from zero

    where H(a, b) is a * b / 2^31 to the nearest, halves up, h the bits that v leaves free in an int32, and
    e = h + floor(log2(d)) - output_shift. Where e is above 31, y = (w >> e % 32) + (w >= 0) + zp, modulo 2^32: C leaves
    such a shift undefined, and this is what the reference's processors do.

    Constants: inverse, int32[256], 2^(31 + floor(log2(d))) / d in Q0.31 by Newton steps; bits, int32[256], the bits of
    each index. The reference stops at d = 0; here inverse[0] is 0.
    """

    by_element: ClassVar[bool] = True
    op: Literal["div"] = "div"
    zero_points: tuple[int, int]
    output_multiplier: int
    output_shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.ir.arithmetic.fixed_point import rounding_divide_by_pot, saturating_rounding_doubling_high_mul, wrap

        value, divisor = (x.astype(np.int64) - zero for x, zero in zip(inputs, self.zero_points, strict=True))
        value, divisor = np.where(divisor < 0, -value, value), np.abs(divisor)
        inverse, bits = view.constant("inverse").astype(np.int64), view.constant("bits").astype(np.int64)
        room = 31 - bits[np.where(value < 0, -1 - value, value)]
        quotient = saturating_rounding_doubling_high_mul(value << room, inverse[divisor])
        scaled = saturating_rounding_doubling_high_mul(quotient, self.output_multiplier)
        exponent = room + bits[divisor] - 1 - self.output_shift
        undefined = (scaled >> (exponent & 31)) + (scaled >= 0)
        divided = rounding_divide_by_pot(scaled, np.clip(exponent, 0, 31))
        total = wrap(np.where(exponent > 31, undefined, divided) + self.output_zero_point)
        return np.clip(total, self.act_min, self.act_max).astype(view.outputs[0].dtype)


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


def _computed(name: str, layers: tuple[type[LayerOp], ...], combine: Callable[[float, float], float]) -> Operator:
    return Operator(
        name,
        binary_shape,
        (2, 2),
        table=_table(name.title()),
        types=(*NUMBERS, "int16"),
        layout="following",
        layers=layers,
        model=_binary_model(combine),
    )


def _pair_model(combine: Callable[[float, float], float]) -> OneOperatorModel:
    """As `_binary_model`, of an operator without options; the output has the range of the results at the corners."""

    def build(one: OneOperator, x: FileTensor) -> FileTensor:
        spec, out, quants = one.spec, None, (one.quant, one.second())
        other = second_operand(one)
        if quants[0] and quants[1]:
            corners = [combine(p, q) for p in one.range(quants[0]) for q in one.range(quants[1])]
            out = one.output(min(corners), max(corners))
        return one.builder.emit(spec.op.upper(), [x, other], None, out, spec.op)

    return OneOperatorModel(build, frozenset({"other_shape", "other", "constant", "output"}))


def _called(name: str) -> Callable[[Any, Any], Any]:
    """The body that is one Relax operator."""

    def body(a: Any, b: Any) -> Any:
        from tvm import relax

        return getattr(relax.op, name)(a, b)

    return body


def _squared_difference(a: Any, b: Any) -> Any:
    from tvm import relax

    return relax.op.square(relax.op.subtract(a, b))


def _extremum(name: str) -> Operator:
    return Operator(
        name,
        binary_shape,
        (2, 2),
        types=(*NUMBERS, "int16"),
        body=_called(name.lower()),
        layout="following",
        layers=(Extremum,),
        model=OneOperatorModel(_extremum_model, frozenset({"other_shape", "constant"})),
        limits="of 8 and 16 bits the integers themselves, whatever the scales",
    )


def _extremum_model(one: OneOperator, x: FileTensor) -> FileTensor:
    """All tensors have the first input's scale, as converters write it."""
    spec, quant = one.spec, one.quant or (None,)
    shape = (spec.batch, *(spec.other_shape or spec.shape))
    if spec.constant:
        other = one.builder.constant("other", one.constant(shape[1:] if spec.other_shape else shape), *quant)
    else:
        other = one.builder.input("other", shape, spec.dtype, *quant)
    return one.builder.emit(spec.op.upper(), [x, other], None, one.quant, spec.op)


def _sum_shape(operation: Operation) -> list[Shape]:
    """All tensors are alike."""
    first = operation.input(0)
    for position in range(1, len(operation.inputs)):
        other = operation.input(position)
        if other.shape != first.shape:
            shapes = f"{named(first)} {listed(first.shape)} and {named(other)} {listed(other.shape)}"
            raise Refused(f"adds {shapes}; all must have one shape")
    return [first.shape]


OPERATORS = (
    _computed("ADD", (Add, PowerOfTwoSum, Even), operator.add),
    Operator("ADD_N", _sum_shape, (1, 1 << 10), types=_WHOLE, quantized=False, layout="following"),
    Operator(
        "DIV",
        binary_shape,
        (2, 2),
        table=_table("Div"),
        types=(*WIDE, "int32"),
        body=_called("divide"),
        layout="following",
        layers=(Div, WideDiv),
        limits="LiteRT stops at a divisor of 0",
    ),
    _extremum("MAXIMUM"),
    _extremum("MINIMUM"),
    _computed("MUL", (Mul, Even), operator.mul),
    Operator("POW", binary_shape, (2, 2), types=FLOAT, quantized=False, layout="following"),
    Operator(
        "SQUARED_DIFFERENCE",
        binary_shape,
        (2, 2),
        types=("int8", "float32", "int32"),
        body=_squared_difference,
        layout="following",
        layers=(SquaredDifference,),
        model=_pair_model(lambda a, b: (a - b) ** 2),
    ),
    _computed("SUB", (Add, PowerOfTwoSum, Even), operator.sub),
)
