"""What must hold of each operator before anything is made of it.

    check_all_counts(info)                StageError for operators with too few or too many tensors; comes first
    check_graph(info)                     there is something to run
    check_operator(operator, info)        StageError with the operator, the tensor and the value that is wrong
    check_ends(info)                      StageError with the input or output that no program can have

LiteRT and TVM's front end take sound files for granted. Each module here has one concern: `counts` (tensors and options
that are there), `types`, `values` of options and constants, `quantization`. What each operator takes, and
the shapes that it gives, are in stages.ir.operators.
"""

from __future__ import annotations

from stages.import_model.checks.counts import check_all_counts, check_counts, check_options
from stages.import_model.checks.errors import operator_error
from stages.import_model.checks.graph import check_ends, check_graph
from stages.import_model.checks.quantization import check_quantization
from stages.import_model.checks.types import check_sizes, check_types
from stages.import_model.checks.values import check_constants, check_values
from stages.ir.models.naming import named
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ir.operators.operation import Operation, Refused, listed
from stages.ir.operators.table import OPERATORS

__all__ = ["check_all_counts", "check_ends", "check_graph", "check_operator", "operator_error"]

_CHECKS = (check_counts, check_options, check_sizes, check_types, check_values, check_constants, check_quantization)


def check_operator(operator: OperatorInfo, info: ModelInfo) -> None:
    """Raises StageError when a supported operator contradicts itself or its tensors."""
    try:
        operation = Operation.of(operator, info)
        for check in _CHECKS:
            check(operation)
        if (own := OPERATORS[operator.op].check) is not None:
            own(operation)
        _check_shapes(operation)
    except Refused as refused:
        raise operator_error(operator, info, refused.what, refused.hint) from None


def _check_shapes(operation: Operation) -> None:
    for tensor, shape in zip(operation.outputs, OPERATORS[operation.op].shapes(operation), strict=True):
        if tensor.shape != shape:
            found, declared = f"{tensor.dtype}{listed(shape)}", f"{tensor.dtype}{listed(tensor.shape)}"
            raise Refused(f"gives {found}, but the file declares {declared} in {named(tensor)}")
