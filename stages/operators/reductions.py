"""Operators that reduce over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from stages.operators.axes import distinct_axes
from stages.operators.channels import Reach, every_channel
from stages.operators.declaration import NUMBERS, Layout, OneOperatorModel, Operator, Table
from stages.operators.layer import Clamped, LayerOp, Rounding
from stages.operators.operation import Operation, Refused, Shape

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.models.operators import OneOperator
    from stages.models.tflite_writer import Tensor as FileTensor
    from stages.operators.layer import Array

_REDUCER = Table("ReducerOptions", "keep_dims:bool", required=False)


def _reduce(operation: Operation) -> list[Shape]:
    shape, keep = operation.input(0).shape, operation.options(_REDUCER)["keep_dims"]
    axes = distinct_axes(operation.integers(1, "the axes"), shape)
    if not axes:
        raise Refused("has no axis to reduce over")
    kept = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
    return [tuple(kept)]


class Mean(Clamped):
    """MEAN over `axes` (logical): y = M(sum(x) - input_zero_point * count, multiplier, shift) + output_zero_point.

    The division by `count`, the number of elements averaged, is part of the multiplier, as in the reference.
    """

    op: Literal["mean"] = "mean"
    axes: tuple[int, ...]
    input_zero_point: int
    multiplier: int
    shift: int
    count: int
    rounding: Rounding = "double"

    def reach(self, view: LayerView, inputs: Sequence[Reach]) -> Reach:
        """It rises with every element."""
        import numpy as np

        shape = view.inputs[0].shape
        ends = (np.broadcast_to(bound, shape) for bound in (inputs[0].least, inputs[0].most))
        least, most = (Reach.of_values(self.compute(view, end)) for end in ends)
        return Reach(least.least, most.most)

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        rank = len(view.inputs[0].shape)
        return None if rank - 1 in [axis % rank for axis in self.axes] else every_channel(view)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        import numpy as np

        from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier

        total = inputs[0].astype(np.int64).sum(axis=self.axes) - self.input_zero_point * self.count
        scaled = multiply_by_quantized_multiplier(total, self.multiplier, self.shift, self.rounding)
        return self.clamped(view, scaled).reshape(view.outputs[0].shape)


def _operator(
    name: str, layout: Layout, *layers: type[LayerOp], quantized: bool = True, model: OneOperatorModel | None = None
) -> Operator:
    return Operator(
        name,
        _reduce,
        (2, 2),
        table=_REDUCER,
        types=NUMBERS,
        indices=(1,),
        quantized=quantized,
        layout=layout,
        layers=layers,
        model=model,
    )


def _mean_model(one: OneOperator, x: FileTensor) -> FileTensor:
    spec, axes = one.spec, one.spec.axes or ()
    return one.builder.mean(x, axes, keep_dims=spec.keep_dims, out=one.mean_output(axes), name=spec.op)


OPERATORS = (
    _operator(
        "MEAN",
        "following",
        Mean,
        model=OneOperatorModel(_mean_model, frozenset({"axes", "keep_dims", "output"}), ("axes",)),
    ),
    _operator("REDUCE_MAX", "bound", quantized=False),
    _operator("REDUCE_MIN", "bound", quantized=False),
    _operator("SUM", "following"),
)
