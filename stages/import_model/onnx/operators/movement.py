"""Operators that move numbers or give them another shape. Of what is dequantized they move the integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from stages.import_model.onnx.operators.evaluated import evaluated
from stages.import_model.onnx.translation import Node, Translation, axis_in, check_rank
from stages.import_model.onnx.values import Array, Held, Real, image_order, permuted
from stages.models.onnx_names import LOWERED
from stages.operators.operation import Refused, listed

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
    shape = permuted(x.shape, tuple(moved))
    return Held(x.tensor, shape, shape, tuple(moved.index(axis) for axis in x.order))


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
        if step < 1:
            raise Refused(f"has the step {step}; steps are positive")
        cuts[axis_in(axis, rank)] = slice(start, min(end, _ENDLESS), step)
    return _cut(t, node.outputs[0], x, cuts)


def _cut(t: Translation, name: str, x: Held, cuts: Sequence[slice]) -> Held:
    """The part of x, indexed in ONNX' order."""
    spans = [cut.indices(size) for cut, size in zip(cuts, x.shape, strict=True)]
    if any(len(range(*span)) < 1 for span in spans):
        raise Refused(f"takes nothing of {listed(x.shape)}")
    begins, ends, steps = ([span[part] for span in permuted_spans(spans, x)] for part in range(3))
    if steps == [1] * len(steps):
        made = t.builder.slice(x.tensor, begins, [e - b for b, e in zip(begins, ends, strict=True)], name=name)
    else:
        made = t.builder.strided_slice(x.tensor, begins, ends, steps, name=name)
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
        found.append(_cut(t, name, x, cuts))
        begin += size
    return found


def gather(t: Translation, node: Node, x: Held) -> Held:
    """With one constant index, or several that follow each other: a slice."""
    x = t.settled(x)
    axis, indices = axis_in(int(node.attributes.get("axis", 0)), len(x.shape)), t.stored(node, 1, "the indices")
    size = x.shape[axis]
    if not indices.size or indices.min() < -size or indices.max() >= size:
        raise Refused(f"gathers the indices {listed(indices.reshape(-1))} of {size}")
    flat = [int(index) % size for index in indices.reshape(-1)]
    step = flat[1] - flat[0] if len(flat) > 1 else 1
    if indices.ndim > 1 or step < 1 or flat != list(range(flat[0], flat[0] + step * len(flat), step)):
        raise Refused(f"gathers the indices {listed(flat)}; one, or evenly spaced ones, are supported")
    cuts = [slice(None)] * len(x.shape)
    cuts[axis] = slice(flat[0], flat[-1] + 1, step)
    made = _cut(t, node.outputs[0], x, cuts)
    if indices.ndim:
        return made
    return _as(t, made, [size for place, size in enumerate(made.shape) if place != axis])


def pad(t: Translation, node: Node, x: Held) -> Held:
    """Pad with one value: of what is dequantized a real number, of integers themselves an integer."""
    x = t.settled(x)
    if node.attributes.get("mode", "constant") != "constant":
        raise Refused(f"pads in the mode {node.attributes['mode']}; constant is supported")
    rank = len(x.shape)
    amounts = list(node.attributes["pads"]) if "pads" in node.attributes else t.integers(node, 1, "the pads")
    axes = [axis_in(axis, rank) for axis in t.integers(node, 3, "the axes")] if node.has(3) else list(range(rank))
    if len(amounts) != 2 * len(axes):
        raise Refused(f"has {len(amounts)} pads for {len(axes)} axes; two for each")
    pairs = [(0, 0)] * rank
    for axis, before, after in zip(axes, amounts[: len(axes)], amounts[len(axes) :], strict=True):
        if min(before, after) < 0:
            raise Refused(f"pads axis {axis} by {before} and {after}; neither may be negative")
        pairs[axis] = (before, after)
    value = float(node.attributes.get("value", 0.0))
    if node.has(2):
        value = float(t.stored(node, 2, "the value").reshape(-1)[0])
    laid = [pairs[axis] for axis in x.order]
    zero, quant = 0.0, (x.tensor.scale[0], x.tensor.zero_point[0]) if x.tensor.scale else None
    if quant is not None:
        whole = _padding_integer(t, node, value, *quant)
        if whole is None:
            x, quant = t.ordered(t.held(node, 0), x.order), None
        else:
            zero, value = quant[1], whole
    if value == zero:
        return Held.of(t.builder.pad(x.tensor, laid, name=node.outputs[0]), x.order)
    dtype = np.float32 if quant is None else np.int8
    inputs = [
        x.tensor,
        t.builder.constant(f"{node.outputs[0]}/pads", np.array(laid, np.int32)),
        t.builder.constant(f"{node.outputs[0]}/value", np.array([value], dtype), *(quant or (None,))),
    ]
    shape = [size + sum(pair) for size, pair in zip(x.tensor.shape, laid, strict=True)]
    return Held.of(t.builder.emit("PADV2", inputs, shape, None, node.outputs[0], "PadV2Options"), x.order)


def _padding_integer(t: Translation, node: Node, value: float, scale: float, zero_point: int) -> int | None:
    """The int8 number that a Pad writes; None for a real number that none stands for."""
    if isinstance(t.value(node, 0), Real):
        found = np.clip(np.rint(np.float32(value) / np.float32(scale)), -128 - zero_point, 127 - zero_point)
        after = t.only_reader(node.outputs[0])
        requantized = after is not None and after.op == "QuantizeLinear" and t.parameters(after, 1, 2)
        if requantized != (scale, zero_point) and np.float32(found) * np.float32(scale) != np.float32(value):
            return None
        return int(found) + zero_point
    return int(value) - (LOWERED if t.integer_type(node.inputs[0]) == np.uint8 else 0)


