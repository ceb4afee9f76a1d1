"""Valid ranges of inputs that hold indices: of GATHER and similar operators, token ids."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.operators.operation import Operation
from stages.ir.operators.table import OPERATORS

Range = tuple[int, int]

# Operators whose results are elements of their first input, of all, or of the second.
_FIRST = frozenset(
    {"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "UNPACK", "CAST", "GATHER", "TILE"}
    | {"BROADCAST_TO", "REVERSE_V2", "SPLIT_V"}
)
_ALL = frozenset({"CONCATENATION", "PACK"})
_SECOND = frozenset({"SPLIT"})
_SIGNS = {"ADD": 1, "SUB": -1}  # of a constant second operand


def index_ranges(info: ModelInfo, rules: Mapping[int, Mapping[str, Any]] | None = None) -> dict[int, Range]:
    """Return the least and greatest valid number of each input of indices, by tensor number.

    Between the input and the lookup there may be operators that move numbers or add a constant. `rules` are facts of
    operators from import: with `negative`, indices count from the end as well, as in ONNX.
    """
    ranges: dict[int, Range] = {}
    for operator in reversed(info.operators):
        declared = OPERATORS.get(operator.op)
        results = [ranges[index] for index in operator.outputs if index in ranges]
        if results:
            bounds = max(low for low, _ in results), min(high for _, high in results)
            for index, (low, high) in _input_ranges(operator, info, bounds):
                _narrow(ranges, index, low, high)
        if declared is not None and declared.tensors.looks_up is not None:
            position, size = declared.tensors.looks_up(Operation.of(operator, info))
            least = -size if (rules or {}).get(operator.index, {}).get("negative") else 0
            _narrow(ranges, operator.inputs[position], least, size - 1)
    return {index: ranges[index] for index in info.inputs if index in ranges and ranges[index][0] <= ranges[index][1]}


def imported_rules(folder: Path) -> dict[int, Mapping[str, Any]]:
    """Return import's facts of operators, by number; `folder` is its artifact."""
    operators = json.loads((folder / "tensors.json").read_text())["operators"]
    return {number: operator["rule"] for number, operator in enumerate(operators) if "rule" in operator}


def _narrow(ranges: dict[int, Range], index: int, low: int, high: int) -> None:
    before = ranges.get(index, (low, high))
    ranges[index] = max(before[0], low), min(before[1], high)


def _input_ranges(operator: OperatorInfo, info: ModelInfo, bounds: Range) -> list[tuple[int, Range]]:
    """Return the valid ranges of the operator's inputs for results within `bounds`."""
    inputs = operator.inputs
    if operator.op in _FIRST:
        return [(inputs[0], bounds)]
    if operator.op in _SECOND:
        return [(inputs[1], bounds)]
    if operator.op in _ALL:
        return [(index, bounds) for index in inputs]
    if operator.op in _SIGNS and info.tensors[inputs[1]].data is not None:
        added = info.tensors[inputs[1]].values()
        if added.dtype.kind == "i" and added.size:
            low, high = sorted(_SIGNS[operator.op] * int(end) for end in (np.min(added), np.max(added)))
            return [(inputs[0], (bounds[0] - low, bounds[1] - high))]
    return []
