"""Check options, fused activations and factors, and that float constants are finite."""

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.ir.naming import named
from stages.ir.operators.operation import Operation, Refused
from stages.ir.operators.table import OPERATORS

_ACTIVATIONS = ("none", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
_CLAMPS = 4  # the first entries of _ACTIVATIONS are clamps
_LONGEST = 8  # LiteRT's limit


def check_values(operation: Operation) -> None:
    """Raise Refused for an unknown fused activation, or an invalid factor or list."""
    declared = OPERATORS[operation.op]
    fields = operation.options(declared.table)
    activation = fields.get("activation", 0)
    if not 0 <= activation < len(_ACTIVATIONS):
        raise Refused(f"has the unknown fused activation {activation}")
    if activation >= _CLAMPS or (activation and not declared.litert.fuses):
        raise Refused(f"has the fused activation {_ACTIVATIONS[activation]}")
    for name, value in fields.items():
        if isinstance(value, tuple) and len(value) > _LONGEST:
            raise Refused(f"has {len(value)} numbers in {name}; at most {_LONGEST} are supported")
    for name in ("alpha", "beta"):
        if not isfinite(fields.get(name, 0.0)):
            raise Refused(f"has {name} {fields[name]}; it must be a finite number")
    if fields.get("beta", 0.0) < 0:
        raise Refused(f"has beta {fields['beta']:g}; it must not be negative")


def check_constants(operation: Operation) -> None:
    """Raise Refused for a NaN or an infinity in a constant."""
    for tensor in operation.inputs:
        if tensor is not None and tensor.data is not None and tensor.dtype.startswith("float"):
            check_finite(tensor.values(), named(tensor))


def check_finite(values: NDArray[Any], called: str) -> None:
    """Raise Refused for a NaN or an infinity in the constant with the name `called`.

    The effect of a NaN depends on the order in which a maximum compares; an infinity turns zeros into NaNs. Compilers
    differ in both.
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    first = tuple(int(at) for at in np.argwhere(~finite)[0])
    raise Refused(
        f"reads {float(values[first])} at {list(first)} of the constant {called}; "
        f"it must hold finite numbers ({int((~finite).sum()):,} of {finite.size:,} are not)",
        "Use -1e9 instead of -inf in masks. Non-finite weights mean that the training diverged.",
    )
