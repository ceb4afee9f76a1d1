"""The weights' section: every constant of the model once, at an aligned offset."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Weights:
    """`data` is the section's content, little-endian; `offsets` says where each constant begins in it."""

    data: bytes
    offsets: Mapping[str, int]


def lay_out(constants: Mapping[str, np.ndarray], alignment: int) -> Weights:
    """Constants in the order given, each at a multiple of `alignment`; equal bytes are kept once."""
    data = bytearray()
    offsets: dict[str, int] = {}
    known: dict[bytes, int] = {}
    for key, array in constants.items():
        content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        digest = hashlib.sha256(content).digest()
        if digest not in known:
            data.extend(bytes(-len(data) % alignment))
            known[digest] = len(data)
            data.extend(content)
        offsets[key] = known[digest]
    return Weights(bytes(data), offsets)


def rows(data: bytes, width: int = 16) -> list[str]:
    """The bytes as lines of a C initializer."""
    return [", ".join(str(byte) for byte in data[i : i + width]) for i in range(0, len(data), width)]
