"""Floats in C: literals, and the functions of <math.h>.

A float32 needs up to nine digits. `_MATH` is the only list of C's mathematical functions. Any other function has no
declaration in the emitted C, and printing fails.
"""

import math
import struct

# C11 7.12: functions of floating-point arguments and results. Those of float32 end in `f`.
_MATH = {
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh"),
    *("erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "hypot"),
    *("ldexp", "lgamma", "log", "log10", "log1p", "log2", "logb", "nearbyint", "nextafter", "pow", "remainder"),
    *("rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
}


def is_in_math_header(name: str) -> bool:
    """Return whether <math.h> declares a name: a function, its float32 form, or a constant."""
    return bool({name, name.removesuffix("f")} & _MATH) or name in ("INFINITY", "NAN")


def math_function(operation: str, dtype: str) -> str | None:
    """Return the C function of a TIR operation (`tirx.fabs`) on `dtype`, None without one."""
    name = operation.removeprefix("tirx.")
    suffix = {"float32": "f", "float64": ""}.get(dtype)
    return None if suffix is None or name not in _MATH else name + suffix


def literal(value: float, dtype: str = "float32") -> str:
    """Return the shortest C literal that reads back as `value`: 0.1f, 1e-05f, INFINITY."""
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
