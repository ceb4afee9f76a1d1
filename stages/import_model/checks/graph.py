"""Checks of the whole graph: it computes something from supported inputs."""

from stages.base import StageError
from stages.ir.model_info import ModelInfo
from stages.ir.naming import named
from stages.ir.operators.operation import listed

_TYPES = ("float32", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool")
NOTHING_TO_RUN = "all outputs of the model are constants, so nothing remains to run"
_LARGEST = 2**31  # elements of one input or output


def check_graph(info: ModelInfo) -> None:
    """Raise StageError for a graph that computes nothing."""
    if info.outputs and all(info.tensors[index].data is not None for index in info.outputs):
        raise StageError(NOTHING_TO_RUN)
    if not info.operators or not info.inputs:
        raise StageError("the model has no operators" if not info.operators else "the model has no inputs")


def check_ends(info: ModelInfo) -> None:
    """Raise StageError for an unsupported input or output of the model."""
    for what, indices in (("input", info.inputs), ("output", info.outputs)):
        for index in indices:
            tensor, elements = info.tensors[index], 1
            if tensor.variable:
                raise StageError(
                    f"{what} {named(tensor)} of the model is a variable tensor, which is the model's own state"
                )
            if tensor.dtype not in _TYPES:
                raise StageError(
                    f"{what} {named(tensor)} of the model has the type {tensor.dtype}; supported: {_known()}"
                )
            for size in tensor.shape:
                elements *= max(size, 0)
            if not 0 < elements < _LARGEST:
                hint = "Export the model with fixed shapes."
                shape = f"{tensor.dtype}{listed(tensor.shape)}"
                raise StageError(
                    f"{what} {named(tensor)} of the model is {shape}, which does not fit any memory", hint=hint
                )


def _known() -> str:
    return ", ".join(_TYPES)
