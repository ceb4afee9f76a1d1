"""The memory that a network needs on any target, whatever kernels, layouts and forms are chosen: bounds from below.

    constants   weights of convolutions and fully connected layers, as many bytes as in the file. No stage makes
                them smaller, but equal ones may be stored once, taps that never touch the image may be left out, and
                channels that give the same number for every input lose their weights.
    activations of one layer: the input and the output of a layer whose output is of another size, so that it cannot
                take the input's place; else the larger of the two. A convolution may read what a PAD before it reads.

Only operators that an output depends on count.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.operators.table import OPERATORS
from stages.ir.operators.windows import Pool2D
from stages.support.messages.operator_error import called

_WEIGHTED = frozenset(name for name, operator in OPERATORS.items() if operator.macs is not None)
_POOLED = frozenset(name for name, operator in OPERATORS.items() if Pool2D in operator.layers)
_STORED = frozenset({"float32", "int8", "uint8", "int4", "int2"})  # in no fewer bytes than in the file


@dataclass(frozen=True)
class LeastMemory:
    """Bytes of all weights and of the activations of the layer that has most of them; what the latter is, for people.

    `weighted` is how many layers have weights, `heaviest` the one with most. `tensor` is the largest input or output of
    such a layer, which lies in one piece of memory; `tensor_name` is whose it is.
    """

    weights: int
    weighted: int
    heaviest: str
    activations: int
    largest: str
    tensor: int
    tensor_name: str


def least_memory(info: ModelInfo) -> LeastMemory:
    """The bounds for a network whose shapes are all known."""
    writers = {index: operator for operator in info.operators for index in operator.outputs}
    operators = _needed(info, writers)
    stored: dict[bytes, int] = {}
    heaviest, weighted, largest, tensor = (0, ""), 0, (0, ""), (0, "")
    for operator in operators:
        weights = _weights(operator, info, writers, stored)
        weighted += weights > 0
        heaviest = max(heaviest, (weights, f"{_named(operator, info)} {weights:,}"), key=lambda pair: pair[0])
        largest = max(largest, _activations(operator, info, writers), key=lambda pair: pair[0])
        tensor = max(tensor, _largest_tensor(operator, info, writers), key=lambda pair: pair[0])
    return LeastMemory(sum(stored.values()), weighted, heaviest[1], *largest, *tensor)


def _needed(info: ModelInfo, writers: dict[int, OperatorInfo]) -> list[OperatorInfo]:
    """The operators that an output depends on."""
    found: dict[int, OperatorInfo] = {}
    wanted = [index for index in info.outputs if index in writers]
    while wanted:
        operator = writers[wanted.pop()]
        if operator.index not in found:
            found[operator.index] = operator
            wanted += [index for index in operator.inputs if index in writers]
    return [found[index] for index in sorted(found)]


def _weights(
    operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo], stored: dict[bytes, int]
) -> int:
    """Bytes of an operator's constant weights, which join those `stored` by what may distinguish them."""
    if operator.op not in _WEIGHTED or len(operator.inputs) < 2 or operator.inputs[1] < 0:
        return 0
    weights = info.tensors[operator.inputs[1]]
    if weights.data is None or weights.dtype not in _STORED:
        return 0
    count = len(weights.data)
    if operator.op != "FULLY_CONNECTED":
        image = _source(operator, info, writers).shape
        for axis in (1, 2):
            count = count // weights.shape[axis] * min(weights.shape[axis], 2 * image[axis] - 1)
    digest = hashlib.sha256(_telling(operator, info, weights)).digest()
    stored[digest] = min(count, stored.get(digest, count))
    return count


def _telling(operator: OperatorInfo, info: ModelInfo, weights: TensorInfo) -> bytes:
    """The weights' bytes, without those of channels that may give one number for every input."""
    x, y = info.tensors[operator.inputs[0]], info.tensors[operator.outputs[0]]
    values = weights.values()
    if weights.scale.size <= 1 or not (x.scale.size and y.scale.size):
        return values.tobytes()
    taps = np.moveaxis(values, weights.axis, 0).reshape(weights.scale.size, -1).astype(np.int64)
    reach = np.abs(taps).sum(axis=1) * 255.0 * weights.scale.astype(np.float64) * float(x.scale[0]) / float(y.scale[0])
    return np.where((reach > 2)[:, None], taps, 0).astype(values.dtype).tobytes()


def _activations(operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo]) -> tuple[int, str]:
    """Bytes that are alive while a layer with windows or products runs, and what they are."""
    if operator.op not in _WEIGHTED | _POOLED:
        return 0, ""
    source, result = _source(operator, info, writers), info.tensors[operator.outputs[0]]
    read, written = source.bytes, result.bytes
    needed = read + written if read != written else read
    sizes = f"input {_sized(source)} and output {_sized(result)}" if read != written else f"input {_sized(source)}"
    return needed, f"{_named(operator, info)}: {sizes}"


def _largest_tensor(operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo]) -> tuple[int, str]:
    """The larger of input and output of a layer with windows or products, and what it is."""
    if operator.op not in _WEIGHTED | _POOLED:
        return 0, ""
    ends = {"input": _source(operator, info, writers), "output": info.tensors[operator.outputs[0]]}
    what, tensor = max(ends.items(), key=lambda end: end[1].bytes)
    return tensor.bytes, f"{_named(operator, info)}: {what} {_sized(tensor)}"


def _source(operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo]) -> TensorInfo:
    """What an operator reads, or what the PAD before it reads."""
    source = info.tensors[operator.inputs[0]]
    before = writers.get(source.index)
    if before is not None and before.op in ("PAD", "PADV2"):
        return info.tensors[before.inputs[0]]
    return source


def _sized(tensor: TensorInfo) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} {tensor.bytes:,}"


def _named(operator: OperatorInfo, info: ModelInfo) -> str:
    return called(operator.index, operator.op, info.tensors[operator.outputs[0]].name)
