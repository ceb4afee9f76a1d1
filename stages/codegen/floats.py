"""Floats in C, where TVM's printer falls short.

It writes constants with seven digits, and a float32 needs up to nine: so each constant becomes a scalar parameter
before printing, whose name is replaced by the literal in the printed text. And it has no C name for a few functions.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Any

_NAMED_HERE = {"tirx.fabs": "fabsf", "tirx.exp2": "exp2f"}
_MATH = re.compile(
    r"\b(?:a?(?:sin|cos|tan)h?|exp2?|log(?:2|10|1p)?|sqrt|pow|floor|ceil|trunc|fabs|erf|nearbyint|fmod)f?\("
    r"|\b(?:INFINITY|NAN)\b"
)


def uses_math(text: str) -> bool:
    """Whether C text needs <math.h>."""
    return _MATH.search(text) is not None


def name_functions(func: Any) -> Any:
    """The function with calls of the C library for float32 operations that TVM's C printer does not know."""
    import tvm_ffi
    from tvm import tirx
    from tvm.ir import Call

    def replace(call: Any) -> Any:
        name = getattr(call.op, "name", "")
        if name not in _NAMED_HERE:
            return call
        return tirx.call_pure_extern("float32", _NAMED_HERE[name], *call.args)

    return tirx.PrimFunc(func.params, tvm_ffi.structural_map(func.body, (Call, replace)))


def exact_literals(func: Any) -> tuple[Any, list[str]]:
    """The function with one more parameter for each float constant, and the constants' C literals in that order."""
    import tvm_ffi
    from tvm import tirx

    found: dict[tuple[str, float], Any] = {}

    def replace(node: Any) -> Any:
        dtype = str(node.ty.dtype)
        key = (dtype, float(node.value))
        if key not in found:
            found[key] = tirx.Var(f"literal{len(found)}", dtype)
        return found[key]

    body = tvm_ffi.structural_map(func.body, (tirx.FloatImm, replace))
    return tirx.PrimFunc([*func.params, *found.values()], body), [literal(value, dtype) for dtype, value in found]


def literal(value: float, dtype: str = "float32") -> str:
    """The shortest C literal that reads back as `value`: 0.1f, 1e-05f, INFINITY."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(value) if dtype == "float64" else _shortest(value)
    if not set(".e") & set(text):
        text += ".0"
    text += "" if dtype == "float64" else "f"
    return f"({text})" if text.startswith("-") else text


def _shortest(value: float) -> str:
    single = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, 10):
        text = f"{single:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            return text
    raise AssertionError("nine digits identify every float32")
