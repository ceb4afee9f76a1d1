"""Which variables of 32 bits are as wide as a register in C.

A core of 64 bits has its integers in whole registers, so GCC extends one of 32 bits wherever it may have changed: a
loop's variable for each address, a largest element at each comparison. Of type intptr_t they need none of that, and on
a core of 32 bits nothing changes. They must have no value that 32 bits do not hold, for TIR's integers wrap there.
"""

from __future__ import annotations

from typing import Any

_WITHIN = ("int8", "uint8", "int16", "uint16", "int32")


def is_within_int32(value: Any) -> bool:
    """Whether a value is a constant or an element of up to 32 bits, or a choice of such: nothing that could wrap."""
    from tvm import tirx
    from tvm.ir import Call, TensorLoad

    if isinstance(value, Call) and getattr(value.op, "name", "") == "prim.if_then_else":
        return is_within_int32(value.args[1]) and is_within_int32(value.args[2])
    if isinstance(value, tirx.Max | tirx.Min | tirx.LT | tirx.LE | tirx.GT | tirx.GE | tirx.EQ | tirx.NE):
        return is_within_int32(value.a) and is_within_int32(value.b)
    if isinstance(value, tirx.Select):
        return all(is_within_int32(one) for one in (value.condition, value.true_value, value.false_value))
    if isinstance(value, tirx.Cast):
        return str(value.ty.dtype) in _WITHIN and is_within_int32(value.value)
    return str(value.ty.dtype) in _WITHIN and isinstance(value, tirx.IntImm | TensorLoad)


def calls_functions(body: Any) -> bool:
    """Whether statements call a function."""
    import tvm_ffi
    from tvm import tirx

    found: list[bool] = []

    def visit(node: Any) -> None:
        if isinstance(node, tirx.Evaluate):
            found.append(not isinstance(node.value, tirx.IntImm))

    tvm_ffi.structural_walk(body, visit)
    return any(found)
