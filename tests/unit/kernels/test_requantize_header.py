"""requantize.h against exact rational arithmetic, at the borders of int32 and on halves."""

from __future__ import annotations

import subprocess
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np

INCLUDE = Path(__file__).resolve().parents[3] / "stages" / "backends" / "kernels" / "include"
PROGRAM = """
#include <stdio.h>
#include "requantize.h"
int main(void)
{
    int32_t v[3];
    while (fread(v, sizeof v, 1, stdin) == 1) {
        int32_t out[2] = {fl_requantize_double(v[0], v[1], v[2]), fl_requantize_single(v[0], v[1], v[2])};
        fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
"""


def half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def half_away(value: Fraction) -> int:
    return half_up(value) if value >= 0 else -half_up(-value)


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def double(x: int, multiplier: int, shift: int) -> int:
    """The definition: a doubling high product, halves up, then a division by a power of two, halves away from zero."""
    high = half_up(Fraction(wrapped(x << max(shift, 0)) * multiplier, 2**31))
    return half_away(Fraction(high, 2 ** max(-shift, 0)))


def single(x: int, multiplier: int, shift: int) -> int:
    return half_up(Fraction(x * multiplier, 2 ** (31 - shift)))


def test_both_roundings_are_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    edges = [0, 1, -1, 2, -2, 3, -3, 2**31 - 1, -(2**31), 2**30, -(2**30)]
    xs = [
        *edges,
        *(int(v) for v in rng.integers(-(2**31), 2**31, 40)),
        *(int(v) for v in rng.integers(-3000, 3000, 40)),
    ]
    multipliers = [2**30, 2**31 - 1, 2**30 + 1, 1518500250, 0]
    rows = [(x, m, s) for x in xs for m in multipliers for s in (-31, -30, -17, -8, -1, 0)]
    rows += [(x, m, s) for x in range(-70, 71, 7) for m in multipliers for s in (1, 4, 20, 24)]
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(PROGRAM)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *flags, "-I", INCLUDE, source, "-o", program], check=True)
    done = subprocess.run([program], input=np.array(rows, np.int32).tobytes(), capture_output=True, check=True)
    results = np.frombuffer(done.stdout, np.int32).reshape(-1, 2).tolist()
    assert len(results) == len(rows)
    for (x, m, s), (two_roundings, one_rounding) in zip(rows, results, strict=True):
        assert two_roundings == double(x, m, s), (x, m, s)
        if -(2**31) <= single(x, m, s) < 2**31:  # the reference demands that the result fits
            assert one_rounding == single(x, m, s), (x, m, s)
