"""Values of options: activations and factors."""

from __future__ import annotations

from math import isfinite

from stages.import_model.checks.operation import Operation, Refused
from stages.import_model.checks.signatures import SIGNATURES

_ACTIVATIONS = ("none", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
_CLAMPS = 4  # the first of them: they only clamp
_WITHOUT = ("CONCATENATION", "L2_NORMALIZATION")  # LiteRT has no activation there
_LONGEST = 8  # LiteRT keeps no more


def check_values(operation: Operation) -> None:
    """Refused for a fused activation that is none, and for a factor or a list that LiteRT cannot take."""
    table = SIGNATURES[operation.op].table
    fields = operation.options(table) if table else {}
    activation = fields.get("activation", 0)
    if not 0 <= activation < len(_ACTIVATIONS):
        raise Refused(f"has the fused activation {activation}, which is none")
    if activation >= _CLAMPS or (activation and operation.op in _WITHOUT):
        raise Refused(f"has the fused activation {_ACTIVATIONS[activation]}")
    for name, value in fields.items():
        if isinstance(value, tuple) and len(value) > _LONGEST:
            raise Refused(f"has {len(value)} numbers in {name}; {_LONGEST} are the most")
    for name in ("alpha", "beta"):
        if not isfinite(fields.get(name, 0.0)):
            raise Refused(f"has {name} {fields[name]}; it must be a finite number")
