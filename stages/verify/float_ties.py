"""Near ties in QUANTIZE after float layers: firmware and LiteRT may round differently.

Float layers may differ from LiteRT's by `tolerance` times the largest magnitude. Let v be a float of LiteRT. QUANTIZE
may round differently if v / scale is within tolerance * max|v| / scale of a half, by one step, and only if the
firmware's float differs from v. Layers downstream of such an element are not checked; all others are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stages.ir.arrays import Array
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.reference.interpreter import Reference
from stages.ir.reference.partitions import PartitionedReference
from stages.verify.records import Port


@dataclass(frozen=True)
class FloatTies:
    """The first tensor with differing near ties, and indices of tensors that depend on it."""

    tensor: str
    affected: frozenset[int]


def rounds_floats(operator: OperatorInfo, info: ModelInfo) -> bool:
    """Return whether the operator is a QUANTIZE of float32."""
    return operator.op == "QUANTIZE" and info.tensors[operator.inputs[0]].dtype == "float32"


def float_ties(
    reference: Reference | PartitionedReference, ours: Mapping[int, tuple[Port, Array]], tolerance: float
) -> FloatTies | None:
    """Return the near ties of the last inference; None without any.

    `ours`: the firmware's tensors by index.
    """
    info, first_name = reference.info, ""
    affected: set[int] = set()
    of_onnx = reference.of_onnx if isinstance(reference, PartitionedReference) else ()  # stages.verify.onnx_layers
    for operator in info.operators:
        (out, *_) = operator.outputs
        if affected.intersection(operator.inputs):
            affected.update(operator.outputs)
        elif operator.index in of_onnx or not rounds_floats(operator, info) or out not in ours:
            continue
        elif _only_ties(reference, operator, ours, tolerance):
            affected.add(out)
            first_name = first_name or info.tensors[out].name
    return FloatTies(first_name, frozenset(affected)) if affected else None


def _only_ties(
    reference: Reference | PartitionedReference,
    operator: OperatorInfo,
    ours: Mapping[int, tuple[Port, Array]],
    tolerance: float,
) -> bool:
    """Return whether the QUANTIZE differs from LiteRT's, but only in near ties and by one step."""
    source, out = operator.inputs[0], operator.outputs[0]
    port, quantized = ours[out]
    theirs = port.of_file(reference.tensor(out))
    differ = quantized != theirs
    if not differ.any() or source in reference.info.inputs:
        return False
    values = port.of_file(reference.tensor(source)).astype(np.float64)
    scale = float(reference.info.tensors[out].scale[0])
    near_tie = near_halves(values, scale, tolerance)
    if source in ours:  # traces have no tensors that are only reshaped
        near_tie &= ours[source][1].reshape(values.shape) != values
    distance = np.abs(quantized.astype(np.int64) - theirs.astype(np.int64))
    return bool((near_tie & (distance == 1))[differ].all())


def near_halves(values: Array, scale: float, tolerance: float) -> Array:
    """Return which floats may round either way in steps of `scale`. float -> bool, same shape.

    Their error is at most `tolerance` times the largest magnitude.
    """
    steps = values.astype(np.float64) / scale
    limit = tolerance * float(np.abs(values).max()) / scale
    return np.asarray(np.abs(steps - np.floor(steps) - 0.5) <= limit)
