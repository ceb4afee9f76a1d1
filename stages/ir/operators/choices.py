"""Comparisons, logic and selection, element by element."""

from typing import ClassVar, Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.activations import same_shape
from stages.ir.operators.arithmetic import binary_shape, broadcast
from stages.ir.operators.declaration import (
    EIGHT_BITS,
    MOVED,
    NUMBERS,
    Legalization,
    LiteRT,
    Operator,
    Quantization,
    Tensors,
)
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

BOOL = ("bool",)
LEFT_SHIFT = 8  # of 8-bit operands, before rescaling


def is_scaled(op: str, dtype: str) -> bool:
    """Whether operands are rescaled before the comparison.

    True for 8 bits, and for int16 with EQUAL and NOT_EQUAL.
    """
    return dtype in EIGHT_BITS or (dtype == "int16" and op in ("equal", "not_equal"))


def _compared(operation: Operation) -> list[Shape]:
    for position in range(2):
        tensor = operation.input(position)
        scale = tensor.scale[0] if is_scaled(operation.op.lower(), tensor.dtype) and tensor.scale.size else 0
        if scale >= 1:
            message = f"compares {named(tensor)} with the scale {float(scale):g}; it must be below 1"
            raise Refused(message, "LiteRT's result for a larger scale is undefined. Quantize the model again.")
    return binary_shape(operation)


class Comparison(LayerOp):
    """A comparison with broadcasting, to bool.

    If `is_scaled`, operands are rescaled first: t_i = M((x_i - zero_point_i) << 8, multiplier_i, shift_i). Else the raw
    integers are compared.
    """

    op: Literal["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]
    any_type: ClassVar[bool] = True
    zero_points: tuple[int, int] = (0, 0)
    multipliers: tuple[int, int] = (0, 0)
    shifts: tuple[int, int] = (0, 0)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the comparison of the rescaled operands."""
        if is_scaled(self.op, view.inputs[0].dtype):
            every = zip(inputs, self.zero_points, self.multipliers, self.shifts, strict=True)
            inputs = tuple(
                multiply_by_quantized_multiplier((x.astype(np.int64) - zero) << LEFT_SHIFT, multiplier, shift, "double")
                for x, zero, multiplier, shift in every
            )
        return getattr(np, self.op)(*inputs)


class Logic(LayerOp):
    """AND, OR and NOT of booleans, with broadcasting."""

    op: Literal["logical_and", "logical_or", "logical_not"]
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the result as bool."""
        return getattr(np, self.op)(*inputs)


class Select(LayerOp):
    """y = x_1 where the boolean x_0, else x_2, with broadcasting; bytes are copied."""

    op: Literal["select"] = "select"
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the selected elements."""
        return np.where(*inputs)


def _select(operation: Operation) -> list[Shape]:
    """Shape rule of SELECT: both values have one shape.

    The condition has that shape, one element, or one element for each index of the first axis.
    """
    condition, shape = operation.input(0), operation.input(1).shape
    _check_condition(operation)
    if operation.input(2).shape != shape:
        other = listed(operation.input(2).shape)
        raise Refused(f"chooses between tensors of shapes {listed(shape)} and {other}; they must be equal")
    if condition.shape not in (shape, (), (1,), shape[:1]):
        raise Refused(f"cannot select from {listed(shape)} by {named(condition)} {listed(condition.shape)}")
    return [shape]


def _select_v2(operation: Operation) -> list[Shape]:
    _check_condition(operation)
    shape: Shape | None = ()
    for position in range(3):
        shape = None if shape is None else broadcast(shape, operation.input(position).shape)
    if shape is None:
        shapes = " and ".join(listed(operation.input(position).shape) for position in range(3))
        raise Refused(f"cannot broadcast {shapes}")
    return [shape]


def _check_condition(operation: Operation) -> None:
    condition = operation.input(0)
    if condition.dtype != "bool":
        raise Refused(f"has a condition of {condition.dtype} in {named(condition)}; it must be bool")


def _compared_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec, b = model.spec, model.builder
    shape = (spec.batch, *(spec.other_shape or spec.shape))
    other = b.input("x_1", shape, spec.dtype, *(model.second() or (None,)))
    out = b.tensor(spec.op, broadcast(x.shape, other.shape) or (), "bool")
    b.operator(spec.op.upper(), [x, other], [out], version=2 if spec.dtype == "int8" else 1)
    return out


def _comparison(name: str, *more: str) -> Operator:
    return Operator(
        name,
        _compared,
        Tensors((2, 2), types=(*NUMBERS, "int16", *more), results=BOOL),
        legalization=Legalization((Comparison,), opaque=True),
        model=SingleOperatorModel(_compared_model, frozenset({"other_shape", "other"})),
        limits="scales below 1; int16: raw integers, scales are ignored"
        if name not in ("EQUAL", "NOT_EQUAL")
        else "scales below 1",
    )


def _logic(name: str, inputs: int) -> Operator:
    shapes = binary_shape if inputs == 2 else same_shape
    return Operator(
        name,
        shapes,
        Tensors((inputs, inputs), types=BOOL),
        legalization=Legalization((Logic,), opaque=True),
        litert=LiteRT(version=1),
    )


OPERATORS = (
    _comparison("EQUAL", "bool"),
    _comparison("GREATER"),
    _comparison("GREATER_EQUAL"),
    _comparison("LESS"),
    _comparison("LESS_EQUAL"),
    _comparison("NOT_EQUAL", "bool"),
    _logic("LOGICAL_AND", 2),
    _logic("LOGICAL_NOT", 1),
    _logic("LOGICAL_OR", 2),
    Operator(
        "SELECT",
        _select,
        Tensors((3, 3), types=MOVED, apart=(0,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Select,), opaque=True),
        litert=LiteRT(version=1),
    ),
    Operator(
        "SELECT_V2",
        _select_v2,
        Tensors((3, 3), types=MOVED, apart=(0,)),
        quantization=Quantization(scales="any"),
        legalization=Legalization((Select,), opaque=True),
        litert=LiteRT(version=1),
    ),
)
