"""The bytes of an ONNX file as a message, with nothing checked but that it has operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.models.other_files import not_onnx

if TYPE_CHECKING:
    import onnx


def parsed(data: bytes, name: str) -> onnx.ModelProto:
    """The message in `data`. Raises StageError, naming the file as `name`, for what is none or has no operators."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:
        model = onnx.ModelProto()
    if not model.ir_version or not model.graph.node:
        raise not_onnx(data, name)
    return model
