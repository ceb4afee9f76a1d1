"""The weights' sections: every constant of the model once, at an aligned offset, in one region or several."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.lower.arena.planner import round_up
from stages.lower.arena.regions import RegionCapacity, RegionOverflowError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Weights:
    """`data` is the section's content, little-endian; `offsets` says where each constant begins in it.

    `sizes` has each constant's bytes. `region` is '' where the target has but one for weights.
    """

    data: bytes
    offsets: Mapping[str, int]
    sizes: Mapping[str, int]
    region: str = ""


def lay_out(constants: Mapping[str, np.ndarray], alignment: int, region: str = "") -> Weights:
    """Constants in the order given, each at a multiple of `alignment`; equal bytes are kept once."""
    data = bytearray()
    offsets: dict[str, int] = {}
    known: dict[bytes, int] = {}
    for key, array in constants.items():
        content = _content(array)
        digest = hashlib.sha256(content).digest()
        if digest not in known:
            data.extend(bytes(-len(data) % alignment))
            known[digest] = len(data)
            data.extend(content)
        offsets[key] = known[digest]
    return Weights(bytes(data), offsets, {key: array.nbytes for key, array in constants.items()}, region)


def divide_constants(
    constants: Mapping[str, np.ndarray],
    rooms: Sequence[RegionCapacity],
    reads: Mapping[str, int],
    fixed: Mapping[str, str],
    alignment: int,
    kept: Mapping[str, str] | None = None,
) -> list[Weights]:
    """The constants laid out in each of the regions that has some, the fastest first; at least one, though it be empty.

    What is read most often goes to the fastest room that has enough left. Where that leaves some without a room, they
    go by size, the largest first.

    rooms  the fastest first
    reads  how often each byte of a constant is read, by its key
    fixed  region by key, for those that may lie in that one only
    kept   the region that those of a region are copied from, so that they take room in both

    Raises RegionOverflowError where the rooms are too small.
    """
    groups = _equal(constants, fixed)
    often = sorted(groups, key=lambda group: (group.region == "", -max(reads.get(key, 0) for key in group.keys)))
    large = sorted(groups, key=lambda group: (group.region == "", -group.bytes))
    home = _first_fit(often, rooms, alignment, kept or {}) or _first_fit(large, rooms, alignment, kept or {})
    if home is None:
        raise RegionOverflowError
    made = []
    for room in rooms:
        mine = {key: array for key, array in constants.items() if home[key] == room.region}
        if mine:
            made.append(lay_out(mine, alignment, room.region))
    return made or [lay_out({}, alignment, rooms[0].region)]


@dataclass(frozen=True)
class _Group:
    """Keys of constants with equal bytes, how many these are, and the region that a rule gives them, or ''."""

    keys: tuple[str, ...]
    bytes: int
    region: str


def _equal(constants: Mapping[str, np.ndarray], fixed: Mapping[str, str]) -> list[_Group]:
    """Constants of equal content and equal region; those with none of their own join those that have one."""
    digests = {key: hashlib.sha256(_content(array)).digest() for key, array in constants.items()}
    regions: dict[bytes, str] = {}
    for key, region in fixed.items():
        regions.setdefault(digests[key], region)
    groups: dict[tuple[bytes, str], list[str]] = {}
    for key, digest in digests.items():
        groups.setdefault((digest, fixed.get(key) or regions.get(digest, "")), []).append(key)
    return [_Group(tuple(keys), constants[keys[0]].nbytes, region) for (_, region), keys in groups.items()]


def _first_fit(
    groups: Sequence[_Group], rooms: Sequence[RegionCapacity], alignment: int, kept: Mapping[str, str]
) -> dict[str, str] | None:
    """The region of each key; None when a group finds no room."""
    left = {room.region: room.bytes for room in rooms}
    home: dict[str, str] = {}
    for group in groups:
        size = round_up(group.bytes, alignment)
        takes = {region: {region, kept.get(region, region)} & left.keys() for region in left}
        able = [
            region
            for region in ([group.region] if group.region else left)
            if all(size <= left[one] for one in takes[region])
        ]
        if not able:
            return None
        for one in takes[able[0]]:
            left[one] -= size
        home |= dict.fromkeys(group.keys, able[0])
    return home


def _content(array: np.ndarray) -> bytes:
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def rows(data: bytes, width: int = 16) -> list[str]:
    """The bytes as lines of a C initializer."""
    return [", ".join(str(byte) for byte in data[i : i + width]) for i in range(0, len(data), width)]
