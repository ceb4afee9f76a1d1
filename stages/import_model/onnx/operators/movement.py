"""Operators that move numbers or give them another shape. Of what is dequantized they move the integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from stages.import_model.onnx.operators.elementwise import with_rank
from stages.import_model.onnx.translation import Node, Translation, axis_in
from stages.import_model.onnx.values import Held, permuted
from stages.ir.operators.operation import Refused, listed

_ENDLESS = 2**31 - 1


def identity(t: Translation, node: Node, x: Held) -> Held:
    return x


def dropout(t: Translation, node: Node, x: Held) -> Held:
    """Nothing is dropped when a network is used."""
    if any(t.readers[name] or name in t.outputs for name in node.outputs[1:] if name):
        raise Refused("gives its mask as well")
    return x


def _as(t: Translation, x: Held, shape: Sequence[int]) -> Held:
    if prod(shape) != prod(x.shape):
        raise Refused(f"cannot give {listed(x.shape)} the shape {listed(shape)}")
    return Held(x.tensor, x.base, tuple(int(size) for size in shape), x.order)


def reshape(t: Translation, node: Node, x: Held) -> Held:
    wanted = list(node.attributes["shape"]) if t.opset < 5 else t.integers(node, 1, "the shape")
    if not node.attributes.get("allowzero", 0):
        wanted = [x.shape[axis] if size == 0 and axis < len(x.shape) else size for axis, size in enumerate(wanted)]
    if wanted.count(-1) == 1:
        known = prod(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = prod(x.shape) // known if known else 0
    return _as(t, x, wanted)


def flatten(t: Translation, node: Node, x: Held) -> Held:
    axis = int(node.attributes.get("axis", 1))
    axis = axis + len(x.shape) if axis < 0 else axis
    return _as(t, x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


def _axes(t: Translation, node: Node) -> list[int]:
    if "axes" in node.attributes:
        return [int(axis) for axis in node.attributes["axes"]]
    return t.integers(node, 1, "the axes") if node.has(1) else []


def squeeze(t: Translation, node: Node, x: Held) -> Held:
    axes = {axis_in(axis, len(x.shape)) for axis in _axes(t, node)}
    axes = axes or {axis for axis, size in enumerate(x.shape) if size == 1}
    return _as(t, x, [size for axis, size in enumerate(x.shape) if axis not in axes])


def unsqueeze(t: Translation, node: Node, x: Held) -> Held:
    given = _axes(t, node)
    rank = len(x.shape) + len(given)
    axes, sizes = {axis_in(axis, rank) for axis in given}, iter(x.shape)
    if len(axes) != len(given):
        raise Refused(f"has the axes {listed(given)}, one of them twice")
    return _as(t, x, [1 if axis in axes else next(sizes) for axis in range(rank)])


def transpose(t: Translation, node: Node, x: Held) -> Held:
    """Nothing is moved: the axes have other numbers from here on."""
    x = t.settled(x)
    rank = len(x.shape)
    moved = [int(axis) for axis in node.attributes.get("perm", range(rank)[::-1])]
    if sorted(moved) != list(range(rank)):
        raise Refused(f"has the order {moved} of {rank} axes")
    return x.transposed(moved)


def slice_(t: Translation, node: Node, x: Held) -> Held:
    x = t.settled(x)
    rank = len(x.shape)
    if t.opset < 10:
        starts, ends = (list(node.attributes[name]) for name in ("starts", "ends"))
        axes, steps = list(node.attributes.get("axes", range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = t.integers(node, 1, "the starts"), t.integers(node, 2, "the ends")
        axes = t.integers(node, 3, "the axes") if node.has(3) else list(range(len(starts)))
        steps = t.integers(node, 4, "the steps") if node.has(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Refused(f"has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    cuts = [slice(None)] * rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not step:
            raise Refused("has the step 0")
        cuts[axis_in(axis, rank)] = slice(start, min(end, _ENDLESS), step)
    return cut(t, node.outputs[0], x, cuts)


def cut(t: Translation, name: str, x: Held, cuts: Sequence[slice]) -> Held:
    """The part of x, indexed in ONNX' order."""
    spans = [one.indices(size) for one, size in zip(cuts, x.shape, strict=True)]
    if any(len(range(*span)) < 1 for span in spans):
        raise Refused(f"takes nothing of {listed(x.shape)}")
    back = [axis for axis, span in enumerate(spans) if span[2] < 0]
    if back:
        x = reversed_along(t, x, back, f"{name}/reversed")
        spans = [_forward(span, size) if span[2] < 0 else span for span, size in zip(spans, x.shape, strict=True)]
        if all(span == (0, size, 1) for span, size in zip(spans, x.shape, strict=True)):
            return x
    begins, ends, steps = ([span[part] for span in permuted_spans(spans, x)] for part in range(3))
    if steps == [1] * len(steps):
        made = t.builder.slice(x.tensor, begins, [e - b for b, e in zip(begins, ends, strict=True)], name=name)
    else:
        made = t.builder.strided_slice(x.tensor, begins, ends, steps, name=name)
    return Held.of(made, x.order)


def _forward(span: tuple[int, int, int], size: int) -> tuple[int, int, int]:
    """A span with a step below 0, of what is reversed."""
    places = range(*span)
    return size - 1 - places[0], size - places[-1], -span[2]


