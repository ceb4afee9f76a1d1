"""Inputs and number of classes of a network file, as in model.json."""

from collections.abc import Mapping
from math import prod
from typing import Any

from stages.ir.layers.tensor import ITEM_BYTES
from stages.ir.model_info import ModelInfo, TensorInfo
from stages.ir.models.index_ranges import index_ranges
from stages.ir.samples.files import RANGE, Port


def inputs_and_classes(
    info: ModelInfo, rules: Mapping[int, Mapping[str, Any]] | None = None
) -> tuple[list[Port] | None, int | None]:
    """Return the inputs as in model.json's `inputs`, and the elements of the first output.

    Inputs of indices have a `range`: least and greatest. `rules` are import's facts of operators, if known. None for
    facts that the file does not contain: import may infer them, or refuse the model.
    """
    inputs, ranges = [info.tensors[index] for index in info.inputs], index_ranges(info, rules)
    ports = None
    if inputs and all(map(_known, inputs)):
        ports = [_port(tensor, ranges.get(tensor.index)) for tensor in inputs]
    output = info.tensors[info.outputs[0]]
    return ports, prod(output.shape) if output.shape and _known(output) and not output.dynamic else None


def _known(tensor: TensorInfo) -> bool:
    return tensor.dtype in ITEM_BYTES and all(size > 0 for size in tensor.shape)


def _port(tensor: TensorInfo, limits: tuple[int, int] | None) -> Port:
    port: dict[str, Any] = {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "bytes": tensor.bytes,
    }
    if tensor.scale.size == 1:
        port |= {"scale": float(tensor.scale[0]), "zero_point": int(tensor.zero_point[0])}
    return port if limits is None else {**port, RANGE: limits}
