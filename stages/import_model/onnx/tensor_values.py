"""Values of ONNX constants."""

from onnx import TensorProto, numpy_helper

from stages.base import StageError
from stages.ir.arrays import Array
from stages.ir.operators.operation import listed
from stages.support.messages import escape


def tensor_values(constant: TensorProto, name: str) -> Array:
    """Return a constant's values. Raises StageError if its byte count does not fit its shape."""
    try:
        values: Array = numpy_helper.to_array(constant)
    except (ValueError, TypeError, KeyError):
        of = f"the constant {escape.quoted(constant.name)} {listed(constant.dims)}"
        message = f"{name} is corrupt: {of} has a byte count that does not match its shape and type"
        raise StageError(message, hint="Check that the download or export is complete.") from None
    return values
