"""Check a network imported from ONNX: against ONNX Runtime end to end, and if necessary layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stages.base import StageError
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.verify.checker import check
from stages.verify.float_ties import rounds_floats
from stages.verify.onnx_layers import OnnxLayers
from stages.verify.records import Records

DESCRIPTION = "tensors.json"


def check_onnx(
    theirs: OnnxReference,
    imported: Path,
    quantized: Path,
    records: Records,
    tolerance: float,
    begins: Callable[[int], None],
) -> dict[str, Any]:
    """Check as `stages.verify.checker.check`, and add `near_ties` (None if no layer has float sums).

    If the outputs differ because near ties round differently, the firmware is compared with the integer graph, bit
    for bit. `distance` is then the distance from ONNX Runtime. Any other difference raises StageError.
    """
    layers = OnnxLayers(quantized, imported / DESCRIPTION, theirs)
    rounds = any(rounds_floats(operator, theirs.info) for operator in theirs.info.operators)
    if not layers.is_needed and not rounds:
        return {**check(theirs, records, tolerance, begins), "near_ties": None}
    try:
        result = check(theirs, records, tolerance, begins)
    except StageError:
        result = check(layers, records, tolerance, begins, litert=theirs)
        if not any(ties.differing for ties in layers.ties.values()):
            raise
    else:
        for index in range(records.inputs.count if layers.is_needed else 0):
            layers.run(records.inputs.row(index))
    return {**result, "near_ties": layers.as_dict()}
