"""Operators with one input and one output that move data or change its shape."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar, Literal

from pydantic import Field

from stages.ir.layers import Array, LayerOp, LayerView, Narrowed, Shifted
from stages.ir.layers.channels import Kept, ValueRange, channels_of
from stages.ir.model_info import FileTensor
from stages.ir.naming import named
from stages.ir.operators.axes import axis_of, distinct_axes
from stages.ir.operators.declaration import (
    COMPUTED,
    MOVED,
    UNSIGNED,
    Layout,
    Legalization,
    LiteRT,
    Operator,
    Quantization,
    Scales,
    Tensors,
)
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed
from stages.ir.operators.resizing import RESIZE_NEAREST_NEIGHBOR_OPTIONS, RESIZED_SIZES, image_shape, resized
from stages.ir.operators.single_operator import SingleOperatorBuilder, SingleOperatorModel
from stages.support.lazy import np

_RESHAPE = Table("ReshapeOptions", "new_shape:ints", required=False)
_SQUEEZE = Table("SqueezeOptions", "squeeze_dims:ints")
_STRIDED_SLICE = Table(
    "StridedSliceOptions",
    "begin_mask:int end_mask:int ellipsis_mask:int new_axis_mask:int shrink_axis_mask:int offset:bool",
)
_SPACE_TO_DEPTH = Table("SpaceToDepthOptions", "block_size:int")
_DEPTH_TO_SPACE = Table("DepthToSpaceOptions", "block_size:int")
_MOST_INT64 = 1 << 53  # of a pad's value: the attribute in Relax is a float64
# Values of `Move.kind`.
KINDS = frozenset({
    "depth_to_space", "layout", "pad", "reshape", "resize_nearest_neighbor", "slice", "space_to_depth", "split",
    "squeeze", "strided_slice", "transpose",
})  # fmt: skip


def _reshape(operation: Operation) -> list[Shape]:
    source = operation.input(0)
    if any((len(stated.shape), stated.dtype) == (1, "int32") for stated in operation.inputs[1:2] if stated):
        wanted = operation.integers(1, "the shape")
    else:  # as LiteRT (reshape.cc, GetOutputShape): other shape tensors are ignored
        wanted = list(operation.options(_RESHAPE)["new_shape"])
        wanted = [] if wanted == [0] else wanted  # how old exporters write a scalar
    elements, known = prod(source.shape), prod(size for size in wanted if size != -1)
    if min(wanted, default=1) < -1 or wanted.count(-1) > 1:
        raise Refused(f"has the shape {listed(wanted)}; one size may be -1, the others must not be negative")
    if -1 in wanted and known > 0 and elements % known == 0:
        return [tuple(elements // known if size == -1 else size for size in wanted)]
    if -1 in wanted or known != elements:
        raise Refused(
            f"cannot reshape {named(source)} {listed(source.shape)}, {elements} elements, to {listed(wanted)}"
        )
    return [tuple(wanted)]


def _squeeze(operation: Operation) -> list[Shape]:
    source = operation.input(0)
    axes = distinct_axes(list(operation.options(_SQUEEZE)["squeeze_dims"]), source.shape)
    for axis in axes:
        if source.shape[axis] != 1:
            raise Refused(f"removes axis {axis} of {named(source)} {listed(source.shape)}, whose size is not 1")
    axes = axes or [axis for axis, size in enumerate(source.shape) if size == 1]
    return [tuple(size for axis, size in enumerate(source.shape) if axis not in axes)]


def _expand_dims(operation: Operation) -> list[Shape]:
    shape = operation.input(0).shape
    axis = axis_of(operation.integers(1, "the axis", 1)[0], shape, extra=1)
    return [(*shape[:axis], 1, *shape[axis:])]


def _transpose(operation: Operation) -> list[Shape]:
    shape = operation.input(0).shape
    order = distinct_axes(operation.integers(1, "the order of the axes", len(shape)), shape)
    return [tuple(shape[axis] for axis in order)]


def _pad(operation: Operation) -> list[Shape]:
    source, amounts = operation.input(0), operation.constant(1, "the padding")
    if amounts.shape != (len(source.shape), 2):
        raise Refused(f"has padding of shape {listed(amounts.shape)}, but {named(source)} has {len(source.shape)} axes")
    for axis, (before, after) in enumerate(amounts.tolist()):
        if min(before, after) < 0:
            raise Refused(f"pads axis {axis} of {named(source)} by {before} and {after}; neither may be negative")
    if operation.op == "PADV2":
        value = operation.input(2)
        if value.data is None:
            raise Refused(f"pads with {named(value)}, a computed tensor; it must be a constant")
        if prod(value.shape) != 1:
            raise Refused(f"pads with {named(value)} {listed(value.shape)}, which is not a single value")
        if value.dtype == "int64" and abs(int(value.values().item())) > _MOST_INT64:
            raise Refused(f"pads with {int(value.values().item())}; an int64 value must be within 2^53 of 0")
    return [tuple(size + before + after for size, (before, after) in zip(source.shape, amounts.tolist(), strict=True))]


def _slice(operation: Operation) -> list[Shape]:
    source = operation.input(0)
    rank, shape = len(source.shape), []
    begins, sizes = operation.integers(1, "the begin", rank), operation.integers(2, "the size", rank)
    for axis, (extent, begin, size) in enumerate(zip(source.shape, begins, sizes, strict=True)):
        size = extent - begin if size == -1 else size
        if begin < 0 or size < 1 or begin + size > extent:
            raise Refused(f"takes {size} from {begin} on, beyond axis {axis} of {named(source)} {listed(source.shape)}")
        shape.append(size)
    return [tuple(shape)]


def _strided_slice(operation: Operation) -> list[Shape]:
    source, options = operation.input(0), operation.options(_STRIDED_SLICE)
    if options["ellipsis_mask"] or options["new_axis_mask"] or options["offset"]:
        raise Refused("has an ellipsis, a new axis, or an end relative to the begin; none is supported")
    begins = operation.integers(1, "the begin")
    ends, strides = (operation.integers(at, label, len(begins)) for at, label in ((2, "the end"), (3, "the strides")))
    if len(begins) > len(source.shape):
        raise Refused(f"slices {len(begins)} axes of {named(source)} {listed(source.shape)}")
    shape = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, strides, strict=True)):
        size, bit = source.shape[axis], 1 << axis
        if not step:
            raise Refused(f"has the stride 0 along axis {axis}; it must not be 0")
        if options["shrink_axis_mask"] & bit:
            if step < 0:
                raise Refused(f"drops axis {axis} with the stride {step}; it must be positive")
            if not (options["begin_mask"] & bit or -size <= begin < size):
                raise Refused(f"takes element {begin} beyond axis {axis} of {named(source)} {listed(source.shape)}")
            continue
        first, last = None if options["begin_mask"] & bit else begin, None if options["end_mask"] & bit else end
        count = len(range(*slice(first, last, step).indices(size)))
        if not count:
            raise Refused(
                f"takes nothing from {begin} to {end} along axis {axis} of {named(source)} {listed(source.shape)}"
            )
        shape.append(count)
    return [(*shape, *source.shape[len(begins) :])]


def _space_to_depth(operation: Operation) -> list[Shape]:
    (batch, height, width, channels), block = _blocks(operation, _SPACE_TO_DEPTH)
    if height % block or width % block:
        raise Refused(f"has blocks of {block}x{block}, which do not divide an image of {height}x{width}")
    return [(batch, height // block, width // block, channels * block * block)]


def _depth_to_space(operation: Operation) -> list[Shape]:
    (batch, height, width, channels), block = _blocks(operation, _DEPTH_TO_SPACE)
    if channels % (block * block):
        raise Refused(f"has blocks of {block}x{block}; {channels} channels are not a multiple of {block * block}")
    return [(batch, height * block, width * block, channels // (block * block))]


def _blocks(operation: Operation, table: Table) -> tuple[Shape, int]:
    shape, block = image_shape(operation.input(0)), operation.options(table)["block_size"]
    if block < 1:
        raise Refused(f"has blocks of {block}x{block}; the size must be at least 1")
    return shape, block


class Move(LayerOp):
    """Data movement of any type: output elements are copies of inputs, or a fill value.

    `kind` and its `params` (logical axes, one entry per axis of the input); shapes come from the tensors:

      pad                      before, after: elements added on each axis; value: the fill value, an integer of the type
      reshape, squeeze         none; the output is an alias of the input (`Tensor.alias_of`), nothing is copied
      transpose                permutation: output axis i is input axis permutation[i]
      slice, strided_slice     begin, stride, size: output index i < size reads begin + stride * i; strides may
                               be negative. Axes that a strided slice drops have size 1 here
      split                    as slice: one layer for each output
      resize_nearest_neighbor  rows, columns: the source row (column) of each output row (column)
      depth_to_space           block: rows and columns of each pixel's block, whose pixels are its channels in order
      space_to_depth           as depth_to_space, the inverse
      layout                   none: only the layouts of the tensors differ
    """

    uniform: ClassVar[bool] = True
    op: Literal["move"] = "move"
    named_by: ClassVar[str] = "kind"
    any_type: ClassVar[bool] = True
    kind: str
    params: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def names(cls) -> frozenset[str]:
        """Names that rules may use for these layers."""
        return super().names() | KINDS

    def shifted(self, view: LayerView, inputs: Sequence[int], output: int) -> Shifted | None:
        """None unless input and output shift alike; a fill value shifts too."""
        filled = {"value": self.params["value"] + output} if "value" in self.params else {}
        op = self.model_copy(update={"params": {**self.params, **filled}})
        return Shifted(op) if inputs[0] == output else None

    def value_range(self, view: LayerView, inputs: Sequence[ValueRange]) -> ValueRange:
        """Range of the copied channels, joined with the fill value."""
        (x,), carried = inputs, self.carries(view)
        bounds = x.spread(channels_of(view.outputs[0])) if carried is None else x.of(carried[0])
        if "value" in self.params:
            bounds = bounds.joined(ValueRange.of_values(np.full(len(bounds.least), self.params["value"])))
        return bounds

    def carries(self, view: LayerView) -> tuple[Array, ...] | None:
        """None if the last axis is changed."""
        params, in_channels, out_channels = self.params, channels_of(view.inputs[0]), channels_of(view.outputs[0])
        if self.kind in ("reshape", "squeeze", "space_to_depth"):
            return (np.arange(out_channels) % in_channels,) if out_channels % in_channels == 0 else None
        if self.kind == "transpose":
            unchanged = params["permutation"][-1] == len(params["permutation"]) - 1
        elif self.kind == "pad":
            unchanged = params["before"][-1] == params["after"][-1] == 0
        elif self.kind in ("slice", "strided_slice", "split"):
            unchanged = out_channels == in_channels and (
                params["begin"][-1],
                params["stride"][-1],
                params["size"][-1],
            ) == (0, 1, in_channels)
        else:
            unchanged = self.kind in ("layout", "resize_nearest_neighbor")
        return (np.arange(out_channels),) if unchanged else None

    def narrowed(self, view: LayerView, inputs: Sequence[Kept], output: Kept) -> Narrowed:
        """A slice takes the remaining channels."""
        if "size" not in self.params:
            return Narrowed(self)
        params = {**self.params, "size": [*self.params["size"][:-1], len(inputs[0].channels)]}
        return Narrowed(self.model_copy(update={"params": params}))

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Copy the elements."""
        (x,), kind, params, shape = inputs, self.kind, self.params, view.outputs[0].shape
        if kind in ("reshape", "squeeze"):
            return x.reshape(shape)
        if kind == "layout":
            return x.copy()  # logical order does not change
        if kind == "pad":
            amounts = list(zip(params["before"], params["after"], strict=True))
            return np.pad(x, amounts, constant_values=params["value"])
        if kind == "transpose":
            return x.transpose(params["permutation"])
        if kind in ("slice", "strided_slice", "split"):
            picks = [
                begin + stride * np.arange(size)
                for begin, stride, size in zip(params["begin"], params["stride"], params["size"], strict=True)
            ]
            return x[np.ix_(*picks)].reshape(shape)
        if kind in ("depth_to_space", "space_to_depth"):
            (_, height, width, _), (rows, columns) = min(x.shape, shape), params["block"]
            split = (len(x), height, *((rows, width) if kind == "space_to_depth" else (width, rows)), columns, -1)
            return x.reshape(split).swapaxes(2, 3).reshape(shape)
        if kind == "resize_nearest_neighbor":
            return x[:, params["rows"]][:, :, params["columns"]]
        raise ValueError(f"layer {view.layer.name}: no reference for data movement {kind!r}")


