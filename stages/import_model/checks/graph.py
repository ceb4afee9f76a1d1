"""The graph as a whole: that there is something to run, on inputs and with outputs that a program can have."""

from __future__ import annotations

from stages.base import StageError
from stages.ir.models.naming import named
from stages.ir.models.tflite_reader import ModelInfo
from stages.ir.operators.operation import listed

_TYPES = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
NOTHING_TO_RUN = "all outputs of the model are constants: there is nothing to run"
_LARGEST = 2**31  # elements of one input or output


def check_graph(info: ModelInfo) -> None:
    """Raises StageError for a graph that computes nothing."""
    if info.outputs and all(info.tensors[index].data is not None for index in info.outputs):
        raise StageError(NOTHING_TO_RUN)
    if not info.operators or not info.inputs:
        raise StageError("the model has no operators" if not info.operators else "the model has no inputs")


def check_ends(info: ModelInfo) -> None:
    """Raises StageError for an input or output that no program can have."""
    for what, indices in (("input", info.inputs), ("output", info.outputs)):
        for index in indices:
            tensor, elements = info.tensors[index], 1
            if tensor.variable:
                raise StageError(
                    f"{what} {named(tensor)} of the model is a variable tensor, which the model itself keeps"
                )
            if tensor.dtype not in _TYPES:
                raise StageError(
                    f"{what} {named(tensor)} of the model has the type {tensor.dtype}; known are {_known()}"
                )
            for size in tensor.shape:
                elements *= max(size, 0)
            if not 0 < elements < _LARGEST:
                hint = "Export the model with fixed shapes."
                shape = f"{tensor.dtype}{listed(tensor.shape)}"
                raise StageError(f"{what} {named(tensor)} of the model is {shape}, which no memory holds", hint=hint)


def _known() -> str:
    return ", ".join(_TYPES)
