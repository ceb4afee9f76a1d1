"""Checks of the imported operators, before anything is built from them.

    check_all_counts(info)          StageError for operators with too few or too many tensors; runs first
    check_graph(info)               StageError for a graph that computes nothing
    check_operator(operator, info)  StageError with the operator, the tensor and the wrong value
    check_ends(info)                StageError for an unsupported input or output of the model

LiteRT and TVM's front end rely on sound files. One module per concern: `counts` (tensors and options), `types`,
`values` (options and constants), `quantization`. stages.ir.operators declares the tensors and options.
"""

from stages.import_model.checks.counts import check_all_counts, check_counts, check_options
from stages.import_model.checks.graph import check_ends, check_graph
from stages.import_model.checks.quantization import check_quantization
from stages.import_model.checks.types import check_sizes, check_types
from stages.import_model.checks.values import check_constants, check_values
from stages.import_model.operators import operator_error
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.naming import named
from stages.ir.operators.operation import Operation, Refused, listed
from stages.ir.operators.table import OPERATORS

__all__ = ["check_all_counts", "check_ends", "check_graph", "check_operator"]

_CHECKS = (check_counts, check_options, check_sizes, check_types, check_values, check_constants, check_quantization)


def check_operator(operator: OperatorInfo, info: ModelInfo) -> None:
    """Raise StageError if a supported operator contradicts itself or its tensors."""
    try:
        operation = Operation.of(operator, info)
        for check in _CHECKS:
            check(operation)
        if (operator_check := OPERATORS[operator.op].quantization.check) is not None:
            operator_check(operation)
        _check_shapes(operation)
    except Refused as refused:
        raise operator_error(operator, info, refused.what, refused.hint) from None


def _check_shapes(operation: Operation) -> None:
    for tensor, shape in zip(operation.outputs, OPERATORS[operation.op].shapes(operation), strict=True):
        if tensor.shape != shape:
            result, declared = f"{tensor.dtype}{listed(shape)}", f"{tensor.dtype}{listed(tensor.shape)}"
            raise Refused(f"gives {result}, but the file declares {declared} in {named(tensor)}")
