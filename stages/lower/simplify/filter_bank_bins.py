"""Connect a filter bank to the energies, without the copies in between.

Front ends of TFLM set the energies of bins outside of the filter bank to zero: casts to int32 and back, a slice and a
concatenation with zeros. The weights of these bins are zero too. So the filter bank can read the energies directly.
"""

from collections.abc import Mapping

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Concatenation, Graph, Layer, Move
from stages.ir.layers.channels import ValueRange
from stages.ir.operators.casting import Cast
from stages.ir.operators.signal_filter_bank import FilterBank
from stages.lower.simplify.edits import replaced, writer

_FILLED = -1  # the place of an element that comes from no element of the source
_SAME_BITS = ("int32", "uint32")


def bins(graph: Graph, ranges: Mapping[str, ValueRange], layer: Layer) -> tuple[Graph, str] | None:
    """Connect filter banks to the tensor from which their bins are copied."""
    if not isinstance(layer.op, FilterBank):
        return None
    view = graph.view(layer)
    name, places = _source(graph, layer.inputs[0])
    source, x = graph.tensors[name], view.inputs[0]
    if name == x.name or source.dtype != x.dtype or source.shape[:-1] != x.shape[:-1]:
        return None
    weights, unweights, firsts, starts, widths = (view.constant(role).astype(np.int64) for role in layer.constants)
    trimmed = []
    for first, start, width in zip(firsts, starts, widths, strict=True):
        part = slice(start, start + max(width, 0))
        used = np.flatnonzero(weights[part] | unweights[part])
        trimmed.append((first + used[0], start + used[0], used[-1] + 1 - used[0]) if used.size else (0, 0, 0))
    moved = _shift(places.reshape(-1, x.shape[-1]), source.shape[-1], trimmed)
    if moved is None:
        return None
    sections = np.array([(first + moved if width else 0, start, width) for first, start, width in trimmed], np.int16).T
    constants = dict(
        zip(layer.constants, (weights.astype(np.int16), unweights.astype(np.int16), *sections), strict=True)
    )
    return replaced(graph, layer, layer.op, (name,), constants), "reads the energies before they are copied"


def _shift(places: Array, size: int, sections: list[tuple[int, int, int]]) -> int | None:
    """Return the offset from a bin to its index in the source, None if it varies.

    Frames have `size` bins.
    """
    read = [bin_ for first, _, width in sections for bin_ in range(first, first + width)]
    if not read or (places[:, read] == _FILLED).any():
        return None
    frames = size * np.arange(len(places))[:, None]
    shifts = np.unique(places[:, read] - frames - np.array(read))
    return int(shifts[0]) if len(shifts) == 1 else None


def _source(graph: Graph, name: str) -> tuple[str, Array]:
    """Return a tensor's source before copying layers, and each element's index in it.

    Zeros from constants are _FILLED.
    """
    tensor, layer = graph.tensors[name], writer(graph, name)
    here = name, np.arange(tensor.elements).reshape(tensor.shape)
    if layer is None or layer.state or name in graph.outputs:
        return here
    view = graph.view(layer)
    computed = [x for x in view.inputs if not x.constant]
    constants = [x for x in view.inputs if x.constant]
    is_cast = isinstance(layer.op, Cast) and {tensor.dtype, view.inputs[0].dtype} <= {*_SAME_BITS}
    moves = isinstance(layer.op, Concatenation) or (isinstance(layer.op, Move) and "value" not in layer.op.params)
    if len(computed) != 1 or not (is_cast or moves) or any(view.arrays[x.name].any() for x in constants):
        return here
    source, inner = _source(graph, computed[0].name)
    arrays = [np.full(x.shape, _FILLED) if x.constant else inner.reshape(x.shape) for x in view.inputs]
    return source, arrays[0] if is_cast else layer.op.compute(view, *arrays)
