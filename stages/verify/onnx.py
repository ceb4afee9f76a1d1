"""Judges a network that came as ONNX: by ONNX Runtime as a whole where it can be, and layer by layer."""

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
    """As `stages.verify.checker.check`, with `near_ties` where layers have sums of real numbers, else None.

    Outputs that differ from ONNX Runtime's fail the network, but where a near tie before them went the other way: then
    the firmware is held to the integer graph, bit for bit, and `distance` says how far the outputs are from its.
    """
    layers = OnnxLayers(quantized, imported / DESCRIPTION, theirs)
    rounds = any(rounds_floats(operator, theirs.info) for operator in theirs.info.operators)
    if not layers.is_needed and not rounds:
        return {**check(theirs, records, tolerance, begins), "near_ties": None}
    try:
        found = check(theirs, records, tolerance, begins)
    except StageError:
        found = check(layers, records, tolerance, begins, litert=theirs)
        if not any(one.differing for one in layers.ties.values()):
            raise
    else:
        for index in range(records.inputs.count if layers.is_needed else 0):
            layers.run(records.inputs.row(index))
    return {**found, "near_ties": layers.as_dict()}
