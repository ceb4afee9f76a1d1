"""Operators that move or reshape data. For dequantized tensors they move the integers."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from stages.import_model.onnx.operators.elementwise import with_rank
from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import TensorView, permuted
from stages.ir.operators.operation import Refused, listed

_ENDLESS = 2**31 - 1


def identity(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Identity."""
    return x


def dropout(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Dropout, which drops nothing in inference."""
    if any(t.readers[name] or name in t.outputs for name in node.outputs[1:] if name):
        raise Refused("also returns its mask, which is not supported")
    return x


def _as(t: Translation, x: TensorView, shape: Sequence[int]) -> TensorView:
    if prod(shape) != prod(x.shape):
        raise Refused(f"cannot give {listed(x.shape)} the shape {listed(shape)}")
    return TensorView(x.tensor, x.base, tuple(int(size) for size in shape), x.order)


def reshape(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Reshape as a pending reshape."""
    wanted = list(node.attributes["shape"]) if t.opset < 5 else t.constant_integers(node, 1, "the shape")
    if not node.attributes.get("allowzero", 0):
        wanted = [x.shape[axis] if size == 0 and axis < len(x.shape) else size for axis, size in enumerate(wanted)]
    if wanted.count(-1) == 1:
        known = prod(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = prod(x.shape) // known if known else 0
    return _as(t, x, wanted)


def flatten(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Flatten as a pending reshape."""
    axis = int(node.attributes.get("axis", 1))
    axis = axis + len(x.shape) if axis < 0 else axis
    return _as(t, x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


def _axes(t: Translation, node: Node) -> list[int]:
    if "axes" in node.attributes:
        return [int(axis) for axis in node.attributes["axes"]]
    return t.constant_integers(node, 1, "the axes") if node.has(1) else []


def squeeze(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Squeeze as a pending reshape."""
    axes = {axis_in(axis, len(x.shape)) for axis in _axes(t, node)}
    axes = axes or {axis for axis, size in enumerate(x.shape) if size == 1}
    return _as(t, x, [size for axis, size in enumerate(x.shape) if axis not in axes])


def unsqueeze(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Unsqueeze as a pending reshape."""
    new_axes = _axes(t, node)
    rank = len(x.shape) + len(new_axes)
    axes, sizes = {axis_in(axis, rank) for axis in new_axes}, iter(x.shape)
    if len(axes) != len(new_axes):
        raise Refused(f"has the axes {listed(new_axes)}; one occurs twice")
    return _as(t, x, [1 if axis in axes else next(sizes) for axis in range(rank)])


def transpose(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Transpose; only the axis order changes."""
    x = t.materialized(x)
    rank = len(x.shape)
    moved = [int(axis) for axis in node.attributes.get("perm", range(rank)[::-1])]
    if sorted(moved) != list(range(rank)):
        raise Refused(f"has the order {moved}; it must be a permutation of {rank} axes")
    return x.transposed(moved)


def slice_(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Slice."""
    x = t.materialized(x)
    rank = len(x.shape)
    if t.opset < 10:
        starts, ends = (list(node.attributes[name]) for name in ("starts", "ends"))
        axes, steps = list(node.attributes.get("axes", range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = t.constant_integers(node, 1, "the starts"), t.constant_integers(node, 2, "the ends")
        axes = t.constant_integers(node, 3, "the axes") if node.has(3) else list(range(len(starts)))
        steps = t.constant_integers(node, 4, "the steps") if node.has(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Refused(f"has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    cuts = [slice(None)] * rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not step:
            raise Refused("has the step 0; it must not be 0")
        cuts[axis_in(axis, rank)] = slice(start, min(end, _ENDLESS), step)
    return slice_view(t, node.outputs[0], x, cuts)


def slice_view(t: Translation, name: str, x: TensorView, cuts: Sequence[slice]) -> TensorView:
    """Return a slice of x; `cuts` are in ONNX' axis order."""
    spans = [span_slice.indices(size) for span_slice, size in zip(cuts, x.shape, strict=True)]
    if any(len(range(*span)) < 1 for span in spans):
        raise Refused(f"selects nothing from {listed(x.shape)}")
    negative = [axis for axis, span in enumerate(spans) if span[2] < 0]
    if negative:
        x = reversed_along(t, x, negative, f"{name}/reversed")
        spans = [_forward(span, size) if span[2] < 0 else span for span, size in zip(spans, x.shape, strict=True)]
        if all(span == (0, size, 1) for span, size in zip(spans, x.shape, strict=True)):
            return x
    begins, ends, steps = ([span[part] for span in permuted_spans(spans, x)] for part in range(3))
    if steps == [1] * len(steps):
        result = t.builder.slice(
            x.tensor, begins, [end - begin for begin, end in zip(begins, ends, strict=True)], name=name
        )
    else:
        result = t.builder.strided_slice(x.tensor, begins, ends, steps, name=name)
    return TensorView.of(result, x.order)


def _forward(span: tuple[int, int, int], size: int) -> tuple[int, int, int]:
    """Return a span with a negative step as a span of the reversed axis."""
    indices = range(*span)
    return size - 1 - indices[0], size - indices[-1], -span[2]


def reversed_along(t: Translation, x: TensorView, axes: Sequence[int], name: str) -> TensorView:
    """Append a reversal of the elements along `axes`."""
    result = x.tensor
    for axis in axes:
        axis_constant = t.builder.constant(f"{name}/axis", np.array([x.order.index(axis)], np.int32))
        result = t.builder.emit("REVERSE_V2", [result, axis_constant], result.shape, None, name)
    return TensorView.of(result, x.order)


def permuted_spans(spans: Sequence[tuple[int, int, int]], x: TensorView) -> list[tuple[int, int, int]]:
    """Return the spans, given in ONNX' axis order, in the tensor's order."""
    return [spans[axis] for axis in x.order]


def split(t: Translation, node: Node, x: TensorView) -> list[TensorView]:
    """Translate Split."""
    x = t.materialized(x)
    axis = axis_in(int(node.attributes.get("axis", 0)), len(x.shape))
    count, total = len(node.outputs), x.shape[axis]
    if "split" in node.attributes:
        sizes = [int(size) for size in node.attributes["split"]]
    elif node.has(1):
        sizes = t.constant_integers(node, 1, "the sizes")
    else:
        part_size = -(-total // count)
        sizes = [part_size] * (count - 1) + [total - part_size * (count - 1)]
    if len(sizes) != count or sum(sizes) != total or min(sizes) < 1:
        raise Refused(f"cannot split axis {axis} of {listed(x.shape)} into {sizes}")
    if len(set(sizes)) == 1:
        tensors = t.builder.split(x.tensor, count, x.order.index(axis), name=node.outputs[0])
        return [TensorView.of(tensor, x.order) for tensor in tensors]
    views, begin = [], 0
    for name, size in zip(node.outputs, sizes, strict=True):
        cuts = [slice(None)] * len(x.shape)
        cuts[axis] = slice(begin, begin + size)
        views.append(slice_view(t, name, x, cuts))
        begin += size
    return views


def gather(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Gather by constant indices; evenly spaced indices are a slice."""
    x = t.materialized(x)
    axis, indices = axis_in(int(node.attributes.get("axis", 0)), len(x.shape)), t.constant(node, 1, "the indices")
    size = x.shape[axis]
    if not indices.size or indices.min() < -size or indices.max() >= size:
        raise Refused(f"gathers the indices {listed(indices.reshape(-1))}; they must be from {-size} to {size - 1}")
    flat = [int(index) % size for index in indices.reshape(-1)]
    step = flat[1] - flat[0] if len(flat) > 1 else 1
    if step > 0 and flat == list(range(flat[0], flat[0] + step * len(flat), step)):
        cuts = [slice(None)] * len(x.shape)
        cuts[axis] = slice(flat[0], flat[-1] + 1, step)
        result = slice_view(t, node.outputs[0], x, cuts)
    else:
        result = gather_constant(t, x, axis, flat, node.outputs[0])
    if indices.ndim == 1:
        return result
    return _as(t, result, (*result.shape[:axis], *indices.shape, *result.shape[axis + 1 :]))


def gather_constant(t: Translation, x: TensorView, axis: int, indices: Sequence[int], name: str) -> TensorView:
    """Append a GATHER of constant indices along an ONNX axis."""
    index_constant = t.builder.constant(f"{name}/indices", np.array(indices, np.int32))
    stored_axis = x.order.index(axis)
    shape = [len(indices) if position == stored_axis else size for position, size in enumerate(x.tensor.shape)]
    fields = {"axis": stored_axis, "batchDims": 0}
    return TensorView.of(
        t.builder.emit("GATHER", [x.tensor, index_constant], shape, None, name, "GatherOptions", fields), x.order
    )


def expand(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Expand to a constant shape, which broadcasts with x."""
    wanted = t.constant_integers(node, 1, "the shape")
    try:
        shape = np.broadcast_shapes(x.shape, tuple(wanted))
    except ValueError:
        raise Refused(f"expands {listed(x.shape)} to {listed(wanted)}") from None
    if shape == x.shape:
        return x
    x = t.materialized(with_rank(t, x, len(shape)))
    stored_shape = permuted(shape, x.order)
    inputs = [x.tensor, t.builder.constant(f"{node.outputs[0]}/shape", np.array(stored_shape, np.int32))]
    quant = (x.tensor.scale, x.tensor.zero_point) if x.tensor.scale else ()
    result = t.builder.tensor(node.outputs[0], stored_shape, x.tensor.dtype, *quant)
    t.builder.operator("BROADCAST_TO", inputs, [result], version=2)
    return TensorView.of(result, x.order)


def tile(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Tile."""
    x = t.materialized(x)
    repeats = t.constant_integers(node, 1, "the repeats")
    if len(repeats) != len(x.shape) or min(repeats, default=1) < 1:
        raise Refused(f"has the repeats {listed(repeats)}; {listed(x.shape)} needs one per axis, each at least 1")
    stored_repeats = permuted(repeats, x.order)
    inputs = [x.tensor, t.builder.constant(f"{node.outputs[0]}/repeats", np.array(stored_repeats, np.int32))]
    shape = [size * times for size, times in zip(x.tensor.shape, stored_repeats, strict=True)]
    return TensorView.of(t.builder.emit("TILE", inputs, shape, None, node.outputs[0]), x.order)


Mover = Callable[[Translation, Node, TensorView], TensorView | list[TensorView]]
MOVES: dict[str, Mover] = {
    "Dropout": dropout,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "Identity": identity,
    "Reshape": reshape,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
