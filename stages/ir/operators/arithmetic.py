"""Element-wise operators of two tensors that broadcast."""

import operator
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, ClassVar, Literal

from stages.ir.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    scale_and_floor,
    wrap,
)
from stages.ir.layers import Array, Clamped, LayerOp, LayerView, Rounding
from stages.ir.layers.channels import ValueRange
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.declaration import FLOAT, NUMBERS, WIDE, Legalization, Operator, Quantization, Tensors
from stages.ir.operators.functions16 import PowerOfTwoSum
from stages.ir.operators.half_even import HalfEven
from stages.ir.operators.int32 import WideInteger
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.ir.operators.wide_div import WideDiv
from stages.support.lazy import np, relax


def broadcast(first: Shape, second: Shape) -> Shape | None:
    """Common shape as in NumPy, None if there is none."""
    sizes = []
    for a, b in zip_longest(reversed(first), reversed(second), fillvalue=1):
        if a != b and 1 not in (a, b):
            return None
        sizes.append(b if a == 1 else a)
    return tuple(reversed(sizes))


def binary_shape(operation: Operation) -> list[Shape]:
    """Shape rule of two inputs that broadcast."""
    first, second = operation.input(0), operation.input(1)
    shape = broadcast(first.shape, second.shape)
    if shape is None:
        shapes = f"{named(first)} {listed(first.shape)} and {named(second)} {listed(second.shape)}"
        raise Refused(f"cannot broadcast {shapes}")
    return [shape]


def _between(ends: Sequence[Array]) -> ValueRange:
    return ValueRange(np.min(ends, axis=0).astype(np.int64), np.max(ends, axis=0).astype(np.int64))


_ADD_N_TYPES = ("float32", "int32")


class Add(Clamped):
    """ADD and SUB with broadcasting: rescale both inputs, add or subtract, requantize.

    t_i = M((x_i - zero_point_i) << left_shift, multiplier_i, shift_i)
    y = M(t_0 +- t_1, output_multiplier, output_shift) + output_zero_point

    With `rounding` `floor`, t_i = (x_i - zero_point_i) * multiplier_i and
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

    @property
    def sign(self) -> int:
        """Factor of the second operand: 1 for ADD, -1 for SUB."""
        return 1 if self.op == "add" else -1

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Return the output range: the results at both ends, since the layer is monotonic."""
        a, b = inputs
        low, high = (b.least, b.most) if self.sign > 0 else (b.most, b.least)
        return _between([self.compute(view, a.least, low), self.compute(view, a.most, high)])

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        if self.rounding == "floor":
            first, second = (
                (x.astype(np.int64) - zero) * multiplier
                for x, zero, multiplier in zip(inputs, self.zero_points, self.multipliers, strict=True)
            )
            scaling = (self.output_multiplier, self.output_offset, self.output_shift)
            return self.clamped(view, scale_and_floor(first + self.sign * second, *scaling))
        first, second = (
            multiply_by_quantized_multiplier(
                (x.astype(np.int64) - zero) << self.left_shift, multiplier, shift, self.rounding
            )
            for x, zero, multiplier, shift in zip(inputs, self.zero_points, self.multipliers, self.shifts, strict=True)
        )
        return self.clamped(
            view,
            multiply_by_quantized_multiplier(
                first + self.sign * second, self.output_multiplier, self.output_shift, self.rounding
            ),
        )


class Mul(Clamped):
    """MUL with broadcasting.

    y = M((x_0 - zp_0) * (x_1 - zp_1), output_multiplier, output_shift) + zp
    """

    by_element: ClassVar[bool] = True
    uniform: ClassVar[bool] = True
    op: Literal["mul"] = "mul"
    zero_points: tuple[int, int]
    output_multiplier: int
    output_shift: int
    rounding: Rounding = "double"

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Range of the products of the bounds."""
        a, b = ((x.least, x.most) for x in inputs)
        return _between([self.compute(view, x, y) for x in a for y in b])

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        a, b = (x.astype(np.int64) - zero for x, zero in zip(inputs, self.zero_points, strict=True))
        return self.clamped(
            view, multiply_by_quantized_multiplier(a * b, self.output_multiplier, self.output_shift, self.rounding)
        )


class Extremum(LayerOp):
    """The larger or smaller of two raw integers, with broadcasting."""

    by_element: ClassVar[bool] = True
    shifts_alike: ClassVar[bool] = True
    op: Literal["maximum", "minimum"]

    @property
    def is_max(self) -> bool:
        """True if it computes the larger element."""
        return self.op == "maximum"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the maximum or minimum."""
        return (np.maximum if self.is_max else np.minimum)(*inputs)


