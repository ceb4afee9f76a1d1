"""Which numbers inputs of a network may hold that say places: indices of GATHER and its kind, token ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ir.operators.operation import Operation
from stages.ir.operators.table import OPERATORS

Range = tuple[int, int]

# Operators whose results are elements of these inputs, whole numbers at least: the first, or all.
_FIRST = frozenset(
    {"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "UNPACK", "CAST", "GATHER", "TILE"}
    | {"BROADCAST_TO", "REVERSE_V2", "SPLIT_V"}
)
_ALL = frozenset({"CONCATENATION", "PACK"})
_SECOND = frozenset({"SPLIT"})


def index_ranges(info: ModelInfo, rules: Mapping[int, Mapping[str, Any]] | None = None) -> dict[int, Range]:
    """Return least and greatest number of each input that holds indices, by the tensor's number.

    Between the input and the operator that looks up may be operators that move numbers, or add a constant. `rules` are
    facts of operators from import: with `negative`, indices count from the end as well, as in ONNX.
    """
    ranges: dict[int, Range] = {}
    for operator in reversed(info.operators):
        declared = OPERATORS.get(operator.op)
        results = [ranges[index] for index in operator.outputs if index in ranges]
        if results:
            bounds = max(low for low, _ in results), min(high for _, high in results)
            for index, (low, high) in _asked(operator, info, bounds):
                _narrow(ranges, index, low, high)
        if declared is not None and declared.looks_up is not None:
            position, size = declared.looks_up(Operation.of(operator, info))
            least = -size if (rules or {}).get(operator.index, {}).get("negative") else 0
            _narrow(ranges, operator.inputs[position], least, size - 1)
    return {index: ranges[index] for index in info.inputs if index in ranges and ranges[index][0] <= ranges[index][1]}


def imported_rules(folder: Path) -> dict[int, Mapping[str, Any]]:
    """Return the facts that import left of its operators, by number; `folder` is its artifact."""
    operators = json.loads((folder / "tensors.json").read_text())["operators"]
    return {number: operator["rule"] for number, operator in enumerate(operators) if "rule" in operator}


def _narrow(ranges: dict[int, Range], index: int, low: int, high: int) -> None:
    before = ranges.get(index, (low, high))
    ranges[index] = max(before[0], low), min(before[1], high)


def _asked(operator: OperatorInfo, info: ModelInfo, bounds: Range) -> list[tuple[int, Range]]:
    """What inputs of the operator may hold, by their numbers, for results within `bounds`."""
    given = operator.inputs
    if operator.op in _FIRST:
        return [(given[0], bounds)]
    if operator.op in _SECOND:
        return [(given[1], bounds)]
    if operator.op in _ALL:
        return [(index, bounds) for index in given]
    if operator.op in ("ADD", "SUB") and info.tensors[given[1]].data is not None:
        added = info.tensors[given[1]].values()
        if added.dtype.kind == "i" and added.size:
            low, high = (int(np.min(added)), int(np.max(added)))
            low, high = (low, high) if operator.op == "ADD" else (-high, -low)
            return [(given[0], (bounds[0] - low, bounds[1] - high))]
    return []
