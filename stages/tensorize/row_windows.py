"""Images of one column as images of one row: the same bytes, and windows of one column become windows of one row.

Networks over time have them, (steps, 1, channels); kernels work along rows.
"""

from __future__ import annotations

from dataclasses import replace

from stages.ir.graph import Conv2D, DepthwiseConv2D, Graph, Layer, Move, Pool2D, Tensor
from stages.lower.simplify.edits import numbered, without_unread, writer


def is_column_window(graph: Graph, layer: Layer) -> bool:
    """Whether the layer slides a window along the only column of an image."""
    op, x = layer.op, graph.tensors[layer.inputs[0]]
    if not isinstance(op, Conv2D | DepthwiseConv2D | Pool2D) or len(x.shape) != 4:
        return False
    out = graph.tensors[layer.outputs[0]]
    is_column = x.shape[2] == out.shape[2] == op.kernel[1] == 1 and op.kernel[0] > 1 and x.shape[1] > 1
    return is_column and not op.padding[1] and not op.padding[3] and all(one.lies_as("NHWC") for one in (x, out))


def with_row_window(graph: Graph, layer: Layer) -> Graph:
    """The graph with the layer along a row, and reshapes, which cost nothing, where others see a column."""
    (source,), (target,) = layer.inputs, layer.outputs
    tensors = dict(graph.tensors)
    made = _turned(tensors[target], alias_of=None)
    before, first = writer(graph, source), list[Layer]()
    if before is not None and _is_turn(graph, before):
        x = tensors[before.inputs[0]]
    elif (found := tensors.get(f"{source}/row")) is not None and found.alias_of == source:
        x = found  # another layer reads the column as a row already
    else:
        x = _turned(tensors[source], alias_of=source)
        first = [_reshape(x.name, source, x.name)]
    tensors |= {x.name: x, made.name: made, target: tensors[target].model_copy(update={"alias_of": made.name})}
    own = layer.model_copy(update={"op": _along_rows(layer), "inputs": (x.name,), "outputs": (made.name,)})
    constants = dict(graph.constants)
    if isinstance(layer.op, Conv2D | DepthwiseConv2D):
        weights = layer.constants["weights"]
        letters = layer.op.kernel_layout if layer.op.kernel_layout != "HWC" else "1HWC"
        rows, columns = (letters.index("H"), letters.index("W")) if "H" in letters else (2, 3)
        constants[weights] = constants[weights].swapaxes(rows, columns)
    layers: list[Layer] = []
    for other in graph.layers:
        layers += [*first, own, _reshape(f"{layer.name}/column", made.name, target)] if other is layer else [other]
    return without_unread(numbered(replace(graph, tensors=tensors, layers=layers, constants=constants)))


def _along_rows(layer: Layer) -> Conv2D | DepthwiseConv2D | Pool2D:
    op = layer.op
    assert isinstance(op, Conv2D | DepthwiseConv2D | Pool2D)
    top, left, bottom, right = op.padding
    names = [name for name in ("kernel", "stride", "dilation") if hasattr(op, name)]
    swapped = {name: getattr(op, name)[::-1] for name in names}
    return op.model_copy(update={**swapped, "padding": (left, top, right, bottom)})


def _turned(tensor: Tensor, alias_of: str | None) -> Tensor:
    n, height, width, channels = tensor.shape
    fields = {"name": f"{tensor.name}/row", "shape": (n, width, height, channels), "alias_of": alias_of}
    return tensor.model_copy(update={**fields, "tflite_index": None, "offset": 0, "constant": False})


def _reshape(name: str, source: str, target: str) -> Layer:
    return Layer(index=0, name=name, op=Move(kind="reshape"), inputs=(source,), outputs=(target,))


def _is_turn(graph: Graph, layer: Layer) -> bool:
    """Whether a layer is the reshape behind a turned one."""
    if not isinstance(layer.op, Move) or layer.op.kind != "reshape":
        return False
    shapes = [graph.tensors[name].shape for name in (*layer.inputs, *layer.outputs)]
    return all(len(shape) == 4 for shape in shapes) and shapes[0] == tuple(shapes[1][axis] for axis in (0, 2, 1, 3))
