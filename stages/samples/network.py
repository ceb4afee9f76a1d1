"""What a network takes and how many classes it tells apart, from its file: as model.json will say it."""

from __future__ import annotations

from math import prod

from stages.graph.tensor import ITEM_BYTES
from stages.models.tflite_reader import ModelInfo, TensorInfo
from stages.samples.files import Port


def inputs_and_classes(info: ModelInfo) -> tuple[list[Port] | None, int | None]:
    """The inputs as entries of model.json's `inputs`, and the elements of the first output.

    None for what the file does not say: import may infer it, or refuse the model.
    """
    inputs = [info.tensors[index] for index in info.inputs]
    ports = [_port(tensor) for tensor in inputs] if inputs and all(map(_known, inputs)) else None
    output = info.tensors[info.outputs[0]]
    return ports, prod(output.shape) if output.shape and _known(output) and not output.dynamic else None


def _known(tensor: TensorInfo) -> bool:
    return tensor.dtype in ITEM_BYTES and all(size > 0 for size in tensor.shape)


def _port(tensor: TensorInfo) -> Port:
    port = {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape), "bytes": tensor.bytes}
    if tensor.scale.size == 1:
        port |= {"scale": float(tensor.scale[0]), "zero_point": int(tensor.zero_point[0])}
    return port
