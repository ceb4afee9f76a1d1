"""Lower bounds of a network's memory for any target, kernels and layouts.

    constants   weights of convolutions and fully connected layers, as many bytes as in the file, but equal ones may be
                stored once, and taps that never touch the image may be dropped.
    activations of one layer: input and output if their sizes differ, so that the output cannot replace the input;
                else the larger one. A convolution may read the input of a PAD before it. With layers by rows, only
                float layers on tensors other than images count.

Only operators that an output depends on count. If channels of a layer may be removed (`_may_lose_channels`), all later
layers may shrink as well: then nothing is known, and all bounds are 0.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.operators.table import OPERATORS
from stages.ir.operators.windows import Pool2D
from stages.support.messages.operator_error import operator_label

_WEIGHTED = frozenset(name for name, operator in OPERATORS.items() if operator.weights.macs is not None)
_PADS = frozenset({"PAD", "PADV2"})
_POOLED = frozenset(name for name, operator in OPERATORS.items() if Pool2D in operator.legalization.layers)
_STORED = frozenset({"float32", "int8", "uint8", "int4", "int2"})  # stored in at least the file's bytes

_FEW_VALUES = 16  # an output channel with fewer may be constant once the ranges of its inputs are known


@dataclass(frozen=True)
class LeastMemory:
    """Lower bounds in bytes, with texts for messages.

    weights      of all layers
    weighted     number of layers with weights
    heaviest     layer with the most weights
    activations  of the layer with the most
    largest      that layer, with its sizes
    tensor       largest input or output of a layer, which is contiguous in memory
    tensor_name  that layer and tensor
    """

    weights: int
    weighted: int
    heaviest: str
    activations: int
    largest: str
    tensor: int
    tensor_name: str


def least_memory(info: ModelInfo, *, by_rows: bool) -> LeastMemory:
    """Return the bounds for a network whose shapes are all known.

    `by_rows`: layers may run by rows.
    """
    writers = {index: operator for operator in info.operators for index in operator.outputs}
    operators = _needed(info, writers)
    if any(_may_lose_channels(operator, info) for operator in operators):
        return LeastMemory(0, 0, "", 0, "", 0, "")
    stored: dict[bytes, int] = {}
    heaviest, weighted, largest, tensor = (0, ""), 0, (0, ""), (0, "")
    for operator in operators:
        weights = _weights(operator, info, writers, stored)
        weighted += weights > 0
        heaviest = max(heaviest, (weights, f"{_named(operator, info)} {weights:,}"), key=lambda pair: pair[0])
        source = _source(operator, info, writers)
        if by_rows and (source.dtype != "float32" or len(source.shape) == 4):
            continue
        largest = max(largest, _activations(operator, info, writers), key=lambda pair: pair[0])
        tensor = max(tensor, _largest_tensor(operator, info, writers), key=lambda pair: pair[0])
    return LeastMemory(sum(stored.values()), weighted, heaviest[1], *largest, *tensor)


def _needed(info: ModelInfo, writers: dict[int, OperatorInfo]) -> list[OperatorInfo]:
    """Return the operators that an output depends on."""
    needed: dict[int, OperatorInfo] = {}
    pending = [index for index in info.outputs if index in writers]
    while pending:
        operator = writers[pending.pop()]
        if operator.index not in needed:
            needed[operator.index] = operator
            pending += [index for index in operator.inputs if index in writers]
    return [needed[index] for index in sorted(needed)]


def _weights(
    operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo], stored: dict[bytes, int]
) -> int:
    """Return the bytes of an operator's constant weights.

    They are added to `stored` under their digest.
    """
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
    digest = hashlib.sha256(weights.values().tobytes()).digest()
    stored[digest] = min(count, stored.get(digest, count))
    return count


def _may_lose_channels(operator: OperatorInfo, info: ModelInfo) -> bool:
    """Return whether an integer layer may have channels that simplification removes.

    These are outputs that reach few values over all inputs (later ranges are narrower than those assumed here), outputs
    that are equal to others, and inputs whose weights are all zero.
    """
    if operator.op not in _WEIGHTED or len(operator.inputs) < 2 or operator.inputs[1] < 0:
        return False
    x, weights, y = (info.tensors[index] for index in (*operator.inputs[:2], operator.outputs[0]))
    if weights.data is None or not (weights.scale.size and x.scale.size and y.scale.size):
        return False
    is_depthwise = operator.op == "DEPTHWISE_CONV_2D"
    values = np.moveaxis(weights.values().astype(np.int64) - _zero_point(weights), -1 if is_depthwise else 0, 0)
    bias_index = operator.inputs[2] if len(operator.inputs) > 2 else -1
    bias = info.tensors[bias_index].values() if bias_index >= 0 and info.tensors[bias_index].data is not None else 0
    taps = values.reshape(len(values), -1)
    scale = weights.scale.astype(np.float64) * float(x.scale[0]) / float(y.scale[0])
    x_limits, y_limits = _limits(x), _limits(y)
    ends = [taps * limit for limit in x_limits]
    least, most = (
        np.clip((bias + reach.sum(axis=1)) * scale, *y_limits) for reach in (np.minimum(*ends), np.maximum(*ends))
    )
    if bool(((most - least) < _FEW_VALUES).any()):
        return True
    if is_depthwise:
        return False
    whole = np.column_stack([taps, np.broadcast_to(bias, len(taps)), np.broadcast_to(weights.scale, len(taps))])
    unread = not values.reshape(-1, values.shape[-1]).any(axis=0).all()
    return unread or len(np.unique(whole, axis=0)) < len(whole)


def _limits(tensor: TensorInfo) -> tuple[int, int]:
    """Return the lowest and the highest value of an integer tensor, without its zero point."""
    types = np.iinfo(tensor.dtype)
    return int(types.min) - _zero_point(tensor), int(types.max) - _zero_point(tensor)


def _zero_point(tensor: TensorInfo) -> int:
    return int(tensor.zero_point[0]) if tensor.zero_point.size else 0


def _activations(operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo]) -> tuple[int, str]:
    """Return bytes alive while a layer with windows or products runs, and their description."""
    if operator.op not in _WEIGHTED | _POOLED:
        return 0, ""
    source, result = _source(operator, info, writers), info.tensors[operator.outputs[0]]
    read, written = source.bytes, result.bytes
    needed = read + written if read != written else read
    sizes = f"input {_sized(source)} and output {_sized(result)}" if read != written else f"input {_sized(source)}"
    return needed, f"{_named(operator, info)}: {sizes}"


def _largest_tensor(operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo]) -> tuple[int, str]:
    """Return the bytes of the larger of input and output of a layer, and its description."""
    if operator.op not in _WEIGHTED | _POOLED:
        return 0, ""
    ends = {"input": _source(operator, info, writers), "output": info.tensors[operator.outputs[0]]}
    what, tensor = max(ends.items(), key=lambda end: end[1].bytes)
    return tensor.bytes, f"{_named(operator, info)}: {what} {_sized(tensor)}"


def _source(operator: OperatorInfo, info: ModelInfo, writers: dict[int, OperatorInfo]) -> TensorInfo:
    """Return the input of an operator, or of a PAD before it."""
    source = info.tensors[operator.inputs[0]]
    before = writers.get(source.index)
    if before is not None and before.op in _PADS:
        return info.tensors[before.inputs[0]]
    return source


def _sized(tensor: TensorInfo) -> str:
    return f"{tensor.dtype}{list(tensor.shape)} {tensor.bytes:,}"


def _named(operator: OperatorInfo, info: ModelInfo) -> str:
    return operator_label(operator.index, operator.op, info.tensors[operator.outputs[0]].name)
