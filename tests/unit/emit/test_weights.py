"""The weights' section: aligned, little-endian, each content once."""

import numpy as np

from stages.emit.weights import Weights, divide_constants, lay_out
from stages.lower.arena.regions import RegionCapacity


def test_equal_bytes_are_kept_once() -> None:
    section = lay_out({"a": np.zeros(64, np.int8), "b": np.zeros(16, np.int32), "c": np.ones(64, np.int8)}, 16)
    assert section.offsets["a"] == section.offsets["b"] != section.offsets["c"]
    assert len(section.data) == 128


def bytes_of(*sizes: int) -> dict[str, np.ndarray]:
    """Constants a, b, ... of so many bytes, no two equal."""
    return {chr(97 + i): np.full(size, i, np.int8) for i, size in enumerate(sizes)}


def regions_of(found: list[Weights]) -> dict[str, set[str]]:
    return {block.region: set(block.offsets) for block in found}


ROOMS = [RegionCapacity("flash", 96), RegionCapacity("qspi", 256)]


def test_what_is_read_most_often_is_in_the_fastest_region() -> None:
    found = divide_constants(bytes_of(64, 64, 30, 10), ROOMS, {"a": 1, "b": 9, "c": 5, "d": 1}, {}, 16)
    assert regions_of(found) == {"flash": {"b", "c"}, "qspi": {"a", "d"}}
    assert [block.offsets for block in found] == [{"b": 0, "c": 64}, {"a": 0, "d": 64}]
    assert found[0].data == bytes([1]) * 64 + bytes([2]) * 30
