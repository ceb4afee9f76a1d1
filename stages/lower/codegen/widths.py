"""Find 32-bit variables that can be as wide as a register in C.

A 64-bit core keeps integers in 64-bit registers, so GCC extends a 32-bit one wherever it may have changed: a loop
variable for each address, a maximum at each comparison. Variables of type intptr_t avoid this. On a 32-bit core
nothing changes. Their values must fit 32 bits, because TIR's integers wrap there.
"""

from typing import Any

from stages.support.lazy import tirx, tvm_ffi

_WITHIN = ("int8", "uint8", "int16", "uint16", "int32")


def is_within_int32(value: Any) -> bool:
    """Return whether a value cannot wrap.

    True for constants and elements of up to 32 bits, and choices of such.
    """
    from tvm.ir import Call, TensorLoad

    if isinstance(value, Call) and getattr(value.op, "name", "") == "prim.if_then_else":
        return is_within_int32(value.args[1]) and is_within_int32(value.args[2])
    if isinstance(value, tirx.Max | tirx.Min | tirx.LT | tirx.LE | tirx.GT | tirx.GE | tirx.EQ | tirx.NE):
        return is_within_int32(value.a) and is_within_int32(value.b)
    if isinstance(value, tirx.Select):
        return all(is_within_int32(part) for part in (value.condition, value.true_value, value.false_value))
    if isinstance(value, tirx.Cast):
        return str(value.ty.dtype) in _WITHIN and is_within_int32(value.value)
    return str(value.ty.dtype) in _WITHIN and isinstance(value, tirx.IntImm | TensorLoad)


def calls_functions(body: Any) -> bool:
    """Return whether statements call a function."""
    calls: list[bool] = []

    def visit(node: Any) -> None:
        if isinstance(node, tirx.Evaluate):
            calls.append(not isinstance(node.value, tirx.IntImm))

    tvm_ffi.structural_walk(body, visit)
    return any(calls)
