"""Reductions over axes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar, Literal

from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier, multiply_wide
from stages.ir.layers import Array, Clamped, LayerOp, LayerView, Rounding, Tensor, every_channel
from stages.ir.layers.channels import ValueRange
from stages.ir.model_info import FileTensor
from stages.ir.operators.axes import distinct_axes
from stages.ir.operators.declaration import NUMBERS, Layout, Legalization, LiteRT, Operator, Quantization, Tensors
from stages.ir.operators.operation import Operation, Refused, Shape, Table
from stages.ir.operators.single_operator import Quant, SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_EXTREMES = (*NUMBERS, "int16", "bool")
_REDUCER = Table("ReducerOptions", "keep_dims:bool", required=False)


def _reduce(operation: Operation) -> list[Shape]:
    shape, keep = operation.input(0).shape, operation.options(_REDUCER)["keep_dims"]
    axes = distinct_axes(operation.integers(1, "the axes"), shape)
    if not axes:
        raise Refused("has no axis to reduce over")
    kept = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
    return [tuple(kept)]


class Mean(Clamped):
    """MEAN over `axes` (logical).

    y = M(sum(x) - input_zero_point * count, multiplier, shift) + output_zero_point. The multiplier includes the
    division by `count`, the number of averaged elements, as in the reference.
    """

    uniform: ClassVar[bool] = True
    op: Literal["mean"] = "mean"
    axes: tuple[int, ...]
    input_zero_point: int
    multiplier: int
    shift: int
    count: int
    rounding: Rounding = "double"

    def terms(self, out: Tensor) -> int:
        """Number of averaged elements."""
        return self.count

    def scaling(self, view: LayerView) -> tuple[Array | int, Array | int]:
        """Multiplier and shift, for all channels."""
        return self.multiplier, self.shift

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Monotonic: the results of both bounds."""
        shape = view.inputs[0].shape
        ends = (np.broadcast_to(bound, shape) for bound in (inputs[0].least, inputs[0].most))
        least, most = (ValueRange.of_values(self.compute(view, end)) for end in ends)
        return ValueRange(least.least, most.most)

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        """None if the channels are averaged."""
        rank = len(view.inputs[0].shape)
        return None if rank - 1 in [axis % rank for axis in self.axes] else every_channel(view)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        total = self.sums(view, *inputs)
        scaled = multiply_by_quantized_multiplier(total, self.multiplier, self.shift, self.rounding)
        return self.clamped(view, scaled).reshape(view.outputs[0].shape)

    def sums(self, view: LayerView, *inputs: Array) -> Array:
        """Sums less the zero points, without the reduced axes."""
        return inputs[0].astype(np.int64).sum(axis=self.axes) - self.input_zero_point * self.count


class Sum(Clamped):
    """SUM over `axes` (logical): as `Mean`, without a division in the multiplier.

    `averages`: a MEAN over more than two separate groups of axes, with the division.
    """

    op: Literal["sum"] = "sum"
    averages: bool = False
    axes: tuple[int, ...]
    input_zero_point: int
    multiplier: int
    shift: int
    count: int
    rounding: Rounding = "double"

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return "mean" if self.averages else "sum"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        total = inputs[0].astype(np.int64).sum(axis=self.axes) - self.input_zero_point * self.count
        scaled = multiply_by_quantized_multiplier(total, self.multiplier, self.shift, self.rounding)
        return self.clamped(view, scaled).reshape(view.outputs[0].shape)


