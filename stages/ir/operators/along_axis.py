"""ARG_MAX, ARG_MIN and CUMSUM: operators that walk along an axis."""

from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.axes import axis_of
from stages.ir.operators.declaration import COMPUTED, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.operation import Operation, Refused, Shape, Table
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_OUTPUTS = {2: "int32", 4: "int64"}  # by the schema's TensorType


class ArgExtreme(LayerOp):
    """Index along `axis` (logical) of the largest or smallest element, the first of equals.

    The output lacks the axis.
    """

    op: Literal["arg_max", "arg_min"]
    any_type: ClassVar[bool] = True
    axis: int

    @property
    def is_max(self) -> bool:
        """True if it finds the largest element."""
        return self.op == "arg_max"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the indices in the output's type."""
        extreme = np.argmax if self.is_max else np.argmin
        return extreme(inputs[0], axis=self.axis).astype(view.outputs[0].dtype)


class Cumsum(LayerOp):
    """Sum of all elements up to each one along `axis` (logical), or before it; integers wrap."""

    op: Literal["cumsum"] = "cumsum"
    any_type: ClassVar[bool] = True
    axis: int
    exclusive: bool
    reverse: bool

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Add elements one by one, in the input's type."""
        x = np.moveaxis(inputs[0], self.axis, 0)
        if self.reverse:
            x = x[::-1]
        sums = np.empty_like(x)
        total = np.zeros(x.shape[1:], x.dtype)
        with np.errstate(over="ignore"):
            for index in range(len(x)):
                sums[index] = total if self.exclusive else total + x[index]
                total = total + x[index]
        return np.moveaxis(sums[::-1] if self.reverse else sums, 0, self.axis)


def _table(operation: Operation) -> Table:
    return {"ARG_MAX": ARG_MAX, "ARG_MIN": ARG_MIN}[operation.op]


def _arg(operation: Operation) -> list[Shape]:
    shape = operation.input(0).shape
    axis = axis_of(operation.integers(1, "the axis", 1)[0], shape)
    if operation.outputs:
        output_type, out = operation.options(_table(operation))["output_type"], operation.outputs[0]
        if output_type not in _OUTPUTS:
            raise Refused(f"has the output type {output_type}; it is int32 or int64")
        if out.index >= 0 and out.dtype != _OUTPUTS[output_type]:
            raise Refused(f"computes {_OUTPUTS[output_type]}, but the file declares {out.dtype} in {named(out)}")
    return [(*shape[:axis], *shape[axis + 1 :])]


def _cumsum(operation: Operation) -> list[Shape]:
    axis_of(operation.integers(1, "the axis", 1)[0], operation.input(0).shape)
    return [operation.input(0).shape]


def _arg_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    b, name, axis = model.builder, model.spec.op, model.spec.axis % len(x.shape)
    out = b.tensor(name, (*x.shape[:axis], *x.shape[axis + 1 :]), "int32")
    inputs = [x, b.constant(f"{name}/axis", np.array([axis], np.int32))]
    table = "ArgMaxOptions" if name == "arg_max" else "ArgMinOptions"
    b.operator(name.upper(), inputs, [out], table, {"outputType": 2}, version=2 if model.spec.dtype == "int8" else 1)
    return out


def _arg_operator(name: str, table: Table) -> Operator:
    return Operator(
        name,
        _arg,
        Tensors((2, 2), types=(*COMPUTED, "int32", "bool"), results=("int32", "int64"), indices=(1,)),
        table=table,
        quantization=Quantization(scales="any"),
        legalization=Legalization((ArgExtreme,), opaque=True),
        model=SingleOperatorModel(_arg_model, frozenset({"axis"})),
    )


ARG_MAX = Table("ArgMaxOptions", "output_type:byte")
ARG_MIN = Table("ArgMinOptions", "output_type:byte")

OPERATORS = (
    _arg_operator("ARG_MAX", ARG_MAX),
    _arg_operator("ARG_MIN", ARG_MIN),
    Operator(
        "CUMSUM",
        _cumsum,
        Tensors((2, 2), types=("float32", "int32", "int64"), indices=(1,)),
        table=Table("CumsumOptions", "exclusive:bool reverse:bool"),
        legalization=Legalization((Cumsum,), opaque=True),
        litert=LiteRT(version=1),
    ),
)