class SquaredDifference(Clamped):
    """SQUARED_DIFFERENCE: y = M((t_0 - t_1)^2, output_multiplier, output_shift) + zp.

    t_i are the rescaled inputs, as in `Add`.
    """

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
        first, second = (
            multiply_by_quantized_multiplier(
                (x.astype(np.int64) - zero) << self.left_shift, multiplier, shift, self.rounding
            )
            for x, zero, multiplier, shift in zip(inputs, self.zero_points, self.multipliers, self.shifts, strict=True)
        )
        scaling = (self.output_multiplier, self.output_shift, self.rounding)
        return self.clamped(view, multiply_by_quantized_multiplier((first - second) ** 2, *scaling))


class Div(Clamped):
    """DIV with broadcasting, of v = x_0 - zp_0 by d = x_1 - zp_1, both negated if d < 0.

    u = H(v << h, inverse[d]), w = H(u, output_multiplier), y = w / 2^e + zp to the nearest, halves away from zero

    H(a, b) is a * b / 2^31 to the nearest, halves up; h is the number of bits that v leaves free in an int32, and e = h
    + floor(log2(d)) - output_shift. For e above 31, y = (w >> e % 32) + (w >= 0) + zp, modulo 2^32: C leaves such a
    shift undefined, and the reference's processors do this.

    Constants: inverse, int32[256], 2^(31 + floor(log2(d))) / d in Q0.31 by Newton steps; bits, int32[256], the number
    of bits of each index. The reference aborts at d = 0; here inverse[0] is 0.
    """

    by_element: ClassVar[bool] = True
    op: Literal["div"] = "div"
    zero_points: tuple[int, int]
    output_multiplier: int
    output_shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        value, divisor = (x.astype(np.int64) - zero for x, zero in zip(inputs, self.zero_points, strict=True))
        value, divisor = np.where(divisor < 0, -value, value), np.abs(divisor)
        inverse, bits = view.constant("inverse").astype(np.int64), view.constant("bits").astype(np.int64)
        free_bits = 31 - bits[np.where(value < 0, -1 - value, value)]
        quotient = saturating_rounding_doubling_high_mul(value << free_bits, inverse[divisor])
        scaled = saturating_rounding_doubling_high_mul(quotient, self.output_multiplier)
        exponent = free_bits + bits[divisor] - 1 - self.output_shift
        undefined = (scaled >> (exponent & 31)) + (scaled >= 0)
        divided = rounding_divide_by_pot(scaled, np.clip(exponent, 0, 31))
        total = wrap(np.where(exponent > 31, undefined, divided) + self.output_zero_point)
        return np.clip(total, self.act_min, self.act_max).astype(view.outputs[0].dtype)


def _table(name: str) -> Table:
    return Table(f"{name}Options", "activation:byte", required=False)


def second_operand(model: SingleOperatorBuilder) -> FileTensor:
    """Second tensor of a binary operator: an input, or a constant of seeded values."""
    spec, builder, quant = model.spec, model.builder, model.second()
    shape = (spec.batch, *(spec.other_shape or spec.shape))
    if not spec.constant:
        return builder.input("other", shape, spec.dtype, *(quant or (None,)))
    shape = shape[1:] if spec.other_shape else shape  # a constant broadcasts over the batch
    return builder.constant("other", model.constant(shape), *(quant or (None,)))


