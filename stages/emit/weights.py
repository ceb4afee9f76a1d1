"""Layout of the weights: each constant once, at an aligned offset, in its region."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stages.ir.arrays import Array
from stages.lower.arena.planner import round_up
from stages.lower.arena.regions import RegionCapacity, RegionOverflowError


@dataclass(frozen=True)
class Weights:
    """Content of a weights section.

    data     little-endian bytes
    offsets  start of each constant in `data`
    sizes    bytes of each constant
    region   memory region; '' if the target has only one for weights
    """

    data: bytes
    offsets: Mapping[str, int]
    sizes: Mapping[str, int]
    region: str = ""


def lay_out(
    constants: Mapping[str, Array], alignment: int, region: str = "", *, start: int = 0, separate: bool = False
) -> Weights:
    """Lay out constants in order, at multiples of `alignment`, after `start` zero bytes.

    Equal bytes are stored once, unless `separate`: then the offsets do not depend on values.
    """
    data = bytearray(start)
    offsets: dict[str, int] = {}
    positions: dict[bytes, int] = {}
    for key, array in constants.items():
        content = _content(array)
        digest = hashlib.sha256(content).digest()
        if separate or digest not in positions:
            data.extend(bytes(-len(data) % alignment))
            positions[digest] = len(data)
            data.extend(content)
        offsets[key] = positions[digest]
    return Weights(bytes(data), offsets, {key: array.nbytes for key, array in constants.items()}, region)


def divide_constants(
    constants: Mapping[str, Array],
    capacities: Sequence[RegionCapacity],
    reads: Mapping[str, int],
    fixed: Mapping[str, str],
    alignment: int,
    loaded_from: Mapping[str, str] | None = None,
) -> list[Weights]:
    """Lay out constants in regions, the fastest first; return at least one layout.

    Constants that are read most often go to the fastest region with enough free bytes. If some do not fit this way,
    they are placed by size, the largest first.

    capacities   regions, the fastest first
    reads        how often each byte of a constant is read, by key
    fixed        region by key, for constants with a memory rule
    loaded_from  by region, the region from which its constants are copied; they need space in both

    Raises RegionOverflowError if the regions are too small.
    """
    groups = _equal(constants, fixed)
    often = sorted(groups, key=lambda group: (group.region == "", -max(reads.get(key, 0) for key in group.keys)))
    large = sorted(groups, key=lambda group: (group.region == "", -group.bytes))
    home = _first_fit(often, capacities, alignment, loaded_from or {}) or _first_fit(
        large, capacities, alignment, loaded_from or {}
    )
    if home is None:
        raise RegionOverflowError
    layouts = []
    for capacity in capacities:
        mine = {key: array for key, array in constants.items() if home[key] == capacity.region}
        if mine:
            layouts.append(lay_out(mine, alignment, capacity.region))
    return layouts or [lay_out({}, alignment, capacities[0].region)]


@dataclass(frozen=True)
class _Group:
    """Keys of constants with equal bytes, their size, and their rule's region or ''."""

    keys: tuple[str, ...]
    bytes: int
    region: str


def _equal(constants: Mapping[str, Array], fixed: Mapping[str, str]) -> list[_Group]:
    """Group constants of equal content and region.

    Constants without a rule join a group with a rule.
    """
    digests = {key: hashlib.sha256(_content(array)).digest() for key, array in constants.items()}
    regions: dict[bytes, str] = {}
    for key, region in fixed.items():
        regions.setdefault(digests[key], region)
    groups: dict[tuple[bytes, str], list[str]] = {}
    for key, digest in digests.items():
        groups.setdefault((digest, fixed.get(key) or regions.get(digest, "")), []).append(key)
    return [_Group(tuple(keys), constants[keys[0]].nbytes, region) for (_, region), keys in groups.items()]


def _first_fit(
    groups: Sequence[_Group], capacities: Sequence[RegionCapacity], alignment: int, loaded_from: Mapping[str, str]
) -> dict[str, str] | None:
    """Place each group in the first region that fits; return the region of each key, or None."""
    free_bytes = {capacity.region: capacity.bytes for capacity in capacities}
    home: dict[str, str] = {}
    for group in groups:
        size = round_up(group.bytes, alignment)
        needed = {region: {region, loaded_from.get(region, region)} & free_bytes.keys() for region in free_bytes}
        fitting = [
            region
            for region in ([group.region] if group.region else free_bytes)
            if all(size <= free_bytes[other] for other in needed[region])
        ]
        if not fitting:
            return None
        for other in needed[fitting[0]]:
            free_bytes[other] -= size
        home |= dict.fromkeys(group.keys, fitting[0])
    return home


def _content(array: Array) -> bytes:
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def rows(data: bytes, width: int = 16) -> list[str]:
    """Return the bytes as lines of a C initializer."""
    return [", ".join(str(byte) for byte in data[i : i + width]) for i in range(0, len(data), width)]
