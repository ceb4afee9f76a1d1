"""Minimum and maximum of floats as functions of C, which compilers vectorize.

A choice between two values, as ReLU's, is a branch for GCC, and keeps it from vectorizing the sums before it.
"""

from __future__ import annotations

from typing import Any


def with_vector_extremes(func: Any) -> Any:
    """Return the PrimFunc with fmaxf and fminf for extremes of a float32 value and a constant.

    They are exact for the constants that are replaced. `v > c ? v : c` is c for a NaN v, as of fmaxf. Zeros of
    different signs differ only for a maximum with -0 and a minimum with 0.
    """
    import math

    import tvm_ffi
    from tvm import tirx

    def replace(node: Any) -> Any:
        if isinstance(node, tirx.Max | tirx.Min) and str(node.ty.dtype) == "float32":
            constant = float(node.b.value) if isinstance(node.b, tirx.FloatImm) else math.nan
            is_max = isinstance(node, tirx.Max)
            signed_zero = constant == 0 and (math.copysign(1, constant) > 0) != is_max
            if not math.isnan(constant) and not signed_zero:
                return tirx.call_pure_extern("float32", "fmaxf" if is_max else "fminf", node.a, node.b)
        return node

    return func.with_body(tvm_ffi.structural_map(func.body, replace))
