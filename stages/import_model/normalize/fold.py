"""Results that follow from constants and from fixed shapes: computed once, by LiteRT, instead of in every inference.

Keras writes a flatten as SHAPE, STRIDED_SLICE, PACK and RESHAPE: of these only the last is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy.typing as npt

from stages.import_model.operators import has_effects
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ir.operators.declaration import CUSTOM
from stages.ir.reference.partitions import file_with
from stages.ir.reference.probe import tensor_values
from stages.ir.reference.refusal import RunError

_OF_SHAPES = frozenset({"RANK", "SHAPE", "ZEROS_LIKE"})  # they read no value of their input
# Operators that a network needs for nothing else: LiteRT knows them, and none is left where shapes are fixed.
FOLDED = _OF_SHAPES | {"BROADCAST_ARGS", "RANGE"}
_KEPT = frozenset({"DEQUANTIZE"})  # of a constant: what its readers make of it may need less memory
_MOST_ELEMENTS = 1 << 24  # of a result: more is no shape and no mask, but a mistake


def known_results(data: bytes, info: ModelInfo, name: str) -> tuple[list[OperatorInfo], Mapping[int, npt.NDArray[Any]]]:
    """The operators of a file whose results are known, and those results by tensor.

    None where LiteRT refuses to compute them: the checks of the import then say what is wrong with them.
    """
    known = {tensor.index for tensor in info.tensors if tensor.data is not None}
    found = []
    for operator in info.operators:
        if _is_foldable(operator, info, known):
            found.append(operator)
            known |= set(operator.outputs)
    if not found:
        return [], {}
    read = {index for operator in found for index in operator.inputs if index >= 0}
    made = {index for operator in found for index in operator.outputs}
    free = sorted(index for index in read - made if info.tensors[index].data is None)
    try:
        values = tensor_values(file_with(data, found, free, sorted(made)), name)
    except RunError:
        return [], {}
    return found, {index: values[index] for index in made}


def _is_foldable(operator: OperatorInfo, info: ModelInfo, known: set[int]) -> bool:
    if operator.op in _KEPT or operator.op.startswith(CUSTOM) or has_effects(operator.op):
        return False
    tensors = [info.tensors[index] for index in operator.outputs]
    if any(tensor.variable or prod(map(abs, tensor.shape)) > _MOST_ELEMENTS for tensor in tensors):
        return False
    if operator.op in _OF_SHAPES:
        shape = info.tensors[operator.inputs[0]].shape
        return bool(shape) and min(shape) > 0  # one that the file leaves out has no axes
    return all(index < 0 or index in known for index in operator.inputs)
