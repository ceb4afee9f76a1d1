"""The shapes that operators give, from the shapes of their inputs, their options and their constants.

    infer(operation)      -> the shapes of its outputs; Refused when inputs and options contradict each other

The rules are those that LiteRT's kernels apply when they are prepared, in integers without limit; what would leave the
32 bits that LiteRT computes them in is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from stages.import_model.checks.operation import Operation, Shape
from stages.import_model.checks.shapes import elementwise, joints, movement, reductions, windows

_RULES: dict[str, Callable[[Operation], list[Shape]]] = {
    **windows.RULES,
    **elementwise.RULES,
    **reductions.RULES,
    **movement.RULES,
    **joints.RULES,
}


def infer(operation: Operation) -> list[Shape]:
    """The shapes of the outputs of a supported operator. Refused, saying which size or option is wrong."""
    return _RULES[operation.op](operation)


def known() -> frozenset[str]:
    """The operators that have a rule."""
    return frozenset(_RULES)
