"""What a remote store has under `ac/<key>`: which files an artifact is, as Bazel's ActionResult.

Servers such as bazel-remote refuse anything else there, and know by it which blobs belong together. Of the message
(build/bazel/remote/execution/v2/remote_execution.proto in bazelbuild/remote-apis) this writes and reads

    ActionResult { repeated OutputFile output_files = 2; }
    OutputFile   { string path = 1; Digest digest = 2; bool is_executable = 4; }
    Digest       { string hash = 1; int64 size_bytes = 2; }

in protobuf's wire format: a field is (number << 3 | type) as varint, then a varint (type 0), or length and bytes (2).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.artifacts.digest import hash_file
from pipeline.artifacts.manifest import LOG, MANIFEST, stays_inside
from pipeline.artifacts.store import FILES, Artifact

# Files that an entry may have, and fields of its message: what has more nobody wrote.
MOST_FILES, _MOST_FIELDS = 20_000, 200_000
# Bytes of one file.
_MOST_BYTES = 1 << 40
_SHA256 = re.compile(r"[0-9a-f]{64}")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class Blob:
    """A file by its content."""

    sha256: str
    size: int
    executable: bool = False


def write_entry(files: Mapping[str, Blob]) -> bytes:
    """The message of files by their paths in the artifact's folder."""
    return b"".join(_bytes(2, _output_file(path, blob)) for path, blob in sorted(files.items()))


def read_entry(data: bytes) -> dict[str, Blob]:
    """The files of a message. Raises ValueError for what is none, and for more than an artifact has."""
    found: dict[str, Blob] = {}
    count = itertools.count()
    for number, value in _fields(data, count):
        if number == 2 and isinstance(value, bytes):
            fields = dict(_fields(value, count))
            path, digest = fields.get(1, b""), fields.get(2, b"")
            if not isinstance(path, bytes) or not isinstance(digest, bytes):
                raise ValueError("no file of an ActionResult")
            content = dict(_fields(digest, count))
            sha256, size = content.get(1, b""), content.get(2, 0)
            if not isinstance(sha256, bytes) or not _SHA256.fullmatch(sha256.decode()):
                raise ValueError("no digest")
            if not isinstance(size, int) or size > _MOST_BYTES:
                raise ValueError("no size")
            found[path.decode()] = Blob(sha256.decode(), size, bool(fields.get(4, 0)))
            if len(found) > MOST_FILES:
                raise ValueError(f"more than {MOST_FILES:,} files")
    return found


def files_of(artifact: Artifact) -> dict[str, Blob]:
    """The files below an artifact's folder. Raises OSError."""
    found = {}
    for name in (MANIFEST, LOG):
        path = artifact.folder / name
        found[name] = Blob(hash_file(path), path.stat().st_size)
    for name, entry in artifact.manifest["files"].items():
        executable = bool((artifact.files / name).stat().st_mode & 0o111)
        found[f"{FILES}/{name}"] = Blob(entry["sha256"], entry["size"], executable)
    return found


def agrees(manifest: dict[str, Any], files: dict[str, Blob]) -> bool:
    """Whether an entry has the files that its manifest lists, all of them below the artifact's folder."""
    listed = {f"{FILES}/{name}": (entry["sha256"], entry["size"]) for name, entry in manifest["files"].items()}
    there = {name: (blob.sha256, blob.size) for name, blob in files.items() if name not in (MANIFEST, LOG)}
    return listed == there and all(map(stays_inside, files))


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
    """Number and value of each field; of a repeated one, each. `count` counts those of the whole message."""
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
            raise ValueError(f"a field of type {kind}")
        if at + size > len(data):
            raise ValueError("it ends in the middle of a field")
        yield tag >> 3, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("it ends in the middle of a number")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("a number of more than 64 bits")
