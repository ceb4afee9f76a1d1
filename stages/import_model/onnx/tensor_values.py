"""The values of a constant of an ONNX file."""

from __future__ import annotations

from onnx import TensorProto, numpy_helper

from stages.base import StageError
from stages.import_model.onnx.values import Array
from stages.ir.operators.operation import listed
from stages.support.messages import escape


def tensor_values(constant: TensorProto, name: str) -> Array:
    """Return the values of a constant in the file `name`. Raises StageError for more or fewer than its shape takes."""
    try:
        values: Array = numpy_helper.to_array(constant)
    except (ValueError, TypeError, KeyError):
        of = f"the constant {escape.quoted(constant.name)} {listed(constant.dims)}"
        message = f"{name} is corrupt: {of} has more or fewer bytes than its shape and type take"
        raise StageError(message, hint="Check that the download or export is complete.") from None
    return values
