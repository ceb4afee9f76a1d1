"""Lower operator versions that LiteRT's reference kernels compute but do not list.

TFLite raises an operator's version when the operator learns a type or an option. LiteRT lists the accepted versions for
each kernel set. The reference list lags behind the list of the usual kernels, although the kernels are the same. The
file is written with the newest version of the reference list.
"""

from collections.abc import Sequence
from typing import Any

from stages.ir.models.tflite_reader import builtin_name
from stages.support.lazy import schema

# Newest version in LiteRT 2.3's list of reference kernels, and in that of its usual kernels.
VERSIONS = {
    "ABS": (3, 5),
    "ADD": (5, 6),
    "ARG_MAX": (2, 3),
    "ARG_MIN": (2, 3),
    "COS": (1, 2),
    "DEPTHWISE_CONV_2D": (6, 7),
    "DEPTH_TO_SPACE": (1, 2),
    "GELU": (2, 3),
    "MUL": (7, 8),
    "SIN": (1, 2),
    "SOFTMAX": (3, 4),
    "SQUEEZE": (1, 2),
    "STRIDED_SLICE": (4, 8),
    "TILE": (2, 3),
    "TRANSPOSE": (8, 9),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (3, 4),
}


def lower_versions(codes: Sequence[Any]) -> list[str]:
    """Lower the versions of operator codes (`OperatorCodeT`) in place.

    Returns `DEPTH_TO_SPACE 2` for each change.
    """
    changed = []
    for code in codes:
        op = builtin_name(max(code.builtinCode, code.deprecatedBuiltinCode))
        if (listed := _listed(op, code.version)) != code.version:
            changed.append(f"{op} {code.version}")
            code.version = listed
    return changed


def has_newer_versions(data: bytes) -> bool:
    """Return whether a sound file lists a version that only LiteRT's usual kernels accept."""
    model = schema.Model.GetRootAs(data, 0)
    codes = [model.OperatorCodes(index) for index in range(model.OperatorCodesLength())]
    named = [(builtin_name(max(code.BuiltinCode(), code.DeprecatedBuiltinCode())), code.Version()) for code in codes]
    return any(_listed(op, version) != version for op, version in named)


def _listed(op: str, version: int) -> int:
    """Return the version to write, which the reference list has."""
    listed, newest = VERSIONS.get(op, (version, version))
    return listed if listed < version <= newest else version
