"""Constants that an ONNX file keeps in files beside it (`external data`), as PyTorch writes them.

Which files these are is part of what a run depends on, so it is asked whenever a recipe is read, without the `onnx`
package: the names are found in the file itself, by the numbers of its fields (onnx.proto: ModelProto.graph 7,
GraphProto.initializer 5, TensorProto.external_data 13, its key 1 and value 2).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path

from stages.base import StageError
from stages.messages import escape
from stages.messages.wording import several

_GRAPH, _INITIALIZER, _EXTERNAL, _KEY, _VALUE = 7, 5, 13, 1, 2
_MOST = 10_000  # files
_TOGETHER = "Put it there, or all into one file where it is: onnx.save(onnx.load('net.onnx'), 'whole.onnx')."
_LENGTHS = {1: 8, 5: 4}  # bytes of a field, by its wire type


def external_files(path: Path) -> dict[str, Path]:
    """The files beside the ONNX file `path` that it names, by that name; {} for what cannot be read as one.

    Raises StageError for a name that leads out of the file's folder, and for a file that is not there.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                names = dict.fromkeys(_locations(view))
            finally:
                view.release()
    except (OSError, ValueError, BufferError):  # told where the file is opened, or parsed
        return {}
    found = {}
    for name in names:
        place = Path(name)
        if place.is_absolute() or ".." in place.parts or not name or len(names) > _MOST:
            message = f"{escape.name(path.name)} has constants in {escape.quoted(name)}, which is not in its folder"
            raise StageError(message, at=("model", "file"))
        found[name] = path.parent / place
    missing = [escape.quoted(name) for name, place in found.items() if not place.exists()]
    if missing:
        message = f"{escape.name(path.name)} has constants in {several(missing)}, which is not beside it"
        raise StageError(message, hint=_TOGETHER, at=("model", "file"))
    return found


def whole(data: bytes, files: Mapping[str, Path], name: str) -> bytes:
    """The ONNX file with all constants inside; `files` by the names it has for them. Raises StageError."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:  # load tells
        return data
    for one in model.graph.initializer:
        if one.data_location != onnx.TensorProto.EXTERNAL:
            continue
        facts = {entry.key: entry.value for entry in one.external_data}
        path = files.get(facts.get("location", ""))
        try:
            if path is None:
                raise FileNotFoundError(2, "no such file")
            with path.open("rb") as file:
                file.seek(int(facts.get("offset", 0)))
                length = int(facts["length"]) if "length" in facts else -1
                content = file.read(length)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            where = escape.quoted(facts.get("location", ""))
            raise StageError(f"{name} has the constant {escape.quoted(one.name)} in {where}: {reason}") from None
        if len(content) < length:
            where = escape.quoted(facts["location"])
            raise StageError(f"{name} has the constant {escape.quoted(one.name)} in {where}, which is too short")
        del one.external_data[:]
        one.data_location = onnx.TensorProto.DEFAULT
        one.raw_data = content
    try:
        return bytes(model.SerializeToString())
    except Exception as error:  # more than 2 GB, which protobuf has no error of its own for
        raise StageError(f"{name} is larger than an ONNX file can be in one piece") from error


def _locations(data: memoryview) -> Iterator[str]:
    for graph in _fields(data, _GRAPH):
        for tensor in _fields(graph, _INITIALIZER):
            for entry in _fields(tensor, _EXTERNAL):
                keys, values = list(_fields(entry, _KEY)), list(_fields(entry, _VALUE))
                if keys and values and bytes(keys[0]) == b"location":
                    yield bytes(values[0]).decode()


def _fields(data: memoryview, wanted: int) -> Iterator[memoryview]:
    """The contents of the fields with that number. Raises ValueError for bytes that are no message."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        if kind == 2:
            size, at = _number(data, at)
            if at + size > len(data):
                raise ValueError("a field ends behind its message")
            if tag >> 3 == wanted:
                yield data[at : at + size]
            at += size
        elif kind == 0:
            _, at = _number(data, at)
        elif kind in _LENGTHS:
            at += _LENGTHS[kind]
        else:
            raise ValueError(f"wire type {kind}")


def _number(data: memoryview, at: int) -> tuple[int, int]:
    """A variable-length number and where the next field begins."""
    value, shift = 0, 0
    while shift < 70:
        if at >= len(data):
            raise ValueError("a number ends behind its message")
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number of more than 64 bits")