def _binary_model(combine: Callable[[float, float], float]) -> SingleOperatorModel:
    def build(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
        spec, out, quants = model.spec, None, (model.quant, model.second())
        other = second_operand(model)
        if quants[0] and quants[1]:
            first, second = model.range(quants[0]), model.range(quants[1])
            corners = [combine(p, q) for p in first for q in second]
            out = model.output(min(corners), max(corners))
        method: Callable[..., FileTensor] = getattr(model.builder, spec.op)
        return method(x, other, activation=spec.activation, out=out, name=spec.op)

    return SingleOperatorModel(build, frozenset({"other_shape", "other", "constant", "activation", "output"}))


def _computed(name: str, layers: tuple[type[LayerOp], ...], combine: Callable[[float, float], float]) -> Operator:
    return Operator(
        name,
        binary_shape,
        Tensors((2, 2), types=(*NUMBERS, "int16"), layout="following"),
        table=_table(name.title()),
        legalization=Legalization(layers),
        model=_binary_model(combine),
    )


def _pair_model(combine: Callable[[float, float], float]) -> SingleOperatorModel:
    """As `_binary_model`, without options; the output's range covers the corners."""

    def build(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
        spec, out, quants = model.spec, None, (model.quant, model.second())
        other = second_operand(model)
        if quants[0] and quants[1]:
            corners = [combine(p, q) for p in model.range(quants[0]) for q in model.range(quants[1])]
            out = model.output(min(corners), max(corners))
        return model.builder.emit(spec.op.upper(), [x, other], None, out, spec.op)

    return SingleOperatorModel(build, frozenset({"other_shape", "other", "constant", "output"}))


def _called(name: str) -> Callable[[Any, Any], Any]:
    """Return a function that builds a call of the Relax operator `name`."""

    def body(a: Any, b: Any) -> Any:
        return getattr(relax.op, name)(a, b)

    return body


def _squared_difference(a: Any, b: Any) -> Any:
    return relax.op.square(relax.op.subtract(a, b))


def _extremum(name: str) -> Operator:
    return Operator(
        name,
        binary_shape,
        Tensors((2, 2), types=(*NUMBERS, "int16"), layout="following"),
        legalization=Legalization((Extremum, WideInteger), body=_called(name.lower())),
        model=SingleOperatorModel(_extremum_model, frozenset({"other_shape", "constant"})),
        limits="8 and 16 bits: raw integers, scales are ignored",
    )


def _extremum_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    """All tensors have the first input's scale, as converters write them."""
    spec, quant = model.spec, model.quant or (None,)
    shape = (spec.batch, *(spec.other_shape or spec.shape))
    if spec.constant:
        other = model.builder.constant("other", model.constant(shape[1:] if spec.other_shape else shape), *quant)
    else:
        other = model.builder.input("other", shape, spec.dtype, *quant)
    return model.builder.emit(spec.op.upper(), [x, other], None, model.quant, spec.op)


def _sum_shape(operation: Operation) -> list[Shape]:
    """All inputs have one shape."""
    first = operation.input(0)
    for position in range(1, len(operation.inputs)):
        other = operation.input(position)
        if other.shape != first.shape:
            shapes = f"{named(first)} {listed(first.shape)} and {named(other)} {listed(other.shape)}"
            raise Refused(f"adds {shapes}; all must have one shape")
    return [first.shape]


OPERATORS = (
    _computed("ADD", (Add, PowerOfTwoSum, HalfEven, WideInteger), operator.add),
    Operator(
        "ADD_N",
        _sum_shape,
        Tensors((1, 1 << 10), types=_ADD_N_TYPES, layout="following"),
        quantization=Quantization(quantized=False),
    ),
    Operator(
        "DIV",
        binary_shape,
        Tensors((2, 2), types=(*WIDE, "int32"), layout="following"),
        table=_table("Div"),
        legalization=Legalization((Div, WideDiv, WideInteger), body=_called("divide")),
        limits="LiteRT aborts on a divisor of 0",
    ),
    _extremum("MAXIMUM"),
    _extremum("MINIMUM"),
    _computed("MUL", (Mul, HalfEven, WideInteger), operator.mul),
    Operator(
        "POW",
        binary_shape,
        Tensors((2, 2), types=FLOAT, layout="following"),
        quantization=Quantization(quantized=False),
    ),
    Operator(
        "SQUARED_DIFFERENCE",
        binary_shape,
        Tensors((2, 2), types=("int8", "float32", "int32"), layout="following"),
        legalization=Legalization((SquaredDifference,), body=_squared_difference),
        model=_pair_model(lambda a, b: (a - b) ** 2),
    ),
    _computed("SUB", (Add, PowerOfTwoSum, HalfEven, WideInteger), operator.sub),
)
