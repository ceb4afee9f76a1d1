"""The core's part of NE16's C library, compiled for this machine, against numpy."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from stages.accelerators.ne16 import FOLDER
from stages.kernels.folder import INCLUDE
from tests.conformance.draw import Draw
from tests.support.ne16_layers import CALLS, L1


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    made = tmp_path_factory.mktemp("core") / "core.so"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fsanitize=undefined", f"-I{INCLUDE}"]
    subprocess.run(["gcc", *flags, FOLDER.path / "hwlib" / "ne16_core.c", "-o", made], check=True)
    return ctypes.CDLL(str(made))


def both(library: ctypes.CDLL, name: str, l1: L1, *arguments: int | tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """L1 after the C function, and after its definition; addresses are offsets in it."""
    by_c, by_numpy = L1(), L1()
    by_c.bytes[:] = by_numpy.bytes[:] = l1.bytes
    base = by_c.bytes.ctypes.data
    *places, last = arguments
    numbers = (ctypes.c_int32 * len(last))(*last) if isinstance(last, tuple) else ctypes.c_int32(last)
    getattr(library, name)(*(ctypes.c_void_p(base + place) for place in places), numbers)  # type: ignore[operator]
    CALLS[name](by_numpy, *arguments)
    return by_c.bytes, by_numpy.bytes


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 8, 12, 17])
def test_windows_are_gathered(library: ctypes.CDLL, channels: int) -> None:
    for seed in range(40):
        draw = Draw(seed)
        width, taps, stride_x = draw.integer(1, 7), draw.integer(1, 7), draw.integer(1, 4)
        step = min(width, stride_x)
        columns = (draw.integer(1, 6) - 1) * step + width
        numbers = (
            draw.integer(1, 5), columns, width, step, taps, channels, draw.integer(1, 3), stride_x,
            draw.integer(1, 9), draw.integer(1, 9), channels + draw.choose(0, 4), draw.integer(0, taps - 1),
            draw.integer(0, width - 1), draw.choose(0, 128, 255, -128),
        )  # fmt: skip
        ours, theirs = both(library, "ne16_gather", L1(), 4096, 65536, numbers)
        np.testing.assert_array_equal(ours, theirs, str(numbers))


@pytest.mark.parametrize("single", [0, 1])
def test_sums_are_requantized(library: ctypes.CDLL, single: int) -> None:
    for seed in range(20):
        draw = Draw(seed)
        channels, pixels = draw.integer(1, 20), draw.integer(1, 9)
        l1 = L1()
        l1.bytes[1024 : 1024 + 4 * channels] = (
            draw.rng.integers(1 << 30, 1 << 31, channels).astype("<i4").view(np.uint8)
        )
        shifts = draw.rng.integers(-31, 1 if single else 4, channels)
        l1.bytes[2048 : 2048 + channels] = shifts.astype(np.int8).view(np.uint8)
        sums = draw.rng.integers(-(1 << 20), 1 << 20, pixels * channels).astype("<i4")
        l1.bytes[8192 : 8192 + sums.nbytes] = sums.view(np.uint8)
        low = draw.choose(-128, -20)
        numbers = (pixels, channels, channels + 3, draw.integer(-128, 127), low, low + 200 - 128, 0, single, 0, 0, 1024)
        ours, theirs = both(library, "ne16_requantize", l1, 8192, 4096, 1024, numbers)
        np.testing.assert_array_equal(ours, theirs)
