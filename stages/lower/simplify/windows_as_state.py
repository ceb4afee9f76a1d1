"""Keep sliding windows as state, so that a run copies only their new rows.

Keras writes a window over time as a state of the old rows, which each run reads, joins with new rows, and writes:

    r = READ_VARIABLE(state)     w = CONCATENATION(r, x)     ASSIGN_VARIABLE(state, w[k:])

or as a state of the whole window:    w = CONCATENATION(READ_VARIABLE(state)[k:], x)     ASSIGN_VARIABLE(state, w)

Here the state becomes the window itself. Its rows move by k at the start of a run, in place, and the new rows are
written after them:

    window  | a b c d |   ->   | b c d . |   ->   | b c d e |
                        slide              x

Nothing else is copied, and the layer that computes x can write into the window (`stages.tensorize.sharing`).
New rows may also stand first, or on both sides. Nothing writes the window before the next run: it may be read at any
time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from stages.ir.arrays import Array
from stages.ir.graph import Concatenation, Graph, Layer, Move, Tensor
from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.operators.variables import Assign, Read, Slide
from stages.lower.simplify.edits import readers, unused, without_unread, writer
from stages.lower.simplify.rewrites import Rewrite

_OUTPUT_ALIGNMENT = 64  # of model outputs, as in stages.tensorize.sharing
_SLICES = ("slice", "strided_slice", "split")


@dataclass(frozen=True)
class _Window:
    """A state and the window that it is part of.

    join     concatenation that makes the window; old: its input with rows of the state
    source   row of the window where the old rows are before they move, target: after that
    first    row of the window where the state's rows begin
    reads    layers that read the state before it is written, later: after that
    assign   layer that writes the state
    """

    state: Tensor
    join: Layer
    old: str
    source: int
    target: int
    first: int
    reads: tuple[Layer, ...]
    later: tuple[Layer, ...]
    assign: Layer


def with_windows_as_state(graph: Graph) -> tuple[Graph, list[Rewrite]]:
    """Return the graph with its sliding windows as state, and the rewrites. Other states stay."""
    rewrites = []
    for name in [name for name, tensor in graph.tensors.items() if tensor.state]:
        window = next(_windows(graph, name), None)
        if window is not None:
            graph = _with_window(graph, window)
            rows, new = _rows_text(graph, window)
            what = f"keeps its window of {rows} rows in place: {new} new per run, nothing else is copied"
            rewrites.append(Rewrite(rule="state", layers=(window.old, window.assign.name), what=what))
    return graph, rewrites


def _rows_text(graph: Graph, window: _Window) -> tuple[int, int]:
    axis = _axis(graph, window.join)
    rows = graph.tensors[window.join.outputs[0]].shape[axis]
    return rows, rows - graph.tensors[window.old].shape[axis]


def _windows(graph: Graph, name: str) -> Iterator[_Window]:
    """Yield the windows that may replace a state."""
    users = [layer for layer in graph.layers if name in (*layer.inputs, *layer.state)]
    reads = [layer for layer in users if isinstance(layer.op, Read)]
    writes = [layer for layer in users if isinstance(layer.op, Assign)]
    if len(writes) != 1 or len(reads) + 1 != len(users):
        return
    (assign,) = writes
    (value,), (written,) = assign.inputs, assign.outputs
    before = tuple(layer for layer in reads if layer.index < assign.index)
    later = tuple(layer for layer in reads if layer.index > assign.index)
    if written in graph.outputs or readers(graph, written):
        return
    for joined, axis, first in ((value, None, 0), *_slice_of(graph, value)):
        join = writer(graph, joined)
        if join is None or not isinstance(join.op, Concatenation) or axis not in (None, _axis(graph, join)):
            continue
        target = 0
        for part in join.inputs:
            rows = graph.tensors[part].shape[_axis(graph, join)]
            for source, part_axis, begin in ((part, None, 0), *_slice_of(graph, part)):
                read = writer(graph, source)
                if read not in before or part_axis not in (None, _axis(graph, join)):
                    continue
                state = graph.tensors[name]
                window = _Window(state, join, part, first + begin, target, first, before, later, assign)
                if first + begin != target and _is_possible(graph, window):
                    yield window
            target += rows


def _slice_of(graph: Graph, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield input, axis and first index if the tensor is a contiguous slice along one axis."""
    layer = writer(graph, name)
    if layer is None or not isinstance(layer.op, Move) or layer.kind not in _SLICES:
        return
    (source,), params = layer.inputs, layer.op.params
    x, y = graph.tensors[source], graph.tensors[name]
    cut = [axis for axis, size in enumerate(params["size"]) if size != x.shape[axis]]
    if len(cut) == 1 and set(params["stride"]) == {1} and tuple(params["size"]) == y.shape:
        yield source, cut[0], params["begin"][cut[0]]


