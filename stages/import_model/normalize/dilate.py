"""SPACE_TO_BATCH_ND, a convolution and BATCH_TO_SPACE_ND are a dilated convolution: so TensorFlow writes one.

Along an axis, blocks of d put every d-th place side by side; a window on them meets places that are d apart. What the
first pads before and behind and the last crops there is padding of the convolution, where it is not negative:

    x padded by p, cut into d phases, each convolved, joined, cropped by c
      = x padded by p - c, convolved with dilation d
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.import_model.normalize.graph import OneGraph
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo

_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_SAME, _VALID = 0, 1  # the schema's Padding

Pads = list[list[int]]


@dataclass(frozen=True)
class Dilated:
    """The three operators, by number; `pads` are (before, after) of rows and columns."""

    before: OperatorInfo
    convolution: OperatorInfo
    after: OperatorInfo
    dilation: tuple[int, int]
    pads: Pads


def dilated(info: ModelInfo) -> list[Dilated]:
    """All places where three operators stand for one."""
    readers: dict[int, list[OperatorInfo]] = {}
    for operator in info.operators:
        for index in operator.inputs:
            readers.setdefault(index, []).append(operator)
    writer = {index: operator for operator in info.operators for index in operator.outputs}
    found = []
    for operator in info.operators:
        if operator.op not in _CONVOLUTIONS or operator.options is None or not operator.options.fields:
            continue
        first, behind = writer.get(operator.inputs[0]), readers.get(operator.outputs[0], [])
        inside = {operator.inputs[0], operator.outputs[0]}
        alone = len(readers[operator.inputs[0]]) == len(behind) == 1 and not inside & {*info.outputs}
        if first is not None and alone and (first.op, behind[0].op) == ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
            made = _together(first, operator, behind[0], info)
            found += [made] if made is not None else []
    return found


def _together(first: OperatorInfo, convolution: OperatorInfo, last: OperatorInfo, info: ModelInfo) -> Dilated | None:
    fields = convolution.options.fields if convolution.options else {}
    steps = (fields["stride_h"], fields["stride_w"], fields["dilation_h"], fields["dilation_w"])
    if steps != (1, 1, 1, 1) or fields["padding"] != _VALID or len(info.tensors[first.inputs[0]].shape) != 4:
        return None
    parts = [_constants(operator, info) for operator in (first, last)]
    if parts[0] is None or parts[1] is None or parts[0][0] != parts[1][0]:
        return None
    (block, amounts), (_, crops) = parts[0], parts[1]
    pads = [[p - c for p, c in zip(one, other, strict=True)] for one, other in zip(amounts, crops, strict=True)]
    return Dilated(first, convolution, last, (block[0], block[1]), pads) if min(map(min, pads)) >= 0 else None


def _constants(operator: OperatorInfo, info: ModelInfo) -> tuple[list[int], Pads] | None:
    """Block and amounts of such an operator, None where they are computed, or not of two axes."""
    tensors = [info.tensors[index] for index in operator.inputs[1:]]
    if len(tensors) != 2 or any(tensor.data is None for tensor in tensors):
        return None
    block, amounts = (tensor.values() for tensor in tensors)
    if block.shape != (2,) or amounts.shape != (2, 2):
        return None
    return block.tolist(), amounts.tolist()


def dilate(graph: OneGraph, found: Sequence[Dilated], info: ModelInfo) -> None:
    """Puts a convolution in the place of each three operators, with a PAD before it where it needs one."""
    removed = set()
    for one in found:
        convolution, source = graph.operators[one.convolution.index], one.before.inputs[0]
        options, shape = convolution.builtinOptions, info.tensors[source].shape
        window = info.tensors[one.convolution.inputs[1]].shape[1:3]
        options.dilationHFactor, options.dilationWFactor = one.dilation
        removed |= {one.after.index}
        convolution.outputs = np.array([one.after.outputs[0]], np.int32)
        totals = [(size - 1) * step for size, step in zip(window, one.dilation, strict=True)]
        same = [[total // 2, total - total // 2] for total in totals]
        options.padding = _SAME if one.pads == same else _VALID
        if any(map(any, one.pads)) and one.pads != same:
            padded = [size + sum(pads) for size, pads in zip(shape[1:3], one.pads, strict=True)]
            _make_pad(graph, one, (shape[0], *padded, shape[3]), info)
            continue
        removed |= {one.before.index}
        convolution.inputs = np.array([source, *one.convolution.inputs[1:]], np.int32)
    graph.remove(removed)


def _make_pad(graph: OneGraph, one: Dilated, shape: tuple[int, ...], info: ModelInfo) -> None:
    """SPACE_TO_BATCH_ND becomes a PAD, which pads with the zero point too; its tensor of blocks is the amounts."""
    from ai_edge_litert import schema_py_generated as schema

    operator, made = graph.operators[one.before.index], one.before.outputs[0]
    amounts: Any = schema.TensorT(name=b"pads", type=schema.TensorType.INT32, hasRank=True)
    graph.tensors.append(amounts)
    graph.make_constant({len(graph.tensors) - 1: np.array([[0, 0], *one.pads, [0, 0]], np.int32)})
    code, version = schema.BuiltinOperator.PAD, 2 if info.tensors[made].dtype == "int8" else 1
    graph.codes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=code, version=version))
    operator.opcodeIndex = len(graph.codes) - 1
    operator.inputs = np.array([one.before.inputs[0], len(graph.tensors) - 1], np.int32)
    operator.builtinOptions, operator.builtinOptionsType = schema.PadOptionsT(), schema.BuiltinOptions.PadOptions
    graph.set_shapes({made: shape})
