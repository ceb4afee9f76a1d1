"""Weights that the application provides: a blob with a header and a code fingerprint.

A blob is 64 bytes of header, a table of inputs and outputs, and the constants, little-endian. Its address is a multiple
of emit's `alignment`.

    offset  bytes
    0       4      "FLWB"
    4       4      format, 1
    8       4      bytes of the blob, header included
    12      4      CRC-32 (IEEE 802.3, as zlib.crc32) of the bytes from 64 on
    16      32     fingerprint of the code
    48      16     zeros
    64      8 each inputs, then outputs: scale (float32) and zero point (int32); 1.0 and 0 without a quantization

The fingerprint is the SHA-256 of the code that reads the constants, without comments and without the prefix of names.
Two networks with the same code differ in their constants only. So code and blob fit exactly if the fingerprints are
equal, whatever decisions led to the code.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from stages.support.lazy import np

MAGIC, FORMAT, HEADER_BYTES = b"FLWB", 1, 64
PORTS = "ports"  # key of the table of inputs and outputs, among the constants
_HEADER = struct.Struct("<4sIII32s16x")
_FIXED_BYTES = 12  # magic, format, size
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class BlobError(ValueError):
    """Bytes that are no blob; the message says why."""


@dataclass(frozen=True)
class Blob:
    """Fingerprint and constants of a blob."""

    fingerprint: bytes
    data: bytes

    def packed(self) -> bytes:
        """Return the bytes of the blob."""
        size = HEADER_BYTES + len(self.data)
        return _HEADER.pack(MAGIC, FORMAT, size, zlib.crc32(self.data), self.fingerprint) + self.data

    def start(self) -> bytes:
        """Return the first 12 bytes, which depend on the code only: magic, format, size."""
        return self.packed()[:_FIXED_BYTES]

    @classmethod
    def unpacked(cls, content: bytes) -> Blob:
        """Read a blob. Raises BlobError if the content is damaged or not a blob."""
        if content[:4] != MAGIC or len(content) < HEADER_BYTES:
            raise BlobError("it is not a blob of weights")
        _, form, size, checksum, fingerprint = _HEADER.unpack_from(content)
        if form != FORMAT:
            raise BlobError(f"its format is {form}, and this version reads format {FORMAT}")
        if size != len(content):
            raise BlobError(f"it has {len(content):,} bytes, and its header says {size:,}")
        if zlib.crc32(content[HEADER_BYTES:]) != checksum:
            raise BlobError("its checksum is wrong")
        return cls(fingerprint, content[HEADER_BYTES:])


def port_table(quantization: Iterable[tuple[float, int]]) -> np.ndarray:
    """Return the table of (scale, zero point) of inputs and outputs: uint8[8 * ports]."""
    packed = b"".join(struct.pack("<fi", scale, zero_point) for scale, zero_point in quantization)
    return np.frombuffer(packed, np.uint8)


def fingerprint(code: Mapping[str, str], prefix: str) -> bytes:
    """Return the fingerprint of texts, by name: 32 bytes.

    `prefix` is that of the emitted names.
    """
    digest = sha256()
    names = re.compile(rf"\b(?:model|MODEL|{prefix}|{prefix.upper()})_")
    for path, text in sorted(code.items()):
        plain = names.sub("", " ".join(_COMMENT.sub("", text).split()))
        digest.update(f"{path}\0{plain}\0".encode())
    return digest.digest()
