"""External data of an ONNX file: tensor values in files beside it.

PyTorch exports large networks like this. Any tensor may be external: initializers, values of `Constant` and other
attributes, parts of sparse tensors, in the graph, its subgraphs and local functions. The files are part of the key, so
they are found for every recipe, without the `onnx` package: `external_files` walks the fields of the protobuf message
by number.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from stages.support.lazy import onnx
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import several

_MOST = 10_000  # files
_TOGETHER = "Put it there, or merge all into one file: onnx.save(onnx.load('net.onnx'), 'whole.onnx')."
_LENGTHS = {1: 8, 5: 4}  # bytes of a field, by its wire type
# Messages of onnx.proto that contain tensors: field number -> message.
_FIELDS: Mapping[str, Mapping[int, str]] = {
    "Model": {7: "Graph", 20: "TrainingInfo", 25: "Function"},
    "TrainingInfo": {1: "Graph", 2: "Graph"},
    "Graph": {1: "Node", 5: "Tensor", 15: "SparseTensor"},
    "Function": {7: "Node", 11: "Attribute"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph", 22: "SparseTensor", 23: "SparseTensor"},
    "SparseTensor": {1: "Tensor", 2: "Tensor"},
    "Tensor": {13: "ExternalData"},
}
_MODEL = ("model", "file")
_KEY, _VALUE = 1, 2  # fields of an entry of ExternalData


def external_files(path: Path) -> dict[str, Path]:
    """Return the files with external data of the ONNX file `path`, by their names in it.

    {} if it cannot be read as ONNX. Raises StageError for a name outside of the file's folder, also by a symbolic link,
    and for a missing file.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                names = dict.fromkeys(_locations(view))
            finally:
                view.release()
    except (OSError, ValueError, BufferError):  # reported where the file is opened, or parsed
        return {}
    if len(names) > _MOST:
        message = f"{escape.name(path.name)} has constants in {len(names):,} files; {_MOST:,} are read at most"
        raise StageError(message, at=_MODEL)
    files = {name: _beside(path, name) for name in names}
    missing = [escape.quoted(name) for name, place in files.items() if not place.is_file()]
    if missing:
        message = f"{escape.name(path.name)} has constants in {several(missing)}, which is missing"
        raise StageError(message, hint=_TOGETHER, at=_MODEL)
    return files


def _beside(path: Path, name: str) -> Path:
    """Return the path of the file `name` below the folder of the ONNX file `path`.

    Raises StageError for names outside of it.
    """
    called, place = escape.quoted(name), Path(name)
    is_relative = name and name.isprintable() and not place.is_absolute() and ".." not in place.parts
    target = path.parent / place
    if not is_relative:
        message = f"{escape.name(path.name)} has constants in {called}, which is not in its folder"
        raise StageError(message, hint="Only files beside the model, or in folders below, are read.", at=_MODEL)
    try:
        inside = target.resolve().is_relative_to(path.parent.resolve())
    except (OSError, RuntimeError):  # links in a circle
        inside = False
    if not inside:
        message = f"{escape.name(path.name)} has constants in {called}, a symbolic link out of its folder"
        raise StageError(message, hint="Copy the file there.", at=_MODEL)
    return target


def external_tensors(message: Any) -> Iterator[onnx.TensorProto]:
    """Yield every tensor of an `onnx` message whose values are in another file."""
    waiting = deque([message])
    while waiting:
        part = waiting.popleft()
        if isinstance(part, onnx.TensorProto):
            if part.data_location == onnx.TensorProto.EXTERNAL:
                yield part
            continue
        waiting += messages_in(part)


def messages_in(message: Any) -> Iterator[Any]:
    """Yield the protobuf messages that are fields of a message."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            yield from [value] if hasattr(value, "ListFields") else value


def whole(data: bytes, files: Mapping[str, Path], name: str) -> bytes:
    """Return the ONNX file with all external data inside. Raises StageError.

    files  by their names in the ONNX file
    """
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:  # load reports it
        return data
    for tensor in external_tensors(model):
        content = _content(tensor, files, name)
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.raw_data = content
    try:
        return bytes(model.SerializeToString())
    except Exception as error:  # above 2 GB; protobuf has no specific error
        raise StageError(f"{name} with its external data exceeds the 2 GB of one ONNX file") from error


def _content(tensor: onnx.TensorProto, files: Mapping[str, Path], name: str) -> bytes:
    """Return the bytes of a tensor from its file. Raises StageError."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"{name} has the constant {escape.quoted(tensor.name)} in {escape.quoted(location)}"
    try:
        if location not in files:
            raise FileNotFoundError(2, "no such file")
        with files[location].open("rb") as file:
            size = file.seek(0, 2)
            offset = int(entries.get("offset", 0))
            length = int(entries["length"]) if "length" in entries else size - offset
            if offset < 0 or length < 0 or offset + length > size:
                raise StageError(f"{where}, which is too short: {size:,} bytes, not {offset:,} + {length:,}")
            file.seek(offset)
            return file.read(length)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or escape.line(str(error))
        raise StageError(f"{where}: {reason}") from None


def _locations(data: memoryview) -> Iterator[str]:
    """Yield the names of external data files in an ONNX file's bytes. Raises ValueError."""
    waiting = [("Model", data)]
    while waiting:
        kind, part = waiting.pop()
        inner = _FIELDS.get(kind)
        if inner is None:
            entry = dict(_fields(part, {_KEY, _VALUE}))
            if bytes(entry.get(_KEY, b"")) == b"location":
                yield bytes(entry.get(_VALUE, b"")).decode()
        else:
            waiting += [(inner[number], content) for number, content in _fields(part, inner.keys())]


def _fields(data: memoryview, numbers: Set[int]) -> Iterator[tuple[int, memoryview]]:
    """Yield number and content of the `wanted` fields. Raises ValueError for invalid bytes."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        if kind == 2:
            size, at = _number(data, at)
            if at + size > len(data):
                raise ValueError("a field ends behind its message")
            if tag >> 3 in numbers:
                yield tag >> 3, data[at : at + size]
            at += size
        elif kind == 0:
            _, at = _number(data, at)
        elif kind in _LENGTHS:
            at += _LENGTHS[kind]
        else:
            raise ValueError(f"wire type {kind}")


def _number(data: memoryview, at: int) -> tuple[int, int]:
    """Return a variable-length number and the position after it."""
    value, shift = 0, 0
    while shift < 70:
        if at >= len(data):
            raise ValueError("a number ends behind its message")
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number of more than 64 bits")