def _moves(
    name: str,
    shapes: Any,
    inputs: int,
    indices: tuple[int, ...] = (),
    table: Table | None = None,
    *,
    scales: Scales = "any",
    alike: bool = False,
    layout: Layout = "bound",
    model: SingleOperatorModel | None = None,
    limits: str = "",
    version: int = 2,
    more: tuple[str, ...] = (),
) -> Operator:
    return Operator(
        name,
        shapes,
        Tensors((inputs, inputs), types=(*MOVED, *more), indices=indices, layout=layout),
        table=table,
        quantization=Quantization(scales=scales, alike=alike),
        legalization=Legalization((Move,)),
        litert=LiteRT(version=version),
        model=model,
        limits=limits,
    )


def _resize_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    spec = model.spec
    options: dict[str, Any] = {"align_corners": spec.align_corners, "half_pixel_centers": spec.half_pixel_centers}
    return model.builder.resize_nearest_neighbor(x, spec.size or (), **options)


def _slice_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    return model.builder.slice(x, model.spec.begin or (), model.spec.size or ())


def _strided_slice_model(model: SingleOperatorBuilder, x: FileTensor) -> FileTensor:
    return model.builder.strided_slice(x, model.spec.begin or (), model.spec.end or (), model.spec.strides)


def _model(build: Callable[[SingleOperatorBuilder, FileTensor], FileTensor], *required: str) -> SingleOperatorModel:
    return SingleOperatorModel(build, frozenset(required), required)


