"""Turn windows along the only column of an image into windows along a row.

Networks over time have such images, (steps, 1, channels). Kernels work along rows.
"""

from dataclasses import replace

from stages.ir.graph import Conv2D, DepthwiseConv2D, Graph, Layer, Move, Pool2D, Tensor
from stages.lower.simplify.edits import numbered, without_unread, writer


def is_column_window(graph: Graph, layer: Layer) -> bool:
    """Return whether the layer slides a window along the only column of an image."""
    op = layer.op
    if not isinstance(op, Conv2D | DepthwiseConv2D | Pool2D) or len(graph.tensors[layer.inputs[0]].shape) != 4:
        return False
    x = graph.tensors[layer.inputs[0]]
    out = graph.tensors[layer.outputs[0]]
    is_column = x.shape[2] == out.shape[2] == op.kernel[1] == 1 and op.kernel[0] > 1 and x.shape[1] > 1
    return is_column and not op.padding[1] and not op.padding[3] and all(tensor.lies_as("NHWC") for tensor in (x, out))


def with_row_window(graph: Graph, layer: Layer) -> Graph:
    """Return the graph with the layer along a row, between reshapes (which are free)."""
    (source,), (target,) = layer.inputs, layer.outputs
    tensors = dict(graph.tensors)
    row = _as_row(tensors[target], alias_of=None)
    before, reshapes = writer(graph, source), list[Layer]()
    if before is not None and _is_reshape_from_row(graph, before):
        x = tensors[before.inputs[0]]
    elif (known_row := tensors.get(f"{source}/row")) is not None and known_row.alias_of == source:
        x = known_row  # another layer reads the column as a row already
    else:
        x = _as_row(tensors[source], alias_of=source)
        reshapes = [_reshape(x.name, source, x.name)]
    tensors |= {x.name: x, row.name: row, target: tensors[target].model_copy(update={"alias_of": row.name})}
    along_row = layer.model_copy(update={"op": _along_rows(layer), "inputs": (x.name,), "outputs": (row.name,)})
    constants = dict(graph.constants)
    if isinstance(layer.op, Conv2D | DepthwiseConv2D):
        weights = layer.constants["weights"]
        letters = layer.op.kernel_layout if layer.op.kernel_layout != "HWC" else "1HWC"
        rows, columns = (letters.index("H"), letters.index("W")) if "H" in letters else (2, 3)
        constants[weights] = constants[weights].swapaxes(rows, columns)
    layers: list[Layer] = []
    for other in graph.layers:
        layers += (
            [*reshapes, along_row, _reshape(f"{layer.name}/column", row.name, target)] if other is layer else [other]
        )
    return without_unread(numbered(replace(graph, tensors=tensors, layers=layers, constants=constants)))


def _along_rows(layer: Layer) -> Conv2D | DepthwiseConv2D | Pool2D:
    op = layer.op
    assert isinstance(op, Conv2D | DepthwiseConv2D | Pool2D)
    top, left, bottom, right = op.padding
    names = [name for name in ("kernel", "stride", "dilation") if hasattr(op, name)]
    swapped = {name: getattr(op, name)[::-1] for name in names}
    return op.model_copy(update={**swapped, "padding": (left, top, right, bottom)})


def _as_row(tensor: Tensor, alias_of: str | None) -> Tensor:
    n, height, width, channels = tensor.shape
    fields = {"name": f"{tensor.name}/row", "shape": (n, width, height, channels), "alias_of": alias_of}
    return tensor.model_copy(update={**fields, "tflite_index": None, "offset": 0, "constant": False})


def _reshape(name: str, source: str, target: str) -> Layer:
    return Layer(index=0, name=name, op=Move(kind="reshape"), inputs=(source,), outputs=(target,))


def _is_reshape_from_row(graph: Graph, layer: Layer) -> bool:
    """Return whether the layer is the reshape after a layer along a row."""
    if not isinstance(layer.op, Move) or layer.op.kind != "reshape":
        return False
    shapes = [graph.tensors[name].shape for name in (*layer.inputs, *layer.outputs)]
    return all(len(shape) == 4 for shape in shapes) and shapes[0] == tuple(shapes[1][axis] for axis in (0, 2, 1, 3))
