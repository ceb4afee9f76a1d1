"""The core's part of NE16's C library, compiled for this machine, against numpy."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest

from stages.backends.accelerators.ne16 import FOLDER
from stages.backends.kernels.folder import INCLUDE
from stages.ir.arithmetic.fixed_point import multiply_by_quantized_multiplier
from tests.conformance.draw import Draw


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    made = tmp_path_factory.mktemp("core") / "core.so"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fsanitize=undefined", f"-I{INCLUDE}"]
    subprocess.run(["gcc", *flags, FOLDER.path / "hwlib" / "ne16_core.c", "-o", made], check=True)
    return ctypes.CDLL(str(made))


def memory() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, 1 << 20).astype(np.uint8)


def after_call(
    library: ctypes.CDLL, name: str, l1: np.ndarray, places: Sequence[int], numbers: Sequence[int]
) -> np.ndarray:
    """L1 after the C function; places are offsets in it."""
    after = l1.copy()
    pointers = (ctypes.c_void_p(after.ctypes.data + place) for place in places)
    getattr(library, name)(*pointers, (ctypes.c_int32 * len(numbers))(*numbers))
    return after


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 8, 12, 17])
def test_windows_are_gathered(library: ctypes.CDLL, channels: int) -> None:
    image, strips, l1 = 4096, 65536, memory()
    for seed in range(40):
        draw = Draw(seed)
        width, taps, stride_x = draw.integer(1, 7), draw.integer(1, 7), draw.integer(1, 4)
        step = min(width, stride_x)
        columns = (draw.integer(1, 6) - 1) * step + width
        rows, stride_y, height, width_in = (
            draw.integer(1, 5),
            draw.integer(1, 3),
            draw.integer(1, 9),
            draw.integer(1, 9),
        )
        pixel, above, left = channels + draw.choose(0, 4), draw.integer(0, taps - 1), draw.integer(0, width - 1)
        pad = draw.choose(0, 128, 255, -128)
        numbers = (
            rows, columns, width, step, taps, channels, stride_y, stride_x, height, width_in, pixel, above, left, pad,
        )  # fmt: skip
        expected = l1.copy()
        for y, column, tap in np.ndindex(rows, columns, taps):
            x = column if step == stride_x else column // width * stride_x + column % width
            row, x = y * stride_y + tap - above, x - left
            inside = 0 <= row < height and 0 <= x < width_in
            source = image + (row * width_in + x) * pixel
            to = strips + ((y * columns + column) * taps + tap) * channels
            expected[to : to + channels] = l1[source : source + channels] if inside else pad % 256
        found = after_call(library, "ne16_gather", l1, (image, strips), numbers)
        np.testing.assert_array_equal(found, expected, str(numbers))


@pytest.mark.parametrize("single", [0, 1])
def test_sums_are_requantized(library: ctypes.CDLL, single: int) -> None:
    source, to, constants, exponents = 8192, 4096, 1024, 1024
    for seed in range(20):
        draw, l1 = Draw(seed), memory()
        channels, pixels = draw.integer(1, 20), draw.integer(1, 9)
        multipliers = draw.rng.integers(1 << 30, 1 << 31, channels)
        shifts = draw.rng.integers(-31, 1 if single else 4, channels)
        sums = draw.rng.integers(-(1 << 20), 1 << 20, (pixels, channels))
        for place, values in ((constants, multipliers.astype("<i4")), (source, sums.astype("<i4"))):
            l1[place : place + values.nbytes] = values.reshape(-1).view(np.uint8)
        l1[constants + exponents :][:channels] = shifts.astype(np.int8).view(np.uint8)
        low = draw.choose(-128, -20)
        zero_point, high = draw.integer(-128, 127), low + 200 - 128
        scaled = multiply_by_quantized_multiplier(sums, multipliers, shifts, "single" if single else "double")
        expected = l1.copy()
        for pixel, values in enumerate(np.clip(scaled + zero_point, low, high)):
            expected[to + pixel * (channels + 3) :][:channels] = values.astype(np.uint8)
        numbers = (pixels, channels, channels + 3, zero_point, low, high, 0, single, 0, 0, exponents)
        found = after_call(library, "ne16_requantize", l1, (source, to, constants), numbers)
        np.testing.assert_array_equal(found, expected)
