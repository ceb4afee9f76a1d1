"""Operators that no output needs, such as training branches and debug taps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stages.import_model.operators import has_effects
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.support.messages.wording import several


def unused(info: ModelInfo) -> list[OperatorInfo]:
    """Return the operators that neither an output nor an operator with an effect depends on."""
    needed, operators = set(info.outputs), []
    for operator in reversed(info.operators):
        if has_effects(operator.op) or needed & set(operator.outputs):
            needed |= set(operator.inputs)
        else:
            operators.append(operator)
    return operators[::-1]


def unused_note(operators: Sequence[OperatorInfo]) -> str:
    """Return the note: `removed operators that no output needs: 2 x RELU, 1 x ADD`."""
    count = Counter(operator.op for operator in operators)
    counts = several([f"{number} x {op}" for op, number in sorted(count.items())])
    return f"removed operators that no output needs: {counts}"
