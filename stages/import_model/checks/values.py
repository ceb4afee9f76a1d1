"""Values of options, activations and factors; and that constants of floats are numbers."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.ir.models.naming import named
from stages.ir.operators.operation import Operation, Refused
from stages.ir.operators.table import OPERATORS

_ACTIVATIONS = ("none", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
_CLAMPS = 4  # the first of them: they only clamp
_LONGEST = 8  # LiteRT keeps no more


def check_values(operation: Operation) -> None:
    """Refused for a fused activation that is none, and for a factor or a list that LiteRT cannot take."""
    declared = OPERATORS[operation.op]
    fields = operation.options(declared.table)
    activation = fields.get("activation", 0)
    if not 0 <= activation < len(_ACTIVATIONS):
        raise Refused(f"has the fused activation {activation}, which is none")
    if activation >= _CLAMPS or (activation and not declared.fuses):
        raise Refused(f"has the fused activation {_ACTIVATIONS[activation]}")
    for name, value in fields.items():
        if isinstance(value, tuple) and len(value) > _LONGEST:
            raise Refused(f"has {len(value)} numbers in {name}; {_LONGEST} are the most")
    for name in ("alpha", "beta"):
        if not isfinite(fields.get(name, 0.0)):
            raise Refused(f"has {name} {fields[name]}; it must be a finite number")
    if fields.get("beta", 0.0) < 0:
        raise Refused(f"has beta {fields['beta']:g}; it must not be negative")


def check_constants(operation: Operation) -> None:
    """Refused for a NaN or an infinity in a constant."""
    for tensor in operation.inputs:
        if tensor is not None and tensor.data is not None and tensor.dtype.startswith("float"):
            check_finite(tensor.values(), named(tensor))


def check_finite(values: NDArray[Any], called: str) -> None:
    """Refused for a NaN or an infinity in the constant of that name.

    What becomes of a NaN depends on the order in which a maximum compares, and an infinity makes NaNs of zeros: no two
    compilers agree on them.
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    first = tuple(int(at) for at in np.argwhere(~finite)[0])
    raise Refused(
        f"reads {float(values[first])} at {list(first)} of the constant {called}; "
        f"it must hold finite numbers ({int((~finite).sum()):,} of {finite.size:,} are not)",
        "A mask is -1e9 as well as -inf. Weights that are not numbers come of a training that diverged.",
    )
