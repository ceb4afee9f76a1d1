"""The object `ac/<key>` of a remote store: an artifact's files as Bazel's ActionResult.

Servers such as bazel-remote accept nothing else below `ac/`, and read from it which blobs belong together. Subset of
the message (build/bazel/remote/execution/v2/remote_execution.proto in bazelbuild/remote-apis) that is used:

    ActionResult { repeated OutputFile output_files = 2; }
    OutputFile   { string path = 1; Digest digest = 2; bool is_executable = 4; }
    Digest       { string hash = 1; int64 size_bytes = 2; }

Protobuf's wire format: a field is (number << 3 | type) as varint, then a varint (type 0), or length and bytes (2).
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.artifacts.digest import hash_file
from pipeline.artifacts.manifest import LOG, MANIFEST, stays_inside
from pipeline.artifacts.store import FILES, Artifact

# Limits of files in an entry, and of fields in its message.
MOST_FILES, _MOST_FIELDS = 20_000, 200_000
# Bytes of one file.
_MOST_BYTES = 1 << 40
_SHA256 = re.compile(r"[0-9a-f]{64}")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class Blob:
    """Content of a file."""

    sha256: str
    size: int
    executable: bool = False


def write_entry(files: Mapping[str, Blob]) -> bytes:
    """Return the message for files by their paths in the artifact's folder."""
    return b"".join(_bytes(2, _output_file(path, blob)) for path, blob in sorted(files.items()))


def read_entry(data: bytes) -> dict[str, Blob]:
    """Return the files of a message. Raises ValueError for an invalid or too large one."""
    files: dict[str, Blob] = {}
    count = itertools.count()
    for number, value in _fields(data, count):
        if number == 2 and isinstance(value, bytes):
            fields = dict(_fields(value, count))
            path, digest = fields.get(1, b""), fields.get(2, b"")
            if not isinstance(path, bytes) or not isinstance(digest, bytes):
                raise ValueError("invalid file entry")
            content = dict(_fields(digest, count))
            sha256, size = content.get(1, b""), content.get(2, 0)
            if not isinstance(sha256, bytes) or not _SHA256.fullmatch(sha256.decode()):
                raise ValueError("invalid digest")
            if not isinstance(size, int) or size > _MOST_BYTES:
                raise ValueError("invalid size")
            files[path.decode()] = Blob(sha256.decode(), size, bool(fields.get(4, 0)))
            if len(files) > MOST_FILES:
                raise ValueError(f"more than {MOST_FILES:,} files")
    return files


def files_of(artifact: Artifact) -> dict[str, Blob]:
    """Return the files of an artifact's folder. Raises OSError."""
    files = {}
    for name in (MANIFEST, LOG):
        path = artifact.folder / name
        files[name] = Blob(hash_file(path), path.stat().st_size)
    for name, entry in artifact.manifest["files"].items():
        executable = bool((artifact.files / name).stat().st_mode & 0o111)
        files[f"{FILES}/{name}"] = Blob(entry["sha256"], entry["size"], executable)
    return files


def agrees(manifest: dict[str, Any], files: dict[str, Blob]) -> bool:
    """Return whether an entry has exactly the files of its manifest, all inside the folder."""
    listed = {f"{FILES}/{name}": (entry["sha256"], entry["size"]) for name, entry in manifest["files"].items()}
    stored = {name: (blob.sha256, blob.size) for name, blob in files.items() if name not in (MANIFEST, LOG)}
    return listed == stored and all(map(stays_inside, files))


def _output_file(path: str, blob: Blob) -> bytes:
    digest = _bytes(1, blob.sha256.encode()) + (_number(2, blob.size) if blob.size else b"")
    return _bytes(1, path.encode()) + _bytes(2, digest) + (_number(4, 1) if blob.executable else b"")


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(data: bytes, count: Iterator[int]) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field. `count` counts the fields of the whole message."""
    at = 0
    while at < len(data):
        if next(count) >= _MOST_FIELDS:
            raise ValueError(f"more than {_MOST_FIELDS:,} fields")
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _read_varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"unknown field type {kind}")
        if at + size > len(data):
            raise ValueError("truncated field")
        yield tag >> 3, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("truncated number")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("number of more than 64 bits")
