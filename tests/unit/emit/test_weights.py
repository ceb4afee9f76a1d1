"""The weights' section: aligned, little-endian, each content once."""

import numpy as np
import pytest

from stages.emit.weights import Weights, divide_constants, lay_out
from stages.lower.arena.regions import RegionCapacity, RegionOverflowError


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


def test_largest_first_where_that_alone_leaves_room_for_all() -> None:
    """What is read most would take the capacity of what fits nowhere else."""
    capacities = [RegionCapacity("flash", 96), RegionCapacity("qspi", 48)]
    found = divide_constants(bytes_of(96, 32), capacities, {"a": 1, "b": 9}, {}, 16)
    assert regions_of(found) == {"flash": {"a"}, "qspi": {"b"}}
    with pytest.raises(RegionOverflowError):
        divide_constants(bytes_of(96, 64), capacities, {}, {}, 16)


def test_equal_constants_are_kept_once_in_the_region_that_a_rule_gives_one_of_them() -> None:
    constants = {**bytes_of(32, 32), "same": np.full(32, 0, np.int8)}
    found = divide_constants(constants, ROOMS, {}, {"same": "qspi"}, 16)
    assert regions_of(found) == {"flash": {"b"}, "qspi": {"a", "same"}}
    assert len(found[1].data) == 32
    both = divide_constants(constants, ROOMS, {}, {"a": "flash", "same": "qspi"}, 16)
    assert regions_of(both) == {"flash": {"a", "b"}, "qspi": {"same"}}
