"""Operators that no output needs, as exporters leave them: branches of training, taps for debugging."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stages.import_model.operators import has_effects
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.support.messages.wording import several


def unused(info: ModelInfo) -> list[OperatorInfo]:
    """Return the operators that neither an output nor an operator with an effect (ASSIGN_VARIABLE) depends on."""
    needed, found = set(info.outputs), []
    for operator in reversed(info.operators):
        if has_effects(operator.op) or needed & set(operator.outputs):
            needed |= set(operator.inputs)
        else:
            found.append(operator)
    return found[::-1]


def about_unused(operators: Sequence[OperatorInfo]) -> str:
    """Return the sentence for the report: `no output needs 2 x RELU, 1 x ADD: left out`."""
    count = Counter(operator.op for operator in operators)
    return f"no output needs {several([f'{number} x {op}' for op, number in sorted(count.items())])}: left out"
