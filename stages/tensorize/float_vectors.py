"""Decide how a core whose vectors flush subnormal numbers to zero computes floats exactly.

Such a core is Armv8.1-M with MVE (Helium). Its other instructions do not flush. So a function that the compiler
vectorizes exists twice in C; the other functions with float arithmetic are compiled without vectors
(stages/backends/kernels/include/float_vectors.h).
"""

from typing import Any

from stages.support.lazy import tirx, tvm_ffi

ATTRIBUTE = "floats"
"""Attribute of a PrimFunc: VECTORS or SCALAR. Functions without float arithmetic have none."""
VECTORS, SCALAR = "vectors", "scalar"

# fabs only clears the sign. GCC makes a product of pow(x, 2).
_MOVES = {
    *("prim.if_then_else", "tirx.address_of", "tirx.buffer_data", "tirx.call_extern", "tirx.type_annotation"),
    "tirx.fabs",
}
_VECTORIZED = {"Add", "Sub", "Mul", "tirx.pow"}


def with_float_vectors(func: Any, *, is_vectorized: bool, reduces: bool) -> Any:
    """Return the scheduled PrimFunc, marked as VECTORS or SCALAR if it has float arithmetic.

    is_vectorized  the compiler vectorizes its reduction
    reduces        it has a reduction; without one, GCC vectorizes sums and products
    """
    operations = float_operations(func)
    if not operations:
        return func
    vectors = is_vectorized or (not reduces and operations <= _VECTORIZED)
    return func.with_attr(ATTRIBUTE, VECTORS if vectors else SCALAR)


def float_operations(func: Any) -> set[str]:
    """Return the TIR nodes and C functions that compute or compare floats.

    Omits those that only move floats.
    """
    from tvm.ir import Call

    operations: set[str] = set()

    def visit(node: Any) -> None:
        operands = (getattr(node, "a", None), node.value if isinstance(node, tirx.Cast) else None)
        if any(map(_is_float, operands)):
            operations.add(type(node).__name__)
        elif isinstance(node, Call | tirx.Cast) and _is_float(node):
            operations.add(str(node.op.name) if isinstance(node, Call) else "Cast")

    tvm_ffi.structural_walk(func.body, visit)
    return operations - _MOVES


def _is_float(node: Any) -> bool:
    return str(getattr(getattr(node, "ty", None), "dtype", "")).startswith("float")
