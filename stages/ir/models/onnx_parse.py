"""Parse ONNX files and check the properties that readers of the message need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stages.ir.models.other_files import FILE, not_onnx
from stages.support.lazy import onnx
from stages.support.messages import escape
from stages.support.messages.operator_error import operator_label
from stages.support.messages.stage_error import StageError

_MOST = 2**31 - 1  # of one size: TFLite stores sizes in 32 bits
_STANDARD = ("", "ai.onnx", "com.microsoft")  # operators of other domains may have bytes as attributes


def parsed(data: bytes, name: str) -> onnx.ModelProto:
    """Return the message in `data`.

    Raises StageError, naming the file as `name`, for other files, graphs without operators, texts that are not UTF-8
    (protobuf returns these as bytes), and sizes beyond 32 bits.
    """
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:
        model = onnx.ModelProto()
    if not model.ir_version or not model.graph.node:
        raise not_onnx(data, name)
    fault = next(_faults(model, ""), "")
    if fault:
        raise StageError(f"{name} is a corrupt ONNX file: {fault}", hint="Export it again.", at=FILE)
    return model


def _faults(message: Any, place: str) -> Iterator[str]:
    """Yield each text that is not UTF-8 and each size beyond 32 bits.

    The text begins with the operator or tensor.
    """
    for field, value in message.ListFields():
        values = value if field.is_repeated else (value,)
        if field.type == field.TYPE_STRING:
            for text in values:
                if isinstance(text, bytes):
                    yield f"{place}the {field.name} {escape.name(str(text))} is not UTF-8"
        elif field.type == field.TYPE_MESSAGE:
            for number, inner in enumerate(values):
                yield from _faults(inner, _place(inner, number) or place)
    kind = message.DESCRIPTOR.name
    sizes = message.dims if kind == "TensorProto" else [message.dim_value] if kind == "Dimension" else []
    for size in sizes:
        if size > _MOST:
            yield f"{place}the size {size:,} does not fit into 32 bits"
    if kind == "NodeProto" and message.domain in _STANDARD:
        for attribute in message.attribute:
            for text in (attribute.s, *attribute.strings):
                if not _is_utf8(text):
                    shown = escape.name(str(text))
                    yield f"{place}the attribute {escape.quoted(attribute.name)}, {shown}, is not UTF-8"


def _place(message: Any, number: int) -> str:
    """Return `operator 3 (Pad) 'y': ` or `tensor 'x': `; '' for other parts of the model."""
    kind = message.DESCRIPTOR.name
    if kind == "NodeProto":
        name = message.name or next(iter(message.output), "")
        return f"{operator_label(number, escape.name(_text(message.op_type)), _text(name))}: "
    if kind in ("TensorProto", "ValueInfoProto") and message.name:
        return f"{'constant' if kind == 'TensorProto' else 'tensor'} {escape.quoted(_text(message.name))}: "
    return ""


def _text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", errors="replace")


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