def reversed_along(t: Translation, x: Held, axes: Sequence[int], name: str) -> Held:
    """The elements along these axes from the last to the first."""
    made = x.tensor
    for axis in axes:
        places = t.builder.constant(f"{name}/axis", np.array([x.order.index(axis)], np.int32))
        made = t.builder.emit("REVERSE_V2", [made, places], made.shape, None, name)
    return Held.of(made, x.order)


def permuted_spans(spans: Sequence[tuple[int, int, int]], x: Held) -> list[tuple[int, int, int]]:
    """One for each axis in ONNX' order, in that of the tensor."""
    return [spans[axis] for axis in x.order]


def split(t: Translation, node: Node, x: Held) -> list[Held]:
    x = t.settled(x)
    axis = axis_in(int(node.attributes.get("axis", 0)), len(x.shape))
    count, whole = len(node.outputs), x.shape[axis]
    if "split" in node.attributes:
        sizes = [int(size) for size in node.attributes["split"]]
    elif node.has(1):
        sizes = t.integers(node, 1, "the sizes")
    else:
        each = -(-whole // count)
        sizes = [each] * (count - 1) + [whole - each * (count - 1)]
    if len(sizes) != count or sum(sizes) != whole or min(sizes) < 1:
        raise Refused(f"cannot cut axis {axis} of {listed(x.shape)} into {sizes}")
    if len(set(sizes)) == 1:
        made = t.builder.split(x.tensor, count, x.order.index(axis), name=node.outputs[0])
        return [Held.of(one, x.order) for one in made]
    found, begin = [], 0
    for name, size in zip(node.outputs, sizes, strict=True):
        cuts = [slice(None)] * len(x.shape)
        cuts[axis] = slice(begin, begin + size)
        found.append(cut(t, name, x, cuts))
        begin += size
    return found


def gather(t: Translation, node: Node, x: Held) -> Held:
    """By indices that are a constant: one, or several that follow each other, are a slice."""
    x = t.settled(x)
    axis, indices = axis_in(int(node.attributes.get("axis", 0)), len(x.shape)), t.stored(node, 1, "the indices")
    size = x.shape[axis]
    if not indices.size or indices.min() < -size or indices.max() >= size:
        raise Refused(f"gathers the indices {listed(indices.reshape(-1))} of {size}")
    flat = [int(index) % size for index in indices.reshape(-1)]
    step = flat[1] - flat[0] if len(flat) > 1 else 1
    if step > 0 and flat == list(range(flat[0], flat[0] + step * len(flat), step)):
        cuts = [slice(None)] * len(x.shape)
        cuts[axis] = slice(flat[0], flat[-1] + 1, step)
        made = cut(t, node.outputs[0], x, cuts)
    else:
        made = picked(t, x, axis, flat, node.outputs[0])
    if indices.ndim == 1:
        return made
    return _as(t, made, (*made.shape[:axis], *indices.shape, *made.shape[axis + 1 :]))


def picked(t: Translation, x: Held, axis: int, places: Sequence[int], name: str) -> Held:
    """The elements at these places along an axis of ONNX'."""
    indices = t.builder.constant(f"{name}/indices", np.array(places, np.int32))
    at = x.order.index(axis)
    shape = [len(places) if place == at else size for place, size in enumerate(x.tensor.shape)]
    fields = {"axis": at, "batchDims": 0}
    return Held.of(t.builder.emit("GATHER", [x.tensor, indices], shape, None, name, "GatherOptions", fields), x.order)


def expand(t: Translation, node: Node, x: Held) -> Held:
    """Broadcast to a shape that is a constant, which broadcasts to x as well."""
    wanted = t.integers(node, 1, "the shape")
    try:
        shape = np.broadcast_shapes(x.shape, tuple(wanted))
    except ValueError:
        raise Refused(f"expands {listed(x.shape)} to {listed(wanted)}") from None
    if shape == x.shape:
        return x
    x = t.settled(with_rank(t, x, len(shape)))
    laid = permuted(shape, x.order)
    inputs = [x.tensor, t.builder.constant(f"{node.outputs[0]}/shape", np.array(laid, np.int32))]
    quant = (x.tensor.scale, x.tensor.zero_point) if x.tensor.scale else ()
    made = t.builder.tensor(node.outputs[0], laid, x.tensor.dtype, *quant)
    t.builder.operator("BROADCAST_TO", inputs, [made], version=2)
    return Held.of(made, x.order)


def tile(t: Translation, node: Node, x: Held) -> Held:
    x = t.settled(x)
    repeats = t.integers(node, 1, "the repeats")
    if len(repeats) != len(x.shape) or min(repeats, default=1) < 1:
        raise Refused(f"repeats {listed(x.shape)} {listed(repeats)} times")
    laid = permuted(repeats, x.order)
    inputs = [x.tensor, t.builder.constant(f"{node.outputs[0]}/repeats", np.array(laid, np.int32))]
    shape = [size * times for size, times in zip(x.tensor.shape, laid, strict=True)]
    return Held.of(t.builder.emit("TILE", inputs, shape, None, node.outputs[0]), x.order)


Mover = Callable[[Translation, Node, Held], Held | list[Held]]
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