OPERATORS = (
    _moves("DEPTH_TO_SPACE", _depth_to_space, 1, (), _DEPTH_TO_SPACE, limits="4 axes"),
    _moves("EXPAND_DIMS", _expand_dims, 2, (1,), alike=True),
    _moves(
        "PAD",
        _pad,
        2,
        (1,),
        scales="optional",
        alike=True,
        layout="following",
        model=_model(lambda model, x: model.builder.pad(x, model.spec.pads or ()), "pads"),
        limits="amounts are not negative",
    ),
    _moves(
        "PADV2",
        _pad,
        3,
        (1,),
        scales="optional",
        alike=True,
        layout="following",
        limits="amounts are not negative; the value is a single constant, of int64 within 2^53 of 0",
    ),
    Operator(
        "RESHAPE",
        _reshape,
        Tensors((1, 2), types=(*MOVED, *UNSIGNED), indices=(1,)),
        table=_RESHAPE,
        quantization=Quantization(scales="any"),
        legalization=Legalization((Move,)),
        litert=LiteRT(version=1),
        model=_model(lambda model, x: model.builder.reshape(x, model.spec.new_shape or ()), "new_shape"),
    ),
    Operator(
        "RESIZE_NEAREST_NEIGHBOR",
        resized,
        Tensors((2, 2), types=(*COMPUTED, "int16", "int32", "bool"), indices=(1,), layout="following"),
        table=RESIZE_NEAREST_NEIGHBOR_OPTIONS,
        quantization=Quantization(scales="optional"),
        legalization=Legalization((Move,)),
        model=SingleOperatorModel(_resize_model, frozenset({"size", "align_corners", "half_pixel_centers"}), ("size",)),
        limits=RESIZED_SIZES,
    ),
    _moves("SLICE", _slice, 3, (1, 2), layout="following", model=_model(_slice_model, "begin", "size")),
    _moves("SPACE_TO_DEPTH", _space_to_depth, 1, (), _SPACE_TO_DEPTH, limits="4 axes"),
    _moves(
        "SQUEEZE",
        _squeeze,
        1,
        (),
        _SQUEEZE,
        model=_model(lambda model, x: model.builder.squeeze(x, model.spec.axes or ()), "axes"),
        version=1,
    ),
    _moves(
        "STRIDED_SLICE",
        _strided_slice,
        4,
        (1, 2, 3),
        _STRIDED_SLICE,
        layout="following",
        model=SingleOperatorModel(_strided_slice_model, frozenset({"begin", "end", "strides"}), ("begin", "end")),
        limits="no ellipsis and no new axis",
        more=UNSIGNED,
    ),
    _moves(
        "TRANSPOSE",
        _transpose,
        2,
        (1,),
        model=_model(lambda model, x: model.builder.transpose(x, model.spec.permutation or ()), "permutation"),
    ),
)