def _is_possible(graph: Graph, window: _Window) -> bool:
    """Return whether all readers of the state and of the window get the same values."""
    join, old, tensors = window.join, window.old, graph.tensors
    (joined,) = join.outputs
    names = (window.state.name, *join.inputs, joined)
    if join.state or join.inputs.count(old) != 1 or len({tensors[name].dtype for name in names}) != 1:
        return False
    if any(tensors[name].alias_of or not _is_logical(tensors[name]) for name in (window.state.name, old, joined)):
        return False
    if not _is_whole(window):  # a part of the state is joined: nothing else may read the state before it is written
        if len(window.reads) != 1 or window.reads[0].outputs[0] in graph.outputs:
            return False
        if [old in reader.outputs for reader in readers(graph, window.reads[0].outputs[0])] != [True]:
            return False
    if _outer(graph, window) > 1:  # the old rows lie apart
        return len(window.reads) == 1 and readers(graph, old) == [join] and old not in graph.outputs
    return old not in graph.outputs or _offset(graph, window) % _OUTPUT_ALIGNMENT == 0


def _is_whole(window: _Window) -> bool:
    """Return whether the window has all rows of the state."""
    return any(window.old in layer.outputs for layer in window.reads)


def _is_logical(tensor: Tensor) -> bool:
    return not tensor.layout.bits and tensor.lies_as("NHWC" if len(tensor.shape) == 4 else "")


def _axis(graph: Graph, join: Layer) -> int:
    assert isinstance(join.op, Concatenation)
    return join.op.axis % len(graph.tensors[join.outputs[0]].shape)


def _outer(graph: Graph, window: _Window) -> int:
    """Return the windows in memory: 1 if their axis is the first of several elements."""
    return prod(graph.tensors[window.old].shape[: _axis(graph, window.join)])


def _offset(graph: Graph, window: _Window) -> int:
    """Return the byte offset of the old rows in the window after the move."""
    old = graph.tensors[window.old]
    return window.target * prod(old.shape[_axis(graph, window.join) + 1 :]) * ITEM_BYTES[old.dtype]


def _with_window(graph: Graph, window: _Window) -> Graph:
    tensors, constants, old = dict(graph.tensors), dict(graph.constants), graph.tensors[window.old]
    axis, (joined,), (value,) = _axis(graph, window.join), window.join.outputs, window.assign.inputs
    name = unused(tensors, f"{window.state.name}/window")
    fields = {"name": name, "shape": tensors[joined].shape, "layout": tensors[joined].layout, "tflite_index": None}
    state = tensors[name] = window.state.model_copy(update=fields)
    apart = {"tflite_index": None} if _outer(graph, window) > 1 else {}  # in memory it differs from the file's tensor
    tensors[old.name] = old.model_copy(update={"alias_of": name, "offset": _offset(graph, window), **apart})
    tensors[joined] = tensors[joined].model_copy(update={"alias_of": name})
    begin, roles = _initial(graph, window), {}
    if not (begin == state.initial).all():
        roles["begin"] = unused(constants, f"{name}/begin")
        constants[roles["begin"]] = begin
    slide = Layer(
        index=0,
        name=old.name,
        op=Slide(axis=axis, source=window.source, target=window.target, rows=old.shape[axis]),
        inputs=(),
        outputs=(old.name,),
        state=(name,),
        constants=roles,
        tflite_op=window.reads[0].tflite_op,
    )
    views = {layer.name: old.name for layer in window.reads} | {layer.name: value for layer in window.later}
    layers = [slide]
    for layer in graph.layers:
        if old.name in layer.outputs or layer is window.assign:
            continue
        if layer is window.join:
            layers.append(layer.model_copy(update={"state": (name,)}))
        elif layer.name not in views:
            layers.append(layer)
        elif _is_whole(window) or layer in window.later:
            layers.append(layer.model_copy(update={"op": Move(kind="reshape"), "inputs": (views[layer.name],)}))
            (out,) = layer.outputs
            tensors[out] = tensors[out].model_copy(update={"alias_of": views[layer.name]})
    return without_unread(replace(graph, tensors=tensors, layers=layers, constants=constants))


def _initial(graph: Graph, window: _Window) -> Array:
    """Return the window after a reset. Rows outside of the state repeat its nearest row."""
    begin = graph.initial_state(window.state.name)
    axis, rows = _axis(graph, window.join), graph.tensors[window.join.outputs[0]].shape[_axis(graph, window.join)]
    amounts = [(0, 0)] * begin.ndim
    amounts[axis] = (window.first, rows - window.first - begin.shape[axis])
    return np.pad(begin.reshape(window.state.shape), amounts, mode="edge")
