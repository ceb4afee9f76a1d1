"""The weights' section: aligned, little-endian, each content once."""

import numpy as np

from stages.emit.weights import lay_out, rows


def test_constants_are_aligned_and_found_again() -> None:
    constants = {"a": np.arange(5, dtype=np.int8), "b": np.array([1, -2, 3], np.int32), "c": np.float32([0.5])}
    section = lay_out(constants, 16)
    for key, array in constants.items():
        start = section.offsets[key]
        assert start % 16 == 0
        np.testing.assert_array_equal(np.frombuffer(section.data, array.dtype, array.size, start), array)


def test_equal_bytes_are_kept_once() -> None:
    section = lay_out({"a": np.zeros(64, np.int8), "b": np.zeros(16, np.int32), "c": np.ones(64, np.int8)}, 16)
    assert section.offsets["a"] == section.offsets["b"] != section.offsets["c"]
    assert len(section.data) == 128


def test_big_endian_arrays_are_turned() -> None:
    assert lay_out({"a": np.array([1], ">i4")}, 4).data == b"\x01\x00\x00\x00"


def test_rows_of_an_initializer() -> None:
    assert rows(bytes(range(5)), 2) == ["0, 1", "2, 3", "4"]
