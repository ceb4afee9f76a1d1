"""Estimated instructions of float layers, from the operations in their TIR.

A core with a floating-point unit takes an instruction for an addition and some for loads, stores and the loop around;
one without calls the C library, which takes about 75. Functions as exp compute in double.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target


@dataclass(frozen=True)
class Operations:
    """How often values are computed, functions called and values stored."""

    arithmetic: float = 0.0
    calls: float = 0.0
    stores: float = 0.0

    def __add__(self, other: Operations) -> Operations:
        return Operations(self.arithmetic + other.arithmetic, self.calls + other.calls, self.stores + other.stores)

    def times(self, count: int) -> Operations:
        return Operations(count * self.arithmetic, count * self.calls, count * self.stores)


# Instructions of one of each, with a floating-point unit and without.
_WITH_FPU = Operations(arithmetic=1.2, calls=100.0, stores=3.0)
_SOFT = Operations(arithmetic=75.0, calls=2500.0, stores=6.0)
_INSTRUCTIONS = (
    "if_then_else",
    "likely",
    "reinterpret",
    "fabs",
    "shift_left",
    "shift_right",
    "bitwise_and",
)  # no calls


def float_cost(functions: Iterable[Any], target: Target) -> float:
    """Instructions that a layer takes on the target: its scheduled PrimFuncs, called once each."""
    each = _WITH_FPU if target.fpu else _SOFT
    counted = sum((operations(function.body) for function in functions), Operations())
    return each.arithmetic * counted.arithmetic + each.calls * counted.calls + each.stores * counted.stores


def operations(statement: Any) -> Operations:
    """Those of a statement of TIR, all turns of its loops; of a branch both sides."""
    kind = type(statement).__name__
    if kind == "For":
        return operations(statement.body).times(int(statement.extent))
    if kind == "BufferStore":
        return _evaluation(statement.value)[0] + Operations(stores=1)
    if kind == "SBlockRealize":
        return operations(statement.block.body)
    if kind == "SeqStmt":
        return sum(map(operations, statement.seq), Operations())
    if kind == "IfThenElse":
        branches = [part for part in (statement.then_case, statement.else_case) if part is not None]
        return sum(map(operations, branches), Operations())
    return operations(statement.body) if hasattr(statement, "body") else Operations()


def _evaluation(expression: Any) -> tuple[Operations, bool]:
    """The operations of an expression, and whether it reads data: what computes with positions alone is not counted."""
    kind = type(expression).__name__
    if kind in ("TensorLoad", "BufferLoad"):
        return Operations(), True
    names = ("a", "b", "value", "body", "condition", "true_value", "false_value")
    parts = (
        list(expression.args) if kind == "Call" else [getattr(expression, n) for n in names if hasattr(expression, n)]
    )
    inner = [_evaluation(part) for part in parts if not isinstance(part, int | float | str)]
    counted, reads = sum((one for one, _ in inner), Operations()), any(data for _, data in inner)
    if not reads:
        return counted, False
    if kind == "Call":
        plain = str(getattr(expression.op, "name", "")).rpartition(".")[2] in _INSTRUCTIONS
        return counted + (Operations(arithmetic=1) if plain else Operations(calls=1)), True
    return counted + Operations(arithmetic=1), True