class ReduceExtremum(LayerOp):
    """Largest or smallest raw integer over `axes` (logical)."""

    shifts_alike: ClassVar[bool] = True
    op: Literal["reduce_max", "reduce_min"]
    axes: tuple[int, ...]

    @property
    def is_max(self) -> bool:
        """True if it computes the largest element."""
        return self.op == "reduce_max"

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the maximum or minimum."""
        reduced: Array = (inputs[0].max if self.is_max else inputs[0].min)(axis=self.axes)
        return reduced.reshape(view.outputs[0].shape)


class ReduceProd(Clamped):
    """Product over `axes` (logical), in element order, scaled at each step and at the end.

    p = x_0 - zp, then p = S(p * (x_i - zp)) for the others; y = S(p) + output_zero_point

    S(v) = (v * round(multiplier / 2^16) + 2^(14 - shift)) >> (15 - shift) as int32, computed in 64 bits.
    """

    op: Literal["reduce_prod"] = "reduce_prod"
    axes: tuple[int, ...]
    input_zero_point: int
    multiplier: int
    shift: int

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        x, (out,) = inputs[0].astype(np.int64) - self.input_zero_point, view.outputs
        kept = [axis for axis in range(x.ndim) if axis not in self.axes]
        rows = x.transpose([*kept, *self.axes]).reshape(out.elements, -1)
        product = rows[:, 0]
        for factor in rows[:, 1:].T:
            product = multiply_wide(product * factor, self.multiplier, self.shift)
        return self.clamped(view, multiply_wide(product, self.multiplier, self.shift)).reshape(out.shape)


def _operator(
    name: str,
    layout: Layout,
    *layers: type[LayerOp],
    model: SingleOperatorModel,
    types: tuple[str, ...] = NUMBERS,
    alike: bool = False,
) -> Operator:
    return Operator(
        name,
        _reduce,
        Tensors((2, 2), types=types, indices=(1,), layout=layout),
        table=_REDUCER,
        quantization=Quantization(alike=alike),
        legalization=Legalization(layers),
        model=model,
    )


def _mean_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec, axes = model.spec, model.spec.axes or ()
    return model.builder.mean(x, axes, keep_dims=spec.keep_dims, out=model.mean_output(axes), name=spec.op)


def _reducing(output: Callable[[SingleOperatorBuilder, tuple[int, ...]], Quant | None]) -> SingleOperatorModel:
    """Model of a reduction; `output` returns the output's quantization from the axes."""

    def build(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
        spec, axes = model.spec, model.spec.axes or ()
        constant = model.builder.constant(f"{spec.op}/axes", np.asarray(axes, dtype=np.int32))
        options = {"keepDims": spec.keep_dims}
        out = output(model, axes)
        return model.builder.emit(spec.op.upper(), [x, constant], None, out, spec.op, "ReducerOptions", options)

    return SingleOperatorModel(build, frozenset({"axes", "keep_dims", "output"}), ("axes",))


def _like(model: SingleOperatorBuilder, axes: tuple[int, ...]) -> Quant | None:
    return model.quant


def _product(model: SingleOperatorBuilder, axes: tuple[int, ...]) -> Quant | None:
    """Range: the input's largest magnitude to the power of the count."""
    if not model.quant:
        return None
    largest, rank = max(map(abs, model.range(model.quant))), len(model.shape)
    most = largest ** prod(model.shape[axis] for axis in {axis % rank for axis in axes})
    return model.output(-most, most)


def _total(model: SingleOperatorBuilder, axes: tuple[int, ...]) -> Quant | None:
    """Range of the mean times the number of added elements."""
    mean = model.mean_output(axes)
    rank = len(model.shape)
    return mean and (mean[0] * prod(model.shape[axis] for axis in {axis % rank for axis in axes}), mean[1])


def _sum_reference(operation: Operation, x: Array, axes: Array) -> list[Array]:
    """SUM of int8 by the kernel's uint8 formula: LiteRT's reference kernel reads int8 as uint8."""
    from stages.ir.arithmetic.multipliers import quantize_multiplier

    (source, out), where = (operation.input(0), operation.outputs[0]), tuple(int(axis) for axis in axes.reshape(-1))
    total = (x.astype(np.int64) - int(source.zero_point[0])).sum(axis=where)
    multiplier, shift = quantize_multiplier(float(source.scale[0]) / float(out.scale[0]))
    scaled = multiply_by_quantized_multiplier(total, multiplier, shift, "double") + int(out.zero_point[0])
    limits = np.iinfo(x.dtype)
    return [np.clip(scaled, limits.min, limits.max).astype(x.dtype).reshape(out.shape)]


OPERATORS = (
    _operator(
        "MEAN",
        "following",
        Mean,
        types=(*NUMBERS, "int16"),
        model=SingleOperatorModel(_mean_model, frozenset({"axes", "keep_dims", "output"}), ("axes",)),
    ),
    Operator(
        "REDUCE_ALL",
        _reduce,
        Tensors((2, 2), types=("bool",), indices=(1,)),
        table=_REDUCER,
        quantization=Quantization(quantized=False),
    ),
    Operator(
        "REDUCE_ANY",
        _reduce,
        Tensors((2, 2), types=("bool",), indices=(1,)),
        table=_REDUCER,
        quantization=Quantization(quantized=False),
    ),
    _operator("REDUCE_MAX", "following", ReduceExtremum, model=_reducing(_like), types=_EXTREMES, alike=True),
    _operator("REDUCE_MIN", "following", ReduceExtremum, model=_reducing(_like), types=_EXTREMES, alike=True),
    _operator(
        "REDUCE_PROD",
        "bound",
        ReduceProd,
        model=_reducing(_product),
        types=("int8", "int16", "float32", "int32", "int64", "bool"),
    ),
    replace(
        _operator("SUM", "following", Sum, model=_reducing(_total), types=(*NUMBERS, "bool")),
        litert=LiteRT(misjudged={0: ("int8",)}, reference=_sum_reference),
        limits="int8: LiteRT's reference kernel reads it as uint8, so the reference is its uint8 formula",
    ),
)
