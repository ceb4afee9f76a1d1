"""BATCH_MATMUL: products of matrices; one of them may be constant."""

from math import sqrt
from typing import Any, Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, multiply_wide, wrap
from stages.ir.layers import Array, Clamped, LayerView, Rounding, Tensor
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.arithmetic import broadcast
from stages.ir.operators.declaration import Legalization, Operator, Tensors
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_OPTIONS = Table("BatchMatMulOptions", "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool", required=False)
_RANKS = range(2, 6)


def _batch_matmul(operation: Operation) -> list[Shape]:
    options, sides = operation.options(_OPTIONS), (operation.input(0), operation.input(1))
    for side in sides:
        if len(side.shape) not in _RANKS:
            raise Refused(f"has {named(side)} {listed(side.shape)}; LiteRT multiplies matrices of 2 to 5 axes")
    (*first_batch, rows, depth), (*second_batch, deep, columns) = (side.shape for side in sides)
    rows, depth = (depth, rows) if options["adj_x"] else (rows, depth)
    deep, columns = (columns, deep) if options["adj_y"] else (deep, columns)
    batch = broadcast(tuple(first_batch), tuple(second_batch))
    if depth != deep or batch is None:
        shown = " by ".join(f"{named(side)} {listed(side.shape)}" for side in sides)
        adjoint = " and ".join(name for name in ("adj_x", "adj_y") if options[name])
        raise Refused(f"cannot multiply {shown}{f' with {adjoint}' if adjoint else ''}")
    return [(*batch, rows, columns)]


class BatchMatmul(Clamped):
    """BATCH_MATMUL with broadcasting of the batch axes.

    y[..., i, j] = M(sum over k of (a[..., i, k] - zp_0) * (b[..., k, j] - zp_1), multiplier, shift) + zp

    k is below `depth`. With `adj_x` the last two axes of the first operand are exchanged, with `adj_y` those of the
    second. int16 rounds `wide`, in an int32 that wraps, and has no zero points.
    """

    op: Literal["batch_matmul"] = "batch_matmul"
    adj_x: bool = False
    adj_y: bool = False
    depth: int
    zero_points: tuple[int, int]
    multiplier: int
    shift: int
    rounding: Rounding = "double"

    def macs_of(self, out: Tensor) -> int:
        """Multiply-accumulates of the output."""
        return out.elements * self.depth

    def scaling(self, view: LayerView) -> tuple[Array | int, Array | int]:
        """Multiplier and shift, for all channels."""
        return self.multiplier, self.shift

    def sums(self, view: LayerView, *inputs: Array) -> Array:
        """Sums of products, int64, in the output's shape."""
        a, b = (x.astype(np.int64) - zero for x, zero in zip(inputs, self.zero_points, strict=True))
        total: Array = (a.swapaxes(-1, -2) if self.adj_x else a) @ (b.swapaxes(-1, -2) if self.adj_y else b)
        return total

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        total = self.sums(view, *inputs)
        if self.rounding == "wide":
            return self.clamped(view, multiply_wide(total, self.multiplier, self.shift))
        scaled = multiply_by_quantized_multiplier(wrap(total), self.multiplier, self.shift, self.rounding)
        return self.clamped(view, scaled)


def _model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    """Model with a second operand `other_shape`, or of as many columns as the first has rows.

    The output's range is eight deviations of the sums.
    """
    spec, quant = model.spec, model.second()
    shape = (spec.batch, *(spec.other_shape or (*spec.shape[:-2], spec.shape[-1], spec.shape[-2])))
    if spec.constant:
        other = model.builder.constant("other", model.constant(shape), *(quant or (None,)))
    else:
        other = model.builder.input("other", shape, spec.dtype, *(quant or (None,)))
    out, depth = None, x.shape[-1]
    if model.quant and quant:
        deviation = 74 if spec.dtype == "int8" else 18900  # of uniform integers, nearly
        half_range = 4 * sqrt(depth) * model.quant[0] * quant[0] * deviation**2
        out = model.output(-half_range, half_range)
    fields: dict[str, Any] = {"adjX": False, "adjY": False}
    return model.builder.emit("BATCH_MATMUL", [x, other], None, out, spec.op, "BatchMatMulOptions", fields)


OPERATORS = (
    Operator(
        "BATCH_MATMUL",
        _batch_matmul,
        Tensors((2, 2), types=("int8", "int16", "float32")),
        table=_OPTIONS,
        legalization=Legalization((BatchMatmul,)),
        model=SingleOperatorModel(_model, frozenset({"other_shape", "other", "constant", "output"})),
        limits="2 to 5 axes; a constant second operand of one matrix makes it a convolution of 1x1",
    ),
)
