"""Estimated instructions of float layers, from the operations in their TIR.

With a floating-point unit an operation takes about one instruction, plus loads, stores and loops. Without one it is
a C library call of about 75 instructions. Functions such as exp compute in double.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stages.backends.targets.spec import Target


@dataclass(frozen=True)
class Operations:
    """Numbers of arithmetic operations, function calls and stores."""

    arithmetic: float = 0.0
    calls: float = 0.0
    stores: float = 0.0

    def __add__(self, other: Operations) -> Operations:
        return Operations(self.arithmetic + other.arithmetic, self.calls + other.calls, self.stores + other.stores)

    def times(self, count: int) -> Operations:
        """Return the operations of `count` repetitions."""
        return Operations(count * self.arithmetic, count * self.calls, count * self.stores)


# Instructions per operation, with and without a floating-point unit.
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
    "fmaxf",
    "fminf",
)  # TIR calls that are instructions


def float_cost(functions: Iterable[Any], target: Target) -> float:
    """Return the instructions of a layer's scheduled PrimFuncs, each called once."""
    costs = _WITH_FPU if target.fpu else _SOFT
    counted = sum((operations(function.body) for function in functions), Operations())
    return costs.arithmetic * counted.arithmetic + costs.calls * counted.calls + costs.stores * counted.stores


def operations(statement: Any) -> Operations:
    """Return the operations of a TIR statement: all loop iterations, both sides of branches."""
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
    """Return the operations of an expression that reads data, and whether it does."""
    kind = type(expression).__name__
    if kind in ("TensorLoad", "BufferLoad"):
        return Operations(), True
    names = ("a", "b", "value", "body", "condition", "true_value", "false_value")
    parts = (
        list(expression.args) if kind == "Call" else [getattr(expression, n) for n in names if hasattr(expression, n)]
    )
    inner = [_evaluation(part) for part in parts if not isinstance(part, int | float | str)]
    counted, reads = (
        sum((inner_operations for inner_operations, _ in inner), Operations()),
        any(data for _, data in inner),
    )
    if not reads:
        return counted, False
    if kind == "Call":
        plain = _function(expression) in _INSTRUCTIONS
        return counted + (Operations(arithmetic=1) if plain else Operations(calls=1)), True
    return counted + Operations(arithmetic=1), True


def _function(call: Any) -> str:
    """Return the name of the TIR operation, or of the C function, that a call computes."""
    name = str(getattr(call.op, "name", "")).rpartition(".")[2]
    return str(call.args[0].value) if name == "call_pure_extern" else name
