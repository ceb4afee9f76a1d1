"""Replace SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND by a dilated convolution.

TensorFlow writes dilated convolutions in this form. Blocks of d along an axis place elements with distance d side by
side. Padding p of the first operator minus crop c of the last one is the convolution's padding, if it is not negative:

    x padded by p, cut into d phases, each convolved, joined, cropped by c
      = x padded by p - c, convolved with dilation d
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.import_model.normalize.graph import OneGraph
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.support.lazy import schema

_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_SAME, _VALID = 0, 1  # the schema's Padding

Pads = list[list[int]]


@dataclass(frozen=True)
class Dilated:
    """The three operators; `pads` are [before, after] of rows and columns."""

    before: OperatorInfo
    convolution: OperatorInfo
    after: OperatorInfo
    dilation: tuple[int, int]
    pads: Pads


def dilated(info: ModelInfo) -> list[Dilated]:
    """Return all groups of three operators that one dilated convolution can replace."""
    readers: dict[int, list[OperatorInfo]] = {}
    for operator in info.operators:
        for index in operator.inputs:
            readers.setdefault(index, []).append(operator)
    writer = {index: operator for operator in info.operators for index in operator.outputs}
    matches = []
    for operator in info.operators:
        if operator.op not in _CONVOLUTIONS or operator.options is None or not operator.options.fields:
            continue
        first, behind = writer.get(operator.inputs[0]), readers.get(operator.outputs[0], [])
        inside = {operator.inputs[0], operator.outputs[0]}
        is_private = len(readers[operator.inputs[0]]) == len(behind) == 1 and not inside & {*info.outputs}
        if first is not None and is_private and (first.op, behind[0].op) == ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
            match = _match(first, operator, behind[0], info)
            matches += [match] if match is not None else []
    return matches


def _match(first: OperatorInfo, convolution: OperatorInfo, last: OperatorInfo, info: ModelInfo) -> Dilated | None:
    fields = convolution.options.fields if convolution.options else {}
    steps = (fields["stride_h"], fields["stride_w"], fields["dilation_h"], fields["dilation_w"])
    if steps != (1, 1, 1, 1) or fields["padding"] != _VALID or len(info.tensors[first.inputs[0]].shape) != 4:
        return None
    constants = [_constants(operator, info) for operator in (first, last)]
    if constants[0] is None or constants[1] is None or constants[0][0] != constants[1][0]:
        return None
    (block, amounts), (_, crops) = constants[0], constants[1]
    pads = [
        [p - c for p, c in zip(pad_row, crop_row, strict=True)]
        for pad_row, crop_row in zip(amounts, crops, strict=True)
    ]
    return Dilated(first, convolution, last, (block[0], block[1]), pads) if min(map(min, pads)) >= 0 else None


def _constants(operator: OperatorInfo, info: ModelInfo) -> tuple[list[int], Pads] | None:
    """Return block and amounts of an operator; None if they are computed or not of two axes."""
    tensors = [info.tensors[index] for index in operator.inputs[1:]]
    if len(tensors) != 2 or any(tensor.data is None for tensor in tensors):
        return None
    block, amounts = (tensor.values() for tensor in tensors)
    if block.shape != (2,) or amounts.shape != (2, 2):
        return None
    return block.tolist(), amounts.tolist()


def dilate(graph: OneGraph, matches: Sequence[Dilated], info: ModelInfo) -> None:
    """Replace each match by a dilated convolution, with a PAD before it if necessary."""
    removed = set()
    for match in matches:
        convolution, source = graph.operators[match.convolution.index], match.before.inputs[0]
        options, shape = convolution.builtinOptions, info.tensors[source].shape
        window = info.tensors[match.convolution.inputs[1]].shape[1:3]
        options.dilationHFactor, options.dilationWFactor = match.dilation
        removed |= {match.after.index}
        convolution.outputs = np.array([match.after.outputs[0]], np.int32)
        totals = [(size - 1) * step for size, step in zip(window, match.dilation, strict=True)]
        same = [[total // 2, total - total // 2] for total in totals]
        options.padding = _SAME if match.pads == same else _VALID
        if any(map(any, match.pads)) and match.pads != same:
            padded = [size + sum(pads) for size, pads in zip(shape[1:3], match.pads, strict=True)]
            _make_pad(graph, match, (shape[0], *padded, shape[3]), info)
            continue
        removed |= {match.before.index}
        convolution.inputs = np.array([source, *match.convolution.inputs[1:]], np.int32)
    graph.remove(removed)


def _make_pad(graph: OneGraph, match: Dilated, shape: tuple[int, ...], info: ModelInfo) -> None:
    """Change SPACE_TO_BATCH_ND into a PAD, which also pads with the zero point.

    A new constant holds the amounts.
    """
    operator, padded_tensor = graph.operators[match.before.index], match.before.outputs[0]
    amounts: Any = schema.TensorT(name=b"pads", type=schema.TensorType.INT32, hasRank=True)
    graph.tensors.append(amounts)
    graph.make_constant({len(graph.tensors) - 1: np.array([[0, 0], *match.pads, [0, 0]], np.int32)})
    code, version = schema.BuiltinOperator.PAD, 2 if info.tensors[padded_tensor].dtype == "int8" else 1
    graph.codes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=code, version=version))
    operator.opcodeIndex = len(graph.codes) - 1
    operator.inputs = np.array([match.before.inputs[0], len(graph.tensors) - 1], np.int32)
    operator.builtinOptions, operator.builtinOptionsType = schema.PadOptionsT(), schema.BuiltinOptions.PadOptions
    graph.set_shapes({padded_tensor: shape})
