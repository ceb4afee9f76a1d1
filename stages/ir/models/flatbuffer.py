"""Tables of an untrusted FlatBuffers file: every offset is checked before it is used.

The binary format is little-endian. A table starts with the signed distance to its vtable, which has one 16-bit offset
per field. Vectors, strings and tables are referenced by unsigned distances. Every value is aligned to its size and a
string ends in a NUL; LiteRT refuses other files without a reason.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.support.messages import escape


class Corrupt(Exception):
    """A fault in a file; completes "is a corrupt or truncated file: ..."."""


class Table:
    """A table whose vtable and fields are inside the file `data`; `what` names it in messages.

    Fields are numbered as in the schema. Each method raises Corrupt for positions outside of the file.
    """

    def __init__(self, data: memoryview, position: int, what: str) -> None:
        self.data, self.position, self.what = data, position, what
        vtable = position - self._unpack("<i", position)
        self.fields = self._unpack("<H", vtable)
        self.size = self._unpack("<H", vtable + 2)
        if position % 4 or vtable % 2 or self.fields < 4 or self.fields % 2 or vtable + self.fields > len(data):
            raise Corrupt(f"bad table in {what}")
        if position + self.size > len(data):
            raise Corrupt(f"{what} ends beyond the file")
        self.vtable = vtable

    @classmethod
    def root(cls, data: memoryview) -> Table:
        """Return the root table of the file."""
        return cls(data, struct.unpack_from("<I", data, 0)[0], "the model")

    def _unpack(self, form: str, position: int) -> Any:
        if position < 0 or position + struct.calcsize(form) > len(self.data):
            raise Corrupt(f"{self.what} points beyond the file")
        return struct.unpack_from(form, self.data, position)[0]

    def _field(self, number: int, width: int = 1) -> int:
        """Return the position of a field, 0 if absent."""
        entry = 4 + 2 * number
        offset = self._unpack("<H", self.vtable + entry) if entry < self.fields else 0
        if offset and (offset < 4 or offset + width > self.size or (self.position + offset) % width):
            raise Corrupt(f"bad field {number} in {self.what}")
        return self.position + offset if offset else 0

    def has(self, number: int) -> bool:
        """Whether the file has the field."""
        return bool(self._field(number))

    def place(self, number: int) -> int:
        """Return the position in the file of a field that is present."""
        return self._field(number)

    def scalar(self, number: int, form: str, default: int = 0) -> int:
        """Return a number of struct's format `form`, the default if absent."""
        position = self._field(number, struct.calcsize(form))
        return int(self._unpack(form, position)) if position else default

    def real(self, number: int) -> float:
        """Return a float32 number, 0 if absent."""
        position = self._field(number, 4)
        return float(self._unpack("<f", position)) if position else 0.0

    def table(self, number: int, what: str) -> Table | None:
        """Return a table, None if absent."""
        position = self._field(number, 4)
        return Table(self.data, position + self._unpack("<I", position), what) if position else None

    def _vector(self, number: int, width: int) -> tuple[int, int]:
        """Return start and length of a vector; (0, 0) if absent."""
        position = self._field(number, 4)
        if not position:
            return 0, 0
        start = position + self._unpack("<I", position)
        length = self._unpack("<I", start)
        if start % 4:
            raise Corrupt(f"a list in {self.what} begins at {start}, no multiple of 4")
        if start + 4 + length * width > len(self.data):
            raise Corrupt(f"a list in {self.what} ends beyond the file")
        return start + 4, length

    def numbers(self, number: int, dtype: str) -> npt.NDArray[Any]:
        """Return a vector of numbers as a view of the file, empty if absent."""
        start, length = self._vector(number, np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, dtype=dtype, count=length, offset=start if length else 0)

    def raw(self, number: int) -> memoryview:
        """Return a vector of bytes as a view of the file, empty if absent."""
        start, length = self._vector(number, 1)
        return self.data[start : start + length]

    def string(self, number: int) -> str:
        """Return a text, '' if absent."""
        start, length = self._vector(number, 1)
        text = bytes(self.data[start : start + length]).decode("utf-8", errors="replace")
        if start and self._unpack("<B", start + length):
            raise Corrupt(f"a text in {self.what} does not end: {escape.quoted(text[:40])}")
        return text

    def tables(self, number: int, what: str) -> list[Table]:
        """Return a vector of tables, named `what` and their number; empty if absent."""
        start, length = self._vector(number, 4)
        tables = []
        for index in range(length):
            position = start + 4 * index
            tables.append(Table(self.data, position + self._unpack("<I", position), f"{what} {index}"))
        return tables
