"""Integers behind float layers: where QUANTIZE may give the number beside LiteRT's, and what follows from it.

Float layers may differ from LiteRT's by `tolerance` times the largest magnitude. So with v a float number of LiteRT's,
QUANTIZE may round the other way where v / scale is within tolerance * max|v| / scale of a half, and nowhere else; then
by one step, and only where the firmware's own float number is another. Integers behind such an element may be any,
those before it and beside it may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.partitions import PartitionedReference
from stages.verify.records import Array, Port


@dataclass(frozen=True)
class Tied:
    """The first tensor with elements that round the other way, and it and all behind it, by number in the file."""

    tensor: str
    behind: frozenset[int]


def rounds_floats(operator: OperatorInfo, info: ModelInfo) -> bool:
    """Whether the operator is a QUANTIZE of real numbers."""
    return operator.op == "QUANTIZE" and info.tensors[operator.inputs[0]].dtype == "float32"


def tied(
    reference: Reference | PartitionedReference, ours: Mapping[int, tuple[Port, Array]], tolerance: float
) -> Tied | None:
    """What the last inference's ties account for; None where there are none. `ours`: tensors by number in the file."""
    info, first = reference.info, ""
    behind: set[int] = set()
    for operator in info.operators:
        (out, *_) = operator.outputs
        if behind.intersection(operator.inputs):
            behind.update(operator.outputs)
        elif rounds_floats(operator, info) and out in ours and _only_ties(reference, operator, ours, tolerance):
            behind.add(out)
            first = first or info.tensors[out].name
    return Tied(first, frozenset(behind)) if behind else None


def _only_ties(
    reference: Reference | PartitionedReference,
    operator: OperatorInfo,
    ours: Mapping[int, tuple[Port, Array]],
    tolerance: float,
) -> bool:
    """Whether elements of the QUANTIZE differ from LiteRT's, and all that do are ties and by one step."""
    source, out = operator.inputs[0], operator.outputs[0]
    port, made = ours[out]
    theirs = port.of_file(reference.tensor(out))
    differ = made != theirs
    if not differ.any() or source in reference.info.inputs:
        return False
    values = port.of_file(reference.tensor(source)).astype(np.float64)
    scale = float(reference.info.tensors[out].scale[0])
    near = near_halves(values, scale, tolerance)
    if source in ours:  # no trace has what is only reshaped
        near &= ours[source][1].reshape(values.shape) != values
    apart = np.abs(made.astype(np.int64) - theirs.astype(np.int64))
    return bool((near & (apart == 1))[differ].all())


def near_halves(values: Array, scale: float, tolerance: float) -> Array:
    """Which real numbers, known within `tolerance` times the largest magnitude, may round either way in steps of scale.

    float -> bool, of one shape.
    """
    steps = values.astype(np.float64) / scale
    reach = tolerance * float(np.abs(values).max()) / scale
    return np.asarray(np.abs(steps - np.floor(steps) - 0.5) <= reach)
