"""Merge depthwise convolutions of neighbouring channels.

Smaller kernels are filled up with zero weights. Networks with kernels of several sizes (MixConv) split the channels of
an image, convolve the parts, and join them:

    x[t, 0:32]  -> last 7 rows  -> depthwise 7x1  |
    x[t, 32:64] -> last 11 rows -> depthwise 11x1 | -> concatenation     =     x -> depthwise 11x1

The first 32 channels get four rows of weights equal to their zero point, which add nothing to a sum: the result is
exact. Channels of an image are not neighbours in memory, so the merged layer saves copies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from stages.ir.graph import Concatenation, DepthwiseConv2D, Graph, Layer, Move
from stages.lower.simplify.edits import is_private, numbered, unused, without_unread, writer

_ROLES = ({"weights", "multiplier", "shift"}, {"weights", "bias", "multiplier", "shift"})
_SHARED = ("stride", "input_zero_point", "weight_zero_point", "output_zero_point", "act_min", "act_max")


@dataclass(frozen=True)
class _Part:
    """A depthwise convolution of an image slice that starts at this row, column, channel."""

    layer: Layer
    image: str
    begin: tuple[int, int, int]
    slices: tuple[Layer, ...]

    @property
    def op(self) -> DepthwiseConv2D:
        return cast("DepthwiseConv2D", self.layer.op)


@dataclass(frozen=True)
class Merged:
    """The graph with a merged layer, and the names of replaced and new layers.

    Replaced layers do not include views.
    """

    graph: Graph
    before: tuple[str, ...]
    after: tuple[str, ...]


def merged_depthwise(graph: Graph, join: Layer) -> Merged | None:
    """Return the graph with a concatenation's depthwise inputs as one, None if they differ."""
    parts = [_part(graph, name) for name in join.inputs] if _joins_channels(graph, join) else []
    known = [part for part in parts if part is not None]
    if len(known) < max(len(parts), 2) or not _is_alike(graph, known):
        return None
    image, out = graph.tensors[known[0].image], graph.tensors[join.outputs[0]]
    ops, channels = [part.op for part in known], 0
    for part in known:
        if part.begin[2] != channels:
            return None
        channels += part.op.in_channels
    if channels != image.shape[3]:
        return None
    begin, kernel, window, first = [0] * 4, [0, 0], list(image.shape), np.zeros((len(known), 2), int)
    dilations = [_dilation(ops, axis) for axis in (0, 1)]
    for axis, dilation in enumerate(dilations):
        step, begins = ops[0].stride[axis], [part.begin[axis] for part in known]
        start = begin[1 + axis] = min(begins)
        if not dilation or any((other - start) % dilation for other in begins):
            return None
        first[:, axis] = [(other - start) // dilation for other in begins]
        kernel[axis] = max(int(at) + op.kernel[axis] for at, op in zip(first[:, axis], ops, strict=True))
        window[1 + axis] = (out.shape[1 + axis] - 1) * step + (kernel[axis] - 1) * dilation + 1
    size = (kernel[0], kernel[1])
    weights = [_placed(graph, part, size, (int(at[0]), int(at[1]))) for part, at in zip(known, first, strict=True)]
    shared = {name: getattr(ops[0], name) for name in (*_SHARED, "padding", "rounding")}
    shared["dilation"] = (dilations[0], dilations[1])
    op = DepthwiseConv2D(**shared, kernel=size, depth_multiplier=1, in_channels=channels, out_channels=channels)
    constants = {"weights": np.concatenate(weights, axis=3)}
    for role in known[0].layer.constants.keys() - {"weights"}:
        constants[role] = np.concatenate([graph.view(part.layer).constant(role) for part in known])
    return _with_layer(graph, join, known, op, constants, (begin, window))


def _dilation(ops: Sequence[DepthwiseConv2D], axis: int) -> int:
    """Return the dilation along an axis; 0 if kernels with several taps have different ones."""
    dilations = {op.dilation[axis] for op in ops if op.kernel[axis] > 1} or {1}
    return dilations.pop() if len(dilations) == 1 else 0


def _joins_channels(graph: Graph, join: Layer) -> bool:
    out = graph.tensors[join.outputs[0]]
    is_join = isinstance(join.op, Concatenation) and not join.state and len(out.shape) == 4
    return is_join and cast("Concatenation", join.op).axis % 4 == 3 and join.wanted is None and out.lies_as("NHWC")


def _part(graph: Graph, name: str) -> _Part | None:
    layer = writer(graph, name)
    if layer is None or not isinstance(layer.op, DepthwiseConv2D) or layer.wanted is not None:
        return None
    op, x = layer.op, graph.tensors[layer.inputs[0]]
    is_plain = op.depth_multiplier == 1 and not any(op.padding) and layer.constants.keys() in _ROLES
    if not is_plain or not is_private(graph, name) or not x.lies_as("NHWC"):
        return None
    begin, image, slices = [0, 0, 0, 0], x, []
    while (cut := writer(graph, image.name)) is not None and isinstance(cut.op, Move) and "size" in cut.op.params:
        params, source = cut.op.params, graph.tensors[cut.inputs[0]]
        if set(params["stride"]) != {1} or len(source.shape) != 4 or tuple(params["size"]) != image.shape:
            break
        begin = [a + b for a, b in zip(begin, params["begin"], strict=True)]
        slices.append(cut)
        image = source
    return _Part(layer, image.name, (begin[1], begin[2], begin[3]), tuple(slices))


def _is_alike(graph: Graph, parts: Sequence[_Part]) -> bool:
    def fields(part: _Part) -> tuple[object, ...]:
        view, op = graph.view(part.layer), part.op
        types = (view.inputs[0].dtype, view.outputs[0].dtype, view.inputs[0].shape[0])
        weights = (str(view.constant("weights").dtype), *sorted(part.layer.constants))
        return (part.image, op.rounding, *(getattr(op, name) for name in _SHARED), types, weights)

    return len({fields(part) for part in parts}) == 1 and graph.tensors[parts[0].image].lies_as("NHWC")


def _placed(graph: Graph, part: _Part, kernel: tuple[int, int], first: tuple[int, int]) -> np.ndarray:
    """Return the part's weights in a larger kernel, (1, kh, kw, channels), from tap `first`."""
    weights = graph.view(part.layer).constant("weights")
    if part.op.kernel_layout == "OIHW":
        weights = weights.transpose(1, 2, 3, 0)
    larger = np.full((1, *kernel, weights.shape[3]), part.op.weight_zero_point, weights.dtype)
    larger[:, first[0] : first[0] + weights.shape[1], first[1] : first[1] + weights.shape[2]] = weights
    return larger


def _with_layer(
    graph: Graph,
    join: Layer,
    parts: Sequence[_Part],
    op: DepthwiseConv2D,
    constants: dict[str, np.ndarray],
    window: tuple[list[int], list[int]],
) -> Merged:
    """Return the graph with the merged layer in place of the concatenation.

    The layer reads a slice of the image if it needs one.
    """
    names = {role: unused(graph.constants, f"{join.name}/{role}") for role in constants}
    added = {names[role]: values for role, values in constants.items()}
    tensors, image = dict(graph.tensors), graph.tensors[parts[0].image]
    (begin, size), layers = window, list[Layer]()
    source = image.name
    if tuple(size) != image.shape:
        source = unused(tensors, f"{join.name}/rows")
        fields = {"name": source, "shape": tuple(size), "alias_of": None, "offset": 0, "tflite_index": None}
        tensors[source] = image.model_copy(update={**fields, "constant": False, "state": False})
        cut = Move(kind="slice", params={"begin": begin, "stride": [1] * 4, "size": size})
        layers.append(Layer(index=0, name=source, op=cut, inputs=(image.name,), outputs=(source,)))
    layers.append(join.model_copy(update={"op": op, "inputs": (source,), "constants": names}))
    replaced = [part for other in graph.layers for part in (layers if other is join else [other])]
    changed = without_unread(
        numbered(replace(graph, layers=replaced, tensors=tensors, constants={**graph.constants, **added}))
    )
    left = {layer.name for layer in changed.layers}
    copied = [cut.name for part in parts for cut in part.slices if _cuts_channels(graph, cut) and cut.name not in left]
    return Merged(
        changed, (*(part.layer.name for part in parts), *dict.fromkeys(copied)), tuple(layer.name for layer in layers)
    )


def _cuts_channels(graph: Graph, cut: Layer) -> bool:
    return graph.tensors[cut.inputs[0]].shape[3] != graph.tensors[cut.outputs[0]].shape[3]
