"""Floats in C: literals, and the functions of <math.h>.

A float32 needs up to nine digits; and TVM has no C name for a few functions.
"""

from __future__ import annotations

import math
import struct
from typing import Any

_NAMED_HERE = {"tirx.fabs": "fabsf", "tirx.exp2": "exp2f"}
_MATH = {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"} | {
    *("ceil", "floor", "nearbyint", "trunc", "erf", "exp", "exp2", "fabs", "fmod", "log", "log10", "log1p", "log2"),
    *("pow", "sqrt"),
}


def is_in_math_header(name: str) -> bool:
    """Whether a name of C is one of <math.h>: of functions that TIR has, their float32 form, or a constant."""
    return bool({name, name.removesuffix("f")} & _MATH) or name in ("INFINITY", "NAN")


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


def literal(value: float, dtype: str = "float32") -> str:
    """The shortest C literal that reads back as `value`: 0.1f, 1e-05f, INFINITY."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = repr(value) if dtype == "float64" else _shortest(value)
    if not set(".e") & set(text):
        text += ".0"
    return text if dtype == "float64" else f"{text}f"


def _shortest(value: float) -> str:
    single = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, 10):
        text = f"{single:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            return text
    raise AssertionError("nine digits identify every float32")