def resize(t: Translation, node: Node, x: Held) -> Held:
    """Resize and Upsample over height and width, where TFLite takes the same places.

    Where each result comes from is what ONNX Runtime makes of an image of its own coordinates.
    """
    check_rank(x, (4,))
    mode, how = (node.attributes.get(key, "") for key in ("mode", "coordinate_transformation_mode"))
    if mode not in ("", "nearest", "linear", "bilinear"):
        raise Refused(f"resizes in the mode {mode}; nearest and linear are supported")
    if how.startswith("tf_crop"):
        raise Refused(f"has the coordinates {how}")
    if node.attributes.get("antialias", 0):
        raise Refused("is antialiased")
    shape, wanted = _sources(t, node, x)
    if shape[:2] != x.shape[:2]:
        raise Refused(f"resizes {listed(x.shape)} to {listed(shape)}: height and width are supported")
    linear, name = mode in ("linear", "bilinear"), node.outputs[0]
    if linear and x.tensor.scale:  # doubled images are full of ties, which no two float32 sums round alike
        raise Refused("resizes integers in the mode linear; nearest is supported")
    image = t.ordered(x, image_order(4)).tensor
    for align, half in ((False, False), (True, False), (False, True)):
        if any(
            not np.allclose(
                line, _places(before, len(line), linear=linear, align=align, half=half), rtol=1e-6, atol=1e-5
            )
            for line, before in zip(wanted, x.shape[2:], strict=True)
        ):
            continue
        if not linear:
            made = t.builder.resize_nearest_neighbor(
                image, shape[2:], align_corners=align, half_pixel_centers=half, name=name
            )
            return Held.of(made, image_order(4))
        fields = {"alignCorners": align, "halfPixelCenters": half}
        inputs = [image, t.builder.constant(f"{name}/size", np.array(shape[2:], np.int32))]
        laid = permuted(shape, image_order(4))
        made = t.builder.emit("RESIZE_BILINEAR", inputs, laid, None, name, "ResizeBilinearOptions", fields)
        return Held.of(made, image_order(4))
    raise Refused(f"takes other places than TFLite's resize does, from {listed(x.shape)} to {listed(shape)}")


def _sources(t: Translation, node: Node, x: Held) -> tuple[tuple[int, ...], list[Array]]:
    """The shape of the result, and for each of its rows and columns the place in x that it comes from."""
    lines = [np.arange(size, dtype=np.float32) for size in x.shape[2:]]
    found = [
        evaluated(t, node, np.ascontiguousarray(np.broadcast_to(line, x.shape)))
        for line in (lines[0][:, None], lines[1])
    ]
    if not found[0].size:
        raise Refused(f"resizes {listed(x.shape)} to {listed(found[0].shape)}")
    return found[0].shape, [found[0][0, 0, :, 0], found[1][0, 0, 0, :]]


def _places(before: int, after: int, *, linear: bool, align: bool, half: bool) -> Array:
    """As TFLite has them."""
    at = np.arange(after, dtype=np.float32) + np.float32(0.5 if half else 0.0)
    scale = np.float32((before - 1) / (after - 1) if align and after > 1 else before / after)
    if linear:
        along: Array = at * scale - np.float32(0.5 if half else 0.0)
    else:
        along = np.floor(at * scale + np.float32(0.5 if align else 0.0))
    return np.clip(along, 0, before - 1)


def depth_to_space(t: Translation, node: Node, x: Held) -> Held:
    return _blocks(t, node, x, "DEPTH_TO_SPACE", node.attributes.get("mode", "DCR") == "DCR")


def space_to_depth(t: Translation, node: Node, x: Held) -> Held:
    return _blocks(t, node, x, "SPACE_TO_DEPTH", True)


def _blocks(t: Translation, node: Node, x: Held, op: str, known: bool) -> Held:
    check_rank(x, (4,))
    if not known:
        raise Refused(f"has the mode {node.attributes['mode']}; DCR is supported")
    image, block = t.ordered(x, image_order(4)).tensor, int(node.attributes["blocksize"])
    batch, height, width, channels = image.shape
    if op == "SPACE_TO_DEPTH" and (height % block or width % block):
        raise Refused(f"makes blocks of {block} of {listed(x.shape)}")
    if op == "DEPTH_TO_SPACE" and channels % block**2:
        raise Refused(f"makes blocks of {block} of {channels} channels")
    shape = (batch, height * block, width * block, channels // block**2)
    if op == "SPACE_TO_DEPTH":
        shape = (batch, height // block, width // block, channels * block**2)
    table = "DepthToSpaceOptions" if op == "DEPTH_TO_SPACE" else "SpaceToDepthOptions"
    return Held.of(
        t.builder.emit(op, [image], shape, None, node.outputs[0], table, {"blockSize": block}), image_order(4)
    )


Mover = Callable[[Translation, Node, Held], Held | list[Held]]
MOVES: dict[str, Mover] = {
    "DepthToSpace": depth_to_space,
    "Dropout": dropout,
    "Flatten": flatten,
    "Gather": gather,
    "Identity": identity,
    "Pad": pad,
    "Reshape": reshape,
    "Resize": resize,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
    "Upsample": resize,
}
