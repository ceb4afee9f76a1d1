"""Names of tensors and operators in messages."""

from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.support.messages import escape

_SHOWN = 6


def named(tensor: TensorInfo) -> str:
    """Return a tensor's name in quotes, shortened and escaped."""
    return escape.quoted(tensor.name)


def tensor_names(operator: OperatorInfo, info: ModelInfo) -> str:
    """Return the names of an operator's tensors: 'input', 'weights' -> 'output'."""
    inputs, outputs = operator.inputs, operator.outputs
    return f"{_listed(inputs, info) or 'nothing'} -> {_listed(outputs, info) or 'nothing'}"


def _listed(indices: tuple[int, ...], info: ModelInfo) -> str:
    names = [named(info.tensors[index]) for index in indices if index >= 0]
    return ", ".join(names if len(names) <= _SHOWN else [*names[: _SHOWN - 2], f"… ({len(names)} in all)"])
