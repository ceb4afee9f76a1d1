"""Fold results that follow from constants and fixed shapes; LiteRT computes them once.

Keras writes a flatten as SHAPE, STRIDED_SLICE, PACK and RESHAPE; only the RESHAPE remains.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy.typing as npt

from stages.import_model.operators import has_effects
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.operators.declaration import CUSTOM
from stages.ir.reference.partitions import file_with
from stages.ir.reference.probe import tensor_values
from stages.ir.reference.refusal import RunError

_SHAPE_OPERATORS = frozenset({"RANK", "SHAPE", "ZEROS_LIKE"})  # they read no value of their input
# Operators that always fold if shapes are fixed; LiteRT knows them.
FOLDED = _SHAPE_OPERATORS | {"BROADCAST_ARGS", "RANGE"}
_NOT_FOLDED = frozenset({"DEQUANTIZE"})  # of a constant: its readers may need less memory for the integers
_MOST_ELEMENTS = 1 << 24  # of a result: shapes and masks are smaller


def known_results(data: bytes, info: ModelInfo, name: str) -> tuple[list[OperatorInfo], Mapping[int, npt.NDArray[Any]]]:
    """Return the operators with known results, and these results by tensor index.

    Both are empty if LiteRT refuses to compute them; the import's checks then report the reason.
    """
    known = {tensor.index for tensor in info.tensors if tensor.data is not None}
    foldable = []
    for operator in info.operators:
        if _is_foldable(operator, info, known):
            foldable.append(operator)
            known |= set(operator.outputs)
    if not foldable:
        return [], {}
    read = {index for operator in foldable for index in operator.inputs if index >= 0}
    computed = {index for operator in foldable for index in operator.outputs}
    free = sorted(index for index in read - computed if info.tensors[index].data is None)
    try:
        values = tensor_values(file_with(data, foldable, free, sorted(computed)), name)
    except RunError:
        return [], {}
    return foldable, {index: values[index] for index in computed}


def _is_foldable(operator: OperatorInfo, info: ModelInfo, known: set[int]) -> bool:
    if operator.op in _NOT_FOLDED or operator.op.startswith(CUSTOM) or has_effects(operator.op):
        return False
    tensors = [info.tensors[index] for index in operator.outputs]
    if any(tensor.variable or prod(map(abs, tensor.shape)) > _MOST_ELEMENTS for tensor in tensors):
        return False
    if operator.op in _SHAPE_OPERATORS:
        shape = info.tensors[operator.inputs[0]].shape
        return bool(shape) and min(shape) > 0  # a missing shape has no axes
    return all(index < 0 or index in known for index in operator.inputs)
